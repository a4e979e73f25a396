/* The cost of a partitioned program, counted from its equations. The factors of an equation give its operations; the record of
   its primitive gives the bytes that devices receive, and how often it runs the programs that it holds. Each program is counted
   once, however many equations hold it. */
#include <stdlib.h>
#include <string.h>

#include "axle/stages.h"
#include "partition/between.h"
#include "partition/partition.h"
#include "partition/partitioner.h"
#include "prim/bind.h"
#include "prim/rules.h"

/* The cost of one run of one program. The collectives (rows) are in no order. */
typedef struct tally {
  double flops, bytes, received;
  bool at_least;
  ax_collective_cost *rows; /* on the heap while the program is counted, then in the memo's arena */
  uint32_t row_count, row_capacity; /* rows that the heap's array has room for */
} tally;

typedef struct counting {
  ax_memo memo;
  ax_factoring factoring;
  ax_over_processes over;
  const ax_program *around; /* of the kernel whose bodies are counted: their axes beyond its own are of cores; NULL: none */
} counting;

/* --- Tallies --- */

static bool is_like(const ax_collective_cost *a, const ax_collective_cost *b) {
  return a->members == b->members && strcmp(a->primitive, b->primitive) == 0 && strcmp(a->axes, b->axes) == 0;
}

/* Adds to the row of this collective. The search is linear, as a program has few different collectives. */
static ax_status add_row(tally *t, const ax_collective_cost *row, double times) {
  uint32_t i = 0;
  while (i < t->row_count && !is_like(&t->rows[i], row)) i++;
  if (i == t->row_count) {
    AX_TRY(ax_grow(&t->rows, sizeof t->rows[0], t->row_count, 1, &t->row_capacity));
    t->rows[t->row_count++] = (ax_collective_cost){.primitive = row->primitive, .axes = row->axes, .members = row->members};
  }
  ax_collective_cost *sum = &t->rows[i];
  sum->runs += times * row->runs;
  sum->bytes += times * row->bytes;
  sum->within += times * row->within;
  sum->between += times * row->between;
  sum->messages += times * row->messages;
  sum->seconds += times * row->seconds;
  if (row->way != NULL) sum->way = row->way;
  return AX_OK;
}

static ax_status add(tally *t, const tally *more, double times) {
  t->flops += times * more->flops;
  t->bytes += times * more->bytes;
  t->received += times * more->received;
  t->at_least = t->at_least || more->at_least;
  for (uint32_t i = 0; i < more->row_count; i++) AX_TRY(add_row(t, &more->rows[i], times));
  return AX_OK;
}

static double weight(const tally *t) { return t->flops + t->bytes + t->received; }

/* --- One equation --- */

static double elements_of(const ax_type *type) { return (double)ax_type_elems(type) * (double)ax_dtype_get(type->dtype)->bytes; }

static double bytes_of(const ax_type *type) { return type->form == AX_ARRAY ? elements_of(type) : 0; }

/* What a collective, or a kernel's copy, gives to others. */
static double given_bytes(const ax_program *program, const ax_eqn *eqn) {
  const ax_type *type = &program->types[eqn->in[0]];
  return type->form == AX_ARRAY || type->form == AX_REF ? elements_of(type) : 0;
}

/* Bytes that an equation reads and writes. Literals count for none, nor does a result that is the operand under another type. */
static double touched(const ax_program *program, const ax_eqn *eqn) {
  double bytes = 0;
  if (eqn->prim->lower == ax_lower_same || ax_prim_is_literal(eqn->prim)) return 0;
  for (uint32_t i = 0; i < eqn->in_count; i++)
    if (ax_value_literal(program, eqn->in[i]) == NULL) bytes += bytes_of(&program->types[eqn->in[i]]);
  for (uint32_t k = 0; k < eqn->out_count; k++) bytes += bytes_of(&program->types[eqn->out + k]);
  return bytes;
}

static double most_elems(const ax_program *program, const ax_eqn *eqn) {
  int64_t most = 0;
  for (uint32_t t = 0; t < eqn->in_count + eqn->out_count; t++) {
    const ax_type *type = &program->types[t < eqn->in_count ? eqn->in[t] : eqn->out + (t - eqn->in_count)];
    const int64_t elems = type->form == AX_ARRAY ? ax_type_elems(type) : 0;
    most = elems > most ? elems : most;
  }
  return (double)most;
}

/* Adds the operations of an equation: the product of its factors' sizes, but at least the elements of its largest array, as a
   dimension may have no factor. A contraction of two arrays multiplies and adds, so it counts twice. */
