/* NumPy's .npy: a preamble, a Python dict as text, the elements.

     \x93NUMPY  major minor  length   {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }  \n   elements
     6 bytes    1     1      2 or 4   padded with spaces so that the elements begin at a multiple of 64

   Invariant: no size in a file is trusted. A header may have at most `header_limit` bytes, the elements must exactly fill the rest
   of their container, and memory is allocated no faster than bytes arrive. */
#include "bridge/npy.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ir/program.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "elements are written as they lie in memory");

/* Version 1's own limit; a longer one can only be a structured dtype, which has no Axle dtype, or garbage. */
enum { header_limit = 65535, alignment = 64 };

/* Elements and bytes; false on overflow. Zeros are left out of the check of the rest, so that a product taken in any order
   fits too. */
static bool array_size(const ax_host_array *array, int64_t *elems, size_t *bytes) {
  int64_t product = 1, limit;
  bool empty = false;
  for (uint32_t i = 0; i < array->rank; i++) {
    if (array->dims[i] == 0) empty = true;
    else if (!ax_mul_i64(product, array->dims[i], &product)) return false;
  }
  if (!ax_mul_i64(product, (int64_t)ax_dtype_bytes(array->dtype), &limit)) return false;
  *elems = empty ? 0 : product;
  *bytes = empty ? 0 : (size_t)limit;
  return true;
}

static const char *array_text(const ax_host_array *array) {
  ax_type type = ax_array_type(array->dtype, AX_LIST(array->rank, array->dims));
  return ax_type_string(&type, NULL);
}

/* --- Bytes --- */

static ax_status read_memory(void *user, const char *name, void *into, size_t bytes, size_t *got) {
  (void)name;
  ax_byte_span *span = user;
  *got = bytes < span->bytes ? bytes : span->bytes;
  if (*got > 0) memcpy(into, span->data, *got);
  span->data = (const char *)span->data + *got;
  span->bytes -= *got;
  return AX_OK;
}

static ax_status read_file(void *user, const char *name, void *into, size_t bytes, size_t *got) {
  int file = *(int *)user;
  ssize_t count;
  do count = read(file, into, bytes < SSIZE_MAX ? bytes : SSIZE_MAX);
  while (count < 0 && errno == EINTR);
  if (count < 0) return ax_error(AX_IO_ERROR, "%s: cannot read: %s", name, strerror(errno));
  *got = (size_t)count;
  return AX_OK;
}

static ax_status read_exactly(ax_byte_source *source, void *into, size_t bytes) {
  for (size_t done = 0, got; done < bytes; done += got) {
    AX_TRY(source->read(source->user, source->name, (char *)into + done, bytes - done, &got));
    if (got == 0) return ax_error(AX_IO_ERROR, "%s: cut short: %llu more bytes were promised", source->name,
                                  (unsigned long long)(source->left - done));
  }
  source->left -= bytes;
  return AX_OK;
}

/* Reads `bytes` bytes into memory that grows as they come; at once when the source has proven them. */
static ax_status read_growing(ax_byte_source *source, size_t bytes, void **out) {
  size_t done = 0, capacity = source->proven < bytes ? (size_t)source->proven : bytes;
  char *data = ax_alloc(capacity);
  if (data == NULL) return ax_out_of_memory(capacity);
  for (;;) {
    ax_status status = read_exactly(source, data + done, capacity - done);
    if (status != AX_OK) {
      ax_free(data);
      return status;
    }
    done = capacity;
    if (done == bytes) break;
    capacity = done > bytes / 2 ? bytes : done * 2;
    if (capacity == 0) capacity = 1;
    char *larger = ax_alloc(capacity);
    if (larger != NULL) memcpy(larger, data, done);
    ax_free(data);
    if (larger == NULL) return ax_out_of_memory(capacity);
    data = larger;
  }
  *out = data;
  return AX_OK;
}

/* The read past the last byte also makes a zip member check its checksum. */
static ax_status expect_end(ax_byte_source *source) {
  char extra;
  size_t got;
  AX_TRY(source->read(source->user, source->name, &extra, 1, &got));
  if (got != 0) return ax_error(AX_IO_ERROR, "%s: has bytes after its array", source->name);
  return AX_OK;
}

