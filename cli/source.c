/* Reads a program's text, and finds its inputs and results by the names that the user may give them. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/shared.h"
#include "bridge/stablehlo_read.h"
#include "cli.h"
#include "hlo/files.h"

static const size_t most_bytes = (size_t)1 << 28; /* of a stream; so reading an endless device ends */
static const off_t least_mapped = 1 << 20;        /* bytes of a file that is looked at where the system has it */

static ax_status read_stream(FILE *file, const char *path, ax_text *text) {
  char block[16384];
  size_t count;
  while ((count = fread(block, 1, sizeof block, file)) > 0 && text->length <= most_bytes) ax_text_add_bytes(text, block, count);
  if (count > 0) return ax_error(AX_IO_ERROR, "%s: is longer than %zu MiB", path, most_bytes >> 20);
  if (ferror(file)) return ax_error(AX_IO_ERROR, "%s: %s", path, strerror(errno));
  return text->failed ? ax_out_of_memory(text->length) : AX_OK;
}

static void release_bytes(void *context) {
  source_bytes *bytes = context;
  if (bytes->mapped) munmap((void *)(uintptr_t)bytes->data, bytes->length);
  ax_text_deinit(&bytes->text);
  ax_free(bytes);
}

/* Whole pages of a mapped file that were copied need not stay in memory: the file has them. */
static void forget_bytes(void *context, const void *start, size_t count) {
  const source_bytes *bytes = context;
  const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = ((uintptr_t)start + page - 1) / page * page;
  const uintptr_t end = ((uintptr_t)start + count) / page * page;
  if (bytes->mapped && first < end) (void)madvise((void *)first, end - first, MADV_DONTNEED);
}

/* A large file of the disk is mapped: its constants stay where they are until a run has them. False: it is to be read. */
static bool map_file(FILE *file, source_bytes *bytes) {
  struct stat stat;
  if (fstat(fileno(file), &stat) != 0 || !S_ISREG(stat.st_mode) || stat.st_size < least_mapped) return false;
  void *at = mmap(NULL, (size_t)stat.st_size, PROT_READ, MAP_PRIVATE, fileno(file), 0);
  if (at == MAP_FAILED) return false;
  bytes->data = at, bytes->length = (size_t)stat.st_size, bytes->mapped = true;
  return true;
}

static ax_status read_file(const char *path, source_bytes *bytes) {
  const bool standard = strcmp(path, "-") == 0;
  ax_status status = AX_OK;
  FILE *file = standard ? stdin : fopen(path, "rb");
  if (file == NULL) return ax_error(AX_IO_ERROR, "%s: %s", path, strerror(errno));
  if (standard || !map_file(file, bytes)) {
    status = read_stream(file, path, &bytes->text);
    bytes->data = bytes->text.data != NULL ? bytes->text.data : "", bytes->length = bytes->text.length;
  }
  if (!standard) fclose(file);
  return status;
}

/* A file that is no program at all is called what it is, or at least that; a reader of texts would show its bytes. */
static ax_status check_readable(const char *path, const char *data, size_t length) {
  static const struct {
    const char *start, *name;
  } kinds[] = {{"\x93NUMPY", "an array (.npy), which --in takes"},
               {"PK\x03\x04", "a zip archive"},
               {"\x1f\x8b", "compressed by gzip"},
               {"\x7f" "ELF", "machine code"},
               {"\x89PNG", "a picture"},
               {"%PDF", "a document"}};
  const size_t looked = length < 4096 ? length : 4096;
  bool is_text = true;
  if (length == 0) return ax_error(AX_PARSE_ERROR, "%s:1:1: expected a program, but the file is empty", path);
  for (size_t i = 0; i < AX_COUNT(kinds); i++)
    if (length >= strlen(kinds[i].start) && memcmp(data, kinds[i].start, strlen(kinds[i].start)) == 0)
      return ax_error(AX_PARSE_ERROR, "%s: this is no program, but %s", path, kinds[i].name);
  for (size_t i = 0; i < looked; i++) is_text = is_text && (data[i] < 0 || data[i] >= ' ' || strchr("\t\r\n\f\v", data[i]) != NULL) && data[i] != '\0';
  if (is_text || ax_hlo_format_of(data, length) != AX_HLO_NO_MODULE) return AX_OK;
  return ax_error(AX_PARSE_ERROR, "%s: this is no program: it is neither text, nor bytecode of MLIR's, nor a whole file of jax.export", path);
}

static ax_status read_checked(const char *path, source_bytes *bytes) {
  AX_TRY(read_file(path, bytes));
  return check_readable(strcmp(path, "-") == 0 ? "(standard input)" : path, bytes->data, bytes->length);
}

ax_status source_bytes_read(const char *path, source_bytes **out) {
  source_bytes *bytes = *out = ax_calloc(1, sizeof *bytes);
  if (bytes == NULL) return ax_out_of_memory(sizeof *bytes);
  ax_status status = ax_shared_lend(release_bytes, bytes, &bytes->owner);
  if (status == AX_OK) ax_shared_set_forget(bytes->owner, forget_bytes);
  if (status == AX_OK && (status = read_checked(path, bytes)) == AX_OK) return AX_OK;
  if (bytes->owner != NULL) ax_shared_release(bytes->owner);
  else ax_free(bytes);
  *out = NULL;
  return status;
}

