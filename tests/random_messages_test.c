/* Programs of messages put together at random so that none waits for ever: on 2 to 8 devices, in branches that each device takes
   for itself, in loops, between collectives, over one axis and several. Under every policy they give what a list of the events in
   an order that is possible gives, bit by bit, and so does reference evaluation.

   Events are drawn in such an order: a message is received after it was sent. The program has rounds, in each of which every device
   has a branch of its own with some of its events; where these fall does not matter, as long as its own stay in order. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "axle/exec.h"
#include "axle/ops.h"
#include "support/cmocka.h"
#include "support/random.h"
#include "support/run.h"

enum { most_devices = 8, most_events = 128, most_links = 128, elems = 3 };

typedef enum event_kind { SEND, RECEIVE, COMPUTE, ALL_SEND, ALL_RECEIVE, SUM } event_kind;
typedef struct event {
  event_kind kind;
  uint32_t device, peer, times, loop; /* loop: 0 as many equations, 1 a scan, 2 a while */
  uint32_t round;
  const char *axes;
  uint32_t pair_count;
  int64_t pairs[most_devices][2]; /* member numbers */
} event;

typedef struct scenario {
  ax_mesh mesh;
  const char *names[4]; /* ways to name axes: the whole first */
  uint32_t name_count, devices, trips, event_count, round_count;
  bool unchecked;
  event events[most_events];
} scenario;

/* --- Who is who --- */

static int64_t coordinate(const scenario *s, uint32_t device, const char *axis) {
  return ax_mesh_coordinate(&s->mesh, device, (uint32_t)ax_mesh_find(&s->mesh, axis));
}

/* The member number along "a", or "a,b". */
static int64_t number_of(const scenario *s, const char *axes, uint32_t device) {
  char first[2] = {axes[0]}, second[2] = {strlen(axes) > 1 ? axes[2] : '\0'};
  int64_t number = coordinate(s, device, first);
  if (second[0] == '\0') return number;
  return number * s->mesh.axis[ax_mesh_find(&s->mesh, second)].size + coordinate(s, device, second);
}

static bool same_group(const scenario *s, const char *axes, uint32_t x, uint32_t y) {
  for (uint32_t a = 0; a < s->mesh.count; a++)
    if (strchr(axes, s->mesh.axis[a].name[0]) == NULL &&
        coordinate(s, x, s->mesh.axis[a].name) != coordinate(s, y, s->mesh.axis[a].name))
      return false;
  return true;
}

static uint32_t device_of(const scenario *s, const char *axes, uint32_t near, int64_t number) {
  for (uint32_t d = 0; d < s->devices; d++)
    if (same_group(s, axes, near, d) && number_of(s, axes, d) == number) return d;
  fail_msg("no member %lld", (long long)number);
  return 0;
}

/* --- Queues --- */

typedef struct queue {
  uint32_t source, target, set; /* set: bits of axes */
  uint32_t count, taken;
  uint32_t data[256][elems];
} queue;
static queue queues[most_links];
static uint32_t queue_count;

static queue *queue_of(const scenario *s, const char *axes, uint32_t source, uint32_t target) {
  uint32_t set = 0, i = 0;
  for (uint32_t a = 0; a < s->mesh.count; a++) set |= (strchr(axes, s->mesh.axis[a].name[0]) != NULL) << a;
  while (i < queue_count && (queues[i].source != source || queues[i].target != target || queues[i].set != set)) i++;
  assert_true(i < most_links);
  if (i == queue_count) queues[queue_count++] = (queue){.source = source, .target = target, .set = set};
  return &queues[i];
}

/* --- Drawing --- */

typedef struct drawing {
  scenario *s;
  test_random *random;
  uint32_t round[most_devices];
} drawing;

static uint32_t below(drawing *d, uint32_t bound) { return (uint32_t)test_random_below(d->random, bound); }

static event *add(drawing *d, event_kind kind, uint32_t device) {
  event *e = &d->s->events[d->s->event_count++];
  assert_true(d->s->event_count <= most_events);
  *e = (event){.kind = kind, .device = device, .times = 1};
  if (kind < ALL_SEND) {
    d->round[device] += below(d, 3) == 0;
    e->round = d->round[device];
    return e;
  }
  for (uint32_t i = 0; i < d->s->devices; i++) e->round = d->round[i] > e->round ? d->round[i] : e->round;
  e->round++;
  for (uint32_t i = 0; i < d->s->devices; i++) d->round[i] = e->round + 1;
  return e;
}

