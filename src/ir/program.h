/* The inside of a program, and the builder that makes one. */
#ifndef AX_IR_PROGRAM_H
#define AX_IR_PROGRAM_H

#include <stdatomic.h>

#include "axle/host.h"
#include "ir/context.h"
#include "ir/dtype.h"
#include "ir/equation.h"

struct ax_program {
  atomic_uint references;
  ax_arena arena; /* owns all below */
  ax_mesh axes;   /* the axis environment; a nested program's begins with its parent's */
  uint32_t in_count, out_count, value_count, eqn_count;
  const ax_type *types; /* by value id; 0 .. in_count are the inputs */
  const ax_eqn *eqns;
  const uint32_t *outs; /* value ids */
  /* By value id: its place among the inputs and the results of equations that are printed; or AX_LITERAL + an equation's index
     for scalar constants, which are part of the equations that use them: printed, compared and hashed there, by value. */
  const uint32_t *labels;
  uint32_t label_count;
  uint32_t effects; /* of all its equations together */
  ax_axis_set named; /* axes of its environment that its collectives name, with those of the programs in it */
  uint32_t nesting; /* the depth to which programs in it are nested; 0: it holds none */
  double seconds; /* seconds that tracing took; 0 if it was not traced */
  uint64_t hash; /* of structure, parameters and types; not of lines */
};
#define AX_LITERAL 0x80000000u

/* The literal that defines a value, or NULL. */
static inline const ax_literal *ax_value_literal(const ax_program *program, uint32_t id) {
  uint32_t label = program->labels[id];
  return (label & AX_LITERAL) != 0 ? program->eqns[label & ~AX_LITERAL].params : NULL;
}

/* Fills in the labels of a program that has all else, which are its own (`labels` once more, to be written), and its hash
   (identity.c). */
void ax_program_identify(ax_program *program, uint32_t *labels);
/* Says whether the equations of two equal programs come from the same C calls and, if `lines`, from the same lines of a text, so
   that messages with these places fit both. */
bool ax_program_same_locations(const ax_program *a, const ax_program *b, bool lines);
/* Program `index` of those that an equation holds, in the order of its parameters; NULL: there are fewer. */
ax_program *ax_eqn_program(const ax_eqn *eqn, uint32_t index);
/* Whether an equation of the program is of that primitive, or one of a program that it holds. */
bool ax_program_holds(const ax_program *program, const ax_prim *prim);
/* Copies the equation's parameters; the programs in the copy may be replaced. NULL: no memory, or no parameters. */
void *ax_eqn_own_params(const ax_eqn *eqn, ax_arena *arena);
/* The field of `params` that has program `index`, counted as by ax_eqn_program; NULL: there are fewer. */
ax_program **ax_params_program(const ax_prim *prim, void *params, uint32_t index);
/* AX_EFFECT_*: those of its primitive and of the programs it holds. */
uint32_t ax_eqn_effects(const ax_eqn *eqn);
/* The first equation whose primitive has the effect, at any depth. NULL: there is none. */
const ax_eqn *ax_find_effect(const ax_program *program, uint32_t effect);
/* The axes of `axes` that the equation names if it is a collective, with those that the programs it holds name. */
ax_axis_set ax_eqn_named(const ax_eqn *eqn, const ax_mesh *axes);
/* The largest numbers of operands, and of results, of any equation. */
uint32_t ax_most_operands(const ax_program *program);
uint32_t ax_most_results(const ax_program *program);
/* The depth of nested programs in an equation; 0: it holds none. */
uint32_t ax_eqn_nesting(const ax_eqn *eqn);

/* --- Types --- */
void ax_type_text(ax_text *text, const ax_type *type, const ax_mesh *axes); /* f32[4,8]{V:data,model} */
/* A short-lived rendering for messages: a ring of thread-local buffers, good for 8 calls. */
const char *ax_type_string(const ax_type *type, const ax_mesh *axes);
const char *ax_axis_set_string(ax_axis_set set, const ax_mesh *axes);
const char *ax_bound_string(const ax_mesh *axes); /* likewise: "data (4), model (2)", or "none" */
/* AX_INVALID_ARGUMENT: an unknown dtype, a rank out of range, a dimension below 0, a size beyond int64_t, axis sets that overlap,
   are not of `axes` or hold unchecked axes, an unknown kind, or a kind without unreduced axes. */
