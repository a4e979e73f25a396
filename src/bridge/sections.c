/* A block is gone through once. At a call of @SPMDFullToShardShape a section begins; it ends at the last use of what depends on it.
   Operations in between that have nothing to do with it go before it, and those that need its results behind it, where they may
   begin the next section. */
#include "bridge/sections.h"

#include <string.h>

#include "hlo/sdy.h"
#include "mesh/refine.h"
#include "mesh/tiles.h"
#include "prim/hlo_groups.h"

typedef enum side { OUTSIDE, INSIDE, BEHIND } side; /* of a section: where a value is */

typedef struct rewrite {
  ax_hlo_module *module;
  ax_mesh mesh;         /* that refines all tiles, so that computations inside each other have the same axes */
  uint32_t next;        /* the next new value's number */
  unsigned char *sides; /* by value */
  uint32_t *last_use;   /* by value: the place in its block of the operation that has the last use */
} rewrite;

typedef struct section {                                  /* of a block's operations begin .. end */
  const ax_hlo_operation **ins, **outs, **body, **behind; /* each has room for all of them */
  uint32_t in_count, out_count, body_count, behind_count;
} section;

static bool makes_block(const ax_hlo_operation *op) { return ax_hlo_calls_target(op, "SPMDFullToShardShape"); }
static bool makes_whole(const ax_hlo_operation *op) { return ax_hlo_calls_target(op, "SPMDShardToFullShape"); }

/* --- Tiles as layouts of sdy --- */

typedef struct layout { /* of an operand or a result; over a mesh of its own until all are known */
  ax_mesh mesh;
  ax_spec spec;
} layout;

static const ax_hlo_attribute *tiles_of(const ax_hlo_operation *op) {
  const ax_hlo_attribute *found = op != NULL ? ax_hlo_find(op, "mhlo.sharding") : NULL;
  return found != NULL && found->kind == AX_HLO_STRING ? found : NULL;
}

/* The layout that a text of tiles is; without axes if all is whole. `text` has no dimensions that are taken by hand. */
static ax_status read_tiles(const char *text, layout *out) {
  ax_tiles tiles;
  *out = (layout){0};
  AX_TRY(ax_tiles_parse(text, &tiles));
  const bool whole = tiles.kind == AX_TILES_REPLICATED;
  const bool laid = tiles.kind == AX_TILES_TILED && ax_tiles_simplify(&tiles) && ax_tiles_lay(&tiles, &out->mesh, &out->spec);
  ax_tiles_deinit(&tiles);
  if (whole || laid) return AX_OK;
  return ax_error(AX_ABSENT, "a manual computation over tiles that no mesh has: %.200s", text);
}

enum { most_text = 512 }; /* bytes of tiles that a mesh has; lists of devices are longer */

static ax_status copy_text(const ax_hlo_attribute *from, char out[most_text]) {
  if (from->text.length >= most_text) return ax_error(AX_ABSENT, "a manual computation over tiles that list their devices");
  memcpy(out, from->text.start, from->text.length);
  out[from->text.length] = '\0';
  return AX_OK;
}

static const char last_mark[] = " last_tile_dims={";

/* {devices=[1,1,4,2]<=[8] last_tile_dims={manual, replicated}}: the axes of its dimension `manual`, counted from the end of the
   tiles. {manual}: *all. */
static ax_status read_by_hand(const ax_hlo_attribute *from, layout *out, ax_axis_set *set, bool *all) {
  char text[most_text];
  *all = from == NULL || ax_hlo_slice_is(from->text, "{manual}");
  *set = 0;
  if (*all) return AX_OK;
  AX_TRY(copy_text(from, text));
  char *last = strstr(text, last_mark);
  const char *manual = strstr(text, "manual");
  if (last == NULL || manual == NULL) return ax_error(AX_INVALID_ARGUMENT, "tiles of a block that say nothing of manual: %s", text);
  uint32_t behind = 0;
  for (const char *at = manual; *at != '\0' && *at != '}'; at++) behind += *at == ',';
  memcpy(last, "}", 2);
  AX_TRY(read_tiles(text, out));
  if (behind >= out->spec.rank) return ax_error(AX_INVALID_ARGUMENT, "tiles of a block with more names than dimensions");
  const uint32_t d = out->spec.rank - 1 - behind;
  for (uint32_t k = 0; k < out->spec.count[d]; k++) *set |= (ax_axis_set)1 << out->spec.axis[d][k];
  return AX_OK;
}

