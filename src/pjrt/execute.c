/* Runs. Each device has a list of buffers for the arguments, and gets one of results. Arguments of several devices are put together to
   arrays that lie over all, and results taken apart; nothing is copied. */
#include <string.h>

#include "axle/stages.h"
#include "ir/program.h"
#include "pjrt/ffi.h"
#include "pjrt/profile.h"

typedef struct running {
  const ax_pjrt_executable *e;
  ax_pjrt_device *const *devices;
  size_t device_count;
  const ax_pjrt_execute_options *options; /* NULL: none */
  ax_array **in, **out; /* retained */
  ax_pjrt_executable *apart; /* `e`, if it is another one than was asked for; retained */
  uint64_t number;           /* of the client's runs, from 1 */
  bool awaited;              /* the caller is going to wait for it, as far as can be told */
} running;

/* --- Arguments --- */

static ax_pjrt_error *check(const running *r, const ax_pjrt_buffer *buffer, size_t place, size_t index) {
  const ax_type *have = &buffer->type, *want = &r->e->in[index].block;
  if (buffer->memory->device != r->devices[place])
    return ax_pjrt_fail(AX_PJRT_INVALID_ARGUMENT, "argument %zu lies on device %d, and the run is on device %d", index,
                        buffer->memory->device->description.id, r->devices[place]->description.id);
  if (have->dtype == want->dtype && have->rank == want->rank && memcmp(have->dims, want->dims, want->rank * sizeof want->dims[0]) == 0)
    return NULL;
  return ax_pjrt_fail(AX_PJRT_INVALID_ARGUMENT, "argument %zu is %s, and the program's is %s", index, ax_type_string(have, NULL),
                      ax_type_string(want, NULL));
}

/* The number of the buffer's device among the run's, of the block at this place. */
static size_t device_at(const ax_pjrt_value *value, size_t place) {
  return value->order != NULL ? (size_t)value->order[place] : place;
}

/* Whether the array's places are the devices that the value's are: a result's devices are those of the arguments. */
static bool is_in_order(const running *r, const ax_pjrt_value *value, const ax_array *whole) {
  ax_sharding *where;
  if (ax_array_sharding(whole, &where) != AX_OK) return false;
  bool same = true;
  for (size_t place = 0; same && place < r->device_count; place++)
    same = ax_sharding_device(where, (int64_t)place) == r->devices[device_at(value, place)]->description.id;
  ax_sharding_release(where);
  return same;
}

/* What runs have put the buffers of all devices together to, retained; NULL: nothing. */
static ax_array *joined_of(const running *r, ax_pjrt_buffer *const *const *lists, size_t index) {
  ax_pjrt_joined *joined = ax_pjrt_buffer_joined(lists[0][index]);
  bool same = joined != NULL;
  for (size_t place = 1; same && place < r->device_count; place++) {
    ax_pjrt_joined *other = ax_pjrt_buffer_joined(lists[place][index]);
    same = other == joined;
    ax_pjrt_joined_release(other);
  }
  ax_array *whole = same ? ax_pjrt_joined_whole(joined) : NULL;
  ax_pjrt_joined_release(joined);
  return whole;
}

static ax_pjrt_error *join(const running *r, ax_pjrt_buffer *const *const *lists, size_t index, ax_array *whole) {
  ax_pjrt_joined *joined = ax_pjrt_joined_create(whole);
  if (joined == NULL) return ax_pjrt_fail(AX_PJRT_RESOURCE_EXHAUSTED, "out of memory for argument %zu", index);
  bool all = true;
  for (size_t place = 0; all && place < r->device_count; place++) all = ax_pjrt_buffer_join(lists[place][index], joined);
  if (!all) ax_pjrt_joined_dissolve(joined);
  ax_pjrt_joined_release(joined);
  return NULL;
}

/* The run's result that the buffers of all devices are the parts of, retained; NULL: they are of none. */
static ax_array *result_of(const running *r, ax_pjrt_buffer *const *const *lists, size_t index) {
  ax_array *whole = ax_pjrt_buffer_whole(lists[0][index]);
  bool same = whole != NULL;
  for (size_t place = 1; same && place < r->device_count; place++) {
    ax_array *other = ax_pjrt_buffer_whole(lists[place][index]);
    same = other == whole;
    ax_array_release(other);
  }
  if (same) return whole;
  ax_array_release(whole);
  return NULL;
}

