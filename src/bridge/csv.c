/* Tables of numbers. Bytes come in pieces of any size; each field becomes a double, and errors name the place in the file. zlib
   reads plain files as they are, and inflates gzipped ones. */
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "bridge/npy.h"
#include "ir/index_text.h"
#include "ir/number.h"

enum { field_limit = 127, chunk_bytes = 16 * 1024, inflate_bytes = 128 * 1024 };

typedef struct csv_parser {
  const char *name;
  locale_t locale; /* "C": 1.5 is a number everywhere */
  uint64_t line, column;           /* of the next byte, from 1 */
  uint64_t field_line_column;      /* where the current field's text begins */
  uint64_t blank_line;             /* the first of the empty lines just passed; 0: none */
  uint32_t fields, columns, count; /* complete fields of this line; of the first line; in `data` */
  uint32_t capacity;
  int64_t rows;
  double *data;
  size_t length; /* of `field` */
  char field[field_limit + 1];
} csv_parser;

static ax_status parser_init(csv_parser *parser, const char *name) {
  *parser = (csv_parser){.name = name, .line = 1, .column = 1, .field_line_column = 1};
  parser->locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  return parser->locale != (locale_t)0 ? AX_OK : ax_out_of_memory(0);
}

static void parser_deinit(csv_parser *parser) {
  freelocale(parser->locale);
  ax_free(parser->data);
}

static ax_status field_error(csv_parser *parser, const char *what) {
  for (size_t i = 0; i < parser->length; i++) /* a message is one printable line, whatever the file holds */
    if (parser->field[i] < ' ' || parser->field[i] > '~') parser->field[i] = '?';
  return ax_error(AX_IO_ERROR, "%s:%llu:%llu: field %u '%.*s' %s%s", parser->name, (unsigned long long)parser->line,
                  (unsigned long long)parser->field_line_column, parser->fields + 1, (int)parser->length, parser->field,
                  what, parser->rows == 0 ? " (a header line cannot be read)" : "");
}

static bool is_blank(char byte) { return byte == ' ' || byte == '\t' || byte == '\r'; }

/* Refuses texts that strtod accepts beyond decimal numbers, nan and inf: hexadecimal numbers, nan with a payload, other white space
   in front. */
static bool is_decimal(const char *field, size_t length) {
  for (size_t i = 0; i < length; i++)
    if (field[i] == 'x' || field[i] == 'X' || field[i] == '(') return false;
  return (unsigned char)field[0] > ' ';
}

static ax_status end_field(csv_parser *parser) {
  while (parser->length > 0 && is_blank(parser->field[parser->length - 1])) parser->length--;
  parser->field[parser->length] = '\0';
  if (parser->length == 0) return field_error(parser, "is empty, not a number");
  char *end;
  errno = 0;
  double value = strtod_l(parser->field, &end, parser->locale);
  if (end != parser->field + parser->length || !is_decimal(parser->field, parser->length))
    return field_error(parser, "is not a number");
  if (errno == ERANGE && isinf(value)) return field_error(parser, "is beyond the range of f64");
  AX_TRY(ax_grow(&parser->data, sizeof *parser->data, parser->count, 1, &parser->capacity));
  parser->data[parser->count++] = value;
  parser->fields++;
  parser->length = 0;
  return AX_OK;
}

static ax_status end_row(csv_parser *parser) {
  if (parser->blank_line > 0)
    return ax_error(AX_IO_ERROR, "%s:%llu:1: an empty line between rows", parser->name,
                    (unsigned long long)parser->blank_line);
  AX_TRY(end_field(parser));
  if (parser->rows == 0) parser->columns = parser->fields;
  if (parser->fields != parser->columns)
    return ax_error(AX_IO_ERROR, "%s:%llu:%llu: a row of %u fields; the first row has %u", parser->name,
                    (unsigned long long)parser->line, (unsigned long long)parser->field_line_column, parser->fields,
                    parser->columns);
  parser->rows++;
  return AX_OK;
}

