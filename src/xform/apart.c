/* Devices apart (apart.h). Threads stand for devices that take different ways, not for parallel work: the thread that runs holds
   the crowd's lock, and releases it only to wait. So nothing else is locked. If all threads that have not ended are waiting, none
   can ever wake another: a deadlock.

     message      to a link: a queue for each source, target, set of axes and link number; precv sleeps until its message is there
     collective   at a meeting: one for each equation and group; the last member to come computes for all
     region       its lanes become threads of the same crowd, and their parent sleeps until they have ended */
#include "xform/apart.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "ir/memo.h"
#include "ir/path.h"
#include "ir/prim.h"

typedef struct message {
  struct message *next;
  ax_tensor *tensor;
  const ax_eqn *eqn;
  const ax_program *program;
} message;

/* A thread that waits; on its own stack. */
typedef struct sleeper {
  struct sleeper *next;
  const ax_evaluator *at; /* NULL: for the threads it made */
  const ax_mesh *axes;
  int64_t device, from;   /* from: the sender of the message it waits for; -1: it is in a meeting */
  uint64_t number;        /* of that message */
  bool ready;
  pthread_cond_t wake;
} sleeper;

typedef struct link {
  struct link *next;
  message *first, *last;
  uint64_t taken;
  int64_t source, target;
  const ax_mesh *axes;
  sleeper *receiver; /* NULL: no thread waits */
} link;

typedef struct place { /* a member's, at a meeting */
  ax_tensor *const *in;
  ax_tensor **out;
  int64_t device;
  sleeper *asleep;
} place;

typedef struct meeting {
  place *places; /* by index in the group */
  int64_t count; /* who have come */
} meeting;

struct ax_crowd {
  pthread_mutex_t lock;
  const ax_program *whole;
  ax_memo memo; /* links and meetings */
  link *links;
  sleeper *asleep;
  uint32_t awake;
  ax_status status; /* the first error, and its message */
  ax_text message;
};

/* --- Sleeping --- */

static void wake(ax_crowd *crowd, sleeper *s) {
  if (s->ready) return;
  s->ready = true;
  crowd->awake++;
  pthread_cond_signal(&s->wake);
}

static void fail(ax_crowd *crowd, ax_status status, const char *text) {
  if (crowd->status != AX_OK) return;
  crowd->status = status;
  ax_text_add(&crowd->message, "%s", text);
  for (sleeper *s = crowd->asleep; s != NULL; s = s->next)
    if (s->at != NULL) wake(crowd, s);
}

ax_status ax_crowd_status(const ax_crowd *crowd) {
  if (crowd->status == AX_OK) return AX_OK;
  return ax_error(crowd->status, "%s",
                  crowd->message.data != NULL && !crowd->message.failed ? crowd->message.data : "out of memory");
}

static void add_device(ax_text *text, const ax_mesh *mesh, int64_t device) {
  ax_text_add(text, "device %lld", (long long)device);
  for (uint32_t a = 0; a < mesh->count; a++)
    ax_text_add(text, "%s%s=%lld", a > 0 ? "," : " (", mesh->axis[a].name, (long long)ax_mesh_coordinate(mesh, device, a));
  if (mesh->count > 0) ax_text_add(text, ")");
}

static int by_device(const void *a, const void *b) {
  const sleeper *x = *(sleeper *const *)a, *y = *(sleeper *const *)b;
  return x->device < y->device ? -1 : x->device > y->device;
}

static void add_sleeper(ax_text *text, const sleeper *s) {
  ax_text_add(text, "\n  at ");
  ax_evaluator_text(text, s->at);
  ax_text_add(text, ": ");
  add_device(text, s->axes, s->device);
  if (s->from < 0) return;
  ax_text_add(text, ", for message %llu of ", (unsigned long long)s->number);
  add_device(text, s->axes, s->from);
}

