/* Tile assignments: parsing, printing, and finding digits in lists. */
#include "mesh/tiles.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mesh/refine.h"

enum { most_numbers = AX_MOST_DIGITS };

/* --- Reading --- */

static void skip_blanks(const char **at) {
  while (isspace((unsigned char)**at)) ++*at;
}

static bool accept(const char **at, const char *word) {
  skip_blanks(at);
  size_t length = strlen(word);
  if (strncmp(*at, word, length) != 0) return false;
  *at += length;
  return true;
}

static ax_status expected(const char *at, const char *what) {
  return ax_error(AX_INVALID_ARGUMENT, "%s is expected at \"%.32s\"", what, at);
}

static ax_status expect(const char **at, const char *word) { return accept(at, word) ? AX_OK : expected(*at, word); }

static ax_status read_number(const char **at, int64_t *out) {
  skip_blanks(at);
  char *end;
  *out = isdigit((unsigned char)**at) ? strtoll(*at, &end, 10) : -1;
  if (*out < 0 || *out > INT32_MAX) return expected(*at, "a number");
  *at = end;
  return AX_OK;
}

/* "4,1,2" and what closes it; the product fits. */
static ax_status read_sizes(const char **at, const char *close, int64_t *sizes, uint32_t *count, int64_t *product) {
  *count = 0;
  *product = 1;
  do {
    if (*count == most_numbers) return ax_error(AX_INVALID_ARGUMENT, "more than %d numbers", most_numbers);
    AX_TRY(read_number(at, &sizes[*count]));
    if (sizes[*count] == 0) return ax_error(AX_INVALID_ARGUMENT, "a dimension of 0");
    *product *= sizes[(*count)++];
    if (*product > INT32_MAX) return ax_error(AX_INVALID_ARGUMENT, "more than 2^31 - 1 devices");
  } while (accept(at, ","));
  return expect(at, close);
}

/* "[2,4]T(1,0)": digits of the size of a dimension, in the order that the transposition gives. */
static ax_status read_iota(const char **at, int64_t tiles, ax_tile_digits *digits) {
  int64_t sizes[most_numbers], strides[most_numbers], product;
  uint32_t count, seen = 0;
  *digits = (ax_tile_digits){0};
  AX_TRY(expect(at, "["));
  AX_TRY(read_sizes(at, "]", sizes, &count, &product));
  if (product != tiles) return ax_error(AX_INVALID_ARGUMENT, "%lld tiles of %lld devices", (long long)tiles, (long long)product);
  for (uint32_t i = count; i-- > 0;) strides[i] = i + 1 < count ? strides[i + 1] * sizes[i + 1] : 1;
  const bool transposed = accept(at, "T");
  if (transposed) AX_TRY(expect(at, "("));
  for (uint32_t i = 0; i < count; i++) {
    int64_t from = i;
    if (transposed && i > 0) AX_TRY(expect(at, ","));
    if (transposed) AX_TRY(read_number(at, &from));
    if (from >= count || (seen >> from & 1))
      return ax_error(AX_INVALID_ARGUMENT, "dimension %lld is transposed twice, or is none", (long long)from);
    seen |= UINT32_C(1) << from;
    if (sizes[from] == 1) continue;
    digits->size[digits->count] = sizes[from];
    digits->stride[digits->count++] = strides[from];
  }
  return transposed ? expect(at, ")") : AX_OK;
}

static int by_value(const void *a, const void *b) {
  const int64_t *x = a, *y = b;
  return (*x > *y) - (*x < *y);
}

static ax_status check_list(const int64_t *list, int64_t count) {
  int64_t *sorted = ax_alloc((size_t)count * sizeof sorted[0]);
  if (sorted == NULL) return ax_out_of_memory((size_t)count * sizeof sorted[0]);
  memcpy(sorted, list, (size_t)count * sizeof sorted[0]);
  qsort(sorted, (size_t)count, sizeof sorted[0], by_value);
  ax_status status = AX_OK;
  for (int64_t i = 0; i < count && status == AX_OK; i++) {
    if (i > 0 && sorted[i] == sorted[i - 1])
      status = ax_error(AX_INVALID_ARGUMENT, "device %lld is there twice", (long long)sorted[i]);
    else if (sorted[i] >= count)
      status = ax_error(AX_INVALID_ARGUMENT, "device %lld of %lld", (long long)sorted[i], (long long)count);
  }
  ax_free(sorted);
  return status;
}

