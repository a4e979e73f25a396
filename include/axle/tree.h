/* Named trees of arrays: parameters, optimiser states, batches. Initialisers, optimisers and schedules stand on them.

     treedef the leaves in order, each a name ("layers/0/w"), a type and a spec
     leaves     in a trace: a plain array of ax_value in the treedef's order
     tree       in a runtime: a treedef and an ax_array for each of its leaves

   A leaf's name is words of letters, digits, `_`, `-` and `.` with "/" between them, AX_MAX_LEAF_NAME bytes at most with the NUL.
   What stands before a "/" names a node: the leaves below it. A node is no leaf.

   Everything takes time in proportion to the leaves. */
// Patterns pick leaves by name: `*` stands for any characters, "/" among them, and `?` for one. A pattern means the leaves whose name
// it matches, and those below a node whose name it matches. "*/" at its beginning may also stand for nothing. So "*" is every leaf,
// "params" what is below params, "*/w" each w, at the top or below anything, and "layers/*/w" those below layers.
#ifndef AXLE_TREE_H
#define AXLE_TREE_H

#include "axle/exec.h"
#include "axle/host.h"
#include "axle/program.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default) /* all else is hidden in the library */

enum {
  AX_MAX_LEAF_NAME = 256, /* bytes of a leaf's name, the NUL included */
  AX_MAX_LEAVES = 1 << 20 /* of a treedef */
};

/* --- Treedefs --- */

/* Names, types and specs of leaves, in order. Immutable and reference-counted: any thread. */
typedef struct ax_treedef ax_treedef;

/* Parses "NAME: TYPE @ SPEC" entries, each ended by ";" or a line's end; " @ SPEC" may be missing: "". `#` begins a comment. In
   names {a,b} stands for each of a and b, and {0..11} for each number, as in a shell:

     layers/{0..11}/{q,k,v}: f32[64,64] @ _,model
     layers/{0..11}/scale:   f32[64]

   Leaves are numbered as they come; within an entry the last braces vary fastest. `*out` is owned by the caller, NULL on failure.
   AX_PARSE_ERROR, with line, column and a caret: bad syntax; a name twice, or that of a leaf and a node; a spec with more entries
   than dimensions, or an axis twice; too many leaves. The axes are checked against a mesh, and the sizes that they must divide,
   where the leaves are laid over one. */
AX_MUST_USE ax_status ax_treedef_parse(const char *text, ax_treedef **out);
/* The same from lists with `count` entries each; specs NULL: all "". AX_INVALID_ARGUMENT: as ax_treedef_parse, and an unsound
   type. */
AX_MUST_USE ax_status ax_treedef_create(uint32_t count, const char *const *names, const ax_type *types, const char *const *specs,
                                        ax_treedef **out);
/* The parts' leaves one after the other, each part's below a node. prefixes: the nodes' names with ";" between; an empty one adds
   nothing:
   ax_treedef_join("params; state; batch", AX_TREEDEFS(params, state, batch), &all).
   AX_INVALID_ARGUMENT: other numbers of names than of parts; a name twice, or that of a leaf and a node; a name that gets too
   long. */
#ifndef __cplusplus
#define AX_TREEDEFS(...) (uint32_t)(sizeof((ax_treedef *[]){__VA_ARGS__}) / sizeof(ax_treedef *)), ((ax_treedef *[]){__VA_ARGS__})
#endif
AX_MUST_USE ax_status ax_treedef_join(const char *prefixes, uint32_t count, ax_treedef *const *parts, ax_treedef **out);
/* The same leaves with other specs. rules: "PATTERN: SPEC; PATTERN: SPEC"; the first whose pattern matches a leaf gives its spec.
   AX_PARSE_ERROR: bad syntax. AX_INVALID_ARGUMENT: a leaf that no pattern matches; a spec that does not suit its leaf. */
AX_MUST_USE ax_status ax_treedef_with_specs(const ax_treedef *def, const char *rules, ax_treedef **out);
ax_treedef *ax_treedef_retain(ax_treedef *def);
void ax_treedef_release(ax_treedef *def);

uint32_t ax_treedef_count(const ax_treedef *def);
/* Borrowed, for as long as the treedef lives; NULL when the index is out of range. */
const char *ax_treedef_name(const ax_treedef *def, uint32_t index);
const ax_type *ax_treedef_type(const ax_treedef *def, uint32_t index);
const char *ax_treedef_spec(const ax_treedef *def, uint32_t index);
/* All types, as ax_trace takes them; all specs in one text with "; " between, as ax_shard_map takes them for operands or results.
   Borrowed. */
