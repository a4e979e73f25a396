/* One operation on blocks. An axis that cuts an operand or the wished-for result may cut one of the factors that it cuts there,
   or none. The choice is the one with the least cost found, in bytes that a device sends and receives:

     y = dot_general x w      x: P(data, _) of [4096,64]   w: P(data, _) of [64,64]   data cuts the first dimension of x and y,
                                                                                      and w is gathered; with x of [4,64],
                                                                                      x is gathered

   An operand is laid out anew if the choice needs it. If an axis cuts a factor that no result has, each device has a part of the
   result, and the parts are combined; if the wish is a result cut by the same axes, they are scattered at once. Parts are combined
   only when a reader needs the value; an operation that merely adds them to others gives parts again. Work counts as well as bytes,
   and each collective has a fixed cost: so no two devices do the same work to save few bytes, and one collective is better than
   two. */
#include <stdlib.h>
#include <string.h>

#include "axle/collectives.h"
#include "partition/halo.h"
#include "partition/join.h"
#include "partition/partitioner.h"
#include "mesh/sharding.h"
#include "collectives/collective.h"
#include "prim/bind.h"
#include "prim/shape.h"

typedef struct operation {
  ax_partitioner *p;
  const ax_program *program;
  const ax_eqn *eqn;
  const ax_factoring *f;
  const ax_spec **lies;   /* operands as they are held, then results as they are wished for */
  const ax_factored *tensor; /* of the same arrays */
  ax_cuts cuts;           /* the cuts that are being tried */
  uint64_t split;         /* the factors, as bits, that in some array are only a part of a dimension: they are never padded */
  struct {
    uint8_t axis, factor;
  } choices[AX_MAX_AXES * AX_MAX_FACTORS]; /* the factors that an axis may cut: the largest array's first, in its order */
  uint32_t choice_count;
  uint64_t among[AX_MAX_AXES]; /* by axis: the same factors, as bits */
  ax_axis_set carried; /* axes over which the operands are parts of sums, and so are the results */
  uint8_t on[AX_MAX_AXES]; /* by axis: the factor that it cuts now; 255: none */
} operation;
enum { none = 255, bytes_a_collective = 8192 }; /* what one more collective costs, however few bytes it moves */

static const ax_type *type_of(const operation *o, uint32_t t) {
  return &o->program->types[t < o->eqn->in_count ? o->eqn->in[t] : o->eqn->out + t - o->eqn->in_count];
}
static uint32_t tensor_count(const operation *o) { return o->eqn->in_count + o->eqn->out_count; }

/* --- What there is to choose from --- */

static void find_choices(operation *o, const uint32_t *by_size) {
  memset(o->on, none, sizeof o->on);
  memset(o->among, 0, sizeof o->among);
  o->choice_count = 0;
  for (uint32_t n = 0; n < tensor_count(o); n++) {
    const uint32_t t = by_size[n], rank = type_of(o, t)->rank;
    ax_cuts own;
    for (uint32_t d = 0; d < rank; d++)
      for (uint32_t k = 0; k < o->tensor[t].count[d] && !ax_factor_is_all(&o->f->factors, &o->tensor[t], type_of(o, t), d); k++)
        o->split |= (uint64_t)1 << o->tensor[t].factor[d][k];
    if (o->lies[t] == NULL) continue;
    ax_cuts_read(&o->p->mesh, &o->f->factors, &o->tensor[t], type_of(o, t), o->lies[t], &own);
    for (uint32_t d = 0; d < rank; d++)
      for (uint32_t k = 0; k < o->tensor[t].count[d]; k++) {
        const uint32_t factor = o->tensor[t].factor[d][k];
        for (uint32_t i = 0; i < own.by[factor].count; i++) {
          const uint8_t axis = own.by[factor].axis[i];
          if (o->among[axis] >> factor & 1) continue;
          o->among[axis] |= (uint64_t)1 << factor;
          o->choices[o->choice_count].axis = axis;
          o->choices[o->choice_count++].factor = (uint8_t)factor;
          if (o->on[axis] == none) o->on[axis] = (uint8_t)factor;
        }
      }
  }
}