static ax_status read_list(const char **at, int64_t tiles, int64_t **list) {
  if ((int64_t)strlen(*at) < 2 * tiles - 1) return ax_error(AX_INVALID_ARGUMENT, "%lld tiles, but fewer devices", (long long)tiles);
  *list = ax_alloc((size_t)tiles * sizeof **list);
  if (*list == NULL) return ax_out_of_memory((size_t)tiles * sizeof **list);
  for (int64_t i = 0; i < tiles; i++) {
    if (i > 0) AX_TRY(expect(at, ","));
    AX_TRY(read_number(at, &(*list)[i]));
  }
  return check_list(*list, tiles);
}

/* Parses the end, behind the devices: a word that says that the last dimension is of copies, or nothing. */
static ax_status read_last(const char **at, bool *copies) {
  *copies = accept(at, "last_tile_dim_replicate") || accept(at, "last_tile_dims={replicated}");
  if (!accept(at, "last_tile_dims=")) return AX_OK;
  return ax_error(AX_ABSENT, "dimensions of tiles that are not replicated: \"%.40s\"", *at);
}

static ax_status read_tiled(const char **at, ax_tiles *out) {
  int64_t sizes[most_numbers], tiles;
  uint32_t count;
  bool copies;
  out->kind = AX_TILES_TILED;
  AX_TRY(read_sizes(at, "]", sizes, &count, &tiles));
  if (accept(at, "<=")) AX_TRY(read_iota(at, tiles, &out->digits));
  else AX_TRY(read_list(at, tiles, &out->list));
  AX_TRY(read_last(at, &copies));
  out->copies = copies ? sizes[--count] : 1;
  if (count > AX_MAX_RANK) return ax_error(AX_INVALID_ARGUMENT, "more than %d dimensions", AX_MAX_RANK);
  out->rank = count;
  memcpy(out->dims, sizes, count * sizeof sizes[0]);
  return AX_OK;
}

static ax_status read_all(const char *at, ax_tiles *out) {
  static const char *const absent[] = {"{", "manual", "unreduced", "unknown"};
  AX_TRY(expect(&at, "{"));
  for (size_t i = 0; i < AX_COUNT(absent); i++)
    if (accept(&at, absent[i])) return ax_error(AX_ABSENT, "%s shardings", i == 0 ? "tuples of" : absent[i]);
  if (accept(&at, "devices=[")) AX_TRY(read_tiled(&at, out));
  else if (accept(&at, "maximal device=")) {
    out->kind = AX_TILES_MAXIMAL;
    AX_TRY(read_number(&at, &out->device));
  } else if (!accept(&at, "replicated")) return expected(at, "replicated, maximal or devices=[");
  AX_TRY(expect(&at, "}"));
  skip_blanks(&at);
  return *at == '\0' ? AX_OK : expected(at, "the end");
}

ax_status ax_tiles_parse(const char *text, ax_tiles *out) {
  *out = (ax_tiles){.copies = 1};
  ax_status status = read_all(text, out);
  if (status == AX_OK) return AX_OK;
  ax_tiles_deinit(out);
  return ax_error_context(status, "\"%.200s\": ", text);
}

void ax_tiles_deinit(ax_tiles *tiles) {
  ax_free(tiles->list);
  *tiles = (ax_tiles){0};
}

int64_t ax_tiles_count(const ax_tiles *tiles) {
  return tiles->kind == AX_TILES_TILED ? ax_dims_elems(tiles->rank, tiles->dims) * tiles->copies : 1;
}

/* --- Digits --- */

