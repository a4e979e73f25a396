#!/bin/sh
# Every case of bench/ops.txt can be traced, so that a change of the library which the bench does not follow is seen without `make bench`.
#   AXLE_BUILD=build sh tests/bench_test.sh
set -u

ours=${AXLE_BUILD:?the build folder}/bench/ours
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n 's/^[^#|]*| *//p' bench/ops.txt >"$folder/cases"
[ -s "$folder/cases" ] || { echo "bench/ops.txt has no cases"; exit 1; }
"$ours" ops_traced <"$folder/cases" >"$folder/traced" || { echo "this case cannot be traced: $(tail -n 1 "$folder/traced")"; exit 1; }
cmp "$folder/cases" "$folder/traced" || exit 1

# Without a library of MPI, the races over processes are left out, and bench/run says so.
command -v python3 >/dev/null || exit 0
AXLE_BUILD=$folder env -u AXLE_JAX_PYTHON python3 bench/run --only b26,b27,b28 >"$folder/shown" || { cat "$folder/shown"; exit 1; }
grep -q '^note: b26 to b28 were left out' "$folder/shown" || { echo "bench/run does not say what it leaves out:"; cat "$folder/shown"; exit 1; }