/* A factor that cannot be cut in one of the arrays, as one before it in its dimension is not cut to the end, is cut in none. */
static void drop_unreached(operation *o) {
  for (bool dropped = true; dropped;) {
    dropped = false;
    for (uint32_t t = 0; t < tensor_count(o); t++)
      for (uint32_t d = 0; d < type_of(o, t)->rank; d++) {
        bool reached = true;
        for (uint32_t k = 0; k < o->tensor[t].count[d]; k++) {
          const uint32_t factor = o->tensor[t].factor[d][k];
          ax_axis_list *by = &o->cuts.by[factor];
          int64_t left = o->f->factors.size[factor];
          if (!reached && by->count > 0) dropped = true, by->count = 0;
          for (uint32_t i = 0; i < by->count; i++) left /= o->p->mesh.axis[by->axis[i]].size;
          reached = reached && left == 1;
        }
      }
  }
}

/* Sets the cuts that o->on says. The axes of a factor have the order that they have in the largest array with that factor. */
static void make_cuts(operation *o) {
  const ax_mesh *mesh = &o->p->mesh;
  for (uint32_t i = 0; i < o->f->factors.count; i++) o->cuts.by[i].count = 0;
  for (uint32_t n = 0; n < o->choice_count; n++) {
    const uint8_t axis = o->choices[n].axis, factor = o->choices[n].factor;
    ax_axis_list *by = &o->cuts.by[factor];
    int64_t size = o->f->factors.size[factor];
    if (o->on[axis] != factor) continue;
    for (uint32_t j = 0; j < by->count; j++) size /= mesh->axis[by->axis[j]].size; /* inexact where the factor may be padded,
                                                                                      which is not checked for divisibility */
    if (size % mesh->axis[axis].size != 0 && (o->split >> factor & 1) != 0) continue;
    by->axis[by->count++] = axis;
  }
  drop_unreached(o);
}

/* --- What it costs --- */

static double bytes_of(const ax_type *type) { return (double)ax_type_elems(type) * (double)ax_dtype_bytes(type->dtype); }

static double size_of(const operation *o, ax_axis_set axes) { return (double)ax_axis_set_size(axes, &o->p->mesh); }

/* Axes of dimension d of `spec` behind the first `stay`, as a set. */
static ax_axis_set behind(const ax_spec *spec, uint32_t d, uint32_t stay) {
  ax_axis_set set = 0;
  for (uint32_t i = stay; i < spec->count[d]; i++) set |= (ax_axis_set)1 << spec->axis[d][i];
  return set;
}

/* The cost of a change of layout, in bytes, by the steps of ax_held_as: it first cuts the dimensions that need not be joined,
   exchanges blocks that go from one dimension to another, and gathers over all other axes behind those that stay. */
static double reshard_cost(const operation *o, const ax_type *type, const ax_spec *from, const ax_spec *to) {
  const ax_spec whole = {0};
  uint32_t stay[AX_MAX_RANK];
  ax_axis_set goes = 0;
  if (from == NULL) return 0;
  if (to == NULL) to = &whole;
  for (uint32_t d = 0; d < type->rank; d++) {
    for (stay[d] = 0; stay[d] < from->count[d] && stay[d] < to->count[d] && from->axis[d][stay[d]] == to->axis[d][stay[d]];)
      stay[d]++;
    goes |= behind(from, d, stay[d]);
  }
  double block = bytes_of(type) / size_of(o, ax_spec_set(from)), cost = 0;
  for (uint32_t d = 0; d < type->rank; d++) {
    const ax_axis_set cut = behind(to, d, stay[d]);
    if (behind(from, d, stay[d]) == 0 && (cut & goes) == 0) block /= size_of(o, cut);
  }
  for (uint32_t d = 0; d < type->rank; d++) {
    const ax_axis_set joined = behind(from, d, stay[d]);
    bool exchanged = false;
    if (joined == 0) continue;
    for (uint32_t e = 0; e < type->rank && behind(to, d, stay[d]) == 0; e++) {
      const uint32_t count = from->count[d] - stay[d];
      exchanged = exchanged || (behind(from, e, stay[e]) == 0 && to->count[e] - stay[e] == count &&
                                memcmp(&from->axis[d][stay[d]], &to->axis[e][stay[e]], count) == 0);
    }
    cost += bytes_a_collective;
    if (exchanged) cost += block * (1 - 1 / size_of(o, joined));
    else cost += block * (size_of(o, joined) - 1), block *= size_of(o, joined);
  }
  return cost;
}

