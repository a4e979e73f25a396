/* See pending.h. */
#include "array/pending.h"

#include <string.h>

#include "array/joint.h"
#include "run/inside.h"

typedef struct dependent { /* of a run whose result is an argument */
  ax_pending *run;
  struct dependent *next;
} dependent;

typedef struct listener { /* is told when a run is over */
  ax_ready_callback tell;
  void *context;
  struct listener *next;
} listener;

struct ax_pending {
  ax_task task; /* first member, so that the task's address is the run's; queued when nothing is missing */
  atomic_uint references;
  ax_runtime *runtime; /* held until the run is over */
  uint64_t number;
  _Atomic bool over;
  bool handed_over; /* to a plugin, so that its results may be arguments. Guarded by the order lock */
  bool launched;    /* or has failed to be: what is left is to wait. Of the thread that has the run, as are the next two */
  bool began;       /* what it was given is gone */
  ax_client_going going;
  ax_status status; /* set when it is over, as is message; NULL: no failure */
  char *message;
  dependent behind; /* the list entry by which it waits for the run before it that all processes make */
  uint32_t missing; /* number of things it waits for; one more while it is set up. Guarded by the order lock, as are dependents */
  dependent *dependents;
  listener *listeners; /* guarded likewise */
  /* until it is over; arguments and results are released just before: */
  ax_run_call call;     /* its arguments and results retained, its lists here */
  uint32_t place;       /* where it is counted as a call of its executable */
  dependent *waits; /* by argument: the list entry by which it waits */
  void *memory;     /* of the lists */
};

static void lock_order(ax_runtime *runtime) { pthread_mutex_lock(&runtime->order); }
static void unlock_order(ax_runtime *runtime) { pthread_mutex_unlock(&runtime->order); }

bool ax_pending_over(const ax_pending *run) { return atomic_load_explicit(&run->over, memory_order_acquire); }

static void retain(ax_pending *run) { atomic_fetch_add_explicit(&run->references, 1, memory_order_relaxed); }

void ax_pending_release(ax_pending *run) {
  if (run == NULL || atomic_fetch_sub(&run->references, 1) != 1) return;
  ax_free(run->message);
  ax_free(run->memory);
  ax_free(run);
}

/* --- Beginning and ending --- */

/* The run misses one thing less. If that was the last, the run is queued, and from then on belongs to the thread that takes it.
   Called with the order lock held. */
static void found(ax_pending *run) {
  if (--run->missing == 0) ax_workers_push(run->runtime->executor.workers, &run->task);
}

/* Keeps the status and message of a failure for later callers. */
static void note_failure(ax_pending *run, ax_status status, bool own) {
  ax_text text = {0};
  if (own) ax_text_add(&text, "run %llu failed: ", (unsigned long long)run->number);
  ax_text_add(&text, "%s", ax_message());
  if (ax_text_finish(&text, &run->message) != AX_OK) run->message = NULL;
  run->status = status;
}

static ax_status failure_of(const ax_pending *run) {
  if (run->status == AX_OK) return AX_OK;
  return ax_error(run->status, "%s", run->message != NULL ? run->message : "a run failed");
}

/* Returns the failure of an argument's run, if one failed. One that is handed over and not over yet fails this run by itself. */
static ax_status check_made(const ax_pending *run) {
  for (uint32_t i = 0; i < run->call.in_count; i++) {
    const ax_pending *maker = run->call.in[i]->maker;
    if (maker != NULL && ax_pending_over(maker)) AX_TRY(failure_of(maker));
  }
  return AX_OK;
}

/* Calls the listeners, in the order in which they came. */
static void tell_all(const ax_pending *run, listener *listeners) {
  listener *ordered = NULL;
  for (listener *l = listeners, *next; l != NULL; l = next) {
    next = l->next;
    l->next = ordered;
    ordered = l;
  }
  for (listener *l = ordered, *next; l != NULL; l = next) {
    next = l->next;
    l->tell(run->status, run->message, l->context);
    ax_free(l);
  }
}

