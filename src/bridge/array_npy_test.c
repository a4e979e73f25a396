/* Arrays on devices from .npy files and into them: in several processes, which are threads of this one, the files are those that
   one process makes, and all read the same. */
#include "bridge/array_npy.h"

#include <fcntl.h>

#include "array/moving.h"
#include "array/runtime.h"
#include "axle/ops.h"
#include "axle/processes.h"
#include "bridge/files_test.h"
#include "support/jobs.h"
#include "support/run.h"

static const char mesh_text[] = "x=4,y=2";
static const char *const specs[] = {"", "x", "y", "_,x", "_,y", "x,y", "y,x", "x+y", "y+x", "_,y+x"};

/* Names that stay, unlike in_folder's. */
enum { WANTED, OURS, OWN, OTHER, BAD, ONE, NO_SUCH, OLD, HOSTILE, IN };
static const char *at(int file) {
  static const char *const names[] = {"wanted.npy", "ours.npy", "own.npy", "other.npy", "bad.npy", "one.npy", "no/such.npy",
                                      "old.npy", "hostile.npy", "in.npy"};
  static char paths[AX_COUNT(names)][PATH_MAX];
  if (paths[file][0] == '\0') snprintf(paths[file], PATH_MAX, "%s", in_folder(names[file]));
  return paths[file];
}

/* --- Contents: each element is its index --- */

static ax_host_array indices(const ax_type *type) {
  const int64_t elems = ax_type_elems(type);
  ax_host_array host = {.dtype = type->dtype, .rank = type->rank, .data = ax_alloc((size_t)elems * 4)};
  memcpy(host.dims, type->dims, sizeof host.dims);
  for (int64_t i = 0; i < elems; i++) ((float *)host.data)[i] = (float)i;
  return host;
}

/* The element of the whole that element i of a shard is. */
static int64_t element_of(const ax_type *whole, const ax_shard *shard, int64_t i) {
  int64_t at = 0, scale = 1;
  for (uint32_t d = whole->rank; d-- > 0;) {
    at += (shard->start[d] + i % shard->type.dims[d]) * scale;
    i /= shard->type.dims[d];
    scale *= whole->dims[d];
  }
  return at;
}

static bool is_right(const ax_type *whole, const ax_shard *shard) {
  const int64_t elems = ax_type_elems(&shard->type), row = whole->rank > 0 ? shard->type.dims[whole->rank - 1] : 1;
  for (int64_t i = 0; i < elems; i += row) {
    const int64_t first = element_of(whole, shard, i);
    for (int64_t k = 0; k < row; k++)
      if (((const float *)shard->data)[i + k] != (float)(first + k)) return false;
  }
  return true;
}

static ax_status check_array(const ax_array *array) {
  for (uint32_t i = 0; i < ax_array_addressable_count(array); i++) {
    ax_shard shard;
    AX_TRY(ax_array_addressable_shard(array, i, &shard));
    TEST_HERE(is_right(ax_array_typeof(array), &shard));
  }
  return AX_OK;
}

static ax_status put(ax_runtime *runtime, const ax_mesh *mesh, const char *spec, const ax_type *type, ax_array **out) {
  ax_host_array host = indices(type);
  ax_status status = ax_device_put(runtime, mesh, spec, &host, out);
  ax_host_array_release(&host);
  return status;
}

static bool same_files(const char *a, const char *b) {
  size_t bytes, others;
  unsigned char *one = file_get(a, &bytes), *other = file_get(b, &others);
  const bool same = bytes == others && memcmp(one, other, bytes) == 0;
  free(one);
  free(other);
  return same;
}

/* --- Written and read in all layouts --- */

typedef struct layouts {
  ax_type type;
  const char *const *specs;
  size_t count;
  const char *mesh;
  const char *wanted, *path; /* the file that one process makes, and ours */
} layouts;

static ax_status write_one(ax_runtime *runtime, const ax_mesh *mesh, const char *spec, const layouts *l) {
  ax_array *array;
  AX_TRY(put(runtime, mesh, spec, &l->type, &array));
  ax_status status = ax_array_write_npy(array, l->path);
  ax_array_release(array);
  AX_TRY(status);
  TEST_HERE(same_files(l->path, l->wanted));
  return AX_OK;
}

static ax_status read_one(ax_runtime *runtime, const ax_mesh *mesh, const char *spec, const layouts *l) {
  ax_array *array;
  AX_TRY(ax_array_from_npy(runtime, mesh, spec, l->wanted, &array));
  ax_status status = check_array(array);
  ax_array_release(array);
  return status;
}

