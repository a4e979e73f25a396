#!/bin/sh
# Golden files: a program, then sections of what the command makes of it.
#
#   >>> print                         axle show FILE
#   >>> jvp --wrt x                   axle show FILE --pass jvp --wrt x
#   >>> linearize,transpose           axle show FILE --pass linearize,transpose
#   >>> after fuse                    axle show FILE --after fuse
#   >>> run --in x=1.0:f32[2]         axle run FILE --in x=1.0:f32[2]
#
# What goes to stderr is part of it, and so is the exit code when it is not 0. AXLE_GOLDEN_UPDATE=1 writes the files anew.
# A program that says "(not hostile)" in its first two lines is left out where the command was built with AXLE_HOSTILE, which puts together whatever may be.
#   AXLE=build/axle sh tests/golden_test.sh [FILE...]
set -eu

: "${AXLE:?the axle command}"
export AXLE_CODE_CACHE=off
case $AXLE in /*) ;; *) AXLE=$PWD/$AXLE ;; esac
folder=$(dirname "$0")/golden
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The program is program.axle in every message.
section() {
  set -f
  name=$1
  shift
  case $name in
    print) set -- show program.axle "$@" ;;
    run) set -- run program.axle "$@" ;;
    after) set -- show program.axle --after "$@" ;;
    *) set -- show program.axle --pass "$name" "$@" ;;
  esac
  code=0
  (cd "$work" && "$AXLE" "$@") 2>&1 </dev/null || code=$?
  if [ $code -ne 0 ]; then echo "exit $code"; fi
}

regenerate() {
  awk '/^>>> /{exit} {print}' "$1" >"$work/program.axle"
  cat "$work/program.axle"
  grep '^>>> ' "$1" | while IFS= read -r header; do
    printf '%s\n' "$header"
    eval "section ${header#>>> }"
    echo
  done
}

is_hostile() { grep -q '^AXLE_HOSTILE:BOOL=ON' "$(dirname "$AXLE")/CMakeCache.txt" 2>/dev/null; }

[ $# -gt 0 ] || set -- "$folder"/*.axle
failed=0
for file; do
  if is_hostile && head -n 2 "$file" | grep -q '(not hostile)'; then continue; fi
  regenerate "$file" >"$work/fresh"
  if [ "${AXLE_GOLDEN_UPDATE:-}" = 1 ]; then
    cmp -s "$work/fresh" "$file" || { cp "$work/fresh" "$file"; echo "updated $file"; }
  elif ! diff -u "$file" "$work/fresh"; then
    failed=$((failed + 1))
  fi
done
echo "golden: $# files, $failed differ"
[ $failed -eq 0 ]