ax_status ax_pending_when_over(ax_pending *run, ax_ready_callback tell, void *context) {
  if (!ax_pending_over(run)) {
    ax_runtime *runtime = run->runtime; /* stays alive, as in ax_pending_wait */
    listener *l = ax_alloc(sizeof *l);
    if (l == NULL) return ax_out_of_memory(sizeof *l);
    *l = (listener){tell, context, NULL};
    lock_order(runtime);
    const bool over = ax_pending_over(run);
    if (!over) l->next = run->listeners, run->listeners = l;
    unlock_order(runtime);
    if (!over) return AX_OK;
    ax_free(l);
  }
  tell(run->status, run->message, context);
  return AX_OK;
}

/* Runs that wait for its results miss one thing less. Called with the order lock held. */
static void tell_dependents(ax_pending *run) {
  for (dependent *d = run->dependents, *next; d != NULL; d = next) {
    next = d->next; /* read now, since that run may be over before the next is told */
    found(d->run);
  }
  run->dependents = NULL;
  ax_workers_tell(run->runtime->executor.workers);
}

/* The results have their parts, and may be arguments before the run is over. */
static void hand_over(ax_pending *run) {
  lock_order(run->runtime);
  run->handed_over = true;
  tell_dependents(run);
  unlock_order(run->runtime);
}

/* Ends the run's hold on its arguments, results and executable. */
static void release_call(ax_pending *run) {
  const ax_run_call *call = &run->call;
  for (uint32_t i = 0; i < call->in_count; i++) ax_array_release(call->in[i]);
  for (uint32_t k = ax_call_out_count(call); k-- > 0;) ax_array_release(call->out[k]);
  ax_executable_leave(call->e, run->place);
}

/* Tells all that wait. By then the run holds no memory of the runtime, so that who waited and releases gives all back; the run's
   own reference to the runtime is released last. False: the runtime is gone. */
static bool end(ax_pending *run) {
  ax_runtime *runtime = run->runtime;
  release_call(run);
  lock_order(runtime);
  atomic_store_explicit(&run->over, true, memory_order_release);
  tell_dependents(run);
  if (runtime->together == run) {
    runtime->together = NULL;
    ax_pending_release(run);
  }
  listener *listeners = run->listeners;
  run->listeners = NULL;
  unlock_order(runtime);
  tell_all(run, listeners);
  ax_free(run->memory); /* results keep the run itself, for its status */
  run->memory = NULL;
  ax_pending_release(run);
  lock_order(runtime);
  runtime->pending--;
  bool last = ax_runtime_let_go(runtime); /* under the lock: a thread that awaits all runs may end the runtime after */
  if (!last) ax_workers_tell(runtime->executor.workers);
  unlock_order(runtime);
  if (last) ax_runtime_destroy(runtime);
  return !last;
}

/* Ends the use of the arguments, which the run holds. Donated ones are given back unless the run began. */
static void let_go(const ax_run_call *call, bool began) {
  for (uint32_t i = 0; i < call->in_count; i++) {
    if (!ax_call_donates(call, i)) ax_array_leave(call->in[i]);
    else if (!began) atomic_store(&call->in[i]->users, 0);
  }
}

/* Returns the failure of an argument's run that has failed in all processes. */
static ax_status check_made_together(const ax_pending *run) {
  for (uint32_t i = 0; i < run->call.in_count; i++) {
    const ax_pending *maker = run->call.in[i]->maker;
    if (maker != NULL && maker->call.together) AX_TRY(failure_of(maker));
  }
  return AX_OK;
}

