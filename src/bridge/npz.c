/* NumPy's .npz: a zip archive with one .npy member an array. The archive is libzip's work; this file adds what libzip does not
   promise: that names are met once, that a member's claimed size takes no memory before its bytes have come (a deflated member
   may claim anything), and that an archive of no arrays can be written. libzip uses malloc, for its own structures only. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <zip.h>

#include "base/table.h"
#include "bridge/npy.h"
#include "ir/program.h"

static const char suffix[] = ".npy";
enum { suffix_bytes = sizeof suffix - 1, label_bytes = PATH_MAX + 256, first_allocation = 64 * 1024 };

typedef struct npz_entry {
  char *name; /* owned, without ".npy" */
  ax_host_array array;
} npz_entry;

struct ax_npz {
  uint32_t count, capacity;
  npz_entry *entries;
  ax_table places; /* of entries, by name */
};

/* --- The object --- */

uint32_t ax_npz_count(const ax_npz *npz) { return npz != NULL ? npz->count : 0; }

const char *ax_npz_name(const ax_npz *npz, uint32_t index) {
  return index < ax_npz_count(npz) ? npz->entries[index].name : NULL;
}

const ax_host_array *ax_npz_array(const ax_npz *npz, uint32_t index) {
  return index < ax_npz_count(npz) ? &npz->entries[index].array : NULL;
}

static bool is_called(const void *entries, uint32_t i, const void *name) {
  return strcmp(((const npz_entry *)entries)[i].name, name) == 0;
}

static uint32_t *place_of(const ax_npz *npz, const char *name) {
  return ax_table_slot(&npz->places, ax_hash_bytes(AX_HASH_SEED, name, strlen(name)), is_called, npz->entries, name);
}

/* Makes room for one entry more. */
static ax_status grow(ax_npz *npz) {
  bool emptied;
  AX_TRY(ax_grow(&npz->entries, sizeof *npz->entries, npz->count, 1, &npz->capacity));
  AX_TRY(ax_table_room(&npz->places, npz->count, &emptied));
  for (uint32_t i = 0; emptied && i < npz->count; i++) *place_of(npz, npz->entries[i].name) = i + 1;
  return AX_OK;
}

const ax_host_array *ax_npz_find(const ax_npz *npz, const char *name) {
  if (name == NULL || ax_npz_count(npz) == 0) return NULL;
  const uint32_t place = *place_of(npz, name);
  return place != 0 ? &npz->entries[place - 1].array : NULL;
}

void ax_npz_release(ax_npz *npz) {
  if (npz == NULL) return;
  for (uint32_t i = 0; i < npz->count; i++) {
    ax_free(npz->entries[i].name);
    ax_host_array_release(&npz->entries[i].array);
  }
  ax_free(npz->entries);
  ax_table_deinit(&npz->places);
  ax_free(npz);
}

/* --- Reading --- */

/* Makes an error of libzip's report. Without memory libzip often reports another reason, or none, but errno is ENOMEM then. So
   errno is set to 0 before each file. */
static ax_status failure(const char *path, const char *what, zip_error_t *error) {
  if (errno == ENOMEM || zip_error_code_zip(error) == ZIP_ER_MEMORY) return ax_out_of_memory(0);
  return ax_error(AX_IO_ERROR, "%s: %s: %s", path, what, zip_error_strerror(error));
}

/* Consumes `error`. */
static ax_status zip_failure(const char *path, const char *what, zip_error_t *error) {
  ax_status status = failure(path, what, error);
  zip_error_fini(error);
  return status;
}

static ax_status archive_failure(const char *path, const char *what, zip_t *archive) {
  return failure(path, what, zip_get_error(archive));
}

static ax_status read_member(void *user, const char *name, void *into, size_t bytes, size_t *got) {
  zip_file_t *file = user;
  zip_int64_t count = zip_fread(file, into, bytes);
  if (count < 0) return failure(name, "cannot read", zip_file_get_error(file));
  *got = (size_t)count;
  return AX_OK;
}

