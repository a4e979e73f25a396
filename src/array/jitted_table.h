/* The table of a function that its calls compile: executables by what the arguments are.

     a call --> entry: layouts of the arguments, static bytes --> executable --> ax_run
                  |
                  '--> traced: types of the arguments, static bytes --> program     shared by entries of several layouts

   A runtime has each layout once, so layouts are compared by address; entries retain theirs. A call that finds its entry takes one
   lock, which belongs to its thread's place, and counts itself as a caller of the executable before it lets go: so the entry may be
   dropped at once. The table and its entries change while all places are locked, and `making` is held for that and for what only
   calls that miss look at. The user's function is traced, and programs are compiled, with no lock held. */
#ifndef AX_ARRAY_JITTED_TABLE_H
#define AX_ARRAY_JITTED_TABLE_H

#include "array/call.h"
#include "axle/jitted.h"

struct ax_jitted {
  ax_runtime *runtime; /* held */
  ax_fn function;
  ax_compile_options options; /* its lists and texts are owned */
  ax_mesh mesh;               /* that options.mesh points to */
  ax_process_layout processes;
  uint32_t most_kept;
  struct ax_jitted_entry **chains; /* by hash; changed as said above, like the next three */
  uint32_t chain_count, count;     /* a power of two, or 0; entries */
  uint64_t clock;                  /* goes on with each entry that is added */
  pthread_mutex_t making;          /* guards the fields up to `made` */
  struct ax_jitted_traced *traced;
  struct ax_jitted_compiling *compiling;
  uint64_t missed, traces, compiles, dropped;
  pthread_cond_t made; /* one of `compiling` has ended */
  atomic_bool spread; /* some executable's mesh is spread over processes: they make its calls together */
  atomic_uint references;
  struct {
    _Alignas(64) pthread_mutex_t lock;
    uint64_t found;
  } places[AX_CALLER_PLACES];
};

/* What a call is given. All borrowed. */
typedef struct ax_jitted_key {
  ax_layout *const *layouts;
  ax_array *const *arrays; /* whose layouts these are; NULL: of host arrays */
  ax_static statics;
  bool retain; /* the executable */
  uint64_t hash;
} ax_jitted_key;

typedef struct ax_jitted_held { /* an executable that a call has entered */
  ax_executable *executable;
  uint32_t place;
  bool retained;
} ax_jitted_held;

/* Finds the executable of a call, and enters it. The key's arrays are not looked at. */
bool ax_jitted_find(ax_jitted *jitted, const ax_jitted_key *key, ax_jitted_held *out);
/* The same for a call that has found none: traces and compiles, or waits for a thread that does. Statuses: those of ax_trace and
   ax_compile. */
AX_MUST_USE ax_status ax_jitted_make(ax_jitted *jitted, const ax_jitted_key *key, ax_jitted_held *out);
/* Ends the call. */
void ax_jitted_leave(const ax_jitted_held *held);
/* Releases all that the table has. No other thread uses it; no lock is taken, which in a forked process may be held for ever. */
void ax_jitted_end(ax_jitted *jitted);

#endif
