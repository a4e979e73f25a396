/* An array's layout as a picture:

     f32[64,512] P(_, model)
     +----------------+----------------+
     |    0 2 4 6     |    1 3 5 7     |
     +----------------+----------------+                                                                            */
#include <stdio.h>
#include <string.h>

#include "exec/exec.h"

enum { most_rows = 16, most_columns = 8, cell_width = 16 };

/* The devices whose block begins at (row, column), as "0 2 4 6" or "0 2 .. 510". */
static void devices_of(const ax_array *array, int64_t row, int64_t column, const ax_type *block, char *cell) {
  int64_t devices = ax_mesh_devices(&array->mesh), first[4] = {0}, last = -1, count = 0;
  uint32_t rank = array->type.rank;
  for (int64_t d = 0; d < devices; d++) {
    ax_type type;
    int64_t start[AX_MAX_RANK] = {0};
    if (ax_array_shard(array, d, &type, start) != AX_OK) return;
    int64_t r = rank > 1 ? start[0] / (block->dims[0] > 0 ? block->dims[0] : 1) : 0;
    int64_t c = rank > 0 ? start[rank - 1] / (block->dims[rank - 1] > 0 ? block->dims[rank - 1] : 1) : 0;
    if (r != row || c != column) continue;
    if (count < 4) first[count] = d;
    count++;
    last = d;
  }
  ax_text text = {0};
  for (int64_t i = 0; i < count && i < (count > 4 ? 2 : 4); i++) ax_text_add(&text, "%s%lld", i ? " " : "", (long long)first[i]);
  if (count > 4) ax_text_add(&text, " .. %lld", (long long)last);
  snprintf(cell, cell_width - 1, "%s", text.data != NULL && !text.failed ? text.data : "?");
  ax_text_deinit(&text);
}

static void add_rule(ax_text *text, int64_t columns) {
  for (int64_t c = 0; c < columns; c++) ax_text_add(text, "+----------------");
  ax_text_add(text, "+\n");
}

static void add_row(ax_text *text, const ax_array *array, int64_t row, int64_t columns, const ax_type *block) {
  for (int64_t c = 0; c < columns; c++) {
    char cell[cell_width] = "";
    devices_of(array, row, c, block, cell);
    int length = (int)strlen(cell), left = (cell_width - length) / 2;
    ax_text_add(text, "|%*s%s%*s", left, "", cell, cell_width - length - left, "");
  }
  ax_text_add(text, "|\n");
}

static int64_t parts_of(const ax_array *array, const ax_type *block, uint32_t d) {
  return block->dims[d] > 0 ? array->type.dims[d] / block->dims[d] : 1;
}

ax_status ax_array_picture(const ax_array *array, char **out) {
  ax_text text = {0};
  ax_type block;
  int64_t start[AX_MAX_RANK];
  *out = NULL;
  AX_TRY(ax_array_shard(array, 0, &block, start));
  uint32_t rank = array->type.rank;
  ax_type_text(&text, &array->type, NULL);
  ax_text_add(&text, " ");
  ax_spec_text(&text, &array->spec, &array->mesh);
  ax_text_add(&text, ", a device holds ");
  ax_type_text(&text, &block, NULL);
  ax_text_add(&text, "\n");
  if (rank > 2) return ax_text_finish(&text, out);
  int64_t rows = rank > 1 ? parts_of(array, &block, 0) : 1, columns = rank > 0 ? parts_of(array, &block, rank - 1) : 1;
  int64_t shown_rows = rows < most_rows ? rows : most_rows, shown_columns = columns < most_columns ? columns : most_columns;
  add_rule(&text, shown_columns);
  for (int64_t r = 0; r < shown_rows; r++) {
    add_row(&text, array, r, shown_columns, &block);
    add_rule(&text, shown_columns);
  }
  if (shown_rows < rows || shown_columns < columns)
    ax_text_add(&text, "(the first %lld x %lld of %lld x %lld blocks)\n", (long long)shown_rows, (long long)shown_columns,
                (long long)rows, (long long)columns);
  return ax_text_finish(&text, out);
}