/* The array that is known to have the buffers of all devices as its parts, retained; NULL: there is none, or it lies otherwise. */
static ax_array *whole_of(const running *r, ax_pjrt_buffer *const *const *lists, size_t index) {
  const ax_pjrt_value *value = &r->e->in[index];
  ax_array *whole = result_of(r, lists, index);
  if (whole == NULL) whole = joined_of(r, lists, index);
  if (whole != NULL && ax_type_equal(ax_array_typeof(whole), &value->whole) && ax_array_is_laid_as(whole, value->sharding) &&
      is_in_order(r, value, whole))
    return whole;
  ax_array_release(whole);
  return NULL;
}

/* The array of a device, as one that is a block of the whole. */
static ax_pjrt_error *block_of(const running *r, const ax_pjrt_value *value, ax_pjrt_buffer *buffer, ax_array **out) {
  AX_PJRT_TRY(ax_pjrt_buffer_argument(buffer, out));
  if (value->having == AX_HAVE_ARRAY || r->device_count == 1) return NULL;
  ax_array *own = *out;
  ax_type block = value->block;
  memmove(block.dims + 1, block.dims, block.rank * sizeof block.dims[0]);
  block.dims[0] = 1;
  block.rank++;
  const ax_status status = ax_pjrt_array_as(own, &block, buffer->memory->device->description.id, r->e->client->runtime, out);
  ax_array_release(own);
  return ax_pjrt_status(status);
}

/* Whether the buffer is what one device has by itself of a result, which its layout does not show. */
static bool is_by_itself(ax_pjrt_buffer *buffer) {
  ax_array *whole = ax_pjrt_buffer_whole(buffer);
  const bool by_itself = whole != NULL && ax_array_typeof(whole)->rank == buffer->type.rank + 1;
  ax_array_release(whole);
  return by_itself;
}

/* Where a run has given each device its own of what the program would take one of, one that takes all of them takes the program's place:
   manual computations pass them on. apart: for each argument, false. */
static ax_pjrt_error *take_apart(running *r, ax_pjrt_buffer *const *const *lists, bool *apart) {
  bool any = false;
  for (size_t i = 0; i < r->e->in_count; i++) {
    apart[i] = r->e->in[i].having == AX_HAVE_ARRAY && is_by_itself(lists[0][i]);
    any = any || apart[i];
  }
  if (!any) return NULL;
  AX_PJRT_TRY(ax_pjrt_executable_apart((ax_pjrt_executable *)(uintptr_t)r->e, apart, &r->apart));
  r->e = r->apart;
  return NULL;
}

/* Whether the program is given the argument for good, and the caller leaves it at that. */
static bool is_given(const running *r, size_t index) {
  const ax_pjrt_execute_options *options = r->options;
  for (size_t i = 0; options != NULL && i < options->kept_count; i++)
    if (options->kept[i] == (int64_t)index) return false;
  return r->e->donated[index];
}

/* The arrays of all devices, as one. Those that a run has given or taken as one are it again, whether or not the run is over; others are
   waited for. */
static ax_pjrt_error *put_together(const running *r, ax_pjrt_buffer *const *const *lists, size_t index, ax_array **parts, ax_array **out) {
  const ax_pjrt_value *value = &r->e->in[index];
  ax_pjrt_error *error = NULL;
  size_t held = 0;
  for (size_t place = 0; place < r->device_count; place++) AX_PJRT_TRY(check(r, lists[place][index], place, index));
  if (r->device_count == 1) return ax_pjrt_buffer_argument(lists[0][index], out);
  if ((*out = whole_of(r, lists, index)) != NULL) return NULL;
  while (error == NULL && held < r->device_count) {
    error = block_of(r, value, lists[device_at(value, held)][index], &parts[held]);
    if (error == NULL) held++;
  }
  if (error == NULL)
    error = ax_pjrt_status((ax_array_from_device_arrays)(r->e->client->runtime, value->sharding, &value->whole,
                                                         (uint32_t)r->device_count, parts, out));
  if (error == NULL && !is_given(r, index)) error = join(r, lists, index, *out);
  while (held > 0) ax_array_release(parts[--held]);
  return error;
}