/* The windows over dimension d of operand t, with their positions cut as `cut` says. */
static ax_halo halo_of(const operation *o, uint32_t t, uint32_t d, const ax_spec *cut) {
  const ax_factored *tensor = &o->tensor[t];
  return ax_halo_of(&tensor->reach[d], type_of(o, t)->dims[d], o->f->factors.size[tensor->factor[d][0]],
                    ax_shard_parts(cut, &o->p->mesh, d));
}

/* The cost of the exchanges along dimension d, once the operand lies as `spec` says. False: there are too many of them. */
static bool halo_cost(const operation *o, uint32_t t, uint32_t d, const ax_spec *spec, double *cost) {
  const ax_halo halo = halo_of(o, t, d, spec);
  int64_t elements, exchanges;
  if (!ax_halo_received(&halo, &elements, &exchanges)) return false;
  const double block = bytes_of(type_of(o, t)) / size_of(o, ax_spec_set(spec));
  *cost = bytes_a_collective * (double)exchanges + (halo.block > 0 ? block / (double)halo.block * (double)elements : 0);
  return true;
}

/* The layout that operand t needs for the cuts, and its cost. A dimension that windows go over is either cut, so that neighbours
   exchange the elements that the windows see, or whole. */
static ax_spec operand_spec(const operation *o, uint32_t t, double *cost) {
  const ax_type *type = type_of(o, t);
  ax_spec spec = ax_cuts_write(&o->p->mesh, &o->f->factors, &o->tensor[t], type->rank, &o->cuts);
  *cost = 0;
  for (uint32_t d = 0; d < type->rank && o->tensor[t].reached >> d != 0; d++) {
    double exchanged = 0;
    ax_spec whole = spec;
    if ((o->tensor[t].reached >> d & 1) == 0 || spec.count[d] == 0) continue;
    whole.count[d] = 0;
    bool can = halo_cost(o, t, d, &spec, &exchanged);
    if (can && reshard_cost(o, type, o->lies[t], &spec) + exchanged < reshard_cost(o, type, o->lies[t], &whole)) *cost += exchanged;
    else spec = whole;
  }
  *cost += reshard_cost(o, type, o->lies[t], &spec);
  return spec;
}

/* The axes that cut factors which no result has. */
static ax_axis_set combined_axes(const operation *o, ax_factor_kind *kind) {
  ax_axis_set axes = 0;
  for (uint32_t i = 0; i < o->f->factors.count; i++)
    for (uint32_t k = 0; k < o->cuts.by[i].count && o->f->factors.kind[i] != AX_FACTOR_ALONG; k++) {
      axes |= (ax_axis_set)1 << o->cuts.by[i].axis[k];
      *kind = o->f->factors.kind[i];
    }
  return axes;
}

/* The axes by which dimension d of a result is scattered: those that the wished-for layout has behind the axes of `spec`, up to
   the first over which the result is not in parts. */
static ax_axis_list scattered(const operation *o, uint32_t t, const ax_spec *spec, uint32_t d, ax_axis_set parts) {
  const ax_spec *wish = o->lies[t];
  ax_axis_list list = {0};
  if (!ax_shard_divides(type_of(o, t), wish, &o->p->mesh, d)) return list;
  if (wish == NULL || wish->count[d] <= spec->count[d] || memcmp(wish->axis[d], spec->axis[d], spec->count[d]) != 0) return list;
  for (uint32_t i = spec->count[d]; i < wish->count[d] && (parts >> wish->axis[d][i] & 1) != 0; i++)
    list.axis[list.count++] = wish->axis[d][i];
  return list;
}

/* Changes `spec` to the layout of the result after its parts are scattered, and takes the axes used out of *parts. Returns the
   number of dimensions that are scattered. */
static uint32_t scatter_spec(const operation *o, uint32_t t, ax_spec *spec, ax_axis_set *parts) {
  uint32_t dims = 0;
  for (uint32_t d = 0; d < type_of(o, t)->rank; d++) {
    const ax_axis_list list = scattered(o, t, spec, d, *parts);
    for (uint32_t i = 0; i < list.count; i++) {
      spec->axis[d][spec->count[d]++] = list.axis[i];
      *parts &= ~((ax_axis_set)1 << list.axis[i]);
    }
    if (list.count > 0 && spec->rank <= d) spec->rank = d + 1;
    dims += list.count > 0;
  }
  return dims;
}

