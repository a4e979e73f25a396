#!/bin/sh
# Runs a program in several processes, as the launcher of one library of MPI wants it to be said: as root, and more than there are
# processors.
#   tests/mpi/run.sh LAUNCHER SHIM PROCESSES [--ended | --told | --left] PROGRAM [ARGUMENTS]
#
# SHIM any: whichever is found. Succeeds if all processes do. --ended: if they end, in whatever way, and the launcher says that one
# has failed. --told: if Open MPI's launcher leaves the others alone when one is killed, and they say that they were told
# (no part of the suite: the launcher itself does not always end then). --left: the launcher leaves the others alone, if it can, and
# its status is that of run.sh.
set -u

launcher=$1 AXLE_MPI=${2#any} processes=$3
shift 3
what=
case $1 in --*) what=$1; shift ;; esac
export AXLE_MPI

case $("$launcher" --version 2>&1) in
  *"Open MPI"* | *OpenRTE* | *prterun* | *PRRTE*)
    set -- -n "$processes" "$@"
    [ "$what" != --told ] || set -- --with-ft ulfm "$@"
    [ "$what" != --left ] || ! "$launcher" --version 2>&1 | grep -q ') 5' || set -- --with-ft ulfm "$@"
    set -- --allow-run-as-root --oversubscribe "$@"
    # Whatever MPI waits for by itself, in starting and ending, leaves the processors to others.
    export OMPI_MCA_mpi_yield_when_idle=1
    ;;
  *)
    set -- -n "$processes" "$@"
    [ "$what" != --left ] || set -- -disable-auto-cleanup "$@"
    ;;
esac

case $what in
  --told) "$launcher" "$@" | grep -x "the others were told"; exit ;;
  --ended) ;;
  *) exec "$launcher" "$@" ;;
esac
if "$launcher" "$@"; then
  echo "run.sh: a process was to fail, and the launcher says that none did" >&2
  exit 1
fi