AX_MUST_USE ax_status ax_type_check(const ax_type *type, const ax_mesh *axes);
bool ax_spread_equal(const ax_spread *a, const ax_spread *b);
/* The type of a value's tangent: its own, but of an array; where it is unreduced by max or min it varies, as each part has a
   tangent. */
ax_type ax_tangent(const ax_type *type);
/* The type of a value's cotangent, an array. If devices hold a value in common its cotangent is the sum over them, so the reduced
   and the unreduced axes of its tangent change places. */
ax_type ax_dual(const ax_type *type);
/* Makes the spread vary over `axes` too, except where it is unreduced. */
void ax_spread_vary(ax_spread *spread, ax_axis_set axes);
/* Drops axes that are not checked in `axes`, as for a value in a body with that environment. */
void ax_spread_keep_checked(ax_spread *spread, const ax_mesh *axes);
/* The axes along which devices may hold different bits: varying, and unreduced, where each holds its part. */
ax_axis_set ax_spread_differs(const ax_spread *spread);
extern const char *const ax_unreduced_names[]; /* "U", "Umax", "Umin", by ax_unreduced_kind */
extern const char *const ax_kind_names[];      /* "sum", "max", "min" */
bool ax_same_shape(const ax_type *a, const ax_type *b);
extern const char *const ax_space_names[]; /* "vmem", by ax_space */
extern const char *const ax_form_names[];  /* "ref", by ax_form; "" for AX_ARRAY */
/* Says whether a form is kernels' memory or something kernels wait for: a ref, a semaphore, a barrier. Such an operand is no value:
   no program returns it. */
bool ax_is_memory(ax_form form);
/* The advice for an operand that should have been an array: "which done must end first". */
const char *ax_form_advice(const ax_type *type);
int64_t ax_dims_elems(uint32_t rank, const int64_t *dims);

/* Sets mask[i] for each number in args; there are `count`. AX_INVALID_ARGUMENT: numbers out of range or not ascending; messages
   call them `what`: "input", "argument". */
AX_MUST_USE ax_status ax_args_mask(ax_args args, const char *what, uint32_t count, bool *mask);
/* A set that could not be made. This thread's message says why; the function that takes the set reports it. */
#define AX_REFUSED_ARGS AX_RANGE(UINT32_MAX, 1)
static inline bool ax_args_refused(ax_args args) { return args.list == NULL && args.first == UINT32_MAX && args.count == 1; }
/* Says whether args is AX_ALL_ARGS. */
static inline bool ax_args_all(ax_args args) { return args.list == NULL && args.first == 0 && args.count == UINT32_MAX; }

/* --- Axes --- */
/* Says whether the text can be an axis's name: see AX_MAX_NAME. */
bool ax_is_name(const char *text, size_t length);
/* Checks a mesh that a caller may have filled in by hand. AX_INVALID_ARGUMENT: too many axes, an invalid name, a name twice, a size
   below 1, more than 2^31 devices. */
AX_MUST_USE ax_status ax_mesh_check(const ax_mesh *mesh);
/* Says whether two meshes have the same names and sizes, in the same order, and, if `flags_too`, the same unchecked and automatic
   axes. */
bool ax_mesh_equal(const ax_mesh *a, const ax_mesh *b, bool flags_too);
/* As ax_mesh_find, but only finds axes that are not automatic. */
int ax_mesh_find_manual(const ax_mesh *mesh, const char *name);
ax_mesh ax_mesh_plain(const ax_mesh *mesh); /* names and sizes alone */
bool ax_axes_equal(const ax_axes *a, const ax_axes *b);
/* The set of the named axes. AX_INVALID_ARGUMENT: an axis unknown in `axes` (the message lists those it has), automatic, or named
   twice. */
