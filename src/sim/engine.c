/* The loop over instants. */
#include "sim/engine.h"

#include <string.h>

#include "sim/state.h"

static ax_status push(ax_sim_engine *e, ax_sim_event event) { return ax_sim_queue_push(&e->queue, &event); }

/* --- Spans --- */

enum { most_spans = 1 << 21 };

/* Notes a span. *out is its number, or AX_NONE where spans are not kept. */
static ax_status note(ax_sim_engine *e, uint32_t image, uint32_t op, double start, double end, uint32_t cause, uint32_t *out) {
  ax_sim_engine_result *r = e->result;
  ax_sim_op_time *t = &r->ops[op];
  start *= e->tick;
  end *= e->tick;
  if (t->runs == 0 || start < t->start) t->start = start;
  if (end > t->end) t->end = end;
  t->busy += end - start;
  t->runs++;
  *out = AX_NONE;
  if (end > r->seconds) r->seconds = end;
  r->all_spans = r->all_spans && r->span_count < most_spans;
  if (r->span_count >= most_spans) return AX_OK;
  AX_TRY(ax_grow(&r->spans, sizeof r->spans[0], r->span_count, 1, &r->span_capacity));
  *out = r->span_count;
  r->spans[r->span_count++] = (ax_sim_engine_span){{image, op, start, end}, cause};
  if (r->last == AX_NONE || end > r->spans[r->last].span.end) r->last = *out;
  return AX_OK;
}

/* --- Transfers --- */

static ax_status walk(ax_sim_engine *e, uint32_t image);

/* The ticks that an operation takes there. */
static double computing(const ax_sim_engine *e, uint32_t image, uint32_t op) {
  const double *slow = e->place->slow;
  return ax_ticks(e, e->work->ops[op].seconds * (slow != NULL ? slow[ax_sim_place_device(e->place, image)] : 1));
}

static int64_t key_of(const ax_sim_engine *e, const ax_sim_agent *agent, uint32_t transfer, uint32_t chain, int64_t run) {
  const ax_sim_phase *phase = ax_sim_agent_phase(e, agent, transfer, chain);
  return run * e->work->transfers[transfer].procedure.chains[chain].keys + phase->key + (phase->varied ? agent->step : 0);
}

/* When the agent's next message goes. */
static ax_status plan_send(ax_sim_engine *e, uint32_t transfer, uint32_t chain, uint32_t image) {
  const ax_sim_agent *agent = ax_sim_agent_at(e, transfer, chain, image);
  const ax_sim_message *message;
  AX_TRY(ax_sim_moves_message(&e->moves, &(ax_sim_at){transfer, chain, agent->phase, image}, agent->step, agent->sent, &message));
  return push(e, (ax_sim_event){.time = e->time + message->overhead,
                                .kind = AX_EVENT_SEND,
                                .transfer = transfer,
                                .chain = chain,
                                .image = image});
}

static ax_status end_chain(ax_sim_engine *e, uint32_t transfer, uint32_t image, const ax_sim_agent *agent) {
  ax_sim_course_table *table = &e->tables[transfer];
  ax_sim_course *course = &table->courses[image];
  ax_sim_walker *walker = &e->walkers[image];
  uint32_t span;
  if (--course->left > 0) return AX_OK;
  if (--table->under_way == 0) e->under_way--;
  AX_TRY(note(e, image, e->work->transfers[transfer].op, course->start, e->time, agent->cause, &span));
  if (walker->waits != transfer) return AX_OK;
  walker->waits = AX_NONE;
  if (walker->now < e->time) walker->last = span;
  if (walker->now < e->time) walker->now = e->time;
  return walk(e, image);
}

static bool has_all(const ax_sim_agent *agent, const ax_sim_phase *phase) {
  return agent->sent == agent->to_send && agent->got >= (int64_t)agent->to_get * (phase->varied ? 1 : agent->step + 1);
}