/* The layout that a call says its whole array has. What stands behind its dimensions is not asked for. */
static ax_status read_whole(const ax_hlo_attribute *from, layout *out) {
  char text[most_text];
  *out = (layout){0};
  if (from == NULL || ax_hlo_slice_is(from->text, "{manual}")) return AX_OK;
  AX_TRY(copy_text(from, text));
  char *last = strstr(text, last_mark);
  if (last != NULL) memcpy(last, "}", 2);
  return read_tiles(text, out);
}

static ax_status refine(const ax_mesh *with, ax_mesh *mesh) {
  ax_mesh both;
  if (with->count == 0) return AX_OK;
  if (mesh->count == 0) {
    *mesh = *with;
    return AX_OK;
  }
  if (ax_mesh_devices(with) != ax_mesh_devices(mesh) || !ax_mesh_refine(mesh, with, &both))
    return ax_error(AX_ABSENT, "a manual computation over tiles that have no mesh together");
  *mesh = both;
  return AX_OK;
}

static void add_axis_names(ax_text *text, const ax_axis_list *run, bool *first) {
  for (uint32_t k = 0; k < run->count; k++, *first = false) ax_text_add(text, "%s\"t%u\"", *first ? "" : ", ", run->axis[k]);
}

/* <mesh<["t0"=4, "t1"=2]>, [{"t0"}, {}]> */
static void add_layout(ax_text *text, const layout *l, const ax_mesh *mesh, uint32_t rank) {
  ax_axis_list runs[AX_MAX_AXES];
  if (l->mesh.count > 0) ax_mesh_runs(mesh, 0, &l->mesh, runs);
  ax_text_add(text, "<mesh<[");
  for (uint32_t i = 0; i < mesh->count; i++)
    ax_text_add(text, "%s\"t%u\"=%lld", i > 0 ? ", " : "", i, (long long)mesh->axis[i].size);
  ax_text_add(text, "]>, [");
  for (uint32_t d = 0; d < rank; d++) {
    bool first = true;
    ax_text_add(text, d > 0 ? ", {" : "{");
    for (uint32_t k = 0; d < l->spec.rank && k < l->spec.count[d]; k++) add_axis_names(text, &runs[l->spec.axis[d][k]], &first);
    ax_text_add(text, "}");
  }
  ax_text_add(text, "]>");
}

/* --- The operation --- */

static ax_status keep(ax_hlo_module *module, ax_text *text, const char *name, ax_hlo_attribute *out) {
  const char *copy = text->failed ? NULL : ax_arena_copy(&module->arena, text->data, text->length + 1);
  *out = (ax_hlo_attribute){.kind = AX_HLO_OPAQUE, .name = {name, strlen(name)}, .text = {copy, text->length}};
  ax_text_deinit(text);
  return copy != NULL ? AX_OK : ax_out_of_memory(text->length);
}

/* Whether the mesh of all refines this one, too. */
static ax_status check_refined(const rewrite *w, const layout *l) {
  ax_mesh both = w->mesh;
  AX_TRY(refine(&l->mesh, &both));
  return both.count == w->mesh.count ? AX_OK : ax_error(AX_ABSENT, "a manual computation over tiles that have no mesh together");
}

typedef struct layouts { /* of all operands and results, and of what they say of hand-made blocks */
  layout *whole;
  layout by_hand; /* the first that does not take all axes */
  ax_axis_set set;
  bool all;
} layouts;

typedef struct by_hand { /* what one call says is taken by hand */
  layout tiles;
  ax_axis_set set;
  bool all;
} by_hand;

/* What a call between blocks and whole arrays says of both. in: it makes a block. */
static ax_status read_call(const rewrite *w, const ax_hlo_operation *op, bool in, layout *whole, by_hand *out) {
  const ax_hlo_operation *maker = w->module->makers[op->operands[0]];
  *out = (by_hand){0};
  AX_TRY(read_whole(in ? tiles_of(maker) : tiles_of(op), whole));
  AX_TRY(read_by_hand(in                                                            ? tiles_of(op)
                      : ax_hlo_calls_target(maker != NULL ? maker : op, "Sharding") ? tiles_of(maker)
                                                                                    : NULL,
                      &out->tiles, &out->set, &out->all));
  AX_TRY(check_refined(w, whole));
  return check_refined(w, &out->tiles);
}