static ax_status write_and_read_all(ax_runtime *runtime, const void *context) {
  const layouts *l = context;
  ax_mesh mesh;
  AX_TRY(ax_mesh_parse(l->mesh, &mesh));
  for (size_t s = 0; s < l->count; s++) {
    AX_TRY(write_one(runtime, &mesh, l->specs[s], l));
    AX_TRY(read_one(runtime, &mesh, l->specs[s], l));
  }
  return AX_OK;
}

static void in_all_spreads(const layouts *l, size_t spreads) {
  ax_host_array host = indices(&l->type);
  assert_int_equal(ax_npy_write(l->wanted, &host), AX_OK);
  ax_host_array_release(&host);
  for (size_t s = 0; s < spreads; s++) {
    if (test_in_all(&test_spreads[s], write_and_read_all, l, NULL) != AX_OK)
      fail_msg("%s, spread %zu", ax_type_string(&l->type, NULL), s);
    assert_int_equal(folder_entries(), 2);
  }
  remove(l->path);
  remove(l->wanted);
}

static void files_are_those_of_one_process(void **state) {
  const ax_type types[] = {TEST_TYPE(AX_F32, 8, 8), TEST_TYPE(AX_F32, 16, 8, 3), TEST_TYPE(AX_F32, 8, 40000),
                           TEST_TYPE(AX_F32, 0, 8), TEST_TYPE(AX_F32, 64, 520)};
  (void)state;
  for (size_t t = 0; t < AX_COUNT(types); t++)
    in_all_spreads(&(layouts){types[t], specs, AX_COUNT(specs), mesh_text, at(WANTED), at(OURS)}, TEST_SPREADS);
}

/* More than a chunk that is read at once, and than a slab that is written at once; cut so that runs are short. */
static void large_files_go_in_pieces(void **state) {
  static const char *const columns[] = {"_,_,x+y", "_,y,x"};
  (void)state;
  in_all_spreads(&(layouts){TEST_TYPE(AX_F32, 3, 700, 2400), columns, AX_COUNT(columns), mesh_text, at(WANTED),
                            at(OURS)}, 2);
}

static ax_status without_a_mesh(ax_runtime *runtime, const void *context) {
  const layouts *l = context;
  const uint32_t process = ax_process_index(runtime);
  char own[PATH_MAX];
  ax_array *array;
  snprintf(own, sizeof own, "%s.%u", l->path, process);
  AX_TRY(put(runtime, NULL, "", &l->type, &array));
  ax_status status = ax_array_write_npy(array, own);
  ax_array_release(array);
  if (status == AX_OK) status = ax_array_from_npy(runtime, NULL, "", own, &array);
  AX_TRY(status);
  status = check_array(array);
  ax_array_release(array);
  remove(own);
  return status;
}

static void arrays_without_a_mesh_are_each_process_own(void **state) {
  (void)state;
  const layouts l = {.type = TEST_TYPE(AX_F32, 5), .path = at(OWN)};
  assert_int_equal(test_in_all(&test_spreads[2], without_a_mesh, &l, NULL), AX_OK);
  const layouts scalar = {.type = {.dtype = AX_F32}, .path = at(OWN)};
  assert_int_equal(test_in_all(&test_spreads[2], without_a_mesh, &scalar, NULL), AX_OK);
  assert_int_equal(folder_entries(), 0);
}

/* --- How much is read --- */

/* Bytes that this thread has read; -1: the system does not count them. */
static long long bytes_read(void) {
  FILE *file = fopen("/proc/thread-self/io", "r");
  long long bytes = -1;
  if (file == NULL) return -1;
  if (fscanf(file, "rchar: %lld", &bytes) != 1) bytes = -1;
  fclose(file);
  return bytes;
}

/* Of 40 KiB rows: a process with half of the rows, with half of the columns, and with all. */
static ax_status read_own_part(ax_runtime *runtime, const void *path) {
  static const struct {
    const char *spec;
    long long most;
  } parts[] = {{"x", 160000}, {"_,x", 160000}, {"", 320000}};
  enum { around = 4096 }; /* the header, and what is read of the counts */
  ax_mesh mesh;
  ax_array *array;
  AX_TRY(ax_mesh_parse("x=8", &mesh));
  for (size_t i = 0; i < AX_COUNT(parts); i++) {
    const long long before = bytes_read();
    AX_TRY(ax_array_from_npy(runtime, &mesh, parts[i].spec, path, &array));
    const long long read = bytes_read() - before;
    ax_array_release(array);
    TEST_HERE(before < 0 || read <= parts[i].most + around);
  }
  return AX_OK;
}