/* From the phase and step that it is in: what it sends, and over what it need not wait for. */
static ax_status go_on(ax_sim_engine *e, uint32_t transfer, uint32_t chain, uint32_t image, bool fresh) {
  ax_sim_agent *agent = ax_sim_agent_at(e, transfer, chain, image);
  const ax_sim_procedure *s = &e->work->transfers[transfer].procedure;
  for (;;) {
    const ax_sim_phase *phase = ax_sim_agent_phase(e, agent, transfer, chain);
    if (fresh && agent->step == 0) {
      const ax_sim_turn *turn;
      AX_TRY(ax_sim_moves_turn(&e->moves, &(ax_sim_at){transfer, chain, agent->phase, image}, &turn));
      agent->to_send = turn->sends;
      agent->to_get = turn->receives;
      agent->next = turn->next;
    }
    if (fresh) {
      agent->sent = 0;
      if (agent->step == 0 || phase->varied) {
        agent->key = key_of(e, agent, transfer, chain, e->tables[transfer].courses[image].runs);
        agent->got = ax_sim_early_take(&e->early, &agent->early, agent->key);
      }
      if (chain == 0 && image == 0 && transfer < e->leader) e->leader = transfer;
      if (agent->to_send > 0) return plan_send(e, transfer, chain, image);
    }
    if (!has_all(agent, phase)) return AX_OK;
    fresh = true;
    if (++agent->step < phase->repeat) continue;
    agent->step = 0;
    agent->phase = agent->next;
    if (agent->phase < s->chains[chain].phase_count) continue;
    agent->active = false;
    return end_chain(e, transfer, image, agent);
  }
}

static ax_status start(ax_sim_engine *e, uint32_t transfer, uint32_t image) {
  const ax_sim_procedure *s = &e->work->transfers[transfer].procedure;
  ax_sim_course_table *table = &e->tables[transfer];
  if (table->courses == NULL) {
    table->courses = ax_calloc(e->images, sizeof table->courses[0]);
    table->agents = ax_calloc((size_t)e->images * s->chain_count, sizeof table->agents[0]);
    if (table->courses == NULL || table->agents == NULL) return ax_out_of_memory(e->images * sizeof table->agents[0]);
  }
  ax_sim_course *course = &table->courses[image];
  *course = (ax_sim_course){s->chain_count, e->walkers[image].last, course->runs + 1, e->time};
  if (table->under_way++ == 0) e->under_way++;
  for (uint32_t c = 0; c < s->chain_count; c++) {
    ax_sim_agent *agent = ax_sim_agent_at(e, transfer, c, image);
    *agent = (ax_sim_agent){.active = true, .early = agent->early, .there = agent->there, .cause = course->before};
  }
  for (uint32_t c = 0; c < s->chain_count; c++) AX_TRY(go_on(e, transfer, c, image, true));
  return AX_OK;
}

/* --- Messages --- */

/* A message leaves over these links at this instant, of so many senders. The parcel has all but the links. */
static ax_status put(ax_sim_engine *e, const ax_sim_hop *hops, uint32_t count, uint32_t senders, ax_sim_parcel parcel) {
  AX_TRY(ax_grow(&e->hops, sizeof e->hops[0], e->hop_count, count, &e->hop_capacity));
  AX_TRY(ax_grow(&e->batch, sizeof e->batch[0], e->batch_count, 1, &e->batch_capacity));
  if (count > 0) memcpy(e->hops + e->hop_count, hops, count * sizeof e->hops[0]); /* none to oneself */
  parcel.hop_first = e->hop_count;
  parcel.hop_count = count;
  e->batch[e->batch_count++] = parcel;
  e->hop_count += count;
  e->result->messages += senders;
  e->sent += senders;
  if (e->sent <= e->unrepeated) return AX_OK;
  return ax_error(
      AX_INVALID_ARGUMENT,
      "simulate: more than %.0f messages: %u of the mesh's devices differ from one another, and each is simulated by itself",
      e->most, e->images);
}

