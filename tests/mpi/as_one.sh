#!/bin/sh
# What process 0 of several prints is what one process prints, and the others print nothing. Each process runs this, once, since MPI is
# started once: as_one.sh AXLE PROGRAM
set -eu
axle=$1 program=$2
one=$(mktemp) many=$(mktemp)
trap 'rm -f "$one" "$many"' EXIT
case $program in
  psum) set -- --in 'a=[1.5,2.5,3.5,4.5]:f32[4]' ;;
  ragged)
    set -- --in 'a=[1,2,3,4,5,6,7,8,9,10,11,12]:f32[12]' --in 'i=[0,1,2,0,0,1,2,0,0,1,2,0,0,1,2,0]:s32[16]' \
      --in 's=[1,2,1,0,1,1,1,1,1,0,1,3,1,1,1,0]:s32[16]' --in 'o=[0,0,0,0,1,2,1,0,2,3,2,1,3,3,3,4]:s32[16]' \
      --in 'r=[1,1,1,1,2,1,0,1,1,1,1,1,0,1,3,0]:s32[16]'
    ;;
  ring) set -- --in 'a=0.1:f32[12288]' ;;
esac
"$axle" run "tests/mpi/$program.axle" "$@" --processes one > "$one"
"$axle" run "tests/mpi/$program.axle" "$@" --processes mpi > "$many"
[ ! -s "$many" ] || cmp "$one" "$many"
