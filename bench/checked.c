/* b19: the checker. What it takes to prove a ring all-gather, and to go through all its interleavings: time and memory a state. */
#include "axle/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "axle/collectives.h"
#include "axle/ops.h"
#include "cases.h"
#include "serve.h"

enum { rows = 8, columns = 128 };

typedef struct ring {
  int64_t devices;
  ax_mesh mesh;
  ax_program *program;
  ax_check_options options;
  double state_seconds, state_bytes;
} ring;

static ax_value neighbour(ax_value device, int64_t step, int64_t devices) { /* of a ring: devices may be no power of two */
  ax_value moved = ax_add(device, ax_integer(step));
  ax_value low = ax_where(ax_lt(moved, ax_integer(0)), ax_add(moved, ax_integer(devices)), moved);
  return ax_where(ax_ge(low, ax_integer(devices)), ax_sub(low, ax_integer(devices)), low);
}

/* x, out, copied, sent, received: each block goes round by copies to the right. */
static void gather(const ax_value *in, ax_value *out, void *context) {
  const int64_t n = ((const ring *)context)->devices;
  ax_value me = ax_axis_index("d"), right = neighbour(me, 1, n), left = neighbour(me, -1, n), barrier = ax_barrier_semaphore();
  const ax_target_core to = {.axes = "d", .coordinates = {AX_VALUES(right)}},
                       back = {.axes = "d", .coordinates = {AX_VALUES(left)}};
  (void)out;
  ax_semaphore_signal(barrier, ax_integer(1), &to);
  ax_semaphore_signal(barrier, ax_integer(1), &back);
  ax_semaphore_wait(barrier, ax_integer(2));
  ax_copy_start(in[0], ax_ref_at(in[1], me), &(ax_copy_options){.received = &in[2]});
  ax_copy_wait(in[2], in[0]);
  for (int64_t i = 0; i < n - 1; i++) {
    ax_value block = ax_ref_at(in[1], neighbour(me, -i, n)), sent = ax_ref_at(in[3], ax_integer(i)),
             received = ax_ref_at(in[4], ax_integer(i));
    ax_copy_start(block, block, &(ax_copy_options){.sent = &sent, .received = &received, .to = &to});
    ax_copy_wait(sent, block);
    ax_copy_wait(received, block);
  }
}

static void kernel(const ax_value *in, ax_value *out, void *context) {
  const ring *r = context;
  const int64_t steps[] = {r->devices - 1};
  const ax_core_mesh core = {.core = "tensorcore"};
  const ax_scratch scratch[] = {{.type = ax_dma_semaphore_type(AX_DIMS())},
                                {.type = ax_dma_semaphore_type(AX_LIST(1, steps))},
                                {.type = ax_dma_semaphore_type(AX_LIST(1, steps))}};
  const ax_kernel_options options = {.name = "ring", .scratch = {AX_LIST(3, scratch)}};
  const ax_type type = AX_TYPE(AX_F32, r->devices, rows, columns);
  ax_mpmd_map(AX_LIST(1, &core), &AX_CLOSURE(gather, 5, 0, (void *)r), &options, AX_LIST(1, in), AX_LIST(1, &type), out);
}

static void whole(const ax_value *in, ax_value *out, void *context) {
  ax_shard_map_unchecked(&((ring *)context)->mesh, "d -> d", AX_CLOSURE(kernel, 1, 1, context), in, out);
}

static void must(ax_status status) {
  if (status == AX_OK) return;
  fprintf(stderr, "%s\n", ax_message());
  exit(1);
}

static void repeat(void *context, int64_t count) {
  ring *r = context;
  for (int64_t i = 0; i < count; i++) {
    ax_check_report *report;
    must(ax_check(r->program, &r->options, &report));
    if (report->verdict != AX_PROVED) fprintf(stderr, "the ring is not proved\n"), exit(1);
    const ax_check_kernel *k = &report->kernels[0];
    r->state_seconds = k->states > 0 ? k->seconds / (double)k->states : 0;
    r->state_bytes = k->state_bytes;
    ax_check_report_release(report);
  }
}

/* checked prove|state|state_limit|bytes|bytes_limit DEVICES: seconds of a proof; seconds and bytes of a state where each
   interleaving is gone through */
void checked(char **arguments) {
  ring r = {.devices = atoll(arguments[1])};
  char mesh[32];
  const char *what = arguments[0];
  snprintf(mesh, sizeof mesh, "d=%lld", (long long)r.devices);
  must(ax_mesh_parse(mesh, &r.mesh));
  const ax_type type = AX_TYPE(AX_F32, r.devices * rows, columns);
  must(ax_trace(AX_CLOSURE(whole, 1, 1, &r), &type, &r.program));
  if (strcmp(what, "prove") == 0) bench_serve(repeat, &r, 1);
  r.options.exhaustive = true;
  repeat(&r, 1);
  bench_wait();
  bench_answer(strcmp(what, "state") == 0         ? r.state_seconds
               : strcmp(what, "bytes") == 0       ? r.state_bytes
               : strcmp(what, "state_limit") == 0 ? 1e-4
                                                  : 1024);
}
