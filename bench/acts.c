/* b30: kernels of small blocks that talk to other devices and cores. A case repeats its exchange in the kernel's loop; the figure is a run's
   time over all acts of it. An act is a copy started, a signal, an arrival, a wait, or the loads, arithmetic and stores between two of them. Numbers
   in the grid, slices and the loop itself belong to the acts that they are for. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "axle/axle.h"
#include "cases.h"
#include "job.h"
#include "serve.h"

enum { devices = 8, most_scratch = 8 };

typedef struct acts_case {
  const char *name;
  ax_function body; /* of the kernel, on each core: refs of x, y, scratch */
  int64_t rounds, cores;
  int64_t acts;     /* of a core in one round */
  int64_t dims[2];  /* of x on a device */
  bool alone;       /* on one device */
  uint32_t (*scratch)(const struct acts_case *c, ax_scratch *out);
} acts_case;

/* --- Where a core is, and who is beside it --- */

static ax_value me(void) { return ax_axis_index("d"); }
static ax_value neighbour(ax_value number, int64_t by, int64_t size) { return ax_rem(ax_add(number, by + size), size); }

static ax_target_core device_at(ax_value *place) { return (ax_target_core){.axes = "d", .coordinates = {AX_LIST(1, place)}}; }

/* Nobody writes into a neighbour that is still at the round before. */
static void meet_neighbours(void) {
  ax_value left = neighbour(me(), -1, devices), right = neighbour(me(), 1, devices), met = ax_barrier_semaphore();
  const ax_target_core to_left = device_at(&left), to_right = device_at(&right);
  ax_semaphore_signal(met, 1, &to_left);
  ax_semaphore_signal(met, 1, &to_right);
  ax_semaphore_wait(met, 2);
}

/* --- Rings: y[devices, block] of all devices' blocks, or of their sums. Scratch: received[step], sent --- */

enum { x, y, received, sent, arrived };

static uint32_t ring_scratch(const acts_case *c, ax_scratch *out) {
  out[0].type = ax_dma_semaphore_type(AX_DIMS(2 * devices));
  out[1].type = ax_dma_semaphore_type(AX_DIMS());
  out[2].type = AX_VMEM(AX_F32, devices, c->dims[0], c->dims[1]);
  return 3;
}

static void pass_on(const ax_value *in, ax_value from, ax_value to, int64_t step) {
  ax_value right = neighbour(me(), 1, devices), mine = ax_ref_at(in[received], step);
  const ax_target_core there = device_at(&right);
  ax_copy_start(from, to, &(ax_copy_options){.received = &mine, .sent = &in[sent], .to = &there});
  ax_copy_wait(in[sent], from);
  ax_copy_wait(mine, to);
}

static AX_BODY_OF(gather, const acts_case, c) {
  AX_LOOP (i, 0, c->rounds) {
    ax_copy(in[x], ax_ref_at(in[y], me()));
    meet_neighbours();
    for (int64_t s = 0; s < devices - 1; s++) {
      ax_value block = ax_ref_at(in[y], neighbour(me(), -s, devices));
      pass_on(in, block, block, s);
    }
  }
}

/* x is this device's contribution to each of the blocks. */
static AX_BODY_OF(reduce, const acts_case, c) {
  AX_LOOP (i, 0, c->rounds) {
    for (int64_t b = 0; b < devices; b++) ax_ref_store(ax_ref_at(in[y], b), ax_ref_load(in[x]));
    meet_neighbours();
    for (int64_t s = 0; s < devices - 1; s++) {
      ax_value next = ax_ref_at(in[y], neighbour(me(), -s - 1, devices)), came = ax_ref_at(in[arrived], s);
      pass_on(in, ax_ref_at(in[y], neighbour(me(), -s, devices)), came, s);
      ax_ref_add(next, ax_ref_load(came));
    }
    for (int64_t s = 0; s < devices - 1; s++) {
      ax_value block = ax_ref_at(in[y], neighbour(me(), 1 - s, devices));
      pass_on(in, block, block, devices + s);
    }
  }
}

/* --- Halo: y has a row of each neighbour above and below x's rows. Scratch: received[2], sent --- */

static uint32_t halo_scratch(const acts_case *c, ax_scratch *out) {
  (void)c;
  out[0].type = ax_dma_semaphore_type(AX_DIMS(2));
  out[1].type = ax_dma_semaphore_type(AX_DIMS());
  return 2;
}