static double result_cost(const operation *o, uint32_t t) {
  const ax_type *type = type_of(o, t);
  ax_spec spec = ax_cuts_write(&o->p->mesh, &o->f->factors, &o->tensor[t], type->rank, &o->cuts);
  ax_factor_kind kind = AX_FACTOR_ALONG;
  ax_axis_set parts = combined_axes(o, &kind), all = parts;
  double block = bytes_of(type) / size_of(o, ax_spec_set(&spec)), cost = 0;
  if (kind == AX_FACTOR_SUM) cost += bytes_a_collective * (double)scatter_spec(o, t, &spec, &parts);
  const double scattered_over = size_of(o, all & ~parts);
  cost += block * (1 - 1 / scattered_over);
  block /= scattered_over;
  if (parts != 0) cost += 2 * block * (1 - 1 / size_of(o, parts)) + bytes_a_collective;
  return cost + reshard_cost(o, type, &spec, o->lies[t]);
}

/* What block rules exchange: once the blocks of operand 0, and once those of result 0. */
static double exchange_cost(const operation *o) {
  double sum = 0;
  for (uint32_t i = 0; i < o->f->factors.count; i++) {
    if (o->f->factors.exchanged[i] == 0 || o->cuts.by[i].count == 0) continue;
    double parts = 1;
    for (uint32_t k = 0; k < o->cuts.by[i].count; k++) parts *= (double)o->p->mesh.axis[o->cuts.by[i].axis[k]].size;
    const uint32_t last = o->f->factors.exchanged[i] > 1 ? o->eqn->in_count : 0;
    for (uint32_t t = 0; t <= last; t += o->eqn->in_count) {
      const ax_spec spec = ax_cuts_write(&o->p->mesh, &o->f->factors, &o->tensor[t], type_of(o, t)->rank, &o->cuts);
      sum += bytes_a_collective + bytes_of(type_of(o, t)) / size_of(o, ax_spec_set(&spec)) * (1 - 1 / parts);
    }
  }
  return sum;
}

/* The work of one device, in bytes: moving a byte takes about as long as 16 products of a matrix product. */
static double work_cost(const operation *o) {
  double work = 1;
  for (uint32_t i = 0; i < o->f->factors.count; i++) {
    work *= (double)o->f->factors.size[i];
    for (uint32_t k = 0; k < o->cuts.by[i].count; k++) work /= (double)o->p->mesh.axis[o->cuts.by[i].axis[k]].size;
  }
  return work / 16;
}

static double cost(const operation *o) {
  double sum = work_cost(o) + exchange_cost(o);
  for (uint32_t t = 0; t < tensor_count(o); t++) {
    double own;
    if (t >= o->eqn->in_count) own = result_cost(o, t);
    else (void)operand_spec(o, t, &own);
    sum += own;
  }
  return sum;
}

/* --- The choice --- */

typedef struct sized {
  double bytes;
  uint32_t tensor;
} sized;

static int larger_first(const void *a, const void *b) {
  const sized *x = a, *y = b;
  if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
  return x->tensor < y->tensor ? -1 : 1;
}

/* False: no memory, the trace has failed. */
static bool order_by_size(const operation *o, uint32_t *by_size) {
  sized *all = ax_trace_alloc(tensor_count(o) * sizeof all[0]);
  if (all == NULL) return false;
  for (uint32_t t = 0; t < tensor_count(o); t++) all[t] = (sized){bytes_of(type_of(o, t)), t};
  qsort(all, tensor_count(o), sizeof all[0], larger_first);
  for (uint32_t n = 0; n < tensor_count(o); n++) by_size[n] = all[n].tensor;
  return true;
}

static double cost_on(operation *o) {
  make_cuts(o);
  return cost(o);
}

/* The best factor for one axis while all others stay. True: there is a better one than that it was on. */
static bool improve(operation *o, uint32_t axis, double *least) {
  uint8_t best = o->on[axis], before = best;
  for (uint32_t i = 0; i <= AX_MAX_FACTORS; i++) {
    const uint8_t factor = i < AX_MAX_FACTORS ? (uint8_t)i : none;
    if (factor == before || (factor != none && (o->among[axis] >> factor & 1) == 0)) continue;
    o->on[axis] = factor;
    const double here = cost_on(o);
    if (here >= *least) continue;
    *least = here;
    best = factor;
  }
  o->on[axis] = best;
  return best != before;
}

