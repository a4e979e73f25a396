/* Arrays on devices, from .npy files.

   A block whose runs are long is read run by run, into its place. Of shorter runs a file system reads whole pages anyway, with what
   lies between them. So the box around all blocks of this process is widened until its runs are long, and read in chunks, of which
   the blocks take what is theirs. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "array/executable.h"
#include "array/joint.h"
#include "array/runtime.h"
#include "bridge/array_npy.h"
#include "mesh/sharding.h"

enum { long_run = 4096, chunk_bytes = 4 << 20 };

/* --- Runs --- */

ax_box_runs ax_box_runs_of(const ax_type *whole, const ax_type *box) {
  uint32_t lead = box->rank;
  while (lead > 0 && box->dims[lead - 1] == whole->dims[lead - 1]) lead--;
  if (lead > 0) lead--;
  const size_t item = ax_dtype_bytes(box->dtype);
  if (ax_type_elems(box) == 0) return (ax_box_runs){0};
  return (ax_box_runs){(size_t)ax_dims_elems(box->rank - lead, box->dims + lead) * item, ax_dims_elems(lead, box->dims), lead};
}

ax_status ax_box_move(const ax_type *whole, const ax_type *box, const int64_t *start, uint64_t at, void *data, ax_run_mover *move,
                      void *context) {
  const ax_box_runs runs = ax_box_runs_of(whole, box);
  const size_t item = ax_dtype_bytes(box->dtype);
  int64_t index[AX_MAX_RANK] = {0};
  for (int64_t r = 0; r < runs.count; r++) {
    int64_t place = 0;
    for (uint32_t d = 0; d < box->rank; d++) place = place * whole->dims[d] + start[d] + index[d];
    AX_TRY(move(context, at + (uint64_t)place * item, (char *)data + (size_t)r * runs.bytes, runs.bytes));
    for (uint32_t d = runs.lead; d-- > 0 && ++index[d] == box->dims[d];) index[d] = 0;
  }
  return AX_OK;
}

/* --- Reading boxes --- */

