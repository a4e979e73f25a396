/* The plugin's objects, inside pjrt: what the pointers of PJRT's interface point to. */
#ifndef AX_PJRT_PJRT_H
#define AX_PJRT_PJRT_H

#include <pthread.h>
#include <stdatomic.h>

#include "axle/exec.h"
#include "axle/sharding.h"
#include "base/base.h"
#include "client/elements.h"
#include "ir/text.h"

/* --- errors.c --- */

/* An error object; NULL is none. When there is no memory for one, the error says that. */
ax_pjrt_error *ax_pjrt_fail(ax_pjrt_code code, const char *format, ...) AX_PRINTF(2, 3);
ax_pjrt_error *ax_pjrt_error_of(ax_pjrt_code code, const char *message); /* of any length */
/* That of a status, with the thread's message; NULL for AX_OK. */
ax_pjrt_error *ax_pjrt_status(ax_status status);
ax_pjrt_error *ax_pjrt_status_of(ax_status status, const char *message);
ax_pjrt_code ax_pjrt_code_of(ax_status status);
/* Returns from the calling function if the expression is an error. */
#define AX_PJRT_TRY(expression)              \
  do {                                       \
    ax_pjrt_error *failed_ = (expression);   \
    if (failed_ != NULL) return failed_;     \
  } while (0)

/* --- events.c --- */

/* An event that has come about; error: as what (NULL: well), taken over. NULL: no memory, and the error is gone. */
ax_pjrt_event *ax_pjrt_event_now(ax_pjrt_error *error);
ax_pjrt_event *ax_pjrt_event_retain(ax_pjrt_event *event); /* event_destroy releases it */
/* Who awaits the event works on the array's run meanwhile. */
void ax_pjrt_event_awaits(ax_pjrt_event *event, ax_array *array);
/* It comes about, with the status's error, and the reference is released. */
void ax_pjrt_event_end(ax_pjrt_event *event, ax_status status, const char *message);
/* An event that comes about when the array is ready, and with its failure. The array may be released. */
ax_pjrt_error *ax_pjrt_event_of(ax_array *array, ax_pjrt_event **out);

/* --- clients.c --- */

enum { AX_PJRT_MEMORIES = 3 }; /* of a device: its own, pinned and unpinned memory of the host, which all are the same */

struct ax_pjrt_memory {
  const ax_pjrt_memory_functions *functions; /* first: callers read it */
  ax_pjrt_device *device;
  int id, kind;
  char text[48];
  pthread_mutex_t lock; /* of the data that callers hang on it */
  struct ax_pjrt_memory_data *data;
};

struct ax_pjrt_device_description {
  int id;
  char text[32], debug_text[32]; /* AxleDevice(id=3), axle:3 */
};

struct ax_pjrt_device {
  ax_pjrt_client *client;
  ax_pjrt_device_description description;
  ax_pjrt_memory memory[AX_PJRT_MEMORIES];
  ax_pjrt_memory *memories[AX_PJRT_MEMORIES];
  _Atomic(ax_sharding *) alone; /* arrays on this device alone; NULL: none has been made yet (ax_pjrt_alone) */
};

struct ax_pjrt_topology {
  ax_pjrt_client *client; /* whose devices it has; it is not held by the client's own topology */
  const char *platform;
  ax_pjrt_device_description **descriptions;
  size_t count;
};

struct ax_pjrt_client {
  atomic_uint references; /* the caller's, and one of each object that is the client's */
  ax_runtime *runtime;
  ax_pjrt_device *devices;
  ax_pjrt_device **device_list;
  ax_pjrt_memory **memory_list;
  size_t device_count;
  ax_pjrt_topology topology;
  atomic_uint_fast64_t runs;   /* begun so far */
  atomic_uint_fast64_t waited; /* number of the last run that somebody waited for, or asked whether it is over */
  atomic_uint in_turn;         /* how many runs one after the other were waited for before the next began; a few at most */
};

void ax_pjrt_client_release(ax_pjrt_client *client);
/* As many devices as the options say, else the environment, else one. */
ax_pjrt_error *ax_pjrt_client_of(const ax_pjrt_named *options, size_t option_count, ax_pjrt_client **out);
ax_pjrt_error *ax_pjrt_client_of_count(size_t device_count, ax_pjrt_client **out);
extern const char *const ax_pjrt_memory_kinds[AX_PJRT_MEMORIES]; /* "device", .. */
extern const char ax_pjrt_version_text[];

/* --- buffers.c --- */

typedef struct ax_pjrt_order { /* of dimensions in memory, the one that changes fastest first */
  bool said;                   /* false: row-major */
  int64_t minor_to_major[AX_MAX_RANK];
} ax_pjrt_order;

/* The array that a run has put the buffers of its devices together to, for runs that take the same ones again. Each of the buffers refers
   to it. It keeps no memory longer than they do: it loses the array once one of them is gone, or is put together with others. */
typedef struct ax_pjrt_joined {
  atomic_uint references;
  pthread_mutex_t lock;
  ax_array *whole; /* NULL: a buffer of these is gone */
} ax_pjrt_joined;