/* The axes that cut one factor in one array, moved together: where a dimension is cut by several, one of them alone gains
   nothing. */
static bool move_group(operation *o, const ax_axis_list *group, uint8_t to, double *least) {
  uint8_t before[AX_MAX_AXES];
  memcpy(before, o->on, sizeof before);
  for (uint32_t i = 0; i < group->count; i++) o->on[group->axis[i]] = to;
  const double here = cost_on(o);
  if (here < *least) {
    *least = here;
    return true;
  }
  memcpy(o->on, before, sizeof before);
  return false;
}

static bool improve_together(operation *o, const uint32_t *by_size, double *least) {
  enum { arrays = 8 }; /* the largest */
  bool better = false;
  for (uint32_t n = 0; n < tensor_count(o) && n < arrays; n++) {
    const uint32_t t = by_size[n];
    ax_cuts own;
    if (o->lies[t] == NULL) continue;
    ax_cuts_read(&o->p->mesh, &o->f->factors, &o->tensor[t], type_of(o, t), o->lies[t], &own);
    for (uint32_t d = 0; d < type_of(o, t)->rank; d++)
      for (uint32_t k = 0; k < o->tensor[t].count[d]; k++) {
        const uint32_t factor = o->tensor[t].factor[d][k];
        const ax_axis_list *group = &own.by[factor];
        if (group->count < 2) continue;
        better = move_group(o, group, (uint8_t)factor, least) || better;
        better = move_group(o, group, none, least) || better;
      }
  }
  return better;
}

/* Each axis begins on the factor that it cuts in the largest array that it cuts; then axes that stand together, and
   one after the other, are changed as long as that is better. */
static void choose(operation *o, const uint32_t *by_size) {
  enum { rounds = 4 };
  double least = cost_on(o);
  bool better = true;
  for (uint32_t n = 0; n < rounds && better; n++) {
    better = improve_together(o, by_size, &least);
    for (uint32_t a = 0; a < o->p->mesh.count; a++)
      if (o->among[a] != 0) better = improve(o, a, &least) || better;
  }
  make_cuts(o);
}

/* --- Binding --- */

static void bind(const operation *o, const ax_value *in, const uint32_t *reached, const ax_spec *in_specs, const ax_spec *specs,
                 ax_value *out) {
  const ax_eqn *eqn = o->eqn;
  if (eqn->prim->block == NULL) {
    ax_bind(eqn->prim, eqn->params, in, eqn->in_count, out, eqn->out_count);
    return;
  }
  ax_type *blocks = ax_trace_alloc(eqn->out_count * sizeof blocks[0]);
  for (uint32_t k = 0; blocks != NULL && k < eqn->out_count; k++) {
    ax_status status = ax_shard_padded(type_of(o, eqn->in_count + k), &specs[k], &o->p->mesh, &blocks[k]);
    if (status != AX_OK) ax_fail(status);
  }
  if (!ax_failed())
    eqn->prim->block(&(ax_block_args){.eqn = eqn,
                                      .in = in,
                                      .reached = reached,
                                      .types = o->program->types,
                                      .blocks = blocks,
                                      .in_specs = in_specs,
                                      .specs = specs,
                                      .out = out});
}

/* The value that changes nothing where it is combined. */
static ax_value neutral(ax_factor_kind kind, ax_dtype dtype) {
  static const ax_scalar ops[] = {[AX_FACTOR_SUM] = AX_SCALAR_ADD,  [AX_FACTOR_MAX] = AX_SCALAR_MAX,
                                  [AX_FACTOR_MIN] = AX_SCALAR_MIN,  [AX_FACTOR_PROD] = AX_SCALAR_MUL,
                                  [AX_FACTOR_AND] = AX_SCALAR_AND,  [AX_FACTOR_OR] = AX_SCALAR_OR,
                                  [AX_FACTOR_XOR] = AX_SCALAR_XOR};
  return ax_reduce_neutral(ops[kind], dtype);
}

