#!/bin/sh
# The command itself: files in and out, exit codes, help. What it makes of programs is in the golden files.
#   AXLE=build/axle sh tests/cli_test.sh
set -u

: "${AXLE:?the axle command}"
export AXLE_CODE_CACHE=off
case $AXLE in /*) ;; *) AXLE=$PWD/$AXLE ;; esac
primitives=$(sed -n 's/^AX_PRIM(\(.*\))$/\1/p' src/prim/prims.def)
source=$PWD work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0
settings= # of the environment, for the next commands

# expect CODE PATTERN ARGUMENT...: the exit code, and that a line of the output matches.
expect() {
  wanted=$1 pattern=$2
  shift 2
  env $settings "$AXLE" "$@" >out 2>&1 <input
  code=$?
  if [ $code -ne "$wanted" ] || { [ -n "$pattern" ] && ! grep -q -- "$pattern" out; }; then
    echo "axle $*: exit $code, not $wanted; or no line with: $pattern"
    cat out
    failed=$((failed + 1))
  fi
}

cat >double.axle <<'END'
{ lambda x:f32[2,3] k:s32[]. let
    y:f32[2,3] = add x x
    n:s32[] = neg k
  in (y, n, 1.5:f32[]) }
END
cat >whole.axle <<'END'
{ axes data=2 ; lambda x:f32[2]{V:data}. let
    y:f32[2] = psum[axes=(data)] x
  in (y) }
END
cat >log.axle <<'END'
{ lambda x:f32[2]. let y:f32[2] = log x in (y) }
END
: >input

# Files, in each direction; inputs and results by name, number and letter.
expect 0 '' run double.axle --in 'x=[[1, 2, 3], [4, 5, 6]]:f32[2,3]' --in k=7:s32[] --out y=y.npy --out 1=n.npy
expect 0 '^y = \[\[4.0, 8.0, 12.0\], \[16.0, 20.0, 24.0\]\]:f32\[2,3\]$' run double.axle --in 0=y.npy --in b=n.npy
expect 0 '^n = 7:s32\[\]$' run double.axle -i a=y.npy -i 1=n.npy --reference
expect 0 '^2 = 1.5:f32\[\]$' run double.axle -i a=y.npy -i 1=n.npy --workers 1 --policy fixed
expect 0 '^y = ' run double.axle -i x=1:s32[2,3] -i k=1.9:f64[] --convert
expect 0 '^y = \[4.0, 6.0\]:f32\[2\]$' run whole.axle --in 'x=[[1, 2], [3, 4]]:f32[2,2]'
expect 0 '^y = \[4.0, 6.0\]:f32\[2\]$' run whole.axle --in 'x=[1, 2, 3, 4]:f32[4]'
expect 0 '^y = 300.0:f32\[2\]$' run whole.axle --mesh data=300 --in x=1:f32[2]

# Processes.
expect 0 '^  0 .* 0 to 3 ' devices --mesh data=4 --processes one
expect 0 '^processes  1$' devices --mesh data=1
expect 2 'error: --processes: expected mpi or one, got "two"' bench whole.axle --processes two
expect 1 'error: --reference does not go with --processes mpi' run whole.axle --in x=1:f32[2] --reference --processes mpi

cp double.axle input
expect 0 '^{ lambda a:f32' show -
: >input

# Wrong programs and inputs: 1.
expect 1 'error: nothing.axle: No such file' run nothing.axle
expect 1 'error: (standard input):1:1: expected' show -
expect 1 'error: input k of type s32\[\] is not given' run double.axle -i x=y.npy
expect 1 'error: --in z=y.npy: the program has no such input' run double.axle -i z=y.npy
expect 1 'error: --in a=y.npy: the input is given twice' run double.axle -i x=y.npy -i a=y.npy
expect 1 'error: --out q=q.npy: the program has no such result' run double.axle -o q=q.npy
mkdir -p sub
ln -sf o.npy link.npy
for other in o.npy ./o.npy sub/../o.npy link.npy; do
  expect 1 'error: --out n=.*: --out y=o.npy is written to this file' run double.axle -i x=y.npy -i k=n.npy -o y=o.npy -o n=$other
done
expect 1 'error: --out y=o.npy: --timeline ./o.npy is written to this file' run double.axle -i x=y.npy -i k=n.npy -o y=o.npy --timeline ./o.npy
[ ! -e o.npy ] || { echo "o.npy is written, though two results are for it"; failed=$((failed + 1)); }
expect 0 '' run double.axle -i x=y.npy -i k=n.npy -o y=o.npy -o n=sub/o.npy -o y=again.npy
expect 1 'the dtype is s32, but .* f32 (--convert converts)' run double.axle -i x=n.npy
expect 1 'error: input x is f32\[2,3\], but f32\[6\] is given' run double.axle -i x=0:f32[6] -i k=0:s32[]
expect 1 'error: double.axle: ' run double.axle -i x=double.axle
expect 1 'error: .*no/such/folder' run double.axle -i x=y.npy -i k=n.npy -o y=no/such/folder/y.npy
expect 1 'error: log f32\[2\] (equation 0, line 1) makes 1 NaN in f32\[2\], the first at \[1\], on device 0$' run log.axle -i x='[0,-1]:f32[2]' --check-numerics
expect 1 'makes 1 NaN and 1 infinity in' run log.axle -i x='[0,-1]:f32[2]' --check-numerics --check-infinities
expect 0 '^y = ' run log.axle -i x='[0,1]:f32[2]' --check-numerics
cat > fused.axle <<'END'
{ lambda x:f32[1] y:f32[1]. let
    a:f32[1] = mul x x
    b:f32[1] = sub a y
  in (b,) }
END
"$AXLE" devices | grep -q '# vector 16 B' && once=0 || once=5 # processors with registers of 16 bytes may lack the instruction
settings="-u AXLE_CONTRACTION"
expect 0 '^b = 0.0:f32' run fused.axle -i x='[1.000244140625]:f32[1]' -i y='[1.00048828125]:f32[1]'
expect 0 "^b = $once" run fused.axle -i x='[1.000244140625]:f32[1]' -i y='[1.00048828125]:f32[1]' --contraction fused
expect 2 'error: --contraction: expected exact or fused, got "fast"' run fused.axle --contraction fast
settings="AXLE_CONTRACTION=fast"
expect 1 'AXLE_CONTRACTION is "fast"; it is exact or fused' run fused.axle -i x='[3]:f32[1]' -i y='[2]:f32[1]'
settings=
expect 1 'error: --reference does not go with --check' run log.axle -i x='[0,1]:f32[2]' --check-numerics --reference
expect 1 'error: the program uses no mesh' run double.axle -i x=y.npy -i k=n.npy --mesh data=2
expect 1 'error: the mesh has the axes {model}, but the program {data}' run whole.axle --mesh model=2 -i x=1:f32[2]
expect 1 'error: the program has no input "q"' show double.axle --pass jvp --wrt q
expect 1 'error: --in:1:4: ' run double.axle -i 'x=[1 2]:f32[2]'

# Wrong usage: 2.
expect 2 'error: which command' 
expect 2 "error: there is no command 'walk'" walk
expect 2 'error: which FILE' run
expect 2 'error: --frob: unknown option' run --frob
expect 2 "error: one FILE, not also 'b'" run a b
expect 2 'error: --in: expected NAME=' run double.axle --in x
expect 2 'error: mesh "data": expected name=size' run double.axle --mesh data
expect 2 'error: --policy: expected parallel' run double.axle --policy random
expect 2 'error: --workers: expected a number' run double.axle --workers -3
expect 0 'the most is alive' show double.axle --after memory
expect 0 'for i0\*i1 < 6, in vectors of' show double.axle --after codegen
expect 0 'bound .* us (memory)' show double.axle --after codegen
expect 0 ' 1 .* kernel \[2,3\] of add @ line 2' bench double.axle --runs 3
expect 0 '^the rest: [0-9.]* us ([0-9]*% of a run) in which no thread worked on what is listed' bench double.axle --runs 3
expect 0 ' 2 .*exchange of psum' bench whole.axle --runs 2 --workers 1
expect 2 'not a number of runs' bench double.axle --runs 0

# Subnormal numbers
echo '{ lambda x:f32[]. let y:f32[] = mul x 0.5:f32[] in (y) }' >half.axle
tiny="-i x=1.1754944e-38:f32[]"
expect 0 '^y = 0.0' run half.axle $tiny
expect 0 '^y = 0.0' run half.axle $tiny --reference
expect 0 '^y = 5.877472e-39' run half.axle $tiny --subnormals keep
expect 0 '^y = 5.877472e-39' run half.axle $tiny --subnormals keep --reference
expect 0 'inputs: vanishing' bench half.axle --inputs vanishing --subnormals keep --runs 2
expect 2 'subnormals: expected keep or flush, got "no"' run half.axle $tiny --subnormals no
settings="AXLE_SUBNORMALS=keep"
expect 0 '^y = 5.877472e-39' run half.axle $tiny
expect 0 '^y = 0.0' run half.axle $tiny --subnormals flush
settings="AXLE_SUBNORMALS=no"
expect 1 'AXLE_SUBNORMALS is "no"; it is keep or flush' run half.axle $tiny
settings=
echo '{ lambda x:f32[4]. let in (x) }' >same.axle
expect 0 'in what is listed 0.00' bench same.axle
echo '{ lambda x:f32[1000000000,1000000000]. let y:f32[1000000000,1000000000] = neg x in (y) }' >huge.axle
expect 1 'out of memory: f32\[1000000000,1000000000\] takes 4000000000000000000 bytes' show huge.axle --after codegen
expect 1 'a literal has its type behind it' bench double.axle --in x=1.5
expect 1 'input x is f32\[2,3\], but f32\[1,3\] is given' bench double.axle --in 'x=0:f32[1,3]'

# The code cache: off as these tests say, where an option or the environment says, and where the user's are.
kept() {
  [ "$(find "$1" -type f 2>/dev/null | wc -l)" "$2" 0 ] || { echo "code cache: files in $1 are not $2 0"; find "$1"; failed=$((failed + 1)); }
}
twice='run double.axle -i x=1:f32[2,3] -i k=1:s32[]'
expect 0 '^y = 2.0' $twice --code-cache "$work/kept"
kept kept -gt
expect 0 '^y = 2.0' $twice --code-cache "$work/kept"
settings="HOME=$work/home XDG_CACHE_HOME="
expect 0 '^y = 2.0' $twice
kept home -eq
settings="AXLE_CODE_CACHE=$work/other"
expect 0 '^y = 2.0' $twice
kept other -gt
settings="-u AXLE_CODE_CACHE HOME=$work/home XDG_CACHE_HOME="
expect 0 '^y = 2.0' $twice
kept home/.cache/axle -gt
settings="XDG_CACHE_HOME=$work/xdg"
expect 0 '^y = 2.0' $twice --code-cache user
kept xdg/axle -gt
settings=
expect 0 '^y = 2.0' $twice --code-cache /proc/no
expect 0 '^ *7  flops$' show double.axle --cost --pass simplify
expect 2 'error: nothing can follow the pass lower' show double.axle --cost --pass lower
expect 0 '^ *128 *128  arguments$' show double.axle --memory
expect 0 'the most is alive' show double.axle --memory
expect 0 '' trace double.axle --in 'x=[[1, 2, 3], [4, 5, 6]]:f32[2,3]' --in k=7:s32[]
grep -q traceEvents trace.json || { echo "axle trace: no events in trace.json"; failed=$((failed + 1)); }
expect 0 '^device 0 ' trace double.axle --timeline=- --in 'x=[[1, 2, 3], [4, 5, 6]]:f32[2,3]' --in k=7:s32[] --out y=y.npy
race=$source/examples/kernels/race.axle
expect 1 'store, at line 60 (writes)' check "$race"
expect 1 '--replay=' check "$race" --no-pictures --svg race.svg
grep -q '</svg>' race.svg || { echo "axle check --svg: no picture in race.svg"; failed=$((failed + 1)); }
expect 1 '? store' check "$race" --replay '6 0x2 7 1x2 0x5'
# Where a program goes depends on an input, from a literal or from a file: by 7 it stops.
cat >stops.mlir <<'END'
module @m attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["d"=2]>
  func.func public @main(%which: tensor<i32>, %x: tensor<2xf32>) -> tensor<2xf32> {
    %0 = sdy.manual_computation(%which, %x) in_shardings=[<@mesh, []>, <@mesh, [{"d"}]>] out_shardings=[<@mesh, [{"d"}]>] manual_axes={"d"} (%w: tensor<i32>, %b: tensor<1xf32>) {
      %p = stablehlo.partition_id : tensor<ui32>
      %c = stablehlo.convert %p : (tensor<ui32>) -> tensor<i32>
      %five = stablehlo.constant dense<5> : tensor<i32>
      %more = stablehlo.compare GT, %w, %five : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %s = stablehlo.select %more, %c, %zero : tensor<i1>, tensor<i32>
      %1 = "stablehlo.case"(%s) ({
        %2 = "stablehlo.all_reduce"(%b) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
        ^bb0(%u: tensor<f32>, %v: tensor<f32>):
          %3 = stablehlo.add %u, %v : tensor<f32>
          stablehlo.return %3 : tensor<f32>
        }) : (tensor<1xf32>) -> tensor<1xf32>
        stablehlo.return %2 : tensor<1xf32>
      }, {
        stablehlo.return %b : tensor<1xf32>
      }) : (tensor<i32>) -> tensor<1xf32>
      sdy.return %1 : tensor<1xf32>
    } : (tensor<i32>, tensor<2xf32>) -> tensor<2xf32>
    return %0 : tensor<2xf32>
  }
}
END
expect 0 'comes to its end' check stops.mlir --in which=3:s32[]
expect 1 'deadlock: psum' check stops.mlir --in which=7:s32[]
expect 0 '' run double.axle --in 'x=[[1, 2, 3], [4, 5, 6]]:f32[2,3]' --in k=-7:s32[] --out 1=seven.npy
expect 1 'deadlock: psum' check stops.mlir --in which=seven.npy
expect 1 'agent 3 (the end of device 0) cannot go on' check "$race" --replay '3'
expect 1 'agent 99 cannot go on' check "$race" --replay '6 99'
points=${race%race.axle}points.axle
expect 1 'dependence between points: point (1) reads what point (0) has written to scratch 0' check "$points"
sed 's/semantics=(1,)/semantics=(0,)/' "$points" >input
expect 0 'proved for all inputs$' check -
grep -v 'ref_store.* k v$' "$race" >input
expect 0 'kernel ring (line 10): proved for all inputs$' check -
cache=${race%race.axle}cache.axle
expect 0 'proved for all inputs within bounds$' check "$cache"
expect 0 'out of bounds: ref_slice, line [0-9]* of operand 2' check "$cache" --in a=3:s32[]
sed 's/g:s32\[\] = add f e/g:s32[] = mul f e/' "$cache" >rows.axle
expect 1 'data race' check rows.axle
expect 0 'proved for these inputs$' check rows.axle --in a=3:s32[]
expect 0 'not for all inputs: for some inputs there may be a data race: operand 2' check rows.axle --in a=3:s32[]
expect 0 'states were gone through, each schedule' check - --exhaustive
expect 1 'not decided' check - --exhaustive --max-states 50
expect 0 'states: .* ways to end well: 1' check - --explore --figures
awk '/semaphore_signal/ { print "= trace_begin[name=\"meeting\"]" } { print } /semaphore_wait/ { print "= trace_end[name=\"\"]" }' input |
  sed 's/semaphore_wait r 1:/semaphore_wait r 2:/' >spans && "$AXLE" check spans >out
grep -q 'device 0: wait, in meeting, at line 54' out || { echo "axle check: a wait has no span"; cat out; failed=$((failed + 1)); }
sed 's/r 1:s32\[\] q/r -1:s32[] q/' input >negative && mv negative input
expect 1 'out of bounds: semaphore_signal, line 52: the amount is -1' check -
grep -v 'ref_store.* k v$' "$race" | sed 's/sub n 1:s32/sub n 2:s32/' >input
expect 1 'out of bounds: semaphore_signal, line 52: coordinate -1 along "d", which has 3' check -
grep -v 'ref_store.* k v$' "$race" >input
expect 1 'is f32\[6\], not f32\[3\]' check - --in 'a=0:f32[3]'
expect 2 'not a positive number' check - --max-states 0
: >input
expect 0 'no kernel was come to' check double.axle
expect 1 'reference does not go with' trace double.axle --reference
expect 2 "error: there is no pass 'jump'" show double.axle --pass jump
expect 2 'error: nothing can follow the pass lower' show double.axle --pass lower,dce
expect 0 '' show double.axle --bytecode double.mlirbc --target 1.9.0
expect 0 'y:f32\[2,3\]\|f32\[2,3\] = add' show double.mlirbc
expect 2 'error: nothing can follow the pass lower' show double.axle --pass lower --bytecode double.mlirbc
expect 2 'error: --bytecode is of a StableHLO module' show double.axle --after simplify --bytecode double.mlirbc
expect 2 'error: --target is of bytecode' show double.axle --target 1.9.0
expect 2 "error: unexpected argument 'all'" devices all
expect 0 '^2 devices of the machine tpu-like-torus (torus 2 x 1 x 1), of which 1 stands for all' simulate whole.axle
expect 0 '^1000000 devices of the machine h200-switch (125000 nodes of 8), of which 8 stand for all' simulate whole.axle --mesh data=1000000 -a ring -M h200-switch
expect 0 '^2 devices of the machine cpu (a switch)$' simulate whole.axle --machine cpu --every-device --timeline t.svg
grep -q '</svg>' t.svg || { echo "axle simulate: no picture in t.svg"; failed=$((failed + 1)); }
expect 0 '' simulate double.axle --timeline t.json --devices 1
expect 1 'error: --timeline: give it a name that ends in .svg, for a picture, or in .json, for Perfetto: t.png' simulate whole.axle --timeline t.png
[ ! -e t.png ] || { echo "axle simulate: a refused timeline was written"; failed=$((failed + 1)); }
grep -q traceEvents t.json || { echo "axle simulate: no events in t.json"; failed=$((failed + 1)); }
expect 0 '^machine "cpu"$' simulate --describe cpu
expect 2 "error: there is no machine 'pdp11' to describe" simulate --describe pdp11
# A loop of a thousand steps: each operation once, the path folded, a small picture with an axis and a legend, tracks with names.
cat >loop.axle <<'END'
{ axes d=2 ; lambda u:f32[8,8]{V:d}. let
    r:f32[8,8]{V:d} = scan[length=1001 reverse=false num_carry=1 num_consts=0 body={ lambda u:f32[8,8]{V:d}. let
        a:f32[8,8]{V:d} = ppermute[axes=(d) pairs=((0,1))] u
        b:f32[8,8]{V:d} = dot_general[lhs_contract=(1) rhs_contract=(0) lhs_batch=() rhs_batch=()] a u
      in (b) }] u
  in (r) }
END
expect 0 '1001 .* ppermute of 2, .*(line 3)$' simulate loop.axle --timeline loop.svg
[ "$(grep -c " 1001 .*(line [34])" out)" -eq 2 ] || { echo "operations of a loop stand more than once"; cat out; failed=$((failed + 1)); }
grep -q '^ *to .*  the same [0-9]* times: the 2 lines above$' out || { echo "the critical path is not folded"; cat out; failed=$((failed + 1)); }
[ "$(wc -c <loop.svg)" -lt 20000 ] || { echo "the picture of a loop has $(wc -c <loop.svg) bytes"; failed=$((failed + 1)); }
for part in 'x[0-9]*' '[0-9.]* us' 'dot_general (line 4)'; do
  grep -q "<text[^>]*>$part</text>" loop.svg || { echo "the picture of a loop has no text $part"; cat loop.svg; failed=$((failed + 1)); }
done
expect 0 '' simulate loop.axle --timeline loop.json
for track in '"process_name","ph":"M","pid":1,"args":{"name":"device 1"}' '"thread_name","ph":"M","pid":0,"tid":0,"args":{"name":"computing"}' \
  '"thread_name","ph":"M","pid":1,"tid":[0-9]*,"args":{"name":"ppermute of 2, [a-z]* (line 3)"}'; do
  grep -q "$track" loop.json || { echo "loop.json does not name $track"; failed=$((failed + 1)); }
done
cat >powers.axle <<'END'
{ lambda u:f32[8,8]. let
    r:f32[8,8] = scan[length=1001 reverse=false num_carry=1 num_consts=0 body={ lambda u:f32[8,8]. let
        b:f32[8,8] = dot_general[lhs_contract=(1) rhs_contract=(0) lhs_batch=() rhs_batch=()] u u
      in (b) }] u
  in (r) }
END
expect 0 ' dot_general (line 3), 1001 runs$' simulate powers.axle
# A timeline is text unless its file is named .json.
expect 0 '^device 0 ' trace powers.axle --in u=0:f32[8,8] --timeline -
expect 0 '' trace powers.axle --in u=0:f32[8,8] --timeline t.txt
grep -q '^device 0 ' t.txt || { echo "trace --timeline t.txt wrote no text"; failed=$((failed + 1)); }
expect 0 '' trace powers.axle --in u=0:f32[8,8] --timeline t.json
grep -q '"name":"device 0"' t.json || { echo "trace --timeline t.json names no device"; failed=$((failed + 1)); }

expect 1 'error: pdp11: no file .*, and no machine of that name; there are tpu-like-torus, tpu-like-cube, h200-switch, a100, h100' simulate whole.axle -M pdp11
expect 1 'error: double.axle:1:1: expected machine, device' simulate whole.axle -M double.axle
expect 1 'error: simulate: more than 1 messages' simulate whole.axle --every-device --most-messages 1
expect 2 'error: there is no algorithm "fast"; there are best, ring' simulate whole.axle -a fast
expect 2 'error: --devices: not a positive number: 0' simulate whole.axle --devices 0
expect 1 'error: --mesh: the program has its mesh' simulate double.axle --mesh data=2

# Devices over processes, without MPI.
expect 0 '^on 2 processes, in the one that it takes longest:' show whole.axle --cost --spread 2
expect 0 'psum over .*, gather$' show whole.axle --cost --spread 2
expect 0 '^on 2 processes' show whole.axle --cost --spread 0,1
expect 0 'bytes received from other devices$' show whole.axle --cost --spread 1
# --mesh: the sizes of a per-device program's axes, in what shows it as it runs; elsewhere it would go unheard.
expect 0 ' over 1 axis, 8 devices\|8 devices' show whole.axle --cost --mesh data=8
cp out cost8
expect 0 '' show whole.axle --cost
! cmp -s out cost8 || { echo "axle show --cost: the same with --mesh data=8"; cat out; failed=$((failed + 1)); }
expect 0 '' show whole.axle --memory --mesh data=8
expect 0 'data=8' show whole.axle --pass partition --mesh data=8
expect 1 'error: the mesh has the axes {b}, but the program {data}' show whole.axle --cost --mesh b=8
expect 1 'error: --mesh: a per-device program lies over a mesh where it is shown as it runs' show whole.axle --mesh data=8
expect 1 'error: --mesh: the program has its mesh, or needs --in-sharding' show double.axle --cost --mesh data=8
expect 2 'error: --spread: expected a number of processes' show whole.axle --cost --spread 2x
expect 2 'error: --spread: expected a number of processes' show whole.axle --cost --spread none
expect 2 'error: --spread: expected a number of processes' show whole.axle --cost --spread 0
expect 0 '^total' simulate whole.axle --slow 1=2.5
expect 2 'error: --slow: not a device and a factor, as 3=1.5: 1' simulate whole.axle --slow 1
expect 2 'error: --slow: not a device and a factor, as 3=1.5: 1=0' simulate whole.axle --slow 1=0
expect 1 'error: simulate: device 7, slower by 2: there are 2 devices' simulate whole.axle --slow 7=2
for factor in 1e308 1e309 inf 1e-300; do
  expect 1 'error: simulate: device 1, slower by .*: factors are from 1e-06 to 1e+06' simulate whole.axle --slow 1=$factor
done
expect 2 'error: --slow: not a device and a factor' simulate whole.axle --slow 1=nan
expect 0 '^total' simulate whole.axle --slow 1=1e6 --slow 0=1e-6
! grep -q -w 'nan\|inf' out || { echo "axle simulate: no number of a slow device"; cat out; failed=$((failed + 1)); }
echo 'machine "tiny" device flops f32 1 memory 1 capacity 1 switch latency 1 bandwidth 1' >tiny.txt
expect 0 '^does not fit: a device needs .* B and has 1 B$' simulate whole.axle --machine tiny.txt

# --- axle plan ---
cat >net.axle <<'TEXT'
{ lambda w:f32[4,64,64] x:f32[64] y:f32[64]. let
    a:f32[64] = scan[length=4 reverse=false num_consts=0 num_carry=1 body={ lambda h:f32[64] u:f32[64,64]. let
        b:f32[64] = dot_general[lhs_contract=(0) rhs_contract=(0) lhs_batch=() rhs_batch=()] h u
        c:f32[64] = tanh b
      in (c) }] x w
    d:f32[64] = sub a y
    e:f32[64] = integer_pow[y=2] d
    f:f32[] = reduce_sum[axes=(0)] e
  in (f) }
TEXT
expect 0 '^ .*everything  pipeline' plan net.axle --train --batch x,y --samples 16 --devices 4
cat >uneven.axle <<'TEXT'
{ lambda w:f32[64,64] b:f32[3] s:f32[] x:f32[64] y:f32[64]. let
    h:f32[64] = dot_general[lhs_contract=(0) rhs_contract=(0) lhs_batch=() rhs_batch=()] x w
    d:f32[64] = sub h y
    q:f32[64] = mul d d
    l:f32[] = reduce_sum[axes=(0)] q
    c:f32[] = reduce_sum[axes=(0)] b
    t:f32[] = add l s
    r:f32[] = add t c
  in (r) }
TEXT
# parameters that the mesh does not cut, whose state is whole too
expect 0 '^ 1  data=4 ' plan uneven.axle --train --batch x,y --samples 64 --mesh data=4 --cluster h200
expect 0 "^  w  *.*PartitionSpec(" plan net.axle --train --batch x,y --samples 16 --devices 4 --cluster tpu-v5p --write step.axle --timeline step.svg
grep -q 'sharding_constraint' step.axle || { echo "axle plan: no layouts in step.axle"; failed=$((failed + 1)); }
grep -q '</svg>' step.svg || { echo "axle plan: no picture in step.svg"; failed=$((failed + 1)); }
expect 0 '^total' simulate step.axle --machine tpu-v5p
expect 0 'given; zero-bubble' plan net.axle --train --batch x,y --samples 16 --mesh pipe=2,data=1,model=2 --microbatches 4 --schedule zero-bubble
# A search that finds nothing that fits fails, and shows what comes nearest; it writes nothing.
expect 1 'error: nothing was found that fits: a device has 100 bytes, and the way that takes the least needs' plan net.axle --train --batch x,y --samples 16 --devices 4 --memory 100 --write none.step.axle
grep -q '^ 1  .* kB!  ' out || { echo "axle plan: nothing fits, and what comes nearest is not shown"; cat out; failed=$((failed + 1)); }
[ ! -e none.step.axle ] || { echo "axle plan: a step was written that does not fit"; failed=$((failed + 1)); }
expect 1 'error: planner: no way was found to spread the program over 4 devices; of the first that was tried: out of memory: ' plan net.axle --train --batch x,y --samples 1000000000000 --devices 4
expect 2 'error: --memory: not a positive number: inf' plan net.axle --train --devices 2 --memory inf
expect 2 'error: --seconds: not a positive number: nan' plan net.axle --train --devices 2 --seconds nan
expect 1 'error: --timeline: give it a name that ends in .svg' plan net.axle --train --devices 2 --timeline step.png
expect 2 'error: how many devices?' plan net.axle --train
expect 2 "error: --schedule: 'late' is none of none, gpipe" plan net.axle --train --mesh data=2 --schedule late
expect 2 'error: --samples: not a positive number: 0' plan net.axle --train --devices 2 --samples 0
expect 1 "error: --batch: there is no input 'z'" plan net.axle --train --batch z --devices 2
echo '{ lambda w:f32[8] ids:s32[4]. let l:f32[] = reduce_sum[axes=(0)] w in (l) }' >ids.axle
expect 1 'error: planner: input ids is s32\[4\], which cannot be trained' plan ids.axle --train --batch w --devices 2
expect 1 'error: planner: 4 layers on 3 stages' plan net.axle --train --batch x,y --samples 16 --mesh pipe=3,data=1,model=1
# A mesh is given by the names that the table has, in any order; of a stage of a pipeline in one order.
expect 1 'error: planner: the axis "a" does not say what it does: axes are called data ' plan net.axle --train --batch x,y --samples 16 --mesh a=2,b=1,c=1
model=model # where AXLE_HOSTILE is, kernels are others, and an axis does better that cuts nothing
grep -q '^AXLE_HOSTILE:BOOL=ON' "$(dirname "$AXLE")/CMakeCache.txt" 2>/dev/null && model=same
expect 0 "^ 1  $model=2,data=2 " plan net.axle --train --batch x,y --samples 16 --mesh model=2,data=2
expect 0 '^the axes of --mesh are called by what they do where that is faster .*: data=2,' plan net.axle --train --batch x,y --samples 16 --mesh shard=2,model=2
expect 0 '^ 1  same=2,data=2 ' plan net.axle --train --batch x,y --samples 16 --mesh same=2,data=2
expect 0 '^ 1  pipe=2,data=2,model=1 ' plan net.axle --train --batch x,y --samples 16 --mesh pipe=2,data=2,model=1
expect 1 'error: planner: .* in this order, and not (data=2, model=2, expert=2)' plan net.axle --train --batch x,y --samples 16 --mesh pipe=2,data=2,model=2,expert=2
expect 1 'error: planner: .* in this order, and not (data=2, sequence=2, expert=2)' plan net.axle --train --batch x,y --samples 16 --mesh pipe=2,data=2,sequence=2,expert=2
expect 1 'error: planner: the first dimension of input x, f32\[64\], over sequence=3: that does not divide it; sequence=2 and sequence=4 would' plan net.axle --train --batch x,y --samples 16 --mesh pipe=2,data=1,sequence=3
expect 1 'error: planner: 16 samples in 9223372036854775807 microbatches over data=4: these do not divide the samples' plan net.axle --train --batch x,y --samples 16 --mesh data=4 --microbatches 9223372036854775807
expect 1 'error: planner: 4 layers on 2 stages, of 9223372036854775807 parts each' plan net.axle --train --batch x,y --samples 16 --mesh pipe=2,data=4 --chunks 9223372036854775807
expect 1 'error: planner: the program has nothing that an axis expert would cut' plan net.axle --train --batch x,y --samples 16 --mesh data=2,expert=2
expect 0 '^ 1  pipe=2,data=1,sequence=2 .*given; 1f1b' plan net.axle --train --batch x,y --samples 16 --mesh pipe=2,data=1,sequence=2 --microbatches 4
expect 1 'error: planner: 16 samples in 1 microbatches over data=3: these do not divide the samples; data=2 and data=4 would' plan net.axle --train --batch x,y --samples 16 --mesh data=3
expect 1 'error: --mesh: it has 2 devices, and --devices says 4' plan net.axle --train --batch x,y --samples 16 --mesh data=2 --devices 4
expect 0 ' 1  data=2 .* kB!  ' plan net.axle --train --batch x,y --samples 16 --mesh data=2 --memory 100
expect 1 'error: --samples is of --train' plan net.axle --samples 16 --devices 2
expect 1 'error: --batch is of --train' plan net.axle --batch x,y --devices 2
expect 1 'error: --optimizer is of --train' plan net.axle --optimizer sgd --devices 2
expect 1 'error: --microbatches is of --mesh, which says one way to be timed' plan net.axle --train --batch x,y --samples 16 --devices 2 --microbatches 4
expect 1 'error: --saves is of --mesh' plan net.axle --train --batch x,y --samples 16 --devices 2 --saves dots
expect 1 'error: --chunks is of stages: --mesh pipe=P,data=N' plan net.axle --train --batch x,y --samples 16 --mesh data=2 --chunks 2
expect 1 'error: --schedule is of stages' plan net.axle --train --batch x,y --samples 16 --mesh pipe=1,data=2 --schedule gpipe
expect 2 "error: --optimizer: 'slow' is none of sgd, adam" plan net.axle --train --optimizer slow --devices 2
expect 1 'error: .*there is no strategy 9' plan net.axle --train --batch x,y --samples 16 --devices 2 --number 9 --write step.axle
expect 0 'few meshes cut samples evenly; --devices 1, --samples 10 and --samples 15 do$' plan net.axle --train --batch x,y --samples 11 --devices 5 --optimizer sgd --seconds 1
expect 0 '^12 samples and 8 devices: the one does not divide the other, .* --devices 6, --samples 8 and --samples 16 do$' plan net.axle --train --batch x,y --samples 12 --devices 8 --optimizer sgd
expect 0 '^a step has one sample (--samples says otherwise)$' plan net.axle --train --batch x,y --devices 2
expect 0 '^2 devices' plan net.axle --train --batch x,y --samples 2 --devices 2
! grep -q 'one sample' out || { echo "axle plan: samples that are given are said not to be"; failed=$((failed + 1)); }
expect 0 '^1 device of 141 GB' plan net.axle --train --batch x,y --samples 2 --devices 1
expect 0 '^a sample is y; the inputs before are parameters, up to x f32' plan net.axle --train --samples 16 --devices 2
cat >named.mlir <<'TEXT'
module @loss {
  func.func public @main(%arg0: tensor<4x8xf32> loc("params['v']"), %arg1: tensor<8xf32> loc("params['w']"), %arg2: tensor<8xf32> loc("image"), %arg3: tensor<4xf32> loc("target")) -> tensor<f32> {
    %0 = stablehlo.multiply %arg1, %arg2 : tensor<8xf32>
    %1 = stablehlo.dot_general %arg0, %0, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4xf32>
    %2 = stablehlo.dot_general %1, %arg3, contracting_dims = [0] x [0] : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>
    return %2 : tensor<f32>
  }
}
TEXT
expect 0 '^a sample is image target; the inputs of params are parameters' plan named.mlir --train --samples 4 --devices 2
expect 0 '^step2.middle.backward.axle' plan net.axle --train --batch x,y --samples 16 --mesh pipe=4,data=1,model=1 --microbatches 4 --write step2.axle
printf 'machine "few" device flops f32 1e12 memory 1e12 switch ports 4 latency 1e-6 bandwidth 1e9' >few.machine
expect 1 'error: the mesh .*has 8 devices, but the machine "few" has 4' plan net.axle --train --batch x,y --samples 16 --devices 8 --cluster few.machine
expect 1 'error: pdp11: no file' plan net.axle --devices 2 --cluster pdp11

expect 0 '^2 devices of the machine 2 processes (2 nodes of 1)' simulate whole.axle --spread 2
expect 0 ', run (' simulate whole.axle --spread 2x1
expect 0 ', chain (' simulate whole.axle --spread 2 --algorithm chain
expect 0 ', shares (' simulate whole.axle --spread 2 --algorithm shares
expect 1 'error: simulate: 2 devices are not in 3 equal blocks, one for each process' simulate whole.axle --spread 3
expect 1 'error: --spread makes a machine of processes: leave --machine out' simulate whole.axle --spread 2 -M cpu

expect 0 '^axle [0-9]' --version
expect 0 'show ' --help
expect 0 '--mesh' run --help
expect 0 'linearize' show --help
expect 0 '^threads' devices

# The machine by name and by a text, which is what is printed of it.
settings=AXLE_MACHINE=sapphire-rapids
expect 0 '^  l2 2 MiB .*# given: ' devices
settings=AXLE_MACHINE=zen-4
expect 0 '^l1 32 KiB .*# given: ' devices --machine
sed 's/ *#.*//' out >first
cp out machine.txt
settings=AXLE_MACHINE=machine.txt
expect 0 '^l1 32 KiB .*# given: ' devices -m
sed 's/ *#.*//' out | cmp - first || failed=$((failed + 1))
echo 'l1 32 KB' >machine.txt
echo '{ lambda . let y:f32[] = neg 1.5:f32[] in (y) }' >none.axle
expect 1 "AXLE_MACHINE 'machine.txt': line 1: expected 'l1', a number and its unit" devices
expect 1 "AXLE_MACHINE 'machine.txt': line 1: " run none.axle
settings=AXLE_MACHINE=none-such
expect 1 "AXLE_MACHINE 'none-such': no machine is called so" devices
settings=