/* All processes take part in it, also those in which an argument's run has failed, so that their numbers stay equal. */
static ax_status perform_together(ax_pending *run, bool *began) {
  ax_joint joint;
  const ax_doing doing = ax_call_doing(run->call.e);
  ax_joint_enter(&joint, run->runtime, &doing);
  ax_status status = check_made(run);
  if (status == AX_OK) status = ax_call_perform(&run->call, run->number, began);
  status = ax_joint_end_run(&joint, status);
  if (status != AX_OK) AX_TRY(check_made_together(run)); /* in its own words */
  return status;
}

/* Of a run that a plugin makes: hands it over. */
static void launch(ax_pending *run) {
  ax_status status = check_made(run);
  const bool own = status == AX_OK;
  if (own) status = ax_call_launch(&run->call, &run->going);
  run->launched = true;
  run->began = status == AX_OK;
  if (run->began) hand_over(run);
  else note_failure(run, status, own);
}

static void launch_and_wait(ax_pending *run) {
  if (!run->launched) launch(run);
  const ax_status status = ax_client_finish(&run->going);
  if (status != AX_OK) note_failure(run, status, true);
}

static void perform_here(ax_pending *run) {
  ax_status status = run->call.together ? perform_together(run, &run->began) : check_made(run);
  const bool own = !run->call.together && status == AX_OK;
  if (own) status = ax_call_perform(&run->call, run->number, &run->began);
  if (status != AX_OK) note_failure(run, status, own);
}

static bool perform(ax_task *task) {
  ax_pending *run = (ax_pending *)task;
  ax_inside inside;
  ax_inside_enter(&inside, &run->runtime->executor);
  if (run->runtime->client != NULL) launch_and_wait(run);
  else perform_here(run);
  let_go(&run->call, run->began);
  const bool stays = end(run);
  ax_inside_leave(&inside);
  return stays;
}

/* --- Starting --- */

static void *copy(void **to, const void *from, size_t bytes) {
  void *at = *to;
  if (from == NULL) return NULL;
  if (bytes > 0) memcpy(at, from, bytes);
  *to = (char *)at + bytes;
  return at;
}

/* Copies the lists of a call; its results are still NULL. */
static ax_status create(const ax_run_call *call, ax_pending **out) {
  const uint32_t in_count = call->in_count, out_count = ax_call_out_count(call);
  ax_pending *run = *out = ax_calloc(1, sizeof *run);
  if (run == NULL) return ax_out_of_memory(sizeof *run);
  const size_t bytes = in_count * (sizeof call->in[0] + sizeof run->waits[0] + sizeof call->input[0]) +
                       out_count * sizeof call->out[0] + call->passed_count * sizeof call->passed[0];
  atomic_init(&run->references, 1);
  void *next = run->memory = ax_calloc(1, bytes + 1);
  if (run->memory == NULL) {
    ax_pending_release(run);
    *out = NULL;
    return ax_out_of_memory(bytes);
  }
  run->task.perform = perform;
  run->runtime = call->e->runtime;
  run->waits = next;
  next = run->waits + in_count;
  run->call = *call;
  run->call.in = copy(&next, call->in, in_count * sizeof call->in[0]);
  run->call.out = copy(&next, call->out, out_count * sizeof call->out[0]);
  run->call.passed = copy(&next, call->passed, call->passed_count * sizeof call->passed[0]);
  run->call.input = copy(&next, call->input, in_count * sizeof call->input[0]);
  return AX_OK;
}

static ax_status refuse(const ax_pending *run, uint32_t i) {
  return ax_error(AX_INVALID_ARGUMENT, "run: argument %u, %s, is %s", ax_call_input(&run->call, i),
                  ax_type_string(&run->call.in[i]->layout->type, NULL),
                  ax_call_donates(&run->call, i) ? "donated, but another thread has donated it" : "donated by another thread");
}

/* Makes argument i readable by this run; if it is donated, the run gets it as soon as the array's users have left. Called with
   the order lock held. */
