/* Tracing: handles, the stack of traces of a thread, and equations checked as they are added.

   A handle names its trace by serial number, never by pointer, so a stale handle is detected. A value of an
   enclosing trace used in an inner one becomes a captured input of the inner program:

     outer:  a -> ... shard_map(body, captured a) ...
     inner:       uses a  ==>  input 0 of the body                                                                   */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ir/memo.h"
#include "ir/program.h"
#include "ir/region_link.h"

static _Thread_local ax_builder *current;
/* No number of a C program is so large by chance: a 1 in a list of values, which C takes for a handle's first field, names no
   trace. */
#define FIRST_SERIAL (UINT64_C(1) << 48)
static atomic_uint_fast64_t next_serial = FIRST_SERIAL;

const ax_value ax_poison = {0, 0};
const ax_value ax_zero = {UINT64_MAX, 0};

ax_builder *ax_builder_current(void) { return current; }

static void fail(ax_builder *builder, ax_status status) {
  if (builder->status != AX_OK) return;
  builder->status = status;
  snprintf(builder->message, sizeof builder->message, "%s", ax_message());
}

void ax_fail(ax_status status) {
  if (current != NULL) fail(current, status);
}

/* Operations that were called on threads that trace nothing, and how many of them there were when this thread's outermost trace
   began. */
static atomic_ullong strays;
static _Thread_local unsigned long long strays_before;

/* A hint for values that were never set: another thread may have tried to make them. */
static const char *stray_hint(void) {
  return atomic_load_explicit(&strays, memory_order_relaxed) == strays_before
             ? ""
             : " (meanwhile operations were called on a thread that traces nothing: all of a trace's are called on its own thread)";
}

bool ax_failed(void) {
  if (current != NULL) return current->status != AX_OK;
  atomic_fetch_add_explicit(&strays, 1, memory_order_relaxed);
  ax_status status = ax_error(AX_INVALID_ARGUMENT, "no trace is in progress on this thread");
  return status != AX_OK;
}

void ax_trace_fail(const char *message) {
  if (!ax_failed()) ax_fail(ax_error(AX_INVALID_ARGUMENT, "%s", message != NULL ? message : "the trace was told to fail"));
}

void ax_builder_begin(ax_builder *builder, const ax_mesh *axes) {
  *builder = (ax_builder){.serial = atomic_fetch_add(&next_serial, 1), .parent = current};
  if (current != NULL) {
    builder->depth = current->depth + 1;
    builder->memo = current->memo;
    builder->inherited = builder->context = current->context;
  }
  if (axes != NULL)
    builder->axes = *axes;
  else if (current != NULL)
    builder->axes = current->axes;
  current = builder;
}

static void deinit(ax_builder *builder);

/* The traces of users' functions that ended last on this thread, so that who uses a value of one is told whose it is. */
static _Thread_local struct ended {
  uint64_t serial;
  const char *owner, *part; /* NULL: there is none */
  char block[128];          /* where a block of C stood, "prog.c:12"; empty: it was none */
} ended[16];
static _Thread_local uint32_t ended_next;

/* The place of the last word of `call`, as in "prog.c:12: matmul". */
static size_t function_at(const char *call) { return (size_t)(strrchr(call, ' ') - call) + 1; }

static void note_end(const ax_builder *builder) {
  struct ended *note = &ended[ended_next++ % AX_COUNT(ended)];
  *note = (struct ended){.serial = builder->serial, .owner = builder->owner, .part = builder->part};
  if (builder->block != NULL)
    snprintf(note->block, sizeof note->block, "%.*s", (int)function_at(builder->block) - 2, builder->block);
}

static void end_current(void) {
  ax_builder *builder = current;
  if (builder->owner != NULL) note_end(builder);
  current = builder->parent;
  deinit(builder);
}

/* Ends the current trace, whichever function began it. */
static void give_up(void) {
  ax_builder *builder = current;
  current = builder->parent;
  ax_context_give_up(builder);
  current = builder;
  end_current();
}