# The collectives of a shard_map are over its own axes, which are not among those of the program around it.
sed '/^>>>/,$d' "$source/tests/golden/shard_map.axle" >sharded.axle
expect 0 '^collectives over no axes, without single-sided communication$' show sharded.axle --pass effects
expect 0 '^in shard_map (line 3): collectives over {data}, without single-sided communication$' show sharded.axle --pass effects

# Every primitive has a spec, and every command its help.
for name in $primitives; do
  expect 0 " $name\$\\| $name " help
  expect 0 "\\(^\\|[^a-z0-9_]\\)$name\\([^a-z0-9_]\\|\$\\)" help "$name"
done
[ "$(echo "$primitives" | wc -l)" -gt 60 ] || { echo "src/prim/prims.def was not read"; failed=$((failed + 1)); }
expect 0 '^psum: ' help psum
expect 0 '--mesh' help run
expect 0 "^The function: 'axle help ax_psum'" help psum
expect 0 '^ax_value ax_psum(ax_value x, const char \*axes);$' help ax_psum
expect 0 'the sum over the members, combined in member order' help ax_psum
expect 0 '^axle/collectives.h$' help ax_psum
expect 0 '^#define AX_LOOP(' help AX_LOOP
expect 0 '^typedef struct ax_mesh {' help ax_mesh
expect 0 'AX_POLICY_FIXED,    /\*' help AX_POLICY_FIXED
expect 0 '^pshift is no primitive: the function ax_pshift makes equations of primitives' help pshift
expect 0 'ppermute by an offset' help pshift
expect 0 '^tree_init is no primitive; this is ax_tree_init' help tree_init
expect 2 "error: there is no primitive, no command and no public name 'ax_psun'; the nearest: \"ax_psum\"" help ax_psun
expect 2 "no public name 'psmu'; the nearest: .*\"psum\"" help psmu
expect 2 "no public name 'walk'; the nearest: " help walk
expect 0 '^  ax_top_k .*the k greatest' help --search 'k greatest'
expect 0 '^  ax_reduce_min .*greatest' help --search GREATEST
expect 0 '^  ax_csv_read .*gzipped' help --search gzipped
expect 0 '^  ax_treedef_find  *axle/tree.h: ' help --search ax_treedef_find
expect 0 '^  ax_top_k .*the k greatest' help --search k greatest
expect 1 "error: 'no such xyzzy' stands in no name, heading or text; the nearest: \"" help --search 'no such xyzzy'
expect 2 'error: --search: which WORDS?' help --search
# Every public name has a contract.
names=$(sed -n 's/^\(AX_MUST_USE \)\{0,1\}\(void\|bool\|ax_value\|ax_status\) \(ax_[a-z0-9_]*\)(.*/\3/p' "$source"/include/axle/*.h)
[ "$(echo "$names" | wc -l)" -gt 250 ] || { echo "include/axle was not read"; failed=$((failed + 1)); }
for name in $names; do expect 0 "\\b$name(" help "$name"; done
expect 2 "error: one NAME, not also 'pmax'" help psum pmax
expect 1 'error: /dev/zero: is longer than 256 MiB' show /dev/zero
# What is no program is called what it is, and none of its bytes are shown.
: >empty.mlir
printf '\223NUMPY\001\000v\000{' >array.mlir
printf 'PK\003\004rest' >archive.mlir
printf '\001\002module' >other.mlir
expect 1 'error: empty.mlir:1:1: expected a program, but the file is empty$' run empty.mlir
expect 1 'error: empty.mlir:1:1: expected a program, but the file is empty$' show --module empty.mlir
expect 1 'error: (standard input):1:1: expected a program, but the file is empty$' show -
expect 1 'error: array.mlir: this is no program, but an array (.npy), which --in takes$' run array.mlir
expect 1 'error: archive.mlir: this is no program, but a zip archive$' show archive.mlir --module
expect 1 'error: other.mlir: this is no program: it is neither text' bench other.mlir
"$AXLE" --help >/dev/full 2>out && { echo "a full disk was not noticed"; failed=$((failed + 1)); }
"$AXLE" show double.axle >/dev/full 2>out && { echo "a full disk was not noticed"; failed=$((failed + 1)); }

[ $failed -eq 0 ] && echo "cli: all as expected"
