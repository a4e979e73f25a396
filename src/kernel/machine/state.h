/* The inside of a machine's state (machine.h): the agents' values, memory, and functions over both. */
#ifndef AX_KERNEL_MACHINE_STATE_H
#define AX_KERNEL_MACHINE_STATE_H

#include "kernel/machine/machine.h"

/* --- Values of a core: never changed once they are made, so that clones share them --- */

typedef struct ax_view { /* of a region's bytes; of semaphores and barriers: of its objects, strides and offset in objects */
  uint32_t region;
  ax_type type;
  int64_t offset, strides[AX_MAX_RANK]; /* bytes */
} ax_view;

/* Of an element that has been added to, in states that weigh sums (terms.c). */
typedef struct ax_term {
  double size; /* the sum of its terms, without their signs */
  double sums; /* additions; 0: it is no sum, and the size is not known */
} ax_term;

typedef struct ax_cell {
  uint32_t references;
  ax_tensor *tensor; /* NULL: a view */
  ax_view view;
  uint64_t hash; /* 0: not made yet */
  ax_term *terms; /* by element; NULL: it has no sums */
} ax_cell;
ax_cell *ax_cell_retain(ax_cell *cell);
void ax_cell_release(ax_cell *cell); /* NULL is allowed */
AX_MUST_USE ax_status ax_cell_tensor(const ax_type *type, ax_cell **out); /* zeros */
AX_MUST_USE ax_status ax_cell_view(const ax_view *view, ax_cell **out);

/* --- Memory: shared by clones until one of them writes --- */

typedef struct ax_bank {
  uint32_t references;
  uint64_t bytes, hash; /* hash 0: not made since it was written */
  unsigned char *data, *set; /* set: a byte for each byte, 1 where it has been written */
  ax_term *terms;            /* NULL, or one for each .. */
  uint32_t term_bytes;       /* .. so many bytes */
} ax_bank;
AX_MUST_USE ax_status ax_bank_create(uint64_t bytes,
                                     ax_bank **out); /* nothing set; filled with a pattern that is no sensible number */
void ax_bank_release(ax_bank *memory);
/* *memory is the only reference then. */
AX_MUST_USE ax_status ax_bank_own(ax_bank **memory);
uint64_t ax_bank_hash(ax_bank *memory);

/* The byte runs of a view, ascending and joined, into the pool of touches as one touch. */
AX_MUST_USE ax_status ax_view_touch(ax_touches *pool, const ax_view *view, const unsigned char *mask, bool write);
/* The view's elements, dense, to or from `data`; `set` likewise, a byte each byte. mask: a byte an element, or NULL. */
void ax_view_read(const ax_view *view, const ax_bank *memory, const unsigned char *mask, void *data, unsigned char *set);
void ax_view_write(const ax_view *view, ax_bank *memory, const unsigned char *mask, const void *data, const unsigned char *set);
/* Finds the first bytes that the view reads (where the mask says) and that are unset; false: there are none. */
bool ax_view_unset(const ax_view *view, const ax_bank *memory, const unsigned char *mask, ax_bytes *where);

/* --- Terms of sums (terms.c) --- */
/* Of a view's elements, dense; NULL: it has no sums. */
AX_MUST_USE ax_status ax_terms_read(const ax_view *view, const ax_bank *memory, ax_term **out);
/* NULL: the elements are no sums any more. */
AX_MUST_USE ax_status ax_terms_write(const ax_view *view, ax_bank *memory, const unsigned char *mask, const ax_term *terms);
/* Of sums of the elements that are there and the value; NULL: these are no floats. */
AX_MUST_USE ax_status ax_terms_add(const ax_view *view, const ax_bank *memory, const ax_cell *value, ax_term **out);
/* Of what an equation has made of cells. */
AX_MUST_USE ax_status ax_terms_eval(const ax_prim *prim, ax_cell *const *in, ax_cell *out);
/* Whether two orders of a sum's additions may differ by so much. */
bool ax_term_explains(ax_dtype dtype, ax_term term, double difference);

/* --- Places and objects --- */

typedef struct ax_state_place { /* a region, or an array of semaphores or barriers, in a state */
  ax_bank *memory;     /* NULL: objects, or not there (yet) */
  ax_type type;
  uint32_t first_object; /* of semaphores and barriers */
  uint32_t device, users; /* users: of a scope for several cores, the number of cores in it */
  bool made, alive;
} ax_state_place;

typedef struct ax_state_object { /* a semaphore, a barrier */
  int64_t count, arrivals, arrived, phase;
  uint32_t region;
} ax_state_object;

typedef enum ax_agent_kind { AX_AGENT_CORE, AX_AGENT_COPY, AX_AGENT_BEGIN, AX_AGENT_END, AX_AGENT_SIGNAL } ax_agent_kind;

typedef struct ax_wait_count { /* number of times that a core has waited for a barrier */
  uint32_t object;
  int64_t times;
} ax_wait_count;

typedef struct ax_stored_run { /* bytes, and the step that stored them last */
  uint32_t region;
  ax_bytes bytes;
  const ax_core_code_step *step;
} ax_stored_run;

typedef struct ax_stored { /* what a core has stored and not committed: ascending, each byte once (commits.c); {0}: nothing */
  ax_stored_run *runs;
  uint32_t count, capacity;
} ax_stored;
/* Puts the bytes of a touch in, as stored by the step; NULL: takes them out. */
AX_MUST_USE ax_status ax_stored_put(ax_stored *stored, const ax_touches *pool, const ax_touch *touch,
                                    const ax_core_code_step *step);
AX_MUST_USE ax_status ax_stored_copy(const ax_stored *from, ax_stored *to);
void ax_stored_deinit(ax_stored *stored);
uint64_t ax_stored_hash(const ax_stored *stored, uint64_t hash);