/* --- The header's dict --- */

typedef struct npy_header {
  ax_host_array array; /* without data */
  bool swapped, fortran;
  bool has_descr, has_fortran, has_shape;
} npy_header;

typedef struct scanner {
  const char *name, *begin, *at, *end;
} scanner;

static ax_status scan_error(const scanner *scan, const char *expected) {
  return ax_error(AX_IO_ERROR, "%s: bad npy header: byte %td of its dict: expected %s", scan->name, scan->at - scan->begin,
                  expected);
}

static void skip_space(scanner *scan) {
  while (scan->at < scan->end && memchr(" \t\r\n", *scan->at, 4) != NULL) scan->at++;
}

static bool take(scanner *scan, char what) {
  skip_space(scan);
  if (scan->at == scan->end || *scan->at != what) return false;
  scan->at++;
  return true;
}

static bool take_word(scanner *scan, const char *word) {
  skip_space(scan);
  size_t length = strlen(word);
  if ((size_t)(scan->end - scan->at) < length || memcmp(scan->at, word, length) != 0) return false;
  scan->at += length;
  return true;
}

static ax_status scan_string(scanner *scan, const char **text, size_t *length) {
  skip_space(scan);
  char quote = scan->at < scan->end ? *scan->at : '\0';
  if (quote != '\'' && quote != '"') return scan_error(scan, "a string");
  *text = scan->at + 1;
  const char *close = memchr(*text, quote, (size_t)(scan->end - *text));
  if (close == NULL) return scan_error(scan, "a string that is closed");
  *length = (size_t)(close - *text);
  scan->at = close + 1;
  return AX_OK;
}

/* Python 2 wrote long integers as 3L. */
static ax_status scan_dim(scanner *scan, int64_t *out) {
  skip_space(scan);
  if (scan->at == scan->end || *scan->at < '0' || *scan->at > '9') return scan_error(scan, "a dimension, 0 or more");
  int64_t value = 0;
  for (; scan->at < scan->end && *scan->at >= '0' && *scan->at <= '9'; scan->at++)
    if (!ax_mul_i64(value, 10, &value) || __builtin_add_overflow(value, *scan->at - '0', &value))
      return scan_error(scan, "a dimension below 2^63");
  if (scan->at < scan->end && *scan->at == 'L') scan->at++;
  *out = value;
  return AX_OK;
}

static ax_status scan_shape(scanner *scan, ax_host_array *array) {
  if (!take(scan, '(')) return scan_error(scan, "a tuple of dimensions");
  bool comma = true; /* (3) is a number to Python, (3,) a tuple */
  while (!take(scan, ')')) {
    if (array->rank > 0 && !comma) return scan_error(scan, "',' or ')'");
    if (array->rank == AX_MAX_RANK) return scan_error(scan, "at most 16 dimensions");
    AX_TRY(scan_dim(scan, &array->dims[array->rank++]));
    comma = take(scan, ',');
  }
  if (array->rank == 1 && !comma) return scan_error(scan, "a tuple: a ',' after its one dimension");
  return AX_OK;
}
_Static_assert(AX_MAX_RANK == 16, "the message above says 16");

static ax_dtype descr_dtype(const char *kind, size_t length) {
  if (length == 2 && memcmp(kind, "f1", 2) == 0) return AX_F8E5M2; /* ml_dtypes writes it, though NumPy cannot read it */
  for (int i = AX_NO_DTYPE + 1; i < AX_DTYPE_COUNT; i++) {
    const char *known = ax_dtype_get((ax_dtype)i)->numpy;
    if (known != NULL && strlen(known + 1) == length && memcmp(known + 1, kind, length) == 0) return (ax_dtype)i;
  }
  return AX_NO_DTYPE;
}

/* Elements of one byte that is called as a dtype: [('f8e4m3fn', '|V1')]. Returns whether the descr is that; if not, nothing is
   taken. */