/* No thread is awake: lists the devices and what each waits for. */
static void report_deadlock(ax_crowd *crowd) {
  enum { most_listed = 16 };
  uint32_t count = 0;
  ax_text text = {0};
  for (const sleeper *s = crowd->asleep; s != NULL; s = s->next) count += s->at != NULL;
  const sleeper **sorted = ax_calloc(count, sizeof sorted[0]);
  count = 0;
  for (const sleeper *s = crowd->asleep; s != NULL && sorted != NULL; s = s->next)
    if (s->at != NULL) sorted[count++] = s;
  if (count > 0) qsort(sorted, count, sizeof sorted[0], by_device);
  ax_text_add(&text, "deadlock: %u device%s for what never comes", count, count == 1 ? " waits" : "s wait");
  for (uint32_t i = 0; i < count && i < most_listed; i++) add_sleeper(&text, sorted[i]);
  if (count > most_listed) ax_text_add(&text, "\n  ... and %u more", count - most_listed);
  fail(crowd, AX_DEADLOCK, text.data != NULL && !text.failed ? text.data : "deadlock");
  ax_text_deinit(&text);
  ax_free(sorted);
}

static void leave(ax_crowd *crowd) {
  if (--crowd->awake == 0 && crowd->status == AX_OK && crowd->asleep != NULL) report_deadlock(crowd);
}

static ax_status sleep_until_woken(ax_crowd *crowd, sleeper *s) {
  s->next = crowd->asleep;
  crowd->asleep = s;
  pthread_cond_init(&s->wake, NULL);
  leave(crowd);
  while (!s->ready) pthread_cond_wait(&s->wake, &crowd->lock);
  sleeper **at = &crowd->asleep;
  while (*at != s) at = &(*at)->next;
  *at = s->next;
  pthread_cond_destroy(&s->wake);
  return ax_crowd_status(crowd);
}

/* --- Messages --- */

/* Devices by their coordinates, and axes in the environment's order, so that a link is the same in all environments around it. */
static link *link_of(ax_crowd *crowd, const ax_mesh *mesh, const ax_axes *names, int64_t number, int64_t source, int64_t target) {
  ax_text key = {0};
  ax_axis_set set;
  ax_status status = ax_axes_resolve(names, mesh, &set);
  ax_text_add(&key, "%lld", (long long)number);
  for (uint32_t a = 0; a < mesh->count && status == AX_OK; a++)
    ax_text_add(&key, ",%s%s=%lld-%lld", set >> a & 1 ? "*" : "", mesh->axis[a].name,
                (long long)ax_mesh_coordinate(mesh, source, a), (long long)ax_mesh_coordinate(mesh, target, a));
  ax_memo_entry *entry = key.failed || status != AX_OK ? NULL : ax_memo_ask(&crowd->memo, "link", NULL, key.data, key.length);
  ax_text_deinit(&key);
  if (entry == NULL || entry->data != NULL) return entry != NULL ? entry->data : NULL;
  link *made = ax_arena_alloc(&crowd->memo.arena, sizeof *made);
  if (made == NULL) return NULL;
  *made = (link){.next = crowd->links, .source = source, .target = target, .axes = mesh};
  crowd->links = made;
  return entry->data = made;
}

ax_status ax_evaluate_send(const ax_eval_args *args, const ax_axes *names, int64_t number, int64_t to, const ax_tensor *tensor) {
  ax_crowd *crowd = args->driver->crowd;
  link *l = link_of(crowd, args->axes, names, number, args->device[0], to);
  message *sent = ax_alloc(sizeof *sent);
  ax_tensor *copy = NULL;
  if (l == NULL || sent == NULL || ax_tensor_copy(tensor, &copy) != AX_OK) {
    ax_free(sent);
    return ax_out_of_memory(sizeof *sent);
  }
  *sent = (message){.tensor = copy, .eqn = args->eqn, .program = args->driver->program};
  if (l->first == NULL) l->first = sent;
  else l->last->next = sent;
  l->last = sent;
  if (l->receiver != NULL) wake(crowd, l->receiver);
  l->receiver = NULL;
  return AX_OK;
}

