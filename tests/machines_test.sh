#!/bin/sh
# Results have the same bits whatever caches and speeds programs are compiled for, though plans differ.
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
# A machine with two kinds of cores, as each kind would be alone, and as both are together.
printf 'l1 48 KiB\nl2 2 MiB\nl3 36 MiB\nl3_cores 24\nthreads 2\n' >performance
printf 'l1 32 KiB\nl2 4 MiB\nl2_cores 4\nl3 36 MiB\nl3_cores 24\n' >efficiency
printf 'l1 32 KiB\nl2 4 MiB\nl2_cores 4\nl3 36 MiB\nl3_cores 24\nthreads 2\n' >both
# Speeds alone: slow cores that exchange lines fast, so that all is cut, and the other way round, so that nothing is.
printf 'exchange 10 ns\nf32 4 Gflop/s\nf64 2 Gflop/s\nbf16 1 Gflop/s\ns8 1 Gflop/s\nread 1 GB/s\nl2_read 4 GB/s\n' >slow
printf 'exchange 5000 ns\nf32 4000 Gflop/s\nf64 4000 Gflop/s\nread 900 GB/s\nl2_read 4000 GB/s\n' >fast
machines='reference zen-4 sapphire-rapids cortex-a72 tiny shared huge performance efficiency both slow fast'

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

# numbers ELEMS: equations of `x`, so many f32 that round.
numbers() {
  cat <<END
    i:s32[$1] = iota[dtype=s32 dimension=0 shape=($1,)]
    f:f32[$1] = convert_element_type[dtype=f32] i
    b:f32[$1] = broadcast_in_dim[shape=($1,) broadcast_dimensions=()] s
    p:f32[$1] = mul f b
    x:f32[$1] = sin p
END
}

# Products: few rows and few columns, factors that lie transposed, batches, long sums, and each dtype that has kernels.
cat >products.axle <<END
{ lambda s:f32[]. let
$(numbers 150000)
    a:f32[300,500] = reshape[new_sizes=(300, 500)] x
    c:f32[300,300] = dot_general[lhs_contract=(1,) rhs_contract=(1,) lhs_batch=() rhs_batch=()] a a
    d:f32[500,500] = dot_general[lhs_contract=(0,) rhs_contract=(0,) lhs_batch=() rhs_batch=()] a a
    r:f32[7,500] = slice[start_indices=(0, 0) limit_indices=(7, 500) strides=(1, 1)] a
    e:f32[7,500] = dot_general[lhs_contract=(1,) rhs_contract=(0,) lhs_batch=() rhs_batch=()] r d
    n:f32[500,7] = transpose[permutation=(1, 0)] r
    g:f32[500,7] = dot_general[lhs_contract=(1,) rhs_contract=(0,) lhs_batch=() rhs_batch=()] d n
    q:f32[30,10,500] = reshape[new_sizes=(30, 10, 500)] x
    h:f32[30,10,10] = dot_general[lhs_contract=(2,) rhs_contract=(2,) lhs_batch=(0,) rhs_batch=(0,)] q q
    t:f32[1,150000] = reshape[new_sizes=(1, 150000)] x
    l:f32[1,1] = dot_general[lhs_contract=(1,) rhs_contract=(1,) lhs_batch=() rhs_batch=()] t t
    ad:f64[300,500] = convert_element_type[dtype=f64] a
    cd:f64[300,300] = dot_general[lhs_contract=(1,) rhs_contract=(1,) lhs_batch=() rhs_batch=()] ad ad
    ah:bf16[300,500] = convert_element_type[dtype=bf16] a
    ch:bf16[300,300] = dot_general[lhs_contract=(1,) rhs_contract=(1,) lhs_batch=() rhs_batch=()] ah ah
    ag:f16[300,500] = convert_element_type[dtype=f16] a
    cg:f16[500,500] = dot_general[lhs_contract=(0,) rhs_contract=(0,) lhs_batch=() rhs_batch=()] ag ag
    is:s8[150000] = convert_element_type[dtype=s8] i
    as:s8[300,500] = reshape[new_sizes=(300, 500)] is
    cs:s8[300,300] = dot_general[lhs_contract=(1,) rhs_contract=(1,) lhs_batch=() rhs_batch=()] as as
  in (c, d, e, g, h, l, cd, ch, cg, cs) }