static ax_status hold(ax_pending *run, uint32_t i) {
  ax_array *array = run->call.in[i];
  if (!ax_call_donates(&run->call, i)) return ax_array_use(array) ? AX_OK : refuse(run, i);
  if (ax_array_gone(array)) return refuse(run, i); /* given to another run, which stays its `taker` */
  array->taker = run;                              /* set before its last user can leave */
  uint32_t users = atomic_fetch_or(&array->users, AX_ARRAY_GIVEN);
  if ((users & AX_ARRAY_GIVEN) == 0 && users > 0) {
    run->missing++;
    return AX_OK;
  }
  array->taker = NULL;
  return users == 0 ? AX_OK : refuse(run, i); /* without users it can be taken without the lock, which another thread just did */
}

/* Gives the first `count` arguments back, since a later one could not be held. */
static void give_up(ax_pending *run, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    ax_array *array = run->call.in[i];
    if (!ax_call_donates(&run->call, i)) ax_array_leave(array);
    else atomic_fetch_and(&array->users, ~AX_ARRAY_GIVEN);
    array->taker = NULL;
  }
}

/* A donated array may be one argument only. Called with the order lock held. */
static ax_status check_distinct(const ax_pending *run) {
  const ax_run_call *call = &run->call;
  for (uint32_t i = 0; i < call->in_count; i++) call->in[i]->donated_to = 0;
  for (uint32_t pass = 0; pass < 2; pass++) /* the donated ones first */
    for (uint32_t i = 0; i < call->in_count; i++) {
      if (ax_call_donates(call, i) != (pass == 0)) continue;
      if (call->in[i]->donated_to == run->number) return ax_call_refuse_twice(call, i);
      if (ax_call_donates(call, i)) call->in[i]->donated_to = run->number;
    }
  return AX_OK;
}

static ax_status hold_all(ax_pending *run) {
  AX_TRY(check_distinct(run));
  for (uint32_t i = 0; i < run->call.in_count; i++) {
    ax_status status = hold(run, i);
    if (status == AX_OK) continue;
    give_up(run, i);
    return status;
  }
  ax_status status = ax_call_check_same(&run->call);
  if (status != AX_OK) give_up(run, run->call.in_count);
  run->call.same_count = 0; /* the list is the caller's */
  run->call.same = NULL;
  return status;
}

/* The run waits for the one that was started before it. Called with the order lock held. */
static void line_up(ax_pending *run) {
  ax_pending *before = run->runtime->together;
  if (before != NULL) {
    run->behind = (dependent){run, before->dependents};
    before->dependents = &run->behind;
    run->missing++;
    ax_pending_release(before);
  }
  run->runtime->together = run;
  retain(run);
}

/* Can no longer fail: the run takes its references, and is listed with the runs that it waits for. Called with the order lock
   held. */
static void set_off(ax_pending *run) {
  const ax_run_call *call = &run->call;
  ax_runtime_hold(run->runtime);
  run->place = ax_callers_enter(&call->e->callers);
  retain(run); /* the run's own reference; the other is the caller's */
  run->runtime->pending++;
  for (uint32_t k = ax_call_out_count(call); k-- > 0;) {
    ax_array_retain(call->out[k]);
    call->out[k]->maker = run;
    retain(run);
  }
  for (uint32_t i = 0; i < call->in_count; i++) {
    ax_pending *maker = ax_array_retain(call->in[i])->maker;
    if (maker == NULL || maker->handed_over || ax_pending_over(maker)) continue;
    run->waits[i] = (dependent){run, maker->dependents};
    maker->dependents = &run->waits[i];
    run->missing++;
  }
  if (call->together) line_up(run);
}

/* A run that misses nothing is handed over by the thread that starts it: to wake another one for it would take as long. What is still
   missing is the caller's, so nobody else has the run meanwhile. Called with the order lock held. */
static void launch_here(ax_pending *run) {
  unlock_order(run->runtime);
  launch(run);
  lock_order(run->runtime);
}

/* Nothing is left to wait for, so no other thread need end it. */
static bool is_over_here(const ax_pending *run) { return run->launched && ax_client_is_over(&run->going); }

