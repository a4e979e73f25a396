#!/bin/sh
# A process that comes late to the start of a runtime is named, and so is one that has ended: late.sh LAUNCHER SHIM AXLE
set -eu
launcher=$1 shim=$2 axle=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export AXLE_WATCH_SECONDS=0.4

# late.sh's own process 1 waits until process 0 has been heard to speak of it, or ends.
cat >"$work/one" <<'END'
rank=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}
if [ "$rank" = 1 ]; then
  [ "$1" != ends ] || exit 0
  for try in $(seq 300); do
    grep -q "$2" "$3/said" && break
    sleep 0.1
  done
fi
exec "$4" devices --processes mpi
END

fail() {
  echo "late.sh: $1" >&2
  cat "$work/said" >&2
  exit 1
}

line="axle: process 0 waits in ax_runtime_create for process 1 of 2, which has not come (pid [0-9]*, s[a-z]*)"
timeout 60 sh tests/mpi/run.sh "$launcher" "$shim" 2 sh "$work/one" comes "$line" "$work" "$axle" >"$work/said" 2>&1 || fail "a late process"
grep -q "$line" "$work/said" || fail "a late process is not named"
grep -q "^processes  2" "$work/said" || fail "they have not come together"

# Open MPI's launcher ends all itself then; that of MPICH does not.
line="axle: process 0 waits in ax_runtime_create for process 1 of 2, which is not seen: it has ended, or hides its environment"
timeout 60 sh tests/mpi/run.sh "$launcher" "$shim" 2 sh "$work/one" ends "$line" "$work" "$axle" >"$work/said" 2>&1 &
for try in $(seq 300); do
  grep -q "$line" "$work/said" || ! kill -0 $! 2>/dev/null && break
  sleep 0.1
done
grep -q "$line" "$work/said" || grep -q "exiting without calling" "$work/said" || fail "a process that has ended is not named"
kill $! 2>/dev/null || true
wait $! || true