int64_t ax_digits_number(const ax_tile_digits *digits, int64_t k) {
  int64_t number = 0;
  for (uint32_t i = digits->count; i-- > 0; k /= digits->size[i]) number += k % digits->size[i] * digits->stride[i];
  return number;
}

/* Minor first while they are found: how far the list goes on by one stride is a digit's size. What comes after a whole digit goes
   on by that stride only if the next one's is the product, and then the two are one. */
static bool find_digits(const int64_t *list, int64_t count, ax_tile_digits *out) {
  ax_tile_digits found = {0};
  for (int64_t step = 1, size; step < count; step *= size) {
    const int64_t stride = list[step];
    for (size = 1; step * size < count && list[step * size] == stride * size; size++) continue;
    if (size < 2 || count / step % size != 0 || found.count == AX_MOST_DIGITS) return false;
    found.size[found.count] = size;
    found.stride[found.count++] = stride;
  }
  *out = (ax_tile_digits){.count = found.count};
  for (uint32_t i = 0; i < found.count; i++) {
    out->size[i] = found.size[found.count - 1 - i];
    out->stride[i] = found.stride[found.count - 1 - i];
  }
  for (int64_t k = 0; k < count; k++)
    if (list[k] != ax_digits_number(out, k)) return false;
  return true;
}

/* Finds the rank of each digit by falling stride. */
static void sort_digits(const ax_tile_digits *digits, uint32_t *rank_of) {
  for (uint32_t i = 0; i < digits->count; i++) {
    rank_of[i] = 0;
    for (uint32_t k = 0; k < digits->count; k++)
      rank_of[i] += digits->stride[k] > digits->stride[i] || (digits->stride[k] == digits->stride[i] && k < i);
  }
}

/* By falling stride, each stride is the product of the sizes after it. */
static bool are_dense(const ax_tile_digits *digits) {
  uint32_t rank_of[AX_MOST_DIGITS], at[AX_MOST_DIGITS];
  int64_t product = 1;
  sort_digits(digits, rank_of);
  for (uint32_t i = 0; i < digits->count; i++) at[rank_of[i]] = i;
  for (uint32_t r = digits->count; r-- > 0; product *= digits->size[at[r]])
    if (digits->stride[at[r]] != product) return false;
  return true;
}

bool ax_tiles_simplify(ax_tiles *tiles) {
  if (tiles->list == NULL) return true;
  const int64_t count = ax_tiles_count(tiles);
  for (int64_t k = 0; tiles->copies > 1 && k < count; k += tiles->copies)
    qsort(tiles->list + k, (size_t)tiles->copies, sizeof tiles->list[0], by_value);
  if (tiles->list[0] != 0 || !find_digits(tiles->list, count, &tiles->digits) || !are_dense(&tiles->digits)) return false;
  ax_free(tiles->list);
  tiles->list = NULL;
  return true;
}

/* --- Writing --- */

static ax_tile_digits merge(const ax_tile_digits *digits) {
  ax_tile_digits merged = {0};
  for (uint32_t i = 0; i < digits->count; i++) {
    const uint32_t last = merged.count - 1;
    if (merged.count > 0 && merged.stride[last] == digits->size[i] * digits->stride[i]) {
      merged.size[last] *= digits->size[i];
      merged.stride[last] = digits->stride[i];
      continue;
    }
    merged.size[merged.count] = digits->size[i];
    merged.stride[merged.count++] = digits->stride[i];
  }
  return merged;
}

static void add_iota(ax_text *text, const ax_tile_digits *digits) {
  const ax_tile_digits merged = merge(digits);
  uint32_t rank_of[AX_MOST_DIGITS], at[AX_MOST_DIGITS];
  sort_digits(&merged, rank_of);
  for (uint32_t i = 0; i < merged.count; i++) at[rank_of[i]] = i;
  ax_text_add(text, "<=[");
  for (uint32_t r = 0; r < merged.count; r++) ax_text_add(text, "%s%lld", r > 0 ? "," : "", (long long)merged.size[at[r]]);
  ax_text_add(text, merged.count == 0 ? "1]" : "]");
  for (uint32_t i = 0; merged.count > 1 && i < merged.count; i++) ax_text_add(text, "%s%u", i > 0 ? "," : "T(", rank_of[i]);
  if (merged.count > 1) ax_text_add(text, ")");
}

