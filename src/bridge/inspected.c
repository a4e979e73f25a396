/* Values whose layouts the caller asks for: jax.debug.inspect_array_sharding writes

     %1 = custom_call @InspectSharding(%0) {backend_config = ".."}        = io_callback[callback="InspectSharding" ..] a

   whose text is the caller's own. If the caller wants them, each is a callback that asks the partitioner how its operand lies (ir/callback.h),
   wherever it stands: in loops, branches and functions, too. */
#include <string.h>

#include "axle/callback.h"
#include "bridge/import.h"
#include "ir/callback.h"

void ax_inspections_deinit(ax_inspections *inspections) { ax_arena_deinit(&inspections->arena); }

/* The entry of the operation with this attribute, which is one however often a body is read. NULL: there are too many. */
static ax_status entry_of(ax_inspections *all, const ax_hlo_attribute *config, uint32_t rank, ax_inspected **out) {
  const ax_hlo_slice text = config->text;
  for (*out = all->first; *out != NULL && (*out)->asks != config;) *out = (*out)->next;
  if (*out != NULL || all->count == AX_HLO_MOST_INSPECTED) return AX_OK;
  ax_inspected *made = *out = ax_arena_alloc(&all->arena, sizeof *made);
  char *copy = ax_arena_alloc(&all->arena, text.length + 1);
  if (made == NULL || copy == NULL) return ax_out_of_memory(sizeof *made + text.length);
  if (text.length > 0) memcpy(copy, text.start, text.length);
  *made = (ax_inspected){.asks = config, .text = copy, .text_bytes = text.length, .rank = rank};
  *(all->last != NULL ? &all->last->next : &all->first) = made;
  all->last = made;
  all->count++;
  return AX_OK;
}

static void note(void *context, const ax_mesh *mesh, const ax_spec *spec, bool by_hand) {
  ax_inspected *inspected = context;
  inspected->told = true;
  inspected->by_hand = by_hand;
  inspected->mesh.count = mesh->count;
  for (uint32_t i = 0; i < mesh->count; i++) inspected->mesh.axis[i] = (ax_axis){.size = mesh->axis[i].size};
  inspected->spec = spec != NULL ? *spec : (ax_spec){0};
}

static ax_status call(ax_callback_call *call, void *context) {
  (void)call, (void)context;
  return ax_error(AX_INTERNAL, "a program that asks for layouts is run");
}

ax_status ax_inspected_read(const ax_hlo_read_args *args) {
  const ax_hlo_attribute *config = ax_hlo_find(args->op, "backend_config");
  ax_inspected *entry;
  ax_callback *callback;
  if (args->op->operand_count != 1 || args->op->result_count > 1) return ax_error(AX_INVALID_ARGUMENT, "it takes one operand");
  if (args->op->result_count == 1) args->out[0] = args->in[0];
  const ax_type type = ax_typeof(args->in[0]);
  if (args->import->inspections == NULL || args->import->alone || type.form != AX_ARRAY || type.spread.unreduced != 0) return AX_OK;
  if (config == NULL || config->kind != AX_HLO_STRING) return AX_OK; /* it is for nobody */
  AX_TRY(entry_of(args->import->inspections, config, type.rank, &entry));
  if (entry == NULL) return AX_OK;
  AX_TRY(ax_callback_create("InspectSharding", call, entry, NULL, &callback));
  callback->lies = note;
  (ax_io_callback)(callback, false, 1, args->in, 0, NULL, 0, NULL);
  ax_callback_release(callback);
  return AX_OK;
}
