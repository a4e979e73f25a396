#!/bin/sh
# Programs written by hand with MPI and the same as programs of Axle (bench/peers/by_hand.c) have the same bits in so many processes.
#   tests/mpi/by_hand.sh LAUNCHER SHIM PROCESSES PROGRAM
set -eu
lines=$(mktemp)
trap 'rm -f "$lines"' EXIT
sh tests/mpi/run.sh "$1" "$2" "$3" "$4" --once > "$lines"
awk -F '\t' '
  $2 == "Axle" { bits[$1] = $4; ours++ }
  $2 == "C" { by_hand++; if ($4 == "" || $4 == 0 || bits[$1] != $4) { print "not the same bits: " $1; failed = 1 } }
  END { if (ours != 7 || by_hand != 7) { print "7 programs were to run on each side, not " ours + 0 " and " by_hand + 0; failed = 1 } exit failed }' "$lines"
