#!/bin/sh
# Installs BUILD under a fresh prefix, then builds and runs outside.c and outside.cc against what was installed, as a user would.
#   examples/outside/test.sh BUILD
set -eu

build=$1
source=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cmake --install "$build" --prefix "$work/prefix" >/dev/null
cd "$work"
PKG_CONFIG_PATH=$(dirname "$(find "$work/prefix" -name axle.pc)")
export PKG_CONFIG_PATH
# shellcheck disable=SC2046 # a list of flags
"${CC:-cc}" -std=c17 -Wall -Wextra -Wpedantic -Werror "$source/outside.c" -o outside $(pkg-config --cflags --libs axle)

said=$(./outside data=4,model=2)
[ "$said" = "8 devices" ] || { echo "expected: 8 devices; got: $said" >&2; exit 1; }

# shellcheck disable=SC2046
"${CXX:-c++}" -std=c++17 -Wall -Wextra -Wpedantic -Werror "$source/outside.cc" -o outside_cc $(pkg-config --cflags --libs axle)
said=$(./outside_cc)
[ "$said" = "3" ] || { echo "expected: 3; got: $said" >&2; exit 1; }

# What users read comes with it.
for file in share/man/man1/axle.1 share/doc/axle/text.md share/doc/axle/reference/ops.md share/doc/axle/examples/tutorial/1_mesh.c; do
  [ -s "$work/prefix/$file" ] || { echo "not installed: $file" >&2; exit 1; }
done

# Their links lead to what comes with them; pages about the house are in the sources alone.
cd "$work/prefix/share/doc/axle"
awk -f "$source/../../tests/docs_links.awk" ./*.md reference/*.md examples/README.md examples/jax/README.md >"$work/links"
[ "$(wc -l <"$work/links")" -gt 1000 ] || { echo "the installed pages have no links" >&2; exit 1; }
dead=$(cut -sf1,3 "$work/links" | sort -u | while read -r page file; do
  case $file in */design.md | */passes.md | */performance.md | design.md | passes.md | performance.md) continue ;; esac
  [ -e "$file" ] || echo "$page: $file"
done)
[ -z "$dead" ] || { echo "installed pages link to what is not there: $dead" >&2; exit 1; }