static void a_process_reads_what_it_needs(void **state) {
  const ax_type type = TEST_TYPE(AX_F32, 8, 10000);
  ax_host_array host = indices(&type);
  (void)state;
  assert_int_equal(ax_npy_write(at(WANTED), &host), AX_OK);
  ax_host_array_release(&host);
  assert_int_equal(test_in_all(&test_spreads[1], read_own_part, at(WANTED), NULL), AX_OK);
  remove(at(WANTED));
}

/* --- What NumPy writes otherwise --- */

static void write_bytes(const char *path, const char *dict, const void *data, size_t bytes) {
  FILE *file = fopen(path, "wb");
  const size_t length = strlen(dict);
  assert_non_null(file);
  fwrite("\x93NUMPY\1\0", 1, 8, file);
  putc((int)(length & 0xff), file);
  putc((int)(length >> 8), file);
  fwrite(dict, 1, length, file);
  fwrite(data, 1, bytes, file);
  fclose(file);
}

static ax_status read_columns(ax_runtime *runtime, const void *path) {
  ax_mesh mesh;
  ax_array *array;
  AX_TRY(ax_mesh_parse("x=2", &mesh));
  AX_TRY(ax_array_from_npy(runtime, &mesh, "_,x", path, &array));
  ax_status status = check_array(array);
  ax_array_release(array);
  return status;
}

static void other_orders_are_read(void **state) {
  unsigned char swapped[8 * 4], bools[4] = {0, 7, 255, 1};
  float fortran[8];
  const char *path = at(OTHER);
  (void)state;
  for (int i = 0; i < 8; i++) {
    const float value = (float)i;
    const unsigned char *bytes = (const unsigned char *)&value;
    for (int b = 0; b < 4; b++) swapped[4 * i + b] = bytes[3 - b];
    fortran[i] = (float)(i % 2 * 4 + i / 2); /* f32[2,4], its columns one after the other */
  }
  write_bytes(path, "{'descr': '>f4', 'fortran_order': False, 'shape': (2, 4), }\n", swapped, sizeof swapped);
  assert_int_equal(test_in_all(&test_spreads[1], read_columns, path, NULL), AX_OK);
  write_bytes(path, "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 4), }\n", fortran, sizeof fortran);
  assert_int_equal(test_in_all(&test_spreads[1], read_columns, path, NULL), AX_OK);
  write_bytes(path, "{'descr': '|b1', 'fortran_order': False, 'shape': (4,), }\n", bools, sizeof bools);
  ax_runtime *runtime;
  ax_array *array;
  ax_type type;
  bool read[4];
  assert_int_equal(ax_npy_type(path, &type), AX_OK);
  assert_true(type.dtype == AX_BOOL && type.rank == 1 && type.dims[0] == 4);
  assert_int_equal(ax_runtime_create(NULL, &runtime), AX_OK);
  assert_int_equal(ax_array_from_npy(runtime, NULL, "", path, &array), AX_OK);
  assert_int_equal((ax_array_read)(array, AX_BOOL, read, 4), AX_OK);
  for (int i = 0; i < 4; i++) assert_int_equal(((unsigned char *)read)[i], i > 0);
  ax_array_release(array);
  ax_runtime_release(runtime);
  remove(path);
}

/* --- Runs of boxes --- */

static ax_status note_run(void *context, uint64_t place, char *data, size_t bytes) {
  ax_text *text = context;
  (void)data;
  ax_text_add(text, "%llu+%zu ", (unsigned long long)place, bytes);
  return AX_OK;
}

static void expect_runs(ax_type whole, ax_type box, const int64_t *start, const char *expected) {
  ax_text text = {0};
  char data[1000];
  assert_int_equal(ax_box_move(&whole, &box, start, 100, data, note_run, &text), AX_OK);
  assert_string_equal(text.data != NULL ? text.data : "", expected);
  ax_text_deinit(&text);
}

