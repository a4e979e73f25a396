/* Parameters of shard_map, for files that lay out arrays and export programs. */
#ifndef AX_MESH_SHARD_MAP_H
#define AX_MESH_SHARD_MAP_H

#include "ir/program.h"

typedef struct ax_shard_map_params {
  ax_mesh mesh;   /* the flags `unchecked` of its axes are false; the field below has the flag. All axes are new inside, or all are
                     automatic around it */
  bool unchecked;
  ax_specs in_specs, out_specs; /* axis numbers are those of `mesh` */
  ax_program *body;
} ax_shard_map_params;

/* The axes that the body uses by hand, as axes of the body's environment. */
ax_axis_set ax_shard_map_own(const ax_shard_map_params *params);
/* Says whether the mesh's axes are automatic in this environment. They then become the body's axes, and no devices are added. */
bool ax_mesh_is_around(const ax_mesh *mesh, const ax_mesh *axes);
/* AX_INVALID_ARGUMENT: an axis of a mesh whose axes are not all automatic around it exists in this environment; the message says
   how. */
AX_MUST_USE ax_status ax_mesh_check_new(const ax_axis *axis, const ax_mesh *axes);
/* Renumbers the axes of a spec over one mesh to those of another mesh with the same names. */
void ax_spec_renumber(ax_spec *spec, const ax_mesh *from, const ax_mesh *to);

/* shard_map_transform.c: rules whose results are shard_maps again. */
void ax_shard_map_jvp(const ax_jvp_args *args);
void ax_shard_map_linearize(const ax_jvp_args *args);
void ax_shard_map_transpose(const ax_transpose_args *args);
void ax_shard_map_batch(const ax_batch_args *args);
ax_status ax_shard_map_prune(const ax_prune_args *args);
/* The entry for one operand or result in a text of specs. */
typedef enum ax_saying {
  AX_SAYS_SPEC,
  AX_SAYS_NOTHING, /* "?" */
  AX_SAYS_AUTO     /* "auto" */
} ax_saying;
/* Parses specs of operands and results: "data; _,model -> data; ". sayings: filled in for the operands, then the results; NULL:
   only specs without open dimensions are allowed. AX_INVALID_ARGUMENT: as ax_shard_map says. */
AX_MUST_USE ax_status ax_parse_specs(const char *specs, uint32_t in_count, uint32_t out_count, const ax_mesh *mesh, ax_spec *in,
                                     ax_spec *out, ax_saying *sayings);

/* Binds the shard_map of a function. `params` has mesh, unchecked and out_specs, and gets the rest. in_specs: one for each operand.
   Messages begin with `owner`, the function that the user called. On failure the trace has failed. */
void ax_shard_map_trace(const char *owner, ax_shard_map_params *params, const ax_spec *in_specs, ax_fn function, const ax_value *in,
                        ax_value *out);

#endif