static ax_status find_layouts(const rewrite *w, const section *s, layouts *l) {
  l->all = true;
  for (uint32_t i = 0; i < s->in_count + s->out_count; i++) {
    const bool in = i < s->in_count;
    const ax_hlo_operation *op = in ? s->ins[i] : s->outs[i - s->in_count];
    by_hand own;
    AX_TRY(ax_hlo_blame(w->module, op, read_call(w, op, in, &l->whole[i], &own)));
    if (own.all || !l->all) continue;
    l->all = false, l->by_hand = own.tiles, l->set = own.set;
  }
  return AX_OK;
}

static ax_status add_layouts(const rewrite *w, const section *s, const layouts *l, bool in, ax_hlo_attribute *out) {
  ax_text text = {0};
  const uint32_t count = in ? s->in_count : s->out_count;
  ax_text_add(&text, "[");
  for (uint32_t i = 0; i < count; i++) {
    const ax_hlo_operation *op = in ? s->ins[i] : s->outs[i];
    const uint32_t whole = in ? op->operands[0] : op->result;
    ax_text_add(&text, i > 0 ? ", " : "");
    add_layout(&text, &l->whole[in ? i : s->in_count + i], &w->mesh, w->module->values[whole]->rank);
  }
  ax_text_add(&text, "]");
  return keep(w->module, &text, in ? "in_shardings" : "out_shardings", out);
}

static ax_status add_by_hand(const rewrite *w, const layouts *l, ax_hlo_attribute *out) {
  ax_axis_list runs[AX_MAX_AXES];
  ax_text text = {0};
  bool first = true;
  const ax_mesh *own = l->all ? &w->mesh : &l->by_hand.mesh;
  ax_mesh_runs(&w->mesh, 0, own, runs);
  ax_text_add(&text, "{");
  for (uint32_t i = 0; i < own->count; i++)
    if (l->all || (l->set >> i & 1) != 0) add_axis_names(&text, &runs[i], &first);
  ax_text_add(&text, "}");
  return keep(w->module, &text, "manual_axes", out);
}

static ax_status add_attributes(const rewrite *w, const section *s, ax_hlo_operation *op) {
  ax_hlo_attribute *attributes = ax_arena_alloc(&w->module->arena, 3 * sizeof attributes[0]);
  layouts l = {.whole = ax_calloc(s->in_count + s->out_count + 1, sizeof l.whole[0])};
  ax_status status = attributes != NULL && l.whole != NULL ? AX_OK : ax_out_of_memory(0);
  if (status == AX_OK) status = find_layouts(w, s, &l);
  if (status == AX_OK) status = add_layouts(w, s, &l, true, &attributes[0]);
  if (status == AX_OK) status = add_layouts(w, s, &l, false, &attributes[1]);
  if (status == AX_OK) status = add_by_hand(w, &l, &attributes[2]);
  ax_free(l.whole);
  op->attributes = attributes, op->attribute_count = 3;
  return status;
}

static uint32_t new_value(rewrite *w, const ax_hlo_value_type *type, const ax_hlo_operation *maker) {
  w->module->values[w->next] = type;
  w->module->makers[w->next] = maker;
  w->module->value_count = w->next + 1;
  return w->next++;
}

/* result = operand, in the place of a call. NULL: no memory. */
static const ax_hlo_operation *same(rewrite *w, const ax_hlo_operation *call, uint32_t operand) {
  ax_hlo_operation *op = ax_arena_alloc(&w->module->arena, sizeof *op);
  uint32_t *operands = ax_arena_alloc(&w->module->arena, sizeof operands[0]);
  if (op == NULL || operands == NULL) return NULL;
  operands[0] = operand;
  *op = (ax_hlo_operation){.name = {"sdy.propagation_barrier", 23},
                           .operands = operands,
                           .operand_count = 1,
                           .result_count = 1,
                           .result = call->result,
                           .place = call->place};
  w->module->makers[call->result] = op;
  return op;
}

