/* --in-sharding and --out-sharding: the layouts of a whole program's inputs and results over --mesh. */
#include <stdlib.h>
#include <string.h>

#include "axle/transform.h"
#include "cli.h"
#include "ir/program.h"
#include "mesh/constraint.h"

ax_status take_pair(word_list *list, const char *option, const char *argument) {
  const char *equals = strchr(argument, '=');
  if (equals == NULL || equals == argument)
    return ax_error(AX_INVALID_ARGUMENT, "%s: expected NAME=..., got \"%s\"", option, argument);
  return word_list_add(list, argument, strlen(argument));
}

/* Adds the specs of all `count` inputs, or of all results, to the text: "data,_; ?". `words` has the option's values, NAME=SPEC.
   "?" leaves the layout of an input or result that has no option to the partitioner. */
static ax_status side(const source *source, const char *option, const word_list *words, uint32_t count,
                      int64_t (*find)(const struct source *source, const char *word, size_t length), ax_text *text) {
  const char **specs = ax_calloc((size_t)count + 1, sizeof specs[0]);
  ax_status status = specs != NULL ? AX_OK : ax_out_of_memory(count * sizeof specs[0]);
  for (uint32_t w = 0; status == AX_OK && w < words->count; w++) {
    const char *word = words->words[w], *equals = strchr(word, '=');
    int64_t index = find(source, word, (size_t)(equals - word));
    if (index < 0) status = ax_error(AX_INVALID_ARGUMENT, "%s %s: the program has none of that name", option, word);
    else if (specs[index] != NULL) status = ax_error(AX_INVALID_ARGUMENT, "%s %s: it is given twice", option, word);
    else specs[index] = equals + 1;
  }
  for (uint32_t i = 0; status == AX_OK && i < count; i++)
    ax_text_add(text, "%s%s", i > 0 ? "; " : "", specs[i] != NULL ? specs[i] : "?");
  ax_free(specs);
  return status;
}

ax_status shardings_apply(const shardings *s, const source *source, const ax_process_layout *processes, ax_program **out) {
  const ax_program *program = source->program;
  if (program->axes.count > 0) return ax_error(AX_INVALID_ARGUMENT, "a per-device program's inputs and results have no shardings");
  if (!s->has_mesh) return ax_error(AX_INVALID_ARGUMENT, "--in-sharding and --out-sharding need --mesh");
  ax_text text = {0};
  ax_status status = side(source, "--in-sharding", &s->in, program->in_count, source_find_input, &text);
  ax_text_add(&text, " -> ");
  if (status == AX_OK) status = side(source, "--out-sharding", &s->out, program->out_count, source_find_output, &text);
  char *specs = NULL;
  if (status == AX_OK) status = ax_text_finish(&text, &specs);
  else ax_text_deinit(&text);
  if (status == AX_OK) status = ax_program_laid_like(program, &s->mesh, specs, processes, NULL, out);
  ax_string_free(specs);
  return status;
}

static ax_status take_library(shardings *s, const char *argument) {
  if (s->calls == NULL) AX_TRY(ax_custom_calls_create(&s->calls));
  const ax_status status = ax_custom_calls_load(s->calls, argument);
  return status == AX_OK ? AX_OK : ax_error_context(status, "--ffi %s: ", argument);
}

ax_status shardings_take(shardings *s, int value, const char *argument) {
  if (value == option_in_sharding) return take_pair(&s->in, "--in-sharding", argument);
  if (value == option_out_sharding) return take_pair(&s->out, "--out-sharding", argument);
  if (value == option_dim) return take_pair(&s->dims, "--dim", argument);
  if (value == option_ffi) return take_library(s, argument);
  s->has_mesh = true;
  return ax_mesh_parse(argument, &s->mesh);
}

void shardings_deinit(shardings *s) {
  word_list_deinit(&s->in);
  word_list_deinit(&s->out);
  word_list_deinit(&s->dims);
  ax_custom_calls_release(s->calls);
}

/* --- --spread --- */

enum { most_processes = 1 << 20 };

/* Reads a number that ends at one of the characters of `ends`, or at the end. */
static bool take_number(const char **at, const char *ends, int64_t least, uint32_t *out) {
  char digits[16] = {0};
  int64_t number;
  const size_t length = strcspn(*at, ends);
  if (length == 0 || length >= sizeof digits) return false;
  memcpy(digits, *at, length);
  if (!ax_integer_parse(digits, &number) || number < least || number > most_processes) return false;
  *at += length;
  *out = (uint32_t)number;
  return true;
}

static ax_status take_list(spread *s, const char *at) {
  uint32_t capacity = 0, *count = &s->layout.process_of_count;
  for (;; at++) {
    AX_TRY(ax_grow(&s->of, sizeof s->of[0], *count, 1, &capacity));
    if (!take_number(&at, ",", 0, &s->of[*count])) return AX_INVALID_ARGUMENT;
    if (s->of[*count] >= s->layout.processes) s->layout.processes = s->of[*count] + 1;
    ++*count;
    if (*at == '\0') break;
  }
  s->layout.process_of = s->of;
  return AX_OK;
}

static ax_status take_counts(spread *s, const char *at) {
  uint32_t first, second;
  if (!take_number(&at, "x", 1, &first)) return AX_INVALID_ARGUMENT;
  s->layout.processes = first;
  if (*at++ == '\0') return AX_OK;
  if (!take_number(&at, "", 1, &second) || (uint64_t)first * second > most_processes) return AX_INVALID_ARGUMENT;
  s->layout.processes = first * second;
  s->layout.per_host = second;
  return AX_OK;
}

ax_status spread_take(spread *s, const char *argument) {
  spread_deinit(s);
  const ax_status status = strchr(argument, ',') != NULL ? take_list(s, argument) : take_counts(s, argument);
  if (status != AX_INVALID_ARGUMENT) return status;
  return ax_error(AX_INVALID_ARGUMENT, "--spread: expected a number of processes, hosts and the processes of each as 4x8, or the process "
                                       "of each device as 0,0,1,1; got \"%s\"", argument);
}

void spread_deinit(spread *s) {
  ax_free(s->of);
  *s = (spread){0};
}
