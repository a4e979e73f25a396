#!/bin/sh
# Examples that need no kernels, and the command, print the same on Axle's own plugin, which the environment names, as without it.
#   AXLE=build/axle AXLE_BUILD=build sh tests/plugin_examples_test.sh
set -u
: "${AXLE:?the axle command}" "${AXLE_BUILD:?the build folder}"
case $AXLE_BUILD in /*) ;; *) AXLE_BUILD=$PWD/$AXLE_BUILD ;; esac
case $AXLE in /*) ;; *) AXLE=$PWD/$AXLE ;; esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
plugin=$AXLE_BUILD/libaxle_pjrt.so
failed=0
export ASAN_OPTIONS="${ASAN_OPTIONS-}:detect_leaks=0" # the examples beside JAX's leave it to the system to take what they have
cd "$work"

# same NAME COMMAND...
same() {
  name=$1
  shift
  "$@" >here 2>&1
  AXLE_PLUGIN=$plugin AXLE_PLUGIN_OPTIONS=num_devices=64 "$@" >there 2>&1
  cmp -s here there && return
  echo "$name: otherwise on the plugin:"
  diff here there | head -5
  failed=$((failed + 1))
}

for name in hello collectives fft jitted per_example_gradients pipeline random_numbers trees tsqr checkpoint \
  jax/cannon jax/cfd jax/cut_vocabulary jax/decode jax/halo jax/moe jax/newton_cg jax/per_example_clip jax/pipeline jax/recurrence \
  jax/ring_attention jax/tensor_parallel jax/zero tutorial/1_mesh tutorial/2_trace tutorial/3_shard_map tutorial/4_grad \
  tutorial/5_donate tutorial/7_loops kernels/collective_matmul kernels/pipelined_add; do
  same "$name" "$AXLE_BUILD/examples/$name"
done

# expect PATTERN COMMAND...: fails with this message on standard error.
expect() {
  pattern=$1
  shift
  if "$@" >out 2>err || ! grep -q "$pattern" err; then
    echo "$*: no error \"$pattern\": $(head -1 err)"
    failed=$((failed + 1))
  fi
}

echo '{ lambda x:f32[8]. let y:f32[8] = mul x x s:f32[] = reduce_sum[axes=(0)] y in (y, s) }' >squares.axle
x='x=[1, 2, 3, 4, 5, 6, 7, 8]:f32[8]'
same squares "$AXLE" run squares.axle --mesh d=4 --in-sharding x=d --in "$x"
same squares.reference "$AXLE" run squares.axle --reference --in "$x"
run="$AXLE run squares.axle --mesh d=4 --in-sharding x=d"
expect 'the mesh has 4 devices, more than the 1 there are' $run --in "$x" --plugin "$plugin"
expect 'nowhere.so: it cannot be opened' $run --in "$x" --plugin ./nowhere.so
expect 'it has no GetPjrtApi' $run --in "$x" --plugin "$AXLE_BUILD/libaxle.so"
expect 'no check_numerics' $run --in "$x" --plugin "$plugin" --plugin-option num_devices=4 --check-numerics
expect 'no timelines' $run --in "$x" --plugin "$plugin" --plugin-option num_devices=4 --timeline -
expect 'not a valid bool value' $run --in "$x" --plugin "$plugin" --plugin-option num_devices=4 --plugin-option xla_cpu_enable_fast_math=maybe
expect 'plugin-option: expected NAME=VALUE' $run --in "$x" --plugin "$plugin" --plugin-option many
expect 'precision is highest, high or default' $run --in "$x" --plugin "$plugin" --plugin-option num_devices=4 --plugin-precision double
expect 'plugin-option goes with --plugin' $run --in "$x" --plugin-option num_devices=4
expect 'reference does not go with --plugin' $run --in "$x" --plugin "$plugin" --reference
expect 'does not go with MPI' $run --in "$x" --plugin "$plugin" --processes mpi
expect 'the option num_devices is no integer' "$AXLE" devices --plugin "$plugin" --plugin-option num_devices=no

[ "$failed" -eq 0 ] && echo "plugin_examples: the same on the plugin"
exit "$failed"
