/* Transposed reads. A square of lanes by lanes elements is read along the loop it lies along, transposed in registers and left on
   the stack, from where the body reads it the other way. So memory is touched in whole vectors in both directions.

   Registers consist of lines of 16 bytes, and what stays inside lines, or moves lines whole, is cheap. So first each line is
   transposed: interleaving rows by 1, 2, 4 .. elements,

     a0 a1 a2 a3       a0 b0 a1 b1       a0 b0 c0 d0
     b0 b1 b2 b3       a2 b2 a3 b3       a1 b1 c1 d1
     c0 c1 c2 c3  ->   c0 d0 c1 d1  ->   a2 b2 c2 d2
     d0 d1 d2 d3       c2 d2 c3 d3       a3 b3 c3 d3

   then the lines, of which a register has 1, 2 or 4, are put in place. Both steps are short loops over the tile: unrolled, the
   shuffles would take most of the time to compile. */
#include "jit/emit/nest.h"

void ax_nest_allocate_squares(ax_nest *nest) {
  const ax_nest_schedule *schedule = nest->schedule;
  for (uint32_t a = 0; a < schedule->kernel->expr_count; a++) {
    if (!schedule->accesses[a].transposed) continue;
    LLVMTypeRef square = LLVMArrayType2(ax_nest_element(nest, a), (uint64_t)schedule->lanes * schedule->lanes);
    nest->tiles[a] = ax_cg_stack(&nest->cg, square);
  }
}

/* Rows that do not exist repeat the last one that does. */
static LLVMValueRef existing_row(ax_nest *nest, LLVMValueRef row) {
  if (nest->mask == NULL) return row;
  LLVMTypeRef i64 = LLVMInt64TypeInContext(nest->cg.context);
  LLVMValueRef last = LLVMBuildSub(nest->cg.builder, nest->present, ax_cg_i64(&nest->cg, 1), "");
  LLVMValueRef both[] = {row, last};
  return ax_cg_intrinsic(&nest->cg, "llvm.smin", &i64, 1, both, 2);
}

typedef struct square { /* rows by lanes, in lines of `line` elements */
  ax_nest *nest;
  uint32_t access, lanes, line;
  LLVMTypeRef element;
} square;

static LLVMValueRef scaled(const square *s, LLVMValueRef index, int64_t by) {
  return LLVMBuildMul(s->nest->cg.builder, index, ax_cg_i64(&s->nest->cg, by), "");
}

static LLVMValueRef plus(const square *s, LLVMValueRef index, int64_t more) {
  return LLVMBuildAdd(s->nest->cg.builder, index, ax_cg_i64(&s->nest->cg, more), "");
}

static LLVMValueRef tile_row(const square *s, LLVMValueRef row) {
  return ax_nest_advance(s->nest, s->element, s->nest->tiles[s->access], scaled(s, row, s->lanes));
}

static LLVMValueRef load_row(const square *s, LLVMValueRef pointer) {
  return ax_nest_load_lanes(s->nest, s->element, pointer, 1, NULL);
}

static void store_row(const square *s, LLVMValueRef row, LLVMValueRef value) {
  ax_nest_store_lanes(s->nest, s->element, tile_row(s, row), 1, NULL, value);
}

/* --- Lines --- */

/* Blocks of `block` elements of a and b in turn, from the lower or the upper half of each line. */
static LLVMValueRef interleave(ax_nest *nest, LLVMValueRef a, LLVMValueRef b, uint32_t line, uint32_t block, bool upper) {
  const uint32_t lanes = nest->schedule->lanes;
  int64_t from[64];
  for (uint32_t l = 0; l < lanes; l++) {
    uint32_t in_line = l % line, pair = in_line / (2 * block), second = in_line / block % 2;
    uint32_t source = l - in_line + (upper ? line / 2 : 0) + pair * block + in_line % block;
    from[l] = second ? lanes + source : source;
  }
  return ax_cg_shuffle(&nest->cg, a, b, from, lanes);
}

void ax_nest_turn_lines(ax_nest *nest, LLVMValueRef *rows, uint32_t line) {
  for (uint32_t block = 1; block < line; block *= 2) {
    LLVMValueRef turned[64];
    for (uint32_t r = 0; r < line; r++) {
      uint32_t group = r / (2 * block) * 2 * block, which = r % (2 * block) / 2;
      turned[r] = interleave(nest, rows[group + which], rows[group + block + which], line, block, r % 2);
    }
    for (uint32_t r = 0; r < line; r++) rows[r] = turned[r];
  }
}