static void name_psend(const ax_crowd *crowd, ax_text *text, const message *m) {
  ax_path path;
  ax_text_add(text, "%s ", m->eqn->prim->name);
  ax_type_text(text, &m->program->types[m->eqn->in[0]], &m->program->axes);
  ax_path_find(crowd->whole, m->program, m->eqn, &path);
  ax_path_text(text, &path);
}

static ax_status text_error(ax_text *text) {
  ax_status status = text->failed ? ax_out_of_memory(0) : ax_error(AX_INVALID_ARGUMENT, "%s", text->data);
  ax_text_deinit(text);
  return status;
}

static ax_status check_received(const ax_crowd *crowd, const ax_eval_args *args, const link *l, const message *m,
                                const ax_tensor *out) {
  const ax_type wanted = ax_array_type(out->dtype, AX_LIST(out->rank, out->dims)),
                is = ax_array_type(m->tensor->dtype, AX_LIST(m->tensor->rank, m->tensor->dims));
  ax_text text = {0};
  if (ax_type_equal(&wanted, &is)) return AX_OK;
  ax_evaluator_text(&text, args->driver);
  ax_text_add(&text, " on ");
  add_device(&text, args->axes, args->device[0]);
  ax_text_add(&text, " receives %s, but message %llu of ", ax_type_string(&wanted, NULL), (unsigned long long)l->taken);
  add_device(&text, args->axes, l->source);
  ax_text_add(&text, " is %s, of ", ax_type_string(&is, NULL));
  name_psend(crowd, &text, m);
  return text_error(&text);
}

static void message_free(message *m) {
  ax_tensor_release(m->tensor);
  ax_free(m);
}

ax_status ax_evaluate_receive(const ax_eval_args *args, const ax_axes *names, int64_t number, int64_t from, ax_tensor *out) {
  ax_crowd *crowd = args->driver->crowd;
  link *l = link_of(crowd, args->axes, names, number, from, args->device[0]);
  if (l == NULL) return ax_out_of_memory(sizeof *l);
  l->taken++;
  if (l->first == NULL) {
    sleeper self = {.at = args->driver, .axes = args->axes, .device = args->device[0], .from = from, .number = l->taken};
    l->receiver = &self;
    ax_status status = sleep_until_woken(crowd, &self);
    l->receiver = NULL;
    AX_TRY(status);
  }
  message *m = l->first;
  l->first = m->next;
  ax_status status = check_received(crowd, args, l, m, out);
  if (status == AX_OK) memcpy(out->data, m->tensor->data, (size_t)ax_dims_elems(out->rank, out->dims) * ax_dtype_bytes(out->dtype));
  message_free(m);
  return status;
}

/* --- Meetings --- */

static meeting *meeting_of(ax_crowd *crowd, const ax_evaluator *driver, int64_t group, int64_t size) {
  struct {
    const ax_eqn *eqn;
    int64_t group;
  } key = {driver->eqn, group};
  ax_memo_entry *entry = ax_memo_ask(&crowd->memo, "meeting", NULL, &key, sizeof key);
  if (entry == NULL || entry->data != NULL) return entry != NULL ? entry->data : NULL;
  meeting *made = ax_arena_alloc(&crowd->memo.arena, sizeof *made);
  if (made == NULL) return NULL;
  made->places = ax_arena_alloc(&crowd->memo.arena, (size_t)size * sizeof made->places[0]);
  return entry->data = made->places != NULL ? made : NULL;
}