static ax_status nested_too_deep(void) {
  return ax_error(AX_INVALID_ARGUMENT, "programs more than %d deep inside one another", AX_MAX_NESTING);
}

ax_status ax_builder_open(const ax_mesh *axes, ax_builder **out) {
  const void *frame = __builtin_frame_address(0);
  /* Stacks grow downwards: a function that runs now was called from frames above this one. */
  while (current != NULL && current->frame != NULL && (uintptr_t)current->frame <= (uintptr_t)frame) give_up();
  *out = NULL;
  if (current == NULL) strays_before = atomic_load_explicit(&strays, memory_order_relaxed);
  if (current != NULL && current->depth == AX_MAX_NESTING) return nested_too_deep();
  *out = ax_alloc(sizeof **out);
  if (*out == NULL) return ax_out_of_memory(sizeof **out);
  ax_builder_begin(*out, axes);
  (*out)->frame = frame;
  return AX_OK;
}

/* The serial number of guard values, which stand behind operands and results: no trace has it. Their id is their place. */
static const uint64_t guard = UINT64_MAX - 1;

/* The values, and guards behind them. NULL: no memory. */
static ax_value *guarded(ax_builder *builder, uint32_t count) {
  size_t bytes = ((size_t)count + AX_GUARDS) * sizeof(ax_value);
  ax_value *values = ax_arena_alloc(&builder->arena, bytes);
  if (values == NULL) ax_fail(ax_out_of_memory(bytes));
  for (uint32_t k = 0; values != NULL && k < AX_GUARDS; k++) values[count + k] = (ax_value){guard, count + k};
  return values;
}

static void check_results(const ax_value *out, uint32_t count) {
  const char *are = count == 1 ? "is" : "are", *s = count == 1 ? "" : "s";
  for (uint32_t k = 0; k < count; k++)
    if (out[k].trace == 0 && !ax_is_number(out[k]))
      ax_fail(ax_error(AX_INVALID_ARGUMENT, "out[%u] was never set, but there %s %u result%s%s", k, are, count, s, stray_hint()));
  for (uint32_t k = count; k < count + AX_GUARDS; k++)
    if (out[k].trace != guard || out[k].id != k)
      ax_fail(ax_error(AX_INVALID_ARGUMENT, "out[%u] was set, but there %s %u result%s", k, are, count, s));
}

ax_value *ax_builder_call(ax_fn function, const ax_value *operands) {
  if (ax_failed()) return NULL;
  if (function.function == NULL) {
    ax_fail(ax_error(AX_INVALID_ARGUMENT, "there is no function"));
    return NULL;
  }
  ax_builder *builder = current;
  const void *frame = __builtin_frame_address(0); /* the trace may have been opened further down */
  if (builder->frame != NULL && (uintptr_t)builder->frame < (uintptr_t)frame) builder->frame = frame;
  ax_value *in = guarded(builder, function.in_count), *out = guarded(builder, function.out_count);
  if (in == NULL || out == NULL) return NULL;
  for (uint32_t i = 0; i < function.in_count; i++) in[i] = operands[i];
  function.function(in, out, function.context);
  while (current != builder) give_up(); /* what it caught had left traces of its own */
  check_results(out, function.out_count);
  return ax_failed() ? NULL : out;
}

static ax_status new_values(ax_builder *builder, const ax_type *types, uint32_t count, uint32_t *first) {
  AX_TRY(ax_grow(&builder->types, sizeof builder->types[0], builder->value_count, count, &builder->value_capacity));
  *first = builder->value_count;
  if (count > 0) memcpy(builder->types + *first, types, count * sizeof types[0]);
  builder->value_count += count;
  for (uint32_t i = 0; i < count; i++) builder->linear = builder->linear || types[i].form == AX_FUTURE || types[i].form == AX_TOKEN;
  return AX_OK;
}

