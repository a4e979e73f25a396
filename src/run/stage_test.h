/* As much of a run as the scheduler, messages and the timeline look at, set up by hand: three devices along "d", and no program. */
#ifndef AX_RUN_STAGE_TEST_H
#define AX_RUN_STAGE_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>
#include <string.h>

#include "run/scheduler.h"

enum { devices = 3, stage_counters = 4, stage_slots = 2, scratch_bytes = 128 };

typedef struct stage {
  ax_runtime_options options;
  ax_executor executor;
  ax_mesh mesh;
  ax_code code;
  ax_instr instrs[1];
  ax_part_space space; /* scratch: parts 0, 1 and 2 */
  ax_compiled compiled;
  ax_execution run;
  ax_activation activations[devices];
  ax_parking parking[devices];
  ax_counter counters[stage_counters];
  ax_worker_slot slots[stage_slots];
  int64_t entered[devices], iteration[devices], coordinates[devices];
  unsigned char *part[devices];
  uint32_t ready[2 * devices];
} stage;

/* threaded: as a run of several threads does it, which a test's one thread then plays in turn. */
static inline void stage_set_up(stage *s, bool threaded) {
  memset(s, 0, sizeof *s);
  ax_pool_init(&s->executor.pool);
  s->executor.options = &s->options;
  assert_int_equal(ax_mesh_parse("d=3", &s->mesh), AX_OK);
  s->space = (ax_part_space){.kind = AX_SPACE_SCRATCH, .bytes = scratch_bytes, .total = scratch_bytes};
  s->instrs[0].scratch = true;
  s->code = (ax_code){.mesh = &s->mesh, .activation_count = devices, .instr_count = 1, .instrs = s->instrs};
  s->compiled = (ax_compiled){.devices = devices,
                              .code_count = 1,
                              .activation_count = devices,
                              .codes = &s->code,
                              .region_count = 1,
                              .counter_count = stage_counters,
                              .turns = AX_NONE,
                              .space_count = 1,
                              .spaces = &s->space};
  s->run = (ax_execution){.compiled = &s->compiled,
                          .executor = &s->executor,
                          .activations = s->activations,
                          .parking = s->parking,
                          .counters = s->counters,
                          .worker_slots = s->slots,
                          .worker_slot_count = threaded ? stage_slots : 1,
                          .threads = threaded ? stage_slots : 1,
                          .threaded = threaded,
                          .part = s->part,
                          .ready = s->ready};
  pthread_mutex_init(&s->run.lock, NULL);
  pthread_cond_init(&s->run.change, NULL);
  for (int i = 0; i < AX_STRIPES; i++) pthread_mutex_init(&s->run.stripes[i], NULL);
  for (int i = 0; i < stage_slots; i++) {
    pthread_mutex_init(&s->slots[i].lock, NULL);
    s->slots[i].first = AX_NONE;
  }
  for (int i = 0; i < stage_counters; i++) ax_counter_reset(&s->counters[i]);
  for (uint32_t f = 0; f < devices; f++) {
    s->coordinates[f] = f;
    s->activations[f] = (ax_activation){.code = &s->code,
                                        .device = f,
                                        .part = s->part,
                                        .entered = &s->entered[f],
                                        .iteration = &s->iteration[f],
                                        .coordinates = &s->coordinates[f],
                                        .passes = f > 0 ? 1 : 0};
  }
}

static inline void stage_tear_down(stage *s) {
  for (int i = 0; i < stage_slots; i++) {
    if (s->slots[i].scratch != NULL) ax_pool_free(&s->executor.pool, s->slots[i].scratch, scratch_bytes);
    pthread_mutex_destroy(&s->slots[i].lock);
    ax_free(s->slots[i].spans);
  }
  for (int i = 0; i < AX_STRIPES; i++) pthread_mutex_destroy(&s->run.stripes[i]);
  pthread_cond_destroy(&s->run.change);
  pthread_mutex_destroy(&s->run.lock);
  ax_free(s->run.posts);
  ax_pool_deinit(&s->executor.pool);
}

#endif