AX_MUST_USE ax_status ax_axes_resolve(const ax_axes *names, const ax_mesh *axes, ax_axis_set *out);
ax_axes ax_axis_set_names(ax_axis_set set, const ax_mesh *axes); /* in the order of `axes` */
/* The axes by which the spec cuts dimension `dim`, from the one numbered `from` on. */
ax_axes ax_spec_names(const ax_spec *spec, const ax_mesh *axes, uint32_t dim, uint32_t from);
/* "data" or "data,model"; "data {0,1} {2,3}" with groups, which are in `arena`. NULL: groups are refused. */
AX_MUST_USE ax_status ax_axes_parse(const char *names, ax_arena *arena, ax_axes *out);
/* "data,model": what the public functions take; without groups. */
typedef struct ax_axes_list {
  char text[AX_MAX_AXES * AX_MAX_NAME];
} ax_axes_list;
ax_axes_list ax_axes_listed(const ax_axes *axes);
/* --- ir/groups.c --- */
/* The axes of an equation over groups, which are the first parameter of collectives; NULL: it has no groups. */
const ax_axes *ax_eqn_grouped(const ax_eqn *eqn);
bool ax_groups_equal(const ax_groups *a, const ax_groups *b);
uint32_t ax_group_begin(const ax_groups *groups, uint32_t group);
uint32_t ax_group_size(const ax_groups *groups, uint32_t group);
bool ax_groups_even(const ax_groups *groups);
void ax_groups_text(ax_text *text, const ax_groups *groups); /* " {0,1} {2,3}"; "" for all in one */

typedef struct ax_group_list { /* groups while they are read */
  uint32_t *end, *member;
  uint32_t count, capacity, member_count, member_capacity;
} ax_group_list;
AX_MUST_USE ax_status ax_group_list_open(ax_group_list *list);               /* a new group */
AX_MUST_USE ax_status ax_group_list_add(ax_group_list *list, int64_t member); /* to the last */
/* Copies the groups into `arena`. Frees the list in either case. */
AX_MUST_USE ax_status ax_group_list_close(ax_group_list *list, ax_arena *arena, ax_groups *out);
void ax_group_list_deinit(ax_group_list *list);
/* Checks that each of the members 0 .. n is in one group. AX_INVALID_ARGUMENT: one is not; the message names the first. */
AX_MUST_USE ax_status ax_groups_check(const ax_groups *groups, int64_t members);
/* Finds each member's group, and its number there. The arrays have an entry for each member; either may be NULL. */
void ax_groups_numbers(const ax_groups *groups, uint32_t *group, uint32_t *number);
/* The groups in ascending order, with their members in ascending order, for operations that do not depend on the order. In `arena`;
   false: no memory. */
bool ax_groups_sorted(const ax_groups *groups, ax_arena *arena, ax_groups *out);
int64_t ax_axis_set_size(ax_axis_set set, const ax_mesh *axes); /* product of the sizes */
ax_axis_set ax_checked_axes(const ax_mesh *axes); /* the axes that types name: neither unchecked nor automatic */
ax_axis_set ax_manual_axes(const ax_mesh *axes);  /* the axes that are not automatic */
/* The axes of `mesh` that have the names of those of `of` in the set. */
ax_axis_set ax_axis_set_on(ax_axis_set set, const ax_mesh *of, const ax_mesh *mesh);
ax_axis_set ax_all_axes(const ax_mesh *axes);
int64_t ax_mesh_coordinate(const ax_mesh *mesh, int64_t device, uint32_t axis);
/* Row-major index of a device's coordinates along the named axes, in the order named. */
int64_t ax_axes_index(const ax_axes *names, const ax_mesh *axes, int64_t device);
/* The inverse: the device with that index in the group of `device` along the named axes. */
int64_t ax_axes_device(const ax_axes *names, const ax_mesh *axes, int64_t device, int64_t index);
ax_axis_set ax_spec_set(const ax_spec *spec);
bool ax_spec_equal(const ax_spec *a, const ax_spec *b); /* missing trailing entries are whole */
enum { AX_LAST_PRIORITY = UINT16_MAX }; /* of constraints; the first is 0 */
/* False: it is larger than that. */
bool ax_priority_read(const char *digits, size_t length, uint16_t *out);
/* As ax_spec_parse; an entry may be `?`. */
AX_MUST_USE ax_status ax_spec_parse_open(const char *text, const ax_mesh *mesh, ax_spec *out);
void ax_mesh_text(ax_text *text, const ax_mesh *mesh); /* (data=4, model=2) */
void ax_spec_text(ax_text *text, const ax_spec *spec, const ax_mesh *mesh);
/* Writes an array's type and layout: f32[8@data+model,16]. NULL: the array is whole. */
void ax_sharded_type_text(ax_text *text, const ax_type *type, const ax_spec *spec, const ax_mesh *mesh);