static const char *axes_between(drawing *d, uint32_t x, uint32_t y) {
  for (;;) {
    const char *axes = d->s->names[below(d, d->s->name_count)];
    if (same_group(d->s, axes, x, y)) return axes;
  }
}

static void add_send(drawing *d) {
  event *e = add(d, SEND, below(d, d->s->devices));
  e->peer = below(d, d->s->devices);
  e->axes = axes_between(d, e->device, e->peer);
  e->times = 1 + below(d, 3);
  e->loop = below(d, 3);
  queue_of(d->s, e->axes, e->device, e->peer)->count += e->times;
}

static void add_receive(drawing *d, queue *q) {
  event *e = add(d, RECEIVE, q->target);
  e->peer = q->source;
  do e->axes = axes_between(d, e->device, e->peer);
  while (queue_of(d->s, e->axes, e->peer, e->device) != q);
  e->times = 1 + below(d, q->count - q->taken < 3 ? q->count - q->taken : 3);
  e->loop = below(d, 3);
  q->taken += e->times;
}

/* Some pairs, or a ring. */
static void draw_pairs(drawing *d, event *e) {
  bool used[most_devices] = {false}, targeted[most_devices] = {false};
  uint32_t members = 0;
  e->axes = d->s->names[below(d, d->s->name_count)];
  for (uint32_t i = 0; i < d->s->devices; i++)
    members = number_of(d->s, e->axes, i) >= members ? (uint32_t)number_of(d->s, e->axes, i) + 1 : members;
  for (uint32_t i = 0; i < members; i++) {
    uint32_t from = below(d, members), to = below(d, members);
    if (used[from] || targeted[to]) continue;
    used[from] = targeted[to] = true;
    e->pairs[e->pair_count][0] = from;
    e->pairs[e->pair_count++][1] = to;
  }
}

/* All send, something happens to some, all receive what was sent last: nothing else waits anywhere, so that this is what comes. */
static void add_exchange(drawing *d) {
  event *send = add(d, ALL_SEND, 0);
  draw_pairs(d, send);
  for (uint32_t i = 0; i < d->s->devices; i++)
    for (uint32_t p = 0; p < send->pair_count; p++)
      if (number_of(d->s, send->axes, i) == send->pairs[p][0])
        queue_of(d->s, send->axes, i, device_of(d->s, send->axes, i, send->pairs[p][1]))->count++;
  if (below(d, 2) == 0) (void)add(d, COMPUTE, below(d, d->s->devices));
  event *receive = add(d, ALL_RECEIVE, 0);
  receive->axes = send->axes;
  receive->pair_count = send->pair_count;
  memcpy(receive->pairs, send->pairs, sizeof receive->pairs);
  for (uint32_t i = 0; i < d->s->devices; i++)
    for (uint32_t p = 0; p < send->pair_count; p++)
      if (number_of(d->s, send->axes, i) == send->pairs[p][0])
        queue_of(d->s, send->axes, i, device_of(d->s, send->axes, i, send->pairs[p][1]))->taken++;
}

static queue *some_waiting(drawing *d) {
  uint32_t start = queue_count > 0 ? below(d, queue_count) : 0;
  for (uint32_t i = 0; i < queue_count; i++) {
    queue *q = &queues[(start + i) % queue_count];
    if (q->count > q->taken) return q;
  }
  return NULL;
}

static bool any_waiting(void) {
  for (uint32_t i = 0; i < queue_count; i++)
    if (queues[i].count > queues[i].taken) return true;
  return false;
}

static void draw(scenario *s, uint64_t seed) {
  static const char *const meshes[] = {"a=2", "a=3", "a=2,b=2", "a=2,b=3", "a=4,b=2", "a=5", "a=8", "a=1,b=2"};
  test_random random = {seed * 77 + 5};
  drawing d = {.s = s, .random = &random};
  *s = (scenario){0};
  TEST_OK(ax_mesh_parse(meshes[below(&d, AX_COUNT(meshes))], &s->mesh));
  s->devices = (uint32_t)ax_mesh_devices(&s->mesh);
  s->unchecked = below(&d, 2) == 0;
  s->trips = 1 + below(&d, 3);
  static const char *const one[] = {"a"}, *const two[] = {"a,b", "b,a", "a", "b"};
  s->name_count = s->mesh.count == 1 ? 1 : 4;
  memcpy(s->names, s->mesh.count == 1 ? one : two, s->name_count * sizeof s->names[0]);
  queue_count = 0;
  for (uint32_t i = 0, count = 4 + below(&d, 16); i < count; i++) {
    queue *q = some_waiting(&d);
    uint32_t choice = below(&d, 10);
    if (choice < 4) add_send(&d);
    else if (choice < 7 && q != NULL) add_receive(&d, q);
    else if (choice == 7) (void)add(&d, COMPUTE, below(&d, s->devices));
    else if (choice == 8) add(&d, SUM, 0)->axes = s->names[below(&d, s->name_count)];
    else if (!any_waiting()) add_exchange(&d);
  }
  for (queue *q; (q = some_waiting(&d)) != NULL;) add_receive(&d, q);
  for (uint32_t i = 0; i < s->devices; i++) s->round_count = d.round[i] >= s->round_count ? d.round[i] + 1 : s->round_count;
}