/* The section's operations between those that take its arguments and its return. */
static ax_status add_region(rewrite *w, const section *s, ax_hlo_operation *op) {
  ax_arena *arena = &w->module->arena;
  const uint32_t count = s->in_count + s->body_count + 1;
  ax_hlo_region *region = ax_arena_alloc(arena, sizeof *region);
  ax_hlo_block *block = ax_arena_alloc(arena, sizeof *block);
  ax_hlo_operation *end = ax_arena_alloc(arena, sizeof *end);
  uint32_t *results = ax_arena_alloc(arena, (s->out_count + 1) * sizeof results[0]);
  const ax_hlo_operation **operations = ax_arena_alloc(arena, count * sizeof operations[0]);
  if (region == NULL || block == NULL || end == NULL || results == NULL || operations == NULL) return ax_out_of_memory(0);
  *block = (ax_hlo_block){.argument = w->next, .argument_count = s->in_count, .operation_count = count, .operations = operations};
  for (uint32_t i = 0; i < s->in_count; i++) new_value(w, w->module->values[s->ins[i]->result], NULL);
  for (uint32_t i = 0; i < s->in_count; i++) {
    operations[i] = same(w, s->ins[i], block->argument + i);
    if (operations[i] == NULL) return ax_out_of_memory(sizeof *end);
  }
  if (s->body_count > 0) memcpy(operations + s->in_count, s->body, s->body_count * sizeof s->body[0]);
  for (uint32_t k = 0; k < s->out_count; k++) results[k] = s->outs[k]->operands[0];
  *end = (ax_hlo_operation){.name = {"sdy.return", 10}, .operands = results, .operand_count = s->out_count, .place = op->place};
  operations[count - 1] = end;
  *region = (ax_hlo_region){1, block};
  op->regions = region, op->region_count = 1;
  return AX_OK;
}

static ax_status make_computation(rewrite *w, const section *s, const ax_hlo_operation **out) {
  ax_arena *arena = &w->module->arena;
  ax_hlo_operation *op = ax_arena_alloc(arena, sizeof *op);
  uint32_t *operands = ax_arena_alloc(arena, (s->in_count + 1) * sizeof operands[0]);
  if (op == NULL || operands == NULL) return ax_out_of_memory(sizeof *op);
  for (uint32_t i = 0; i < s->in_count; i++) operands[i] = s->ins[i]->operands[0];
  *op = (ax_hlo_operation){.name = {"sdy.manual_computation", 22},
                           .operands = operands,
                           .operand_count = s->in_count,
                           .result_count = s->out_count,
                           .result = w->next,
                           .place = s->ins[0]->place};
  AX_TRY(add_attributes(w, s, op));
  for (uint32_t k = 0; k < s->out_count; k++) new_value(w, w->module->values[s->outs[k]->result], op);
  AX_TRY(add_region(w, s, op));
  *out = op;
  return AX_OK;
}

/* --- Blocks --- */

/* Calls visit for each value that the operation uses, also in its regions. */
static void visit_uses(const ax_hlo_operation *op, void (*visit)(void *context, uint32_t value), void *context) {
  for (uint32_t i = 0; i < op->operand_count; i++) visit(context, op->operands[i]);
  for (uint32_t r = 0; r < op->region_count; r++)
    for (uint32_t b = 0; b < op->regions[r].block_count; b++)
      for (uint32_t k = 0; k < op->regions[r].blocks[b].operation_count; k++)
        visit_uses(op->regions[r].blocks[b].operations[k], visit, context);
}

typedef struct use {
  rewrite *w;
  uint32_t place;
  bool inside, behind;
} use;

static void note_last(void *context, uint32_t value) {
  const use *u = context;
  u->w->last_use[value] = u->place;
}

static void note_side(void *context, uint32_t value) {
  use *u = context;
  u->inside = u->inside || u->w->sides[value] == INSIDE;
  u->behind = u->behind || u->w->sides[value] == BEHIND;
}

static void set_sides(rewrite *w, const ax_hlo_operation *op, side to) {
  for (uint32_t k = 0; k < op->result_count; k++) w->sides[op->result + k] = (unsigned char)to;
}