/* --- Parameters --- */
ax_status ax_params_copy(ax_arena *arena, const ax_prim *prim, const void *params, const void **out); /* deep; retains programs */
void ax_params_release(const ax_prim *prim, const void *params);                                       /* the programs in it */
bool ax_params_equal(const ax_prim *prim, const void *a, const void *b);
uint64_t ax_params_hash(uint64_t seed, const ax_prim *prim, const void *params);

/* --- Builder: one trace in progress. Builders of a thread form a stack; the innermost is current. --- */

typedef struct ax_builder {
  uint64_t serial; /* the serial number in handles */
  struct ax_builder *parent;
  uint32_t depth;    /* the number of traces around it */
  const void *frame; /* for a trace on the heap, in which a user's function runs: the stack frame it began in; otherwise NULL */
  ax_mesh axes;
  ax_arena arena;
  ax_type *types;
  ax_eqn *eqns;
  uint32_t value_count, value_capacity, eqn_count, eqn_capacity, in_count;
  uint32_t line, number; /* of the next equation, or of the equation it is made from */
  const char *location;  /* likewise; copied when an equation is built */
  uint32_t stamped;      /* the number of equations that have been given their locations */
  bool blamed;           /* the message names the call that failed */
  const char *locations[16]; /* the last locations, by hash */
  ax_value *captured; /* values of enclosing traces used here, and the local ids that stand for them */
  uint32_t *captured_ids;
  uint32_t captured_count, captured_capacity, captured_ids_capacity;
  uint32_t *capture_table, capture_table_size; /* by outer id: 1 + the number of the captured value, or 0 */
  ax_type *room; /* for the types of one equation's operands and results */
  uint32_t room_capacity;
  ax_axis_set capture_varying; /* axes that captured values are made to vary over */
  bool linear; /* some of its values are futures or tokens */
  uint32_t *late;     /* inputs added after the first equation, by id */
  uint32_t late_count, late_capacity;
  bool seals; /* values of enclosing traces may not be used */
  struct ax_memo *unified; /* of an outermost trace: the programs given to ax_unify_program; NULL: none */
  ax_context *context;         /* what other rooms keep in traces: first what was set in this one, then .. */
  const ax_context *inherited; /* .. the list as it was when this trace began */
  struct ax_memo *memo; /* of the transform in progress, inherited from the trace around; NULL: none (ir/memo.h) */
  const char *owner, *part; /* the user's function, for messages: "scan", "body"; static. NULL: not known */
  const char *block; /* likewise, of a block of C: the call that began it, "prog.c:12: AX_LOOP". NULL: the trace is of no block */
  ax_status status;
  char message[1024];
} ax_builder;

/* Makes a fresh builder current. `axes` NULL: the environment of the enclosing trace, or none. */
void ax_builder_begin(ax_builder *builder, const ax_mesh *axes);
/* The same for a trace in which a user's function runs; finishing it frees it. A function that leaves by longjmp or an exception
   never finishes its traces. They are dropped when a trace around them finishes, or when this thread begins another trace in a
   stack frame that cannot be inside theirs. */
AX_MUST_USE ax_status ax_builder_open(const ax_mesh *axes, ax_builder **out);
/* Calls the function on copies of the operands in the trace in progress and returns its results. NULL: the trace has failed. A
   result that was not set fails the trace. So does a write behind the results, or a use of an operand behind the last: AX_GUARDS
   guard values stand there, so that a wrong count is found before other memory is read or overwritten. */
