/* The kernel of the product that is scattered: psum_scatter(lhs rhs) on rings of devices, where sums go round both ways and each
   device adds its own product to what passes. For one core a device. It is collective_matmul_gather.c's kernel run backwards: where
   that sends a shard from its device outwards, sums come in to theirs.

     step 0      products for the two devices that are farthest, sent towards them
     step 1 + a  own products for their targets added to arrival a of both streams, and these sent on
     last        the own part: its product, and the last arrival of each stream

   Arrival a of the stream LEFT, of n of them, is for the device n - 1 - a further left; so the last is for this one. A ring of an
   even number of devices has one arrival more from the right.

   A stream's copies go on while the other stream's product is made: a step waits for an arrival of LEFT, adds to it, and sends it
   on; then does so for RIGHT. Whether an arrival that was sent on has been read is asked a step later, before the next is sent: its
   slot is free from there on. */
#include "kernels/collective_matmul.h"

typedef struct scatter {
  const ax_ring_matmul *m;
  ax_ring_walk *walk;
  const ax_value *refs; /* lhs, rhs, out, scratch of the ring, the two sums that are begun here */
  ax_value begun[2];
  bool started[2];     /* of a step: the stream has sent an arrival on before, and not its own sum alone */
  bool both;
} scatter;

/* This device's product for the device so many places further. */
static ax_value product_for(const scatter *s, ax_value ahead) {
  const ax_ring_matmul *m = s->m;
  const uint32_t rows = m->out.rank - 2, columns = m->out.rank - 1, cut = m->columns ? columns : rows;
  int64_t size = m->out.dims[cut];
  ax_value start = ax_mul(ax_ring_position(s->walk, ahead), ax_integer(size)), lhs = s->refs[0], rhs = s->refs[1];
  if (m->columns) rhs = ax_ref_part(rhs, cut, start, size);
  else lhs = ax_ref_part(lhs, cut, start, size);
  return ax_ref_product(m, lhs, rhs);
}

/* How far it is to the device that arrival a of a stream is for. */
static ax_value way(const scatter *s, int side, ax_value a) {
  ax_value left = ax_sub(ax_integer(s->walk->stream[side].arrivals - 1), a);
  return side == AX_LEFT ? ax_neg(left) : left;
}

static void begin(const scatter *s, int side) {
  const ax_ring_stream *stream = &s->walk->stream[side];
  if (stream->arrivals == 0) return;
  ax_kernel_trace_begin("Compute");
  ax_ref_store(s->begun[side], product_for(s, ax_ring_number(side == AX_LEFT ? -stream->arrivals : stream->arrivals)));
  ax_kernel_trace_end();
  ax_stream_inject(stream, s->begun[side]);
}

/* The last part that was sent has been read; an arrival's slot is free then. */
static void finish_sending(const scatter *s, int side) {
  const ax_ring_stream *stream = &s->walk->stream[side];
  if (stream->arrivals == 0) return;
  ax_stream_sent(stream, s->begun[side]);
  if (s->started[side]) ax_stream_free(stream);
}

static void pass_on(const scatter *s, int side, ax_value a) {
  const ax_ring_stream *stream = &s->walk->stream[side];
  ax_value sum = ax_stream_receive(stream, a);
  ax_kernel_trace_begin("Compute");
  ax_ref_add(sum, product_for(s, way(s, side, a)));
  ax_kernel_trace_end();
  finish_sending(s, side);
  ax_stream_forward(stream, a, sum);
}

static void step(const scatter *s, ax_value a) {
  pass_on(s, AX_LEFT, a);
  if (s->both) pass_on(s, AX_RIGHT, a);
}

static AX_BODY(looped_step) { step(context, in[0]); }

/* The first step by itself, as what it waits for is the sum begun here; then those in which both streams go on, in a loop; then
   LEFT's last. */
static void walk_steps(scatter *s) {
  const int64_t left = s->walk->stream[AX_LEFT].arrivals - 1, right = s->walk->stream[AX_RIGHT].arrivals - 1;
  for (int64_t a = 0; a < left; a++) {
    s->both = a < right;
    if (a == 1 && right > 1) {
      ax_fori_loop(ax_integer(1), ax_integer(right), AX_CLOSURE(looped_step, 1, 0, s), NULL, NULL);
      a = right - 1;
      continue;
    }
    step(s, ax_ring_number(a));
    s->started[AX_LEFT] = true;
    s->started[AX_RIGHT] = s->started[AX_RIGHT] || s->both;
  }
}

static void end(const scatter *s) {
  ax_kernel_trace_begin("Compute");
  ax_value sum = product_for(s, ax_ring_number(0));
  ax_kernel_trace_end();
  for (int side = AX_LEFT; side <= AX_RIGHT; side++) {
    const ax_ring_stream *stream = &s->walk->stream[side];
    if (stream->arrivals == 0) continue;
    sum = ax_add(sum, ax_ref_load(ax_stream_receive(stream, ax_ring_number(stream->arrivals - 1))));
    finish_sending(s, side);
  }
  ax_ref_round(s->m, s->refs[2], sum);
}

static AX_BODY(on_ring) {
  scatter *s = context;
  ax_ring_enter(s->walk, s->refs + 3);
  begin(s, AX_LEFT);
  begin(s, AX_RIGHT);
  walk_steps(s);
  end(s);
  ax_ring_leave(s->walk);
}

static AX_BODY(off_rings) { ax_ref_store(((const scatter *)context)->refs[2], ax_integer(0)); }

static AX_BODY(body) {
  const ax_ring_matmul *m = context;
  ax_scratch scratch[AX_RING_SCRATCH];
  uint32_t next = 3 + ax_ring_scratch(&m->ring, m->sums, m->out.rank, m->out.dims, scratch);
  ax_ring_walk walk;
  ax_ring_find(&m->ring, &walk);
  scatter s = {.m = m, .walk = &walk, .refs = in};
  for (int side = AX_LEFT; side <= AX_RIGHT; side++)
    if (m->ring.arrivals[side] > 0) s.begun[side] = in[next++];
  ax_ring_choose(&walk, AX_CLOSURE(on_ring, 0, 0, &s), AX_CLOSURE(off_rings, 0, 0, &s));
}

ax_value ax_scatter_kernel(const ax_ring_matmul *m, const ax_value *in) {
  ax_scratch scratch[AX_RING_SCRATCH + 2] = {{.type.form = AX_ARRAY}};
  uint32_t count = ax_ring_scratch(&m->ring, m->sums, m->out.rank, m->out.dims, scratch);
  for (int side = AX_LEFT; side <= AX_RIGHT; side++)
    if (m->ring.arrivals[side] > 0) scratch[count++].type = ax_ref_type(AX_SPACE_VMEM, m->sums, AX_LIST(m->out.rank, m->out.dims));
  const ax_kernel kernel = {
      .outs = {AX_TYPES(m->out)},
      .options = {.name = "matmul_reduce_scatter", .scratch = {AX_LIST(count, scratch)}, .collective_id = m->collective_id}};
  ax_value out = {0};
  ax_kernel_call(&kernel, AX_CLOSURE(body, 3 + count, 0, m), AX_LIST(2, in), &out);
  return out;
}
