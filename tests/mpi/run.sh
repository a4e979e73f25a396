#!/bin/sh
# Runs a program in several processes, as the launcher of one library of MPI wants it to be said: as root, and more than there are
# processors.
#   tests/mpi/run.sh LAUNCHER SHIM PROCESSES [--ended] PROGRAM [ARGUMENTS]
#
# SHIM any: whichever is found. Succeeds if all processes do. --ended: if they end, in whatever way, and the launcher says that one
# has failed.
set -u

launcher=$1 AXLE_MPI=${2#any} processes=$3
shift 3
ended=
[ "$1" != --ended ] || { ended=yes; shift; }
export AXLE_MPI

case $("$launcher" --version 2>&1) in
  *"Open MPI"* | *OpenRTE* | *prterun* | *PRRTE*)
    set -- --allow-run-as-root --oversubscribe -n "$processes" "$@"
    # Whatever MPI waits for by itself, in starting and ending, leaves the processors to others.
    export OMPI_MCA_mpi_yield_when_idle=1
    ;;
  *) set -- -n "$processes" "$@" ;;
esac

[ -n "$ended" ] || exec "$launcher" "$@"
if "$launcher" "$@"; then
  echo "run.sh: a process was to fail, and the launcher says that none did" >&2
  exit 1
fi