/* The last that comes to a switch has them all sent. */
static ax_status send_to_switch(ax_sim_engine *e, const ax_sim_event *event, const ax_sim_message *message) {
  ax_sim_agent *agent = ax_sim_agent_at(e, event->transfer, event->chain, event->image),
               *first = ax_sim_agent_at(e, event->transfer, event->chain, message->image);
  agent->sent++;
  if (++first->there < message->there_count) return AX_OK;
  first->there = 0;
  return put(e, e->moves.hops + message->hop_first, message->hop_count, message->there_count,
             (ax_sim_parcel){.kind = AX_EVENT_RETURN,
                             .transfer = event->transfer,
                             .chain = event->chain,
                             .image = message->image,
                             .cause = agent->cause,
                             .key = agent->key,
                             .bytes = 1,
                             .latency = message->latency});
}

static ax_status send(ax_sim_engine *e, const ax_sim_event *event) {
  ax_sim_agent *agent = ax_sim_agent_at(e, event->transfer, event->chain, event->image);
  const ax_sim_at at = {event->transfer, event->chain, agent->phase, event->image};
  const ax_sim_message *message;
  AX_TRY(ax_sim_moves_message(&e->moves, &at, agent->step, agent->sent, &message));
  if (message->there_count > 0) return send_to_switch(e, event, message);
  AX_TRY(put(e, e->moves.hops + message->hop_first, message->hop_count, 1,
             (ax_sim_parcel){.kind = AX_EVENT_ARRIVE,
                             .transfer = event->transfer,
                             .chain = event->chain,
                             .image = message->image,
                             .cause = agent->cause,
                             .key = agent->key,
                             .bytes = ax_sim_agent_phase(e, agent, event->transfer, event->chain)->bytes,
                             .latency = message->latency}));
  agent->sent++;
  if (agent->sent < agent->to_send) return plan_send(e, event->transfer, event->chain, event->image);
  return go_on(e, event->transfer, event->chain, event->image, false);
}

/* --- Single messages --- */

static const ax_sim_phase *post_phase(const ax_sim_post *post) { return &post->procedure.chains[0].phases[0]; }

static ax_status start_post(ax_sim_engine *e, const ax_sim_work_step *step, uint32_t image) {
  const ax_sim_post *post = &e->work->posts[step->target];
  const int64_t from = ax_sim_place_device(e->place, image);
  ax_sim_walker *w = &e->walkers[image];
  AX_TRY(note(e, image, step->op, w->now, w->now, w->last, &w->last));
  if (post->procedure.chains[0].phase_count == 0 || ax_sim_procedure_sends(&post->procedure, post_phase(post), from) == 0)
    return AX_OK;
  const int64_t to = ax_sim_procedure_target(&post->procedure, post_phase(post), 0, 0, from);
  return push(e, (ax_sim_event){.time = e->time + ax_ticks(e, ax_sim_place_overhead(e->place, from, to)),
                                .kind = AX_EVENT_POST,
                                .transfer = step->target,
                                .image = image,
                                .cause = w->last});
}

static ax_status send_post(ax_sim_engine *e, const ax_sim_event *event) {
  const ax_sim_post *post = &e->work->posts[event->transfer];
  const int64_t from = ax_sim_place_device(e->place, event->image);
  const int64_t to = ax_sim_procedure_target(&post->procedure, post_phase(post), 0, 0, from);
  const ax_sim_group *group = &post->procedure.group;
  const int64_t way = ax_sim_group_apart(group, ax_sim_group_member(group, from),
                                         ax_sim_group_member(group, to)); /* the same for all that are alike */
  const double bytes = post->procedure.bytes;
  AX_TRY(ax_sim_route_find(e->place, from, to, &e->route));
  return put(e, e->route.hops, e->route.count, 1,
             (ax_sim_parcel){.kind = AX_EVENT_DELIVER,
                             .transfer = post->queue,
                             .image = (uint32_t)ax_sim_place_image(e->place, to),
                             .cause = event->cause,
                             .key = way,
                             .bytes = bytes,
                             .latency = ax_ticks(e, e->route.latency + ax_sim_place_besides(e->place, from, to, bytes))});
}

