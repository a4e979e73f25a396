/* Routines on batches of matrices: one matrix after the other, or some side by side; by a rule, in plans and in reference evaluation. */
#include <assert.h>
#include <string.h>

#include "linalg/matrices.h"
#include "plan/plan.h"

/* --- Transposing: elements of 4 and 8 bytes by blocks of two registers' width, others and what is left a tile at a time --- */

enum { tile = 16 };
#define INLINED __attribute__((always_inline))

typedef uint32_t fours __attribute__((vector_size(16)));
typedef uint64_t twos __attribute__((vector_size(16)));

/* Rows rows[0] to rows[1] and columns likewise of an m by n matrix of elements of so many bytes, a constant. */
static inline INLINED void turn_part(char *to, const char *from, int64_t m, int64_t n, const int64_t *rows,
                                    const int64_t *columns, int64_t bytes) {
  for (int64_t i = rows[0]; i < rows[1]; i += tile)
    for (int64_t j = columns[0]; j < columns[1]; j += tile)
      for (int64_t column = j; column < j + tile && column < columns[1]; column++)
        for (int64_t row = i; row < i + tile && row < rows[1]; row++)
          memcpy(to + (column * m + row) * bytes, from + (row * n + column) * bytes, (size_t)bytes);
}

/* 4 by 4 elements of 4 bytes; `next`: bytes from a row to the next. */
static inline void turn_fours(char *to, int64_t to_next, const char *from, int64_t from_next) {
  fours a, b, c, d;
  memcpy(&a, from, sizeof a);
  memcpy(&b, from + from_next, sizeof b);
  memcpy(&c, from + 2 * from_next, sizeof c);
  memcpy(&d, from + 3 * from_next, sizeof d);
  const fours ab = __builtin_shufflevector(a, b, 0, 4, 1, 5), cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
  const fours AB = __builtin_shufflevector(a, b, 2, 6, 3, 7), CD = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  a = __builtin_shufflevector(ab, cd, 0, 1, 4, 5), b = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
  c = __builtin_shufflevector(AB, CD, 0, 1, 4, 5), d = __builtin_shufflevector(AB, CD, 2, 3, 6, 7);
  memcpy(to, &a, sizeof a);
  memcpy(to + to_next, &b, sizeof b);
  memcpy(to + 2 * to_next, &c, sizeof c);
  memcpy(to + 3 * to_next, &d, sizeof d);
}

/* 2 by 2 elements of 8 bytes. */
static inline void turn_twos(char *to, int64_t to_next, const char *from, int64_t from_next) {
  twos a, b;
  memcpy(&a, from, sizeof a);
  memcpy(&b, from + from_next, sizeof b);
  const twos first = __builtin_shufflevector(a, b, 0, 2), second = __builtin_shufflevector(a, b, 1, 3);
  memcpy(to, &first, sizeof first);
  memcpy(to + to_next, &second, sizeof second);
}

/* All rows and columns but the last few, for elements of 4 or 8 bytes, a constant, and then those. */
static inline INLINED void turn_blocks(char *to, const char *from, int64_t m, int64_t n, int64_t bytes) {
  const int64_t side = 16 / bytes, whole_m = m / side * side, whole_n = n / side * side;
  for (int64_t j = 0; j < whole_n; j += side)
    for (int64_t i = 0; i < whole_m; i += side) {
      char *here = to + (j * m + i) * bytes;
      const char *there = from + (i * n + j) * bytes;
      if (bytes == 4) turn_fours(here, m * bytes, there, n * bytes);
      else turn_twos(here, m * bytes, there, n * bytes);
    }
  turn_part(to, from, m, n, (int64_t[]){0, m}, (int64_t[]){whole_n, n}, bytes);
  turn_part(to, from, m, n, (int64_t[]){whole_m, m}, (int64_t[]){0, whole_n}, bytes);
}

static void turn_by(void *to, const void *from, int64_t m, int64_t n, int64_t bytes) {
  switch (bytes) {
    case 4: turn_blocks(to, from, m, n, 4); break;
    case 8: turn_blocks(to, from, m, n, 8); break;
    default: turn_part(to, from, m, n, (int64_t[]){0, m}, (int64_t[]){0, n}, 16); break;
  }
}

