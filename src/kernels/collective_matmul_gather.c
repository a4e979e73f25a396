/* The kernel of the collective matmul: all_gather(lhs) rhs on rings of devices, where the right operand stays and shards of the
   left one go round both ways, one device further each step. For one core a device.

     step 0      own shard sent both ways                            own shard times its part of rhs
     step 1 + a  arrival a of both streams sent on                   both arrivals times their parts of rhs

   So there are 1 + length / 2 steps. What a step multiplies was sent while the one before was multiplied. A ring of an even number
   of devices has one arrival more from the right (which the stream LEFT brings), so that its last step has one shard alone.

   Shards are of columns of the left operand, which are rows of rhs: products are added up, in the result where it is of the dtype
   of sums. Or they are of rows: each product is a part of the result.

   Each slot is written by a copy of the neighbour's and then read: by this device's own copy onwards, and by the product; so it is
   free when both are through, which is where the neighbour is told. (ring.h has what streams are.) */
#include "kernels/collective_matmul.h"

typedef struct gather {
  const ax_ring_matmul *m;
  ax_ring_walk *walk;
  const ax_value *refs;   /* lhs, rhs, out, scratch of the ring, sums if they are not `out` */
  ax_value sums;
  bool both, forward[2];  /* of a step: whether RIGHT has an arrival too; which are sent on */
} gather;

/* The shard of the device at this place on the ring times what it goes with. */
static void multiply(const gather *g, ax_value shard, ax_value position, bool first) {
  const ax_ring_matmul *m = g->m;
  const uint32_t rows = m->lhs.rank - 2, columns = m->lhs.rank - 1;
  ax_value rhs = g->refs[1], start;
  ax_kernel_trace_begin("Compute");
  if (m->columns) {
    int64_t size = m->lhs.dims[columns];
    start = ax_mul(position, ax_integer(size));
    ax_value product = ax_ref_product(m, shard, ax_ref_part(rhs, rows, start, size));
    if (first) ax_ref_store(g->sums, product);
    else ax_ref_add(g->sums, product);
  } else {
    int64_t size = m->lhs.dims[rows];
    start = ax_mul(position, ax_integer(size));
    ax_ref_round(m, ax_ref_part(g->refs[2], rows, start, size), ax_ref_product(m, shard, rhs));
  }
  ax_kernel_trace_end();
}

static void step(const gather *g, ax_value a) {
  const ax_ring_stream *stream = g->walk->stream;
  ax_value shard[2], ahead = ax_add(a, ax_integer(1));
  int sides = g->both ? 2 : 1;
  for (int side = AX_LEFT; side < sides; side++) {
    shard[side] = ax_stream_receive(&stream[side], a);
    if (g->forward[side]) ax_stream_forward(&stream[side], a, shard[side]);
  }
  for (int side = AX_LEFT; side < sides; side++)
    multiply(g, shard[side], ax_ring_position(g->walk, side == AX_LEFT ? ahead : ax_neg(ahead)), false);
  for (int side = AX_LEFT; side < sides; side++) {
    if (!g->forward[side]) continue;
    ax_stream_sent(&stream[side], shard[side]);
    ax_stream_free(&stream[side]);
  }
}

static AX_BODY(looped_step) { step(context, in[0]); }

/* The steps in which both streams go on, in a loop; then the last one or two. */
static void walk_steps(gather *g) {
  const int64_t left = g->walk->stream[AX_LEFT].arrivals, right = g->walk->stream[AX_RIGHT].arrivals,
                alike = right > 1 ? right - 1 : 0;
  g->both = g->forward[AX_LEFT] = g->forward[AX_RIGHT] = true;
  if (alike > 0) ax_fori_loop(ax_integer(0), ax_integer(alike), AX_CLOSURE(looped_step, 1, 0, g), NULL, NULL);
  for (int64_t a = alike; a < left; a++) {
    g->both = a < right;
    g->forward[AX_LEFT] = a + 1 < left;
    g->forward[AX_RIGHT] = a + 1 < right;
    step(g, ax_ring_number(a));
  }
}

static AX_BODY(on_ring) {
  gather *g = context;
  const ax_ring_matmul *m = g->m;
  const ax_ring_stream *stream = g->walk->stream;
  ax_ring_enter(g->walk, g->refs + 3);
  for (int side = AX_LEFT; side <= AX_RIGHT; side++)
    if (stream[side].arrivals > 0) ax_stream_inject(&stream[side], g->refs[0]);
  multiply(g, g->refs[0], g->walk->position, true);
  for (int side = AX_LEFT; side <= AX_RIGHT; side++)
    if (stream[side].arrivals > 0) ax_stream_sent(&stream[side], g->refs[0]);
  walk_steps(g);
  if (m->columns && m->sums != m->out.dtype) ax_ref_round(m, g->refs[2], ax_ref_load(g->sums));
  ax_ring_leave(g->walk);
}

static AX_BODY(off_rings) { ax_ref_store(((const gather *)context)->refs[2], ax_integer(0)); }

static AX_BODY(body) {
  const ax_ring_matmul *m = context;
  ax_scratch scratch[AX_RING_SCRATCH];
  uint32_t ring_scratch = ax_ring_scratch(&m->ring, m->lhs.dtype, m->lhs.rank, m->lhs.dims, scratch);
  ax_ring_walk walk;
  ax_ring_find(&m->ring, &walk);
  gather g = {.m = m, .walk = &walk, .refs = in, .sums = m->columns && m->sums != m->out.dtype ? in[3 + ring_scratch] : in[2]};
  ax_ring_choose(&walk, AX_CLOSURE(on_ring, 0, 0, &g), AX_CLOSURE(off_rings, 0, 0, &g));
}

ax_value ax_gather_kernel(const ax_ring_matmul *m, const ax_value *in) {
  ax_scratch scratch[AX_RING_SCRATCH + 1] = {{.type.form = AX_ARRAY}};
  uint32_t count = ax_ring_scratch(&m->ring, m->lhs.dtype, m->lhs.rank, m->lhs.dims, scratch);
  if (m->columns && m->sums != m->out.dtype)
    scratch[count++].type = ax_ref_type(AX_SPACE_VMEM, m->sums, AX_LIST(m->out.rank, m->out.dims));
  const ax_kernel kernel = {
      .outs = {AX_TYPES(m->out)},
      .options = {.name = "collective_matmul", .scratch = {AX_LIST(count, scratch)}, .collective_id = m->collective_id}};
  ax_value out = {0};
  ax_kernel_call(&kernel, AX_CLOSURE(body, 3 + count, 0, m), AX_LIST(2, in), &out);
  return out;
}
