/* Arrays on devices into .npy files: one file, in which each process writes what it has. Process 0 creates it under another name
   and renames it once all are done; before, it is no one's.

     process 0   create, with its whole size --name--> all
     all         write their part, close it, agree
     process 0   rename, or remove; all agree

   A block whose runs are long is written from where it lies, by the first process that has it. Of short runs of several processes
   many would share a page or a stripe of the file system, which then goes from one machine to another with each of them, or is
   written by two at once. So each process gets a slab (array/moving.h), contiguous in the file, and writes that. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "array/joint.h"
#include "array/moving.h"
#include "array/pending.h"
#include "array/runtime.h"
#include "bridge/array_npy.h"
#include "base/choice.h"
#include "processes/collect.h"

enum { long_run = 64 << 10, slab_bytes = 16 << 20 };

typedef struct writing {
  const ax_array *array;
  const ax_layout *layout;
  const char *path;
  ax_processes *processes; /* NULL: this process writes alone */
  char header[AX_NPY_HEADER_BYTES], target[PATH_MAX], temporary[PATH_MAX];
  size_t header_bytes;
  uint64_t bytes; /* of the file */
  int file;       /* -1: it is not open */
  bool opened;    /* the array */
  bool made;      /* the file, by this process */
  bool told;      /* all processes know that it has failed */
  bool by_mpi;    /* MPI writes: AXLE_FILES=mpi */
} writing;

static ax_status refuse(const writing *w) { return ax_error(AX_IO_ERROR, "%s: cannot write: %s", w->path, strerror(errno)); }

static bool creates(const writing *w) { return w->processes == NULL || w->processes->rule.process == 0; }

/* --- The file --- */

static ax_status create(writing *w) {
  AX_TRY(ax_file_target(w->path, w->target));
  errno = EFBIG;
  if (!ax_file_may_hold(w->bytes)) return refuse(w);
  w->file = ax_file_beside(w->target, w->temporary, sizeof w->temporary);
  if (w->file < 0) return refuse(w);
  w->made = true;
  return ftruncate(w->file, (off_t)w->bytes) == 0 ? AX_OK : refuse(w);
}

/* Where the name means another file, or none, the processes do not see the same file system. */
static ax_status open_made(writing *w) {
  struct stat info;
  errno = EFBIG;
  if (!ax_file_may_hold(w->bytes)) return refuse(w);
  w->file = open(w->temporary, O_WRONLY | O_CLOEXEC);
  if (w->file < 0)
    return ax_error(AX_IO_ERROR, "%s: cannot write: %s: %s, which process 0 has made; do all processes see its files?", w->path,
                    w->temporary, strerror(errno));
  if (fstat(w->file, &info) == 0 && (uint64_t)info.st_size == w->bytes) return AX_OK;
  return ax_error(AX_IO_ERROR, "%s: cannot write: %s is not the file that process 0 has made", w->path, w->temporary);
}

static void describe(const void *context, ax_text *text) {
  const writing *w = context;
  ax_text_add(text, "writes ");
  ax_layout_text(text, w->layout);
  ax_text_add(text, w->by_mpi ? " into %s by MPI" : " into %s", w->path);
}

static ax_doing doing_of(const writing *w) {
  const uint64_t check = ax_hash_word(ax_hash_bytes(12 + w->by_mpi, w->path, strlen(w->path)), w->layout->hash);
  return (ax_doing){check | 1, describe, w, "ax_array_write_npy"};
}

static ax_status agree(const writing *w, ax_status status) {
  ax_doing doing = doing_of(w);
  if (w->processes == NULL) return status;
  if (status != AX_OK) doing.check = 0;
  return ax_agree(w->processes, &doing, status);
}

static ax_status learn_name(writing *w, ax_status status) {
  const ax_doing doing = doing_of(w);
  const uint32_t count = w->processes->rule.processes;
  ax_collected *names = ax_calloc(count, sizeof names[0]);
  if (names == NULL) return agree(w, status == AX_OK ? ax_out_of_memory(count * sizeof names[0]) : status);
  status = ax_collect_bytes(w->processes, &doing, status, AX_NONE, w->temporary, creates(w) ? strlen(w->temporary) : 0, names);
  if (status == AX_OK && !creates(w)) snprintf(w->temporary, sizeof w->temporary, "%s", (const char *)names[0].data);
  if (status == AX_OK) ax_collected_deinit(names, count);
  ax_free(names);
  return status;
}