void ax_matrix_turn(void *to, const void *from, int64_t m, int64_t n, ax_dtype dtype) {
  turn_by(to, from, m, n, (int64_t)ax_dtype_bytes(dtype));
}

/* --- Routines over batches --- */

enum { line = 64, least_time = 400 }; /* bytes; nanoseconds */
enum { least_sides = 128 }; /* right sides for which a thread reads the matrix again */

typedef struct batched {
  ax_matrix_code *code, *lanes;
  ax_matrix_call call;
  uint32_t operands, in_count, unread, overwritten, parts;
  int64_t slices, right_sides; /* of the right sides of each matrix */
  int64_t count, work_bytes, stride[AX_MATRIX_OPERANDS]; /* matrices; of one part; bytes from one matrix to the next, by operand */
  int64_t elem_bytes[AX_MATRIX_OPERANDS]; /* of a part, where numbers are complex */
} batched;

static int64_t in_lines(int64_t bytes) { return (bytes + line - 1) / line * line; }

/* index: of a slice of a matrix. */
static void run_one(const batched *b, void *const *memory, int64_t index, void *work) {
  void *matrix[AX_MATRIX_OPERANDS];
  ax_matrix_call call = b->call;
  const int64_t slice = index % b->slices;
  for (uint32_t k = 0; k < b->operands; k++) matrix[k] = (char *)memory[k] + index / b->slices * b->stride[k];
  call.from = b->right_sides * slice / b->slices, call.to = b->right_sides * (slice + 1) / b->slices;
  b->code(&call, matrix, work);
}

/* --- Side by side: operands are turned into the workspace, results out of it --- */

static int64_t lanes_of(const batched *b) { return b->lanes == NULL ? 1 : line / (int64_t)ax_dtype_bytes(ax_part_dtype(b->call.dtype)); }

/* Some matrices, `filled`, of so many elements; the other lanes have the last of them again. bytes: of an element, a constant. */
static inline INLINED void spread_some(char *to, const char *from, int64_t filled, int64_t lanes, int64_t elems, int64_t bytes) {
  for (int64_t l = 0; l < lanes; l++)
    for (int64_t e = 0; e < elems; e++)
      memcpy(to + (e * lanes + l) * bytes, from + (ax_least(l, filled - 1) * elems + e) * bytes, (size_t)bytes);
}

static inline INLINED void collect_some(char *to, const char *from, int64_t filled, int64_t lanes, int64_t elems, int64_t bytes) {
  for (int64_t l = 0; l < filled; l++)
    for (int64_t e = 0; e < elems; e++) memcpy(to + (l * elems + e) * bytes, from + (e * lanes + l) * bytes, (size_t)bytes);
}

static void spread(char *to, const char *from, int64_t filled, int64_t lanes, int64_t elems, int64_t bytes) {
  if (filled == lanes) turn_by(to, from, lanes, elems, bytes);
  else if (bytes == 4) spread_some(to, from, filled, lanes, elems, 4);
  else spread_some(to, from, filled, lanes, elems, 8);
}

static void collect(char *to, const char *from, int64_t filled, int64_t lanes, int64_t elems, int64_t bytes) {
  if (filled == lanes) turn_by(to, from, elems, lanes, bytes);
  else if (bytes == 4) collect_some(to, from, filled, lanes, elems, 4);
  else collect_some(to, from, filled, lanes, elems, 8);
}

/* Bytes of operand k side by side. */
static int64_t beside_bytes(const batched *b, uint32_t k) {
  const bool none = k == b->unread || (k == b->in_count && b->overwritten != AX_NONE);
  return none ? 0 : in_lines(b->stride[k] * lanes_of(b));
}

/* `filled` matrices from `first` on. */
static void run_lanes(const batched *b, void *const *memory, int64_t first, int64_t filled, char *work) {
  void *matrix[AX_MATRIX_OPERANDS];
  ax_matrix_call call = b->call;
  const int64_t lanes = lanes_of(b);
  char *beside = work;
  for (uint32_t k = 0; k < b->operands; k++) {
    matrix[k] = k == b->in_count && b->overwritten != AX_NONE ? matrix[b->overwritten] : beside;
    beside += beside_bytes(b, k);
  }
  for (uint32_t k = 0; k < b->operands; k++) {
    const int64_t elems = b->stride[k] / b->elem_bytes[k];
    char *own = (char *)memory[k] + first * b->stride[k];
    if (k == b->in_count) {
      call.from = 0, call.to = b->right_sides;
      b->lanes(&call, matrix, beside);
    }
    if (k == b->unread) continue;
    if (k < b->in_count) spread(matrix[k], own, filled, lanes, elems, b->elem_bytes[k]);
    else collect(own, matrix[k], filled, lanes, elems, b->elem_bytes[k]);
  }
}

