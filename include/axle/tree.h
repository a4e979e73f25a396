/* Named trees of arrays: parameters, optimiser states, batches. Initialisers and optimisers work on them.

     treedef    the leaves in order, each with a name ("layers/0/w"), a type and a spec (how it lies over a mesh)
     leaves     in a trace: a plain array of ax_value in the treedef's order
     tree       in a runtime: a treedef and an ax_array for each of its leaves

   A leaf's name is words of letters, digits, `_`, `-` and `.` with "/" between them, AX_MAX_LEAF_NAME bytes at most with the NUL.
   What stands before a "/" names a node: the leaves below it. A node is no leaf.

   The time of each function is proportional to the number of leaves. */
// Patterns pick leaves by name: `*` stands for any characters, "/" among them, and `?` for one. A pattern picks each leaf whose
// name it matches, and all leaves below a node whose name it matches. "*/" at its beginning may also stand for nothing. So "*"
// picks every leaf, "params" all leaves below params, "*/w" each w, at the top or below any node, and "layers/*/w" each w below
// layers.
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

/* Names, types and specs of leaves, in order. Immutable and reference-counted, so any thread may use it. */
typedef struct ax_treedef ax_treedef;

/* Parses entries "NAME: TYPE @ SPEC", each ended by ";" or a line's end; an entry without " @ SPEC" has the spec "". `#` begins a
   comment. In names {a,b} stands for each of a and b, and {0..11} for each number, as in a shell:

     layers/{0..11}/{q,k,v}: f32[64,64] @ _,model
     layers/{0..11}/scale:   f32[64]

   Leaves are numbered as they come; within an entry the last braces vary fastest. `*out` is owned by the caller, NULL on failure.
   AX_PARSE_ERROR, with line, column and a caret: bad syntax; a name that stands twice, or for a leaf and a node; a spec with more
   entries than dimensions, or with an axis twice; too many leaves. No mesh is known here: functions that lay the leaves over one
   check that it has the axes, and that their sizes divide the dimensions. */
AX_MUST_USE ax_status ax_treedef_parse(const char *text, ax_treedef **out);
/* Makes a treedef from lists with an entry for each leaf; specs NULL: every spec is "". AX_INVALID_ARGUMENT: the faults of names
   and specs that ax_treedef_parse names, an unsound type, and lists of different lengths. */
AX_MUST_USE ax_status ax_treedef_create(uint32_t count, const char *const *names, uint32_t type_count, const ax_type *types,
                                        uint32_t spec_count, const char *const *specs, ax_treedef **out);
/* Makes a treedef with the leaves of all parts, one part after the other. The leaves of each part come below a node of their own.
   prefixes: the nodes' names with ";" between; if a name is empty, the leaves of its part keep their names:
   ax_treedef_join("params; state; batch", AX_TREEDEFS(params, state, batch), &all).
   AX_INVALID_ARGUMENT: more or fewer prefixes than parts; a name that stands twice, or for a leaf and a node; a name that gets too
   long. */
#ifndef __cplusplus
#define AX_TREEDEFS(...) (uint32_t)(sizeof((ax_treedef *[]){__VA_ARGS__}) / sizeof(ax_treedef *)), ((ax_treedef *[]){__VA_ARGS__})
#endif
AX_MUST_USE ax_status ax_treedef_join(const char *prefixes, uint32_t count, ax_treedef *const *parts, ax_treedef **out);
/* Makes a treedef with the same leaves and other specs. rules: "PATTERN: SPEC; PATTERN: SPEC"; the first rule whose pattern
   matches a leaf gives its spec. AX_PARSE_ERROR: bad syntax. AX_INVALID_ARGUMENT: a leaf that no pattern matches; a spec that does
   not suit its leaf. */
AX_MUST_USE ax_status ax_treedef_with_specs(const ax_treedef *def, const char *rules, ax_treedef **out);
ax_treedef *ax_treedef_retain(ax_treedef *def);
void ax_treedef_release(ax_treedef *def);

uint32_t ax_treedef_count(const ax_treedef *def);
/* Borrowed, for as long as the treedef lives; NULL when the index is out of range. */
const char *ax_treedef_name(const ax_treedef *def, uint32_t index);
const ax_type *ax_treedef_type(const ax_treedef *def, uint32_t index);
const char *ax_treedef_spec(const ax_treedef *def, uint32_t index);
/* The types of all leaves, as ax_trace takes them; the specs of all leaves in one text with "; " between, as ax_shard_map takes
   them for operands or results. Both are borrowed. */