/* The same elements in memory of their own, laid out so. Waits. */
static ax_pjrt_error *copy_to(ax_array **array, ax_sharding *where) {
  ax_array *own = NULL;
  AX_PJRT_TRY(ax_pjrt_status(ax_array_copy_to(*array, where, &own)));
  ax_array_release(*array);
  *array = own;
  return NULL;
}

static ax_pjrt_error *copy(ax_array **array) {
  ax_sharding *where;
  AX_PJRT_TRY(ax_pjrt_status(ax_array_sharding(*array, &where)));
  ax_pjrt_error *error = copy_to(array, where);
  ax_sharding_release(where);
  return error;
}

/* Whether a caller knows where an argument's memory is, and counts on it. */
static bool is_held(const running *r, ax_pjrt_buffer *const *const *lists, size_t index) {
  bool held = false;
  for (size_t place = 0; !held && place < r->device_count; place++) held = ax_pjrt_buffer_is_held(lists[place][index]);
  return held;
}

static void forget_given(const running *r, ax_pjrt_buffer *const *const *lists) {
  for (size_t i = 0; i < r->e->in_count; i++)
    for (size_t place = 0; place < r->device_count && is_given(r, i); place++) ax_pjrt_buffer_forget(lists[place][i]);
}

/* On several devices buffers that are given are gone, whatever becomes of the run: so what their arrays are put together to has the
   memory alone. */
static ax_pjrt_error *take_arguments(running *r, ax_pjrt_buffer *const *const *lists) {
  ax_array **parts = ax_alloc(r->device_count * sizeof parts[0]);
  bool *apart = ax_calloc(r->e->in_count + 1, sizeof apart[0]);
  ax_pjrt_error *error = parts != NULL && apart != NULL ? NULL : ax_pjrt_fail(AX_PJRT_RESOURCE_EXHAUSTED, "out of memory for arguments");
  if (error == NULL && r->device_count > 1 && r->e->by_hand) error = take_apart(r, lists, apart);
  for (size_t i = 0; error == NULL && i < r->e->in_count; i++) error = put_together(r, lists, i, parts, &r->in[i]);
  for (size_t i = 0; error == NULL && i < r->e->in_count; i++) {
    if (r->e->in[i].ordered != NULL) error = copy_to(&r->in[i], r->e->in[i].ordered);
    else if (r->e->donated[i] && (!is_given(r, i) || is_held(r, lists, i))) /* the program takes its memory, and the caller has it still */
      error = copy(&r->in[i]);
  }
  if (error == NULL && r->device_count > 1) forget_given(r, lists);
  ax_free(parts);
  ax_free(apart);
  return error;
}

/* --- Results --- */

/* A result that the run makes, and that is no argument; -1: there is none. */
static int64_t made_by_run(const running *r) {
  for (size_t k = 0; k < r->e->out_count; k++)
    if (ax_executable_passed(r->e->made, (uint32_t)k) < 0) return (int64_t)k;
  return -1;
}

/* What the program gives back as it came has memory of its own, where the caller has the argument still; and so has what lies on devices in
   another order than the program has them in, or on the first ones there are, because it depends on no argument. */
static ax_pjrt_error *copy_results(const running *r) {
  const int64_t made = r->device_count > 1 && !r->e->alike && !r->e->reads ? made_by_run(r) : -1;
  const bool elsewhere = made >= 0 && !is_in_order(r, &r->e->out[made], r->out[made]);
  for (size_t k = 0; k < r->e->out_count; k++) {
    const int64_t input = ax_executable_passed(r->e->made, (uint32_t)k);
    if (r->e->out[k].order != NULL || (elsewhere && input < 0)) AX_PJRT_TRY(copy_to(&r->out[k], r->e->out[k].sharding));
    else if (input >= 0 && !r->e->donated[input]) AX_PJRT_TRY(copy(&r->out[k]));
  }
  return NULL;
}

/* Whether the result lies on the run's devices: what depends on no arguments is computed on the first device there is. */
static ax_pjrt_error *find_place(const running *r, size_t k, bool *is_there) {
  ax_sharding *where = NULL;
  *is_there = r->device_count > 1 ? !r->e->alike : r->e->reads;
  if (*is_there) return NULL;
  if (r->device_count > 1) where = ax_sharding_retain(r->e->out[k].sharding);
  else
    AX_PJRT_TRY(ax_pjrt_alone(r->devices[0], &where));
  *is_there = ax_array_is_laid_as(r->out[k], where);
  ax_sharding_release(where);
  return NULL;
}

