/* What the sub-commands share. Each returns the exit code: 0, 1 (it failed), 2 (wrong usage); errors go to stderr. */
#ifndef AX_CLI_CLI_H
#define AX_CLI_CLI_H

#include <popt.h>

#include "axle/npy.h"
#include "exec/profile.h"
#include "ir/text.h"

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

int run_main(int argc, const char **argv);
int check_main(int argc, const char **argv);
int trace_main(int argc, const char **argv);
int show_main(int argc, const char **argv);
int simulate_main(int argc, const char **argv);
int bench_main(int argc, const char **argv);
int devices_main(int argc, const char **argv);
int help_main(int argc, const char **argv);

/* --- speeds.c --- */
/* How fast the runtime's threads read, write and multiply together; takes some tenths of a second. */
AX_MUST_USE ax_status measure_speeds(ax_runtime *runtime, ax_speeds *out);

/* --- main.c --- */
/* "axle: error: " and this thread's message. */
int report_error(void);
/* "axle: error: ...", and where help is. */
int usage_error(const char *command, const char *format, ...) AX_PRINTF(2, 3);

/* The commands, a line each. */
void print_overview(void);
/* What `axle NAME --help` prints; false: there is no such command. */
bool print_command_help(const char *name);

typedef struct word_list {
  char **words; /* owned */
  uint32_t count, capacity;
} word_list;
AX_MUST_USE ax_status word_list_add(word_list *list, const char *word, size_t length);
void word_list_deinit(word_list *list);

/* Reads options up to the end: those with a value `val` of its table go to handle(context, val, argument); the one argument that
   is no option goes to *file. Returns EXIT_OK or EXIT_USAGE (reported); *done: help was printed. `notes` ends the help. */
typedef struct option_set {
  const char *command; /* "run" */
  const char *usage, *summary, *notes;
  const struct poptOption *table;
  ax_status (*handle)(void *context, int value, const char *argument);
  void *context;
  bool wants_file;
} option_set;
int read_options(const option_set *set, int argc, const char **argv, char **file, bool *done);

/* --- source.c --- */
/* A program and what its text calls its inputs and results. */
typedef struct source {
  ax_program *program;
  ax_program_names names; /* `in` is NULL when the program is not as the text has it, but transformed */
} source;
AX_MUST_USE ax_status source_read(const char *path, source *out); /* "-": standard input */
void source_deinit(source *source);
/* By the text's name, by number from 0, or by the letters of the printed form, in this order; -1 when there is none. */
int64_t source_find_input(const source *source, const char *word, size_t length);
int64_t source_find_output(const source *source, const char *word, size_t length);
const char *source_input_name(const source *source, uint32_t index);  /* good until the next call */
const char *source_output_name(const source *source, uint32_t index); /* likewise */

/* --- inputs.c --- */
/* Arrays for a program's inputs. Zero-initialise to start. */
typedef struct inputs {
  ax_host_array *arrays;
  bool *given;
  uint32_t count;
} inputs;
/* words: NAME=VALUE, each of an input once at most. */
AX_MUST_USE ax_status inputs_read(inputs *inputs, const source *source, const word_list *words, bool convert);
void inputs_deinit(inputs *inputs);
ax_type host_type(const ax_host_array *array);
size_t host_bytes(const ax_host_array *array);
/* An array of `type` with room for its elements. */
AX_MUST_USE ax_status host_make(const ax_type *type, ax_host_array *out);

/* --- shardings.c --- */
/* What --mesh, --in-sharding and --out-sharding say. */
typedef struct shardings {
  word_list in, out; /* NAME=SPEC */
  ax_mesh mesh;
  bool has_mesh;
} shardings;
enum { option_mesh = 100, option_in_sharding, option_out_sharding };
#define SHARDING_OPTIONS                                                                                                           \
  {"mesh", 'm', POPT_ARG_STRING, NULL, option_mesh, "The devices, as data=4,model=2", "AXIS=N,.."},                                \
      {"in-sharding", '\0', POPT_ARG_STRING, NULL, option_in_sharding, "How an input lies over --mesh, as x=data,_", "NAME=SPEC"}, \
  {                                                                                                                                \
    "out-sharding", '\0', POPT_ARG_STRING, NULL, option_out_sharding, "How a result lies", "NAME=SPEC"                             \
  }
AX_MUST_USE ax_status shardings_take(shardings *s, int value, const char *argument);
static inline bool shardings_given(const shardings *s) { return s->in.count + s->out.count > 0; }
/* The program with its inputs and results laid out so. */
AX_MUST_USE ax_status shardings_apply(const shardings *s, const source *source, ax_program **out);
void shardings_deinit(shardings *s);
/* NAME=VALUE, added to the list. */
AX_MUST_USE ax_status take_pair(word_list *list, const char *option, const char *argument);

/* --- whole.c --- */
/* A per-device program as one that takes and gives whole arrays, by a shard_map over `mesh` (its axes, perhaps of other sizes).
   given[i]: the type of the array that there is for input i. See `axle run --help`. */
AX_MUST_USE ax_status whole_program(const source *source, const ax_mesh *mesh, const ax_type *given, ax_program **out);

/* What can be compiled: a program as it is, a per-device one as above, where each device has an input of its own. mesh: NULL, or as
   above. */
AX_MUST_USE ax_status whole_compiled(const source *source, const ax_mesh *mesh, ax_program **out);
/* The same as the options say: with --mesh, sizes of a per-device program's axes, or what shardings are over. */
AX_MUST_USE ax_status whole_laid_out(const source *source, const shardings *shardings, ax_program **out);

#endif
