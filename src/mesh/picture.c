/* An array's layout as a picture of its blocks, each with the devices that hold it.

     f32[64,512] P(_, model), a device holds f32[64,256]         f32[4,2,2] P(data), a device holds f32[2,2,2]
     +----------------+----------------+                         from [0,0,0]: 0 1
     |    0 2 4 6     |    1 3 5 7     |                         from [2,0,0]: 2 3
     +----------------+----------------+                                                                            */
#include <stdio.h>
#include <string.h>

#include "mesh/assignment.h"
#include "mesh/sharding.h"

enum { most_rows = 16, most_columns = 8, least_width = 16, most_listed = 64, cell_bytes = 80 };

typedef struct drawing {
  const ax_type *block;
  const ax_spec *spec;
  const ax_mesh *mesh;
  const int64_t *ids; /* by place; NULL */
  ax_axis_set named;
  int64_t blocks;
} drawing;

/* The i-th of the devices that hold a block, given the first: coordinates along the axes that the spec does not name, in mesh
   order. */
static int64_t holder(const drawing *of, int64_t first, int64_t i) {
  const ax_mesh *mesh = of->mesh;
  ax_axis_set named = of->named;
  int64_t device = first, stride = 1; /* of the axis: how far apart neighbours along it are */
  for (uint32_t axis = mesh->count; axis-- > 0; stride *= mesh->axis[axis].size) {
    if (named >> axis & 1) continue;
    device += i % mesh->axis[axis].size * stride;
    i /= mesh->axis[axis].size;
  }
  return of->ids != NULL ? of->ids[device] : device;
}

/* The devices that hold a block, as "0 2 4 6" or "0 2 .. 510". */
static void add_holders(const drawing *of, int64_t block, char *cell) {
  int64_t first = ax_shard_device(of->spec, of->mesh, block), count = ax_mesh_devices(of->mesh) / of->blocks;
  long long zero = (long long)holder(of, first, 0), one = count > 1 ? (long long)holder(of, first, 1) : zero;
  long long last = (long long)holder(of, first, count - 1);
  if (count == 1) snprintf(cell, cell_bytes, "%lld", zero);
  else if (count > 4) snprintf(cell, cell_bytes, "%lld %lld .. %lld", zero, one, last);
  else if (count == 2) snprintf(cell, cell_bytes, "%lld %lld", zero, one);
  else if (count == 3) snprintf(cell, cell_bytes, "%lld %lld %lld", zero, one, last);
  else snprintf(cell, cell_bytes, "%lld %lld %lld %lld", zero, one, (long long)holder(of, first, 2), last);
}

/* --- Vectors and matrices: boxes --- */

typedef struct boxes {
  const drawing *of;
  int64_t rows, columns; /* shown */
  int width;             /* of all boxes: the longest text fits in each */
} boxes;

static void cell_at(const boxes *b, int64_t row, int64_t column, char *cell) {
  const uint32_t rank = b->of->block->rank;
  int64_t part[2] = {row, column};
  add_holders(b->of, ax_shard_number(b->of->spec, b->of->mesh, rank > 1 ? part : part + 1), cell);
}

static void measure_boxes(boxes *b) {
  char cell[cell_bytes];
  b->width = least_width;
  for (int64_t r = 0; r < b->rows; r++)
    for (int64_t c = 0; c < b->columns; c++) {
      cell_at(b, r, c, cell);
      int wanted = (int)strlen(cell) + 2;
      if (wanted > b->width) b->width = wanted;
    }
}

static void add_rule(ax_text *text, const boxes *b) {
  for (int64_t c = 0; c < b->columns; c++) {
    ax_text_add(text, "+");
    for (int i = 0; i < b->width; i++) ax_text_add(text, "-");
  }
  ax_text_add(text, "+\n");
}

static void add_row(ax_text *text, const boxes *b, int64_t row) {
  char cell[cell_bytes];
  for (int64_t c = 0; c < b->columns; c++) {
    cell_at(b, row, c, cell);
    int length = (int)strlen(cell), left = (b->width - length) / 2;
    ax_text_add(text, "|%*s%s%*s", left, "", cell, b->width - length - left, "");
  }
  ax_text_add(text, "|\n");
}

static void add_boxes(ax_text *text, const drawing *of) {
  const uint32_t rank = of->block->rank;
  int64_t rows = rank > 1 ? ax_shard_parts(of->spec, of->mesh, 0) : 1;
  int64_t columns = rank > 0 ? ax_shard_parts(of->spec, of->mesh, rank - 1) : 1;
  boxes b = {of, rows < most_rows ? rows : most_rows, columns < most_columns ? columns : most_columns, 0};
  measure_boxes(&b);
  add_rule(text, &b);
  for (int64_t r = 0; r < b.rows; r++) {
    add_row(text, &b, r);
    add_rule(text, &b);
  }
  if (b.rows < rows || b.columns < columns)
    ax_text_add(text, "(the first %lld x %lld of %lld x %lld blocks)\n", (long long)b.rows, (long long)b.columns, (long long)rows,
                (long long)columns);
}

/* --- Other ranks: a line a block --- */

static void add_list(ax_text *text, const drawing *of) {
  for (int64_t b = 0; b < of->blocks && b < most_listed; b++) {
    char cell[cell_bytes];
    int64_t start[AX_MAX_RANK];
    ax_shard_offset(of->block, of->spec, of->mesh, ax_shard_device(of->spec, of->mesh, b), start);
    add_holders(of, b, cell);
    ax_text_add(text, "from [");
    for (uint32_t d = 0; d < of->block->rank; d++) ax_text_add(text, "%s%lld", d ? "," : "", (long long)start[d]);
    ax_text_add(text, "]: %s\n", cell);
  }
  if (of->blocks > most_listed) ax_text_add(text, "(the first %d of %lld blocks)\n", most_listed, (long long)of->blocks);
}

void ax_draw_layout(ax_text *text, const ax_type *whole, const ax_type *block, const ax_spec *spec, const ax_mesh *mesh,
                    const int64_t *ids) {
  const drawing of = {block, spec, mesh, ids, ax_spec_set(spec), ax_shard_count(spec, mesh)};
  ax_type_text(text, whole, NULL);
  ax_text_add(text, " ");
  ax_spec_text(text, spec, mesh);
  ax_text_add(text, ", a device holds ");
  ax_type_text(text, block, NULL);
  ax_text_add(text, "\n");
  if (whole->rank <= 2) add_boxes(text, &of);
  else add_list(text, &of);
}
