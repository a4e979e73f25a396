/* The inside of shard_map, for those who lay out arrays and export programs by it. */
#ifndef AX_MESH_SHARD_MAP_H
#define AX_MESH_SHARD_MAP_H

#include "ir/program.h"

typedef struct ax_shard_map_params {
  ax_mesh mesh;   /* its axes' `unchecked` is false; the field below says. All are new inside, or all are automatic around it */
  bool unchecked;
  ax_specs in_specs, out_specs; /* axis numbers are those of `mesh` */
  ax_program *body;
} ax_shard_map_params;

/* The axes that its body takes by hand, of the body's environment. */
ax_axis_set ax_shard_map_own(const ax_shard_map_params *params);
/* Whether the mesh's axes are automatic in this environment: then they become the body's, and no devices are added. */
bool ax_mesh_is_around(const ax_mesh *mesh, const ax_mesh *axes);
/* AX_INVALID_ARGUMENT: why an axis of a mesh that is not around as a whole is not new in this environment. */
AX_MUST_USE ax_status ax_mesh_check_new(const ax_axis *axis, const ax_mesh *axes);
/* A spec of one mesh's axes as one of another's, which has those that it names. */
void ax_spec_renumber(ax_spec *spec, const ax_mesh *from, const ax_mesh *to);

/* shard_map_transform.c: the record's rules that make shard_maps of shard_maps. */
void ax_shard_map_jvp(const ax_jvp_args *args);
void ax_shard_map_linearize(const ax_jvp_args *args);
void ax_shard_map_transpose(const ax_transpose_args *args);
void ax_shard_map_batch(const ax_batch_args *args);
ax_status ax_shard_map_prune(const ax_prune_args *args);
/* What stands for one operand or result. */
typedef enum ax_saying {
  AX_SAYS_SPEC,
  AX_SAYS_NOTHING, /* "?" */
  AX_SAYS_AUTO     /* "auto" */
} ax_saying;
/* "data; _,model -> data; ": the specs of so many operands and results. sayings: to fill, for the operands, then the results; NULL:
   there are only specs, in which no dimension is open. AX_INVALID_ARGUMENT: as ax_shard_map says. */
AX_MUST_USE ax_status ax_parse_specs(const char *specs, uint32_t in_count, uint32_t out_count, const ax_mesh *mesh, ax_spec *in,
                                     ax_spec *out, ax_saying *sayings);

/* Binds the shard_map of a function here: mesh, unchecked and out_specs are in `params`, which gets the rest. in_specs: one for
   each operand. Messages begin with `owner`, the function that the user called. On failure the trace has failed. */
void ax_shard_map_trace(const char *owner, ax_shard_map_params *params, const ax_spec *in_specs, ax_fn function, const ax_value *in,
                        ax_value *out);

#endif
