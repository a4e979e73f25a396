#!/bin/sh
# `axle help`: what those who come from JAX or MPI would search for and ask for, and the first thing that each finds.
#   AXLE=build/axle sh tests/cli_search_test.sh
set -u

: "${AXLE:?the axle command}"
failed=0
wrong() {
  echo "$*"
  failed=$((failed + 1))
}

# The first hit stands behind the heading of its list: what is searched for | where the hit begins.
asked=0
while IFS='|' read -r words hit; do
  asked=$((asked + 1))
  found=$("$AXLE" help --search "$words" 2>&1 | sed -n 2p)
  case $found in "  $hit "* | "  $hit,"* | "  $hit:"*) ;; *) wrong "axle help --search $words finds first, and not $hit:" "$found" ;; esac
done <<'END_OF_SEARCHES'
halo|ax_pshift, ax_ppermute
halos|ax_pshift, ax_ppermute
stencil|ax_pshift, ax_ppermute
ghost cells|ax_pshift, ax_ppermute
all-reduce|ax_psum, ax_pmean, ax_pmax, ax_pmin
allreduce|ax_psum, ax_pmean, ax_pmax, ax_pmin
MPI_Allreduce|ax_psum
MPI_Scatter|an input spec: "x -> .."
broadcast|ax_pbroadcast
reduce-scatter|ax_psum_scatter
all-gather|ax_all_gather
alltoallv|ax_ragged_all_to_all
ring|ax_pshift
rank|ax_axis_index
barrier|ax_array_wait
overlap|ax_start, ax_done, ax_psum_start
deadlock|AX_DEADLOCK
einsum|ax_einsum
matrix multiplication|ax_matmul, ax_einsum
checkpoint|ax_checkpoint
remat|ax_checkpoint, ax_checkpoint_name
ZeRO|ax_treedef_with_specs
FSDP|ax_treedef_with_specs
tensor parallelism|ax_jit
dropout|ax_random_key
softmax|ax_softmax
cross entropy|ax_log_softmax, ax_one_hot
attention|ax_dot_product_attention
sharding constraint|ax_with_sharding
PartitionSpec|ax_spec_parse, ax_spec
resharding|ax_array_reshard, ax_with_sharding
gradient|ax_grad, ax_value_and_grad
per-example gradients|ax_vmap
while loop|AX_WHILE, ax_while
scan|ax_scan
convert dtype|ax_convert_element_type
embedding|ax_take, ax_index
learning rate|ax_warmup_cosine_decay_schedule
save a model|ax_tree_write_npz, ax_tree_read_npz
profile|ax_executable_timeline
donate|ax_compile_options
NaN|AX_CHECK_NAN
race condition|ax_check
cumulative sum|ax_cumsum
convolution|ax_conv, ax_conv_general_dilated
heat equation|docs/tutorial.md
gzipped|ax_csv_read
deliberate|examples/deadlock.c
END_OF_SEARCHES
[ $asked -ge 40 ] || wrong "only $asked searches were tried"

# The first of Axle's names that the answer names: what is asked for | that name.
asked=0
while read -r name ours; do
  asked=$((asked + 1))
  found=$("$AXLE" help "$name" 2>&1 | grep -o '\b\(ax\|AX\)_[A-Za-z0-9_]*' | grep -vx "$name" | head -1)
  [ "$found" = "$ours" ] || wrong "axle help $name names $found first, and not $ours"
