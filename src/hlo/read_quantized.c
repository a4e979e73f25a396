/* Quantized elements of MLIR's texts: i8<-127:127>:f32:1, {0.1:-30, 0.5}, which stands in !quant.uniform<..>. */
#include <math.h>
#include <string.h>

#include "hlo/reader.h"
#include "ir/dtype.h"
#include "ir/number.h"

typedef struct quantized_text {
  const char *at, *end;
} quantized_text;

static bool takes(quantized_text *t, char c) {
  while (t->at < t->end && strchr(" \t\r\n", *t->at) != NULL && *t->at != 0) t->at++;
  if (t->at == t->end || *t->at != c) return false;
  t->at++;
  return true;
}

/* What stands before the next mark of <:>,{} or blank. */
static ax_hlo_slice take_part(quantized_text *t) {
  (void)takes(t, ' ');
  const char *start = t->at;
  while (t->at < t->end && *t->at != '\0' && strchr(" \t\r\n<>:,{}", *t->at) == NULL) t->at++;
  return (ax_hlo_slice){start, (size_t)(t->at - start)};
}

static bool take_number(quantized_text *t, ax_dtype dtype, ax_number *out) {
  const ax_hlo_slice part = take_part(t);
  char digits[64] = {0}, *end;
  if (part.length == 0 || part.length >= sizeof digits) return false;
  memcpy(digits, part.start, part.length);
  *out = ax_number_decimal(dtype, digits, &end);
  return *end == '\0';
}

static bool take_integer(quantized_text *t, int64_t *out) {
  const ax_hlo_slice part = take_part(t);
  const bool minus = part.length > 0 && part.start[0] == '-';
  int64_t number = 0;
  if (part.length == (size_t)minus || part.length > 18) return false;
  for (size_t i = minus; i < part.length; i++) {
    if (!ax_hlo_is_digit(part.start[i])) return false;
    number = 10 * number + (part.start[i] - '0');
  }
  *out = minus ? -number : number;
  return true;
}

/* i8, u8 or ui8, perhaps <least:greatest>. */
static bool take_storage(quantized_text *t, ax_hlo_quantized *q) {
  const ax_hlo_slice part = take_part(t);
  char name[8] = {0};
  if (part.length < 2 || part.length + 2 > sizeof name) return false;
  const bool is_unsigned = part.start[0] == 'u' && part.start[1] != 'i';
  memcpy(name + is_unsigned, part.start, part.length);
  if (is_unsigned) memcpy(name, "ui", 2);
  if (!ax_hlo_find_dtype((ax_hlo_slice){name, strlen(name)}, &q->storage)) return false;
  const ax_dtype_kind kind = ax_dtype_get(q->storage)->kind;
  const uint32_t bits = ax_dtype_get(q->storage)->bits;
  if ((kind != AX_KIND_SIGNED && kind != AX_KIND_UNSIGNED) || bits > 32) return false;
  q->least = kind == AX_KIND_SIGNED ? -((int64_t)1 << (bits - 1)) : 0;
  q->greatest = ((int64_t)1 << (kind == AX_KIND_SIGNED ? bits - 1 : bits)) - 1;
  const int64_t least = q->least, greatest = q->greatest;
  if (!takes(t, '<')) return true;
  if (!take_integer(t, &q->least) || !takes(t, ':') || !take_integer(t, &q->greatest) || !takes(t, '>')) return false;
  return q->least >= least && q->least < q->greatest && q->greatest <= greatest;
}

static bool take_scale(quantized_text *t, const ax_hlo_quantized *q, double *scale, int64_t *zero) {
  ax_number number;
  if (!take_number(t, AX_F64, &number) || !(number.f > 0) || !isfinite(number.f)) return false;
  *scale = number.f;
  *zero = 0;
  return !takes(t, ':') || (take_integer(t, zero) && *zero >= q->least && *zero <= q->greatest);
}

/* *count: of the scales that there is room for, and those that there are. */
static bool take_scales(quantized_text *t, const ax_hlo_quantized *q, double *scales, int64_t *zeros, uint32_t *count) {
  const uint32_t room = *count;
  const bool many = takes(t, '{');
  *count = 0;
  do {
    if (*count == room || !take_scale(t, q, &scales[*count], &zeros[*count])) return false;
    ++*count;
  } while (many && takes(t, ','));
  return (!many || takes(t, '}')) && many == (q->axis >= 0);
}

static bool take_all(quantized_text *t, ax_hlo_quantized *q, double *scales, int64_t *zeros) {
  q->axis = -1;
  if (!take_storage(t, q) || !takes(t, ':') || !ax_hlo_find_dtype(take_part(t), &q->expressed) || !ax_is_float(q->expressed)) return false;
  if (takes(t, ':') && (!take_integer(t, &q->axis) || q->axis < 0 || q->axis >= AX_MAX_RANK)) return false;
  if (!takes(t, ',') || !take_scales(t, q, scales, zeros, &q->count)) return false;
  (void)takes(t, ' ');
  return t->at == t->end;
}

ax_status ax_hlo_read_quantized(ax_arena *arena, ax_hlo_slice text, const ax_hlo_quantized **out) {
  quantized_text t = {text.start, text.start + text.length};
  ax_hlo_quantized q = {.count = 1};
  for (size_t i = 0; i < text.length; i++) q.count += text.start[i] == ',';
  double *scales = ax_arena_alloc(arena, q.count * sizeof scales[0]);
  int64_t *zeros = ax_arena_alloc(arena, q.count * sizeof zeros[0]);
  *out = NULL;
  if (scales == NULL || zeros == NULL) return ax_out_of_memory(q.count * sizeof scales[0]);
  if (!take_all(&t, &q, scales, zeros)) return AX_OK;
  q.scales = scales, q.zeros = zeros;
  *out = ax_arena_copy(arena, &q, sizeof q);
  return *out != NULL ? AX_OK : ax_out_of_memory(sizeof q);
}