/* --- Its contents --- */

static ax_status write_run(void *context, uint64_t place, char *data, size_t bytes) {
  const writing *w = context;
  while (bytes > 0) {
    const ssize_t count = pwrite(w->file, data, bytes, (off_t)place);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return refuse(w);
    place += (size_t)count;
    data += count;
    bytes -= (size_t)count;
  }
  return AX_OK;
}

/* The process with the least number of those that have a block. */
static bool writes_block(const writing *w, uint32_t block) {
  const ax_layout *layout = w->layout;
  if (w->processes == NULL) return true;
  for (uint32_t i = layout->first_holder[block]; i < layout->first_holder[block + 1]; i++)
    if (layout->holder[i] < w->processes->rule.process) return false;
  return ax_layout_has(layout, block);
}

static ax_status write_blocks(writing *w) {
  const ax_layout *layout = w->layout;
  int64_t start[AX_MAX_RANK];
  for (uint32_t b = 0; b < layout->blocks; b++) {
    if (!writes_block(w, b)) continue;
    ax_layout_offset(layout, b, start);
    AX_TRY(ax_box_move(&layout->type, &layout->block, start, w->header_bytes, w->array->parts->part[b], write_run, w));
  }
  return AX_OK;
}

static ax_status write_slab(writing *w, uint32_t slab, uint32_t count, void *data) {
  ax_type type;
  int64_t start[AX_MAX_RANK];
  ax_moving_slab(&w->layout->type, slab, count, &type, start);
  return ax_box_move(&w->layout->type, &type, start, w->header_bytes, data, write_run, w);
}

static size_t bytes_of_slab(const writing *w, uint32_t slab, uint32_t count) {
  ax_type type;
  int64_t start[AX_MAX_RANK];
  ax_moving_slab(&w->layout->type, slab, count, &type, start);
  return (size_t)ax_type_elems(&type) * ax_dtype_bytes(type.dtype);
}

/* All blocks are here: one slab after the other, so that they need little memory. */
static ax_status write_slabs_alone(writing *w) {
  const uint64_t wanted = (w->bytes + slab_bytes - 1) / slab_bytes;
  const uint32_t count = wanted < UINT32_MAX ? (uint32_t)wanted : UINT32_MAX;
  const size_t bytes = bytes_of_slab(w, 0, count); /* none is larger */
  void *data = ax_alloc(bytes);
  if (data == NULL) return ax_out_of_memory(bytes);
  ax_status status = AX_OK;
  for (uint32_t s = 0; s < count && status == AX_OK; s++) {
    ax_moving_fill_slab(w->layout, w->array->parts, s, count, data);
    status = write_slab(w, s, count, data);
  }
  ax_free(data);
  return status;
}

/* All processes wait for each other in MPI, so all must have come so far. */
static ax_status write_slab_by_mpi(writing *w, ax_status status, const void *data) {
  const ax_process_rule *rule = &w->processes->rule;
  ax_transport *transport = w->processes->transport;
  ax_type type;
  int64_t start[AX_MAX_RANK], place = 0;
  status = agree(w, status);
  w->told = status != AX_OK;
  if (status != AX_OK) return status;
  ax_moving_slab(&w->layout->type, rule->process, rule->processes, &type, start);
  for (uint32_t d = 0; d < type.rank; d++) place = place * w->layout->type.dims[d] + start[d];
  status = transport->write_file(transport, w->temporary, w->header_bytes + (uint64_t)place * ax_dtype_bytes(type.dtype), data,
                                 bytes_of_slab(w, rule->process, rule->processes), bytes_of_slab(w, 0, rule->processes));
  return status == AX_OK ? AX_OK : ax_error_context(status, "%s: cannot write: ", w->path);
}

/* Collective, so `status` is told if it is none. */
static ax_status write_slabs(writing *w, ax_status status) {
  const ax_process_rule *rule = &w->processes->rule;
  const size_t bytes = bytes_of_slab(w, rule->process, rule->processes);
  void *data = status == AX_OK ? ax_alloc(bytes) : NULL;
  if (status == AX_OK && data == NULL) status = ax_out_of_memory(bytes);
  const uint64_t begun = ax_processes_begun(w->processes);
  status = ax_moving_slabs(status, w->layout, status == AX_OK ? w->array->parts : NULL, data);
  w->told = status != AX_OK && ax_processes_begun(w->processes) != begun;
  if (w->by_mpi && !w->told) status = write_slab_by_mpi(w, status, data);
  else if (status == AX_OK) status = write_slab(w, rule->process, rule->processes, data);
  ax_free(data);
  return status;
}

