#!/bin/sh
# Results have the same bits whatever caches programs are compiled for, though plans differ.
#   AXLE=build/axle sh tests/machines_test.sh
set -u

: "${AXLE:?the axle command}"
case $AXLE in /*) ;; *) AXLE=$PWD/$AXLE ;; esac
export AXLE_CODE_CACHE=off
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0

# The smallest caches and the largest that a text may give, and some between.
printf 'l1 4096 B\nl2 16 KiB\nl3 0 B\n' >tiny
printf 'l1 16 KiB\nl2 1 MiB\nl2_cores 4\nl3 0 B\n' >shared
printf 'l1 1 MiB\nl2 1 GiB\nl3 1024 GiB\nl3_cores 1024\n' >huge
machines='reference zen-4 sapphire-rapids cortex-a72 tiny shared huge'

# Of numbers that round: sums of all kinds and lengths, rows that are normalised, products of all forms, transposes, updates.
cat >program.axle <<'END'
{ lambda s:f32[]. let
    i:s32[1200,900] = iota[dtype=s32 dimension=0 shape=(1200, 900)]
    j:s32[1200,900] = iota[dtype=s32 dimension=1 shape=(1200, 900)]
    k:s32[1200,900] = mul i j
    f:f32[1200,900] = convert_element_type[dtype=f32] k
    b:f32[1200,900] = broadcast_in_dim[shape=(1200, 900) broadcast_dimensions=()] s
    x:f32[1200,900] = mul f b
    y:f32[1200,900] = tanh x
    h:bf16[1200,900] = convert_element_type[dtype=bf16] y
    t:f32[900,1200] = transpose[permutation=(1, 0)] y
    u:f32[900,1200] = mul t t
    a:f32[] = reduce_sum[axes=(0, 1)] y
    c:f32[900] = reduce_sum[axes=(0)] y
    d:f32[1200] = reduce_sum[axes=(1)] x
    e:f32[900] = reduce_sum[axes=(1)] u
    g:bf16[900] = reduce_sum[axes=(0)] h
    m:f32[1200] = reduce_max[axes=(1)] y
    n:f32[1200,900] = broadcast_in_dim[shape=(1200, 900) broadcast_dimensions=(0)] m
    o:f32[1200,900] = sub y n
    p:f32[1200,900] = exp o
    q:f32[1200] = reduce_sum[axes=(1)] p
    r:f32[1200,900] = broadcast_in_dim[shape=(1200, 900) broadcast_dimensions=(0)] q
    v:f32[1200,900] = div p r
    w:f32[1200,1200] = dot_general[lhs_contract=(1,) rhs_contract=(0,) lhs_batch=() rhs_batch=()] v u
    z:f32[900,900] = dot_general[lhs_contract=(0,) rhs_contract=(0,) lhs_batch=() rhs_batch=()] y p
    l:f32[1200] = reduce_sum[axes=(1)] w
  in (a, c, d, e, g, q, v, w, z, l) }
END

# A few million numbers: reductions in blocks, results stored past the caches, factors that lie in memory.
cat >large.axle <<'END'
{ lambda s:f32[]. let
    i:s32[12000000] = iota[dtype=s32 dimension=0 shape=(12000000,)]
    f:f32[12000000] = convert_element_type[dtype=f32] i
    b:f32[12000000] = broadcast_in_dim[shape=(12000000,) broadcast_dimensions=()] s
    x:f32[12000000] = mul f b
    y:f32[12000000] = sin x
    a:f32[] = reduce_sum[axes=(0)] y
    r:f32[3000,4000] = reshape[new_sizes=(3000, 4000)] y
    c:f32[4000] = reduce_sum[axes=(0)] r
    d:f32[3000] = reduce_sum[axes=(1)] r
    q:f32[6,2000000] = reshape[new_sizes=(6, 2000000)] y
    e:f32[6] = reduce_sum[axes=(1)] q
    t:f32[4000,3000] = transpose[permutation=(1, 0)] r
    g:f32[8,3000] = slice[start_indices=(0, 0) limit_indices=(8, 3000) strides=(1, 1)] t
    w:f32[8,4000] = dot_general[lhs_contract=(1,) rhs_contract=(0,) lhs_batch=() rhs_batch=()] g r
  in (a, c, d, e, t, w) }
END

for name in program large; do
  results=$(sed -n 's/^ *in (\(.*\)) }$/\1/p' $name.axle | tr -d ' ' | tr , '\n' | wc -l)
  for machine in $machines; do
    mkdir -p $name-$machine
    outputs=$(seq 0 $((results - 1)) | sed "s|.*|--out &=$name-$machine/&.npy|")
    # shellcheck disable=SC2086 # a list of words
    AXLE_MACHINE=$machine "$AXLE" run $name.axle --in 's=0.000017:f32[]' $outputs || failed=1
    for result in $name-reference/*; do
      cmp "$result" "$name-$machine/${result#*/}" || { echo "$name: as on $machine"; failed=1; }
    done
  done
done

# Otherwise nothing is shown: the same results of the same plans. A command built with AXLE_HOSTILE cuts everything as small as may be, whatever the caches.
grep -q '^AXLE_HOSTILE:BOOL=ON' "$(dirname "$AXLE")/CMakeCache.txt" 2>/dev/null && exit $failed
plans=$(for machine in $machines; do AXLE_MACHINE=$machine "$AXLE" show program.axle --after stream | cksum; done | sort -u | wc -l)
[ "$plans" -ge 3 ] || { echo "$plans plans on all machines"; failed=1; }
exit $failed