/* --- As a list of events --- */

static void push(queue *q, const uint32_t *x) { memcpy(q->data[q->count++ % 256], x, sizeof q->data[0]); }

static void happen(const scenario *s, const event *e, uint32_t state[][elems]) {
  uint32_t sums[most_devices][elems] = {{0}};
  for (uint32_t d = 0; d < s->devices; d++) {
    uint32_t *x = state[d];
    bool mine = e->device == d || e->kind >= ALL_SEND;
    for (uint32_t t = 0; t < e->times && mine; t++) {
      const uint32_t *got = NULL;
      for (uint32_t i = 0; i < elems && e->kind == SUM; i++)
        for (uint32_t other = 0; other < s->devices; other++)
          sums[d][i] += same_group(s, e->axes, d, other) ? state[other][i] : 0;
      if (e->kind == SUM) continue;
      if (e->kind == RECEIVE) {
        queue *q = queue_of(s, e->axes, e->peer, d);
        got = q->data[q->taken++ % 256];
      }
      for (uint32_t p = 0; p < e->pair_count && e->kind == ALL_RECEIVE; p++) {
        if (number_of(s, e->axes, d) != e->pairs[p][1]) continue;
        queue *q = queue_of(s, e->axes, device_of(s, e->axes, d, e->pairs[p][0]), d);
        got = q->data[q->taken++ % 256];
      }
      bool receives = e->kind == RECEIVE || e->kind == ALL_RECEIVE;
      for (uint32_t i = 0; i < elems; i++)
        x[i] = receives ? x[i] * 5 + (got != NULL ? got[i] : 0) : e->kind == COMPUTE ? x[i] * x[i] - 7 : x[i] * 3 + 1;
      if (e->kind == SEND) push(queue_of(s, e->axes, d, e->peer), x);
      for (uint32_t p = 0; p < e->pair_count && e->kind == ALL_SEND; p++)
        if (number_of(s, e->axes, d) == e->pairs[p][0]) push(queue_of(s, e->axes, d, device_of(s, e->axes, d, e->pairs[p][1])), x);
    }
  }
  for (uint32_t d = 0; d < s->devices && e->kind == SUM; d++)
    for (uint32_t i = 0; i < elems; i++) state[d][i] += sums[d][i];
}

static void happen_all(const scenario *s, uint32_t state[][elems]) {
  queue_count = 0;
  for (uint32_t trip = 0; trip < s->trips; trip++)
    for (uint32_t i = 0; i < s->event_count; i++) happen(s, &s->events[i], state);
}

/* --- As a program --- */

typedef struct part { /* of a device in a round, or of all; or one event */
  const scenario *s;
  uint32_t device, round;
  const event *event;
} part;

static ax_value one_message(const part *p, ax_value x) {
  const event *e = p->event;
  const ax_type type = AX_TYPE(AX_S32, elems);
  bool sends = e->kind == SEND;
  const int64_t pairs[][2] = {
      {number_of(p->s, e->axes, sends ? e->device : e->peer), number_of(p->s, e->axes, sends ? e->peer : e->device)}};
  if (!sends) return ax_add(ax_mul(x, ax_integer(5)), ax_precv(ax_create_token(), type, e->axes, 1, pairs));
  x = ax_add(ax_mul(x, ax_integer(3)), ax_integer(1));
  (void)ax_psend(x, e->axes, 1, pairs);
  return x;
}

static void scan_step(const ax_value *in, ax_value *out, void *context) { out[0] = one_message(context, in[0]); }
static void while_test(const ax_value *in, ax_value *out, void *context) {
  out[0] = ax_lt(in[0], ax_integer(((const part *)context)->event->times));
}
static void while_step(const ax_value *in, ax_value *out, void *context) {
  out[0] = ax_add(in[0], ax_integer(1));
  out[1] = one_message(context, in[1]);
}