static ax_status add_flops(ax_factoring *factoring, const ax_program *program, const ax_eqn *eqn, double *flops) {
  double met = 1;
  bool contracted = false;
  if (eqn->prim->kinds == AX_KINDS_ALL || eqn->in_count == 0) return AX_OK; /* it only moves elements, or has no operand */
  if ((eqn->prim->effects & AX_EFFECT_STATE) != 0) return AX_OK;             /* it works on state: not counted */
  if (!ax_factoring_of(factoring, program, eqn)) return ax_out_of_memory(0);
  const ax_factors *factors = &factoring->factors;
  for (uint32_t i = 0; i < factors->count; i++) {
    met *= (double)factors->size[i];
    contracted = contracted || factors->kind[i] == AX_FACTOR_SUM;
  }
  const double elems = most_elems(program, eqn);
  *flops += contracted && eqn->in_count == 2 ? 2 * met : met > elems ? met : elems;
  return AX_OK;
}

ax_status ax_equation_flops(const ax_program *program, const ax_eqn *eqn, double *out) {
  ax_factoring factoring = {0};
  *out = 0;
  ax_status status = add_flops(&factoring, program, eqn, out);
  ax_factoring_deinit(&factoring);
  return status;
}

static int64_t members_of(const ax_axes *axes, ax_axis_set set, const ax_mesh *mesh) {
  uint32_t most = 0;
  for (uint32_t g = 0; g < axes->groups.count; g++) {
    const uint32_t size = ax_group_size(&axes->groups, g);
    most = size > most ? size : most;
  }
  return axes->groups.count > 0 ? most : ax_axis_set_size(set, mesh);
}

static double received(const ax_program *program, const ax_eqn *eqn, int64_t members) {
  const double n = (double)members, operand = given_bytes(program, eqn);
  double result = 0;
  for (uint32_t k = 0; k < eqn->out_count; k++) result += bytes_of(&program->types[eqn->out + k]);
  switch (eqn->prim->traffic) {
    case AX_TRAFFIC_COMBINED: return 2 * (n - 1) / n * operand;
    case AX_TRAFFIC_PARTS: return (n - 1) / n * operand;
    case AX_TRAFFIC_GATHERED: return (n - 1) * operand;
    case AX_TRAFFIC_OPERAND: return operand;
    case AX_TRAFFIC_RESULT: return result;
    default: return 0;
  }
}

/* The parameter of this kind; NULL: there is none. */
static const void *of_kind(const ax_eqn *eqn, ax_param_kind kind) {
  for (uint32_t i = 0; i < eqn->prim->param_count; i++)
    if (eqn->prim->params[i].kind == kind) return ax_param_at(eqn, &eqn->prim->params[i]);
  return NULL;
}

/* The parameter of this name; NULL: there is none. */
static const void *named(const ax_eqn *eqn, const char *name) {
  for (uint32_t i = 0; i < eqn->prim->param_count; i++)
    if (strcmp(eqn->prim->params[i].name, name) == 0) return ax_param_at(eqn, &eqn->prim->params[i]);
  return NULL;
}

/* Devices that hold the same along an axis push once (plan/lower.c). Along an axis that is not checked all may differ. */
static ax_axis_set pushed_along(const ax_program *program, const ax_eqn *eqn, ax_axis_set set) {
  const ax_mesh *axes = &program->axes;
  return set | ax_spread_differs(&program->types[eqn->in[0]].spread) | (ax_all_axes(axes) & ~ax_checked_axes(axes));
}

/* The mesh of devices that a program is over. Bodies of kernels have axes of cores behind. */
static ax_mesh devices_of(const counting *c, const ax_program *program) {
  ax_mesh mesh = program->axes;
  if (c->around != NULL) mesh.count = c->around->axes.count;
  return mesh;
}

/* Where a kernel copies to is known when it runs: counted as if each sent to the next. False: no memory. */
static bool to_the_next(ax_arena *arena, int64_t members, ax_pairs *out) {
  *out = (ax_pairs){(uint32_t)members, ax_arena_alloc(arena, (size_t)members * sizeof out->v[0])};
  for (int64_t m = 0; out->v != NULL && m < members; m++) {
    out->v[m][0] = m;
    out->v[m][1] = (m + 1) % members;
  }
  return out->v != NULL;
}

