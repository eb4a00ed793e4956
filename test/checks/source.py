"""What the checks share: finding C++ files, and telling code from comments and literals."""

import pathlib
import re

SUFFIXES = {".cpp", ".hpp"}


def files(roots):
    """All C++ files below the given folders, in a stable order."""
    for root in roots:
        for path in sorted(pathlib.Path(root).rglob("*")):
            if path.suffix in SUFFIXES and path.is_file():
                yield path


_NOT_CODE = re.compile(
    r"""//[^\n]*"""
    r"""|/\*.*?\*/"""
    r"""|R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)\""""
    r"""|"(?:\\.|[^"\\\n])*\""""
    # Not a digit separator, which stands between two digits.
    r"""|(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+'""",
    re.DOTALL | re.VERBOSE,
)


def code(text):
    """The text with comments and literals blanked, every line and column where it was."""
    return _NOT_CODE.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)


def line_of(text, position):
    return text.count("\n", 0, position) + 1


def closing(text, position):
    """Position just behind the bracket that closes the one at `position`; the end when there is none."""
    pairs = {"(": ")", "[": "]", "{": "}"}
    expected = []
    for index in range(position, len(text)):
        character = text[index]
        if character in pairs:
            expected.append(pairs[character])
        elif character in pairs.values():
            if expected and character == expected[-1]:
                expected.pop()
            if not expected:
                return index + 1
    return len(text)


def report(problems, what):
    """Prints the problems; the exit code of the check."""
    for problem in problems:
        print(problem)
    print(f"{len(problems)} problem(s): {what}" if problems else f"ok: {what}")
    return 1 if problems else 0