/* Puts a neutral element in the place of padding in the block of operand i, along dimensions that the operation combines. */
static ax_value without_padding(const operation *o, ax_value x, uint32_t i, const ax_spec *spec) {
  const ax_type *whole = type_of(o, i);
  for (uint32_t d = 0; d < whole->rank; d++) {
    const uint32_t factor = o->tensor[i].count[d] > 0 ? o->tensor[i].factor[d][0] : 0;
    if ((o->tensor[i].reached >> d & 1) != 0 || o->tensor[i].count[d] != 1 || o->f->factors.kind[factor] == AX_FACTOR_ALONG ||
        ax_shard_divides(whole, spec, &o->p->mesh, d))
      continue;
    const ax_type block = ax_typeof(x);
    if (ax_failed()) return ax_poison;
    x = ax_where(ax_spec_unpadded(spec, d, &block, whole->dims[d]), x, neutral(o->f->factors.kind[factor], block.dtype));
  }
  return x;
}

/* The scalar that windows see where there is no element. Poison: these places are never used. */
static ax_value fill_of(const ax_reach *reach, const ax_value *in, ax_dtype dtype) {
  switch (reach->fill) {
    case AX_FILL_ANY: return ax_poison;
    case AX_FILL_ZERO: return ax_reduce_neutral(AX_SCALAR_ADD, dtype);
    case AX_FILL_LEAST: return ax_reduce_neutral(AX_SCALAR_MAX, dtype);
    case AX_FILL_GREATEST: return ax_reduce_neutral(AX_SCALAR_MIN, dtype);
    case AX_FILL_OPERAND: break;
  }
  return in[1];
}

/* Replaces the blocks of operands by the elements that this device's positions see, along dimensions that windows go over and
   whose positions are cut. Sets the bits of these dimensions in reached[i]. */
static void bring_seen(const operation *o, ax_value *in, uint32_t *reached) {
  for (uint32_t i = 0; i < o->eqn->in_count && !ax_failed(); i++) {
    const ax_factored *tensor = &o->tensor[i];
    const ax_type *type = type_of(o, i);
    const ax_spec cut = ax_cuts_write(&o->p->mesh, &o->f->factors, tensor, type->rank, &o->cuts);
    double cost;
    const ax_spec lies = operand_spec(o, i, &cost);
    reached[i] = 0;
    for (uint32_t d = 0; d < type->rank && tensor->reached >> d != 0; d++) {
      if ((tensor->reached >> d & 1) == 0 || cut.count[d] == 0) continue;
      const ax_axes names = ax_spec_names(&cut, &ax_builder_current()->axes, d, 0);
      const ax_halo halo = halo_of(o, i, d, &cut);
      in[i] = ax_halo_bring(&halo, in[i], &names, d, lies.count[d] == 0, fill_of(&tensor->reach[d], in, type->dtype));
      reached[i] |= 1u << d;
    }
  }
}

/* The first dimension along which positions reach into the operand; AX_MAX_RANK: none. */
static uint32_t first_reached(const ax_factored *tensor) {
  return tensor->reached != 0 ? (uint32_t)__builtin_ctz(tensor->reached) : AX_MAX_RANK;
}

/* Whether positions along dimension d are elements of operand i, from reach->first on. */
static bool is_part(const operation *o, uint32_t i, uint32_t d) {
  const ax_reach *reach = &o->tensor[i].reach[d];
  return o->eqn->prim->kinds == AX_KINDS_ALL && o->tensor[i].reached == 1u << d && reach->stride == 1 && reach->extent == 1 &&
         reach->base == 1 && reach->fill == AX_FILL_ANY;
}

/* The dimension along which the result, which is cut there, is the operands one behind the other; AX_NONE: it is not. */
static uint32_t joined_dim(const operation *o) {
  const uint32_t d = first_reached(&o->tensor[0]);
  int64_t before = 0;
  if (o->eqn->in_count < 2 || o->eqn->in_count > AX_MOST_JOINED || d == AX_MAX_RANK) return AX_NONE;
  for (uint32_t i = 0; i < o->eqn->in_count; i++) {
    if (!is_part(o, i, d) || o->tensor[i].reach[d].first != -before) return AX_NONE;
    before += type_of(o, i)->dims[d];
  }
  return o->cuts.by[o->tensor[0].factor[d][0]].count > 0 && before == type_of(o, o->eqn->in_count)->dims[d] ? d : AX_NONE;
}

/* Operand i, which has come in this layout; or the array that it is a part of, if that lies as the result does. What operand i was made by is
   then not used. */