static ax_status read_run(void *context, uint64_t place, char *data, size_t bytes) {
  const ax_npy_file *file = context;
  for (size_t done = 0; done < bytes;) {
    const ssize_t count = pread(file->file, data + done, bytes - done, (off_t)(place + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return ax_error(AX_IO_ERROR, "%s: cannot read: %s", file->path, strerror(errno));
    if (count == 0) return ax_error(AX_IO_ERROR, "%s: cut short while it was read", file->path);
    done += (size_t)count;
  }
  return AX_OK;
}

static ax_status read_box(ax_npy_file *file, const ax_type *whole, const ax_type *box, const int64_t *start, void *data) {
  return ax_box_move(whole, box, start, file->start, data, read_run, file);
}

typedef struct loading {
  ax_npy_file *file;
  const ax_layout *layout;
  const ax_parts *parts;
} loading;

static ax_status read_blocks(const loading *l) {
  const ax_layout *layout = l->layout;
  int64_t start[AX_MAX_RANK];
  for (uint32_t b = 0; b < layout->blocks; b++) {
    if (!ax_layout_has(layout, b)) continue;
    ax_layout_offset(layout, b, start);
    AX_TRY(read_box(l->file, &layout->type, &layout->block, start, l->parts->part[b]));
  }
  return AX_OK;
}

/* --- Reading in chunks --- */

typedef struct region { /* a box */
  ax_type type;
  int64_t start[AX_MAX_RANK];
} region;

/* The box around all blocks of this process, which has some. */
static region around_blocks(const ax_layout *layout) {
  region r = {.type = layout->type};
  int64_t start[AX_MAX_RANK], end[AX_MAX_RANK] = {0};
  memcpy(r.start, layout->type.dims, sizeof r.start);
  for (uint32_t b = 0; b < layout->blocks; b++) {
    if (!ax_layout_has(layout, b)) continue;
    ax_layout_offset(layout, b, start);
    for (uint32_t d = 0; d < layout->type.rank; d++) {
      const int64_t block_end = start[d] + layout->block.dims[d];
      if (start[d] < r.start[d]) r.start[d] = start[d];
      if (block_end > end[d]) end[d] = block_end;
    }
  }
  for (uint32_t d = 0; d < layout->type.rank; d++) r.type.dims[d] = end[d] - r.start[d];
  return r;
}

static void widen(const ax_type *whole, region *r) {
  for (uint32_t d = whole->rank; d-- > 0 && ax_box_runs_of(whole, &r->type).bytes < long_run;) {
    r->start[d] = 0;
    r->type.dims[d] = whole->dims[d];
  }
}

static ax_status read_chunk(const loading *l, const region *chunk, void *data) {
  const ax_layout *layout = l->layout;
  int64_t start[AX_MAX_RANK];
  AX_TRY(read_box(l->file, &layout->type, &chunk->type, chunk->start, data));
  for (uint32_t b = 0; b < layout->blocks; b++) {
    if (!ax_layout_has(layout, b)) continue;
    ax_layout_offset(layout, b, start);
    ax_shard_copy(&chunk->type, chunk->start, data, &layout->block, start, l->parts->part[b]);
  }
  return AX_OK;
}

/* The dimension that chunks are cut along: of one index each in those before it. *most: indices of a chunk along it. */
static uint32_t chunk_dimension(const region *r, int64_t *most) {
  uint32_t d = 0;
  size_t bytes = (size_t)ax_type_elems(&r->type) * ax_dtype_bytes(r->type.dtype);
  for (; d + 1 < r->type.rank && bytes / (size_t)r->type.dims[d] > chunk_bytes; d++) bytes /= (size_t)r->type.dims[d];
  const size_t one = bytes / (size_t)r->type.dims[d];
  *most = one < chunk_bytes ? (int64_t)(chunk_bytes / one) : 1;
  return d;
}

/* Goes on to the next chunk. False: there is none. */
static bool next_chunk(const region *r, uint32_t d, int64_t most, region *chunk) {
  chunk->start[d] += chunk->type.dims[d];
  for (uint32_t i = d; chunk->start[i] == r->start[i] + r->type.dims[i];) {
    chunk->start[i] = r->start[i];
    if (i == 0) return false;
    chunk->start[--i]++;
  }
  const int64_t left = r->start[d] + r->type.dims[d] - chunk->start[d];
  chunk->type.dims[d] = left < most ? left : most;
  return true;
}

static ax_status read_chunks(const loading *l) {
  region r = around_blocks(l->layout);
  int64_t most;
  widen(&l->layout->type, &r);
  const uint32_t d = chunk_dimension(&r, &most);
  region chunk = r;
  for (uint32_t i = 0; i < d; i++) chunk.type.dims[i] = 1;
  if (most < chunk.type.dims[d]) chunk.type.dims[d] = most;
  const size_t bytes = (size_t)ax_type_elems(&chunk.type) * ax_dtype_bytes(chunk.type.dtype);
  void *data = ax_alloc(bytes);
  if (data == NULL) return ax_out_of_memory(bytes);
  ax_status status = AX_OK;
  do status = read_chunk(l, &chunk, data);
  while (status == AX_OK && next_chunk(&r, d, most, &chunk));
  ax_free(data);
  return status;
}

/* --- Arrays --- */

static ax_status check_type(const ax_npy_file *file, const ax_layout *layout) {
  const ax_type type = ax_array_type(file->array.dtype, AX_LIST(file->array.rank, file->array.dims));
  if (type.dtype == layout->type.dtype && ax_same_shape(&type, &layout->type)) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "%s: has %s, not %s", file->path, ax_type_string(&type, NULL),
                  ax_type_string(&layout->type, NULL));
}

static ax_status read_parts(const loading *l) {
  const ax_layout *layout = l->layout;
  const bool is_long = ax_box_runs_of(&layout->type, &layout->block).bytes >= long_run;
  if (layout->block_bytes == 0 || layout->here_count == 0) return AX_OK;
  AX_TRY(is_long || layout->blocks == 1 ? read_blocks(l) : read_chunks(l));
  for (uint32_t b = 0; b < layout->blocks; b++)
    if (ax_layout_has(layout, b)) ax_npy_decode_elems(l->file, l->parts->part[b], ax_type_elems(&layout->block));
  return AX_OK;
}

/* In Fortran's order a block is as scattered as can be. Such a file is read whole. */
static ax_status load_whole(const ax_npy_file *file, ax_layout *layout, ax_array **out) {
  ax_host_array host;
  AX_TRY(ax_npy_read(file->path, &host));
  ax_status status = ax_array_of_data(layout->runtime, layout, host.data, out);
  ax_host_array_release(&host);
  return status;
}

ax_status ax_npy_load(ax_npy_file *file, ax_layout *layout, ax_array **out) {
  ax_parts *parts;
  *out = NULL;
  AX_TRY(check_type(file, layout));
  if (file->fortran) return load_whole(file, layout, out);
  AX_TRY(ax_parts_create(layout->runtime, layout, &parts));
  ax_status status = read_parts(&(loading){file, layout, parts});
  if (status == AX_OK) status = ax_array_create(layout, parts, out);
  if (status != AX_OK) ax_parts_release(parts);
  return status;
}

/* --- Together --- */

typedef struct reading { /* what processes compare */
  const char *path;
  const ax_layout *layout; /* NULL: it has failed before */
} reading;

static void describe(const void *context, ax_text *text) {
  const reading *r = context;
  ax_text_add(text, "reads ");
  ax_layout_text(text, r->layout);
  ax_text_add(text, " from %s", r->path);
}

static uint64_t digest(const reading *r) {
  return r->layout != NULL ? ax_hash_word(ax_hash_bytes(11, r->path, strlen(r->path)), r->layout->hash) | 1 : 0;
}

/* Ends in all processes as in the first that has failed. */
static ax_status agree(ax_runtime *runtime, bool is_joint, const reading *r, ax_status status, ax_array **out) {
  ax_joint joint;
  ax_joint_begin(&joint, runtime, is_joint, &(ax_doing){digest(r), describe, r, "ax_array_from_npy"});
  status = ax_joint_end(&joint, status);
  if (status == AX_OK) return AX_OK;
  ax_array_release(*out);
  *out = NULL;
  return status;
}

/* A path may be missing in one process alone. */
static ax_status open_at(const char *path, ax_npy_file *file) {
  *file = (ax_npy_file){.file = -1};
  AX_TRY(ax_require(path, "path"));
  return ax_npy_open(path, file);
}

ax_status ax_npy_load_path(const char *path, ax_layout *layout, ax_array **out) {
  ax_npy_file file;
  *out = NULL;
  ax_status status = open_at(path, &file);
  if (status == AX_OK) status = ax_npy_load(&file, layout, out);
  ax_npy_close(&file);
  return agree(layout->runtime, layout->map != NULL, &(reading){path, path != NULL ? layout : NULL}, status, out);
}

ax_status ax_npy_type(const char *path, ax_type *out) {
  ax_npy_file file;
  *out = (ax_type){0};
  AX_TRY(ax_npy_open(path, &file));
  *out = ax_array_type(file.array.dtype, AX_LIST(file.array.rank, file.array.dims));
  ax_npy_close(&file);
  return AX_OK;
}

ax_status ax_array_from_npy(ax_runtime *runtime, const ax_mesh *mesh, const char *spec, const char *path, ax_array **out) {
  ax_npy_file file;
  ax_layout *layout = NULL;
  *out = NULL;
  AX_TRY(ax_require(runtime, "runtime"));
  ax_status status = open_at(path, &file);
  const ax_type type = ax_array_type(file.array.dtype, AX_LIST(file.array.rank, file.array.dims));
  if (status == AX_OK) status = ax_layout_describe("array_from_npy", runtime, mesh, spec, &type, &layout);
  if (status == AX_OK) status = ax_npy_load(&file, layout, out);
  ax_npy_close(&file);
  const bool is_joint = mesh != NULL && ax_mesh_devices(mesh) > 1;
  status = agree(runtime, is_joint, &(reading){path, layout}, status, out);
  ax_layout_release(layout);
  return status;
}

ax_status ax_executable_put_npy(const ax_executable *e, uint32_t index, const char *path, ax_array **out) {
  *out = NULL;
  AX_TRY(ax_require(e, "executable"));
  if (index >= e->signature.in_count)
    return ax_error(AX_INVALID_ARGUMENT, "executable_put_npy: there is no input %u; the program takes %u", index,
                    e->signature.in_count);
  return ax_npy_load_path(path, e->wanted[index], out);
}
