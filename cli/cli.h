/* Shared by the sub-commands. Each _main returns the exit code: 0, 1 (it failed) or 2 (wrong usage). Errors go to stderr. */
#ifndef AX_CLI_CLI_H
#define AX_CLI_CLI_H

#include <popt.h>

#include "axle/custom_call.h"
#include "axle/exec.h"
#include "axle/npy.h"
#include "axle/simulate.h"
#include "assemble/nests.h"
#include "ir/text.h"
#include "machine/machine.h"

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

int run_main(int argc, const char **argv);
int check_main(int argc, const char **argv);
int trace_main(int argc, const char **argv);
int show_main(int argc, const char **argv);
int simulate_main(int argc, const char **argv);
int plan_main(int argc, const char **argv);
int bench_main(int argc, const char **argv);
int devices_main(int argc, const char **argv);
int help_main(int argc, const char **argv);

/* --- devices.c, messages.c --- */
/* Prints the facts of the machine, a line each with `before` in front, as AXLE_MACHINE takes them (one that cannot be given is a
   comment), and `more`. known: by fact, NULL: this machine's. */
AX_MUST_USE ax_status facts_print(const char *before, const ax_known *known, const char *more);
/* Measures messages between the processes; process 0 prints facts with their speeds. */
AX_MUST_USE ax_status messages_print(void);

/* --- speeds.c --- */
/* What the folder of compiled code is called where no option says: the command keeps it in the user's folder unless the environment
   says otherwise (NULL), since it is often started again with the same program. */
const char *own_code_cache(void);
/* From now on measured speeds are kept there, and read from there. */
void keep_speeds(void);

/* --- main.c --- */
/* Prints "axle: error: " and this thread's message. Returns EXIT_FAILED. */
int report_error(void);
/* Prints "axle: error: ..." and how to get help. Returns EXIT_USAGE. */
int usage_error(const char *command, const char *format, ...) AX_PRINTF(2, 3);

/* Prints the commands, a line each. */
void print_overview(void);
/* Prints what `axle NAME --help` prints. False: there is no such command. */
bool print_command_help(const char *name);

typedef struct word_list {
  char **words; /* owned */
  uint32_t count, capacity;
} word_list;
AX_MUST_USE ax_status word_list_add(word_list *list, const char *word, size_t length);
void word_list_deinit(word_list *list);

/* Reads all options. An option with a value `val` in the table goes to handle(context, val, argument). The one argument that is
   not an option goes to *file. Returns EXIT_OK, or EXIT_USAGE after reporting the error. *done: help was printed. `notes` ends the
   help. */
typedef struct option_set {
  const char *command; /* "run" */
  const char *usage, *summary, *notes;
  const struct poptOption *table;
  ax_status (*handle)(void *context, int value, const char *argument);
  void *context;
  bool wants_file;
} option_set;
int read_options(const option_set *set, int argc, const char **argv, char **file, bool *done);

/* Takes the argument of an option that is a number from 1 to `most`. */
AX_MUST_USE ax_status take_count(const char *option, const char *argument, int64_t most, int64_t *out);
/* Takes the argument of --subnormals: keep or flush. */
AX_MUST_USE ax_status take_subnormals(const char *argument, ax_subnormals *out);
/* Takes the argument of --contraction: exact or fused. */
AX_MUST_USE ax_status take_contraction(const char *argument, ax_contraction *out);

/* --- plugin.c --- */
/* The options --plugin and --plugin-option. The path is popt's, from malloc. */
typedef struct plugin_choice {
  char *path; /* NULL: Axle compiles and runs */
  ax_text options;
  int partitions;
  char *precision; /* likewise; NULL: the environment's, or the highest */
} plugin_choice;
#define PLUGIN_PRECISION_OPTION(precision)                                                                                       \
  {"plugin-precision", '\0', POPT_ARG_STRING, precision, 0,                                                                      \
   "How precise a plugin's products of f32 are: highest (the default, unless AXLE_PLUGIN_PRECISION says another), high or default", "HOW"}
#define PLUGIN_PARTITIONS_OPTION(partitions)                                                                                     \
  {"plugin-partitions", '\0', POPT_ARG_NONE, partitions, 0, "Leave it to the plugin how the program is spread over devices", NULL}
#define PLUGIN_OPTIONS(path, value)                                                                                             \
  {"plugin", '\0', POPT_ARG_STRING, path, 0, "Compile and run by this plugin of PJRT, on its devices", "FILE.so"},              \
  {                                                                                                                             \
    "plugin-option", '\0', POPT_ARG_STRING, NULL, value, "What the plugin is told, as num_devices=8; may be given repeatedly", "NAME=VALUE" \
  }