static AX_BODY_OF(halo, const acts_case, c) {
  const int64_t last = c->dims[0] + 1;
  ax_value left = neighbour(me(), -1, devices), right = neighbour(me(), 1, devices);
  const ax_target_core to_left = device_at(&left), to_right = device_at(&right);
  ax_copy(in[x], ax_ref_slice(in[y], AX_VALUES(ax_integer(1), ax_integer(0)), AX_DIMS(c->dims[0], c->dims[1])));
  AX_LOOP (i, 0, c->rounds) {
    ax_value below = ax_ref_at(in[received], 0), above = ax_ref_at(in[received], 1);
    ax_value first_row = ax_ref_at(in[y], 1), last_row = ax_ref_at(in[y], last - 1);
    meet_neighbours();
    ax_copy_start(first_row, ax_ref_at(in[y], last), &(ax_copy_options){.received = &below, .sent = &in[sent], .to = &to_left});
    ax_copy_start(last_row, ax_ref_at(in[y], 0), &(ax_copy_options){.received = &above, .sent = &in[sent], .to = &to_right});
    ax_copy_wait(in[sent], first_row);
    ax_copy_wait(in[sent], last_row);
    ax_copy_wait(below, first_row);
    ax_copy_wait(above, last_row);
    ax_ref_store(first_row, ax_mul(ax_add(ax_ref_load(ax_ref_at(in[y], 0)), ax_ref_load(last_row)), 0.5));
  }
}

/* --- Cores of one device: each signals the next one, waits for the one before, or all meet at a barrier --- */

static uint32_t token_scratch(const acts_case *c, ax_scratch *out) {
  out[0] = (ax_scratch){.type = ax_semaphore_type(AX_DIMS(c->cores)), .shared = true};
  return 1;
}

static AX_BODY_OF(tokens, const acts_case, c) {
  ax_value core = ax_axis_index("core"), mine = ax_ref_at(in[2], core), next = ax_ref_at(in[2], neighbour(core, 1, c->cores));
  AX_LOOP (i, 0, c->rounds) {
    ax_semaphore_signal(next, 1, NULL);
    ax_semaphore_wait(mine, 1);
  }
  ax_ref_store(ax_ref_at(in[y], core), ax_ref_load(ax_ref_at(in[x], core)));
}

static uint32_t barrier_scratch(const acts_case *c, ax_scratch *out) {
  out[0] = (ax_scratch){.type = ax_barrier_type(AX_DIMS()), .arrivals = c->cores, .shared = true};
  return 1;
}

static AX_BODY_OF(barrier, const acts_case, c) {
  ax_value core = ax_axis_index("core");
  AX_LOOP (i, 0, c->rounds) {
    ax_barrier_arrive(in[2]);
    ax_barrier_wait(in[2]);
  }
  ax_ref_store(ax_ref_at(in[y], core), ax_ref_load(ax_ref_at(in[x], core)));
}

/* --- Copies by hand through two slots each, on two cores: y = 2 x, row by row. Scratch: slots in, out, their semaphores --- */

enum { slot_in = 2, slot_out, came, gone };

static uint32_t rows_scratch(const acts_case *c, ax_scratch *out) {
  out[0].type = out[1].type = AX_VMEM(AX_F32, 2, c->dims[1]);
  out[2].type = out[3].type = ax_dma_semaphore_type(AX_DIMS(2));
  return 4;
}

static ax_value row_of(ax_value ref, ax_value i, const acts_case *c) {
  return ax_ref_at(ref, ax_add(i, ax_mul(ax_axis_index("core"), c->rounds)));
}

static void bring(const ax_value *in, ax_value i, const acts_case *c) {
  ax_value slot = ax_and(i, 1), done = ax_ref_at(in[came], slot);
  ax_copy_start(row_of(in[x], i, c), ax_ref_at(in[slot_in], slot), &(ax_copy_options){.received = &done});
}