END

# Arrays turned: squares of powers of two, short rows, three dimensions, bytes, and arithmetic on the way.
cat >transposes.axle <<END
{ lambda s:f32[]. let
$(numbers 1048576)
    c:f32[1024,1024] = reshape[new_sizes=(1024, 1024)] x
    d:f32[1024,1024] = transpose[permutation=(1, 0)] c
    e:f32[1024,1024] = add c d
    h:f32[1048575] = slice[start_indices=(0,) limit_indices=(1048575,) strides=(1,)] x
    g:f32[349525,3] = reshape[new_sizes=(349525, 3)] h
    j:f32[3,349525] = transpose[permutation=(1, 0)] g
    k:f32[64,128,128] = reshape[new_sizes=(64, 128, 128)] x
    l:f32[128,64,128] = transpose[permutation=(1, 0, 2)] k
    m:f32[128,128,64] = transpose[permutation=(2, 1, 0)] k
    o:f32[128,128,64] = tanh m
    u:s8[1048576] = convert_element_type[dtype=s8] i
    v:s8[1024,1024] = reshape[new_sizes=(1024, 1024)] u
    w:s8[1024,1024] = transpose[permutation=(1, 0)] v
  in (d, e, j, l, o, w) }
END

# Rows that kernels and products go over together: normalised, multiplied, activated, multiplied, a softmax of it.
cat >rows.axle <<END
{ lambda s:f32[]. let
$(numbers 262144)
    a:f32[1024,256] = reshape[new_sizes=(1024, 256)] x
    m:f32[1024] = reduce_sum[axes=(1)] a
    n:f32[1024,256] = broadcast_in_dim[shape=(1024, 256) broadcast_dimensions=(0)] m
    o:f32[1024,256] = sub a n
    q:f32[1024,256] = mul o o
    r:f32[1024] = reduce_sum[axes=(1)] q
    t:f32[1024] = rsqrt r
    u:f32[1024,256] = broadcast_in_dim[shape=(1024, 256) broadcast_dimensions=(0)] t
    v:f32[1024,256] = mul o u
    w1:f32[256,256] = slice[start_indices=(0, 0) limit_indices=(256, 256) strides=(1, 1)] a
    w2:f32[256,256] = slice[start_indices=(256, 0) limit_indices=(512, 256) strides=(1, 1)] a
    h:f32[1024,256] = dot_general[lhs_contract=(1,) rhs_contract=(0,) lhs_batch=() rhs_batch=()] v w1
    g:f32[1024,256] = tanh h
    y:f32[1024,256] = dot_general[lhs_contract=(1,) rhs_contract=(0,) lhs_batch=() rhs_batch=()] g w2
    z:f32[1024] = reduce_max[axes=(1)] y
    zb:f32[1024,256] = broadcast_in_dim[shape=(1024, 256) broadcast_dimensions=(0)] z
    c:f32[1024,256] = sub y zb
    d:f32[1024,256] = exp c
    e:f32[1024] = reduce_sum[axes=(1)] d
    eb:f32[1024,256] = broadcast_in_dim[shape=(1024, 256) broadcast_dimensions=(0)] e
    l:f32[1024,256] = div d eb
  in (v, y, l, e) }
END

# Exchanges between devices that hold different values, of long pieces and of short ones.
cat >exchanges.axle <<END
{ axes d=8 e=2 ; lambda s:f32[]. let
$(numbers 16384)
    k:s32[]{V:d,e} = axis_index[axes=(d, e)]
    kf:f32[]{V:d,e} = convert_element_type[dtype=f32] k
    kb:f32[16384]{V:d,e} = broadcast_in_dim[shape=(16384,) broadcast_dimensions=()] kf
    xv:f32[16384]{V:d,e} = pvary[axes=(d, e)] x
    y:f32[16384]{V:d,e} = add xv kb
    a:f32[128,128]{V:d,e} = reshape[new_sizes=(128, 128)] y
    sum:f32[128,128] = psum[axes=(d, e)] a
    part:f32[16,128]{V:d,e} = psum_scatter[axes=(d,) dimension=0] a
    short:f32[128,16]{V:d,e} = psum_scatter[axes=(d,) dimension=1] a
    traded:f32[16,1024]{V:d,e} = all_to_all[axes=(d,) split_axis=0 concat_axis=1] a
    dealt:f32[1024,16]{V:d,e} = all_to_all[axes=(d,) split_axis=1 concat_axis=0] a
    most:f32[128,128]{V:d} = pmax[axes=(e,)] a
    all:f32[128,1024]{V:d,e} = all_gather[axes=(d,) dimension=1] a
    moved:f32[128,128]{V:d,e} = ppermute[axes=(d, e) pairs=((0, 1), (1, 2), (2, 3), (3, 15))] a
  in (sum, part, short, traded, dealt, most, all, moved) }