ax_status ax_pending_start(const ax_run_call *call, ax_pending **handle) {
  ax_pending *run;
  ax_runtime *runtime = call->e->runtime;
  bool ended = false;
  *handle = NULL;
  AX_TRY(create(call, &run));
  const uint32_t out_count = ax_call_out_count(call);
  ax_status status = ax_call_make_arrays(call);
  if (out_count > 0) memcpy(run->call.out, call->out, out_count * sizeof call->out[0]);
  lock_order(runtime);
  run->number = ++runtime->runs;
  run->missing = 1; /* so that the run does not begin before all is counted */
  if (status == AX_OK) status = hold_all(run);
  if (status == AX_OK) {
    set_off(run);
    if (runtime->client != NULL && run->missing == 1) launch_here(run);
    ended = is_over_here(run);
    if (!ended) found(run);
    *handle = run;
  }
  unlock_order(runtime);
  if (ended) (void)!perform(&run->task);
  if (status == AX_OK) return AX_OK;
  ax_pending_release(run);
  ax_call_drop_arrays(call->out, out_count);
  return status;
}

/* --- Waiting --- */

void ax_pending_array_free(ax_array *array) {
  lock_order(array->layout->runtime);
  /* This user was the last. But before the lock was taken the array may have been given back, and have a new reader. */
  bool unused = atomic_load(&array->users) == AX_ARRAY_GIVEN;
  ax_pending *taker = unused ? array->taker : NULL;
  if (taker != NULL) {
    array->taker = NULL;
    found(taker);
  }
  unlock_order(array->layout->runtime);
}

/* The queued run to begin here: `run`, or the oldest one if `run` misses something or is NULL. Called with the order lock held.
   */
static ax_task *task_for(ax_runtime *runtime, ax_pending *run) {
  return ax_workers_pull(runtime->executor.workers, run != NULL && run->missing == 0 ? &run->task : NULL);
}

/* Helps in runs that were started before, on which this run may depend, as threads of the team do. */
ax_status ax_pending_wait(ax_pending *run) {
  if (ax_pending_over(run)) return failure_of(run);
  ax_runtime *runtime = run->runtime; /* stays alive: the caller holds an array of it, or the executable */
  ax_workers *workers = runtime->executor.workers;
  for (;;) {
    uint32_t seen = ax_workers_news(workers);
    lock_order(runtime);
    bool over = ax_pending_over(run);
    ax_task *task = over ? NULL : task_for(runtime, run);
    unlock_order(runtime);
    if (over) break;
    if (task != NULL) task->perform(task);
    else if (!ax_workers_help(workers, run->number, &run->over)) ax_workers_await(workers, seen);
  }
  return failure_of(run);
}

static ax_pending *last_together(ax_runtime *runtime) {
  lock_order(runtime);
  ax_pending *last = runtime->together;
  if (last != NULL) retain(last);
  unlock_order(runtime);
  return last;
}

void ax_pending_wait_together(ax_runtime *runtime) {
  ax_text message = {0};
  ax_pending *last = ax_inside_run(&runtime->executor) ? NULL : last_together(runtime);
  if (last == NULL) return;
  ax_text_add(&message, "%s", ax_message());
  (void)!ax_pending_wait(last);
  (void)!ax_error(AX_INTERNAL, "%s", message.data != NULL && !message.failed ? message.data : "");
  ax_text_deinit(&message);
  ax_pending_release(last);
}

void ax_pending_wait_for_all(ax_runtime *runtime) {
  for (;;) {
    uint32_t seen = ax_workers_news(runtime->executor.workers);
    lock_order(runtime);
    bool none = runtime->pending == 0;
    ax_task *task = none ? NULL : task_for(runtime, NULL);
    unlock_order(runtime);
    if (none) break;
    if (task != NULL) task->perform(task);
    else ax_workers_await(runtime->executor.workers, seen);
  }
}