struct ax_pjrt_buffer {
  ax_pjrt_client *client;
  ax_pjrt_memory *memory;
  ax_type type;
  bool is_token;       /* to callers it is no array, but a token; to us bool[0] */
  uint64_t run;        /* number of the client's run that made it; 0: none */
  ax_pjrt_order order; /* that the buffer is said to have (layouts.h): its array is row-major */
  pthread_mutex_t lock; /* of all that follows */
  ax_array *whole; /* a run's result, of which the buffer is what the memory's device has; NULL: none, or deleted or donated */
  bool is_there;   /* the whole lies on the device; else all of it is the buffer's, and lies on another one */
  ax_array *array; /* the buffer's own; NULL: not asked for yet, or deleted or donated */
  ax_pjrt_joined *joined; /* what a run has put it together to with those of other devices; NULL: nothing */
  uint32_t held;   /* external references: callers that know the memory's address */
  ax_array *kept;  /* of a buffer that was deleted or donated while it was held: its array, whose memory stays until nobody holds it */
  bool may_move;   /* the array lies in memory of the caller's, across lines of the cache, and nobody was told where */
  uint32_t runs;   /* of one that may move: how often it was an argument while nobody held it */
};

/* How arrays lie on this device alone. ax_sharding_release. */
ax_pjrt_error *ax_pjrt_alone(ax_pjrt_device *device, ax_sharding **out);
/* Takes the array over. */
ax_pjrt_error *ax_pjrt_buffer_of(ax_array *array, ax_pjrt_memory *memory, ax_pjrt_buffer **out);
/* A buffer of this type for what the device has of a result, which need not be ready; retains it. is_there: the result lies on the
   device, and on no other one that has all of it. */
ax_pjrt_error *ax_pjrt_buffer_of_whole(ax_array *whole, bool is_there, const ax_type *type, ax_pjrt_memory *memory, ax_pjrt_buffer **out);
/* The buffer's array, retained; waits for a result of several devices. */
ax_pjrt_error *ax_pjrt_buffer_array(ax_pjrt_buffer *buffer, ax_array **out);
/* Likewise, for a run. An array that has been an argument so often that it is worth a copy is then moved to whole lines of the cache. */
ax_pjrt_error *ax_pjrt_buffer_argument(ax_pjrt_buffer *buffer, ax_array **out);
/* The result of a run that the buffer is a part of, retained; NULL: it is of none. */
ax_array *ax_pjrt_buffer_whole(ax_pjrt_buffer *buffer);
/* For what buffers are put together to; NULL: out of memory. ax_pjrt_joined_release. */
ax_pjrt_joined *ax_pjrt_joined_create(ax_array *whole);
void ax_pjrt_joined_release(ax_pjrt_joined *joined); /* NULL is allowed */
/* Refers to it from here on, and says so; not if the buffer is a part of a run's result, is gone, or its array may move. */
bool ax_pjrt_buffer_join(ax_pjrt_buffer *buffer, ax_pjrt_joined *joined);
void ax_pjrt_joined_dissolve(ax_pjrt_joined *joined); /* it loses the array; NULL is allowed */
ax_pjrt_joined *ax_pjrt_buffer_joined(ax_pjrt_buffer *buffer); /* retained; NULL: none */
ax_array *ax_pjrt_joined_whole(ax_pjrt_joined *joined);        /* retained; NULL: a buffer of these is gone */
/* Another array in the memory of this one, which lies on one device: it has as many elements. Waits. */
AX_MUST_USE ax_status ax_pjrt_array_as(ax_array *array, const ax_type *type, int device, ax_runtime *runtime, ax_array **out);
/* Its array is given to a run, or deleted. Memory that callers know the address of stays as long as they hold it. */
void ax_pjrt_buffer_forget(ax_pjrt_buffer *buffer);
bool ax_pjrt_buffer_is_held(ax_pjrt_buffer *buffer); /* by external references */

/* --- options.c --- */

typedef struct ax_pjrt_options { /* what of XLA's CompileOptionsProto counts here */
  int64_t replicas, partitions;
  int64_t *devices; /* ids: replica by replica its partitions; NULL: the first ones */
  bool portable;    /* for whichever device a run names */
} ax_pjrt_options;

ax_pjrt_error *ax_pjrt_options_read(const char *bytes, size_t count, ax_pjrt_options *out);
void ax_pjrt_options_free(ax_pjrt_options *options);

/* --- executables.c --- */

typedef struct ax_pjrt_value { /* an input or a result */
  ax_type whole, block;  /* of all devices; of a buffer, which lacks the first dimension where devices have parts by themselves */
  ax_having having;
  bool by_hand; /* each device has its own, by no layout: of a value in a manual computation */
  bool is_token; /* of a result: its buffers are called tokens */
  int memory; /* the kind of its buffers' memory */
  ax_pjrt_order layout;
  ax_sharding *sharding; /* of the whole; NULL: there is one device */
  int64_t *order;        /* of a value whose mesh has the devices in an order of its own: which of the options' devices stands at each place */
  ax_sharding *ordered;  /* how the program has such a value, with the devices in the options' order; else NULL */
} ax_pjrt_value;