static ax_value messages(const part *p, ax_value x) {
  const event *e = p->event;
  if (e->loop == 1) {
    ax_value out;
    ax_scan(AX_CLOSURE(scan_step, 1, 1, p), 1, e->times, false, &x, &out);
    return out;
  }
  if (e->loop == 2) {
    ax_value in[] = {ax_full(AX_S32, AX_DIMS(), 0), x}, out[2];
    ax_while(AX_CLOSURE(while_test, 2, 1, p), AX_CLOSURE(while_step, 2, 2, p), in, out);
    return out[1];
  }
  for (uint32_t t = 0; t < e->times; t++) x = one_message(p, x);
  return x;
}

static void branch(const ax_value *in, ax_value *out, void *context) {
  const part *p = context;
  ax_value x = in[0];
  for (uint32_t i = 0; i < p->s->event_count; i++) {
    const event *e = &p->s->events[i];
    part one = {p->s, p->device, p->round, e};
    if (e->kind >= ALL_SEND || e->device != p->device || e->round != p->round) continue;
    x = e->kind == COMPUTE ? ax_sub(ax_mul(x, x), ax_integer(7)) : messages(&one, x);
  }
  out[0] = x;
}

static ax_value together(const event *e, ax_value x) {
  if (e->kind == SUM) return ax_add(x, ax_psum(x, e->axes));
  if (e->kind == ALL_RECEIVE)
    return ax_add(ax_mul(x, ax_integer(5)), ax_precv(ax_create_token(), AX_TYPE(AX_S32, elems), e->axes, e->pair_count, e->pairs));
  x = ax_add(ax_mul(x, ax_integer(3)), ax_integer(1));
  (void)ax_psend(x, e->axes, e->pair_count, e->pairs);
  return x;
}

static void all_rounds(const ax_value *in, ax_value *out, void *context) {
  const scenario *s = context;
  ax_value x = in[0];
  for (uint32_t round = 0; round < s->round_count; round++) {
    const event *all = NULL;
    part parts[most_devices];
    ax_fn branches[most_devices];
    for (uint32_t i = 0; i < s->event_count; i++)
      if (s->events[i].kind >= ALL_SEND && s->events[i].round == round) all = &s->events[i];
    if (all != NULL) {
      x = together(all, x);
      continue;
    }
    for (uint32_t d = 0; d < s->devices; d++) {
      parts[d] = (part){s, d, round, NULL};
      branches[d] = AX_CLOSURE(branch, 1, 1, &parts[d]);
    }
    ax_value moved;
    ax_switch(ax_axis_index(s->mesh.count == 1 ? "a" : "a,b"), AX_LIST(s->devices, branches), &x, &moved);
    x = moved;
  }
  out[0] = x;
}

static void body(const ax_value *in, ax_value *out, void *context) {
  const scenario *s = context;
  if (s->trips == 1) all_rounds(in, out, context);
  else ax_scan(AX_CLOSURE(all_rounds, 1, 1, s), 1, s->trips, false, in, out);
}

static void whole(const ax_value *in, ax_value *out, void *context) {
  const scenario *s = context;
  const char *specs = s->mesh.count == 1 ? "a -> a" : "a+b -> a+b";
  if (s->unchecked) ax_shard_map_unchecked(&s->mesh, specs, AX_CLOSURE(body, 1, 1, s), in, out);
  else ax_shard_map(&s->mesh, specs, AX_CLOSURE(body, 1, 1, s), in, out);
}

/* --- Checked --- */

static void one_program(uint64_t seed, bool show) {
  scenario s;
  draw(&s, seed);
  ax_program *program;
  const ax_type type = AX_TYPE(AX_S32, s.devices * elems);
  TEST_OK(ax_trace(AX_CLOSURE(whole, 1, 1, &s), &type, &program));
  if (show) test_show_program(program);
  test_random random = {seed};
  ax_tensor *in = test_random_tensor(&random, type, -9, 9), *out;
  uint32_t state[most_devices][elems];
  memcpy(state, in->data, s.devices * sizeof state[0]);
  happen_all(&s, state);
  TEST_OK(ax_evaluate(program, &in, &out));
  if (memcmp(state, out->data, s.devices * sizeof state[0]) != 0)
    fail_msg("seed %llu: not what the events give", (unsigned long long)seed);
  test_every_way(program, &in, 0, seed, __FILE__, __LINE__);
  test_release(&in, 1);
  test_release(&out, 1);
  ax_program_release(program);
}

static void programs(void **state) {
  (void)state;
  test_each_seed(24, one_program);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(programs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