static void boxes_are_runs(void **state) {
  const ax_type whole = TEST_TYPE(AX_F32, 4, 3, 5), box = TEST_TYPE(AX_F32, 2, 2, 5), scalar = {.dtype = AX_F32};
  (void)state;
  expect_runs(whole, whole, (int64_t[]){0, 0, 0}, "100+240 ");
  expect_runs(whole, TEST_TYPE(AX_F32, 2, 3, 5), (int64_t[]){1, 0, 0}, "160+120 ");
  expect_runs(whole, TEST_TYPE(AX_F32, 2, 2, 5), (int64_t[]){1, 1, 0}, "180+40 240+40 ");
  expect_runs(whole, TEST_TYPE(AX_F32, 1, 2, 2), (int64_t[]){3, 1, 3}, "312+8 332+8 ");
  expect_runs(whole, TEST_TYPE(AX_F32, 2, 0, 2), (int64_t[]){0, 0, 0}, "");
  expect_runs(scalar, scalar, (int64_t[]){0}, "100+4 ");
  assert_int_equal(ax_box_runs_of(&whole, &box).count, 2);
}

/* Slabs are contiguous, as equal as can be, and all of the array. */
static void slabs_are_all_of_the_array(void **state) {
  const ax_type types[] = {TEST_TYPE(AX_F32, 8, 3), TEST_TYPE(AX_F32, 1, 7, 2), TEST_TYPE(AX_F32, 2), {.dtype = AX_F32}};
  (void)state;
  for (size_t t = 0; t < AX_COUNT(types); t++)
    for (uint32_t count = 1; count < 6; count++) {
      ax_type slab;
      int64_t start[AX_MAX_RANK], elems = 0;
      for (uint32_t s = 0; s < count; s++) {
        ax_moving_slab(&types[t], s, count, &slab, start);
        assert_true(ax_box_runs_of(&types[t], &slab).count <= 1);
        elems += ax_type_elems(&slab);
      }
      assert_int_equal(elems, ax_type_elems(&types[t]));
    }
}

/* --- Failures: the same in all processes, and nothing is left --- */

static ax_status read_file(ax_runtime *runtime, const void *path) {
  ax_mesh mesh;
  ax_array *array = (ax_array *)&mesh;
  AX_TRY(ax_mesh_parse("x=4", &mesh));
  ax_status status = ax_array_from_npy(runtime, &mesh, "x", path, &array);
  TEST_HERE(status == AX_OK || array == NULL);
  ax_array_release(array);
  return status;
}

static void files_that_cannot_be_read(void **state) {
  char message[8192], expected[PATH_MAX + 100];
  const char *path = at(BAD);
  (void)state;
  assert_int_equal(test_in_all(&test_spreads[2], read_file, path, message), AX_IO_ERROR);
  snprintf(expected, sizeof expected, "process 0: %s: cannot open: No such file or directory", path);
  assert_string_equal(message, expected);
  write_bytes(path, "{'descr': '<f4', 'fortran_order': False, 'shape': (8,), }\n", "1234", 4);
  assert_int_equal(test_in_all(&test_spreads[2], read_file, path, message), AX_IO_ERROR);
  assert_non_null(strstr(message, "cut short: f32[8] is 32 bytes, 4 are left"));
  write_bytes(path, "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }\n", "123412341234", 12);
  assert_int_equal(test_in_all(&test_spreads[2], read_file, path, message), AX_INVALID_ARGUMENT);
  remove(path);
}

/* Each process finds an array of its own. */
static ax_status read_own_file(ax_runtime *runtime, const void *context) {
  const char *const *paths = context;
  return read_file(runtime, paths[ax_process_index(runtime) > 0]);
}

static void different_files_are_noticed(void **state) {
  char message[8192];
  const char *paths[] = {at(ONE), at(OTHER)};
  (void)state;
  write_bytes(paths[0], "{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }\n", "1234123412341234", 16);
  write_bytes(paths[1], "{'descr': '<i4', 'fortran_order': False, 'shape': (4,), }\n", "1234123412341234", 16);
  assert_int_equal(test_in_all(&test_spreads[1], read_own_file, paths, message), AX_INVALID_ARGUMENT);
  assert_non_null(strstr(message, "process 0: reads f32[4] over (x=4,), P(x) from "));
  assert_non_null(strstr(message, "process 1: reads s32[4] over (x=4,), P(x) from "));
  remove(paths[0]);
  remove(paths[1]);
}

typedef struct place {
  const char *path, *other; /* other: process 1's; NULL: the same */
  const char *spec;
  ax_type type;
} place;