static AX_BODY_OF(rows, const acts_case, c) {
  bring(in, ax_full(AX_S32, AX_DIMS(), 0), c);
  AX_LOOP (i, 0, c->rounds) {
    ax_value slot = ax_and(i, 1), from = ax_ref_at(in[slot_in], slot), to = ax_ref_at(in[slot_out], slot), done = ax_ref_at(in[gone], slot);
    AX_IF (ax_lt(i, c->rounds - 1)) bring(in, ax_add(i, 1), c);
    ax_copy_wait(ax_ref_at(in[came], slot), from);
    AX_IF (ax_ge(i, 2)) ax_copy_wait(done, to);
    ax_ref_store(to, ax_mul(ax_ref_load(from), 2));
    ax_copy_start(to, row_of(in[y], i, c), &(ax_copy_options){.received = &done});
  }
  for (int64_t s = 0; s < 2; s++) ax_copy_wait(ax_ref_at(in[gone], s), ax_ref_at(in[slot_out], s));
}

/* --- All --- */

enum { ring_rounds = 100, many = 1000 };

#define GATHER .body = gather, .rounds = ring_rounds, .cores = 1, .acts = 2 + 3 + 3 * (devices - 1), .scratch = ring_scratch
#define REDUCE .body = reduce, .rounds = ring_rounds, .cores = 1, .acts = 1 + 3 + 7 * (devices - 1), .scratch = ring_scratch
#define ROWS(n) {.name = "rows_" #n, .body = rows, .rounds = many, .cores = 2, .acts = 5, .dims = {2 * many, n}, .alone = true, .scratch = rows_scratch}

static const acts_case cases[] = {
    {.name = "gather_8x128", GATHER, .dims = {8, 128}},
    {.name = "gather_1x16", GATHER, .dims = {1, 16}},
    {.name = "reduce_8x128", REDUCE, .dims = {8, 128}},
    {.name = "reduce_1x16", REDUCE, .dims = {1, 16}},
    {.name = "halo", .body = halo, .rounds = many, .cores = 1, .acts = 10, .dims = {8, 128}, .scratch = halo_scratch},
    {.name = "tokens_2", .body = tokens, .rounds = many, .cores = 2, .acts = 2, .dims = {2, 1}, .alone = true, .scratch = token_scratch},
    {.name = "tokens_4", .body = tokens, .rounds = many, .cores = 4, .acts = 2, .dims = {4, 1}, .alone = true, .scratch = token_scratch},
    {.name = "barrier_4", .body = barrier, .rounds = many, .cores = 4, .acts = 2, .dims = {4, 1}, .alone = true, .scratch = barrier_scratch},
    ROWS(16),
    ROWS(128),
    ROWS(1024),
};

static AX_BODY_OF(as_kernel, const acts_case, c) {
  const ax_core_mesh mesh = {.core = "core", .mesh = {.count = 1, .axis = {{.name = "core", .size = c->cores}}}};
  const bool ring = c->scratch == ring_scratch, padded = c->scratch == halo_scratch;
  const ax_type plain = AX_TYPE(AX_F32, c->dims[0] + (padded ? 2 : 0), c->dims[1]), all = AX_TYPE(AX_F32, devices, c->dims[0], c->dims[1]);
  ax_scratch scratch[most_scratch] = {0};
  const uint32_t count = c->scratch(c, scratch);
  const ax_kernel_options options = {.name = c->name, .scratch = {AX_LIST(count, scratch)}};
  const ax_fn body = AX_CLOSURE(c->body, 2 + count, 0, c);
  ax_mpmd_map(AX_LIST(1, &mesh), &body, &options, AX_LIST(1, in), AX_LIST(1, ring ? &all : &plain), out);
}

/* What an act may take. */
static void limit(void) {
  char line[64];
  bench_wait();
  do bench_answer(1e-8);
  while (fgets(line, sizeof line, stdin) != NULL);
  exit(0);
}

/* acts CASE|limit WORKERS: seconds an act */
void acts(char **arguments) {
  if (strcmp(arguments[0], "limit") == 0) limit();
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const acts_case *c = &cases[i];
    if (strcmp(c->name, arguments[0]) != 0) continue;
    const ax_type type = AX_TYPE(AX_F32, c->dims[0] * (c->alone ? 1 : devices), c->dims[1]);
    const bool ring = c->scratch == ring_scratch;
    job j = job_create(&(job_function){as_kernel, (void *)c, c->alone ? NULL : "d=8", 1, 1, &type, (const char *[]){"d"},
                                       (const char *[]){ring ? "_,d" : "d"}},
                       (uint32_t)atoi(arguments[1]));
    bench_serve(job_run, &j, (double)(c->acts * c->rounds * c->cores * (c->alone ? 1 : devices)));
  }
  fprintf(stderr, "no kernel %s\n", arguments[0]);
  exit(2);
}