static ax_pjrt_error *give_result(const running *r, size_t k, size_t place, bool is_there, ax_pjrt_buffer **out) {
  ax_pjrt_memory *memory = &r->devices[place]->memory[r->e->out[k].memory];
  const bool alone = r->device_count == 1 && is_there;
  AX_PJRT_TRY(alone ? ax_pjrt_buffer_of(ax_array_retain(r->out[k]), memory, out)
                    : ax_pjrt_buffer_of_whole(r->out[k], is_there, &r->e->out[k].block, memory, out));
  (*out)->order = r->e->out[k].layout;
  (*out)->is_token = r->e->out[k].is_token;
  (*out)->run = r->number;
  return NULL;
}

static void destroy_results(const running *r, ax_pjrt_buffer **const *outputs) {
  for (size_t place = 0; place < r->device_count; place++)
    for (size_t k = 0; k < r->e->out_count; k++) {
      (void)ax_pjrt_do_buffer_destroy(&(ax_pjrt_buffer_destroy_args){.of = outputs[place][k]});
      outputs[place][k] = NULL;
    }
}

static ax_pjrt_error *give_results(const running *r, ax_pjrt_buffer **const *outputs) {
  ax_pjrt_error *error = NULL;
  for (size_t place = 0; place < r->device_count; place++)
    for (size_t k = 0; k < r->e->out_count; k++) outputs[place][k] = NULL;
  for (size_t k = 0; error == NULL && k < r->e->out_count; k++) {
    bool is_there = false;
    error = find_place(r, k, &is_there);
    for (size_t place = 0; error == NULL && place < r->device_count; place++) error = give_result(r, k, place, is_there, &outputs[place][k]);
  }
  if (error != NULL) destroy_results(r, outputs);
  return error;
}

/* Each device's event is the same one, which comes about when the run is over: a result may be an argument, which is there before. Who awaits
   it works on the run. */
static void give_events(const running *r, ax_pjrt_event **events) {
  const int64_t made = made_by_run(r);
  if (made >= 0) ax_pjrt_event_awaits(events[0], r->out[made]);
  for (size_t place = 1; place < r->device_count; place++) events[place] = ax_pjrt_event_retain(events[0]);
}

/* --- Runs --- */

/* A caller that waited for its last runs before it began the next is taken to wait for this one: what is short is then run by its
   thread, sooner than another is woken. One that begins several runs, or waits for the one before the last as it prepares the next, goes
   on meanwhile. */
static void number_run(running *r, ax_pjrt_client *client) {
  enum { enough = 2 };
  r->number = atomic_fetch_add(&client->runs, 1) + 1;
  const bool in_turn = r->number > 1 && atomic_load(&client->waited) == r->number - 1;
  const unsigned before = atomic_load(&client->in_turn), now = !in_turn ? 0 : before < enough ? before + 1 : enough;
  atomic_store(&client->in_turn, now);
  r->awaited = now == enough || r->e->calls_python; /* which is waited for below */
}

static ax_pjrt_error *start(const running *r, ax_executable *made, ax_pjrt_event **over) {
  const bool has_context = r->options != NULL && AX_PJRT_HAS(r->options, context);
  return ax_pjrt_ffi_start(r->e, made, &(ax_pjrt_ffi_run){r->in, r->out, has_context ? r->options->context : NULL, r->awaited}, over);
}

/* Starts a run and waits for its end, which is good or not. Where Python is called, what failed is said at once; else whoever awaits the
   event is told. */
static ax_pjrt_error *start_and_wait(const running *r, ax_executable *made, ax_pjrt_event **over, bool *good) {
  ax_pjrt_event *own = NULL;
  const int64_t result = made_by_run(r);
  if (over != NULL) *over = NULL;
  AX_PJRT_TRY(start(r, made, &own));
  if (result >= 0) ax_pjrt_event_awaits(own, r->out[result]); /* this thread works on the run */
  ax_pjrt_error *failed = ax_pjrt_do_event_await(&(ax_pjrt_event_await_args){.struct_size = sizeof(ax_pjrt_event_await_args), .of = own});
  *good = failed == NULL;
  if (failed != NULL && !r->e->calls_python) {
    ax_pjrt_do_error_destroy(&(ax_pjrt_error_destroy_args){.of = failed});
    failed = NULL;
  }
  if (failed == NULL && over != NULL) *over = own;
  else (void)ax_pjrt_do_event_destroy(&(ax_pjrt_event_destroy_args){.of = own});
  return failed;
}

