/* An array's layout as a picture: of each block, the devices that hold it.

     f32[64,512] P(_, model), a device holds f32[64,256]         f32[4,2,2] P(data), a device holds f32[2,2,2]
     +----------------+----------------+                         from [0,0,0]: 0 1
     |    0 2 4 6     |    1 3 5 7     |                         from [2,0,0]: 2 3
     +----------------+----------------+                                                                            */
#include <stdio.h>
#include <string.h>

#include "exec/exec.h"
#include "mesh/sharding.h"

enum { most_rows = 16, most_columns = 8, cell_width = 16, most_listed = 64 };

/* The devices whose block begins at `start`, as "0 2 4 6" or "0 2 .. 510". */
static void devices_at(const ax_array *array, const int64_t *start, char *cell) {
  int64_t devices = ax_mesh_devices(&array->mesh), first[4] = {0}, last = -1, count = 0;
  for (int64_t d = 0; d < devices; d++) {
    int64_t own[AX_MAX_RANK];
    ax_shard_offset(&array->block, &array->spec, &array->mesh, d, own);
    if (memcmp(own, start, array->type.rank * sizeof own[0]) != 0) continue;
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

/* --- Vectors and matrices: boxes --- */

static void add_rule(ax_text *text, int64_t columns) {
  for (int64_t c = 0; c < columns; c++) ax_text_add(text, "+----------------");
  ax_text_add(text, "+\n");
}

static void add_row(ax_text *text, const ax_array *array, int64_t row, int64_t columns) {
  const uint32_t rank = array->type.rank;
  for (int64_t c = 0; c < columns; c++) {
    char cell[cell_width] = "";
    int64_t start[2] = {0};
    if (rank > 1) start[0] = row * array->block.dims[0];
    if (rank > 0) start[rank - 1] = c * array->block.dims[rank - 1];
    devices_at(array, start, cell);
    int length = (int)strlen(cell), left = (cell_width - length) / 2;
    ax_text_add(text, "|%*s%s%*s", left, "", cell, cell_width - length - left, "");
  }
  ax_text_add(text, "|\n");
}

static void add_boxes(ax_text *text, const ax_array *array) {
  const uint32_t rank = array->type.rank;
  int64_t rows = rank > 1 ? ax_shard_parts(&array->spec, &array->mesh, 0) : 1;
  int64_t columns = rank > 0 ? ax_shard_parts(&array->spec, &array->mesh, rank - 1) : 1;
  int64_t shown_rows = rows < most_rows ? rows : most_rows, shown_columns = columns < most_columns ? columns : most_columns;
  add_rule(text, shown_columns);
  for (int64_t r = 0; r < shown_rows; r++) {
    add_row(text, array, r, shown_columns);
    add_rule(text, shown_columns);
  }
  if (shown_rows < rows || shown_columns < columns)
    ax_text_add(text, "(the first %lld x %lld of %lld x %lld blocks)\n", (long long)shown_rows, (long long)shown_columns,
                (long long)rows, (long long)columns);
}

/* --- Other ranks: a line a block --- */

static void add_list(ax_text *text, const ax_array *array) {
  for (uint32_t b = 0; b < array->blocks && b < most_listed; b++) {
    char cell[cell_width] = "";
    int64_t start[AX_MAX_RANK];
    ax_shard_offset(&array->block, &array->spec, &array->mesh, ax_shard_device(&array->spec, &array->mesh, b), start);
    devices_at(array, start, cell);
    ax_text_add(text, "from [");
    for (uint32_t d = 0; d < array->type.rank; d++) ax_text_add(text, "%s%lld", d ? "," : "", (long long)start[d]);
    ax_text_add(text, "]: %s\n", cell);
  }
  if (array->blocks > most_listed) ax_text_add(text, "(the first %d of %u blocks)\n", most_listed, array->blocks);
}

ax_status ax_array_picture(const ax_array *array, char **out) {
  ax_text text = {0};
  *out = NULL;
  AX_TRY(ax_require(array, "array"));
  ax_type_text(&text, &array->type, NULL);
  ax_text_add(&text, " ");
  ax_spec_text(&text, &array->spec, &array->mesh);
  ax_text_add(&text, ", a device holds ");
  ax_type_text(&text, &array->block, NULL);
  ax_text_add(&text, "\n");
  if (array->type.rank <= 2) add_boxes(&text, array);
  else add_list(&text, array);
  return ax_text_finish(&text, out);
}