const ax_type *ax_treedef_types(const ax_treedef *def);
const char *ax_treedef_specs(const ax_treedef *def);
/* The leaf of that name, or -1. The name is a format, as printf's: ax_treedef_find(def, "layers/%d/w", i). */
int64_t ax_treedef_find(const ax_treedef *def, const char *name, ...) AX_PRINTF(2, 3);
/* The numbers of the leaves that `patterns` selects: "params; opt". Patterns are separated by ";". For each leaf the first pattern
   that matches decides; one that begins with "!" leaves the leaf out: "!_*; params" selects the leaves below params whose names do
   not begin with "_". For `wrt` of derivatives and for donation. A list is kept by the treedef, for as long as it lives.
   When a pattern is bad, nothing is selected or there is no memory, every function refuses the result; ax_message says why, and so
   does the trace in progress. */
ax_args ax_treedef_select(const ax_treedef *def, const char *patterns);
/* As ax_treedef_parse reads it, a line a leaf. `*out`: ax_string_free. */
AX_MUST_USE ax_status ax_treedef_text(const ax_treedef *def, char **out);

/* --- Leaves, in a trace: arrays of values in a treedef's order. Errors are kept by the trace. --- */

/* A leaf by name: ax_leaf(def, leaves, "layers/%d/w", i). An error: no such leaf, with the nearest names. */
ax_value ax_leaf(const ax_treedef *def, const ax_value *leaves, const char *name, ...) AX_PRINTF(3, 4);
/* The first of the leaves below a node, which stand together in a treedef that ax_treedef_join made: ax_leaves(def, in, "params")
   are leaves of what was joined under that name. A leaf's name gives that leaf's place. An error: no leaf is there. Never NULL. */
const ax_value *ax_leaves(const ax_treedef *def, const ax_value *leaves, const char *node);
/* out[i] = f(x[i]); out[i] = f(a[i], b[i]); f(f(x[0], x[1]), x[2]).. Public functions can be given by name: ax_neg, ax_add. `out`
   may be an array of operands. An error: ax_tree_reduce of none. */
void ax_tree_map(ax_value (*f)(ax_value x), uint32_t count, const ax_value *x, ax_value *out);
void ax_tree_zip(ax_value (*f)(ax_value a, ax_value b), uint32_t count, const ax_value *a, const ax_value *b, ax_value *out);
ax_value ax_tree_reduce(ax_value (*f)(ax_value a, ax_value b), uint32_t count, const ax_value *x);
/* out[i] = x[i] * factor, a scalar of any float dtype or a number, rounded to each leaf's. */
void ax_tree_scale(ax_value factor, uint32_t count, const ax_value *x, ax_value *out);
/* All elements of all leaves, of one dtype, one leaf after the other in one dimension; and leaves shaped like `like` from the first
   elements of such a value. As jax.flatten_util.ravel_pytree. Errors: leaves of different dtypes; no leaf; too few elements in
   `flat`. */
ax_value ax_tree_ravel(uint32_t count, const ax_value *leaves);
void ax_tree_unravel(ax_value flat, uint32_t count, const ax_value *like, ax_value *out);
/* The square root of the sum of squares of all elements of all leaves, as optax.tree.norm: f32[], or f64[] where a leaf is f64. In
   a shard_map the parts of a leaf that devices hold along the axes over which it varies are all counted, and the result varies over
   none; in ax_shard_map_unchecked leaves must be whole. Errors: a leaf that is not float; no leaf. */
ax_value ax_global_norm(uint32_t count, const ax_value *leaves);
/* ax_shard_map with the specs of the leaves: operands are the leaves of `in_def`, results those of `out_def`. The body's counts
   must be theirs, or both 0, which stands for them. */
void ax_tree_shard_map(const ax_mesh *mesh, const ax_treedef *in_def, const ax_treedef *out_def, ax_fn body, uint32_t in_count,
                       const ax_value *in, uint32_t out_count, ax_value *out);

/* --- Trees --- */

/* Leaves of a treedef as arrays over one mesh. A leaf holds an array or, before one is put into it, nothing; the tree has its own
   references to its arrays. A tree is mutable: while one thread changes it, no other may change or read it. Names are formats, as
   printf's. Errors name the leaf. NULL in place of a tree is AX_INVALID_ARGUMENT. */
typedef struct ax_tree ax_tree;

/* With leaves that hold nothing, and the runtime and treedef retained. mesh NULL: one device. `*out` is owned by the caller, NULL
   on failure. AX_INVALID_ARGUMENT: an unsound mesh, one with too many devices; a leaf's spec with an axis that the mesh has not, or
   that does not divide. */
AX_MUST_USE ax_status ax_tree_create(ax_runtime *runtime, const ax_mesh *mesh, ax_treedef *def, ax_tree **out);
void ax_tree_release(ax_tree *tree); /* NULL is allowed */
const ax_treedef *ax_tree_def(const ax_tree *tree); /* borrowed */