/* The workspace is the last buffer. */
static void run_some(const batched *b, void *const *memory, int64_t from, int64_t to, void *work) {
  const int64_t lanes = lanes_of(b);
  assert(b->lanes == NULL || b->slices == 1);
  int64_t i = from;
  for (; b->lanes != NULL && i + lanes / 4 < to; i += lanes) run_lanes(b, memory, i, ax_least(lanes, to - i), work);
  for (; i < to; i++) run_one(b, memory, i, work);
}

static ax_status run_part(const void *data, void *const *memory, uint32_t part) {
  const batched *b = data;
  void *work = b->work_bytes > 0 ? (char *)memory[b->operands] + part * b->work_bytes : NULL;
  const int64_t at_once = lanes_of(b), count = b->count * b->slices, steps = ax_ceil_div(count, at_once);
  const int64_t from = steps * part / b->parts * at_once, to = steps * (part + 1) / b->parts * at_once;
  run_some(b, memory, from, ax_least(to, count), work);
  return AX_OK;
}

/* Right sides are cut by shapes alone, as the bits of their solutions depend on it. */
static int64_t slices_of(const ax_matrix_routine *routine) {
  return ax_routine_parts(routine->time, routine->right_sides / least_sides);
}

static batched batch_of(const ax_matrix_routine *routine, uint32_t in_count, uint32_t operands) {
  return (batched){.code = routine->code,
                   .lanes = routine->lanes,
                   .unread = routine->unread,
                   .overwritten = routine->overwritten,
                   .call = routine->call,
                   .operands = operands,
                   .in_count = in_count,
                   .parts = 1,
                   .slices = slices_of(routine),
                   .right_sides = routine->right_sides,
                   .work_bytes = in_lines(routine->work_bytes)};
}

static void add_operand(batched *b, uint32_t k, uint32_t batch_rank, uint32_t rank, const int64_t *dims, ax_dtype dtype) {
  b->count = ax_dims_elems(batch_rank, dims);
  b->elem_bytes[k] = (int64_t)ax_dtype_bytes(ax_part_dtype(dtype));
  b->stride[k] = ax_dims_elems(rank - batch_rank, dims + batch_rank) * (int64_t)ax_dtype_bytes(dtype);
}

/* What all operands take side by side, where there are matrices enough. */
static void add_lanes(batched *b) {
  if (b->lanes != NULL && b->count <= lanes_of(b) / 4) b->lanes = NULL;
  for (uint32_t k = 0; b->lanes != NULL && k < b->operands; k++) b->work_bytes += beside_bytes(b, k);
}

/* OpenBLAS has a lock that each call takes for some tens of nanoseconds: threads with short calls wait for each other longer than
   they save (4,096 matrices of 8 by 8 on two threads: twice the time). */
static uint32_t parts_of(const batched *b, double time) {
  const int64_t count = b->count * b->slices;
  if (b->lanes != NULL) return ax_routine_parts((double)count * time, count / lanes_of(b));
  return time < least_time ? 1 : ax_routine_parts((double)count * time, count);
}

/* Results without elements are written by kernels without steps. */
static ax_status fill_empty(ax_lower *lower, const uint32_t *out, uint32_t out_count) {
  for (uint32_t k = 0; k < out_count; k++) AX_TRY(ax_lower_fill(lower, out[k], (ax_number){.i = 0}));
  return AX_OK;
}

