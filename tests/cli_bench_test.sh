#!/bin/sh
# Which numbers `axle bench` gives to inputs. A program loops as often as an input has elements below another one, which is given, so
# the calls that the table counts tell how many these are.
#   AXLE=build/axle sh tests/cli_bench_test.sh
set -u

: "${AXLE:?the axle command}"
export AXLE_CODE_CACHE=off
case $AXLE in /*) ;; *) AXLE=$PWD/$AXLE ;; esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0

wrong() {
  echo "$*"
  cat out
  failed=$((failed + 1))
}

# count TYPE BOUND OPTION..: prints how many elements of x lie below BOUND. x: TYPE
count() {
  type=$1 bound=$2 length=${1#*\[}
  length=${length%\]}
  shift 2
  cat >count.axle <<END_OF_PROGRAM
{ lambda x:$type bound:$type u:f32[16,16]. let
    below:bool[$length] = lt x bound
    one:s32[$length] = convert_element_type[dtype=s32] below
    n:s32[] = reduce_sum[axes=(0)] one
    k:s32[] w:f32[16,16] = while[
      cond={ lambda n:s32[] i:s32[] v:f32[16,16]. let more:bool[] = lt i n in (more) } cond_nconsts=1
      body={ lambda i:s32[] v:f32[16,16]. let
          j:s32[] = add i 1:s32[]
          p:f32[16,16] = dot_general[lhs_contract=(1) rhs_contract=(0) lhs_batch=() rhs_batch=()] v v
        in (j, p) } body_nconsts=0
    ] n 0:s32[] u
  in (k, w) }
END_OF_PROGRAM
  "$AXLE" bench count.axle --runs 1 --in "bound=$bound:$type" --in 'u=0:f32[16,16]' "$@" >out 2>&1 || echo "exit $?" >>out
  awk '/^axle: error|^exit / { print "failed" } / product / { calls = $3 } END { print calls + 0 }' out
}

# between LEAST MOST TYPE BOUND OPTION..
between() {
  least=$1 most=$2
  shift 2
  found=$(count "$@")
  case $found in *failed*) found=-1 ;; esac
  [ "$found" -ge "$least" ] && [ "$found" -le "$most" ] || wrong "below the bound of '$*' are $found, not $least to $most"
}

# says PATTERN: what the last run said of its inputs.
says() { grep -q -- "^inputs: $1\$" out || wrong "the last run said nothing like: inputs: $1"; }

between 450 550 'f32[1000]' 0
says 'normal, seed 0; bound given; u given'
between 120 200 'f32[1000]' -1
between 120 200 'f16[1000]' -1
between 120 200 'f64[1000]' -1
between 200 300 'f32[1000]' -0.5 --inputs uniform
between 1000 1000 'f32[1000]' 1 --inputs uniform
says 'uniform, seed 0; .*'
between 450 550 'f32[1000]' -9e8 --inputs masked
between 0 0 'f32[1000]' -1.1e9 --inputs masked
between 450 550 'f16[1000]' -6e4 --inputs masked
between 450 550 'f32[1000]' -1e-45 --inputs vanishing --subnormals keep
between 530 590 'f32[1000]' 1e-39 --inputs vanishing --subnormals keep
between 20 80 'f64[1000]' -1e-30 --inputs vanishing
between 0 0 'f32[1000]' 1 --inputs ones
says 'ones; bound given; u given'
between 1000 1000 'f32[1000]' 1.001 --inputs ones
between 1000 1000 's32[1000]' 2 --inputs ones
between 870 930 'u8[1000]' 9
between 450 550 'bool[1000]' true
# An array of more than a million elements repeats itself up to its end.
between 0 0 'f32[1100000]' 1 --inputs ones

# The same seed gives the same numbers; inputs and seeds have numbers of their own.
first=$(count 'f32[1000]' -1 --seed 7)
says 'normal, seed 7; .*'
[ "$first" = "$(count 'f32[1000]' -1 --seed 7)" ] || wrong "two runs of one seed differ"
others=$(for seed in 8 9; do count 'f32[1000]' -1 --seed $seed; done | grep -cvx "$first")
[ "$others" -gt 0 ] || wrong "three seeds give the same numbers"

# limits PATTERN <PROGRAM: what integers lie below, so that what they index is there.
limits() {
  "$AXLE" bench - --runs 1 >out 2>&1
  says "normal, seed 0$1"
}
rows='gather[offset_dims=(1,) collapsed_slice_dims=(0,) start_index_map=(0,) operand_batching_dims=() start_indices_batching_dims=() mode="clip" indices_are_sorted=false unique_indices=false slice_sizes=(1, 4) fill_value=0.0:f32[]]'
put='scatter_add[update_window_dims=(1,) inserted_window_dims=(0,) scatter_dims_to_operand_dims=(0,) operand_batching_dims=() scatter_indices_batching_dims=() mode="fill" indices_are_sorted=false unique_indices=false]'
limits '; ids below 300; near below 127' <<END
{ lambda x:f32[300,4] ids:s32[40,1] near:s8[40,1] free:s32[40,1]. let
    same:s32[40,1] = max ids ids
    sum:s32[40,1] = add free free
    a:f32[40,4] = $rows x same
    b:f32[40,4] = $rows x near
  in (a, b, sum) }
END
limits '; ids below 50' <<END
{ lambda x:f32[50,4] ids:s32[40,1] u:f32[40,4]. let y:f32[50,4] = $put x ids u in (y) }
END
limits '; at below 294; to below 10' <<'END'
{ lambda x:f32[300,16] y:f32[300,7] at:s32[] to:s32[]. let
    a:f32[7,16] = dynamic_slice[slice_sizes=(7, 16)] x at 0:s32[]
    b:f32[300,16] = dynamic_update_slice x y 0:s32[] to
  in (a, b) }
END
# Through the carries and the items of a scan, and the index of a choice.
limits '; at below 294; ids below 8; n below 3' <<'END'
{ lambda x:f32[300] y:f32[8] at:s32[] ids:s32[5] n:s32[]. let
    c:s32[] d:s32[] sum:f32[] = scan[
      length=5 reverse=false num_consts=2 num_carry=3
      body={ lambda x:f32[300] y:f32[8] i:s32[] before:s32[] sum:f32[] id:s32[]. let
          a:f32[7] = dynamic_slice[slice_sizes=(7)] x before
          b:f32[1] = dynamic_slice[slice_sizes=(1)] y id
          s:f32[] = reduce_sum[axes=(0)] a
          t:f32[] = reduce_sum[axes=(0)] b
          u:f32[] = add s t
          v:f32[] = add u sum
          next:s32[] = add i 1:s32[]
        in (next, i, v) }
    ] x y at 0:s32[] 0.0:f32[] ids
    e:f32[] = cond[branches=({ lambda a:f32[]. let b:f32[] = neg a in (b) }, { lambda a:f32[]. let b:f32[] = exp a in (b) },
      { lambda a:f32[]. let b:f32[] = sin a in (b) })] n sum
  in (e) }
END
# A per-device program: the blocks that each device indexes.
limits '; i below 8' <<'END'
{ axes data=2 ; lambda x:f32[8]{V:data} i:s32[]{V:data}. let y:f32[1]{V:data} = dynamic_slice[slice_sizes=(1)] x i in (y) }
END

# refused PATTERN OPTION..
refused() {
  pattern=$1
  shift
  "$AXLE" bench count.axle "$@" >out 2>&1
  code=$?
  [ $code -eq 2 ] && grep -q -- "$pattern" out || wrong "$*: exit $code, not 2; or nothing like: $pattern"
}
refused 'error: --inputs: expected normal, uniform, ones, masked or vanishing, got "zeros"' --inputs zeros
refused 'error: --seed: not a seed, which is 0 or more: -1' --seed -1
refused 'error: --seed: not a seed, which is 0 or more: x' --seed x
refused 'error: --runs: not a number of runs: 0' --runs 0
refused 'error: --workers: not a number of threads: 5000' --workers 5000

[ $failed -eq 0 ]