typedef struct ax_pjrt_texts { /* a list that is given to callers */
  char **items;
  size_t *lengths;
} ax_pjrt_texts;

struct ax_pjrt_executable { /* shared by what was loaded and what asks about it */
  atomic_uint references;
  ax_pjrt_client *client;
  ax_program *program;
  ax_executable *made;
  ax_executable *timed;       /* the same, which notes what it does when; NULL: not compiled yet */
  pthread_mutex_t timed_lock; /* held while it runs */
  ax_pjrt_options options;
  size_t device_count, in_count, out_count;
  ax_pjrt_value *in, *out;
  ax_pjrt_layout **in_layouts, **out_layouts; /* for callers */
  bool *donated; /* by input */
  char *code, *option_text; /* the module, and the compile options, as they were given */
  size_t code_bytes, option_bytes;
  bool by_hand;  /* it has manual computations, which take what each device has by itself */
  pthread_mutex_t apart_lock;       /* of the next one */
  struct ax_pjrt_executable *apart; /* the same, of arguments that devices have by themselves though their layouts show one; NULL: not yet */
  bool *asked_apart; /* of such a one: by argument; NULL: this is none */
  bool alike;    /* all devices compute the same, so that one does */
  bool reads;    /* what it computes depends on an argument */
  bool sums_stay;    /* the module says where sums stay in parts; so those that a loop adds to a carry are made behind it */
  bool calls_python; /* so a run is over when its start returns, as scripts expect of JAX's CPU devices, which print in order */
  char name[256], fingerprint[33];
  ax_pjrt_named costs[4];
  size_t cost_count;
  /* lists that getters give */
  ax_pjrt_element *elements;
  int64_t *dims;
  size_t *ranks;
  const char **kinds; /* of memory: the inputs', then the results' */
  size_t *kind_lengths;
  ax_pjrt_texts in_shardings, out_shardings;
};

struct ax_pjrt_loaded_executable {
  ax_pjrt_executable *executable;
  ax_pjrt_device **devices; /* NULL: portable */
  ax_pjrt_logical_id *ids;
  atomic_bool deleted;
};

void ax_pjrt_executable_release(ax_pjrt_executable *executable);
/* Compiles the program; timed: its runs note what they do when. */
ax_pjrt_error *ax_pjrt_executable_compile(const ax_pjrt_executable *executable, bool timed, ax_executable **out);
/* Compiles a module; the client is held. kept: it was kept, in a file say, so that functions of the process that it names may be gone. */
ax_pjrt_error *ax_pjrt_executable_of(ax_pjrt_client *client, const ax_pjrt_program *program, const char *options, size_t option_bytes,
                                     bool kept, ax_pjrt_executable **out);
/* The same program for arguments of which each device has its own, though the layout shows one; retained. apart: by argument. */
ax_pjrt_error *ax_pjrt_executable_apart(ax_pjrt_executable *executable, const bool *apart, ax_pjrt_executable **out);
/* Takes the executable over, also on failure. */
ax_pjrt_error *ax_pjrt_executable_load(ax_pjrt_executable *executable, ax_pjrt_loaded_executable **out);

/* --- inspections.c --- */

/* Tells how the values lie that the module asks for, to whom it names: functions of this process. */
ax_pjrt_error *ax_pjrt_inspect(const ax_pjrt_program *program);

/* --- serialized.c --- */

struct ax_pjrt_held { /* bytes that are given to callers */
  size_t count;
  char bytes[];
};
ax_pjrt_held *ax_pjrt_held_of(size_t count); /* NULL: no memory */
void ax_pjrt_held_release(ax_pjrt_held *held);

/* --- The functions, each in the file of its object --- */

#define AX_PJRT_DECLARE(name, known_as) void ax_pjrt_do_##name(ax_pjrt_##name##_args *args);
AX_PJRT_QUIET(AX_PJRT_DECLARE)
#undef AX_PJRT_DECLARE
#define AX_PJRT_DECLARE(name, known_as) ax_pjrt_error *ax_pjrt_do_##name(ax_pjrt_##name##_args *args);
AX_PJRT_FUNCTIONS(AX_PJRT_DECLARE)
#undef AX_PJRT_DECLARE

/* A function that only tells what an object has: a value, a text, or a list, as client/api.h has these. */
#define AX_PJRT_GIVE(name, ...)                                   \
  ax_pjrt_error *ax_pjrt_do_##name(ax_pjrt_##name##_args *args) { \
    __VA_ARGS__;                                                  \
    return NULL;                                                  \
  }
#define AX_PJRT_GIVE_VALUE(name, what) AX_PJRT_GIVE(name, args->value = (what))
#define AX_PJRT_GIVE_TEXT(name, string) AX_PJRT_GIVE(name, args->text = (string); args->length = strlen(args->text))
#define AX_PJRT_GIVE_LIST(name, list, number) AX_PJRT_GIVE(name, args->items = (list); args->count = (number))

#endif