static ax_status write_file(ax_runtime *runtime, const void *context) {
  const place *p = context;
  const bool is_one = ax_process_index(runtime) == 1;
  ax_mesh mesh;
  ax_array *array;
  AX_TRY(ax_mesh_parse("x=4", &mesh));
  AX_TRY(put(runtime, &mesh, p->spec, &p->type, &array));
  ax_status status = ax_array_write_npy(array, p->other != NULL && is_one ? p->other : p->path);
  ax_array_release(array);
  return status;
}

static void files_that_cannot_be_written(void **state) {
  char message[8192], expected[PATH_MAX + 100];
  const char *nowhere = at(NO_SUCH), *one = at(ONE), *other = at(OTHER);
  (void)state;
  assert_int_equal(test_in_all(&test_spreads[2], write_file, &(place){nowhere, NULL, "x", TEST_TYPE(AX_F32, 8)}, message),
                   AX_IO_ERROR);
  snprintf(expected, sizeof expected, "process 0: %s: cannot write: No such file or directory", nowhere);
  assert_string_equal(message, expected);
  assert_int_equal(test_in_all(&test_spreads[2], write_file, &(place){one, other, "x", TEST_TYPE(AX_F32, 8)}, message),
                   AX_INVALID_ARGUMENT);
  assert_non_null(strstr(message, "process 1: writes f32[8] over (x=4,), P(x) into "));
  limit_file_size(100);
  assert_int_equal(test_in_all(&test_spreads[2], write_file, &(place){one, NULL, "x", TEST_TYPE(AX_F32, 8)}, message), AX_IO_ERROR);
  limit_file_size(RLIM_INFINITY);
  snprintf(expected, sizeof expected, "process 0: %s: cannot write: File too large", one);
  assert_string_equal(message, expected);
  assert_int_equal(folder_entries(), 0);
}

/* MPI is to write, and there is none; or only some processes are told so. */
static void mpi_is_asked_for_in_vain(void **state) {
  char message[8192];
  const place p = {at(ONE), NULL, "x", TEST_TYPE(AX_F32, 8)};
  (void)state;
  setenv("AXLE_FILES", "mpi", 1);
  assert_int_equal(test_in_all(&test_spreads[1], write_file, &p, message), AX_ABSENT);
  assert_non_null(strstr(message, "AXLE_FILES says mpi, but these processes have no MPI"));
  assert_int_equal(test_in_all(&test_spreads[0], write_file, &p, NULL), AX_OK); /* one process needs no MPI */
  setenv("AXLE_FILES", "other", 1);
  assert_int_equal(test_in_all(&test_spreads[1], write_file, &p, message), AX_INVALID_ARGUMENT);
  assert_non_null(strstr(message, "AXLE_FILES"));
  unsetenv("AXLE_FILES");
  remove(at(ONE));
}

/* One of two processes has given its array away. */
static ax_status write_donated(ax_runtime *runtime, const void *context) {
  const place *p = context;
  ax_mesh mesh;
  ax_array *array;
  AX_TRY(ax_mesh_parse("x=4", &mesh));
  AX_TRY(put(runtime, &mesh, p->spec, &p->type, &array));
  if (ax_process_index(runtime) == 1) TEST_HERE(ax_array_take(array));
  ax_status status = ax_array_write_npy(array, p->path);
  if (ax_process_index(runtime) == 1) ax_array_end_taking(array, false);
  ax_array_release(array);
  return status;
}

static void a_failure_leaves_the_old_file(void **state) {
  char message[8192];
  const place p = {at(OLD), NULL, "x", TEST_TYPE(AX_F32, 8)};
  const char *wanted = at(WANTED);
  const ax_type old_type = TEST_TYPE(AX_F32, 3);
  ax_host_array old = indices(&old_type);
  (void)state;
  assert_int_equal(ax_npy_write(p.path, &old), AX_OK);
  assert_int_equal(ax_npy_write(wanted, &old), AX_OK);
  ax_host_array_release(&old);
  assert_int_equal(test_in_all(&test_spreads[1], write_donated, &p, message), AX_INVALID_ARGUMENT);
  assert_string_equal(message, "process 1: the array f32[8] was donated to a run");
  assert_true(same_files(p.path, wanted));
  assert_int_equal(folder_entries(), 2);
  remove(p.path);
  remove(wanted);
}

/* --- Out of memory in one process --- */

