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

# Some of them are simulated: each takes some time.
awk 'NR % 20 == 1' "$folder/cases" >"$folder/some"
printf 'machine m device flops f32 1e11 memory 1e10 cache 1e6 1e11 core 1 launch 1e-6 switch bandwidth 1e9\n' >"$folder/core"
for machine in tpu-v5p "$folder/core"; do
  "$ours" ops_simulated "$machine" <"$folder/some" >"$folder/seconds" || { echo "a case cannot be simulated on $machine"; exit 1; }
  tr -s ' ' '\n' <"$folder/seconds" | awk -v cases="$(wc -l <"$folder/some")" '
    NF > 0 && !($1 > 0) { print "simulated seconds: " $1; wrong = 1 }
    NF > 0 { answers++ }
    END { if (answers != cases) print answers " answers of " cases " cases"; exit wrong || answers != cases }' || exit 1
done

# Without a library of MPI, the races over processes are left out, and bench/run says so.
command -v python3 >/dev/null || exit 0
AXLE_BUILD=$folder env -u AXLE_JAX_PYTHON python3 bench/run --only b26,b27,b28 >"$folder/shown" || { cat "$folder/shown"; exit 1; }
grep -q '^note: b26 to b28 were left out' "$folder/shown" || { echo "bench/run does not say what it leaves out:"; cat "$folder/shown"; exit 1; }
