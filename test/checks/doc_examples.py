#!/usr/bin/env python3
"""Programs shown in the documentation are the compiled ones, letter by letter.

A line `<!-- code: examples/name.cpp -->` stands before the code block that shows this file. The README shows the
quickstart.
Usage: doc_examples.py <project>
"""

import pathlib
import re
import sys

import links
import source

SHOWN = re.compile(r"^<!-- code: (\S+) -->[ \t]*\n(?:```\w*\n(.*?)^```[ \t]*$)?", re.MULTILINE | re.DOTALL)
REQUIRED = {"README.md": "examples/quickstart.cpp"}


def problems(project):
    shown = set()
    for page in links.pages(project):
        name = page.relative_to(project).as_posix()
        text = page.read_text(encoding="utf-8")
        for match in SHOWN.finditer(text):
            file, block = match.groups()
            where = f"{name}:{source.line_of(text, match.start())}"
            shown.add((name, file))
            if not (project / file).is_file():
                yield f"{where}: {file} does not exist"
            elif block is None:
                yield f"{where}: no code block follows"
            else:
                wanted = (project / file).read_text(encoding="utf-8").splitlines()
                found = block.splitlines()
                if wanted == found:
                    continue
                line = next((i for i, pair in enumerate(zip(wanted, found)) if pair[0] != pair[1]), min(len(wanted), len(found)))
                yield f"{where}: the block differs from {file} in its line {line + 1}"
    for name, file in REQUIRED.items():
        if (name, file) not in shown:
            yield f"{name}: does not show {file}"


if __name__ == "__main__":
    sys.exit(source.report(list(problems(pathlib.Path(sys.argv[1]))), "programs in the documentation"))