static uint32_t *mail_of(const ax_sim_engine *e, uint32_t queue, uint32_t image) {
  return &e->mail[(size_t)queue * e->images + image];
}

static ax_status deliver(ax_sim_engine *e, const ax_sim_event *event) {
  ax_sim_walker *w = &e->walkers[event->image];
  uint32_t *first = mail_of(e, event->transfer, event->image);
  ax_sim_early *kept;
  AX_TRY(ax_sim_early_keep(&e->early, first, event->key, &kept));
  kept->cause = event->cause;
  return w->queue == event->transfer ? walk(e, event->image) : AX_OK;
}

/* False in *done: the message has not arrived. */
static ax_status receive(ax_sim_engine *e, const ax_sim_work_step *step, uint32_t image, bool *done) {
  const ax_sim_post *post = &e->work->posts[step->target];
  const ax_sim_group *group = &post->procedure.group;
  const int64_t member = ax_sim_group_member(group, ax_sim_place_device(e->place, image)), source = post->procedure.source[member];
  const int64_t way = source >= 0 ? ax_sim_group_apart(group, source, member) : -1;
  ax_sim_walker *w = &e->walkers[image];
  ax_sim_early *mail = ax_sim_early_find(&e->early, *mail_of(e, post->queue, image), way);
  const double begin = w->now;
  *done = source < 0 || mail != NULL;
  w->queue = *done ? AX_NONE : post->queue;
  if (!*done) return AX_OK;
  const bool waited = source >= 0 && w->now < e->time;
  const uint32_t cause = waited ? mail->cause : w->last;
  if (waited) w->now = e->time;
  if (source >= 0 && --mail->count == 0) (void)ax_sim_early_take(&e->early, mail_of(e, post->queue, image), way);
  return note(e, image, step->op, begin, w->now, cause, &w->last);
}

static ax_status arrive(ax_sim_engine *e, const ax_sim_event *event) {
  ax_sim_agent *agent = ax_sim_agent_at(e, event->transfer, event->chain, event->image);
  if (!agent->active || agent->key != event->key) return ax_sim_early_keep(&e->early, &agent->early, event->key, NULL);
  agent->got++;
  if (has_all(agent, ax_sim_agent_phase(e, agent, event->transfer, event->chain))) agent->cause = event->cause;
  return agent->sent == agent->to_send ? go_on(e, event->transfer, event->chain, event->image, false) : AX_OK;
}

static ax_status return_from_switch(ax_sim_engine *e, const ax_sim_event *event) {
  const ax_sim_agent *first = ax_sim_agent_at(e, event->transfer, event->chain, event->image);
  const ax_sim_message *message;
  AX_TRY(ax_sim_moves_message(&e->moves, &(ax_sim_at){event->transfer, event->chain, first->phase, event->image}, 0, 0, &message));
  ax_sim_event arrival = *event;
  arrival.kind = AX_EVENT_ARRIVE;
  for (uint32_t i = 0; i < message->there_count; i++) {
    arrival.image = e->moves.there[message->there_first + i];
    AX_TRY(push(e, arrival));
  }
  return AX_OK;
}

/* What the chains of this number (AX_NONE: all) have sent at this instant goes over its links. */
static ax_status carry_chain(ax_sim_engine *e, uint32_t chain) {
  for (uint32_t i = 0; i < e->batch_count; i++) {
    const ax_sim_parcel *m = &e->batch[i];
    for (uint32_t h = 0; (chain == AX_NONE || m->chain == chain) && h < m->hop_count; h++) {
      const ax_sim_hop *hop = &e->hops[m->hop_first + h];
      if (e->load[hop->link] == 0) e->touched[e->touched_count++] = hop->link;
      e->load[hop->link] += m->bytes * hop->weight;
      if (e->load[hop->link] == 0) e->touched_count--; /* a message of no bytes */
    }
  }
  for (uint32_t i = 0; i < e->touched_count; i++) {
    const uint32_t link = e->touched[i];
    e->free[link] = (e->free[link] > e->time ? e->free[link] : e->time) +
                    ax_ticks(e, e->load[link] / ax_sim_place_wire(e->place, link)->bandwidth);
    e->result->link_bytes[link] += e->load[link];
    e->load[link] = 0;
  }
  e->touched_count = 0;
  for (uint32_t i = 0; i < e->batch_count; i++) {
    const ax_sim_parcel *m = &e->batch[i];
    if (chain != AX_NONE && m->chain != chain) continue;
    double end = e->time;
    for (uint32_t h = 0; h < m->hop_count; h++) {
      const double free = e->free[e->hops[m->hop_first + h].link];
      end = free > end ? free : end;
    }
    AX_TRY(push(e, (ax_sim_event){end + m->latency, m->kind, m->transfer, m->chain, m->image, m->key, m->cause}));
  }
  return AX_OK;
}

