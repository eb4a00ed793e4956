#!/usr/bin/env python3
"""Relative links in the documentation lead to something: the file is there, and so is the heading it names.

Links to other machines are not looked at. Text in code, inline or fenced, is not a link.
Usage: links.py <project>
"""

import pathlib
import re
import sys
import urllib.parse

import source

SKIPPED = {"build", "install"}
FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})[^\n]*\n.*?(?:^ {0,3}\1[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
CODE_SPAN = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
INLINE = re.compile(r"\]\(\s*<?([^()\s<>]+(?:\([^()\s]*\)[^()\s<>]*)*)>?(?:\s+(?:\"[^\"]*\"|'[^']*'))?\s*\)")
REFERENCE = re.compile(r"^ {0,3}\[[^\]\n]+\]:[ \t]*<?(\S+?)>?[ \t]*$", re.MULTILINE)
HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]+(.+?)[ \t]*#*[ \t]*$", re.MULTILINE)
ELSEWHERE = re.compile(r"^(?:[a-zA-Z][a-zA-Z0-9+.-]*:|//)")


def blank(match):
    return re.sub(r"[^\n]", " ", match.group())


def prose(text):
    """The text with code and comments blanked, every line where it was."""
    for pattern in (FENCE, COMMENT, CODE_SPAN):
        text = pattern.sub(blank, text)
    return text


def anchors(text):
    """The names of the headings, as the usual renderers make them."""
    names = set()
    for match in HEADING.finditer(COMMENT.sub(blank, FENCE.sub(blank, text))):
        title = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", match.group(1))
        name = re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-")
        number = 0
        while (unique := name if number == 0 else f"{name}-{number}") in names:
            number += 1
        names.add(unique)
    return names


def pages(project):
    for path in sorted(project.rglob("*.md")):
        parts = path.relative_to(project).parts
        if parts[0] in SKIPPED or any(part.startswith(".") for part in parts):
            continue
        yield path


def problems(project):
    project = project.resolve()
    for page in pages(project):
        text = page.read_text(encoding="utf-8")
        visible = prose(text)
        found = sorted([*INLINE.finditer(visible), *REFERENCE.finditer(visible)], key=lambda match: match.start())
        for match in found:
            link = match.group(1)
            if ELSEWHERE.match(link):
                continue
            where = f"{page.relative_to(project)}:{source.line_of(text, match.start(1))}"
            name, _, anchor = urllib.parse.unquote(link).partition("#")
            target = (page.parent / name).resolve() if name else page
            if not target.is_relative_to(project):
                yield f"{where}: {link} leads out of the project"
            elif not target.exists():
                yield f"{where}: {link} leads nowhere"
            elif anchor and target.suffix == ".md" and anchor not in anchors(target.read_text(encoding="utf-8")):
                yield f"{where}: {link} names no heading there"


if __name__ == "__main__":
    sys.exit(source.report(list(problems(pathlib.Path(sys.argv[1]))), "links in the documentation"))
