/* Named trees of arrays: parameters, optimiser states, batches. Initialisers, optimisers and schedules stand on them.

     treedef    what there is: leaves in order, each a name ("layers/0/w"), a type and a spec
     leaves     in a trace: a plain array of ax_value in the treedef's order
     tree       in a runtime: a treedef and an ax_array for each of its leaves

   A leaf's name is words of letters, digits, `_`, `-` and `.` with "/" between them, AX_MAX_LEAF_NAME bytes at most with the NUL. What
   stands before a "/" names a node: the leaves below it. A node is no leaf.

   Everything takes time in proportion to the leaves. */
// Patterns pick leaves by name: `*` stands for any characters, "/" among them, and `?` for one. A pattern means the leaves whose name
// it matches, and those below a node whose name it matches. "*/" at its beginning may also stand for nothing. So "*" is every leaf,
// "params" what is below params, "*/w" each w, at the top or below anything, and "layers/*/w" those below layers.
#ifndef AXLE_TREE_H
#define AXLE_TREE_H

#include "axle/exec.h"
#include "axle/npy.h"
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

/* Parses "NAME: TYPE @ SPEC" entries, each ended by ";" or a line's end; " @ SPEC" may be missing: "". `#` begins a comment. In names {a,b}
   stands for each of a and b, and {0..11} for each number, as in a shell:

     layers/{0..11}/{q,k,v}: f32[64,64] @ _,model
     layers/{0..11}/scale:   f32[64]

   Leaves are numbered as they come, in what one entry stands for the last braces fastest. `*out` is owned by the caller, NULL on failure.
   AX_PARSE_ERROR, with line, column and a caret: bad syntax; a name twice, or that of a leaf and a node; a spec with more entries than
   dimensions, or an axis twice; too many leaves. Whether a mesh has the axes, and they divide, is seen where the leaves meet one. */
AX_MUST_USE ax_status ax_treedef_parse(const char *text, ax_treedef **out);
/* Of lists with `count` entries each; specs NULL: all "". AX_INVALID_ARGUMENT: as ax_treedef_parse, and an unsound type. */
AX_MUST_USE ax_status ax_treedef_create(uint32_t count, const char *const *names, const ax_type *types, const char *const *specs,
                                        ax_treedef **out);
/* The parts' leaves one after the other, each below the node prefixes[i]: {"params", "opt", "batch"}. An empty prefix adds nothing.
   AX_INVALID_ARGUMENT: a name twice, or that of a leaf and a node; a name that gets too long. */
AX_MUST_USE ax_status ax_treedef_join(uint32_t count, const char *const *prefixes, ax_treedef *const *parts, ax_treedef **out);
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
/* All types, as ax_trace takes them; all specs in one text with "; " between, as ax_shard_map takes them for operands or results. Borrowed. */
const ax_type *ax_treedef_types(const ax_treedef *def);
const char *ax_treedef_specs(const ax_treedef *def);
/* The leaf of that name, or -1. The name is a format, as printf's: ax_treedef_find(def, "layers/%d/w", i). */
int64_t ax_treedef_find(const ax_treedef *def, const char *name, ...) AX_PRINTF(2, 3);
/* The numbers of the leaves that `patterns` means: "params; opt". Patterns with ";" between them; for each leaf the first that matches
   decides, and one that begins with "!" leaves it out: "!_*; params" is what is below params but for the names that begin with "_".
   Good for `wrt` of derivatives and for what is donated. A list is kept by the treedef, for as long as it lives.
   When a pattern is bad, nothing is selected or there is no memory, the result is one that every function refuses; ax_message says why,
   and so does the trace in progress. */
ax_args ax_treedef_select(const ax_treedef *def, const char *patterns);
/* As ax_treedef_parse reads it, a line a leaf. `*out`: ax_string_free. */
AX_MUST_USE ax_status ax_treedef_text(const ax_treedef *def, char **out);

#pragma GCC visibility pop

#ifndef AXLE_NO_LINES /* axle/line.h */
#define ax_treedef_parse(...) AX_LINED_STATUS(treedef_parse, __VA_ARGS__)
#define ax_treedef_create(...) AX_LINED_STATUS(treedef_create, __VA_ARGS__)
#define ax_treedef_join(...) AX_LINED_STATUS(treedef_join, __VA_ARGS__)
#define ax_treedef_with_specs(...) AX_LINED_STATUS(treedef_with_specs, __VA_ARGS__)
#define ax_treedef_text(...) AX_LINED_STATUS(treedef_text, __VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif
#endif