static ax_joined_part part_to_join(const operation *o, const ax_held *x, uint32_t i, uint32_t d, const ax_spec *lies, ax_value block) {
  const ax_type *type = type_of(o, i);
  const ax_held *array = x->part_of;
  const ax_spec cut = ax_cuts_write(&o->p->mesh, &o->f->factors, &o->tensor[i], type->rank, &o->cuts);
  if (array != NULL && x->part_dim == d && array->parts == 0 && array->uneven == 0 && array->spec != NULL && ax_spec_equal(array->spec, &cut))
    return (ax_joined_part){array->value, array->type->dims[d], x->part_first, type->dims[d], false};
  return (ax_joined_part){block, type->dims[d], 0, type->dims[d], lies->count[d] == 0};
}

/* Puts operands one behind the other along dimension d. False: that takes too many exchanges. */
static bool bind_joined(const operation *o, const ax_held *held, uint32_t d, const ax_value *in, const ax_spec *in_specs, ax_value *out) {
  const uint32_t count = o->eqn->in_count;
  const ax_type *type = type_of(o, count);
  const ax_spec cut = ax_cuts_write(&o->p->mesh, &o->f->factors, &o->tensor[count], type->rank, &o->cuts);
  const ax_axes names = ax_spec_names(&cut, &ax_builder_current()->axes, d, 0);
  ax_joined_part parts[AX_MOST_JOINED];
  for (uint32_t i = 0; i < count; i++) parts[i] = part_to_join(o, &held[o->eqn->in[i]], i, d, &in_specs[i], in[i]);
  *out = ax_join_blocks(parts, count, &names, ax_shard_parts(&cut, &o->p->mesh, d), d);
  return out->trace != 0;
}

/* Notes that the result is a part of the operand along one dimension, for the case that it is joined again. */
static void note_part(const operation *o, ax_held *held) {
  const ax_factored *tensor = &o->tensor[0];
  const uint32_t d = first_reached(tensor);
  if (o->eqn->in_count != 1 || o->eqn->out_count != 1 || d == AX_MAX_RANK || !is_part(o, 0, d)) return;
  const int64_t first = tensor->reach[d].first;
  if (first < 0 || first + type_of(o, 1)->dims[d] > type_of(o, 0)->dims[d]) return;
  ax_held *result = &held[o->eqn->out];
  result->part_of = &held[o->eqn->in[0]];
  result->part_dim = d;
  result->part_first = first;
}

static void bind_cut(const operation *o, ax_held *held) {
  const ax_eqn *eqn = o->eqn;
  ax_value *in = ax_trace_alloc(eqn->in_count * sizeof in[0]), *out = ax_trace_alloc(eqn->out_count * sizeof out[0]);
  ax_spec *specs = ax_trace_alloc(eqn->out_count * sizeof specs[0]), *in_specs = ax_trace_alloc(eqn->in_count * sizeof in_specs[0]);
  uint32_t *reached = ax_trace_alloc(eqn->in_count * sizeof reached[0]);
  double cost;
  if (ax_failed()) return;
  for (uint32_t i = 0; i < eqn->in_count; i++) {
    const ax_spec spec = in_specs[i] = operand_spec(o, i, &cost);
    ax_held *x = &held[eqn->in[i]];
    in[i] = without_padding(o, o->carried != 0 ? x->value : ax_held_as(x, &spec), i, &spec);
  }
  for (uint32_t k = 0; k < eqn->out_count; k++)
    specs[k] =
        ax_cuts_write(&o->p->mesh, &o->f->factors, &o->tensor[eqn->in_count + k], type_of(o, eqn->in_count + k)->rank, &o->cuts);
  const uint32_t d = joined_dim(o);
  if (d == AX_NONE || !bind_joined(o, held, d, in, in_specs, &out[0])) {
    bring_seen(o, in, reached);
    bind(o, in, reached, in_specs, specs, out);
  }
  ax_factor_kind kind = AX_FACTOR_SUM;
  const ax_axis_set parts = combined_axes(o, &kind) | o->carried;
  for (uint32_t k = 0; k < eqn->out_count && !ax_failed(); k++) {
    ax_held *result = &held[eqn->out + k];
    ax_held_set(result, out[k], ax_spec_unique(o->p, &specs[k]));
    result->parts = parts;
    result->combine = kind;
    ax_axis_set left = parts;
    if (kind == AX_FACTOR_SUM) (void)scatter_spec(o, eqn->in_count + k, &specs[k], &left);
    result->combined = ax_spec_unique(o->p, &specs[k]);
  }
  note_part(o, held);
}

