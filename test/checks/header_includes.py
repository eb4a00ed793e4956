#!/usr/bin/env python3
"""Public headers keep their users' compile time low: they include none of the libraries we are built on.

Exceptions, one reason each: json.hpp hands out Boost.JSON's values; tbb.hpp takes a task arena of the user's.
Usage: header_includes.py <include folder>
"""

import pathlib
import re
import sys

import source

FORBIDDEN = re.compile(r"^(oneapi/|tbb/|tbb\.h|moodycamel/|concurrentqueue|blockingconcurrentqueue|mimalloc|fmt/|boost/|abxbus/tbb\.hpp)")
ALWAYS_ALLOWED = {"boost/json/fwd.hpp"}
EXCEPTIONS = {"abxbus/json.hpp": re.compile(r"^boost/json"), "abxbus/tbb.hpp": re.compile(r"^(oneapi/tbb|tbb)/")}
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"]+)[>"]', re.MULTILINE)


def problems(root):
    for path in source.files([root]):
        name = path.relative_to(root).as_posix()
        text = path.read_text(encoding="utf-8")
        for match in INCLUDE.finditer(text):
            included = match.group(1)
            if included in ALWAYS_ALLOWED or not FORBIDDEN.search(included):
                continue
            if name in EXCEPTIONS and EXCEPTIONS[name].search(included):
                continue
            yield f"{path}:{source.line_of(text, match.start(1))}: a public header must not include <{included}>"


if __name__ == "__main__":
    sys.exit(source.report(list(problems(pathlib.Path(sys.argv[1]))), "includes of the public headers"))