/* Reads a number below `count`; -1: the word is not one. */
static int64_t as_number(const char *word, size_t length, uint32_t count) {
  char digits[16] = {0};
  int64_t index;
  if (length >= sizeof digits) return -1;
  memcpy(digits, word, length);
  return ax_integer_parse(digits, &index) && index >= 0 && index < count ? index : -1;
}

/* The type of the input's value, of --in, if it is given by name or number. */
static ax_status type_of_value(void *context, uint32_t index, ax_hlo_slice name, ax_type *out) {
  const word_list *words = context;
  *out = (ax_type){.dtype = AX_NO_DTYPE};
  for (uint32_t i = 0; i < words->count; i++) {
    const char *equals = strchr(words->words[i], '=');
    const size_t length = (size_t)(equals - words->words[i]);
    const bool named = name.length > 0 && ax_hlo_slice_same(name, (ax_hlo_slice){words->words[i], length});
    if (named || as_number(words->words[i], length, UINT32_MAX) == index) return input_type(equals + 1, out);
  }
  return AX_OK;
}

static ax_status read_dims(const word_list *words, ax_stablehlo_dim *dims) {
  for (uint32_t i = 0; i < words->count; i++) {
    char *equals = strrchr(words->words[i], '=');
    if (!ax_integer_parse(equals + 1, &dims[i].extent))
      return ax_error(AX_INVALID_ARGUMENT, "--dim %s: not a number: %s", words->words[i], equals + 1);
    *equals = '\0'; /* the word is its name from now on */
    dims[i].name = words->words[i];
  }
  return AX_OK;
}

static ax_status read_module(const source_bytes *bytes, const char *name, const shardings *s, const word_list *in, source *out) {
  ax_stablehlo_dim *dims = ax_calloc(s->dims.count + 1, sizeof dims[0]);
  if (dims == NULL) return ax_out_of_memory(s->dims.count);
  const ax_hlo_binding binding = {.dim_count = s->dims.count,
                                  .dims = dims,
                                  .type_of = in != NULL ? type_of_value : NULL,
                                  .context = (void *)(uintptr_t)in,
                                  .custom_calls = s->calls,
                                  .owner = bytes->owner};
  ax_status status = read_dims(&s->dims, dims);
  if (status == AX_OK)
    status = ax_program_from_stablehlo_named(bytes->data, bytes->length, name, &binding, &out->names, &out->program);
  ax_free(dims);
  return status;
}

ax_status source_read(const char *path, const shardings *s, const word_list *in, source *out) {
  source_bytes *bytes;
  const bool standard = strcmp(path, "-") == 0;
  const char *name = standard ? "(standard input)" : path;
  *out = (source){0};
  AX_TRY(source_bytes_read(path, &bytes));
  ax_status status = AX_OK;
  if (ax_hlo_format_of(bytes->data, bytes->length) != AX_HLO_NO_MODULE)
    status = read_module(bytes, name, s, in, out);
  else if (s->dims.count > 0)
    status = ax_error(AX_INVALID_ARGUMENT, "--dim: only StableHLO modules leave extents open");
  else if (s->calls != NULL)
    status = ax_error(AX_INVALID_ARGUMENT, "--ffi: only StableHLO modules have custom calls");
  else
    status = ax_program_parse_named(bytes->data, bytes->length, name, NULL, &out->names, &out->program);
  ax_shared_release(bytes->owner);
  return status;
}

void source_deinit(source *source) {
  ax_program_release(source->program);
  ax_program_names_deinit(&source->names);
}

static bool same(const char *name, const char *word, size_t length) {
  return name[0] != '\0' && strlen(name) == length && memcmp(name, word, length) == 0;
}

static int64_t find(const ax_program *program, const char *const *names, const uint32_t *ids, uint32_t count,
                    const char *word, size_t length) {
  for (uint32_t i = 0; names != NULL && i < count; i++)
    if (same(names[i], word, length)) return i;
  int64_t index = as_number(word, length, count);
  for (uint32_t i = 0; index < 0 && i < count; i++) {
    char letters[16];
    uint32_t id = ids != NULL ? ids[i] : i;
    if (ax_value_literal(program, id) != NULL) continue;
    ax_label_name(program->labels[id], letters);
    if (same(letters, word, length)) index = i;
  }
  return index;
}

int64_t source_find_input(const source *source, const char *word, size_t length) {
  const int64_t index = find(source->program, source->names.in, NULL, source->program->in_count, word, length);
  for (uint32_t i = 0; index < 0 && source->names.in_also != NULL && i < source->program->in_count; i++)
    if (same(source->names.in_also[i], word, length)) return i;
  return index;
}

int64_t source_find_output(const source *source, const char *word, size_t length) {
  const ax_program *program = source->program;
  return find(program, source->names.out, program->outs, program->out_count, word, length);
}

static const char *name_of(const ax_program *program, const char *const *names, uint32_t index, uint32_t id) {
  static char name[16];
  if (names != NULL && names[index][0] != '\0') return names[index];
  if (ax_value_literal(program, id) != NULL)
    snprintf(name, sizeof name, "%u", index);
  else
    ax_label_name(program->labels[id], name);
  return name;
}

const char *source_input_name(const source *source, uint32_t index) {
  return name_of(source->program, source->names.in, index, index);
}

const char *source_output_name(const source *source, uint32_t index) {
  return name_of(source->program, source->names.out, index, source->program->outs[index]);
}