static ax_status count_between(counting *c, const ax_program *program, const ax_eqn *eqn, const ax_axes *names, ax_axis_set set,
                               ax_collective_cost *row) {
  const int64_t *source = named(eqn, "source");
  const ax_mesh mesh = devices_of(c, program);
  ax_pairs next;
  ax_between_case of = {.mesh = &mesh, .names = names, .on = pushed_along(program, eqn, set),
                        .traffic = eqn->prim->traffic, .pairs = of_kind(eqn, AX_PARAM_PAIRS),
                        .source = source != NULL ? *source : 0,
                        .bytes = eqn->prim->traffic == AX_TRAFFIC_RESULT ? row->bytes : given_bytes(program, eqn)};
  ax_between between;
  if (c->over.map == NULL) return AX_OK;
  if (eqn->prim->memory) {
    if (!to_the_next(&c->memo.arena, row->members, &next)) return ax_out_of_memory((size_t)row->members * sizeof next.v[0]);
    of.pairs = &next;
    of.on = ax_all_axes(&mesh);
  }
  AX_TRY(ax_between_count(&c->over, ax_rates_planned(), &of, &between));
  row->within = between.within;
  row->between = between.bytes;
  row->messages = between.messages;
  row->seconds = between.seconds;
  row->way = between.bytes > 0 ? ax_ways[between.way].name : NULL;
  return AX_OK;
}

/* The axes of devices that it goes over; a kernel's copy may also name those of cores, or a device by its number among all. */
static void take_axes(const counting *c, const ax_program *program, const ax_eqn *eqn, ax_axes *out) {
  const ax_mesh mesh = devices_of(c, program);
  const ax_axes *names = of_kind(eqn, AX_PARAM_AXES);
  const bool *logical = named(eqn, "logical");
  *out = names != NULL ? *names : (ax_axes){0};
  if (!eqn->prim->memory) return;
  out->count = 0;
  for (uint32_t a = 0; a < mesh.count; a++) {
    bool over = logical != NULL && *logical;
    for (uint32_t i = 0; i < names->count; i++) over = over || strcmp(names->name[i], mesh.axis[a].name) == 0;
    if (over) memcpy(out->name[out->count++], mesh.axis[a].name, sizeof out->name[0]);
  }
}

/* A group of one exchanges nothing. */
static ax_status count_collective(counting *c, const ax_program *program, const ax_eqn *eqn, tally *t) {
  ax_axes axes;
  ax_axis_set set;
  if (eqn->prim->traffic == AX_TRAFFIC_NONE || of_kind(eqn, AX_PARAM_AXES) == NULL) return AX_OK;
  take_axes(c, program, eqn, &axes);
  AX_TRY(ax_axes_resolve(&axes, &program->axes, &set));
  ax_collective_cost row = {.primitive = eqn->prim->name, .members = members_of(&axes, set, &program->axes), .runs = 1};
  if (row.members <= 1) return AX_OK;
  const ax_axes_list names = ax_axes_listed(&axes);
  row.axes = ax_arena_copy(&c->memo.arena, names.text, strlen(names.text) + 1);
  if (row.axes == NULL) return ax_out_of_memory(0);
  row.bytes = received(program, eqn, row.members);
  AX_TRY(count_between(c, program, eqn, &axes, set, &row));
  t->received += row.bytes;
  return add_row(t, &row, 1);
}

/* --- Programs --- */

static ax_status count_program(counting *c, const ax_program *program, const tally **out);

static double length_of(const ax_eqn *eqn) {
  const int64_t *length = named(eqn, "length");
  return length != NULL ? (double)*length : 1;
}

/* How often a kernel's body runs: at each point of the grid, on each core. The axes that the body's environment has beyond the
   program's are the cores. */
static double points_of(const ax_program *program, const ax_eqn *eqn, const ax_program *body) {
  const ax_dims *grid = named(eqn, "grid");
  double points = 1;
  for (uint32_t d = 0; grid != NULL && d < grid->count; d++) points *= (double)grid->v[d];
  for (uint32_t a = program->axes.count; a < body->axes.count; a++) points *= (double)body->axes.axis[a].size;
  return points;
}

/* An estimate that the kernel's caller gave replaces the count. */
static void estimate(const ax_eqn *eqn, tally *all) {
  const int64_t *flops = named(eqn, "flops"), *bytes = named(eqn, "bytes");
  if (flops != NULL && *flops > 0) all->flops = (double)*flops;
  if (bytes != NULL && *bytes > 0) all->bytes = (double)*bytes;
}