ax_value ax_builder_input(ax_builder *builder, const ax_type *type) {
  uint32_t id;
  assert(builder->eqn_count == 0 && builder->captured_count == 0);
  ax_status status = ax_type_check(type, &builder->axes);
  if (status == AX_OK && type->form == AX_FUTURE)
    status = ax_error(AX_INVALID_ARGUMENT, "%s cannot come from outside", ax_type_string(type, &builder->axes));
  if (status != AX_OK) status = ax_error_context(status, "input %u: ", builder->in_count);
  if (status == AX_OK) status = new_values(builder, type, 1, &id);
  if (status != AX_OK) {
    ax_fail(status);
    return ax_poison;
  }
  builder->in_count++;
  return (ax_value){builder->serial, id};
}

ax_value ax_builder_late_input(ax_builder *builder, const ax_type *type) {
  uint32_t id;
  ax_status status = ax_type_check(type, &builder->axes);
  if (status == AX_OK) status = ax_grow(&builder->late, sizeof builder->late[0], builder->late_count, 1, &builder->late_capacity);
  if (status == AX_OK) status = new_values(builder, type, 1, &id);
  if (status != AX_OK) {
    ax_fail(status);
    return ax_poison;
  }
  builder->late[builder->late_count++] = id;
  return (ax_value){builder->serial, id};
}

ax_program *ax_unify_program(ax_program *program) {
  ax_builder *root = current;
  while (root != NULL && root->parent != NULL) root = root->parent;
  if (root == NULL) return program;
  if (root->unified == NULL) root->unified = ax_calloc(1, sizeof *root->unified);
  ax_memo_entry *entry = root->unified != NULL ? ax_memo_ask_equal(root->unified, "unify", program) : NULL;
  if (entry == NULL) {
    ax_fail(ax_out_of_memory(sizeof *entry));
    return program;
  }
  ax_program_release(program);
  return ax_program_retain(entry->made[0]);
}

/* --- Handles --- */

/* The entry of the capture table for the enclosing trace's value with this id, or the free entry for it. */
static uint32_t *capture_place(const ax_builder *builder, uint32_t outer) {
  for (uint64_t at = ax_hash_word(AX_HASH_SEED, outer);; at++) {
    uint32_t *place = &builder->capture_table[at & (builder->capture_table_size - 1)];
    if (*place == 0 || builder->captured[*place - 1].id == outer) return place;
  }
}

/* Room for one more captured value, in a table at most half full. */
static ax_status reserve_capture(ax_builder *builder) {
  uint32_t count = builder->captured_count;
  AX_TRY(ax_grow(&builder->captured, sizeof builder->captured[0], count, 1, &builder->captured_capacity));
  AX_TRY(ax_grow(&builder->captured_ids, sizeof builder->captured_ids[0], count, 1, &builder->captured_ids_capacity));
  if (2 * count < builder->capture_table_size) return AX_OK;
  uint32_t size = builder->capture_table_size == 0 ? 16 : 2 * builder->capture_table_size;
  uint32_t *table = ax_calloc(size, sizeof table[0]);
  if (table == NULL) return ax_out_of_memory(size * sizeof table[0]);
  ax_free(builder->capture_table);
  builder->capture_table = table;
  builder->capture_table_size = size;
  for (uint32_t i = 0; i < count; i++) *capture_place(builder, builder->captured[i].id) = i + 1;
  return AX_OK;
}

/* `outer` is a value of the enclosing trace. */
static ax_status capture(ax_builder *builder, ax_value outer, uint32_t *id) {
  AX_TRY(reserve_capture(builder));
  uint32_t *place = capture_place(builder, outer.id);
  if (*place != 0) {
    *id = builder->captured_ids[*place - 1];
    return AX_OK;
  }
  ax_type type = builder->parent->types[outer.id];
  ax_spread_vary(&type.spread, builder->capture_varying);
  ax_spread_keep_checked(&type.spread, &builder->axes);
  AX_TRY(new_values(builder, &type, 1, id));
  builder->captured[builder->captured_count] = outer;
  builder->captured_ids[builder->captured_count++] = *id;
  *place = builder->captured_count;
  return AX_OK;
}

enum { foreign_text = 400 };

/* Describes a handle that cannot be used in the current trace: "a value of scan's body, which has finished". False: it can be
   used. */