AX_MUST_USE ax_status plugin_take(plugin_choice *plugin, const char *argument);
/* Sets what the runtime is to open; the choice must outlive its making. */
AX_MUST_USE ax_status plugin_apply(const plugin_choice *plugin, ax_runtime_options *options);
/* Prints what the plugin is, and its devices. */
AX_MUST_USE ax_status plugin_print(const plugin_choice *plugin);
void plugin_deinit(plugin_choice *plugin);

/* --- processes.c --- */
/* The option --processes, and its argument: mpi or one. */
#define PROCESSES_OPTION(value)                                                                                                    \
  {                                                                                                                                \
    "processes", '\0', POPT_ARG_STRING, NULL, value,                                                                               \
        "mpi: spread the devices over the processes that mpirun has started; one (the default, unless AXLE_PROCESSES says mpi)",   \
        "BY"                                                                                                                       \
  }
AX_MUST_USE ax_status take_processes(const char *argument, ax_processes_by *out);
/* Sets *number to that of process 0. Collective. */
AX_MUST_USE ax_status processes_take_first(const ax_runtime *runtime, int64_t *number);
/* Prints, in process 0, a line for each process: where it is, what it has, and its devices of the mesh, if that is not NULL.
   Collective. */
AX_MUST_USE ax_status processes_print(const ax_runtime *runtime, const ax_mesh *mesh);
double memory_gibibytes(int pages); /* of this many pages, as sysconf names them */

/* --- simulate.c --- */
bool is_picture(const char *path); /* it ends in .svg */
/* Refuses other names than timeline_write has a form for: those that end in .svg or .json, and - for the screen. NULL: none is asked
   for. */
AX_MUST_USE ax_status timeline_check(const char *path);
/* Writes what each device does: a picture where the path ends in .svg, otherwise trace events. */
AX_MUST_USE ax_status timeline_write(const char *path, const ax_simulation *simulation);

/* --- write.c --- */
/* Writes a file anew; the name - is standard output. AX_IO_ERROR. */
AX_MUST_USE ax_status write_file(const char *path, const char *bytes, size_t count);

/* --- source.c --- */
struct shardings;
/* A program, and the names that its text gives to its inputs and results. */
typedef struct source {
  ax_program *program;
  ax_program_names names; /* `in` is NULL once a pass has transformed the program */
} source;
/* A file, whatever it has in it. A large one is mapped, and must not change meanwhile. */
typedef struct source_bytes {
  const char *data;
  size_t length;
  bool mapped;
  ax_text text; /* has the bytes of one that is not mapped */
  struct ax_shared *owner; /* its release frees this */
} source_bytes;
AX_MUST_USE ax_status source_bytes_read(const char *path, source_bytes **out);
/* "-": standard input. Extents that a module leaves open are those of --dim, which `s` has, and those of the values of --in; in:
   NULL, the command takes none. */
AX_MUST_USE ax_status source_read(const char *path, const struct shardings *s, const word_list *in, source *out);
void source_deinit(source *source);
/* Finds an input, or result, by its name in the text, else by its number from 0, else by its letters in the printed form. -1:
   there is none. */
int64_t source_find_input(const source *source, const char *word, size_t length);
int64_t source_find_output(const source *source, const char *word, size_t length);
const char *source_input_name(const source *source, uint32_t index);  /* valid until the next call */
const char *source_output_name(const source *source, uint32_t index); /* likewise */

/* --- inputs.c --- */
/* Arrays for a program's inputs. Zero-initialise to start. Of a .npy file only the header is read at first, since each of several
   processes needs only a part of the rest: the array then has no data. */
typedef struct inputs {
  ax_host_array *arrays;
  const char **files; /* by input: where its data is still to be read; NULL: nowhere. Borrowed from the words */
  bool *given;
  uint32_t count;
} inputs;
/* words: NAME=VALUE, at most one for each input, which stay as long as the inputs. */
AX_MUST_USE ax_status inputs_read(inputs *inputs, const source *source, const word_list *words, bool convert);
/* Reads an input whole, if that has not been done. */
AX_MUST_USE ax_status inputs_read_whole(inputs *inputs, uint32_t index);
/* Makes the executable's argument of an input. */
AX_MUST_USE ax_status inputs_put(const inputs *inputs, uint32_t index, const ax_executable *executable, ax_array **out);
void inputs_deinit(inputs *inputs);
/* The type of a VALUE, of files without their data. */
AX_MUST_USE ax_status input_type(const char *value, ax_type *out);
ax_type host_type(const ax_host_array *array);
size_t host_bytes(const ax_host_array *array);
/* Makes an array of `type` with room for its elements. */
AX_MUST_USE ax_status host_make(const ax_type *type, ax_host_array *out);