ax_status ax_lower_matrices(ax_lower *lower, const ax_matrix_routine *routine, const uint32_t *in, uint32_t in_count,
                            const uint32_t *out, uint32_t out_count) {
  uint32_t buffers[AX_MATRIX_OPERANDS + 1], count = in_count + out_count;
  int64_t elems = 0;
  batched b = batch_of(routine, in_count, count);
  for (uint32_t k = 0; k < count; k++) {
    buffers[k] = k < in_count ? in[k] : out[k - in_count];
    const ax_type *type = ax_lower_type(lower, buffers[k]);
    add_operand(&b, k, routine->batch_rank, type->rank, type->dims, type->dtype);
    if (k >= in_count) elems += ax_type_elems(type);
  }
  if (elems == 0) return fill_empty(lower, out, out_count);
  add_lanes(&b);
  b.parts = parts_of(&b, routine->time / (double)b.slices);
  if (b.work_bytes > 0) {
    const ax_type work = ax_array_type(AX_U8, AX_DIMS(b.parts * b.work_bytes));
    AX_TRY(ax_lower_buffer(lower, &work, ax_lower_get(lower, out[0])->axes, &buffers[count]));
  }
  const ax_routine made = {.run = run_part,
                           .data = &b,
                           .in_count = in_count,
                           .out_count = out_count + (b.work_bytes > 0),
                           .parts = b.parts,
                           .buffers = buffers,
                           .time = (double)b.count * routine->time,
                           .name = routine->name};
  return ax_lower_routine(lower, &made, sizeof b);
}

ax_status ax_eval_matrices(const ax_eval_args *args, const ax_matrix_routine *routine) {
  void *memory[AX_MATRIX_OPERANDS];
  const uint32_t in_count = args->eqn->in_count;
  batched b = batch_of(routine, in_count, in_count + args->eqn->out_count);
  for (uint32_t k = 0; k < b.operands; k++) {
    const ax_tensor *tensor = k < in_count ? args->in[k] : args->out[k - in_count];
    memory[k] = tensor->data;
    add_operand(&b, k, routine->batch_rank, tensor->rank, tensor->dims, tensor->dtype);
  }
  add_lanes(&b);
  void *work = ax_alloc((size_t)(b.work_bytes > 0 ? b.work_bytes : line));
  if (work == NULL) return ax_out_of_memory((size_t)b.work_bytes);
  run_some(&b, memory, 0, b.count * b.slices, work);
  ax_free(work);
  return AX_OK;
}

/* --- Routines by rule --- */

enum { most = AX_MATRIX_OPERANDS };

static ax_status routine_by(ax_matrix_rule *rule, const void *params, const ax_type *in, const ax_type *out,
                            ax_matrix_routine *routine) {
  *routine = (ax_matrix_routine){.call = {.dtype = in[0].dtype}, .batch_rank = in[0].rank - 2};
  AX_TRY(ax_lapack_of(in[0].dtype, &routine->call.lapack));
  rule(params, in, out, routine);
  return AX_OK;
}

ax_status ax_lower_by(ax_lower *lower, const ax_eqn *eqn, ax_matrix_rule *rule, const uint32_t *in, uint32_t *out) {
  ax_type types[most];
  ax_matrix_routine routine;
  for (uint32_t k = 0; k < eqn->out_count; k++) AX_TRY(ax_lower_result(lower, eqn, k, &out[k]));
  for (uint32_t i = 0; i < eqn->in_count; i++) types[i] = *ax_lower_type(lower, in[i]);
  for (uint32_t k = 0; k < eqn->out_count; k++) types[eqn->in_count + k] = *ax_lower_type(lower, out[k]);
  AX_TRY(routine_by(rule, eqn->params, types, types + eqn->in_count, &routine));
  return ax_lower_matrices(lower, &routine, in, eqn->in_count, out, eqn->out_count);
}

ax_status ax_eval_by(const ax_eval_args *args, ax_matrix_rule *rule) {
  const ax_eqn *eqn = args->eqn;
  ax_type types[most];
  ax_matrix_routine routine;
  for (uint32_t k = 0; k < eqn->in_count + eqn->out_count; k++) {
    const ax_tensor *tensor = k < eqn->in_count ? args->in[k] : args->out[k - eqn->in_count];
    types[k] = ax_array_type(tensor->dtype, AX_LIST(tensor->rank, tensor->dims));
  }
  AX_TRY(routine_by(rule, eqn->params, types, types + eqn->in_count, &routine));
  return ax_eval_matrices(args, &routine);
}