static bool is_foreign(ax_value value, char *text) {
  const ax_builder *builder = current;
  while (builder->serial != value.trace && builder->parent != NULL && !builder->seals) builder = builder->parent;
  if (builder->serial == value.trace && value.id < builder->value_count) return false;
  snprintf(text, foreign_text, "%s",
           builder->serial == value.trace ? "a handle that no step of its trace gave"
                                          : "a value of another program, or of a trace that has finished");
  if (value.trace == 0) snprintf(text, foreign_text, "a value that was never set%s", stray_hint());
  if (value.trace > 0 && value.trace < FIRST_SERIAL)
    snprintf(text, foreign_text, "the C number %" PRIu64 ", where a value is needed: ax_full, or ax_integer(%" PRIu64 ")",
             value.trace, value.trace);
  if (value.trace == guard) snprintf(text, foreign_text, "in[%u], which stands behind its function's last operand", value.id);
  for (size_t i = 0; i < AX_COUNT(ended); i++)
    if (ended[i].owner != NULL && ended[i].serial == value.trace)
      snprintf(text, foreign_text, ended[i].block[0] == '\0' ? "a value of %.48s's %.24s, which has finished"
                                                             : "a value of %.48s's %.24s at %s, which has finished; a variable "
                                                               "that the block sets, and that is used in its next round or after "
                                                               "it, is listed there: &variable",
               ended[i].owner, ended[i].part, ended[i].block);
  return true;
}

bool ax_check_operands(const char *function, const ax_value *values, uint32_t count) {
  char text[foreign_text], which[32] = "the operand";
  if (ax_failed()) return false;
  if (count > 0 && values == NULL) {
    ax_fail(ax_error(AX_INVALID_ARGUMENT, "%s: there are no operands", function));
    return false;
  }
  for (uint32_t i = 0; i < count; i++) {
    if (ax_is_number(values[i]) || !is_foreign(values[i], text)) continue;
    if (count > 1) snprintf(which, sizeof which, "operand %u", i);
    ax_fail(ax_error(AX_INVALID_ARGUMENT, "%s: %s is %s", function, which, text));
    return false;
  }
  return true;
}

/* The id that stands for `value` in `builder`, capturing level by level from the trace that owns it, which is one of those
   around. */
static ax_status resolve(ax_builder *builder, ax_value value, uint32_t *id) {
  if (value.trace == builder->serial) {
    *id = value.id;
    return AX_OK;
  }
  uint32_t outer;
  const ax_builder *from = builder->parent;
  AX_TRY(resolve(builder->parent, value, &outer));
  if (from->types[outer].form == AX_FUTURE)
    return ax_future_error(from->types, from->eqns, from->eqn_count, outer, &from->axes,
                           "is used in a body; done must end it before");
  return capture(builder, (ax_value){builder->parent->serial, outer}, id);
}

uint32_t ax_value_id(ax_value value) {
  uint32_t id = AX_NONE;
  if (ax_failed()) return AX_NONE;
  char text[foreign_text];
  ax_status status = ax_is_number(value) ? ax_error(AX_INVALID_ARGUMENT, "a number has no dtype here; ax_full gives it one")
                     : is_foreign(value, text)
                         ? ax_error(AX_INVALID_ARGUMENT, "%s%s is used here", text, strchr(text, ',') != NULL ? "," : "")
                         : resolve(current, value, &id);
  if (status != AX_OK) {
    ax_fail(status);
    return AX_NONE;
  }
  return id;
}

bool ax_builder_type(ax_builder *builder, ax_value value, ax_type *out) {
  uint32_t id;
  *out = (ax_type){0};
  if (ax_failed()) return false;
  ax_status status = resolve(builder, value, &id);
  if (status != AX_OK)
    ax_fail(status);
  else
    *out = builder->types[id];
  return status == AX_OK;
}

ax_type ax_typeof(ax_value value) {
  uint32_t id = ax_value_id(value);
  return id != AX_NONE ? current->types[id] : (ax_type){0};
}