void ax_tiles_text(ax_text *text, const ax_tiles *tiles) {
  if (tiles->kind == AX_TILES_REPLICATED) ax_text_add(text, "{replicated}");
  if (tiles->kind == AX_TILES_MAXIMAL) ax_text_add(text, "{maximal device=%lld}", (long long)tiles->device);
  if (tiles->kind != AX_TILES_TILED) return;
  ax_text_add(text, "{devices=[");
  for (uint32_t d = 0; d < tiles->rank; d++) ax_text_add(text, "%s%lld", d > 0 ? "," : "", (long long)tiles->dims[d]);
  if (tiles->copies > 1) ax_text_add(text, "%s%lld", tiles->rank > 0 ? "," : "", (long long)tiles->copies);
  ax_text_add(text, "]");
  if (tiles->list == NULL) add_iota(text, &tiles->digits);
  const int64_t count = tiles->list != NULL ? ax_tiles_count(tiles) : 0;
  for (int64_t k = 0; k < count; k++) ax_text_add(text, "%s%lld", k > 0 ? "," : "", (long long)tiles->list[k]);
  ax_text_add(text, tiles->copies > 1 ? " last_tile_dim_replicate}" : "}");
}

/* --- A mesh in the order of the numbers --- */

static bool add_axis(ax_mesh *mesh, int64_t size) {
  if (size == 1) return true;
  if (mesh->count == AX_MAX_AXES) return false;
  mesh->axis[mesh->count++].size = size;
  return true;
}

bool ax_tiles_lay(const ax_tiles *tiles, ax_mesh *mesh, ax_spec *spec) {
  ax_mesh cuts = {0}, numbers = {0}, pieces;
  ax_axis_list in_digit[AX_MAX_AXES], in_cut[AX_MAX_AXES];
  ax_tile_digits fine = {0};
  uint32_t rank_of[AX_MOST_DIGITS];
  bool fits = true;
  *mesh = (ax_mesh){0};
  *spec = (ax_spec){.rank = tiles->rank};
  for (uint32_t d = 0; d < tiles->rank; d++) fits = add_axis(&cuts, tiles->dims[d]) && fits;
  fits = add_axis(&cuts, tiles->copies) && fits;
  for (uint32_t i = 0; i < tiles->digits.count; i++) fits = add_axis(&numbers, tiles->digits.size[i]) && fits;
  if (!fits || !ax_mesh_refine(&cuts, &numbers, &pieces)) return false;
  ax_mesh_runs(&pieces, 0, &numbers, in_digit);
  ax_mesh_runs(&pieces, 0, &cuts, in_cut);
  fine.count = pieces.count;
  for (uint32_t i = 0; i < numbers.count; i++) {
    int64_t stride = tiles->digits.stride[i];
    for (uint32_t k = in_digit[i].count; k-- > 0; stride *= pieces.axis[in_digit[i].axis[k]].size)
      fine.stride[in_digit[i].axis[k]] = stride;
  }
  sort_digits(&fine, rank_of);
  mesh->count = fine.count;
  for (uint32_t i = 0; i < pieces.count; i++) {
    ax_axis *axis = &mesh->axis[rank_of[i]];
    axis->size = pieces.axis[i].size;
    snprintf(axis->name, sizeof axis->name, "t%u", rank_of[i]);
  }
  for (uint32_t d = 0, cut = 0; d < tiles->rank; d++) {
    if (tiles->dims[d] == 1) continue;
    spec->count[d] = (uint8_t)in_cut[cut].count;
    for (uint32_t k = 0; k < in_cut[cut].count; k++) spec->axis[d][k] = (uint8_t)rank_of[in_cut[cut].axis[k]];
    cut++;
  }
  return true;
}