static bool are_runs_long(const ax_layout *layout) {
  return layout->blocks == 1 || ax_box_runs_of(&layout->type, &layout->block).bytes >= long_run;
}

static ax_status write_elems(writing *w, ax_status status) {
  if (w->layout->block_bytes == 0) return status;
  if (are_runs_long(w->layout) && !w->by_mpi) return status == AX_OK ? write_blocks(w) : status;
  if (w->processes != NULL) return write_slabs(w, status);
  return status == AX_OK ? write_slabs_alone(w) : status;
}

static ax_status write_contents(writing *w, ax_status status) {
  if (status == AX_OK && creates(w)) status = write_run(w, 0, w->header, w->header_bytes);
  return write_elems(w, status);
}

/* --- All of it --- */

/* What the environment says, which may differ between processes: so all have it compared. */
static ax_status decide_how(writing *w) {
  static const ax_choice choice = {"files", "AXLE_FILES", {"offsets", "mpi"}};
  int by;
  AX_TRY(ax_choice_decide(&choice, 0, &by));
  w->by_mpi = by == 2 && w->processes != NULL;
  if (!w->by_mpi || w->processes->transport->write_file != NULL) return AX_OK;
  w->by_mpi = false;
  return ax_error(AX_ABSENT, "%s: AXLE_FILES says mpi, but these processes have no MPI", w->path);
}

static ax_status prepare(writing *w) {
  const ax_type *type = &w->layout->type;
  ax_host_array like = {.dtype = type->dtype, .rank = type->rank};
  memcpy(like.dims, type->dims, sizeof like.dims);
  AX_TRY(ax_npy_dtype_check(type->dtype, w->path));
  w->header_bytes = ax_npy_header(&like, w->header);
  w->bytes = w->header_bytes + (uint64_t)ax_type_elems(type) * ax_dtype_bytes(type->dtype);
  AX_TRY(ax_array_open(w->array));
  w->opened = true;
  return AX_OK;
}

/* What is written late may fail late. */
static ax_status close_file(writing *w, ax_status status) {
  const int file = w->file;
  w->file = -1;
  if (status == AX_OK && w->made && !ax_file_keep_mode(file, w->target)) status = refuse(w);
  if (file >= 0 && close(file) != 0 && status == AX_OK) status = refuse(w);
  return status;
}

static ax_status finish(writing *w, ax_status status) {
  if (w->made && status == AX_OK && rename(w->temporary, w->target) != 0) status = refuse(w);
  if (w->made && status != AX_OK) unlink(w->temporary);
  return status;
}

static ax_status write_together(writing *w, ax_status status) {
  status = learn_name(w, status);
  if (status != AX_OK) return finish(w, close_file(w, status));
  if (!creates(w)) status = open_made(w); /* by MPI too: Open MPI 4.1 waits for ever where a process does not find the file */
  status = close_file(w, write_contents(w, status));
  if (!w->told) status = agree(w, status);
  if (status != AX_OK) return finish(w, status);
  return agree(w, finish(w, AX_OK));
}

/* The others write. */
static ax_status refuse_path(const ax_layout *layout) {
  ax_joint joint;
  ax_joint_begin(&joint, layout->runtime, layout->map != NULL, &(ax_doing){.what = "ax_array_write_npy"});
  return ax_joint_end(&joint, ax_require(NULL, "path"));
}

ax_status ax_array_write_npy(const ax_array *array, const char *path) {
  AX_TRY(ax_require(array, "array"));
  const ax_layout *layout = array->layout;
  if (path == NULL) return refuse_path(layout);
  writing w = {.array = array,
               .layout = layout,
               .path = path,
               .processes = layout->map != NULL ? layout->runtime->executor.processes : NULL,
               .file = -1};
  if (w.processes != NULL) ax_pending_wait_together(layout->runtime);
  ax_status status = decide_how(&w);
  if (status == AX_OK) status = prepare(&w);
  if (status == AX_OK && creates(&w)) status = create(&w);
  if (w.processes != NULL) status = write_together(&w, status);
  else status = finish(&w, close_file(&w, write_contents(&w, status)));
  if (w.opened) ax_array_close(array);
  return status;
}