ax_value *ax_builder_call(ax_fn function, const ax_value *operands);
enum { AX_GUARDS = 64 };
/* Adds an input. All inputs come before the first equation. */
ax_value ax_builder_input(ax_builder *builder, const ax_type *type);
/* Adds an input at any time, to this trace or one around the current one. It comes after all that were added before. */
ax_value ax_builder_late_input(ax_builder *builder, const ax_type *type);
/* The type of a value of this trace, or of one around it, as it is in this one, which is the current one or around it; it
   captures the value. False: the current trace has failed. */
bool ax_builder_type(ax_builder *builder, ax_value value, ax_type *out);
/* Ends the trace whatever happens. The program's inputs are the captured values first, then the declared inputs. When
   `captured` is NULL captures are an error; otherwise it receives the enclosing trace's handles: ax_free. */
AX_MUST_USE ax_status ax_builder_finish(ax_builder *builder, const ax_value *outs, uint32_t out_count, ax_program **out,
                                        ax_value **captured, uint32_t *captured_count);
/* Ends the trace and drops it. */
void ax_builder_cancel(ax_builder *builder);

/* Returns the first of the equal programs from the same C calls in the outermost trace in progress, so that bodies traced alike
   become one. Consumes the reference given and returns one. Without memory the trace fails. */
ax_program *ax_unify_program(ax_program *program);

ax_builder *ax_builder_current(void); /* NULL when no trace is in progress */
/* On this thread, until ax_context_leave, equations keep the numbers of the equations that they are made from. So messages
   about a program that was rewritten name the equations of the program that the user has. Otherwise a program's equations are
   numbered when its trace ends. The entry is the caller's. */
void ax_keep_numbers(ax_context *entry);
/* Makes `status`, with this thread's message, the current trace's error, unless it has one. */
void ax_fail(ax_status status);
bool ax_failed(void); /* the current trace has an error (or there is none) */

/* Where the next equations come from, "prog.c:12", which is copied; NULL: not known. Without memory the trace fails. */
void ax_builder_locate(ax_builder *builder, const char *location);
/* Marks the equation that the next ones are made from: messages name its location. */
static inline void ax_builder_stem(ax_builder *builder, const ax_eqn *eqn) {
  builder->line = eqn->line;
  builder->number = eqn->number;
  ax_builder_locate(builder, eqn->location);
}
/* Adds an equation to the current trace, exactly as given, after checking it. Fills `out` (out_count handles), with poison on
   failure. `params` is copied. */
void ax_emit(const ax_prim *prim, const void *params, const ax_value *in, uint32_t in_count, ax_value *out,
             uint32_t out_count);
/* Checks that each future is used once, by an equation that takes futures, and is no output, and that each token is used at most
   once. AX_INVALID_ARGUMENT: the first that is not, with the equation that made it and the equations that use it. */
AX_MUST_USE ax_status ax_linear_check(const ax_type *types, uint32_t value_count, const ax_eqn *eqns, uint32_t eqn_count,
                                      const uint32_t *outs, uint32_t out_count, const ax_mesh *axes);
/* AX_INVALID_ARGUMENT: memory among a program's results. */
AX_MUST_USE ax_status ax_results_check(const ax_type *types, const uint32_t *outs, uint32_t out_count, const ax_mesh *axes);
/* AX_INVALID_ARGUMENT: a program that is to be run takes or gives a token, or takes or gives memory. */
AX_MUST_USE ax_status ax_whole_check(const ax_program *program);
/* "the future<f32[8]> of psum, start in line 3, <what>". */
ax_status ax_future_error(const ax_type *types, const ax_eqn *eqns, uint32_t eqn_count, uint32_t id, const ax_mesh *axes,
                          const char *what);
uint32_t ax_prim_outs(const ax_prim *prim, const void *params, uint32_t in_count);
/* Infers result types, axis sets included, with the equation in the message on failure. */
AX_MUST_USE ax_status ax_infer_types(const ax_prim *prim, const ax_mesh *axes, const void *params, const ax_type *in,
                                     uint32_t in_count, ax_type *out, uint32_t out_count);