/* A stored member that fits the archive proves its size; a deflated one only that of its compressed bytes. */
static uint64_t proven_bytes(const zip_stat_t *info, uint64_t archive_bytes) {
  uint64_t proven = info->comp_size < archive_bytes ? info->comp_size : archive_bytes;
  return proven > first_allocation ? proven : first_allocation;
}

static ax_status read_array(zip_t *archive, uint64_t archive_bytes, const char *path, const zip_stat_t *info,
                            ax_host_array *out) {
  char label[label_bytes];
  snprintf(label, sizeof label, "%s: member '%.200s'", path, info->name);
  zip_file_t *file = zip_fopen_index(archive, info->index, 0);
  if (file == NULL) return archive_failure(label, "cannot open", archive);
  ax_byte_source source = {label, read_member, file, info->size, proven_bytes(info, archive_bytes)};
  ax_status status = ax_npy_read_source(&source, out);
  zip_fclose(file);
  return status;
}

static bool is_array_name(const char *name) {
  size_t length = strlen(name);
  return length >= suffix_bytes && strcmp(name + length - suffix_bytes, suffix) == 0;
}

/* Adds member `info` to `npz`, whole or not at all. */
static ax_status add_member(ax_npz *npz, zip_t *archive, uint64_t archive_bytes, const char *path,
                            const zip_stat_t *info) {
  const zip_int64_t first = zip_name_locate(archive, info->name, 0);
  if (first < 0) return archive_failure(path, "cannot read", archive);
  if (first != (zip_int64_t)info->index)
    return ax_error(AX_IO_ERROR, "%s: has member '%.200s' twice", path, info->name);
  AX_TRY(grow(npz));
  size_t length = strlen(info->name) - suffix_bytes;
  npz_entry entry = {.name = ax_alloc(length + 1)};
  if (entry.name == NULL) return ax_out_of_memory(length + 1);
  memcpy(entry.name, info->name, length);
  entry.name[length] = '\0';
  ax_status status = read_array(archive, archive_bytes, path, info, &entry.array);
  if (status != AX_OK) {
    ax_free(entry.name);
    return status;
  }
  npz->entries[npz->count++] = entry;
  *place_of(npz, entry.name) = npz->count;
  return AX_OK;
}

/* Members that share bytes of the archive could claim any multiple of its size. */
static ax_status check_overlap(zip_t *archive, uint64_t archive_bytes, const char *path) {
  uint64_t left = archive_bytes;
  zip_int64_t members = zip_get_num_entries(archive, 0);
  for (zip_int64_t i = 0; i < members; i++) {
    zip_stat_t info;
    if (zip_stat_index(archive, (zip_uint64_t)i, 0, &info) != 0 || (info.valid & ZIP_STAT_COMP_SIZE) == 0) continue;
    if (info.comp_size > left)
      return ax_error(AX_IO_ERROR, "%s: member '%.200s' claims %llu bytes, more than the members before it leave of the file", path,
                      (info.valid & ZIP_STAT_NAME) != 0 ? info.name : "", (unsigned long long)info.comp_size);
    left -= info.comp_size;
  }
  return AX_OK;
}

static ax_status read_members(ax_npz *npz, zip_t *archive, uint64_t archive_bytes, const char *path) {
  const zip_uint64_t needed = ZIP_STAT_NAME | ZIP_STAT_INDEX | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE;
  zip_int64_t members = zip_get_num_entries(archive, 0);
  AX_TRY(check_overlap(archive, archive_bytes, path));
  for (zip_int64_t i = 0; i < members; i++) {
    zip_stat_t info;
    if (zip_stat_index(archive, (zip_uint64_t)i, 0, &info) != 0) return archive_failure(path, "bad member", archive);
    if ((info.valid & needed) != needed)
      return ax_error(AX_IO_ERROR, "%s: member %lld has no name or no size", path, (long long)i);
    if (is_array_name(info.name)) AX_TRY(add_member(npz, archive, archive_bytes, path, &info));
  }
  if (members > 0 && npz->count == 0)
    return ax_error(AX_IO_ERROR, "%s: is a zip archive without a .npy member", path);
  return AX_OK;
}