END

# Steps of training: a network's loss falls by its gradient, on data that is cut over devices.
cat >training.axle <<END
{ axes d=4 ; lambda s:f32[]. let
$(numbers 65536)
    k:s32[]{V:d} = axis_index[axes=(d,)]
    kf:f32[]{V:d} = convert_element_type[dtype=f32] k
    kb:f32[65536]{V:d} = broadcast_in_dim[shape=(65536,) broadcast_dimensions=()] kf
    xv:f32[65536]{V:d} = pvary[axes=(d,)] x
    xk:f32[65536]{V:d} = add xv kb
    data:f32[512,128]{V:d} = reshape[new_sizes=(512, 128)] xk
    all:f32[512,128] = reshape[new_sizes=(512, 128)] x
    w1:f32[128,128] = slice[start_indices=(0, 0) limit_indices=(128, 128) strides=(1, 1)] all
    w2:f32[128,128] = slice[start_indices=(128, 0) limit_indices=(256, 128) strides=(1, 1)] all
    v1:f32[128,128] v2:f32[128,128] = scan[length=3 reverse=false num_carry=2 num_consts=1 body={ lambda x:f32[512,128]{V:d} a:f32[128,128] b:f32[128,128]. let
        av:f32[128,128]{V:d} = pvary[axes=(d,)] a
        bv:f32[128,128]{V:d} = pvary[axes=(d,)] b
        h:f32[512,128]{V:d} = dot_general[lhs_contract=(1,) rhs_contract=(0,) lhs_batch=() rhs_batch=()] x av
        t:f32[512,128]{V:d} = tanh h
        y:f32[512,128]{V:d} = dot_general[lhs_contract=(1,) rhs_contract=(0,) lhs_batch=() rhs_batch=()] t bv
        e:f32[512,128]{V:d} = sub y x
        gb:f32[128,128]{V:d} = dot_general[lhs_contract=(0,) rhs_contract=(0,) lhs_batch=() rhs_batch=()] t e
        gt:f32[512,128]{V:d} = dot_general[lhs_contract=(1,) rhs_contract=(1,) lhs_batch=() rhs_batch=()] e bv
        tt:f32[512,128]{V:d} = mul t t
        p:f32[512,128]{V:d} = mul gt tt
        gh:f32[512,128]{V:d} = sub gt p
        ga:f32[128,128]{V:d} = dot_general[lhs_contract=(0,) rhs_contract=(0,) lhs_batch=() rhs_batch=()] x gh
        sa:f32[128,128] = psum[axes=(d,)] ga
        sb:f32[128,128] = psum[axes=(d,)] gb
        r:f32[128,128] = broadcast_in_dim[shape=(128, 128) broadcast_dimensions=()] 1e-05:f32[]
        da:f32[128,128] = mul r sa
        db:f32[128,128] = mul r sb
        na:f32[128,128] = sub a da
        nb:f32[128,128] = sub b db
      in (na, nb) }] data w1 w2
  in (v1, v2) }
END

for name in program large products transposes rows exchanges training; do
  results=$(sed -n 's/^  in (\(.*\)) }$/\1/p' $name.axle | tr -d ' ' | tr , '\n' | wc -l)
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
parts() { AXLE_MACHINE=$1 "$AXLE" show program.axle --after codegen | awk '/ in [0-9]+ parts/ { sub(/.* in /, ""); all += $1 } END { print all + 0 }'; }
slow=$(parts slow) reference=$(parts reference) fast=$(parts fast)
[ "$slow" -gt "$reference" ] && [ "$reference" -gt "$fast" ] || { echo "parts: $slow, $reference, $fast"; failed=1; }
exit $failed