static bool take_named_byte(scanner *scan, ax_dtype *dtype) {
  const scanner before = *scan;
  const char *name, *kind;
  size_t length, kind_length;
  bool found = take(scan, '[') && take(scan, '(') && scan_string(scan, &name, &length) == AX_OK && take(scan, ',') &&
               scan_string(scan, &kind, &kind_length) == AX_OK && take(scan, ')') && (take(scan, ',') || true) && take(scan, ']');
  found = found && kind_length >= 2 && memcmp(kind + kind_length - 2, "V1", 2) == 0;
  if (found) *dtype = (ax_dtype)ax_dtype_find(name, length);
  if (found && ax_dtype_bytes(*dtype) == 1) return true;
  *scan = before;
  return false;
}

static ax_status scan_descr(scanner *scan, npy_header *header) {
  skip_space(scan);
  if (take_named_byte(scan, &header->array.dtype)) return AX_OK;
  if (scan->at < scan->end && (*scan->at == '[' || *scan->at == '('))
    return ax_error(AX_IO_ERROR, "%s: its dtype is a structured one, which Axle does not have", scan->name);
  const char *text;
  size_t length;
  AX_TRY(scan_string(scan, &text, &length));
  bool ordered = length > 0 && memchr("<>=|", text[0], 4) != NULL;
  header->array.dtype = descr_dtype(text + ordered, length - ordered);
  header->swapped = ordered && text[0] == '>';
  if (header->array.dtype != AX_NO_DTYPE) return AX_OK;
  int shown = (int)(length < 40 ? length : 40);
  bool object = length > ordered && text[ordered] == 'O';
  if (length - ordered == 2 && memcmp(text + ordered, "V1", 2) == 0)
    return ax_error(AX_IO_ERROR, "%s: its dtype '%.*s' does not say which numbers of a byte they are; an array that is saved as "
                                 "x.view([('f8e4m3fn', 'V1')]) does", scan->name, shown, text);
  return ax_error(AX_IO_ERROR, "%s: its dtype '%.*s' %s", scan->name, shown, text,
                  object ? "holds pickled Python objects, which Axle does not read" : "is none that Axle has");
}

static ax_status scan_fortran(scanner *scan, npy_header *header) {
  header->fortran = take_word(scan, "True");
  return header->fortran || take_word(scan, "False") ? AX_OK : scan_error(scan, "True or False");
}

static bool is_key(const char *key, size_t length, const char *name) {
  return strlen(name) == length && memcmp(key, name, length) == 0;
}

static ax_status scan_entry(scanner *scan, npy_header *header) {
  const scanner start = *scan;
  const char *key;
  size_t length;
  AX_TRY(scan_string(scan, &key, &length));
  bool descr = is_key(key, length, "descr"), fortran = is_key(key, length, "fortran_order");
  if (!descr && !fortran && !is_key(key, length, "shape"))
    return scan_error(&start, "'descr', 'fortran_order' or 'shape'");
  bool *seen = descr ? &header->has_descr : fortran ? &header->has_fortran : &header->has_shape;
  if (*seen) return scan_error(&start, "each key once");
  *seen = true;
  if (!take(scan, ':')) return scan_error(scan, "':'");
  if (descr) return scan_descr(scan, header);
  return fortran ? scan_fortran(scan, header) : scan_shape(scan, &header->array);
}

static ax_status scan_header(scanner *scan, npy_header *header) {
  if (!take(scan, '{')) return scan_error(scan, "'{'");
  bool comma = true;
  while (!take(scan, '}')) {
    if (!comma) return scan_error(scan, "',' or '}'");
    AX_TRY(scan_entry(scan, header));
    comma = take(scan, ',');
  }
  skip_space(scan);
  if (scan->at != scan->end) return scan_error(scan, "nothing after the dict");
  if (header->has_descr && header->has_fortran && header->has_shape) return AX_OK;
  return ax_error(AX_IO_ERROR, "%s: bad npy header: no '%s'", scan->name,
                  !header->has_descr ? "descr" : header->has_fortran ? "shape" : "fortran_order");
}

/* --- Reading --- */