/* All that was sent at this instant goes over its links. On a torus it goes chain by chain: where members are a part of a ring,
   the chains that go round it either way cross. Were their messages to share a link, both would be through late, and with a byte
   more, which keeps them apart, a collective would take less time. */
static ax_status carry(ax_sim_engine *e) {
  uint32_t chains = 0;
  for (uint32_t i = 0; i < e->batch_count; i++) chains = e->batch[i].chain >= chains ? e->batch[i].chain + 1 : chains;
  if (chains < 2 || e->place->machine->topology != AX_TOPOLOGY_TORUS)
    AX_TRY(carry_chain(e, AX_NONE));
  else
    for (uint32_t c = 0; c < chains; c++) AX_TRY(carry_chain(e, c));
  e->batch_count = e->hop_count = 0;
  return AX_OK;
}

/* --- Devices --- */

/* The first of the transfers a step waits for that is under way on this image; AX_NONE. */
static uint32_t awaited(const ax_sim_engine *e, const ax_sim_work_step *step, uint32_t image) {
  for (uint32_t i = 0; i < step->await_count; i++) {
    const uint32_t transfer = e->work->awaits[step->await_first + i];
    const ax_sim_course *courses = e->tables[transfer].courses;
    if (courses != NULL && courses[image].left > 0) return transfer;
  }
  return AX_NONE;
}

/* At the end of a round of a loop that only computes, all others but the last are like it, and wait for nothing any more. They are
   laid out operation by operation, each as long as all its runs take. */
static ax_status repeat_loop(ax_sim_engine *e, uint32_t image, int64_t *trips) {
  enum { least_rounds = 64 };
  ax_sim_walker *w = &e->walkers[image];
  const uint32_t begin = e->work->steps[w->step].target;
  double runs = (double)(*trips - 1);
  if (!e->repeats || *trips < least_rounds || !e->work->steps[begin].computes) return AX_OK;
  for (uint32_t i = begin + 1; i < w->step; i++) {
    const ax_sim_work_step *step = &e->work->steps[i];
    if (step->kind == AX_WORK_LOOP) runs *= (double)step->trips;
    if (step->kind == AX_WORK_NEXT) runs /= (double)e->work->steps[step->target].trips;
    if (step->kind != AX_WORK_COMPUTE) continue;
    const double end = w->now + runs * computing(e, image, step->op);
    AX_TRY(note(e, image, step->op, w->now, end, w->last, &w->last));
    e->result->ops[step->op].runs += runs - 1;
    w->now = end;
  }
  *trips = 1;
  return AX_OK;
}

