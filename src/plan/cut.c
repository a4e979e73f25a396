/* Cuts large kernels into parts, which several threads may run at once. The dimension and the number of parts follow from the
   kernel alone: a part should take some microseconds, and walk memory in runs that are long enough for hardware prefetching. A
   reduction to few results is made in blocks first (plan/blocks.h). */
#include <math.h>
#include <string.h>

#include "ir/program.h"
#include "machine/caches.h"
#include "machine/rates.h"
#include "plan/amount.h"
#include "plan/blocks.h"
#include "plan/passes.h"

enum {
  most_parts = 256,
  most_blocks = 32,
  enough_parts = 16,
  long_run_bytes = 128 << 10,
  run_bytes = 2048,
  least_run_bytes = 128,
  few_parts = 8
};

/* --- How long it takes --- */

/* Nanoseconds to move the bytes of a reduction. They decide its blocks, and so its bits: they do not depend on the machine. */
static double sum_bytes_time(double bytes) {
  return bytes * (bytes <= AX_SUMS_NEAR_BYTES ? 0.005 : bytes <= AX_SUMS_SHARED_BYTES ? 0.01 : 0.02);
}

double ax_kernel_time(const ax_loop_kernel *kernel) {
  const ax_amount amount = ax_kernel_amount(kernel);
  const ax_rates *rates = ax_rates_planned();
  if (kernel->reduce_rank > 0) return amount.core_ns + sum_bytes_time(amount.read + amount.written);
  return 1e9 * (ax_amount_seconds(&amount, rates->computing, rates->dividing) + ax_rates_moving(rates, amount.read, amount.written));
}

/* The number of parts that a kernel of `time` nanoseconds is worth cutting into. A part takes some microseconds, since sharing
   work between two threads costs about as much; more if there are many parts. It decides the blocks of reductions too. */
double ax_parts_worth(double time) {
  const double least = 8000, more = 18000;
  enum { few = 8 };
  double parts = time / least;
  return parts <= few ? parts : few + (time - few * least) / more;
}

/* As ax_parts_worth, for ranges that change nothing but who computes them: they follow from what sharing costs on this machine.
   Small kernels are cut finer, and into an even number, so that two threads get equal shares. The executor knows whether threads
   are free (run/share.c). */
static double parts_to_share(double nanoseconds) {
  static const double two = 3500, four = 10000;
  enum { few = 8 };
  const double time = nanoseconds / ax_rates_planned()->sharing, parts = ax_parts_worth(time);
  if (time < four) return time < two ? 1 : 2;
  return parts > few ? parts : parts < 4 ? 4 : 2 * ceil(parts / 2);
}

/* --- Along which dimension --- */

typedef struct access { /* a load or store: how far apart its elements are along each dimension of the kernel */
  int64_t stride[2 * AX_MAX_RANK], bytes;
  double elems; /* how many there are */
} access;

static access access_of(const ax_loop_kernel *kernel, uint32_t slot, const ax_position *at) {
  const ax_slot *s = &kernel->slots[slot];
  access a = {.bytes = (int64_t)ax_dtype_bytes(s->dtype), .elems = 1};
  int64_t pitch = 1;
  for (uint32_t d = s->rank; d-- > 0; pitch *= s->dims[d])
    if (at[d].dim >= 0) a.stride[at[d].dim] += at[d].coef * pitch;
  for (uint32_t d = 0; d < kernel->rank; d++)
    if (a.stride[d] != 0) a.elems *= (double)kernel->dims[d];
  return a;
}

/* The least extent of a part along `dim` at which this access still goes over runs of so many bytes. */
static int64_t least_extent(const access *a, uint32_t dim, int64_t run) {
  int64_t apart = (a->stride[dim] < 0 ? -a->stride[dim] : a->stride[dim]) * a->bytes;
  return apart == 0 ? 1 : (run + apart - 1) / apart;
}

static int64_t greater(int64_t a, int64_t b) { return a > b ? a : b; }

typedef struct lengths {
  int64_t least[2 * AX_MAX_RANK]; /* by dimension: of a part */
} lengths;

/* That of node or store number i, the nodes first. False: the node is no load. */
static bool access_number(const ax_loop_kernel *kernel, uint32_t i, access *out) {
  const ax_expr *expr = i < kernel->expr_count ? &kernel->exprs[i] : NULL;
  const ax_store *store = expr == NULL ? &kernel->stores[i - kernel->expr_count] : NULL;
  if (expr != NULL && expr->op != AX_LEAF_LOAD) return false;
  *out = expr != NULL ? access_of(kernel, expr->slot, expr->at) : access_of(kernel, store->slot, store->at);
  return true;
}