static ax_status read_preamble(ax_byte_source *source, size_t *header_bytes) {
  unsigned char head[8], length[4] = {0};
  if (source->left == 0) return ax_error(AX_IO_ERROR, "%s: is empty", source->name);
  if (source->left < 10)
    return ax_error(AX_IO_ERROR, "%s: cut short: %llu bytes are no npy file", source->name, (unsigned long long)source->left);
  AX_TRY(read_exactly(source, head, sizeof head));
  if (memcmp(head, "\x93NUMPY", 6) != 0)
    return ax_error(AX_IO_ERROR, "%s: is no npy file: it does not begin with \\x93NUMPY", source->name);
  if (head[6] < 1 || head[6] > 3)
    return ax_error(AX_IO_ERROR, "%s: npy version %d.%d is not known; 1 to 3 are", source->name, head[6], head[7]);
  size_t length_bytes = head[6] == 1 ? 2 : 4;
  if (source->left < length_bytes) return ax_error(AX_IO_ERROR, "%s: cut short in its preamble", source->name);
  AX_TRY(read_exactly(source, length, length_bytes));
  *header_bytes = length[0] | (size_t)length[1] << 8 | (size_t)length[2] << 16 | (size_t)length[3] << 24;
  if (*header_bytes > source->left)
    return ax_error(AX_IO_ERROR, "%s: cut short: its header says %zu bytes, %llu are left", source->name, *header_bytes,
                    (unsigned long long)source->left);
  if (*header_bytes > header_limit)
    return ax_error(AX_IO_ERROR, "%s: its header has %zu bytes, more than %d", source->name, *header_bytes, header_limit);
  return AX_OK;
}

static ax_status read_header(ax_byte_source *source, npy_header *header) {
  size_t bytes = 0;
  AX_TRY(read_preamble(source, &bytes));
  char *text = ax_alloc(bytes);
  if (text == NULL) return ax_out_of_memory(bytes);
  ax_status status = read_exactly(source, text, bytes);
  scanner scan = {source->name, text, text, text + bytes};
  if (status == AX_OK) status = scan_header(&scan, header);
  ax_free(text);
  return status;
}

static ax_status check_size(const ax_byte_source *source, const ax_host_array *array, int64_t *elems, size_t *bytes) {
  if (!array_size(array, elems, bytes))
    return ax_error(AX_IO_ERROR, "%s: %s is larger than 2^63 bytes", source->name, array_text(array));
  if (*bytes > source->left)
    return ax_error(AX_IO_ERROR, "%s: cut short: %s is %zu bytes, %llu are left", source->name, array_text(array), *bytes,
                    (unsigned long long)source->left);
  if (*bytes < source->left)
    return ax_error(AX_IO_ERROR, "%s: %llu bytes follow its %s", source->name, (unsigned long long)(source->left - *bytes),
                    array_text(array));
  return AX_OK;
}

static void swap_bytes(unsigned char *data, int64_t elems, size_t width) {
  for (int64_t i = 0; i < elems; i++, data += width)
    for (size_t low = 0, high = width - 1; low < high; low++, high--) {
      unsigned char byte = data[low];
      data[low] = data[high];
      data[high] = byte;
    }
}

static void normalize_bools(unsigned char *data, int64_t elems) {
  for (int64_t i = 0; i < elems; i++) data[i] = data[i] != 0;
}

/* to[i, j] = from[j, i] for i < rows, j < columns, in square tiles, so that a tile's lines stay in cache on both sides. */
static inline void transpose_plane(char *to, const char *from, int64_t rows, int64_t columns, int64_t to_stride,
                                   int64_t from_stride, size_t width) {
  enum { tile = 32 };
  for (int64_t row = 0; row < rows; row += tile)
    for (int64_t column = 0; column < columns; column += tile)
      for (int64_t i = row; i < rows && i < row + tile; i++)
        for (int64_t j = column; j < columns && j < column + tile; j++)
          memcpy(to + (size_t)(i * to_stride + j) * width, from + (size_t)(j * from_stride + i) * width, width);
}

/* Column-major to row-major. The first dimension is contiguous in the one and the last in the other: each plane of these two is
   transposed, for every index of the dimensions between them. Rank at least 2, no dimension 0. */
