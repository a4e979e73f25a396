/* shampoo (V. Gupta, T. Koren, Y. Singer, arXiv:1802.09568): of a matrix g of gradients l adds up g g^T and r adds up
   g^T g, and the direction is (l + eps)^(-1/4) g (r + eps)^(-1/4). Of a vector, which is of order 1, it is (l + eps)^(-1/2) g:
   AdaGrad with the whole matrix. Large leaves are cut in blocks, each of which has an l and an r of its own:

     leaf [rows, columns] -> [down, across, block_rows, block_columns],  l [.., block_rows, block_rows],  r [.., block_columns, ..]

   All is computed in f32, or f64. A leaf that a mesh cuts is gathered, and every device computes all of its direction. */
#include "axle/linalg.h"
#include "axle/ops.h"
#include "ir/program.h"
#include "prim/bind.h"
#include "tree/moments.h"

/* --- Blocks --- */

static void cut_evenly(int64_t length, int64_t most, int64_t *count, int64_t *size) {
  *count = most == 0 || length == 0 ? 1 : (length + most - 1) / most;
  *size = (length + *count - 1) / *count;
}

ax_shampoo_blocks ax_shampoo_blocks_of(const ax_optimizer *o, const ax_type *whole) {
  ax_shampoo_blocks b = {.rows = 1, .columns = 1, .vector = whole->rank < 2};
  for (uint32_t d = 0; d < whole->rank; d++) {
    if (d > 0 && d + 1 == whole->rank) b.columns = whole->dims[d];
    else b.rows *= whole->dims[d];
  }
  cut_evenly(b.rows, o->block_size, &b.down, &b.block_rows);
  cut_evenly(b.columns, o->block_size, &b.across, &b.block_columns);
  return b;
}

static ax_value to_blocks(const ax_shampoo_blocks *b, ax_value x) {
  const int64_t rows = b->down * b->block_rows, columns = b->across * b->block_columns;
  x = ax_reshape(x, AX_DIMS(b->rows, b->columns));
  if (rows > b->rows || columns > b->columns)
    x = ax_pad(x, ax_integer(0), AX_DIMS(0, 0), AX_DIMS(rows - b->rows, columns - b->columns), AX_DIMS(0, 0));
  x = ax_reshape(x, AX_DIMS(b->down, b->block_rows, b->across, b->block_columns));
  return ax_transpose(x, AX_DIMS(0, 2, 1, 3));
}

static ax_value from_blocks(const ax_shampoo_blocks *b, ax_value x, const ax_type *whole) {
  const int64_t rows = b->down * b->block_rows, columns = b->across * b->block_columns;
  x = ax_reshape(ax_transpose(x, AX_DIMS(0, 2, 1, 3)), AX_DIMS(rows, columns));
  if (rows > b->rows || columns > b->columns) x = ax_slice(x, AX_DIMS(0, 0), AX_DIMS(b->rows, b->columns), NULL);
  return ax_reshape(x, AX_LIST(whole->rank, whole->dims));
}

/* --- A step --- */

static ax_value added(const ax_optimizer *o, ax_value statistics, ax_value x) {
  if (o->b2 == 0) return ax_add(statistics, x);
  return ax_add(ax_mul(ax_real(1 - o->b2), x), ax_mul(ax_real(o->b2), statistics));
}

/* (x + eps)^(-1/4), or ^(-1/2), of symmetric matrices without negative eigenvalues: what roundings make of these counts as 0. With
   eps = 0, an eigenvalue of 0 gives 0. */
static ax_value inverse_root(const ax_optimizer *o, ax_value x, bool of_vector) {
  ax_value parts[2] = {ax_poison, ax_poison};
  ax_eigh(x, true, false, AX_LIST(2, parts));
  const ax_value v = parts[0], w = ax_add(ax_max(parts[1], ax_real(0)), ax_real(o->eps)), some = ax_gt(w, ax_real(0));
  ax_value root = ax_rsqrt(ax_where(some, w, ax_real(1)));
  if (!of_vector) root = ax_sqrt(root);
  const ax_value scaled = ax_mul(v, ax_expand_dims(ax_where(some, root, ax_real(0)), -2));
  return ax_matmul(scaled, ax_matrix_transpose(v));
}

ax_value ax_shampoo_direction(const ax_optimizer *o, const ax_leaf_cut *cut, ax_value g, ax_value *left, ax_value *right) {
  const ax_type part = ax_typeof(g);
  if (ax_failed() || !ax_is_cut_as_said(cut, &part, "shampoo takes products of rows and of columns")) return ax_poison;
  const ax_shampoo_blocks b = ax_shampoo_blocks_of(o, cut->whole);
  const ax_dtype wide = part.dtype == AX_F64 ? AX_F64 : AX_F32;
  const ax_value x = to_blocks(&b, ax_convert_element_type(ax_whole_of(cut, g), wide)), turned = ax_matrix_transpose(x);
  *left = added(o, *left, ax_matmul(x, turned));
  ax_value direction = ax_matmul(inverse_root(o, *left, b.vector), x);
  if (!b.vector) {
    *right = added(o, *right, ax_matmul(turned, x));
    direction = ax_matmul(direction, inverse_root(o, *right, false));
  }
  direction = ax_convert_element_type(from_blocks(&b, direction, cut->whole), part.dtype);
  return ax_part_of(cut, direction, &part);
}
