#!/usr/bin/env python3
"""Every source stands in the list of its CMakeLists.txt: an unlisted test would never run, and nobody would notice.

Usage: sources_listed.py <project>
"""

import pathlib
import re
import sys

import source

FOLDERS = ("lib", "test", "perf", "examples")
# Consumer projects, and the files that must not compile, are listed where they are.
ELSEWHERE = ("test/package/",)


def words(lists):
    """Everything in a CMakeLists.txt that may name a file, comments left out."""
    return set(re.sub(r"#.*", "", lists.read_text(encoding="utf-8")).replace("(", " ").replace(")", " ").split())


def problems(project):
    for folder in FOLDERS:
        root = project / folder
        listed = words(root / "CMakeLists.txt")
        for path in source.files([root]):
            if path.suffix != ".cpp" or path.relative_to(project).as_posix().startswith(ELSEWHERE):
                continue
            name = path.relative_to(root).as_posix()
            # An example is listed by its name alone.
            if name not in listed and name.removesuffix(".cpp") not in listed:
                yield f"{path}: not listed in {folder}/CMakeLists.txt"


if __name__ == "__main__":
    sys.exit(source.report(list(problems(pathlib.Path(sys.argv[1]))), "sources in their lists"))
