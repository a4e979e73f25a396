#!/bin/sh
# What process 0 of several prints is what one process prints, and the others print nothing. Each process runs this, once, since Open MPI
# starts a process but once: as_one.sh AXLE PROGRAM INPUT, with PROGRAM.axle in this folder
set -eu
axle=$1 program=$2 input=$3
one=$(mktemp) many=$(mktemp)
trap 'rm -f "$one" "$many"' EXIT
"$axle" run tests/mpi/"$program".axle --in "$input" --processes one > "$one"
"$axle" run tests/mpi/"$program".axle --in "$input" --processes mpi > "$many"
[ ! -s "$many" ] || cmp "$one" "$many"