/* Consumes `source`. */
static ax_status read_archive(zip_source_t *source, uint64_t bytes, const char *path, ax_npz **out) {
  zip_error_t error;
  zip_error_init(&error);
  zip_t *archive = zip_open_from_source(source, ZIP_RDONLY, &error);
  if (archive == NULL) {
    zip_source_free(source);
    return zip_failure(path, "cannot open as a zip archive", &error);
  }
  ax_npz *npz = ax_calloc(1, sizeof *npz);
  ax_status status = npz == NULL ? ax_out_of_memory(sizeof *npz) : read_members(npz, archive, bytes, path);
  zip_discard(archive);
  if (status == AX_OK) *out = npz;
  else ax_npz_release(npz);
  return status;
}

ax_status ax_npz_decode(const void *bytes, size_t count, const char *name, ax_npz **out) {
  *out = NULL;
  errno = 0;
  if (count == 0) return ax_error(AX_IO_ERROR, "%s: is empty", name); /* libzip would see an archive of nothing */
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t *source = zip_source_buffer_create(bytes, count, 0, &error);
  if (source == NULL) return zip_failure(name, "cannot read", &error);
  return read_archive(source, count, name, out);
}

ax_status ax_npz_read(const char *path, ax_npz **out) {
  *out = NULL;
  AX_TRY(ax_require(path, "path"));
  zip_error_t error;
  struct stat info;
  if (stat(path, &info) != 0) {
    zip_error_init(&error);
    zip_error_set(&error, ZIP_ER_OPEN, errno);
    return zip_failure(path, "cannot read", &error);
  }
  if (!S_ISREG(info.st_mode)) return ax_error(AX_IO_ERROR, "%s: is not a file", path);
  if (info.st_size == 0) return ax_error(AX_IO_ERROR, "%s: is empty", path);
  errno = 0;
  zip_error_init(&error);
  zip_source_t *source = zip_source_file_create(path, 0, -1, &error);
  if (source == NULL) return zip_failure(path, "cannot read", &error);
  return read_archive(source, (uint64_t)info.st_size, path, out);
}

/* --- Writing --- */

static ax_status bad_member(const char *path, const char *name, zip_t *archive) {
  zip_error_t *error = zip_get_error(archive);
  const int code = zip_error_code_zip(error);
  if (errno == ENOMEM || code == ZIP_ER_MEMORY) return ax_out_of_memory(0);
  if (code == ZIP_ER_EXISTS) return ax_error(AX_INVALID_ARGUMENT, "%s: the name '%.200s' is given twice", path, name);
  return ax_error(AX_INVALID_ARGUMENT, "%s: cannot be a name in a zip archive: '%.200s'", path, name);
}

/* Adds one array; its header and data are borrowed until the archive is closed. */
static ax_status add_array(zip_t *archive, const char *path, const char *name, const ax_host_array *array, size_t bytes,
                           char header[AX_NPY_HEADER_BYTES]) {
  size_t length = strlen(name);
  if (length == 0 || length > UINT16_MAX - suffix_bytes)
    return ax_error(AX_INVALID_ARGUMENT, "%s: a name has %zu bytes; 1 to %d can be written", path, length,
                    UINT16_MAX - suffix_bytes);
  zip_buffer_fragment_t parts[] = {{(zip_uint8_t *)header, ax_npy_header(array, header)}, {array->data, bytes}};
  zip_source_t *source = zip_source_buffer_fragment(archive, parts, bytes > 0 ? 2 : 1, 0);
  if (source == NULL) return archive_failure(path, "cannot write", archive);
  ax_text member = {0};
  char *member_name;
  ax_text_add_bytes(&member, name, length);
  ax_text_add_bytes(&member, suffix, suffix_bytes);
  ax_status status = ax_text_finish(&member, &member_name);
  zip_int64_t index = status == AX_OK ? zip_file_add(archive, member_name, source, ZIP_FL_ENC_UTF_8) : -1;
  if (status == AX_OK && index < 0) status = bad_member(path, name, archive);
  ax_free(member_name);
  if (index < 0) {
    zip_source_free(source);
    return status;
  }
  const zip_uint16_t epoch = 1 << 5 | 1; /* 1980-01-01: equal arrays make equal files */
  if (zip_set_file_compression(archive, (zip_uint64_t)index, ZIP_CM_STORE, 0) != 0 ||
      zip_file_set_dostime(archive, (zip_uint64_t)index, 0, epoch, 0) != 0)
    return archive_failure(path, "cannot write", archive);
  return AX_OK;
}