const ax_type *ax_treedef_types(const ax_treedef *def);
const char *ax_treedef_specs(const ax_treedef *def);
/* The number of the leaf of that name, or -1. The name is a format, as printf's: ax_treedef_find(def, "layers/%d/w", i). */
int64_t ax_treedef_find(const ax_treedef *def, const char *name, ...) AX_PRINTF(2, 3);
/* The numbers of the leaves that `patterns` selects: "params; opt". Patterns are separated by ";". For each leaf the first pattern
   that matches decides; one that begins with "!" leaves the leaf out: "!params/head; params" selects the leaves below params,
   except for params/head and the leaves below it. The result is for `wrt` of derivatives and for donation. It may point to memory
   of the treedef, which must live as long. If a pattern is bad, no leaf is selected or there is no memory, ax_message says so, as
   does the trace in progress, and every function refuses the result. */
ax_args ax_treedef_select(const ax_treedef *def, const char *patterns);
/* Writes the treedef as ax_treedef_parse reads it, one line for each leaf. `*out` is owned by the caller: ax_string_free. */
AX_MUST_USE ax_status ax_treedef_text(const ax_treedef *def, char **out);

/* --- Leaves, in a trace: arrays of values in a treedef's order. Errors are kept by the trace. --- */

/* A leaf by name: ax_leaf(def, leaves, "layers/%d/w", i). An error: there is no such leaf; the message has the nearest names. */
ax_value ax_leaf(const ax_treedef *def, const ax_value *leaves, const char *name, ...) AX_PRINTF(3, 4);
/* Points to the first leaf below a node. In a treedef that ax_treedef_join made, the leaves of a part stand together, so that
   ax_leaves(def, in, "params") is the list of the leaves that were joined under that name. For the name of a leaf, points to this
   leaf. An error: there is neither. Never NULL. */
const ax_value *ax_leaves(const ax_treedef *def, const ax_value *leaves, const char *node);
/* map: out[i] = f(x[i]). zip: out[i] = f(a[i], b[i]). reduce: f(f(x[0], x[1]), x[2]) and so on. Public functions can be given by
   name: ax_neg, ax_add. `out` may be the same C array as an operand. An error: ax_tree_reduce of no leaf. */
void ax_tree_map(ax_value (*f)(ax_value x), uint32_t count, const ax_value *x, uint32_t out_count, ax_value *out);
void ax_tree_zip(ax_value (*f)(ax_value a, ax_value b), uint32_t count, const ax_value *a, uint32_t b_count, const ax_value *b,
                 uint32_t out_count, ax_value *out);
ax_value ax_tree_reduce(ax_value (*f)(ax_value a, ax_value b), uint32_t count, const ax_value *x);
/* out[i] = x[i] * factor. The factor is a scalar of any float dtype, or a number; it is rounded to each leaf's dtype. */
void ax_tree_scale(ax_value factor, uint32_t count, const ax_value *x, uint32_t out_count, ax_value *out);
/* ravel: all elements of all leaves, one leaf after the other, as an array of one dimension. unravel: the inverse; out[i] has the
   shape of like[i], and elements beyond those that the leaves take are left over. As jax.flatten_util.ravel_pytree. Errors: leaves
   of different dtypes; no leaf; too few elements in `flat`. */
ax_value ax_tree_ravel(uint32_t count, const ax_value *leaves);
void ax_tree_unravel(ax_value flat, uint32_t count, const ax_value *like, uint32_t out_count, ax_value *out);
/* The square root of the sum of squares of all elements of all leaves, as optax.tree.norm: f32[], or f64[] where a leaf is f64. In
   a shard_map the parts of a leaf that devices hold along the axes over which it varies are all counted, and the result varies over
   none; in ax_shard_map_unchecked leaves must be whole. Errors: a leaf that is not float; no leaf. */
ax_value ax_global_norm(uint32_t count, const ax_value *leaves);
/* ax_shard_map with the specs of the leaves: operands are the leaves of `in_def`, results those of `out_def`. The body's in_count
   and out_count must be the numbers of these leaves; if both are 0, they are taken from the treedefs. */