/* All are there. */
static ax_status compute(ax_crowd *crowd, ax_evaluator *driver, meeting *m, int64_t size) {
  const ax_eqn *eqn = driver->eqn;
  uint32_t lanes = (uint32_t)size;
  ax_arena arena = {0};
  ax_tensor **in = ax_arena_alloc(&arena, (size_t)eqn->in_count * lanes * sizeof in[0]);
  ax_tensor **out = ax_arena_alloc(&arena, (size_t)eqn->out_count * lanes * sizeof out[0]);
  int64_t *device = ax_arena_alloc(&arena, lanes * sizeof device[0]);
  ax_status status = in == NULL || out == NULL || device == NULL ? ax_out_of_memory(lanes * sizeof in[0]) : AX_OK;
  for (uint32_t l = 0; l < lanes && status == AX_OK; l++) {
    device[l] = m->places[l].device;
    for (uint32_t i = 0; i < eqn->in_count; i++) in[(size_t)i * lanes + l] = m->places[l].in[i];
    for (uint32_t k = 0; k < eqn->out_count; k++) out[(size_t)k * lanes + l] = m->places[l].out[k];
  }
  ax_eval_args args = {.eqn = eqn,
                       .axes = &driver->program->axes,
                       .lanes = lanes,
                       .device = device,
                       .in = in,
                       .out = out,
                       .driver = driver,
                       .hooks = driver->hooks,
                       .each = ~(ax_axis_set)0};
  if (status == AX_OK) status = eqn->prim->eval(&args);
  ax_arena_deinit(&arena);
  m->count = 0;
  for (uint32_t l = 0; l < lanes; l++) {
    if (m->places[l].asleep != NULL) wake(crowd, m->places[l].asleep);
    m->places[l].asleep = NULL;
  }
  return status;
}

ax_status ax_crowd_meet(ax_evaluator *driver, int64_t group, int64_t index, int64_t size, int64_t device, ax_tensor *const *in,
                        ax_tensor **out) {
  ax_crowd *crowd = driver->crowd;
  meeting *m = meeting_of(crowd, driver, group, size);
  if (m == NULL) return ax_out_of_memory((size_t)size * sizeof m->places[0]);
  m->places[index] = (place){in, out, device, NULL};
  if (++m->count == size) return compute(crowd, driver, m, size);
  sleeper self = {.at = driver, .axes = &driver->program->axes, .device = device, .from = -1};
  m->places[index].asleep = &self;
  return sleep_until_woken(crowd, &self);
}

/* --- Threads --- */

typedef struct lane {
  ax_evaluator *driver;
  const ax_program *program;
  int64_t device;
  ax_tensor **in, **out;
  sleeper *parent;
  uint32_t *left; /* threads of the same parent that have not ended */
  pthread_t thread;
} lane;

static void *run_lane(void *context) {
  lane *l = context;
  ax_crowd *crowd = l->driver->crowd;
  pthread_mutex_lock(&crowd->lock);
  ax_status status = ax_crowd_status(crowd);
  if (status == AX_OK) status = ax_evaluate_lanes(l->driver, l->program, 1, &l->device, l->in, l->out);
  if (status != AX_OK) fail(crowd, status, ax_message());
  if (--*l->left == 0) wake(crowd, l->parent);
  leave(crowd);
  pthread_mutex_unlock(&crowd->lock);
  return NULL;
}

static ax_status begin_lanes(ax_crowd *crowd, lane *list, uint32_t count, uint32_t *begun) {
  for (*begun = 0; *begun < count; ++*begun)
    if (pthread_create(&list[*begun].thread, NULL, run_lane, &list[*begun]) != 0) {
      fail(crowd, AX_OUT_OF_MEMORY, "no more threads to evaluate devices apart");
      return crowd->status;
    }
  return AX_OK;
}