static ax_status count_region(counting *c, const ax_program *program, const ax_eqn *eqn, tally *t) {
  const ax_runs runs = eqn->prim->runs;
  const tally *one, *costliest = NULL;
  const ax_program *held, *around = c->around;
  if (runs == AX_RUNS_POINTS) c->around = program;
  tally all = {.at_least = runs == AX_RUNS_UNTIL};
  ax_status status = AX_OK;
  for (uint32_t k = 0; status == AX_OK && (held = ax_eqn_program(eqn, k)) != NULL && (k == 0 || runs != AX_RUNS_FIRST); k++) {
    status = count_program(c, held, &one);
    if (status != AX_OK) break;
    all.at_least = all.at_least || one->at_least;
    if (costliest == NULL || weight(one) > weight(costliest)) costliest = one;
    if (runs != AX_RUNS_ONE)
      status = add(&all, one, runs == AX_RUNS_LENGTH ? length_of(eqn) : runs == AX_RUNS_POINTS ? points_of(program, eqn, held) : 1);
  }
  if (status == AX_OK && runs == AX_RUNS_ONE && costliest != NULL) status = add(&all, costliest, 1);
  if (runs == AX_RUNS_POINTS) estimate(eqn, &all);
  c->around = around;
  if (status == AX_OK) status = add(t, &all, 1);
  ax_free(all.rows);
  return status;
}

static ax_status count_eqn(counting *c, const ax_program *program, const ax_eqn *eqn, tally *t) {
  if (eqn->prim->kind == AX_REGION) return count_region(c, program, eqn, t);
  if (eqn->prim->kind == AX_COLLECTIVE && eqn->prim->traffic == AX_TRAFFIC_NONE) return AX_OK; /* it changes the type alone, and
                                                                                                  moves no bytes */
  t->bytes += touched(program, eqn);
  if (eqn->prim->kind != AX_LOCAL || (eqn->prim->memory && eqn->prim->traffic != AX_TRAFFIC_NONE))
    return count_collective(c, program, eqn, t);
  return add_flops(&c->factoring, program, eqn, &t->flops);
}

static ax_status count_program(counting *c, const ax_program *program, const tally **out) {
  ax_memo_entry *entry = ax_memo_ask(&c->memo, "cost", program, NULL, 0);
  if (entry == NULL) return ax_out_of_memory(sizeof *entry);
  *out = entry->data;
  if (entry->known) return AX_OK;
  tally t = {0};
  ax_status status = AX_OK;
  for (uint32_t i = 0; i < program->eqn_count && status == AX_OK; i++) status = count_eqn(c, program, &program->eqns[i], &t);
  ax_collective_cost *grown = t.rows;
  t.rows = ax_arena_copy(&c->memo.arena, grown, t.row_count * sizeof grown[0]);
  ax_free(grown);
  if (status != AX_OK) return status;
  *out = entry->data = ax_arena_copy(&c->memo.arena, &t, sizeof t);
  if (t.rows == NULL || *out == NULL) return ax_out_of_memory(sizeof t);
  entry->known = true;
  return AX_OK;
}

/* --- The cost --- */

static int by_bytes(const void *x, const void *y) {
  const ax_collective_cost *a = x, *b = y;
  if (a->bytes != b->bytes) return a->bytes > b->bytes ? -1 : 1;
  const int names = strcmp(a->primitive, b->primitive);
  return names != 0 ? names : strcmp(a->axes, b->axes);
}

/* Copies the rows and the texts of their axes into one piece of memory, which the caller releases. */
static ax_status give(const tally *t, int64_t devices, uint32_t processes, ax_cost *out) {
  size_t bytes = t->row_count * sizeof t->rows[0];
  for (uint32_t i = 0; i < t->row_count; i++) bytes += strlen(t->rows[i].axes) + 1;
  ax_collective_cost *rows = ax_alloc(bytes);
  if (rows == NULL) return ax_out_of_memory(bytes);
  char *text = (char *)(rows + t->row_count);
  for (uint32_t i = 0; i < t->row_count; i++) {
    rows[i] = t->rows[i];
    rows[i].axes = text;
    text += strlen(t->rows[i].axes) + 1;
    memcpy((char *)rows[i].axes, t->rows[i].axes, strlen(t->rows[i].axes) + 1);
  }
  if (t->row_count > 0) qsort(rows, t->row_count, sizeof rows[0], by_bytes);
  *out = (ax_cost){devices, t->flops, t->bytes, t->received, t->at_least, t->row_count, rows, .processes = processes};
  for (uint32_t i = 0; i < t->row_count; i++) {
    out->within += rows[i].within;
    out->between += rows[i].between;
    out->messages += rows[i].messages;
    out->seconds += rows[i].seconds;
  }
  return AX_OK;
}