void ax_tree_shard_map(const ax_mesh *mesh, const ax_treedef *in_def, const ax_treedef *out_def, ax_fn body, uint32_t in_count,
                       const ax_value *in, uint32_t out_count, ax_value *out);

/* --- Trees --- */

/* Leaves of a treedef as arrays over one mesh. A leaf holds an array or, before one is put into it, nothing; the tree has its own
   references to its arrays. A tree is mutable: while one thread changes it, no other may change or read it. Names are formats, as
   printf's. Errors name the leaf. NULL in place of a tree is AX_INVALID_ARGUMENT. */
typedef struct ax_tree ax_tree;

/* Makes a tree whose leaves hold nothing yet. It retains the runtime and the treedef. mesh NULL: one device. `*out` is owned by the
   caller, NULL on failure. AX_INVALID_ARGUMENT: an unsound mesh, or one with too many devices; a leaf's spec with an axis that the
   mesh lacks, or whose size does not divide the leaf's dimension. */
AX_MUST_USE ax_status ax_tree_create(ax_runtime *runtime, const ax_mesh *mesh, ax_treedef *def, ax_tree **out);
void ax_tree_release(ax_tree *tree); /* NULL is allowed */
const ax_treedef *ax_tree_def(const ax_tree *tree); /* borrowed */

/* Fills all leaves. rules: "PATTERN: INITIALISER; PATTERN: INITIALISER"; the first rule whose pattern matches a leaf says what it
   is filled with:

     zeros, ones, constant(c)
     uniform(s)                          from 0 to s; without (s): to 0.01
     normal(d), truncated_normal(d)      of standard deviation d; without (d): 0.01. truncated_normal is cut off at twice that
     lecun_normal, lecun_uniform, glorot_normal, glorot_uniform, he_normal, he_uniform    for weights [.., in, out]

   Leaf i gets the numbers of the function of that name in jax.nn.initializers with the key jax.random.fold_in(jax.random.key(seed),
   i), to a few units in the last place (f64: as exact as JAX's inverse of erf). A seed of 2^31 or more is as under jax_enable_x64.
   On failure nothing has changed. AX_PARSE_ERROR: bad syntax. AX_INVALID_ARGUMENT: a leaf that no pattern matches; a name that is
   no initialiser's; random numbers for a leaf of integers; a weight of fewer than two dimensions; a number that the dtype does not
   hold. */
AX_MUST_USE ax_status ax_tree_init(ax_tree *tree, const char *rules, uint64_t seed);

/* Copy the elements of a whole leaf into it. put: from dense row-major `data`: ax_tree_put(batch, x, "x"), x being an array of C.
   put_host: from a host array, whose dtype and shape must be the leaf's. AX_INVALID_ARGUMENT: data of another dtype than the leaf,
   or too short; no such leaf. */
AX_MUST_USE ax_status ax_tree_put(ax_tree *tree, ax_dtype element, const void *data, size_t bytes, const char *name, ...)
    AX_PRINTF(5, 6);
AX_MUST_USE ax_status ax_tree_put_host(ax_tree *tree, const ax_host_array *host, const char *name, ...) AX_PRINTF(3, 4);
/* Copy a whole leaf out, as ax_array_read and ax_array_to_host do. AX_INVALID_ARGUMENT besides: no such leaf; it holds nothing. */
AX_MUST_USE ax_status ax_tree_read(const ax_tree *tree, ax_dtype element, void *data, size_t bytes, const char *name, ...)
    AX_PRINTF(5, 6);
AX_MUST_USE ax_status ax_tree_to_host(const ax_tree *tree, ax_host_array *out, const char *name, ...) AX_PRINTF(3, 4);
/* The leaf's array, borrowed until the leaf changes; NULL: no such leaf, or it holds nothing. */
ax_array *ax_tree_get(const ax_tree *tree, const char *name, ...) AX_PRINTF(2, 3);
/* Puts an array into a leaf, which retains it. AX_INVALID_ARGUMENT: another type; no such leaf. */
AX_MUST_USE ax_status ax_tree_set(ax_tree *tree, ax_array *array, const char *name, ...) AX_PRINTF(3, 4);
/* Copies the elements of all leaves into the leaves of the same names in another tree. Both trees have the same names and types, in
   any order; specs, mesh and runtime may differ. AX_INVALID_ARGUMENT: a leaf that only one of them has, or whose type differs; a
   leaf of `from` that holds nothing. On failure nothing has changed. */