done <<'END_OF_NAMES'
ax_put ax_device_put
ax_sum ax_reduce_sum
ax_mean ax_reduce_mean
ax_get_device ax_device
ax_get_shape ax_typeof
ax_get_rank ax_axis_index
ax_dot ax_matmul
ax_zeros ax_full
ax_aranges ax_arange
ax_allreduce ax_psum
ax_all_reduce ax_psum
ax_bcast ax_pbroadcast
ax_send ax_psend
ax_rank ax_axis_index
ax_init ax_runtime_create
ax_compile_program ax_compile
ax_shardmap ax_shard_map
ax_remat ax_checkpoint
ax_psun ax_psum
pmap ax_pmap
jit ax_jit
device_put ax_device_put
with_sharding_constraint ax_with_sharding
PartitionSpec ax_spec_parse
NamedSharding ax_sharding_named
pallas_call ax_kernel_call
block_until_ready ax_array_wait
lax.scan ax_scan
lax.cond AX_IF
lax.while_loop AX_WHILE
lax.fori_loop ax_fori_loop
lax.psum ax_psum
lax.max ax_max
jnp.sum ax_reduce_sum
jnp.max ax_reduce_max
jnp.dot ax_matmul
jnp.einsum ax_einsum
jnp.zeros ax_full
jnp.where ax_where
jax.jit ax_jit
jax.grad ax_grad
jax.remat ax_checkpoint
jax.device_put ax_device_put
jax.device_get ax_array_read
jax.numpy.exp ax_exp
jax.nn.relu ax_relu
jax.lax.all_gather ax_all_gather
jax.tree.map ax_tree_map
jax.random.normal ax_random_normal
np.load ax_npy_read
optax.adam ax_adam
MPI_Allreduce ax_psum
MPI_Bcast ax_pbroadcast
MPI_Send ax_psend
MPI_Isend ax_start
MPI_Comm_rank ax_axis_index
MPI_Comm_size ax_axis_size
MPI_Alltoall ax_all_to_all
MPI_Reduce_scatter_block ax_psum_scatter
MPI_Cart_create ax_mesh_parse
MPI_Init ax_runtime_create
END_OF_NAMES
[ $asked -ge 40 ] || wrong "only $asked names were tried"

# says PATTERN ARGUMENT...: a line of what `axle help ARGUMENT...` prints matches.
says() {
  pattern=$1
  shift
  "$AXLE" help "$@" 2>&1 | grep -q -- "$pattern" || wrong "axle help $*: no line with: $pattern"
}

# How C calls what takes lists, then the function, then C++.
for name in ax_grad ax_vmap ax_run ax_apply ax_reduce_sum ax_array_read; do
  "$AXLE" help $name | awk -v name=$name '
    FNR == 1 && $0 != "Called in C:" { exit 1 }
    index($0, "  " name "(") == 1 { called = FNR }
    $0 ~ "^[a-z].* \\**" name "\\(" { declared = FNR }
    /^In C\+\+:$/ { forms = FNR }
    END { exit !(called && called < declared && declared < forms) }' ||
    wrong "axle help $name does not say how it is called, then what it is, then C++"
done
says '^  ax_grad(f, wrt, in, out);$' ax_grad
says '^    in: AX_VALUES(\.\.), a C array, or &x of one variable; AX_LIST(n, p)$' ax_grad
says '^    out: a C array, or &y of one variable; AX_LIST(n, p)$' ax_grad
says '^  ax_vmap(f, in, out, options);$' ax_vmap
says '^  ax_tree_put(tree, data, name, \.\.\.);$' ax_tree_put
says '^  ax_create_token();$' ax_create_token
says '^  value axle::grad(F &&function, const values &in);$' ax_grad
says '^  executable axle::runtime::jit(' ax_jit
says '^#define AX_RING(\.\.\.) *\\$' AX_RING

# Where others have no name of Axle's, the row says what there is; and all rows are said.
says '^    nothing | a value is there when it is needed' MPI_Barrier
says '^docs/mpi.md:[0-9]*: MPI_Allreduce with MPI_MAXLOC' MPI_Allreduce
says '^    groups in the place of axes' MPI_Comm_split
says 'nearest: "ax_pshift"' --search ax_pshiff
says '^Headings:$' --search halo
says '^Texts:$' --search halo
says '  \.\. and [0-9]* more' --search value
"$AXLE" help --search 'ghost cells' | grep -c 'ax_pshift, ax_ppermute' | grep -qx 1 || wrong "a row is found twice"

says "error: '!!' stands in no name" --search '!!'
says "no public name '\*\*'" '**'

[ $failed -eq 0 ] && echo "cli_search: all as expected"