static bool line_is_blank(const csv_parser *parser) { return parser->fields == 0 && parser->length == 0; }

static ax_status end_line(csv_parser *parser) {
  if (!line_is_blank(parser)) AX_TRY(end_row(parser));
  else if (parser->blank_line == 0) parser->blank_line = parser->line;
  parser->fields = 0;
  parser->line++;
  parser->column = 0; /* the newline itself is about to be counted */
  return AX_OK;
}

static ax_status feed_byte(csv_parser *parser, char byte) {
  if (byte == ',' || byte == '\n') {
    AX_TRY(byte == ',' ? end_field(parser) : end_line(parser));
    parser->field_line_column = parser->column + 1;
  } else if (parser->length == 0 && is_blank(byte)) {
    parser->field_line_column = parser->column + 1;
  } else if (parser->length == field_limit) {
    return field_error(parser, "is too long for a number");
  } else {
    parser->field[parser->length++] = byte;
  }
  parser->column++;
  return AX_OK;
}

static ax_status feed(csv_parser *parser, const char *bytes, size_t count) {
  static const char mark[] = "\xEF\xBB\xBF";
  bool start = parser->line == 1 && parser->column == 1;
  size_t first = start && count >= 3 && memcmp(bytes, mark, 3) == 0 ? 3 : 0;
  for (size_t i = first; i < count; i++) AX_TRY(feed_byte(parser, bytes[i]));
  return AX_OK;
}

/* Ends the last line, and hands over the data. */
static ax_status finish(csv_parser *parser, ax_host_array *out) {
  if (!line_is_blank(parser)) AX_TRY(end_row(parser));
  if (parser->rows == 0) return ax_error(AX_IO_ERROR, "%s: has no rows", parser->name);
  *out = (ax_host_array){.dtype = AX_F64, .rank = 2, .dims = {parser->rows, parser->columns}, .data = parser->data};
  parser->data = NULL;
  return AX_OK;
}

ax_status ax_csv_decode(const void *bytes, size_t count, const char *name, ax_host_array *out) {
  *out = (ax_host_array){0};
  csv_parser parser;
  AX_TRY(parser_init(&parser, name));
  ax_status status = feed(&parser, bytes, count);
  if (status == AX_OK) status = finish(&parser, out);
  parser_deinit(&parser);
  return status;
}

/* A gzip stream that ends early is an error only when asked for, after the last read. */
static ax_status read_error(gzFile file, const char *path) {
  int code;
  const char *text = gzerror(file, &code);
  if (code == Z_OK || code == Z_STREAM_END) return AX_OK;
  if (code == Z_MEM_ERROR) return ax_out_of_memory(0);
  if (code == Z_BUF_ERROR) return ax_error(AX_IO_ERROR, "%s: its gzip stream is cut short", path);
  return ax_error(AX_IO_ERROR, "%s: cannot read: %s", path, code == Z_ERRNO ? strerror(errno) : text);
}

static ax_status feed_file(csv_parser *parser, gzFile file) {
  char chunk[chunk_bytes];
  for (;;) {
    int count = gzread(file, chunk, sizeof chunk);
    if (count <= 0) return read_error(file, parser->name);
    AX_TRY(feed(parser, chunk, (size_t)count));
  }
}

static ax_status open_file(const char *path, gzFile *out) {
  struct stat info;
  int number = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* opening a pipe must not wait for its writer */
  if (number < 0) return ax_error(AX_IO_ERROR, "%s: cannot open: %s", path, strerror(errno));
  ax_status status = AX_OK;
  if (fstat(number, &info) != 0) status = ax_error(AX_IO_ERROR, "%s: cannot read: %s", path, strerror(errno));
  else if (!S_ISREG(info.st_mode)) status = ax_error(AX_IO_ERROR, "%s: is not a file", path);
  else if ((*out = gzdopen(number, "rb")) == NULL) status = ax_out_of_memory(0);
  if (status != AX_OK) close(number);
  return status;
}