/* Fills all leaves. rules: "PATTERN: INITIALISER; PATTERN: INITIALISER"; the first whose pattern matches a leaf says what it is
   filled with:

     zeros, ones, constant(c)
     uniform(s)            from 0 to s; without (s): 0.01
     normal(d), truncated_normal(d)      of deviation d; without (d): 0.01. Truncated: cut off at twice that
     lecun_normal, lecun_uniform, glorot_normal, glorot_uniform, he_normal, he_uniform    for weights [.., in, out]

   Leaf i is jax.nn.initializers' function of that name with jax.random.fold_in(jax.random.key(seed), i), to a few units in the last
   place (f64: as exact as JAX's inverse of erf); seeds from 2^31 on as with jax_enable_x64. On failure nothing has changed.
   AX_PARSE_ERROR: bad syntax. AX_INVALID_ARGUMENT: a leaf that no pattern matches; no initialiser; random numbers for an integer; a
   weight of fewer than two dimensions; a number that the dtype does not hold. */
AX_MUST_USE ax_status ax_tree_init(ax_tree *tree, const char *rules, uint64_t seed);

/* Copies dense row-major `data` of the leaf's type into it; the second from a host array, whose dtype and shape must be the
   leaf's: ax_tree_put(batch, x, "x"), x being an array of C. AX_INVALID_ARGUMENT: data of another dtype than the leaf, or too short;
   no such leaf. */
AX_MUST_USE ax_status ax_tree_put(ax_tree *tree, ax_dtype element, const void *data, size_t bytes, const char *name, ...)
    AX_PRINTF(5, 6);
AX_MUST_USE ax_status ax_tree_put_host(ax_tree *tree, const ax_host_array *host, const char *name, ...) AX_PRINTF(3, 4);
/* As ax_array_read and ax_array_to_host. AX_INVALID_ARGUMENT: also no such leaf, and one that holds nothing. */
AX_MUST_USE ax_status ax_tree_read(const ax_tree *tree, ax_dtype element, void *data, size_t bytes, const char *name, ...)
    AX_PRINTF(5, 6);
AX_MUST_USE ax_status ax_tree_to_host(const ax_tree *tree, ax_host_array *out, const char *name, ...) AX_PRINTF(3, 4);
/* The leaf's array, borrowed until the leaf changes; NULL: no such leaf, or it holds nothing. */
ax_array *ax_tree_get(const ax_tree *tree, const char *name, ...) AX_PRINTF(2, 3);
/* Puts an array into a leaf, which retains it. AX_INVALID_ARGUMENT: another type; no such leaf. */
AX_MUST_USE ax_status ax_tree_set(ax_tree *tree, ax_array *array, const char *name, ...) AX_PRINTF(3, 4);
/* Copies all leaves' elements into a tree with the same names and types, in whatever order, and any specs, mesh and runtime.
   AX_INVALID_ARGUMENT: a leaf that one of them has not, or of another type; one that holds nothing. On failure nothing has
   changed. */
AX_MUST_USE ax_status ax_tree_copy(const ax_tree *from, ax_tree *to);

/* All leaves from the .npz file, or into it: a member a leaf, by name ("layers/0/w"). NumPy reads and writes the same.
   AX_INVALID_ARGUMENT: leaves that the file has not, members that are no leaf, others of another type: the first five of each are
   named; writing: a leaf that holds nothing. AX_IO_ERROR: as ax_npz_read and ax_npz_write. On failure nothing has changed. */
AX_MUST_USE ax_status ax_tree_read_npz(ax_tree *tree, const char *path);
AX_MUST_USE ax_status ax_tree_write_npz(const ax_tree *tree, const char *path);

/* ax_jit of a body that takes the leaves of `in_def` and gives those of `out_def`, on the mesh as ax_tree_shard_map says; mesh
   NULL:
   as it is. Donated leaves are a selection: &(ax_compile_options){.donate = ax_treedef_select(in_def, "params; state")}. `*out` is
   owned by the caller, NULL on failure. AX_INVALID_ARGUMENT, AX_ABSENT: as ax_trace, ax_tree_shard_map and ax_compile. */
AX_MUST_USE ax_status ax_tree_jit(ax_runtime *runtime, const ax_mesh *mesh, const ax_treedef *in_def, const ax_treedef *out_def, ax_fn body,
                                  const ax_compile_options *options, ax_executable **out);