typedef struct ax_core_frame { /* of a core */
  uint32_t pc, copies, signals; /* how many copies it has started, and signals that travel */
  ax_cell **slot;
  int64_t *counter;
  uint32_t *occurrence; /* by step: how often a scope has been opened */
  ax_wait_count *waited;
  uint32_t waited_count, waited_capacity;
  struct ax_grouped { uint32_t agent, acts; } *group; /* copies in order, and how many acts each has, .. */
  uint32_t *group_end;   /* .. and where each committed group ends in them */
  uint32_t grouped, grouped_capacity, groups, groups_capacity;
  bool begun;            /* it has waited for the beginning of its device */
  uint32_t joined, joined_read; /* numbers of these copies that were waited for: until they are through, and until they have read */
  ax_stored stored;
} ax_core_frame;

typedef struct ax_state_copy { /* a copy; of a signal that travels step, by, received and amount */
  const ax_core_code_step *step;
  ax_view from, to;
  uint32_t by;                       /* the core that started it */
  uint32_t received, sent, barrier;  /* objects; AX_NONE */
  int64_t amount;                    /* of a signal */
  ax_cell *data;                     /* between reading and writing: bytes as u8 */
  unsigned char *set;
  uint32_t stage;
} ax_state_copy;

typedef struct ax_actor { /* cloned states share an agent until one of them moves it */
  uint32_t references;
  uint64_t hash; /* 0: not known */
  ax_agent_kind kind;
  bool started, through;
  int64_t acts;
  ax_core_frame frame;       /* CORE */
  ax_state_copy transfer; /* COPY, SIGNAL */
  uint32_t device, stage; /* BEGIN, END */
  uint32_t core;        /* CORE: its number */
} ax_actor;

/* This state's own, to be changed. */
AX_MUST_USE ax_status ax_state_own_actor(ax_state *state, uint32_t agent);

struct ax_state {
  const ax_machine *machine;
  ax_actor **actors; /* by agent number; NULL: not there yet */
  ax_state_place *places;
  ax_state_object *objects;
  uint32_t actor_count, actor_capacity, place_count, place_capacity, object_count, object_capacity;
  ax_touches pool;
  bool failed; /* an agent has stopped at a fault */
  bool weighs; /* sums know how large their terms were (terms.c) */
  char what[256], fault[512];
};

/* --- Numbers by key, the same in all states of a machine; given when a key is first asked for (names.c) --- */
typedef enum ax_name_kind { AX_NAME_AGENT, AX_NAME_PLACE, AX_NAME_OBJECT, AX_NAME_KINDS } ax_name_kind;
typedef struct ax_name_key {
  uint32_t kind, core, site, occurrence, index; /* OBJECT: of place `core` element `index`; PLACE: a scope's; AGENT: of `core` copy
                                                   `index`, or, where site is 1, signal `index` */
} ax_name_key;
typedef struct ax_names ax_names;
AX_MUST_USE ax_status ax_names_create(ax_names **out);
void ax_names_release(ax_names *names);
AX_MUST_USE ax_status ax_names_number(ax_names *names, const ax_name_key *key, uint32_t *out);
bool ax_names_find(const ax_names *names, const ax_name_key *key, uint32_t *out);
const ax_name_key *ax_names_key(const ax_names *names, ax_name_kind kind, uint32_t number);
uint32_t ax_names_count(const ax_names *names, ax_name_kind kind);

/* --- Within a state (state.c) --- */
/* Makes a region, or objects, of this number; `set`: its memory counts as written. */
AX_MUST_USE ax_status ax_state_make_place(ax_state *state, uint32_t number, const ax_type *type, int64_t arrivals, uint32_t device);
/* Gives the place that stands for `place` on another core: `coordinates` as ax_core_params says. *out is AX_NONE: there is none. */
AX_MUST_USE ax_status ax_state_away(const ax_state *state, uint32_t core, const ax_core_params *to, const int64_t *coordinates,
                                    uint32_t place, uint32_t *out);
ax_view ax_dense_view(uint32_t region, const ax_type *type);
/* The same elements, in row-major order, of another shape; false: no such view exists, since a dimension that is split or joined
   does not lie in one piece. */
bool ax_view_reshape(const ax_view *from, const ax_type *to, ax_view *out);
/* The instance of a ref of the kernel for a core. */
uint32_t ax_machine_place(const ax_machine *machine, const ax_core *core, uint32_t ref);
ax_actor *ax_state_actor(const ax_state *state, uint32_t agent); /* NULL: not there yet */
AX_MUST_USE ax_status ax_state_add_actor(ax_state *state, uint32_t agent, ax_actor **out);
void ax_state_end_copy(ax_state *state, uint32_t agent);
void ax_actor_text(ax_text *text, const ax_state *state,
                   uint32_t agent); /* "device 3, core 0", "copy 2 of device 3, core 0", "the end of device 3" */
/* Until all are through, one after the other as far as each comes. AX_DEADLOCK, and AX_INVALID_ARGUMENT for a fault. */
AX_MUST_USE ax_status ax_state_run(ax_state *state);
/* --- A core between acts (frame.c) --- */
/* Goes on to the next act, or the end. A fault of the computation on the way (an index out of bounds) is in `fault`. */
AX_MUST_USE ax_status ax_core_frame_advance(ax_state *state, uint32_t agent, ax_act_fault *fault);
void ax_core_frame_commit(ax_core_frame *frame); /* of commit_smem */
ax_status ax_state_fault(ax_state *state, ax_act_fault *fault, ax_finding_kind kind, uint32_t region, const char *format, ...)
    AX_PRINTF(5, 6);

#endif