/* The entries of a list that a public function was given with this count (AX_ROOM, axle/type.h), of the `needed` ones. */
static inline uint32_t ax_list_entries(uint32_t count, uint32_t needed) {
  if ((count & AX_ROOM(0)) == 0) return count;
  return (count ^ AX_ROOM(0)) < needed && count != AX_ANY_ROOM ? count ^ AX_ROOM(0) : needed;
}
/* AX_INVALID_ARGUMENT unless the list has the entries that are needed: "grad: the function takes 2 operands, but the list has 1".
   takes: "the function takes"; what: "operand". */
AX_MUST_USE ax_status ax_list_check(const char *who, const char *takes, const char *what, uint32_t count, uint32_t needed);
/* AX_INVALID_ARGUMENT unless a list in a struct of options is {0} or has the entries that are needed: "vmap: in_axes has 1 entry,
   but there are 2 operands". */
AX_MUST_USE ax_status ax_option_check(const char *who, const char *option, uint32_t count, const void *v, uint32_t needed,
                                      const char *what);
/* The same in a trace. False: the trace has failed. */
bool ax_option_fits(const char *who, const char *option, uint32_t count, const void *v, uint32_t needed, const char *what);
/* Entry i of such a list, or what holds where it is {0}. */
static inline int64_t ax_option_at(const ax_dim_list *list, uint32_t i, int64_t otherwise) {
  return list->count > 0 ? list->v[i] : otherwise;
}
/* Gives the length of a list whose length the caller alone knows: its count without AX_ROOM. AX_INVALID_ARGUMENT: AX_ANY_ROOM. */
AX_MUST_USE ax_status ax_list_length(const char *who, const char *what, uint32_t count, uint32_t *length);
/* Checks the lists of a call in a trace. False: the trace has failed, and all entries that `out` (may be NULL) has are poison. */
bool ax_lists_fit(const char *who, uint32_t in_count, uint32_t in_needed, uint32_t out_count, uint32_t out_needed, ax_value *out);
/* AX_INVALID_ARGUMENT unless memory of this element type and this many bytes (AX_MEMORY, axle/type.h) can hold an array. */
AX_MUST_USE ax_status ax_memory_check(const char *who, const ax_type *type, ax_dtype element, size_t bytes);
/* AX_INVALID_ARGUMENT where ax_host_view refused to make this view: "prog.c:12: host_view: f32[5] takes 20 bytes, but ..". */
AX_MUST_USE ax_status ax_view_check(const ax_host_array *host);
/* Makes the entries that a list of results has poison. */
void ax_poison_list(uint32_t count, uint32_t needed, ax_value *out);
/* Checks another list of the call, of operands of another kind: "tangent". */
bool ax_list_fits(const char *who, const char *takes, const char *what, uint32_t count, uint32_t needed);

/* Copies the operands into the trace and then poisons `out`, so that callers may pass one array for both. Returns the copy, or `in`
   itself if the trace has failed. */
const ax_value *ax_take_operands(const ax_value *in, uint32_t in_count, ax_value *out, uint32_t out_count);
/* Checks that each value belongs to the trace in progress or to one around it, or is a number. False: the trace has failed: "add:
   operand 1 is a value of scan's body, which has finished". */
bool ax_check_operands(const char *function, const ax_value *values, uint32_t count);
extern const ax_value ax_poison; /* trace 0 */
extern const ax_value ax_zero;   /* the symbolic zero of transforms; never an operand */
static inline bool ax_is_zero(ax_value value) { return value.trace == UINT64_MAX && value.id == 0; }
/* Says whether the value was made by ax_real, ax_integer or ax_unsigned (ops/constant.c). */
bool ax_is_number(ax_value value);
/* The id of a value in the current trace. A value of an enclosing trace is captured. AX_NONE for poison. */
uint32_t ax_value_id(ax_value value);

/* Counts the uses of each value (as operand or output). Owned by the caller: ax_free. */
AX_MUST_USE ax_status ax_program_uses(const ax_program *program, uint32_t **out);

#endif
