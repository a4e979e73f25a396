/* The inside of sharding_constraint, for the partitioner. */
#ifndef AX_MESH_CONSTRAINT_H
#define AX_MESH_CONSTRAINT_H

#include "mesh/shard_map.h"

typedef struct ax_constraint_params {
  ax_mesh mesh;   /* without flags. All its axes are automatic around it, or none is there */
  ax_specs specs; /* one; axis numbers are those of `mesh` */
} ax_constraint_params;

/* Whether it says how a value lies over axes that are automatic in this environment. */
bool ax_constraint_is_around(const ax_constraint_params *params, const ax_mesh *axes);

/* How an array lies that is to be an input. */
typedef struct ax_lying {
  const ax_mesh *mesh; /* NULL: nothing is said of the input */
  const ax_spec *spec;
} ax_lying;

/* What is said of a program's inputs, then of its results. */
typedef struct ax_given {
  ax_spec *specs;
  ax_saying *sayings;
  const ax_lying *like; /* by input: the mesh of its spec, where that is the array's; NULL: none */
} ax_given;
/* The program with constraints on those of which a spec is given. */
AX_MUST_USE ax_status ax_program_given(const ax_program *program, const ax_mesh *mesh, const ax_given *given, ax_program **out);
/* As ax_program_with_shardings; inputs of which `specs` say nothing lie as their arrays do. mesh and specs may be NULL, together,
   and `like`. */
AX_MUST_USE ax_status ax_program_laid_like(const ax_program *program, const ax_mesh *mesh, const char *specs, const ax_lying *like,
                                           ax_program **out);
/* Gives specs to those that are to be chosen (choose.c), or leaves them to propagation. */
AX_MUST_USE ax_status ax_given_choose(const ax_program *program, const ax_mesh *mesh, ax_given *given);

#endif
