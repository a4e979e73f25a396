#!/bin/sh
# What a program prints in each of several processes is what it prints in one. Each process runs this: same.sh PROGRAM [ARGUMENTS]
set -eu
one=$(mktemp) many=$(mktemp)
trap 'rm -f "$one" "$many"' EXIT
AXLE_PROCESSES=one "$@" > "$one"
AXLE_PROCESSES=mpi "$@" > "$many"
[ -s "$many" ] && cmp "$one" "$many"
