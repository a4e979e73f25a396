/* Loads of neighbouring columns, done together. Such loads step over the same rows along the vector loop, and their elements lie
   side by side in each row.

     for i:  f(x[10 i + 3], x[10 i + 4], x[10 i + 5], x[10 i + 6])

   A *line* is the elements of `line` such loads in one row: 16 bytes, or 8 or 4 where there are fewer. Line j of register q
   holds the elements of row `line` * j + q. The registers are then transposed inside of lines:

     a3 a4 a5 a6 | e3 ..        a3 b3 c3 d3 | e3 ..      column 3
     b3 b4 b5 b6 | f3 ..   ->   a4 b4 c4 d4 | e4 ..      column 4
     c3 c4 c5 c6 | g3 ..        a5 b5 c5 d5 | e5 ..
     d3 d4 d5 d6 | h3 ..        a6 b6 c6 d6 | e6 ..

   This takes less than one load for each row. Column by column, each element would take a load and an insertion. No element is
   read that the loads themselves do not read.

   A reduction over short rows whose rows lie in lanes works alike: there the neighbours are the instances of one load.

   Of short rows of which most elements are loaded, all are: whole vectors, and the columns are taken apart (interleave.c). */
#include "jit/emit/nest.h"

enum { most_bytes = 16, least_bytes = 4, most_nodes = 512 };

/* --- Which loads --- */

typedef struct column {
  ax_ex load; /* AX_NONE: done with another line */
  uint32_t instance;
} column;

typedef struct columns { /* of one line */
  column of[AX_LINE_LOADS];
  uint32_t bytes, line, place; /* of a line; elements; which of them is asked for */
} columns;

static bool is_beside(const ax_nest_schedule *s, ax_ex a, ax_ex b) {
  const ax_nest_access *y = &s->accesses[b];
  return y->live && y->guard == AX_NONE && ax_nest_schedule_go_together(s, &s->accesses[a], y);
}

static ax_ex find(const ax_nest_schedule *s, ax_ex load, int64_t offset) {
  for (ax_ex id = 0; id < s->kernel->expr_count; id++)
    if (s->accesses[id].live && s->accesses[id].offset == offset && is_beside(s, load, id)) return id;
  return AX_NONE;
}

/* The code for many lines takes some milliseconds to compile, which few rows do not bring back. A reduction has them along the
   loop, others in all. */
static bool has_many_rows(const ax_nest_schedule *s, uint32_t loop) {
  const int64_t extent = s->loops[loop].extent;
  return extent >= AX_LINE_ROWS || (!s->reduces && extent >= s->lanes && s->work / AX_LINE_LOADS >= AX_LINE_ROWS);
}

/* --- Short rows, whole --- */

typedef struct rows {
  uint32_t row, span;        /* elements of a row; from the first that is loaded to the last */
  ax_ex of[AX_MOST_IN_TURN]; /* by column, from the first that is loaded on: the first load of it; AX_NONE */
} rows;

static bool is_plain(const ax_nest_access *access) { return access->live && access->moved == 0 && access->guard == AX_NONE; }

/* Shuffles of short elements take long to compile. */
static bool find_rows(const ax_nest_schedule *s, ax_ex load, uint32_t loop, rows *r) {
  enum { least = 4, few = 4 };
  const ax_nest_access *access = &s->accesses[load];
  const int64_t row = access->stride[loop];
  if (!is_plain(access) || row < 2 || row > AX_MOST_IN_TURN || access->uneven[loop] != 0) return false;
  const size_t bytes = ax_dtype_bytes(s->kernel->slots[access->slot].dtype);
  if (bytes < least || !ax_nest_takes_turns(row, bytes) || s->kernel->expr_count > most_nodes) return false;
  const int64_t over = access->offset % row, start = access->offset - (over < 0 ? over + row : over);
  uint32_t found = 0, first = AX_MOST_IN_TURN;
  ax_ex at[AX_MOST_IN_TURN];
  *r = (rows){.row = (uint32_t)row};
  for (uint32_t c = 0; c < row; c++) {
    at[c] = find(s, load, start + c);
    if (at[c] == AX_NONE) continue;
    if (first == AX_MOST_IN_TURN) first = c;
    r->span = c + 1 - first;
    found++;
  }
  for (uint32_t c = 0; c < row; c++) r->of[c] = c < r->span ? at[first + c] : AX_NONE;
  return found > 1 && (row <= few ? found * 2 >= row : found * 4 >= row * 3);
}

static bool take_rows(ax_nest *nest, ax_ex load, LLVMValueRef pointer, uint32_t instance, LLVMValueRef *out) {
  const ax_nest_schedule *s = nest->schedule;
  LLVMValueRef vectors[AX_MOST_IN_TURN];
  uint32_t column = 0;
  rows r;
  if (!find_rows(s, load, s->vector, &r)) return false;
  while (column < r.span && r.of[column] != load) column++;
  if (column == r.span) return false;
  LLVMTypeRef element = ax_nest_element(nest, load);
  pointer = ax_nest_advance(nest, element, pointer, ax_cg_i64(&nest->cg, -(int64_t)column));
  ax_nest_load_rows(nest, element, pointer, r.row, r.span, ax_nest_mask(nest, instance) != NULL, vectors);
  for (uint32_t c = 0; c < r.span; c++)
    if (r.of[c] != AX_NONE && c != column) nest->columns[instance * (size_t)s->kernel->expr_count + r.of[c]] = vectors[c];
  *out = vectors[column];
  return true;
}