const ax_value *ax_take_operands(const ax_value *in, uint32_t in_count, ax_value *out, uint32_t out_count) {
  ax_value *copy = ax_failed() || in == NULL ? NULL : ax_arena_copy(&current->arena, in, in_count * sizeof in[0]);
  if (copy == NULL && in != NULL && !ax_failed()) ax_fail(ax_out_of_memory(in_count * sizeof in[0]));
  for (uint32_t k = 0; k < out_count; k++) out[k] = ax_poison;
  return copy != NULL ? copy : in;
}

/* --- Equations, and the location, "prog.c:12", of the C call that each comes from --- */

/* A copy in the trace's memory, of which there are few: what was met lately is found again. NULL: no memory. */
static const char *keep_location(ax_builder *builder, const char *location, size_t length) {
  const char **kept = &builder->locations[ax_hash_bytes(AX_HASH_SEED, location, length) % AX_COUNT(builder->locations)];
  if (*kept != NULL && strncmp(*kept, location, length) == 0 && (*kept)[length] == '\0') return *kept;
  char *copy = ax_arena_alloc(&builder->arena, length + 1); /* zeroed */
  if (copy == NULL) return NULL;
  memcpy(copy, location, length);
  return *kept = copy;
}

void ax_builder_locate(ax_builder *builder, const char *location) {
  builder->location = NULL;
  if (location == NULL) return;
  builder->location = keep_location(builder, location, strlen(location));
  if (builder->location == NULL) fail(builder, ax_out_of_memory(strlen(location) + 1));
}

void ax_blame(ax_status status, const char *call) {
  const char *function = call + function_at(call), *message = ax_message();
  size_t length = strlen(function);
  bool named = strncmp(message, function, length) == 0 && (message[length] == ':' || message[length] == ' ');
  status = named ? ax_error_context(status, "%.*s", (int)(function - call), call) : ax_error_context(status, "%s: ", call);
  (void)status;
}

void ax_stamp(const char *call) {
  ax_builder *builder = current;
  if (builder == NULL) return;
  for (uint32_t i = builder->stamped; i < builder->eqn_count; i++)
    if (builder->eqns[i].location == NULL) builder->eqns[i].location = keep_location(builder, call, function_at(call) - 2);
  builder->stamped = builder->eqn_count;
  builder->location = NULL;
  if (builder->status == AX_OK || builder->blamed) return;
  builder->blamed = true;
  ax_blame(ax_error(builder->status, "%s", builder->message), call);
  snprintf(builder->message, sizeof builder->message, "%s", ax_message());
}

static ax_status emit(ax_builder *builder, const ax_prim *prim, const void *params, const uint32_t *in,
                      uint32_t in_count, uint32_t out_count, uint32_t *first) {
  if (in_count > AX_NONE - out_count) return ax_out_of_memory(((size_t)in_count + out_count) * sizeof(ax_type));
  AX_TRY(ax_grow(&builder->room, sizeof builder->room[0], 0, in_count + out_count, &builder->room_capacity));
  ax_type *types = builder->room;
  for (uint32_t i = 0; i < in_count; i++) types[i] = builder->types[in[i]];
  ax_eqn eqn = {.prim = prim, .params = params, .in = in, .in_count = in_count, .out_count = out_count,
                .line = builder->line, .number = builder->number, .location = builder->location};
  AX_TRY(ax_region_link_check(prim));
  if (prim->kind == AX_REGION && ax_eqn_nesting(&eqn) > AX_MAX_NESTING) return nested_too_deep();
  AX_TRY(ax_infer_types(prim, &builder->axes, params, types, in_count, types + in_count, out_count));
  AX_TRY(ax_grow(&builder->eqns, sizeof builder->eqns[0], builder->eqn_count, 1, &builder->eqn_capacity));
  AX_TRY(ax_params_copy(&builder->arena, prim, params, &eqn.params));
  ax_status status = new_values(builder, types + in_count, out_count, first);
  if (status != AX_OK) {
    if (eqn.params != NULL) ax_params_release(prim, eqn.params);
    return status;
  }
  eqn.out = *first;
  builder->eqns[builder->eqn_count++] = eqn;
  return AX_OK;
}