/* As far as it comes without waiting, for transfers or for the time at which it starts one. */
static ax_status walk(ax_sim_engine *e, uint32_t image) {
  ax_sim_walker *w = &e->walkers[image];
  int64_t *trips = e->trips + (size_t)image * (e->work->loops + 1);
  while (w->step < e->work->step_count) {
    const ax_sim_work_step *step = &e->work->steps[w->step];
    if ((w->waits = awaited(e, step, image)) != AX_NONE) return AX_OK;
    if (step->kind == AX_WORK_COMPUTE) {
      const double end = w->now + computing(e, image, step->op);
      e->result->events++;
      AX_TRY(note(e, image, step->op, w->now, end, w->last, &w->last));
      w->now = end;
    } else if (step->kind == AX_WORK_LOOP) {
      trips[w->depth++] = step->trips;
    } else if (step->kind == AX_WORK_NEXT) {
      if (--trips[w->depth - 1] > 0) AX_TRY(repeat_loop(e, image, &trips[w->depth - 1]));
      if (trips[w->depth - 1] > 0) w->step = step->target;
      else w->depth--;
    } else if (step->kind == AX_WORK_RECEIVE) {
      bool done;
      AX_TRY(receive(e, step, image, &done));
      if (!done) return AX_OK;
    } else {
      if (w->now > e->time) return push(e, (ax_sim_event){.time = w->now, .kind = AX_EVENT_WALK, .image = image});
      w->step++;
      if (step->kind == AX_WORK_SEND) AX_TRY(start_post(e, step, image));
      else AX_TRY(start(e, e->work->ops[step->op].transfer, image));
      continue;
    }
    w->step++;
  }
  return AX_OK;
}

static ax_status happen(ax_sim_engine *e, const ax_sim_event *event) {
  e->result->events++;
  e->disturbed = e->disturbed || event->kind < AX_EVENT_SEND;
  switch (event->kind) {
    case AX_EVENT_WALK: return walk(e, event->image);
    case AX_EVENT_POST: return send_post(e, event);
    case AX_EVENT_DELIVER: return deliver(e, event);
    case AX_EVENT_SEND: return send(e, event);
    case AX_EVENT_RETURN: return return_from_switch(e, event);
    default: return arrive(e, event);
  }
}

/* Room for the spans that one round of each loop has, which need then not move as they become more. */
static ax_status reserve_spans(const ax_sim_engine *e) {
  enum { most = 1 << 19 };
  const uint64_t spans = (uint64_t)e->images * e->work->step_count;
  ax_sim_engine_result *r = e->result;
  return ax_grow(&r->spans, sizeof r->spans[0], 0, (uint32_t)(spans < most ? spans : most), &r->span_capacity);
}

static ax_status run(ax_sim_engine *e) {
  AX_TRY(reserve_spans(e));
  for (uint32_t i = 0; i < e->images; i++) {
    e->walkers[i] = (ax_sim_walker){.waits = AX_NONE, .queue = AX_NONE, .last = AX_NONE};
    AX_TRY(push(e, (ax_sim_event){.kind = AX_EVENT_WALK, .image = i}));
  }
  while (!ax_sim_queue_is_empty(&e->queue)) {
    e->time = ax_sim_queue_time(&e->queue);
    e->leader = AX_NONE;
    if (e->until > 0 && e->time * e->tick >= e->until) {
      e->result->seconds = INFINITY;
      return AX_OK;
    }
    while (!ax_sim_queue_is_empty(&e->queue) && ax_sim_queue_time(&e->queue) == e->time) {
      const ax_sim_event event = ax_sim_queue_pop(&e->queue);
      AX_TRY(happen(e, &event));
    }
    AX_TRY(carry(e));
    if (e->repeats && e->leader != AX_NONE) AX_TRY(ax_sim_steady_look(e));
  }
  for (uint32_t i = 0; i < e->images; i++)
    if (e->walkers[i].queue != AX_NONE)
      return ax_error(AX_DEADLOCK, "simulate: deadlock: device %lld waits in %s for a message that nobody sends",
                      (long long)ax_sim_place_device(e->place, i), e->work->ops[e->work->steps[e->walkers[i].step].op].name);
  return AX_OK;
}

/* How many times as long as others the slowest device takes. */
static double slowest(const ax_sim_place *place) {
  double most = 1;
  for (int64_t d = 0; place->slow != NULL && d < place->devices; d++) most = fmax(most, place->slow[d]);
  return most;
}

/* Chooses the tick by the total time of all operations, each step of a loop counted, with room for collectives that delay one
   another. */