/* The bytes of an archive of `count` members: those of their names, those of the members, and the records around them. A size, an
   offset or a count that does not fit an old record needs larger ones. */
static uint64_t archive_bytes(uint64_t count, uint64_t names, uint64_t members) {
  enum { local = 30, central = 46, end = 22, local_more = 20, central_more = 28, end_more = 76 };
  const uint64_t bytes = members + 2 * names + count * (local + central) + end;
  return count < UINT16_MAX && bytes < UINT32_MAX ? bytes : bytes + count * (local_more + central_more) + end_more;
}

static ax_status add_arrays(zip_t *archive, const char *path, const char *const *names, const ax_host_array *arrays,
                            uint32_t count, char (*headers)[AX_NPY_HEADER_BYTES]) {
  uint64_t name_bytes = 0, member_bytes = 0;
  for (uint32_t i = 0; i < count; i++) {
    size_t bytes = 0;
    AX_TRY(ax_host_array_check(&arrays[i], path, &bytes));
    AX_TRY(add_array(archive, path, names[i], &arrays[i], bytes, headers[i]));
    name_bytes += strlen(names[i]) + suffix_bytes;
    member_bytes += ax_npy_header(&arrays[i], headers[i]) + bytes;
  }
  if (!ax_file_may_hold(archive_bytes(count, name_bytes, member_bytes)))
    return ax_error(AX_IO_ERROR, "%s: cannot write: %s", path, strerror(EFBIG));
  /* libzip writes to a temporary name beside the target, renames, and on failure removes it */
  return zip_close(archive) == 0 ? AX_OK : archive_failure(path, "cannot write", archive);
}

/* libzip deletes an archive rather than write an empty one. This is one: an end record that counts no members. */
static ax_status write_empty(const char *path) {
  static const char end[22] = "PK\5\6";
  return ax_file_write(path, &(ax_byte_span){end, sizeof end}, 1);
}

ax_status (ax_npz_write)(const char *path, uint32_t count, const char *const *names, uint32_t array_count,
                         const ax_host_array *arrays) {
  AX_TRY(ax_require(path, "path"));
  AX_TRY(ax_list_check("npz_write", "the names take", "array", array_count, count));
  if (count == 0) return write_empty(path);
  AX_TRY(ax_require(names, "list of names"));
  AX_TRY(ax_require(arrays, "list of arrays"));
  char target[PATH_MAX];
  AX_TRY(ax_file_target(path, target));
  char(*headers)[AX_NPY_HEADER_BYTES] = ax_calloc(count, sizeof *headers);
  if (headers == NULL) return ax_out_of_memory((size_t)count * sizeof *headers);
  int code = 0;
  errno = 0;
  zip_t *archive = zip_open(target, ZIP_CREATE | ZIP_TRUNCATE, &code);
  ax_status status;
  if (archive == NULL) {
    zip_error_t error;
    zip_error_init_with_code(&error, code);
    status = zip_failure(path, "cannot write", &error);
  } else {
    status = add_arrays(archive, path, names, arrays, count, headers);
    if (status != AX_OK) zip_discard(archive);
  }
  ax_free(headers);
  return status;
}