AX_MUST_USE ax_status ax_tree_copy(const ax_tree *from, ax_tree *to);

/* Read all leaves from an .npz file, or write them into it. Each leaf is a member with the leaf's name ("layers/0/w"), as NumPy
   reads and writes it. AX_INVALID_ARGUMENT: leaves that the file lacks, members that are no leaf, members of another type than
   their leaf (the message names the first five of each); when writing, a leaf that holds nothing. AX_IO_ERROR: as ax_npz_read and
   ax_npz_write. On failure nothing has changed. Collective where the mesh is spread over several processes (axle/processes.h): each
   reads the file, and process 0 writes it, to which all leaves are brought. */
AX_MUST_USE ax_status ax_tree_read_npz(ax_tree *tree, const char *path);
AX_MUST_USE ax_status ax_tree_write_npz(const ax_tree *tree, const char *path);

/* Reads leaves from a table of numbers, plain or gzipped, which is read once:
   ax_tree_read_csv(batch, "digits.csv.gz", "x: :360, :-1; labels: :360, -1"). parts: "PATTERN: PART; PATTERN: PART"; the first
   pattern that matches a leaf says which part of the table the leaf gets, as ax_csv_read_part has it, in the leaf's dtype. Leaves
   that no pattern matches keep what they hold. On failure nothing has changed. AX_PARSE_ERROR: bad syntax. AX_INVALID_ARGUMENT: a
   pattern that decides for no leaf; a part that does not fit the table, or whose shape is not its leaf's. AX_IO_ERROR: as
   ax_csv_read_part. */
AX_MUST_USE ax_status ax_tree_read_csv(ax_tree *tree, const char *path, const char *parts);

/* ax_jit of a body that takes the leaves of `in_def` and gives those of `out_def`. With a mesh, the body runs in a shard_map over
   it, as ax_tree_shard_map says. mesh NULL: it runs on whole leaves, whatever their specs. Donated leaves are a selection:
   &(ax_compile_options){.donate = ax_treedef_select(in_def, "params; state")}. `*out` is owned by the caller, NULL on failure.
   AX_INVALID_ARGUMENT, AX_ABSENT: as ax_trace, ax_tree_shard_map and ax_compile. */
AX_MUST_USE ax_status ax_tree_jit(ax_runtime *runtime, const ax_mesh *mesh, const ax_treedef *in_def, const ax_treedef *out_def,
                                  ax_fn body, const ax_compile_options *options, ax_executable **out);

/* Runs the executable with all leaves of the trees `in`, one tree after the other, as arguments. Its results become the leaves of
   the trees `out`, which release the arrays that they held; a tree may be in both lists. So a training step is one line, with
   donation or without:

     ax_tree_run(step, AX_TREES(params, state, batch), AX_TREES(metrics, params, state))

   ax_tree_run waits as ax_run does; ax_tree_run_start only starts the run, as ax_run_start. AX_INVALID_ARGUMENT: more or fewer
   leaves than the executable takes or gives; a leaf of another type, or that holds nothing, or whose array was donated before or
   is another runtime's (the message names the first five such leaves); an array that is donated and also in another leaf.
   Otherwise as ax_run. On failure no leaf has changed, except that the leaves donated to a run that had begun are gone: to read
   such a leaf, or to run on it, fails with a message that says so, until an array is put into it. */
#ifndef __cplusplus
#define AX_TREES(...) (uint32_t)(sizeof((ax_tree *[]){__VA_ARGS__}) / sizeof(ax_tree *)), ((ax_tree *[]){__VA_ARGS__})
#endif
AX_MUST_USE ax_status ax_tree_run(ax_executable *executable, uint32_t in_count, ax_tree *const *in, uint32_t out_count,
                                  ax_tree *const *out);
AX_MUST_USE ax_status ax_tree_run_start(ax_executable *executable, uint32_t in_count, ax_tree *const *in, uint32_t out_count,
                                        ax_tree *const *out);

#pragma GCC visibility pop

