/* Links: the queues of messages. There is one for each source, target, set of axes and link number that some instruction names.
   They are numbered by sorting the ends that all instructions have on all devices, so the cost is n log n in the number of these
   ends. */
#include <stdlib.h>
#include <string.h>

#include "assemble/assembly.h"

/* One end of a link: that of an instruction on a device. Also says where the link's number goes. */
typedef struct end {
  ax_axis_set axes;
  int64_t number;
  uint32_t source, target;
  uint32_t *out;
} end;

typedef struct linker {
  ax_assembly *a;
  end *ends;
  size_t count, room;
  int64_t *other; /* by member: the member on the other side; -1: none */
} linker;

static int by_link(const void *a, const void *b) {
  const end *x = a, *y = b;
  if (x->axes != y->axes) return x->axes < y->axes ? -1 : 1;
  if (x->number != y->number) return x->number < y->number ? -1 : 1;
  if (x->source != y->source) return x->source < y->source ? -1 : 1;
  return x->target < y->target ? -1 : x->target > y->target;
}

static bool is_message(const ax_instr *instr) { return instr->kind == AX_INSTR_SEND || instr->kind == AX_INSTR_RECEIVE; }

/* The ends on all devices, and room for the table of their links. */
static ax_status add_ends(linker *l, const ax_mail *message, bool sends, uint32_t *table) {
  const ax_mesh *mesh = &l->a->plan->mesh;
  const uint32_t devices = l->a->compiled->devices;
  const int64_t members = ax_axis_set_size(message->axes, mesh);
  for (int64_t m = 0; m < members; m++) l->other[m] = -1;
  for (uint32_t i = 0; i < message->pairs->count; i++) l->other[message->pairs->v[i][!sends]] = message->pairs->v[i][sends];
  for (uint32_t d = 0; d < devices; d++) {
    int64_t other = l->other[ax_axes_index(&message->names, mesh, d)];
    table[d] = AX_NONE;
    if (other < 0) continue;
    uint32_t there = (uint32_t)ax_axes_device(&message->names, mesh, d, other);
    l->ends[l->count++] = (end){message->axes, message->link, sends ? d : there, sends ? there : d, &table[d]};
  }
  return AX_OK;
}

static ax_status describe(linker *l, uint32_t i) {
  ax_compiled *c = l->a->compiled;
  ax_instr *instr = &l->a->instrs[i];
  const ax_mail *message = l->a->ops[i]->message;
  const ax_buffer *buffer = &l->a->plan->buffers[message->buffer];
  ax_side *side = ax_arena_alloc(&c->plan->arena, sizeof *side);
  uint32_t *table = ax_arena_alloc(&c->plan->arena, c->devices * sizeof table[0]);
  if (side == NULL || table == NULL) return ax_out_of_memory(c->devices * sizeof table[0]);
  *side = (ax_side){table, buffer->type, ax_buffer_bytes(buffer)};
  instr->side = side;
  return add_ends(l, message, instr->kind == AX_INSTR_SEND, table);
}

static ax_status number(linker *l) {
  ax_compiled *c = l->a->compiled;
  uint32_t count = 0;
  if (l->count > 0) qsort(l->ends, l->count, sizeof l->ends[0], by_link);
  for (size_t i = 0; i < l->count; i++) {
    count += i == 0 || by_link(&l->ends[i - 1], &l->ends[i]) != 0;
    *l->ends[i].out = count - 1;
  }
  if (count > AX_NONE - c->counter_count) return ax_error(AX_OUT_OF_MEMORY, "compile: more than 2^32 counters");
  c->links = ax_arena_alloc(&c->plan->arena, count * sizeof c->links[0]);
  if (c->links == NULL) return ax_out_of_memory(count * sizeof c->links[0]);
  for (size_t i = 0; i < l->count; i++) c->links[*l->ends[i].out] = (ax_link){l->ends[i].source, l->ends[i].target};
  c->first_link = c->counter_count;
  c->link_count = count;
  c->counter_count += count;
  return AX_OK;
}

/* An operand that devices share may be written by another of them as soon as this one has signalled its push. */
static void find_lenders(ax_assembly *a) {
  for (uint32_t i = 0; i < a->instr_count; i++) {
    ax_push *push = a->instrs[i].kind == AX_INSTR_PUSH ? a->instrs[i].push : NULL;
    if (push != NULL) push->lends = !a->shared[a->plan->buffers[push->exchange->in].allocation];
  }
}

ax_status ax_instrs_links(ax_assembly *a) {
  linker l = {.a = a};
  ax_compiled *c = a->compiled;
  ax_arena scratch = {0};
  c->first_loan = c->counter_count;
  if (c->map != NULL) {
    c->counter_count += c->devices;
    find_lenders(a);
  }
  for (uint32_t i = 0; i < a->instr_count; i++) l.room += is_message(&a->instrs[i]) ? c->devices : 0;
  c->first_link = c->counter_count;
  if (l.room == 0) return AX_OK;
  l.ends = ax_arena_alloc(&scratch, l.room * sizeof l.ends[0]);
  l.other = ax_arena_alloc(&scratch, c->devices * sizeof l.other[0]);
  ax_status status = l.ends == NULL || l.other == NULL ? ax_out_of_memory(l.room * sizeof l.ends[0]) : AX_OK;
  for (uint32_t i = 0; i < a->instr_count && status == AX_OK; i++)
    if (is_message(&a->instrs[i])) status = describe(&l, i);
  if (status == AX_OK) status = number(&l);
  ax_arena_deinit(&scratch);
  return status;
}