/* --- numbers.c --- */
/* The numbers of inputs that are not given. Floats: */
typedef enum numbers_kind {
  NUMBERS_NORMAL,   /* mean 0, deviation 1 */
  NUMBERS_UNIFORM,  /* from -1 to 1 */
  NUMBERS_ONES,     /* 1; integers and booleans too */
  NUMBERS_MASKED,   /* normal, but every second one, about, is -1e9 */
  NUMBERS_VANISHING /* of either sign, their sizes from the least of the dtype to 1, as many in each power of ten */
} numbers_kind;
typedef struct numbers {
  numbers_kind kind;
  uint64_t seed;
} numbers;
const char *numbers_name(numbers_kind kind);
bool numbers_find(const char *name, numbers_kind *out);
/* Makes input number `input` of a program. Its integers are below `limit`; INT64_MAX: below 10. The same seed gives the same
   numbers; beyond a million elements they repeat. */
AX_MUST_USE ax_status numbers_fill(const numbers *n, uint32_t input, const ax_type *type, int64_t limit, ax_host_array *out);

/* --- limits.c --- */
/* Finds for each input of a program what its integers have to be below so that they lie inside what they index, as far as the dtype
   goes. INT64_MAX: they index nothing. */
AX_MUST_USE ax_status input_limits(const ax_program *program, int64_t *out);

/* --- shardings.c --- */
/* The values of --mesh, --in-sharding and --out-sharding; and of --dim and --ffi. */
typedef struct shardings {
  word_list in, out; /* NAME=SPEC */
  word_list dims;    /* NAME=N */
  ax_custom_calls *calls; /* NULL: there is no --ffi */
  ax_mesh mesh;
  bool has_mesh;
} shardings;
enum { option_mesh = 100, option_in_sharding, option_out_sharding, option_dim, option_ffi, option_spread };
#define SHARDING_OPTIONS                                                                                                           \
  {"mesh", 'm', POPT_ARG_STRING, NULL, option_mesh, "The devices, as data=4,model=2", "AXIS=N,.."},                                \
      {"in-sharding", '\0', POPT_ARG_STRING, NULL, option_in_sharding, "How an input lies over --mesh, as x=data,_", "NAME=SPEC"}, \
      {"out-sharding", '\0', POPT_ARG_STRING, NULL, option_out_sharding, "How a result lies", "NAME=SPEC"},                         \
      {"dim", '\0', POPT_ARG_STRING, NULL, option_dim,                                                                              \
       "An extent that a StableHLO module leaves open: b=8, as JAX calls it, or x.0=8, of an input's dimension", "NAME=N"},         \
  {                                                                                                                                \
    "ffi", '\0', POPT_ARG_STRING, NULL, option_ffi,                                                                                \
        "A function for custom calls of a StableHLO module, built for XLA on CPUs: ./ffi.so:RmsNorm=rms_norm", "LIB:SYMBOL=TARGET" \
  }
AX_MUST_USE ax_status shardings_take(shardings *s, int value, const char *argument);
static inline bool shardings_given(const shardings *s) { return s->in.count + s->out.count > 0; }
/* Makes the program in which inputs and results are laid out as the options say. processes: for which "auto" chooses; NULL: one. */
AX_MUST_USE ax_status shardings_apply(const shardings *s, const source *source, const ax_process_layout *processes, ax_program **out);
/* The value of --spread: how many processes; HOSTSxPROCESSES, so many on each host; or the process of each device, as 0,0,1,1. */
typedef struct spread {
  ax_process_layout layout;
  uint32_t *of; /* owned */
} spread;
#define SPREAD_OPTION {"spread", '\0', POPT_ARG_STRING, NULL, option_spread, "Processes that the devices are spread over, as 2, 4x8 or 0,1,0,1", "P|HxP|P,.."}
AX_MUST_USE ax_status spread_take(spread *s, const char *argument);
void spread_deinit(spread *s);
void shardings_deinit(shardings *s);
/* Adds NAME=VALUE to the list. */
AX_MUST_USE ax_status take_pair(word_list *list, const char *option, const char *argument);

/* --- whole.c --- */
/* Makes a program on whole arrays from a per-device one, by a shard_map over `mesh`, which has the program's axes, perhaps with
   other sizes. given[i]: the type of the array given for input i. See `axle run --help`. */
AX_MUST_USE ax_status whole_program(const source *source, const ax_mesh *mesh, const ax_type *given, ax_program **out);

/* Makes a program that can be compiled. A program on whole arrays stays as it is. A per-device program becomes one on whole
   arrays, as above, in which each device has an input of its own. mesh: NULL, or as above. */
AX_MUST_USE ax_status whole_compiled(const source *source, const ax_mesh *mesh, ax_program **out);
/* The same, laid out as the options say. --mesh gives the sizes of a per-device program's axes, or the mesh for the
   shardings. */
AX_MUST_USE ax_status whole_laid_out(const source *source, const shardings *shardings, const ax_process_layout *processes, ax_program **out);

#endif