/* With the crowd's lock: threads begin once this one sleeps. */
static ax_status run_lanes(ax_crowd *crowd, lane *list, uint32_t count) {
  sleeper self = {.axes = NULL};
  uint32_t left = count, begun;
  for (uint32_t l = 0; l < count; l++) {
    list[l].parent = &self;
    list[l].left = &left;
  }
  ax_status status = begin_lanes(crowd, list, count, &begun);
  left = begun;
  crowd->awake += begun;
  if (begun > 0) status = sleep_until_woken(crowd, &self);
  pthread_mutex_unlock(&crowd->lock); /* the last holds it until it ends */
  for (uint32_t l = 0; l < begun; l++) pthread_join(list[l].thread, NULL);
  pthread_mutex_lock(&crowd->lock);
  return status == AX_OK ? ax_crowd_status(crowd) : status;
}

ax_status ax_crowd_spread(ax_evaluator *driver, const ax_program *program, uint32_t lanes, const int64_t *device,
                          ax_tensor *const *in, ax_tensor **out) {
  ax_arena arena = {0};
  lane *list = ax_arena_alloc(&arena, lanes * sizeof list[0]);
  ax_status status = list != NULL ? AX_OK : ax_out_of_memory(lanes * sizeof list[0]);
  for (uint32_t l = 0; l < lanes && status == AX_OK; l++) {
    list[l] = (lane){.driver = driver, .program = program, .device = device[l]};
    list[l].in = ax_arena_alloc(&arena, program->in_count * sizeof in[0]);
    list[l].out = ax_arena_alloc(&arena, program->out_count * sizeof out[0]);
    if (list[l].in == NULL || list[l].out == NULL) status = ax_out_of_memory(program->in_count * sizeof in[0]);
    for (uint32_t i = 0; i < program->in_count && status == AX_OK; i++) list[l].in[i] = in[(size_t)i * lanes + l];
  }
  if (status == AX_OK) status = run_lanes(driver->crowd, list, lanes);
  for (uint32_t k = 0; list != NULL && k < program->out_count; k++)
    for (uint32_t l = 0; l < lanes && list[l].out != NULL; l++) out[(size_t)k * lanes + l] = list[l].out[k];
  ax_arena_deinit(&arena);
  return status;
}

static ax_status check_taken(const ax_crowd *crowd) {
  const link *first = NULL; /* the earliest made */
  ax_text text = {0};
  for (const link *l = crowd->links; l != NULL; l = l->next)
    if (l->first != NULL) first = l;
  if (first == NULL) return AX_OK;
  name_psend(crowd, &text, first->first);
  ax_text_add(&text, ": message %llu of ", (unsigned long long)first->taken + 1);
  add_device(&text, first->axes, first->source);
  ax_text_add(&text, " to ");
  add_device(&text, first->axes, first->target);
  ax_text_add(&text, " is never received");
  return text_error(&text);
}

static void deinit(ax_crowd *crowd) {
  for (link *l = crowd->links; l != NULL; l = l->next)
    for (message *m = l->first, *next; m != NULL; m = next) {
      next = m->next;
      message_free(m);
    }
  ax_memo_deinit(&crowd->memo);
  ax_text_deinit(&crowd->message);
  pthread_mutex_destroy(&crowd->lock);
}

ax_status ax_crowd_evaluate(const ax_hooks *hooks, const ax_program *program, uint32_t lanes, const int64_t *device,
                            ax_tensor *const *in, ax_tensor **out) {
  ax_crowd crowd = {.whole = program, .awake = 1};
  ax_evaluator root = {.crowd = &crowd, .hooks = hooks};
  pthread_mutex_init(&crowd.lock, NULL);
  pthread_mutex_lock(&crowd.lock);
  ax_status status = ax_evaluate_lanes(&root, program, lanes, device, in, out);
  if (status == AX_OK) status = check_taken(&crowd);
  for (size_t i = 0; i < (size_t)program->out_count * lanes && status != AX_OK; i++) {
    ax_tensor_release(out[i]);
    out[i] = NULL;
  }
  pthread_mutex_unlock(&crowd.lock);
  deinit(&crowd);
  return status;
}
