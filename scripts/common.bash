# Shared by the scripts; to be sourced. Puts the caller at the top of the project.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf '\n== %s\n' "$*"; }

# build <preset> [<argument of cmake --build>...]: configures and builds.
build() {
  local preset=$1
  shift
  say "build $preset"
  cmake --preset "$preset" --log-level=WARNING
  cmake --build --preset "$preset" "$@"
}