/* From the slot to the tile, `line` rows at a time. */
static void read_lines(const square *s) {
  const ax_nest_schedule *schedule = s->nest->schedule;
  LLVMValueRef corner = ax_nest_advance(s->nest, s->element, ax_nest_pointer(s->nest, s->access), s->nest->tile_start),
               rows[64];
  ax_nest_loop l = ax_nest_open_loop(s->nest, ax_cg_i64(&s->nest->cg, 0), s->line == s->lanes);
  for (uint32_t r = 0; r < s->line; r++) {
    LLVMValueRef row = existing_row(s->nest, plus(s, l.index, r));
    if (schedule->accesses[s->access].uneven[schedule->vector] != 0)
      row = LLVMBuildAdd(s->nest->cg.builder, s->nest->index[schedule->vector], row, "");
    LLVMValueRef offset = ax_nest_offset(s->nest, s->access, schedule->vector, row);
    rows[r] = load_row(s, ax_nest_advance(s->nest, s->element, corner, offset));
  }
  ax_nest_turn_lines(s->nest, rows, s->line);
  for (uint32_t r = 0; r < s->line; r++) store_row(s, plus(s, l.index, r), rows[r]);
  ax_nest_close_loop(s->nest, &l, ax_cg_i64(&s->nest->cg, s->lanes), s->line);
}

/* --- Lines to their places --- */

/* Lines by their numbers: 0, 1, .. in a, then those of b. */
static LLVMValueRef pick_lines(const square *s, LLVMValueRef a, LLVMValueRef b, const uint32_t *lines) {
  int64_t from[64];
  for (uint32_t l = 0; l < s->lanes; l++) from[l] = lines[l / s->line] * s->line + l % s->line;
  return ax_cg_shuffle(&s->nest->cg, a, b, from, s->lanes);
}

/* A square of 2 by 2 or 4 by 4 lines. */
static void place_lines(const square *s, LLVMValueRef *r) {
  static const uint32_t low[] = {0, 1, 4, 5}, high[] = {2, 3, 6, 7}, even[] = {0, 2, 4, 6}, odd[] = {1, 3, 5, 7};
  if (s->lanes == 2 * s->line) {
    static const uint32_t first[] = {0, 2}, second[] = {1, 3};
    LLVMValueRef top = pick_lines(s, r[0], r[1], first);
    r[1] = pick_lines(s, r[0], r[1], second);
    r[0] = top;
    return;
  }
  LLVMValueRef ab = pick_lines(s, r[0], r[1], low), cd = pick_lines(s, r[2], r[3], low);
  LLVMValueRef ab_high = pick_lines(s, r[0], r[1], high), cd_high = pick_lines(s, r[2], r[3], high);
  r[0] = pick_lines(s, ab, cd, even);
  r[1] = pick_lines(s, ab, cd, odd);
  r[2] = pick_lines(s, ab_high, cd_high, even);
  r[3] = pick_lines(s, ab_high, cd_high, odd);
}

/* Within the tile: rows k, line + k, 2 line + k .. make one square of lines. */
static void sort_lines(const square *s) {
  uint32_t count = s->lanes / s->line;
  LLVMValueRef rows[4];
  if (count == 1) return;
  ax_nest_loop l = ax_nest_open_loop(s->nest, ax_cg_i64(&s->nest->cg, 0), s->line == 1);
  for (uint32_t g = 0; g < count; g++) rows[g] = load_row(s, tile_row(s, plus(s, l.index, g * s->line)));
  place_lines(s, rows);
  for (uint32_t g = 0; g < count; g++) store_row(s, plus(s, l.index, g * s->line), rows[g]);
  ax_nest_close_loop(s->nest, &l, ax_cg_i64(&s->nest->cg, s->line), 1);
}

/* --- Squares --- */

static square make_square(ax_nest *nest, uint32_t access) {
  uint32_t lanes = nest->schedule->lanes,
           line = 16 / (uint32_t)ax_dtype_bytes(nest->schedule->kernel->exprs[access].dtype);
  return (square){nest, access, lanes, line < lanes ? line : lanes, ax_nest_element(nest, access)};
}

void ax_nest_fill_squares(ax_nest *nest) {
  for (uint32_t a = 0; a < nest->schedule->kernel->expr_count; a++) {
    if (!nest->schedule->accesses[a].transposed) continue;
    square s = make_square(nest, a);
    read_lines(&s);
    sort_lines(&s);
  }
}

LLVMValueRef ax_nest_load_transposed(ax_nest *nest, uint32_t access, ax_dtype dtype) {
  square s = make_square(nest, access);
  LLVMValueRef row = LLVMBuildSub(nest->cg.builder, nest->index[nest->schedule->loop_count - 1], nest->tile_start, "");
  return ax_cg_to_register(&nest->cg, dtype, load_row(&s, tile_row(&s, row)), s.lanes);
}