/* Only accesses that matter: those to no less than a few elements for each of the largest's. Where none of these goes along a dimension, as where
   all pairs of two lists are gone through, the lanes of a vector may be steps along it, of which a part should fill them. */
static lengths least_lengths(const ax_loop_kernel *kernel, int64_t run) {
  const uint32_t count = kernel->expr_count + kernel->store_count;
  lengths l, lanes; /* lanes: elements of a vector that lie side by side for some access */
  bool moves[2 * AX_MAX_RANK] = {false};
  double largest = 0;
  access a;
  for (uint32_t i = 0; i < count; i++)
    if (access_number(kernel, i, &a) && a.elems > largest) largest = a.elems;
  for (uint32_t d = 0; d < kernel->rank; d++) l.least[d] = lanes.least[d] = 1;
  for (uint32_t i = 0; i < count; i++) {
    if (!access_number(kernel, i, &a)) continue;
    const bool matters = a.elems * 8 >= largest;
    for (uint32_t d = 0; d < kernel->rank; d++) {
      if (matters) l.least[d] = greater(l.least[d], least_extent(&a, d, run));
      if (a.stride[d] == 1) lanes.least[d] = greater(lanes.least[d], AX_LINE_BYTES / a.bytes);
      moves[d] = moves[d] || (matters && a.stride[d] != 0);
    }
  }
  for (uint32_t d = 0; d < kernel->rank; d++)
    if (!moves[d]) l.least[d] = greater(l.least[d], lanes.least[d]);
  return l;
}

typedef struct cut {
  double wanted; /* parts */
  uint32_t dim;
  int64_t most; /* parts along it */
} cut;

/* Chooses among dimensions from .. to: the outermost that gives as many parts as are wanted, or the one that gives most. */
static cut choose(const ax_loop_kernel *kernel, const lengths *l, uint32_t from, uint32_t to, double wanted) {
  cut best = {wanted, from, 1};
  for (uint32_t d = from; d < to && (double)best.most < wanted; d++) {
    int64_t parts = kernel->dims[d] / l->least[d];
    if (parts > best.most) best = (cut){wanted, d, parts};
  }
  if ((double)best.most > wanted) best.most = (int64_t)wanted;
  return best;
}

/* The longest runs, in bytes, that are worth having. Memory that is only read is read in runs of 128 KiB in two thirds of the
   time of runs of 8 KiB. */
static int64_t longest_run(const ax_loop_kernel *kernel) {
  return kernel->reduce_rank > 0 && ax_kernel_amount(kernel).read > AX_SUMS_SHARED_BYTES ? long_run_bytes : run_bytes;
}

/* The longest at which there are enough parts. */
static cut choose_long(const ax_loop_kernel *kernel, uint32_t to, double wanted) {
  cut best = {wanted, 0, 1};
  double enough = wanted < enough_parts ? wanted : enough_parts;
  for (int64_t run = longest_run(kernel); run >= run_bytes; run /= 4) {
    lengths l = least_lengths(kernel, run);
    best = choose(kernel, &l, 0, to, wanted);
    if ((double)best.most + 1 > enough) break;
  }
  return best;
}

/* --- Reductions in blocks --- */

/* Chooses blocks of a reduced dimension: so few that their results are a small part of the data that is read. */
static cut choose_blocks(const ax_loop_kernel *kernel, const lengths *l, double wanted) {
  uint32_t parallel = kernel->rank - kernel->reduce_rank;
  double rows = (double)ax_dims_elems(kernel->reduce_rank, kernel->dims + parallel);
  return choose(kernel, l, parallel, kernel->rank, wanted < rows / 32 ? wanted : rows / 32);
}

/* A number of blocks near `count` that divides the extent; if there is none, one whose rest is small beside a block. */
static int64_t even_count(int64_t extent, int64_t count) {
  enum { little = 8 };
  int64_t best = count;
  for (int64_t c = count; c >= 2 && c > count / 2; c--) {
    int64_t rest = extent % c, least = extent % best;
    if (rest == 0) return c;
    if (rest < least && least * little > extent / best) best = c;
  }
  return best;
}

/* --- Operations --- */

typedef struct cutter {
  ax_plan *plan;
  ax_block *block;
  ax_op *ops; /* the block's new ones; NULL while they are the old ones */
  uint32_t count, capacity;
} cutter;