/* Runs the executable on all leaves of the trees `in`, one tree after the other, as arguments; its results become the leaves of the
   trees `out`, which may be among `in`, and what they held is released. A training step is one line, whatever is donated:

     ax_tree_run(step, AX_TREES(params, state, batch), AX_TREES(metrics, params, state))

   Waits as ax_run does; the second only starts, as ax_run_start. AX_INVALID_ARGUMENT: other numbers of leaves than the executable
   takes and gives; leaves of other types, that hold nothing, whose arrays were donated or are of another runtime: the first five
   are named; an array that is donated and also in another leaf. Otherwise as ax_run. On failure no leaf has changed; leaves that
   were donated to a run that had begun are gone, though: reading such a leaf, or running on it, fails with that message until an
   array is put into it. */
#ifndef __cplusplus
#define AX_TREES(...) (uint32_t)(sizeof((ax_tree *[]){__VA_ARGS__}) / sizeof(ax_tree *)), ((ax_tree *[]){__VA_ARGS__})
#endif
AX_MUST_USE ax_status ax_tree_run(ax_executable *executable, uint32_t in_count, ax_tree *const *in, uint32_t out_count,
                                  ax_tree *const *out);
AX_MUST_USE ax_status ax_tree_run_start(ax_executable *executable, uint32_t in_count, ax_tree *const *in, uint32_t out_count,
                                        ax_tree *const *out);

#pragma GCC visibility pop

#ifndef __cplusplus /* lists with their counts, memory with its dtype (axle/type.h) */
#define ax_tree_read(tree, data, bytes, ...) AX_LINED_STATUS(tree_read, tree, AX_ELEMENT(data), data, bytes, __VA_ARGS__)
#define ax_tree_put(tree, data, ...) AX_LINED_STATUS(tree_put, tree, AX_MEMORY(data), __VA_ARGS__)
#define ax_tree_run(executable, in, out) \
  AX_LINED_STATUS(tree_run, executable, AX_COUNTED(ax_tree *, in), AX_COUNTED(ax_tree *, out))
#define ax_tree_run_start(executable, in, out) \
  AX_LINED_STATUS(tree_run_start, executable, AX_COUNTED(ax_tree *, in), AX_COUNTED(ax_tree *, out))
#define ax_tree_shard_map(mesh, in_def, out_def, body, in, out) \
  AX_LINED_VOID(tree_shard_map, mesh, in_def, out_def, body, AX_COUNTED(ax_value, in), AX_COUNTED(ax_value, out))
#endif

#ifndef AXLE_NO_LINES /* axle/line.h */
#define ax_treedef_parse(...) AX_LINED_STATUS(treedef_parse, __VA_ARGS__)
#define ax_treedef_create(...) AX_LINED_STATUS(treedef_create, __VA_ARGS__)
#define ax_treedef_join(...) AX_LINED_STATUS(treedef_join, __VA_ARGS__)
#define ax_treedef_with_specs(...) AX_LINED_STATUS(treedef_with_specs, __VA_ARGS__)
#define ax_treedef_select(...) AX_LINED_ANY(treedef_select, __VA_ARGS__)
#define ax_treedef_text(...) AX_LINED_STATUS(treedef_text, __VA_ARGS__)
#define ax_leaf(...) AX_LINED(leaf, __VA_ARGS__)
#define ax_leaves(...) AX_LINED_ANY(leaves, __VA_ARGS__)
#define ax_tree_map(...) AX_LINED_VOID(tree_map, __VA_ARGS__)
#define ax_tree_zip(...) AX_LINED_VOID(tree_zip, __VA_ARGS__)
#define ax_tree_reduce(...) AX_LINED(tree_reduce, __VA_ARGS__)
#define ax_tree_ravel(...) AX_LINED(tree_ravel, __VA_ARGS__)
#define ax_tree_unravel(...) AX_LINED_VOID(tree_unravel, __VA_ARGS__)
#define ax_tree_scale(factor, ...) AX_LINED_VOID(tree_scale, AX_X(factor), __VA_ARGS__)
#define ax_global_norm(...) AX_LINED(global_norm, __VA_ARGS__)
#define ax_tree_create(...) AX_LINED_STATUS(tree_create, __VA_ARGS__)
#define ax_tree_init(...) AX_LINED_STATUS(tree_init, __VA_ARGS__)
#define ax_tree_put_host(...) AX_LINED_STATUS(tree_put_host, __VA_ARGS__)
#define ax_tree_to_host(...) AX_LINED_STATUS(tree_to_host, __VA_ARGS__)
#define ax_tree_set(...) AX_LINED_STATUS(tree_set, __VA_ARGS__)
#define ax_tree_copy(...) AX_LINED_STATUS(tree_copy, __VA_ARGS__)
#define ax_tree_read_npz(...) AX_LINED_STATUS(tree_read_npz, __VA_ARGS__)
#define ax_tree_write_npz(...) AX_LINED_STATUS(tree_write_npz, __VA_ARGS__)
#define ax_tree_jit(...) AX_LINED_STATUS(tree_jit, __VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif
#endif