/* --- Lines --- */

/* Bytes are picked faster, where they can be. */
static bool steps_over_rows(const ax_nest_schedule *s, const ax_nest_access *access, uint32_t loop) {
  const int64_t stride = access->stride[loop];
  if (ax_dtype_bytes(s->kernel->slots[access->slot].dtype) == 1 && ax_stride_picks(stride, s->lanes)) return false;
  return has_many_rows(s, loop) && is_plain(access) && (stride < -1 || stride > 4);
}

/* Cuts the run [first, end) of neighbouring elements, all loaded, into lines, and finds the line that holds `offset`. The first
   line begins with the run. The last one ends with the run and may overlap the line before it; `*own` is its first element that
   the line before does not have. False: the run is too short for a line. */
static bool find_line(columns *c, int64_t first, int64_t end, int64_t offset, uint32_t element, uint32_t lanes, int64_t *start,
                      int64_t *own) {
  for (c->bytes = most_bytes; c->bytes > least_bytes && (end - first < c->bytes / element || lanes < c->bytes / element);
       c->bytes /= 2) {
  }
  c->line = c->bytes / element;
  if (c->line < 2 || end - first < c->line || lanes % c->line != 0) return false;
  *own = first + (offset - first) / c->line * c->line;
  *start = *own + c->line > end ? end - c->line : *own;
  c->place = (uint32_t)(offset - *start);
  return true;
}

/* If several nodes load the same element, which differ only in dimensions of a single index, the first of them takes part in the
   line, and the others are what it is. */
static bool find_columns(const ax_nest_schedule *s, ax_ex load, uint32_t loop, columns *c) {
  const ax_nest_access *access = &s->accesses[load];
  const int64_t offset = access->offset;
  int64_t first = offset, end = offset + 1, start, own;
  if (s->kernel->expr_count > most_nodes || !steps_over_rows(s, access, loop) || find(s, load, offset) != load) return false;
  while (find(s, load, first - 1) != AX_NONE) first--;
  while (find(s, load, end) != AX_NONE) end++;
  if (!find_line(c, first, end, offset, (uint32_t)ax_dtype_bytes(s->kernel->slots[access->slot].dtype), s->lanes, &start, &own))
    return false;
  for (uint32_t i = 0; i < c->line; i++) c->of[i] = (column){start + i < own ? AX_NONE : find(s, load, start + i), 0};
  return true;
}

ax_ex ax_nest_schedule_first_of_column(const ax_nest_schedule *s, ax_ex load) {
  const ax_nest_access *access = &s->accesses[load];
  const int64_t stride = ax_stride_length(access->stride[s->vector]);
  return is_plain(access) && stride > 1 && s->kernel->expr_count <= most_nodes ? find(s, load, access->offset) : load;
}

bool ax_nest_schedule_in_columns(const ax_nest_schedule *schedule, ax_ex load, uint32_t loop) {
  columns c;
  rows r;
  return load < schedule->kernel->expr_count && (find_rows(schedule, load, loop, &r) || find_columns(schedule, load, loop, &c));
}

uint32_t ax_nest_schedule_row_line(const ax_nest_schedule *s, const ax_nest_access *access, uint32_t loop) {
  enum { light = 24 };
  uint32_t last = s->loop_count;
  while (last > 0 && !s->loops[last - 1].reduced) last--;
  if (!s->reduces || s->running || s->weight > light || last == 0 || s->loops[loop].reduced || access->stride[last - 1] != 1 ||
      !steps_over_rows(s, access, loop))
    return 0;
  const uint32_t bytes = (uint32_t)ax_dtype_bytes(s->kernel->slots[access->slot].dtype), line = most_bytes / bytes;
  const bool is_short =
      s->loops[last - 1].extent > 1 && s->loops[last - 1].extent <= AX_MOST_ROW; /* longer ones fill registers by themselves */
  return bytes > 1 && is_short && s->lanes >= line ? line : 0; /* shuffles of bytes take long to compile */
}

int ax_nest_schedule_choose_columns(const ax_nest_schedule *s) {
  enum { most_weight = 96 };
  if (s->reduces || !has_many_rows(s, s->vector)) return -1;
  for (ax_ex id = 0; id < s->kernel->expr_count; id++) {
    const ax_nest_access *access = &s->accesses[id];
    if (!is_plain(access) || (access->stride[s->vector] > -2 && access->stride[s->vector] < 2)) continue;
    for (uint32_t l = 0; l < s->loop_count; l++) {
      const int64_t extent = s->loops[l].extent;
      if (l == s->vector || s->loops[l].ranged || access->stride[l] != 1 || extent > AX_MOST_ROW) continue;
      if (extent * s->weight <= most_weight) return (int)l;
    }
  }
  return -1;
}