#ifndef __cplusplus /* lists with their counts, memory with its dtype (axle/type.h) */
#define ax_tree_read(tree, data, bytes, ...) \
  AX_LINED_STATUS(tree_read, tree, AX_ELEMENT(data), data, AX_WITHIN(data, bytes), __VA_ARGS__)
#define ax_tree_put(tree, data, ...) AX_LINED_STATUS(tree_put, tree, AX_MEMORY(data), __VA_ARGS__)
#define ax_treedef_create(names, types, specs, out) \
  AX_LINED_STATUS(treedef_create, AX_EXACTLY(names), AX_COUNTED(ax_type, types), AX_COUNTED(const char *, specs), out)
#define ax_treedef_join(prefixes, parts, out) AX_LINED_STATUS(treedef_join, prefixes, AX_COUNTED(ax_treedef *, parts), out)
#define ax_tree_map(f, x, out) AX_LINED_VOID(tree_map, f, AX_EXACTLY(x), AX_COUNTED(ax_value, out))
#define ax_tree_zip(f, a, b, out) \
  AX_LINED_VOID(tree_zip, f, AX_EXACTLY(a), AX_COUNTED(ax_value, b), AX_COUNTED(ax_value, out))
#define ax_tree_reduce(f, x) AX_LINED(tree_reduce, f, AX_EXACTLY(x))
#define ax_tree_scale(factor, x, out) AX_LINED_VOID(tree_scale, AX_X(factor), AX_EXACTLY(x), AX_COUNTED(ax_value, out))
#define ax_tree_ravel(leaves) AX_LINED(tree_ravel, AX_EXACTLY(leaves))
#define ax_tree_unravel(flat, like, out) AX_LINED_VOID(tree_unravel, flat, AX_EXACTLY(like), AX_COUNTED(ax_value, out))
#define ax_global_norm(leaves) AX_LINED(global_norm, AX_EXACTLY(leaves))
#define ax_tree_run(executable, in, out) \
  AX_LINED_STATUS(tree_run, executable, AX_COUNTED(ax_tree *, in), AX_COUNTED(ax_tree *, out))
#define ax_tree_run_start(executable, in, out) \
  AX_LINED_STATUS(tree_run_start, executable, AX_COUNTED(ax_tree *, in), AX_COUNTED(ax_tree *, out))
#define ax_tree_shard_map(mesh, in_def, out_def, body, in, out) \
  AX_LINED_VOID(tree_shard_map, mesh, in_def, out_def, body, AX_COUNTED(ax_value, in), AX_COUNTED(ax_value, out))
#endif

#ifndef AXLE_NO_LINES /* axle/line.h */
#define ax_treedef_parse(...) AX_LINED_STATUS(treedef_parse, __VA_ARGS__)
#define ax_treedef_with_specs(...) AX_LINED_STATUS(treedef_with_specs, __VA_ARGS__)
#define ax_treedef_select(...) AX_LINED_ANY(treedef_select, __VA_ARGS__)
#define ax_treedef_text(...) AX_LINED_STATUS(treedef_text, __VA_ARGS__)
#define ax_leaf(...) AX_LINED(leaf, __VA_ARGS__)
#define ax_leaves(...) AX_LINED_ANY(leaves, __VA_ARGS__)
#define ax_tree_create(...) AX_LINED_STATUS(tree_create, __VA_ARGS__)
#define ax_tree_init(...) AX_LINED_STATUS(tree_init, __VA_ARGS__)
#define ax_tree_put_host(...) AX_LINED_STATUS(tree_put_host, __VA_ARGS__)
#define ax_tree_to_host(...) AX_LINED_STATUS(tree_to_host, __VA_ARGS__)
#define ax_tree_set(...) AX_LINED_STATUS(tree_set, __VA_ARGS__)
#define ax_tree_copy(...) AX_LINED_STATUS(tree_copy, __VA_ARGS__)
#define ax_tree_read_npz(...) AX_LINED_STATUS(tree_read_npz, __VA_ARGS__)
#define ax_tree_write_npz(...) AX_LINED_STATUS(tree_write_npz, __VA_ARGS__)
#define ax_tree_read_csv(...) AX_LINED_STATUS(tree_read_csv, __VA_ARGS__)
#define ax_tree_jit(...) AX_LINED_STATUS(tree_jit, __VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif
#endif
