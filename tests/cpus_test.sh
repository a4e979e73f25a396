#!/bin/sh
# Results have the same bits however many processors and threads there are.
#   AXLE=build/axle sh tests/cpus_test.sh
set -u

: "${AXLE:?the axle command}"
case $AXLE in /*) ;; *) AXLE=$PWD/$AXLE ;; esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0

# program DTYPE: products and sums large enough to be cut, of numbers that round.
program() {
  cat <<END
{ lambda s:$1[]. let
    i:s32[300,300] = iota[dtype=s32 dimension=0 shape=(300, 300)]
    j:s32[300,300] = iota[dtype=s32 dimension=1 shape=(300, 300)]
    k:s32[300,300] = mul i j
    f:$1[300,300] = convert_element_type[dtype=$1] k
    b:$1[300,300] = broadcast_in_dim[shape=(300, 300) broadcast_dimensions=()] s
    x:$1[300,300] = mul f b
    y:$1[300,300] = tanh x
    z:$1[300,300] = dot_general[lhs_contract=(1,) rhs_contract=(0,) lhs_batch=() rhs_batch=()] y y
    t:$1[] = reduce_sum[axes=(0, 1)] z
  in (z, t) }
END
}

first=$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//') # of the processors we may use

for dtype in f32 f64; do
  program $dtype >program.axle
  "$AXLE" run program.axle --in "s=0.000017:$dtype[]" --out 0=z.npy --out 1=t.npy || failed=1
  for workers in 1 2 3; do
    for prefix in '' "taskset -c $first"; do
      # shellcheck disable=SC2086 # a list of words
      $prefix "$AXLE" run program.axle --workers $workers --in "s=0.000017:$dtype[]" --out 0=z1.npy --out 1=t1.npy || failed=1
      { cmp z.npy z1.npy && cmp t.npy t1.npy; } || { echo "$dtype with $workers workers and: $prefix"; failed=1; }
    done
  done
done
exit $failed