ax_status ax_partitioned_cost(const ax_partitioned *partitioned, const ax_process_layout *processes, ax_cost *out) {
  counting c = {0};
  const tally *all;
  *out = (ax_cost){0};
  AX_TRY(ax_over_processes_init(processes, partitioned->mesh, &c.over));
  ax_status status = count_program(&c, partitioned->body, &all);
  const uint32_t over = c.over.map != NULL ? c.over.map->processes : 1;
  if (status == AX_OK) status = give(all, ax_mesh_devices(partitioned->mesh), over, out);
  ax_over_processes_deinit(&c.over);
  ax_memo_deinit(&c.memo);
  ax_factoring_deinit(&c.factoring);
  return status;
}

ax_status ax_program_cost_over(const ax_program *program, const ax_process_layout *processes, ax_cost *out) {
  ax_program *simple, *laid = NULL, *body = NULL;
  *out = (ax_cost){0};
  AX_TRY(ax_require(program, "program"));
  AX_TRY(ax_program_simplify(program, &simple));
  ax_status status = ax_program_partition(simple, &laid);
  ax_partitioned partitioned = status == AX_OK ? ax_partitioned_of(laid) : (ax_partitioned){0};
  if (status == AX_OK) status = ax_program_simplify(partitioned.body, &body);
  partitioned.body = body;
  if (status == AX_OK) status = ax_partitioned_cost(&partitioned, processes, out);
  ax_program_release(body);
  ax_program_release(laid);
  ax_program_release(simple);
  return status;
}

ax_status ax_program_cost(const ax_program *program, ax_cost *out) { return ax_program_cost_over(program, NULL, out); }

void ax_cost_release(ax_cost *cost) {
  if (cost == NULL) return;
  ax_free(cost->collectives);
  *cost = (ax_cost){0};
}

/* --- The table --- */

static void add_row_text(ax_text *text, const ax_collective_cost *row, bool over) {
  ax_text_add(text, "%16.0f  ", row->bytes);
  if (over) ax_text_add(text, "%12.0f  %12.0f  %8.0f  %10.2f  ", row->within, row->between, row->messages, 1e6 * row->seconds);
  ax_text_add(text, "%10.0f  %8lld  %s over %s", row->runs, (long long)row->members, row->primitive, row->axes);
  ax_text_add(text, "%s%s\n", row->way != NULL ? ", " : "", row->way != NULL ? row->way : "");
}

/* What a process does: `received` is what each of its devices receives. */
static void add_processes_text(ax_text *text, const ax_cost *cost) {
  ax_text_add(text, "on %u processes, in the one that it takes longest:\n", cost->processes);
  ax_text_add(text, "%16.0f  bytes received within the process\n", cost->within);
  ax_text_add(text, "%16.0f  bytes received from other processes, in %.0f message%s\n", cost->between, cost->messages,
              cost->messages == 1 ? "" : "s");
  ax_text_add(text, "%16.2f  us for both, at speeds that are given or assumed\n", 1e6 * cost->seconds);
}

ax_status ax_cost_text(const ax_cost *cost, char **out) {
  ax_text text = {0};
  *out = NULL;
  AX_TRY(ax_require(cost, "cost"));
  const bool over = cost->processes > 1;
  ax_text_add(&text, "on each of %lld device%s, a run:\n", (long long)cost->devices, cost->devices == 1 ? "" : "s");
  ax_text_add(&text, "%16.0f  flops\n%16.0f  bytes read and written, nothing fused\n", cost->flops, cost->bytes);
  ax_text_add(&text, "%16.0f  bytes received from other devices\n", cost->received);
  if (over) add_processes_text(&text, cost);
  if (cost->at_least) ax_text_add(&text, "at least: of loops that run until a condition says so one step is counted\n");
  if (cost->collective_count > 0) {
    ax_text_add(&text, "\n%16s  ", "bytes received");
    if (over) ax_text_add(&text, "%12s  %12s  %8s  %10s  ", "within", "between", "messages", "us");
    ax_text_add(&text, "%10s  %8s  collective\n", "times", "members");
  }
  for (uint32_t i = 0; i < cost->collective_count; i++) add_row_text(&text, &cost->collectives[i], over);
  return ax_text_finish(&text, out);
}