ax_status ax_csv_read(const char *path, ax_host_array *out) {
  *out = (ax_host_array){0};
  gzFile file = NULL;
  AX_TRY(ax_require(path, "path"));
  AX_TRY(open_file(path, &file));
  gzbuffer(file, inflate_bytes);
  csv_parser parser;
  ax_status status = parser_init(&parser, path);
  if (status == AX_OK) {
    status = feed_file(&parser, file);
    if (status == AX_OK) status = finish(&parser, out);
    parser_deinit(&parser);
  }
  gzclose_r(file);
  return status;
}

/* --- A part, in another dtype --- */

/* Whether the dtype holds the number, rounded to it if it is a float. */
static bool takes(ax_dtype dtype, ax_number from, ax_number *out) {
  *out = ax_number_round(dtype, ax_number_convert(AX_F64, dtype, from));
  if (ax_rounds(dtype)) return ax_number_holds(dtype, from.f);
  return ax_number_convert(dtype, AX_F64, *out).f == from.f;
}

/* Row-major over the part: the place of its element in the table. A dimension of the table that the part does not have, or that
   has a single index, counts one index. */
static ax_status copy_part(const char *path, const ax_host_array *table, const ax_index_part *part, ax_host_array *out) {
  const ax_index_range *rows = &part->along[0], *columns = &part->along[1];
  int64_t at = 0;
  for (int64_t i = 0; i < rows->count; i++)
    for (int64_t j = 0; j < columns->count; j++) {
      const int64_t row = rows->start + i * rows->step, column = columns->start + j * columns->step;
      ax_number from = ax_number_load(AX_F64, table->data, row * table->dims[1] + column), number;
      if (!takes(out->dtype, from, &number))
        return ax_error(AX_IO_ERROR, "%s: row %lld, column %lld: %.10g is no number of %s", path, (long long)row,
                        (long long)column, from.f, ax_dtype_name(out->dtype));
      ax_number_store(out->dtype, out->data, at++, number);
    }
  return AX_OK;
}

static ax_status take_part(const char *path, const ax_host_array *table, const char *text, ax_dtype dtype, ax_host_array *out) {
  const ax_type type = ax_array_type(AX_F64, AX_LIST(table->rank, table->dims));
  ax_index_part part;
  AX_TRY(ax_index_read(text, &type, &part));
  const ax_type wanted = ax_array_type(dtype, AX_LIST(part.result.count, part.result.v));
  const size_t bytes = (size_t)ax_type_elems(&wanted) * ax_dtype_bytes(dtype);
  *out = ax_host_view(dtype, AX_LIST(wanted.rank, wanted.dims), ax_alloc(bytes > 0 ? bytes : 1));
  out->view = false;
  if (out->data == NULL) return ax_out_of_memory(bytes);
  return copy_part(path, table, &part, out);
}

ax_status ax_csv_take_part(const char *path, const ax_host_array *table, const char *part, ax_dtype dtype, ax_host_array *out) {
  *out = (ax_host_array){0};
  if (ax_is_key(dtype)) return ax_error(AX_INVALID_ARGUMENT, "%s: a table has numbers, and keys are none", path);
  ax_status status = take_part(path, table, part, dtype, out);
  if (status != AX_OK) ax_host_array_release(out);
  return status;
}

ax_status ax_csv_read_part(const char *path, const char *part, ax_dtype dtype, ax_host_array *out) {
  ax_host_array table = {0};
  *out = (ax_host_array){0};
  if (ax_dtype_bytes(dtype) == 0) return ax_error(AX_INVALID_ARGUMENT, "there is no dtype %d", (int)dtype);
  AX_TRY(ax_csv_read(path, &table));
  ax_status status = ax_csv_take_part(path, &table, part, dtype, out);
  ax_host_array_release(&table);
  return status;
}