/* As find_columns, for the instances of one load along the unrolled loop. */
static bool find_instances(const ax_nest *nest, ax_ex load, uint32_t instance, columns *c) {
  const ax_nest_schedule *s = nest->schedule;
  const ax_nest_access *access = &s->accesses[load];
  int64_t start, own;
  if (s->unrolled == s->vector || access->stride[s->unrolled] != 1 || !steps_over_rows(s, access, s->vector)) return false;
  if (!find_line(c, 0, nest->instances, instance, (uint32_t)ax_dtype_bytes(s->kernel->slots[access->slot].dtype), s->lanes, &start,
                 &own))
    return false;
  for (uint32_t i = 0; i < c->line; i++) c->of[i] = (column){start + i < own ? AX_NONE : load, (uint32_t)start + i};
  return true;
}

/* --- Loads --- */

/* The address of the line in row `row`. If the vector has fewer rows than lanes, missing rows repeat the last one. Masks instead
   would cost a branch for each lane where elements are short. */
static LLVMValueRef line_at(ax_nest *nest, LLVMTypeRef element, LLVMValueRef pointer, const columns *c, int64_t stride, int64_t row,
                            bool whole) {
  if (whole) return ax_nest_advance(nest, element, pointer, ax_cg_i64(&nest->cg, row * stride - c->place));
  LLVMTypeRef i64 = LLVMInt64TypeInContext(nest->cg.context);
  LLVMValueRef rows[] = {ax_cg_i64(&nest->cg, row), LLVMBuildSub(nest->cg.builder, nest->present, ax_cg_i64(&nest->cg, 1), "")};
  LLVMValueRef offset =
      LLVMBuildMul(nest->cg.builder, ax_cg_intrinsic(&nest->cg, "llvm.smin", &i64, 1, rows, 2), ax_cg_i64(&nest->cg, stride), "");
  return ax_nest_advance(nest, element, ax_nest_advance(nest, element, pointer, offset), ax_cg_i64(&nest->cg, -(int64_t)c->place));
}

/* Lines of rows `first`, `first` + line, .., together a register. */
static LLVMValueRef load_lines(ax_nest *nest, LLVMTypeRef element, LLVMValueRef pointer, const columns *c, int64_t stride,
                               uint32_t first, bool whole_vector) {
  LLVMBuilderRef b = nest->cg.builder;
  const uint32_t lanes = nest->schedule->lanes, count = lanes / c->line;
  LLVMTypeRef line = c->bytes == 16 ? LLVMVectorType(element, c->line) : ax_cg_int(&nest->cg, 8 * c->bytes, 1);
  LLVMValueRef parts[64], all = c->bytes == 16 ? NULL : LLVMGetPoison(LLVMVectorType(line, count));
  for (uint32_t j = 0; j < count; j++) {
    parts[j] = LLVMBuildLoad2(b, line, line_at(nest, element, pointer, c, stride, first + j * c->line, whole_vector), "");
    LLVMSetAlignment(parts[j], c->bytes / c->line);
    if (all != NULL) all = LLVMBuildInsertElement(b, all, parts[j], ax_cg_i64(&nest->cg, j), "");
  }
  if (all != NULL) return LLVMBuildCast(b, LLVMBitCast, all, LLVMVectorType(element, lanes), "");
  for (uint32_t each = c->line, left = count; left > 1; each *= 2, left /= 2)
    for (uint32_t j = 0; j < left / 2; j++) parts[j] = ax_cg_concat(&nest->cg, parts[2 * j], parts[2 * j + 1], each);
  return parts[0];
}

bool ax_nest_load_columns(ax_nest *nest, uint32_t access, LLVMValueRef pointer, uint32_t instance, LLVMValueRef *out) {
  const ax_nest_schedule *s = nest->schedule;
  const size_t nodes = s->kernel->expr_count;
  LLVMValueRef rows[AX_LINE_LOADS], *done = &nest->columns[instance * nodes + access];
  columns c;
  *out = *done;
  *done = NULL;
  if (*out != NULL || take_rows(nest, access, pointer, instance, out)) return true;
  const bool instances = find_instances(nest, access, instance, &c);
  if (!instances && !find_columns(s, access, s->vector, &c)) return false;
  const bool whole = ax_nest_mask(nest, instance) == NULL;
  for (uint32_t q = 0; q < c.line; q++)
    rows[q] = load_lines(nest, ax_nest_element(nest, access), pointer, &c, s->accesses[access].stride[s->vector], q, whole);
  ax_nest_turn_lines(nest, rows, c.line);
  for (uint32_t i = 0; i < c.line; i++)
    if (c.of[i].load != AX_NONE && i != c.place)
      nest->columns[(instances ? c.of[i].instance : instance) * nodes + c.of[i].load] = rows[i];
  *out = rows[c.place];
  return true;
}