static void transpose_array(const ax_host_array *array, char *to, const char *from) {
  uint32_t last = array->rank - 1;
  const int64_t *dims = array->dims;
  int64_t rows = dims[0], columns = dims[last], middle = ax_dims_elems(last - 1, dims + 1);
  for (int64_t index = 0; index < middle; index++) {
    int64_t rest = index, to_offset = 0, from_offset = 0, to_stride = columns, from_stride = middle * rows;
    for (uint32_t d = last - 1; d > 0; d--) {
      int64_t coordinate = rest % dims[d];
      rest /= dims[d];
      from_stride /= dims[d];
      to_offset += coordinate * to_stride;
      from_offset += coordinate * from_stride;
      to_stride *= dims[d];
    }
    size_t width = ax_dtype_bytes(array->dtype);
    char *plane = to + (size_t)to_offset * width;
    const char *source = from + (size_t)from_offset * width;
    switch (width) { /* constant widths make the copies single moves */
      case 1: transpose_plane(plane, source, rows, columns, middle * columns, rows * middle, 1); break;
      case 2: transpose_plane(plane, source, rows, columns, middle * columns, rows * middle, 2); break;
      case 4: transpose_plane(plane, source, rows, columns, middle * columns, rows * middle, 4); break;
      default: transpose_plane(plane, source, rows, columns, middle * columns, rows * middle, width); break;
    }
  }
}

static ax_status to_row_major(ax_host_array *array, int64_t elems, size_t bytes) {
  if (array->rank < 2 || elems == 0) return AX_OK;
  char *data = ax_alloc(bytes);
  if (data == NULL) return ax_out_of_memory(bytes);
  transpose_array(array, data, array->data);
  ax_free(array->data);
  array->data = data;
  return AX_OK;
}

static void decode_elems(const npy_header *header, void *data, int64_t elems) {
  const ax_dtype dtype = header->array.dtype;
  if (header->swapped) swap_bytes(data, ax_is_complex(dtype) ? 2 * elems : elems, ax_dtype_bytes(ax_part_dtype(dtype)));
  if (header->array.dtype == AX_BOOL) normalize_bools(data, elems);
}

ax_status ax_npy_read_source(ax_byte_source *source, ax_host_array *out) {
  *out = (ax_host_array){0};
  npy_header header = {0};
  int64_t elems = 0;
  size_t bytes = 0;
  AX_TRY(read_header(source, &header));
  ax_host_array array = header.array;
  AX_TRY(check_size(source, &array, &elems, &bytes));
  AX_TRY(read_growing(source, bytes, &array.data));
  ax_status status = expect_end(source);
  decode_elems(&header, array.data, elems);
  if (status == AX_OK && header.fortran) status = to_row_major(&array, elems, bytes);
  if (status == AX_OK) *out = array;
  else ax_host_array_release(&array);
  return status;
}

ax_status ax_npy_decode(const void *bytes, size_t count, const char *name, ax_host_array *out) {
  ax_byte_span span = {bytes, count};
  ax_byte_source source = {name, read_memory, &span, count, count};
  return ax_npy_read_source(&source, out);
}

/* Opens a file of which the bytes count. */
static ax_status open_file(const char *path, int *file, uint64_t *bytes) {
  struct stat info;
  AX_TRY(ax_require(path, "path"));
  *file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* opening a pipe must not wait for its writer */
  if (*file < 0) return ax_error(AX_IO_ERROR, "%s: cannot open: %s", path, strerror(errno));
  ax_status status = AX_OK;
  if (fstat(*file, &info) != 0) status = ax_error(AX_IO_ERROR, "%s: cannot read: %s", path, strerror(errno));
  else if (!S_ISREG(info.st_mode)) status = ax_error(AX_IO_ERROR, "%s: is not a file", path);
  else *bytes = (uint64_t)info.st_size;
  if (status != AX_OK) close(*file);
  return status;
}

ax_status ax_npy_read(const char *path, ax_host_array *out) {
  int file = -1;
  uint64_t bytes = 0;
  *out = (ax_host_array){0};
  AX_TRY(open_file(path, &file, &bytes));
  ax_byte_source source = {path, read_file, &file, bytes, bytes};
  ax_status status = ax_npy_read_source(&source, out);
  close(file);
  return status;
}