static ax_status check_call(const ax_hlo_operation *op) {
  if (op->operand_count == 1 && op->result_count == 1) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "a call between blocks and whole arrays takes one operand and gives one result");
}

/* Sorts the operation into the section, or before it (*out), or behind it. */
static ax_status sort_operation(rewrite *w, section *s, const ax_hlo_operation *op, uint32_t *end, bool *outside) {
  use u = {.w = w};
  visit_uses(op, note_side, &u);
  *outside = false;
  if (u.inside && u.behind) return ax_error(AX_ABSENT, "an operation needs blocks of a manual computation, and what comes of them");
  if (u.behind) {
    set_sides(w, op, BEHIND);
    s->behind[s->behind_count++] = op;
  } else if (makes_block(op) && !u.inside) {
    AX_TRY(check_call(op));
    set_sides(w, op, INSIDE);
    s->ins[s->in_count++] = op;
  } else if (u.inside && makes_whole(op)) {
    AX_TRY(check_call(op));
    set_sides(w, op, BEHIND);
    s->outs[s->out_count++] = op;
  } else if (u.inside) {
    set_sides(w, op, INSIDE);
    s->body[s->body_count++] = op;
  } else {
    *outside = true;
  }
  for (uint32_t k = 0; k < op->result_count && w->sides[op->result] == INSIDE; k++)
    if (w->last_use[op->result + k] > *end) *end = w->last_use[op->result + k];
  return AX_OK;
}

typedef struct block_run {
  const ax_hlo_operation **out; /* the block's new operations */
  uint32_t out_count, floor;    /* uses before `floor` may have moved up to it */
} block_run;

/* Ends the section: its computation, and the whole values that come of it. */
static ax_status end_section(rewrite *w, section *s, block_run *b) {
  const ax_hlo_operation *made = NULL;
  AX_TRY(make_computation(w, s, &made));
  b->out[b->out_count++] = made;
  for (uint32_t k = 0; k < s->out_count; k++) {
    const ax_hlo_operation *whole = same(w, s->outs[k], made->result + k);
    if (whole == NULL) return ax_out_of_memory(sizeof *whole);
    b->out[b->out_count++] = whole;
    w->sides[s->outs[k]->result] = OUTSIDE;
  }
  for (uint32_t k = 0; k < s->behind_count; k++) set_sides(w, s->behind[k], OUTSIDE);
  return AX_OK;
}

/* The section that begins at *at, where the operations go on afterwards. */
static ax_status rewrite_section(rewrite *w, section *s, const ax_hlo_operation **operations, uint32_t count, uint32_t *at,
                                 block_run *b) {
  uint32_t end = *at < b->floor ? b->floor : *at;
  s->in_count = s->out_count = s->body_count = s->behind_count = 0;
  for (uint32_t i = *at; i <= end && i < count; i++) {
    bool outside;
    AX_TRY(ax_hlo_blame(w->module, operations[i], sort_operation(w, s, operations[i], &end, &outside)));
    if (outside) b->out[b->out_count++] = operations[i];
  }
  if (end >= count) end = count - 1;
  AX_TRY(end_section(w, s, b));
  b->floor = end;
  *at = end + 1 - s->behind_count;
  if (s->behind_count > 0) memcpy(operations + *at, s->behind, s->behind_count * sizeof operations[0]);
  return AX_OK;
}

static ax_status rewrite_operations(rewrite *w, ax_hlo_block *block, section *s, const ax_hlo_operation **operations) {
  /* A section adds one operation, and takes two at least: a call that begins it and those that come of it. */
  block_run b = {.out = ax_arena_alloc(&w->module->arena, (2 * (size_t)block->operation_count + 1) * sizeof b.out[0])};
  if (b.out == NULL) return ax_out_of_memory(block->operation_count * sizeof b.out[0]);
  for (uint32_t i = 0; i < block->operation_count; i++) {
    use u = {.w = w, .place = i};
    visit_uses(operations[i], note_last, &u);
  }
  for (uint32_t i = 0; i < block->operation_count;) {
    if (makes_block(operations[i]))
      AX_TRY(rewrite_section(w, s, operations, block->operation_count, &i, &b));
    else
      b.out[b.out_count++] = operations[i++];
  }
  block->operations = b.out, block->operation_count = b.out_count;
  return AX_OK;
}

