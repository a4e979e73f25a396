/* Parameters of sharding_constraint, for the partitioner. */
#ifndef AX_MESH_CONSTRAINT_H
#define AX_MESH_CONSTRAINT_H

#include "axle/exec.h"
#include "mesh/shard_map.h"

typedef struct ax_constraint_params {
  ax_mesh mesh;   /* without flags. All its axes are automatic in the environment, or none is in it */
  ax_specs specs; /* one; axis numbers are those of `mesh` */
} ax_constraint_params;

/* Says whether the constraint lays out a value over axes that are automatic in this environment. */
bool ax_constraint_is_around(const ax_constraint_params *params, const ax_mesh *axes);

/* x laid out, as ax_with_sharding, by a spec over a sound mesh; its dimensions may be open. */
ax_value ax_lay_out(ax_value x, const ax_mesh *mesh, const ax_spec *spec);

/* Parts whose sum x is: T[d..] -> T[size, d..]. What each has is not said, so that devices may keep theirs. */
ax_value ax_sum_parts(ax_value x, int64_t size);

/* Both values, laid out alike. Errors: values of different dimensions. */
void ax_shard_alike(const ax_value in[2], ax_value out[2]);

/* The layout that an input takes from the array which is given for it. */
typedef struct ax_array_layout {
  const ax_mesh *mesh; /* NULL: the input's layout is open */
  const ax_spec *spec;
} ax_array_layout;

/* Layouts given for a program's inputs, then for its results. */
typedef struct ax_given {
  ax_spec *specs;
  ax_saying *sayings;
  const ax_array_layout *like; /* by input: the mesh of its spec, if that is the array's own; NULL: all specs are over the
                                  program's mesh */
} ax_given;
/* Adds constraints to the inputs and results that have a spec. */
AX_MUST_USE ax_status ax_program_given(const ax_program *program, const ax_mesh *mesh, const ax_given *given, ax_program **out);
/* As ax_program_with_shardings; an input that `specs` leaves open is laid out as its array is. mesh and specs may both be NULL, and
   so may `like`. processes: for which "auto" chooses; NULL: one. */
AX_MUST_USE ax_status ax_program_laid_like(const ax_program *program, const ax_mesh *mesh, const char *specs,
                                           const ax_process_layout *processes, const ax_array_layout *like, ax_program **out);
/* Chooses specs for the inputs and results marked "auto" (choose.c), or leaves them to propagation. */
AX_MUST_USE ax_status ax_given_choose(const ax_program *program, const ax_mesh *mesh, const ax_process_layout *processes,
                                      ax_given *given);

#endif