ax_status ax_npy_open(const char *path, ax_npy_file *out) {
  npy_header header = {0};
  uint64_t all = 0;
  int64_t elems;
  size_t bytes;
  *out = (ax_npy_file){.path = path, .file = -1};
  AX_TRY(open_file(path, &out->file, &all));
  ax_byte_source source = {path, read_file, &out->file, all, all};
  ax_status status = read_header(&source, &header);
  if (status == AX_OK) status = check_size(&source, &header.array, &elems, &bytes);
  out->array = header.array;
  out->start = all - source.left;
  out->swapped = header.swapped;
  out->fortran = header.fortran && header.array.rank > 1;
  if (status != AX_OK) ax_npy_close(out);
  return status;
}

void ax_npy_close(ax_npy_file *file) {
  if (file->file >= 0) close(file->file);
  *file = (ax_npy_file){.file = -1};
}

void ax_npy_decode_elems(const ax_npy_file *file, void *data, int64_t elems) {
  decode_elems(&(npy_header){.array = file->array, .swapped = file->swapped}, data, elems);
}

/* --- Writing --- */

ax_status ax_npy_dtype_check(ax_dtype dtype, const char *path) {
  if (!ax_is_key(dtype)) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "%s: NumPy's files have no keys; ax_random_key_data gives their words", path);
}

ax_status ax_host_array_check(const ax_host_array *array, const char *path, size_t *bytes) {
  ax_status status = ax_view_check(array);
  if (status != AX_OK) return ax_error_context(status, "%s: ", path);
  if (array->dtype <= AX_NO_DTYPE || array->dtype >= AX_DTYPE_COUNT)
    return ax_error(AX_INVALID_ARGUMENT, "%s: the array to write has no dtype (%d)", path, (int)array->dtype);
  if (array->rank > AX_MAX_RANK)
    return ax_error(AX_INVALID_ARGUMENT, "%s: the array to write has rank %u, above %d", path, array->rank, AX_MAX_RANK);
  for (uint32_t i = 0; i < array->rank; i++)
    if (array->dims[i] < 0)
      return ax_error(AX_INVALID_ARGUMENT, "%s: the array to write has dimension %u of %lld", path, i,
                      (long long)array->dims[i]);
  AX_TRY(ax_npy_dtype_check(array->dtype, path));
  int64_t elems;
  if (!array_size(array, &elems, bytes))
    return ax_error(AX_INVALID_ARGUMENT, "%s: %s is larger than 2^63 bytes", path, array_text(array));
  if (array->data == NULL && elems > 0)
    return ax_error(AX_INVALID_ARGUMENT, "%s: the %s to write has no data", path, array_text(array));
  return AX_OK;
}

size_t ax_npy_header(const ax_host_array *array, char into[AX_NPY_HEADER_BYTES]) {
  enum { preamble = 10 };
  const ax_dtype_info *info = ax_dtype_get(array->dtype);
  char descr[64];
  snprintf(descr, sizeof descr, info->numpy != NULL ? "'%s'" : "[('%s', '|V1')]", info->numpy != NULL ? info->numpy : info->name);
  memcpy(into, "\x93NUMPY\x01\x00", 8);
  size_t at = preamble;
  at += (size_t)snprintf(into + at, AX_NPY_HEADER_BYTES - at, "{'descr': %s, 'fortran_order': False, 'shape': (", descr);
  for (uint32_t i = 0; i < array->rank; i++)
    at += (size_t)snprintf(into + at, AX_NPY_HEADER_BYTES - at, i == 0 ? "%lld," : " %lld,", (long long)array->dims[i]);
  if (array->rank > 1) at--; /* only a tuple of one keeps its comma */
  at += (size_t)snprintf(into + at, AX_NPY_HEADER_BYTES - at, "), }");
  size_t total = (at + 1 + alignment - 1) / alignment * alignment;
  assert(total <= AX_NPY_HEADER_BYTES);
  memset(into + at, ' ', total - at);
  into[total - 1] = '\n';
  into[8] = (char)((total - preamble) & 0xff);
  into[9] = (char)((total - preamble) >> 8);
  return total;
}

