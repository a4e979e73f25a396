#!/bin/sh
# What process 0 of several prints is what one process prints, and the others print nothing. Each process runs this: as_one.sh AXLE
set -eu
axle=$1
one=$(mktemp) many=$(mktemp)
trap 'rm -f "$one" "$many"' EXIT
for program in psum:a=[1.5,2.5,3.5,4.5]:f32[4] ; do
  "$axle" run tests/mpi/${program%%:*}.axle --in "${program#*:}" --processes one > "$one"
  "$axle" run tests/mpi/${program%%:*}.axle --in "${program#*:}" --processes mpi > "$many"
  [ ! -s "$many" ] || cmp "$one" "$many"
done
