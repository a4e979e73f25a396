/* The values of --in: arrays from files and literals. */
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "ir/number.h"

ax_type host_type(const ax_host_array *array) { return ax_array_type(array->dtype, AX_LIST(array->rank, array->dims)); }

size_t host_bytes(const ax_host_array *array) {
  return (size_t)ax_dims_elems(array->rank, array->dims) * ax_dtype_bytes(array->dtype);
}

ax_status host_make(const ax_type *type, ax_host_array *out) {
  *out = (ax_host_array){.dtype = type->dtype, .rank = type->rank};
  memcpy(out->dims, type->dims, sizeof type->dims);
  out->data = ax_calloc(host_bytes(out), 1);
  return out->data != NULL ? AX_OK : ax_out_of_memory(host_bytes(out));
}

static ax_status read_literal(const char *text, ax_host_array *out) {
  ax_arena arena = {0};
  ax_literal literal = {0};
  ax_status status = ax_literal_parse(text, "--in", &arena, &literal);
  if (status == AX_OK) status = host_make(&literal.type, out);
  if (status == AX_OK) memcpy(out->data, literal.data, host_bytes(out));
  ax_arena_deinit(&arena);
  return status;
}

/* FILE.npz:MEMBER */
static ax_status read_member(const char *value, const char *colon, ax_host_array *out) {
  ax_npz *npz;
  word_list path = {0};
  ax_status status = word_list_add(&path, value, (size_t)(colon - value));
  if (status == AX_OK) status = ax_npz_read(path.words[0], &npz);
  if (status == AX_OK) {
    const ax_host_array *found = ax_npz_find(npz, colon + 1);
    ax_type type = found != NULL ? host_type(found) : (ax_type){0};
    status = found != NULL ? host_make(&type, out)
                           : ax_error(AX_INVALID_ARGUMENT, "%s holds no array \"%s\"", path.words[0], colon + 1);
    if (status == AX_OK) memcpy(out->data, found->data, host_bytes(out));
    ax_npz_release(npz);
  }
  word_list_deinit(&path);
  return status;
}

static ax_status read_header(const char *path, ax_host_array *out) {
  ax_type type;
  AX_TRY(ax_npy_type(path, &type));
  *out = (ax_host_array){.dtype = type.dtype, .rank = type.rank};
  memcpy(out->dims, type.dims, sizeof type.dims);
  return AX_OK;
}

/* A literal ends in its type: 0.5:f32[8,4]. *file: see inputs.files. */
static ax_status read_value(const char *value, ax_host_array *out, const char **file) {
  size_t length = strlen(value);
  const char *member = strstr(value, ".npz:");
  if (length > 0 && value[length - 1] == ']' && strchr(value, ':') != NULL) return read_literal(value, out);
  if (member != NULL) return read_member(value, member + 4, out);
  if (access(value, F_OK) != 0 && strpbrk(value, "0123456789[") == value)
    return ax_error(AX_IO_ERROR, "%s: No such file; a literal has its type behind it and nothing else, as 0.5:f32[8,4]", value);
  *file = value;
  return read_header(value, out);
}

ax_status input_type(const char *value, ax_type *out) {
  ax_host_array array = {0};
  const char *file = NULL;
  AX_TRY(read_value(value, &array, &file));
  *out = host_type(&array);
  ax_host_array_release(&array);
  return AX_OK;
}

ax_status inputs_read_whole(inputs *inputs, uint32_t index) {
  const char *file = inputs->files[index];
  inputs->files[index] = NULL;
  return file != NULL ? ax_npy_read(file, &inputs->arrays[index]) : AX_OK;
}

ax_status inputs_put(const inputs *inputs, uint32_t index, const ax_executable *executable, ax_array **out) {
  const char *file = inputs->files[index];
  return file != NULL ? ax_executable_put_npy(executable, index, file, out)
                      : ax_executable_put(executable, index, inputs->arrays[index].data, out);
}

static ax_status convert_array(ax_host_array *array, ax_dtype dtype) {
  ax_host_array converted;
  ax_type type = ax_array_type(dtype, AX_LIST(array->rank, array->dims));
  AX_TRY(host_make(&type, &converted));
  int64_t elems = ax_type_elems(&type);
  for (int64_t i = 0; i < elems; i++)
    ax_number_store(dtype, converted.data, i,
                    ax_number_convert(array->dtype, dtype, ax_number_load(array->dtype, array->data, i)));
  ax_host_array_release(array);
  *array = converted;
  return AX_OK;
}

static ax_status read_input(inputs *inputs, const source *source, const char *word, bool convert) {
  const char *equals = strchr(word, '=');
  int64_t index = source_find_input(source, word, (size_t)(equals - word));
  if (index < 0) return ax_error(AX_INVALID_ARGUMENT, "--in %s: the program has no such input", word);
  if (inputs->given[index]) return ax_error(AX_INVALID_ARGUMENT, "--in %s: the input is given twice", word);
  ax_host_array *array = &inputs->arrays[index];
  ax_dtype dtype = source->program->types[index].dtype;
  AX_TRY(read_value(equals + 1, array, &inputs->files[index]));
  inputs->given[index] = true;
  if (array->dtype == dtype) return AX_OK;
  if (convert) AX_TRY(inputs_read_whole(inputs, (uint32_t)index));
  if (convert) return convert_array(array, dtype);
  return ax_error(AX_INVALID_ARGUMENT, "--in %s: the dtype is %s, but the input's is %s (--convert converts)", word,
                  ax_dtype_name(array->dtype), ax_dtype_name(dtype));
}

ax_status inputs_read(inputs *inputs, const source *source, const word_list *words, bool convert) {
  uint32_t count = source->program->in_count;
  inputs->arrays = ax_calloc(count + 1, sizeof inputs->arrays[0]);
  inputs->files = ax_calloc(count + 1, sizeof inputs->files[0]);
  inputs->given = ax_calloc(count + 1, sizeof inputs->given[0]);
  if (inputs->arrays == NULL || inputs->files == NULL || inputs->given == NULL) return ax_out_of_memory(count);
  inputs->count = count;
  for (uint32_t i = 0; i < words->count; i++) AX_TRY(read_input(inputs, source, words->words[i], convert));
  return AX_OK;
}

void inputs_deinit(inputs *inputs) {
  for (uint32_t i = 0; i < inputs->count; i++) ax_host_array_release(&inputs->arrays[i]);
  ax_free(inputs->arrays);
  ax_free(inputs->files);
  ax_free(inputs->given);
}