void ax_emit(const ax_prim *prim, const void *params, const ax_value *in, uint32_t in_count, ax_value *out,
             uint32_t out_count) {
  for (uint32_t i = 0; i < out_count; i++) out[i] = ax_poison;
  if (ax_failed()) return;
  ax_builder *builder = current;
  uint32_t *ids = ax_arena_alloc(&builder->arena, in_count * sizeof ids[0]);
  if (ids == NULL) {
    ax_fail(ax_out_of_memory(in_count * sizeof ids[0]));
    return;
  }
  for (uint32_t i = 0; i < in_count; i++)
    if ((ids[i] = ax_value_id(in[i])) == AX_NONE) return;
  uint32_t first = 0;
  ax_status status = emit(builder, prim, params, ids, in_count, out_count, &first);
  if (status != AX_OK) {
    ax_fail(status);
    return;
  }
  for (uint32_t i = 0; i < out_count; i++) out[i] = (ax_value){builder->serial, first + i};
}

/* --- Finishing --- */

static void deinit(ax_builder *builder) {
  for (uint32_t i = 0; i < builder->eqn_count; i++)
    if (builder->eqns[i].params != NULL) ax_params_release(builder->eqns[i].prim, builder->eqns[i].params);
  ax_context_end(builder);
  ax_free(builder->types);
  ax_free(builder->eqns);
  ax_free(builder->captured);
  ax_free(builder->captured_ids);
  ax_free(builder->late);
  ax_free(builder->capture_table);
  ax_free(builder->room);
  if (builder->unified != NULL) ax_memo_deinit(builder->unified);
  ax_free(builder->unified);
  ax_arena_deinit(&builder->arena);
  if (builder->frame != NULL) ax_free(builder);
}

void ax_builder_cancel(ax_builder *builder) {
  assert(current == builder);
  (void)builder;
  give_up();
}

/* New number of each value: captured ones first, then inputs, late ones last, then results in order. */
static uint32_t *renumber(ax_builder *builder) {
  uint32_t *map = ax_arena_alloc(&builder->arena, builder->value_count * sizeof map[0]);
  if (map == NULL) return NULL;
  memset(map, 0xff, builder->value_count * sizeof map[0]);
  uint32_t next = 0;
  for (uint32_t i = 0; i < builder->captured_count; i++) map[builder->captured_ids[i]] = next++;
  for (uint32_t i = 0; i < builder->in_count && builder->late_count > 0; i++) map[i] = next++; /* the first values of all */
  for (uint32_t i = 0; i < builder->late_count; i++) map[builder->late[i]] = next++;
  for (uint32_t i = 0; i < builder->value_count; i++)
    if (map[i] == AX_NONE) map[i] = next++;
  return map;
}

static const ax_context_key kept_numbers = {.name = "kept numbers"}; /* the value says nothing */

void ax_keep_numbers(ax_context *entry) { ax_context_enter(entry, &kept_numbers, entry); }

static void number_equations(ax_eqn *eqns, uint32_t count) {
  uint32_t number = 0;
  for (uint32_t i = 0; i < count; i++) eqns[i].number = ax_eqn_literal(&eqns[i]) != NULL ? 0 : ++number;
}

