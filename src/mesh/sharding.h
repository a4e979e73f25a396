/* The layout of an array over a mesh by a spec: the shape of a block, the block that a device holds, and the block's first index.

     f32[8,6], P(data, model+pipe) on data=2, model=3, pipe=1:   blocks f32[4,2]; block (i, j) begins at [4 i, 2 j]

   Devices that differ only along axes the spec does not name hold the same block; the first of them is the one whose
   coordinates along those axes are 0. Plain functions of their arguments: any thread. */
#ifndef AX_MESH_SHARDING_H
#define AX_MESH_SHARDING_H

#include "ir/program.h"

/* The number of parts that dimension `dim` is cut into. */
int64_t ax_shard_parts(const ax_spec *spec, const ax_mesh *mesh, uint32_t dim);

/* The type of a block; axis sets as in `whole`. AX_INVALID_ARGUMENT: the spec has more entries than there are dimensions; a
   dimension that its axes do not divide. */
AX_MUST_USE ax_status ax_shard_type(const ax_type *whole, const ax_spec *spec, const ax_mesh *mesh, ax_type *out);
/* The same for dimensions that the axes need not divide: all blocks have the size of the first, and the part behind the end of the
   array is padding. */
AX_MUST_USE ax_status ax_shard_padded(const ax_type *whole, const ax_spec *spec, const ax_mesh *mesh, ax_type *out);
/* Says whether the axes divide dimension `dim` of the array; spec NULL: the array is whole. */
bool ax_shard_divides(const ax_type *whole, const ax_spec *spec, const ax_mesh *mesh, uint32_t dim);
/* The type of the array whose blocks are of type `block`. Errors as above; sizes that overflow. */
AX_MUST_USE ax_status ax_unshard_type(const ax_type *block, const ax_spec *spec, const ax_mesh *mesh, ax_type *out);

/* The first index of the block of `device`, along each dimension. */
void ax_shard_offset(const ax_type *block, const ax_spec *spec, const ax_mesh *mesh, int64_t device, int64_t *offset);

/* Blocks are numbered 0 .. ax_shard_count in mesh order: row-major by coordinates along the axes that the spec names, as the mesh
   has them in order, whatever dimensions they cut. Arrays store their blocks in this order. */
int64_t ax_shard_count(const ax_spec *spec, const ax_mesh *mesh);
/* The first device that holds block `number`. */
int64_t ax_shard_device(const ax_spec *spec, const ax_mesh *mesh, int64_t number);
/* The number of the block that is part part[d] along each dimension d < rank. */
int64_t ax_shard_number(const ax_spec *spec, const ax_mesh *mesh, const int64_t *part);

/* Copies the block that begins at `offset` out of, or into, an array; both dense and row-major. */
void ax_shard_read(const ax_type *whole, const void *from, const int64_t *offset, const ax_type *block, void *to);
void ax_shard_write(const ax_type *block, const void *from, const int64_t *offset, const ax_type *whole, void *to);
/* Copies the elements that two blocks of one array have in common. `from` begins at from_offset, `to` at to_offset. Both are dense
   and row-major. */
void ax_shard_copy(const ax_type *from, const int64_t *from_offset, const void *source, const ax_type *to, const int64_t *to_offset,
                   void *target);

#endif
