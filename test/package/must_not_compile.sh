#!/usr/bin/env bash
# Compiles every file of must_not_compile/. The compiler must refuse each one, with a message that contains the text
# of the file's line "// expect: <text>"; so a wrong use is answered with words that help. The file whose text is
# "success" must compile: it shows that the others fail for their own reason.
# Usage: must_not_compile.sh <compiler> [<flag>...]
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
compile=("$@" -std=c++20 -fsyntax-only)
failures=0

fail() {
  echo "FAILED $1: $2"
  failures=$((failures + 1))
}

for file in "$here"/must_not_compile/*.cpp; do
  name=$(basename "$file")
  expected=$(sed -n 's|^// expect: ||p' "$file")
  if [ -z "$expected" ]; then
    fail "$name" 'it has no line "// expect: <text>"'
    continue
  fi
  if message=$("${compile[@]}" "$file" 2>&1); then compiles=yes; else compiles=no; fi
  if [ "$expected" = success ]; then
    if [ $compiles = yes ]; then echo "ok     $name compiles"; else fail "$name" "it must compile"$'\n'"$message"; fi
  elif [ $compiles = yes ]; then
    fail "$name" "it compiles"
  elif ! grep -qF -- "$expected" <<<"$message"; then
    fail "$name" "the message does not contain \"$expected\""$'\n'"$(head -n 20 <<<"$message")"
  else
    echo "ok     $name: $expected"
  fi
done
exit $((failures > 0))