/* Whether the operation may take and give parts of sums: it is linear, and no other equation uses its operands. */
static bool carries_parts(operation *o, const ax_scope *s, const ax_held *held) {
  const ax_eqn *eqn = o->eqn;
  const ax_held *first = eqn->in_count > 0 ? &held[eqn->in[0]] : NULL;
  if (first == NULL || first->parts == 0 || first->combine != AX_FACTOR_SUM || eqn->prim->linear != AX_LINEAR_ALL) return false;
  if ((eqn->prim->kinds & (AX_KINDS_SUM | AX_KINDS_FLOAT_SUM)) == 0) return false;
  for (uint32_t i = 0; i < eqn->in_count; i++) {
    const ax_held *x = &held[eqn->in[i]];
    if (x->parts != first->parts || x->combine != AX_FACTOR_SUM || !ax_propagated_once(o->p, s, o->program, eqn->in[i]))
      return false;
    if ((eqn->prim->kinds & AX_KINDS_SUM) == 0 && !ax_rounds(type_of(o, i)->dtype)) return false;
  }
  for (uint32_t k = 0; k < eqn->out_count; k++) {
    const ax_type *type = type_of(o, eqn->in_count + k);
    if (bytes_of(type) > bytes_of(type_of(o, 0)) || type->dtype != type_of(o, 0)->dtype)
      return false; /* a sum is rounded once, not each part of it */
  }
  return true;
}

/* Whether the chosen cuts let parts pass: no operand is laid out anew, and the axes of the parts cut nothing. */
static bool stays(const operation *o, const ax_held *held, ax_axis_set parts) {
  for (uint32_t t = 0; t < tensor_count(o); t++) {
    const ax_spec none_ = {0}, spec = ax_cuts_write(&o->p->mesh, &o->f->factors, &o->tensor[t], type_of(o, t)->rank, &o->cuts);
    if ((ax_spec_set(&spec) & parts) != 0) return false;
    for (uint32_t d = 0; d < type_of(o, t)->rank; d++)
      if ((o->tensor[t].reached >> d & 1) != 0 && spec.count[d] > 0) return false;
    const ax_spec *lies = t < o->eqn->in_count ? held[o->eqn->in[t]].spec : NULL;
    if (t < o->eqn->in_count && !ax_spec_equal(&spec, lies != NULL ? lies : &none_)) return false;
  }
  for (uint32_t i = 0; i < o->f->factors.count; i++)
    if (o->f->factors.kind[i] != AX_FACTOR_ALONG && o->f->factors.kind[i] != AX_FACTOR_SUM) return false;
  return true;
}

static void look(operation *o, const ax_spec *const *lies, const ax_held *held, const uint32_t *by_size) {
  const ax_eqn *eqn = o->eqn;
  for (uint32_t i = 0; i < eqn->in_count; i++) o->lies[i] = held[eqn->in[i]].spec;
  for (uint32_t k = 0; k < eqn->out_count; k++) o->lies[eqn->in_count + k] = lies[eqn->out + k];
  find_choices(o, by_size);
  choose(o, by_size);
}

void ax_bind_operation(ax_partitioner *p, const ax_scope *s, const ax_program *program, const ax_eqn *eqn,
                       const ax_spec *const *lies, ax_held *held) {
  operation o = {.p = p, .program = program, .eqn = eqn, .f = &p->factoring};
  if (!ax_factoring_of(&p->factoring, program, eqn)) return;
  o.tensor = o.f->in;
  o.lies = ax_trace_alloc(tensor_count(&o) * sizeof o.lies[0]);
  uint32_t *by_size = ax_trace_alloc(tensor_count(&o) * sizeof by_size[0]);
  if (ax_failed() || !order_by_size(&o, by_size)) return;
  if (carries_parts(&o, s, held)) {
    const ax_axis_set parts = held[eqn->in[0]].parts;
    look(&o, lies, held, by_size);
    if (stays(&o, held, parts)) o.carried = parts;
  }
  if (o.carried == 0) {
    for (uint32_t i = 0; i < eqn->in_count; i++) ax_held_combine(&held[eqn->in[i]]);
    look(&o, lies, held, by_size);
  }
  if (!ax_failed()) bind_cut(&o, held);
}