static ax_status write_hostile(ax_runtime *runtime, const void *context) {
  const place *p = context;
  ax_mesh mesh;
  ax_array *array;
  AX_TRY(ax_mesh_parse("x=4", &mesh));
  AX_TRY(put(runtime, &mesh, p->spec, &p->type, &array));
  test_be_hostile(ax_process_index(runtime) == 1);
  ax_status status = ax_array_write_npy(array, p->path);
  test_be_hostile(false);
  ax_array_release(array);
  return status;
}

static void is_whole_or_not_there(ax_status status) {
  assert_int_equal(folder_entries(), status == AX_OK);
  remove(at(HOSTILE));
}

static ax_status read_hostile(ax_runtime *runtime, const void *path) {
  test_be_hostile(ax_process_index(runtime) == 1);
  ax_status status = read_file(runtime, path);
  test_be_hostile(false);
  return status;
}

static void out_of_memory_in_one_process_is_everyones(void **state) {
  const char *path = at(HOSTILE);
  const ax_type types[] = {TEST_TYPE(AX_F32, 8, 8), TEST_TYPE(AX_F32, 8, 40000)};
  (void)state;
  for (size_t t = 0; t < AX_COUNT(types); t++) {
    test_each_allocation_in_one(write_hostile, &(place){path, NULL, "x", types[t]}, 1, is_whole_or_not_there);
    test_each_allocation_in_one(write_hostile, &(place){path, NULL, "_,x", types[t]}, 1, is_whole_or_not_there);
  }
  ax_host_array host = indices(&types[0]);
  assert_int_equal(ax_npy_write(path, &host), AX_OK);
  ax_host_array_release(&host);
  test_each_allocation_in_one(read_hostile, path, 1, NULL);
  remove(path);
}

/* --- As an executable wants them --- */

static AX_BODY(negate) { out[0] = ax_neg(in[0]); }

static ax_status put_and_run(ax_runtime *runtime, const void *path) {
  const ax_type type = TEST_TYPE(AX_F32, 8);
  ax_program *program = test_trace_map(&(test_map){"x=4", {"x"}, {"x"}, .body = negate}, &type);
  ax_executable *executable;
  ax_array *in = NULL, *none;
  ax_status status = ax_compile(runtime, program, NULL, &executable);
  ax_program_release(program);
  AX_TRY(status);
  status = ax_executable_put_npy(executable, 0, path, &in);
  if (status == AX_OK) status = check_array(in);
  if (status == AX_OK && ax_executable_put_npy(executable, 1, path, &none) != AX_INVALID_ARGUMENT) status = AX_INTERNAL;
  ax_array_release(in);
  ax_executable_release(executable);
  return status;
}

static void inputs_are_read_as_they_are_wanted(void **state) {
  const char *path = at(IN);
  char message[8192];
  const ax_type types[] = {TEST_TYPE(AX_F32, 8), TEST_TYPE(AX_F32, 9)};
  (void)state;
  for (int t = 0; t < 2; t++) {
    ax_host_array host = indices(&types[t]);
    assert_int_equal(ax_npy_write(path, &host), AX_OK);
    ax_host_array_release(&host);
    assert_int_equal(test_in_all(&test_spreads[2], put_and_run, path, message), t == 0 ? AX_OK : AX_INVALID_ARGUMENT);
  }
  assert_non_null(strstr(message, ": has f32[9], not f32[8]"));
  remove(path);
}

static int make_folder(void **state) {
  (void)state;
  const char *base = getenv("TMPDIR");
  snprintf(folder, sizeof folder, "%s/axle-array-npy-XXXXXX", base != NULL ? base : "/tmp");
  return mkdtemp(folder) == NULL;
}

static int remove_folder(void **state) {
  (void)state;
  return rmdir(folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(files_are_those_of_one_process),
      cmocka_unit_test(large_files_go_in_pieces),
      cmocka_unit_test(arrays_without_a_mesh_are_each_process_own),
      cmocka_unit_test(a_process_reads_what_it_needs),
      cmocka_unit_test(other_orders_are_read),
      cmocka_unit_test(boxes_are_runs),
      cmocka_unit_test(slabs_are_all_of_the_array),
      cmocka_unit_test(files_that_cannot_be_read),
      cmocka_unit_test(different_files_are_noticed),
      cmocka_unit_test(files_that_cannot_be_written),
      cmocka_unit_test(mpi_is_asked_for_in_vain),
      cmocka_unit_test(a_failure_leaves_the_old_file),
      cmocka_unit_test(out_of_memory_in_one_process_is_everyones),
      cmocka_unit_test(inputs_are_read_as_they_are_wanted),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
