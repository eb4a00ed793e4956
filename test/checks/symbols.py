#!/usr/bin/env python3
"""What the static library puts into a user's program: names of abxbus, and no allocator functions.

A strong definition (T, D, B, R ...) would clash with a user's own, so each must lie in namespace abxbus. Weak ones
(W, V, u) are also what the compiler makes of templates and inline functions of others, merged by the linker with the
user's own copies: those of the standard library and of the libraries we are built on are allowed.
With --hidden: what a shared library that contains abxbus shows to the outside. Nothing of it may be ours.
Usage: symbols.py [--hidden] <nm> <library>
"""

import re
import subprocess
import sys

import source

ALLOCATOR = re.compile(
    r"^(malloc|calloc|realloc|reallocarray|free|cfree|memalign|aligned_alloc|posix_memalign|valloc|pvalloc"
    r"|malloc_usable_size|strdup|strndup|mi_\w+|_Zn[wa]\w*|_Zd[la]\w*)$"
)
OTHERS = {"std", "__gnu_cxx", "__cxxabiv1", "boost", "tbb", "oneapi", "moodycamel", "fmt"}
# Mangled names: prefixes of what belongs to an entity (vtable, typeinfo, guard, thunk, thread_local wrapper), of an
# entity local to a function, of nested names and their qualifiers; then the outermost namespace.
PREFIX = re.compile(r"^_Z(?:TV|TI|TS|TT|TC|TW|TH|GV|GR|GTt|Th-?n?\d+_|Tv-?n?\d+_n?\d+_|Tc(?:h-?n?\d+_|v-?n?\d+_n?\d+_){2}|Z)*")
# What the compiler emits for its own use: the personality pointer, the pointer of a static's typeinfo.
COMPILER = re.compile(r"^(DW\.ref\.|__clang_call_terminate$)")


def outermost(symbol):
    """The outermost namespace of a mangled C++ name, None for a name that has none."""
    match = PREFIX.match(symbol)
    if not match:
        return None
    rest = symbol[match.end():]
    if match.group().endswith(("TI", "TS")):
        rest = rest.lstrip("PRKOV")  # typeinfo of a pointer or reference to something
    if rest.startswith("N"):
        rest = re.sub(r"^N[rVK]*[RO]?", "", rest)
        scoped = True
    else:
        scoped = False
    if re.match(r"S[tabsiod]", rest):
        return "std"
    length = re.match(r"\d+", rest)
    if not length:
        return None
    start = length.end()
    name = rest[start:start + int(length.group())]
    # A typeinfo or a local entity may name a nested scope again.
    return name if scoped else None


def problem(kind, symbol):
    """Why the library must not define this symbol, None when it may."""
    if ALLOCATOR.match(symbol):
        return "an allocator function"
    namespace = outermost(symbol)
    if namespace == "abxbus" or COMPILER.match(symbol):
        return None
    if kind in "WVuwv" and namespace in OTHERS:
        return None
    return "outside namespace abxbus"


def defined(nm, library, *options):
    """Kind and name of every external definition."""
    listing = subprocess.run(
        [nm, "--defined-only", "--extern-only", "--format=posix", *options, library],
        check=True, capture_output=True, text=True,
    ).stdout
    lines = (line.split() for line in listing.splitlines())
    return {(words[1], words[0]) for words in lines if len(words) >= 3}


def problems(nm, library):
    names = defined(nm, library)
    for kind, symbol in sorted(names):
        if reason := problem(kind, symbol):
            yield f"{kind} {symbol}: {reason}"
    if not names:
        yield f"{library} defines nothing at all"


def visible(nm, library):
    for kind, symbol in sorted(defined(nm, library, "--dynamic")):
        if outermost(symbol) == "abxbus":
            yield f"{kind} {symbol}: visible from outside"


if __name__ == "__main__":
    if sys.argv[1] == "--hidden":
        sys.exit(source.report(list(visible(*sys.argv[2:4])), "names of abxbus that a shared library shows"))
    sys.exit(source.report(list(problems(*sys.argv[1:3])), "names that the library defines"))