/* Finds the target of a link. The target need not exist: a write creates it, and the link stays. */
static ax_status follow_link(const char *path, char *into) {
  char link[PATH_MAX];
  const char *slash = strrchr(path, '/');
  ssize_t length = readlink(path, link, sizeof link);
  if (length < 0) return ax_error(AX_IO_ERROR, "%s: cannot write: %s", path, strerror(errno));
  int folder = slash != NULL && link[0] != '/' ? (int)(slash + 1 - path) : 0;
  int total = snprintf(into, PATH_MAX, "%.*s%.*s", folder, path, (int)length, link);
  if (length == sizeof link || total >= PATH_MAX)
    return ax_error(AX_IO_ERROR, "%s: cannot write: %s", path, strerror(ENAMETOOLONG));
  return AX_OK;
}

ax_status ax_file_target(const char *path, char *into) {
  struct stat info;
  if (stat(path, &info) != 0) {
    enum { most_links = 40 };
    if (strlen(path) >= PATH_MAX) return ax_error(AX_IO_ERROR, "%s: cannot write: %s", path, strerror(ENAMETOOLONG));
    strcpy(into, path);
    for (int links = 0; lstat(into, &info) == 0 && S_ISLNK(info.st_mode); links++) {
      char link[PATH_MAX];
      if (links == most_links) return ax_error(AX_IO_ERROR, "%s: cannot write: %s", path, strerror(ELOOP));
      strcpy(link, into);
      AX_TRY(follow_link(link, into));
    }
    return AX_OK;
  }
  if (!S_ISREG(info.st_mode)) return ax_error(AX_IO_ERROR, "%s: cannot write: it is there, and not a file", path);
  if (realpath(path, into) == NULL) return ax_error(AX_IO_ERROR, "%s: cannot write: %s", path, strerror(errno));
  return AX_OK;
}

int ax_file_beside(const char *target, char *name, size_t name_bytes) {
  int file = -1;
  for (int attempt = 0; file < 0 && attempt < 1000; attempt++) {
    int length = snprintf(name, name_bytes, "%s.%ld-%d.tmp", target, (long)getpid(), attempt);
    if (length < 0 || (size_t)length >= name_bytes) {
      errno = ENAMETOOLONG;
      return -1;
    }
    file = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file < 0 && errno != EEXIST) return -1;
  }
  return file;
}

bool ax_file_keep_mode(int file, const char *target) {
  struct stat before;
  return stat(target, &before) != 0 || fchmod(file, before.st_mode & 07777) == 0;
}

static bool write_all(int file, const char *data, size_t bytes) {
  while (bytes > 0) {
    ssize_t count = write(file, data, bytes < SSIZE_MAX ? bytes : SSIZE_MAX);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    data += count;
    bytes -= (size_t)count;
  }
  return true;
}

ax_status ax_file_write(const char *path, const ax_byte_span *parts, uint32_t count) {
  char target[PATH_MAX], temporary[PATH_MAX];
  uint64_t bytes = 0;
  AX_TRY(ax_file_target(path, target));
  for (uint32_t i = 0; i < count; i++) bytes += parts[i].bytes;
  if (!ax_file_may_hold(bytes)) return ax_error(AX_IO_ERROR, "%s: cannot write: %s", path, strerror(EFBIG));
  int file = ax_file_beside(target, temporary, sizeof temporary);
  if (file < 0) return ax_error(AX_IO_ERROR, "%s: cannot write: %s", path, strerror(errno));
  bool good = ax_file_keep_mode(file, target);
  for (uint32_t i = 0; good && i < count; i++) good = write_all(file, parts[i].data, parts[i].bytes);
  int cause = good ? 0 : errno;
  if (close(file) != 0 && good) cause = errno;
  if (cause == 0 && rename(temporary, target) != 0) cause = errno;
  if (cause == 0) return AX_OK;
  unlink(temporary);
  return ax_error(AX_IO_ERROR, "%s: cannot write: %s", path, strerror(cause));
}

ax_status ax_npy_write(const char *path, const ax_host_array *array) {
  char header[AX_NPY_HEADER_BYTES];
  size_t bytes = 0;
  AX_TRY(ax_require(path, "path"));
  AX_TRY(ax_require(array, "array"));
  AX_TRY(ax_host_array_check(array, path, &bytes));
  ax_byte_span parts[] = {{header, ax_npy_header(array, header)}, {array->data, bytes}};
  return ax_file_write(path, parts, AX_COUNT(parts));
}