static double choose_tick(const ax_sim_work *work, const ax_sim_place *place) {
  enum { room = 16, digits = 53 };
  double total = 0, times = slowest(place);
  int exponent;
  for (uint32_t i = 0; i < work->step_count; i++) {
    const ax_sim_work_step *step = &work->steps[i];
    if (step->kind == AX_WORK_LOOP) times *= (double)step->trips;
    else if (step->kind == AX_WORK_NEXT) times /= (double)work->steps[step->target].trips;
    else total += times * work->ops[step->op].seconds;
  }
  (void)frexp(total > 0 ? total * room : 1, &exponent);
  return ldexp(1, exponent - digits);
}

static ax_status allocate(ax_sim_engine *e, const ax_sim_work *work) {
  const size_t links = (size_t)ax_sim_place_links(e->place), depth = work->loops + 1;
  ax_sim_engine_result *r = e->result;
  r->ops = ax_calloc(work->op_count, sizeof r->ops[0]);
  r->link_bytes = ax_calloc(links, sizeof r->link_bytes[0]);
  e->free = ax_calloc(links, sizeof e->free[0]);
  e->load = ax_calloc(links, sizeof e->load[0]);
  e->touched = ax_calloc(links, sizeof e->touched[0]);
  e->tables = ax_calloc(work->transfer_count, sizeof e->tables[0]);
  e->walkers = ax_calloc(e->images, sizeof e->walkers[0]);
  e->trips = ax_calloc(e->images * depth, sizeof e->trips[0]);
  e->mail = ax_calloc((size_t)work->queues * e->images, sizeof e->mail[0]);
  e->steady = ax_sim_steady_create();
  AX_TRY(ax_sim_moves_make(work, e->place, e->images, e->tick, &e->moves));
  const bool all = r->ops != NULL && r->link_bytes != NULL && e->free != NULL && e->load != NULL && e->touched != NULL &&
                   e->tables != NULL && e->walkers != NULL && e->trips != NULL && e->mail != NULL && e->steady != NULL;
  return all ? AX_OK : ax_out_of_memory(links * sizeof e->free[0]);
}

static void release(ax_sim_engine *e) {
  for (uint32_t t = 0; e->tables != NULL && t < e->work->transfer_count; t++) {
    ax_free(e->tables[t].courses);
    ax_free(e->tables[t].agents);
  }
  ax_free(e->tables);
  ax_sim_queue_deinit(&e->queue);
  ax_sim_early_deinit(&e->early);
  ax_free(e->batch);
  ax_free(e->hops);
  ax_free(e->free);
  ax_free(e->load);
  ax_free(e->touched);
  ax_free(e->walkers);
  ax_free(e->trips);
  ax_free(e->mail);
  ax_sim_route_deinit(&e->route);
  if (e->moves.work != NULL) ax_sim_moves_deinit(&e->moves);
  ax_sim_steady_destroy(e->steady);
}

ax_status ax_sim_engine_run(const ax_sim_work *work, const ax_sim_place *place, ax_sim_limits limits, bool repeats,
                            ax_sim_engine_result *out) {
  enum { early = 8 };
  const int64_t images = ax_sim_place_images(place);
  ax_sim_engine e = {.work = work,
                     .place = place,
                     .result = out,
                     .most = limits.messages,
                     .unrepeated = limits.all > limits.messages && repeats ? limits.messages / early : limits.messages,
                     .until = limits.seconds,
                     .repeats = repeats,
                     .tick = choose_tick(work, place)};
  e.images = (uint32_t)(images < place->devices ? images : place->devices);
  *out = (ax_sim_engine_result){.last = AX_NONE, .all_spans = true};
  ax_status status = allocate(&e, work);
  if (status == AX_OK) status = run(&e);
  release(&e);
  if (status != AX_OK) ax_sim_engine_result_deinit(out);
  return status;
}

void ax_sim_engine_result_deinit(ax_sim_engine_result *r) {
  ax_free(r->ops);
  ax_free(r->link_bytes);
  ax_free(r->spans);
  *r = (ax_sim_engine_result){0};
}
