#!/usr/bin/env python3
"""Every C++ file is as clang-format leaves it. `format.py --fix <clang-format> <project>` formats them.

Usage: format.py [--fix] <clang-format> <project>
"""

import pathlib
import subprocess
import sys

import source

FOLDERS = ("include", "lib", "test", "perf", "examples")

if __name__ == "__main__":
    arguments = sys.argv[1:]
    fix = arguments[:1] == ["--fix"]
    clang_format, project = arguments[1:] if fix else arguments
    paths = [str(path) for path in source.files(pathlib.Path(project) / folder for folder in FOLDERS)]
    mode = ["-i"] if fix else ["--dry-run", "-Werror", "--ferror-limit=3"]
    sys.exit(subprocess.run([clang_format, "--style=file", *mode, *paths]).returncode)
