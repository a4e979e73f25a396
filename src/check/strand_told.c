/* Dependences between points in words:

     dependence between points: point (1) reads what point (0) has written to scratch 0[0:4] of device 0, and dimension 0 of the
     grid is AX_PARALLEL
       point (1): load, at kernel.c:12
       point (0): store, at kernel.c:14 */
#include "check/strand_access.h"

typedef struct teller {
  const ax_machine *machine;
  const ax_act_record *record;
  const uint32_t *slots;
  const ax_dependence *d;
} teller;

static void find_ids(const teller *t, uint32_t point, int64_t *ids) {
  const ax_dims *grid = &t->machine->params->grid;
  for (uint32_t d = grid->count; d-- > 0;) {
    ids[d] = point % grid->v[d];
    point /= (uint32_t)grid->v[d];
  }
}

static void add_point(const teller *t, uint32_t point, ax_text *text) {
  int64_t ids[AX_MAX_RANK];
  if (point == AX_NONE) {
    ax_text_add(text, "another point");
    return;
  }
  find_ids(t, point, ids);
  for (uint32_t d = 0; d < t->machine->params->grid.count; d++)
    ax_text_add(text, d == 0 ? "point (%lld" : ", %lld", (long long)ids[d]);
  ax_text_add(text, ")");
}

/* The first parallel dimension along which the two differ. */
static uint32_t dimension_of(const teller *t) {
  const ax_kernel_params *p = t->machine->params;
  int64_t a[AX_MAX_RANK], b[AX_MAX_RANK];
  if (t->d->later_point != AX_NONE) find_ids(t, t->d->later_point, a);
  if (t->d->earlier_point != AX_NONE) find_ids(t, t->d->earlier_point, b);
  const bool both = t->d->later_point != AX_NONE && t->d->earlier_point != AX_NONE;
  uint32_t found = AX_NONE;
  for (uint32_t d = 0; d < p->grid.count; d++) {
    if (p->semantics.v[d] != AX_PARALLEL || p->grid.v[d] < 2) continue;
    if (both && a[d] != b[d]) return d;
    if (found == AX_NONE) found = d;
  }
  return found;
}

/* --- Acts --- */

static const ax_act *act_of(const teller *t, uint32_t step) { return &t->record->steps[step].act; }

static bool touches(const teller *t, uint32_t step, bool write) {
  const ax_act *act = act_of(t, step);
  for (uint32_t k = act->touch_first; k < act->touch_first + act->touch_count; k++)
    if (t->record->touches.touches[k].write == write) return true;
  return false;
}

static void add_act(const teller *t, uint32_t point, uint32_t step, ax_text *text) {
  if (step == AX_NONE) return;
  const ax_act_step *of = &t->record->steps[step];
  ax_text_add(text, "\n  ");
  add_point(t, point, text);
  ax_text_add(text, ": ");
  if (!t->record->objects.agents[of->agent].initial) ax_text_add(text, "%s: ", t->record->objects.agents[of->agent].name);
  ax_act_print(&t->record->objects, &of->act, text);
  if (of->act.span != NULL) ax_text_add(text, ", in %s", of->act.span);
  if (of->act.location != NULL) ax_text_add(text, ", at %s", of->act.location);
}

static void add_memory(const teller *t, ax_text *text) {
  const ax_act_region *region = &t->record->objects.regions[t->d->region];
  const uint32_t slot = t->slots[t->d->region], operands = t->machine->operand_count;
  if (slot > operands)
    ax_text_add(text, "the block of result %u", slot - 1 - operands);
  else if (slot > 0)
    ax_text_add(text, "the block of operand %u", slot - 1);
  else
    ax_act_region_print(region, t->d->bytes, t->d->byte_count, text);
  ax_text_add(text, " of device %u", region->device);
}

static void add_object(const teller *t, ax_text *text) {
  const ax_act_objects *o = &t->record->objects;
  if (t->d->barrier)
    ax_text_add(text, "barrier %s of device %u", o->barriers[t->d->object].name, o->barriers[t->d->object].device);
  else
    ax_text_add(text, "semaphore %s of device %u", o->semaphores[t->d->object].name, o->semaphores[t->d->object].device);
}

/* --- Each fault --- */

static void add_meeting(const teller *t, ax_text *text) {
  const bool writes = touches(t, t->d->later, true), other = touches(t, t->d->earlier, true);
  add_point(t, t->d->later_point, text);
  ax_text_add(text, other && writes ? " and " : writes ? " writes what " : " reads what ");
  add_point(t, t->d->earlier_point, text);
  ax_text_add(text, other && writes ? " both write " : writes ? " reads of " : " writes to ");
  add_memory(t, text);
}

static void add_fault(const teller *t, ax_text *text) {
  const ax_dependence *d = t->d;
  if (d->fault == AX_STRAND_MEETS) {
    add_meeting(t, text);
    return;
  }
  add_point(t, d->later_point, text);
  if (d->fault == AX_STRAND_LEAVES) {
    ax_text_add(text, " leaves to others what it has done to ");
    add_object(t, text);
    return;
  }
  ax_text_add(text, d->fault == AX_STRAND_READS || d->fault == AX_STRAND_KEEPS ? " reads what "
                    : d->fault == AX_STRAND_WAITS                              ? " waits for what "
                                                                               : " reads a count that ");
  add_point(t, d->earlier_point, text);
  ax_text_add(text, d->fault == AX_STRAND_READS   ? " has written to "
                    : d->fault == AX_STRAND_KEEPS ? " has stored, as other points come between the two, to "
                    : d->fault == AX_STRAND_WAITS ? " has done to "
                                                  : " has changed, of ");
  if (d->fault == AX_STRAND_READS || d->fault == AX_STRAND_KEEPS)
    add_memory(t, text);
  else
    add_object(t, text);
}

static uint32_t position_of(const ax_act_record *record, uint32_t step) {
  uint32_t position = 0;
  for (uint32_t s = 0; s < step; s++) position += record->steps[s].agent == record->steps[step].agent;
  return position;
}

/* Of two stores of a block that are the same act, the points follow from the block, and the act is told once. */
ax_status ax_dependence_tell(const ax_machine *machine, const ax_act_record *record, const uint32_t *slots, const ax_dependence *d,
                             ax_act_finding *out) {
  const teller t = {machine, record, slots, d};
  ax_text text = {0};
  *out = ax_act_finding_of(AX_FINDING_BETWEEN_POINTS);
  ax_text_add(&text, "%s: ", ax_finding_kind_name(out->kind));
  add_fault(&t, &text);
  ax_text_add(&text, ", and dimension %u of the grid is AX_PARALLEL", dimension_of(&t));
  add_act(&t, d->later_point, d->later, &text);
  if (d->earlier != d->later) add_act(&t, d->earlier_point, d->earlier, &text);
  ax_status status = ax_text_finish(&text, &out->text);
  for (uint32_t s = 0; s < d->later && status == AX_OK; s++) status = ax_interleaving_add(&out->schedule, record->steps[s].agent);
  out->agent = record->steps[d->later].agent;
  out->position = position_of(record, d->later);
  out->reordered = d->earlier != AX_NONE && d->earlier != d->later;
  if (out->reordered) {
    out->other = record->steps[d->earlier].agent;
    out->other_position = position_of(record, d->earlier);
  }
  if (status == AX_OK) return AX_OK;
  ax_interleaving_deinit(&out->schedule);
  ax_free(out->text);
  return status;
}
