#!/usr/bin/env python3
"""No assertion of Catch2 where another thread may run it: handlers and threads record, the test's thread asserts.

A heuristic: a lambda in the arguments of on(), rebind(), of a thread, a task or a future must hold no macro of Catch2.
Usage: catch_macros.py <folder>
"""

import re
import sys

import source

CALLS = re.compile(
    r"(?:[.>]\s*(?:template\s+)?(?:on|rebind|use|submit|post|spawn|enqueue|execute)\s*(?:<[^;{}()]*>)?\s*\("
    r"|\bstd::(?:jthread|thread|async)\b[^;(){}]*[({]"
    r"|\b\w*(?:threads?|workers?|producers?|emitters?)\w*\s*\.\s*(?:emplace_back|push_back|emplace)\s*\(" r")"
)
LAMBDA = re.compile(r"\[[^\[\]]*\]\s*(?=[({<]|mutable\b|noexcept\b|->)")
MACROS = re.compile(
    r"\b(?:CATCH_)?(?:(?:REQUIRE|CHECK)(?:_\w+)?|CHECKED_(?:IF|ELSE)|FAIL(?:_CHECK)?|SUCCEED|INFO|WARN|CAPTURE|UNSCOPED_INFO|SECTION)\s*\("
)


def lambda_bodies(text, start, end):
    """The ranges of the bodies of the lambdas that begin in a range of the text."""
    position = start
    while match := LAMBDA.search(text, position, end):
        brace = text.find("{", match.end(), end)
        if brace < 0:
            return
        if text[match.end()] == "(":
            brace = text.find("{", source.closing(text, match.end()), end)
            if brace < 0:
                return
        last = source.closing(text, brace)
        yield brace, last
        position = max(last, match.end())


def problems_in(text, name):
    blanked = source.code(text)
    seen = set()
    for call in CALLS.finditer(blanked):
        opening = call.end() - 1
        for first, last in lambda_bodies(blanked, opening, source.closing(blanked, opening)):
            for macro in MACROS.finditer(blanked, first, last):
                line = source.line_of(text, macro.start())
                if line not in seen:
                    seen.add(line)
                    yield f"{name}:{line}: {macro.group().rstrip('( ')} in a lambda that another thread may run"


def problems(root):
    for path in source.files([root]):
        yield from problems_in(path.read_text(encoding="utf-8"), path)


if __name__ == "__main__":
    sys.exit(source.report(list(problems(sys.argv[1])), "assertions off the test's thread"))
