#!/usr/bin/env bash
# Builds and runs the consumer with nothing but the compiler and pkg-config.
# Usage: pkg_config.sh <compiler> <directory of abxbus.pc> <work directory>
set -euo pipefail

compiler=$1
export PKG_CONFIG_PATH=$2
work=$3
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

mkdir -p "$work"
flags=$(pkg-config --cflags --libs abxbus)
echo "flags: $flags"
# shellcheck disable=SC2086  # the flags are a list of words
"$compiler" -std=c++20 "$here/main.cpp" -o "$work/demo" $flags
"$work/demo"