static ax_status rewrite_block(rewrite *w, ax_hlo_block *block);

/* Regions first: what they hold stays where it is. Modules are the arena's, and may be written until they are read. */
static ax_status rewrite_inner(rewrite *w, const ax_hlo_block *block, bool *here) {
  for (uint32_t i = 0; i < block->operation_count; i++) {
    const ax_hlo_operation *op = block->operations[i];
    *here = *here || makes_block(op);
    for (uint32_t r = 0; r < op->region_count; r++)
      for (uint32_t k = 0; k < op->regions[r].block_count; k++) AX_TRY(rewrite_block(w, (ax_hlo_block *)&op->regions[r].blocks[k]));
  }
  return AX_OK;
}

static ax_status rewrite_block(rewrite *w, ax_hlo_block *block) {
  bool here = false;
  AX_TRY(rewrite_inner(w, block, &here));
  if (!here) return AX_OK;
  const size_t count = block->operation_count;
  const ax_hlo_operation **lists = ax_calloc(5 * count, sizeof lists[0]);
  if (lists == NULL) return ax_out_of_memory(5 * count * sizeof lists[0]);
  memcpy(lists, block->operations, count * sizeof lists[0]);
  section s = {.ins = lists + count, .outs = lists + 2 * count, .body = lists + 3 * count, .behind = lists + 4 * count};
  const ax_status status = rewrite_operations(w, block, &s, lists);
  ax_free(lists);
  return status;
}

/* --- The module --- */

/* Counts calls, and refines the mesh by what they say. Tiles that have no mesh are refused where they are needed. */
static uint32_t count_calls(const ax_hlo_block *block, ax_mesh *mesh) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < block->operation_count; i++) {
    const ax_hlo_operation *op = block->operations[i];
    const bool counts = makes_block(op) || makes_whole(op);
    layout own;
    count += counts;
    if ((counts || ax_hlo_calls_target(op, "Sharding")) && read_whole(tiles_of(op), &own) == AX_OK) (void)refine(&own.mesh, mesh);
    for (uint32_t r = 0; r < op->region_count; r++)
      for (uint32_t b = 0; b < op->regions[r].block_count; b++) count += count_calls(&op->regions[r].blocks[b], mesh);
  }
  return count;
}

/* Where nothing is cut, one axis of all devices, as many as the module says. */
static ax_status need_axes(const ax_hlo_module *module, ax_mesh *mesh) {
  for (uint32_t i = 0; i < module->attribute_count && mesh->count == 0; i++) {
    const ax_hlo_attribute *a = &module->attributes[i];
    if (!ax_hlo_slice_is(a->name, "mhlo.num_partitions")) continue;
    if (a->kind != AX_HLO_INTEGER || a->integer < 1 || a->integer > AX_HLO_MOST_DEVICES)
      return ax_error(AX_INVALID_ARGUMENT, "%s: mhlo.num_partitions must be an integer from 1 to %d", module->source, (int)AX_HLO_MOST_DEVICES);
    *mesh = (ax_mesh){.count = 1, .axis = {{.name = "t0", .size = a->integer}}};
  }
  if (mesh->count > 0) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "%s: a manual computation, and mhlo.num_partitions is missing", module->source);
}

ax_status ax_hlo_manual_sections(ax_hlo_module *module) {
  const uint32_t count = module->value_count;
  rewrite w = {.module = module, .next = count};
  const uint32_t more = count_calls(&module->body, &w.mesh);
  uint32_t value_room = count, maker_room = count;
  if (more == 0) return AX_OK;
  AX_TRY(need_axes(module, &w.mesh));
  AX_TRY(ax_grow(&module->values, sizeof module->values[0], count, more, &value_room));
  AX_TRY(ax_grow(&module->makers, sizeof module->makers[0], count, more, &maker_room));
  w.sides = ax_calloc(count + more, sizeof w.sides[0]);
  w.last_use = ax_calloc(count + more, sizeof w.last_use[0]);
  ax_status status = w.sides != NULL && w.last_use != NULL ? AX_OK : ax_out_of_memory((count + more) * sizeof w.last_use[0]);
  if (status == AX_OK) status = rewrite_block(&w, &module->body);
  ax_free(w.sides);
  ax_free(w.last_use);
  return status;
}
