/* jax.debug.inspect_array_sharding: tells how values lie that a module asks for. */
#include <string.h>

#include "axle/transform.h"
#include "bridge/stablehlo_read.h"
#include "mesh/assignment.h"
#include "pjrt/ffi.h"
#include "pjrt/shardings.h"

/* Whom JAX has told to be called with a layout, which it writes into the module as it lies in memory; the error's text, if there is one, is
   given back by free_error. */
typedef struct inspection {
  const char *sharding;
  size_t sharding_bytes;
  const char *error;
  void *scratch;
  void (*free_error)(struct inspection *inspection);
} inspection;
typedef struct inspector {
  void (*call)(void *data, inspection *inspection);
  void *data;
} inspector;

static ax_pjrt_error *tell(const ax_inspected *value) {
  ax_sharding lies = {.mesh = value->mesh, .spec = value->spec};
  const ax_pjrt_value described = {.block.rank = value->rank, .sharding = value->told ? &lies : NULL, .by_hand = value->by_hand};
  inspection told = {0};
  inspector who;
  char *bytes;
  if (value->text_bytes != sizeof who) return NULL;
  memcpy(&who, value->text, sizeof who);
  AX_PJRT_TRY(ax_pjrt_sharding_bytes(&described, &bytes, &told.sharding_bytes));
  told.sharding = bytes;
  who.call(who.data, &told);
  ax_free(bytes);
  if (told.error == NULL) return NULL;
  ax_pjrt_error *error = ax_pjrt_fail(AX_PJRT_INTERNAL, "%s", told.error);
  if (told.free_error != NULL) told.free_error(&told);
  return error;
}

/* The partitioner answers as it comes by. */
static ax_status ask(const ax_program *program) {
  ax_program *simple, *laid;
  AX_TRY(ax_program_simplify(program, &simple)); /* as ax_compile does before */
  const ax_status status = ax_program_partition(simple, &laid);
  ax_program_release(simple);
  if (status == AX_OK) ax_program_release(laid);
  return status;
}

ax_pjrt_error *ax_pjrt_inspect(const ax_pjrt_program *program) {
  ax_inspections all = {.count = 0};
  ax_hlo_binding binding = {.parts = true, .entry_tokens = true, .inspections = &all};
  ax_program *asks = NULL;
  AX_PJRT_TRY(ax_pjrt_ffi_calls(&binding.custom_calls));
  ax_pjrt_error *error = ax_pjrt_status(ax_program_from_stablehlo_named(program->code, program->code_bytes, "module", &binding, NULL, &asks));
  if (error == NULL) error = ax_pjrt_status(ask(asks));
  for (const ax_inspected *value = all.first; error == NULL && value != NULL; value = value->next) error = tell(value);
  ax_program_release(asks);
  ax_inspections_deinit(&all);
  return error;
}