static void cut_kernel(ax_loop_kernel *kernel) {
  double wanted = parts_to_share(ax_kernel_time(kernel));
  uint32_t parallel = kernel->rank - kernel->reduce_rank;
  kernel->ranged = 0;
  kernel->parts = 1;
  if (wanted < 2 || parallel == 0) return;
  cut best = choose_long(kernel, parallel, wanted < most_parts ? wanted : most_parts);
  for (int64_t run = run_bytes / 4; run >= least_run_bytes && best.most < few_parts / 2 && (double)best.most * 2 <= wanted;
       run /= 4) {
    lengths l = least_lengths(kernel, run); /* a few parts of shorter runs are better than none */
    best = choose(kernel, &l, 0, parallel, wanted < few_parts ? wanted : few_parts);
  }
  kernel->ranged = best.dim;
  kernel->parts = (uint32_t)best.most;
}

/* Along which dimension it is reduced over in blocks: where its results are too few to give all threads work, or parts of them
   would go over memory in shorter runs than blocks do. `most` is 1 where it is not. */
static cut wanted_blocks(const ax_loop_kernel *kernel) {
  double wanted = ax_parts_worth(ax_kernel_time(kernel));
  uint32_t parallel = kernel->rank - kernel->reduce_rank;
  cut none = {wanted, parallel, 1}, plain = none, blocks = none;
  if (wanted < 2 || kernel->reduce_rank == 0) return none;
  if (wanted > most_blocks) wanted = most_blocks;
  double enough = wanted < enough_parts ? wanted : enough_parts;
  for (int64_t run = longest_run(kernel); run >= run_bytes; run /= 4) {
    lengths l = least_lengths(kernel, run);
    plain = choose(kernel, &l, 0, parallel, wanted);
    blocks = choose_blocks(kernel, &l, wanted);
    if ((double)plain.most + 1 > enough) return none;
    if ((double)blocks.most + 1 > enough) return blocks;
  }
  return plain.most * 2 > blocks.most ? none : blocks;
}

static ax_status in_blocks(cutter *c, const ax_op *op, ax_op *out, uint32_t *made) {
  const ax_loop_kernel *kernel = op->kernel.kernel;
  cut blocks = wanted_blocks(kernel);
  *made = 0;
  if (blocks.most < 2) return AX_OK;
  return ax_reduce_in_blocks(c->plan, op, blocks.dim, even_count(kernel->dims[blocks.dim], blocks.most), out, made);
}

static ax_status append(cutter *c, const ax_op *ops, uint32_t count) {
  if (count == 0) return AX_OK; /* ops may be NULL */
  AX_TRY(ax_grow(&c->ops, sizeof c->ops[0], c->count, count, &c->capacity));
  memcpy(c->ops + c->count, ops, count * sizeof ops[0]);
  c->count += count;
  return AX_OK;
}

/* The block's operations are written anew once one of them is made in blocks. */
static ax_status cut_op(cutter *c, uint32_t i) {
  ax_op *op = &c->block->ops[i], out[AX_BLOCKED_OPS];
  uint32_t made = 0;
  if (op->kind == AX_OP_KERNEL) AX_TRY(in_blocks(c, op, out, &made));
  if (made > 0 && c->ops == NULL) AX_TRY(append(c, c->block->ops, i));
  for (uint32_t k = 0; k < made; k++) cut_kernel(out[k].kernel.kernel);
  if (made == 0 && op->kind == AX_OP_KERNEL) cut_kernel(op->kernel.kernel);
  if (made > 0) return append(c, out, made);
  return c->ops != NULL ? append(c, op, 1) : AX_OK;
}

static ax_status cut_block(void *context, ax_block *block, bool is_body) {
  ax_plan *plan = context;
  (void)is_body;
  cutter c = {.plan = plan, .block = block};
  ax_status status = AX_OK;
  for (uint32_t i = 0; status == AX_OK && i < block->count; i++) status = cut_op(&c, i);
  if (status == AX_OK && c.ops != NULL) {
    ax_op *ops = ax_arena_copy(&plan->arena, c.ops, c.count * sizeof ops[0]);
    if (ops == NULL) status = ax_out_of_memory(c.count * sizeof ops[0]);
    else *block = (ax_block){.ops = ops, .count = c.count, .capacity = c.count};
  }
  ax_free(c.ops);
  return status;
}

ax_status ax_plan_cut(ax_plan *plan) { return ax_blocks_visit(&plan->block, cut_block, plan); }
