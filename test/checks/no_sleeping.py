#!/usr/bin/env python3
"""Library code never sleeps: it waits for something, with a deadline.

Only calls of the platform's sleeping functions count: this_handler::sleep_for, a user's own wish, waits on the clock.

Usage: no_sleeping.py <folder>...
"""

import re
import sys

import source

SLEEP = re.compile(
    r"\bthis_thread\s*::\s*sleep_(for|until)\b|\busing\s+(namespace\s+)?std\s*::\s*this_thread\b"
    r"|\b(sleep|usleep|nanosleep|clock_nanosleep|thrd_sleep)\s*\("
)


def problems(roots):
    for path in source.files(roots):
        text = path.read_text(encoding="utf-8")
        for number, line in enumerate(source.code(text).splitlines(), 1):
            if SLEEP.search(line):
                yield f"{path}:{number}: {line.strip()}"


if __name__ == "__main__":
    sys.exit(source.report(list(problems(sys.argv[1:])), "sleeping in library code"))