/* While a trace is taken, a run is waited for, since an executable keeps the record of one. *done false: there is none to be had, because it
   runs already, in a callback of its own say. */
static ax_pjrt_error *start_timed(const running *r, ax_pjrt_event **over, bool *done) {
  ax_pjrt_executable *e = (ax_pjrt_executable *)(uintptr_t)r->e;
  bool good = false;
  *done = pthread_mutex_trylock(&e->timed_lock) == 0;
  if (!*done) return NULL;
  ax_pjrt_error *error = e->timed != NULL ? NULL : ax_pjrt_executable_compile(e, true, &e->timed);
  if (error == NULL) error = start_and_wait(r, e->timed, over, &good);
  if (good) ax_pjrt_profile_add(e->timed, e->name);
  pthread_mutex_unlock(&e->timed_lock);
  return error;
}

/* Where Python is called, a run is over when this returns. */
static ax_pjrt_error *start_plain(const running *r, ax_pjrt_event **over) {
  bool good;
  return r->e->calls_python ? start_and_wait(r, r->e->made, over, &good) : start(r, r->e->made, over);
}

static ax_pjrt_error *run(running *r, const ax_pjrt_loaded_execute_args *args) {
  bool done = false;
  AX_PJRT_TRY(take_arguments(r, args->arguments));
  number_run(r, r->devices[0]->client);
  if (ax_pjrt_is_profiled()) AX_PJRT_TRY(start_timed(r, args->events, &done));
  if (!done) AX_PJRT_TRY(start_plain(r, args->events));
  if (r->device_count == 1) forget_given(r, args->arguments);
  if (args->events != NULL) give_events(r, args->events);
  ax_pjrt_error *error = copy_results(r);
  if (error == NULL) error = give_results(r, args->outputs);
  for (size_t place = 0; error != NULL && args->events != NULL && place < r->device_count; place++) {
    (void)ax_pjrt_do_event_destroy(&(ax_pjrt_event_destroy_args){.of = args->events[place]});
    args->events[place] = NULL;
  }
  return error;
}

ax_pjrt_error *ax_pjrt_do_loaded_execute(ax_pjrt_loaded_execute_args *args) {
  const ax_pjrt_executable *e = args->of->executable;
  ax_pjrt_device *named = AX_PJRT_HAS(args, device) ? args->device : NULL;
  running r = {.e = e, .devices = named != NULL ? &named : args->of->devices, .device_count = args->device_count,
               .options = args->options};
  if (atomic_load(&args->of->deleted)) return ax_pjrt_fail(AX_PJRT_INVALID_ARGUMENT, "the executable was deleted");
  if (r.devices == NULL) return ax_pjrt_fail(AX_PJRT_INVALID_ARGUMENT, "the executable is portable: a run names its device");
  if (r.device_count != (named != NULL ? 1 : e->device_count) || r.device_count != e->device_count)
    return ax_pjrt_fail(AX_PJRT_INVALID_ARGUMENT, "the executable is for %zu devices, and it is run on %zu", e->device_count,
                        r.device_count);
  if (args->argument_count != e->in_count)
    return ax_pjrt_fail(AX_PJRT_INVALID_ARGUMENT, "the program takes %zu arguments, and here are %zu", e->in_count, args->argument_count);
  if (args->options != NULL && args->options->send_count + args->options->receive_count > 0)
    return ax_pjrt_fail(AX_PJRT_UNIMPLEMENTED, "runs with callbacks that send and receive");
  r.in = ax_calloc(e->in_count + e->out_count + 1, sizeof r.in[0]);
  if (r.in == NULL) return ax_pjrt_fail(AX_PJRT_RESOURCE_EXHAUSTED, "out of memory for a run");
  r.out = r.in + e->in_count;
  ax_pjrt_error *error = run(&r, args);
  for (size_t i = 0; i < e->in_count + e->out_count; i++) ax_array_release(r.in[i]);
  ax_free(r.in);
  ax_pjrt_executable_release(r.apart);
  return error;
}