/* Everything allocated from the builder's arena, so that failing needs no undoing. */
static ax_status make_program(ax_builder *builder, const uint32_t *outs, uint32_t out_count, ax_program **out) {
  ax_arena *arena = &builder->arena;
  uint32_t *map = renumber(builder), *new_outs = ax_arena_alloc(arena, out_count * sizeof outs[0]);
  uint32_t *labels = ax_arena_alloc(arena, builder->value_count * sizeof labels[0]);
  ax_type *types = ax_arena_alloc(arena, builder->value_count * sizeof types[0]);
  ax_eqn *eqns = ax_arena_alloc(arena, builder->eqn_count * sizeof eqns[0]);
  ax_program *program = ax_alloc(sizeof *program);
  if (map == NULL || new_outs == NULL || labels == NULL || types == NULL || eqns == NULL || program == NULL) {
    ax_free(program);
    return ax_out_of_memory(0);
  }
  for (uint32_t i = 0; i < builder->value_count; i++) types[map[i]] = builder->types[i];
  for (uint32_t i = 0; i < out_count; i++) new_outs[i] = map[outs[i]];
  for (uint32_t i = 0; i < builder->eqn_count; i++) {
    eqns[i] = builder->eqns[i];
    uint32_t *in = (uint32_t *)eqns[i].in; /* allocated by ax_emit for this equation alone */
    for (uint32_t j = 0; j < eqns[i].in_count; j++) in[j] = map[in[j]];
    if (eqns[i].out_count > 0) eqns[i].out = map[eqns[i].out];
  }
  *program = (ax_program){.axes = builder->axes,
                          .in_count = builder->captured_count + builder->in_count + builder->late_count,
                          .out_count = out_count,
                          .value_count = builder->value_count,
                          .eqn_count = builder->eqn_count,
                          .types = types,
                          .eqns = eqns,
                          .outs = new_outs,
                          .labels = labels};
  if (ax_context_get(&kept_numbers) == NULL) number_equations(eqns, builder->eqn_count);
  for (uint32_t i = 0; i < program->eqn_count; i++) {
    uint32_t nesting = ax_eqn_nesting(&eqns[i]);
    program->effects |= ax_eqn_effects(&eqns[i]);
    program->named |= ax_eqn_named(&eqns[i], &program->axes);
    if (nesting > program->nesting) program->nesting = nesting;
  }
  atomic_init(&program->references, 1);
  ax_program_identify(program, labels);
  program->arena = builder->arena; /* the program owns it now, and with it the equations' parameters */
  builder->arena = (ax_arena){0};
  builder->eqn_count = 0;
  *out = program;
  return AX_OK;
}

static ax_status finish(ax_builder *builder, const ax_value *outs, uint32_t out_count, bool captures, ax_program **out) {
  uint32_t *ids = ax_arena_alloc(&builder->arena, out_count * sizeof ids[0]);
  if (ids == NULL) return ax_out_of_memory(out_count * sizeof ids[0]);
  for (uint32_t i = 0; i < out_count && builder->status == AX_OK; i++) {
    char text[foreign_text];
    if (outs[i].trace == 0 && !ax_is_number(outs[i]))
      ax_fail(ax_error(AX_INVALID_ARGUMENT, "out[%u] was never set%s", i, stray_hint()));
    else if (!ax_is_number(outs[i]) && is_foreign(outs[i], text)) ax_fail(ax_error(AX_INVALID_ARGUMENT, "out[%u] is %s", i, text));
    ids[i] = ax_value_id(outs[i]);
  }
  if (builder->status != AX_OK) return ax_error(builder->status, "%s", builder->message);
  if (!captures && builder->captured_count > 0)
    return ax_error(AX_INVALID_ARGUMENT,
                    "a value of the trace around is used in a program of its own, which it cannot be an operand of");
  AX_TRY(ax_results_check(builder->types, ids, out_count, &builder->axes));
  if (builder->linear)
    AX_TRY(
        ax_linear_check(builder->types, builder->value_count, builder->eqns, builder->eqn_count, ids, out_count, &builder->axes));
  return make_program(builder, ids, out_count, out);
}

ax_status ax_builder_finish(ax_builder *builder, const ax_value *outs, uint32_t out_count, ax_program **out,
                            ax_value **captured, uint32_t *captured_count) {
  *out = NULL;
  assert(current == builder);
  ax_status status = finish(builder, outs, out_count, captured != NULL, out);
  if (captured != NULL) {
    *captured = status == AX_OK ? builder->captured : NULL;
    *captured_count = status == AX_OK ? builder->captured_count : 0;
    if (status == AX_OK) builder->captured = NULL;
  }
  end_current();
  return status;
}
