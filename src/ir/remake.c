#include "ir/remake.h"

bool ax_remake_sees_through(const ax_remaking *r, const ax_remade *value) {
  return value->makeable && !value->opaque && (!value->wanted || (r->decided && value->again));
}

static bool add_base(ax_remade *value, uint32_t base) {
  for (uint32_t i = 0; i < value->base_count; i++)
    if (value->bases[i] == base) return true;
  if (value->base_count == AX_REMAKE_BASES) return false;
  value->bases[value->base_count++] = base;
  return true;
}

bool ax_remake_begin(const ax_remaking *r, ax_remade *value, uint32_t work) {
  value->work = work;
  value->base_count = 0;
  value->opaque = work > r->most_work;
  return !value->opaque;
}

static bool add_bases_of(const ax_remaking *r, ax_remade *value, const ax_remade *operand) {
  value->work += operand->work;
  for (uint32_t i = 0; i < operand->base_count; i++)
    if (!add_base(value, operand->bases[i])) return false;
  return value->work <= r->most_work;
}

bool ax_remake_operand(const ax_remaking *r, ax_remade *value, uint32_t operand) {
  const ax_remade *of = r->value(r->context, operand);
  value->opaque = !(ax_remake_sees_through(r, of) ? add_bases_of(r, value, of) : add_base(value, operand));
  return !value->opaque;
}

/* The bytes that must be kept in addition, so that the value can be made again. *lacks: one base that is not kept yet; *count: the
   number of these. */
static double price(const ax_remaking *r, uint32_t id, uint32_t *lacks, uint32_t *count) {
  const ax_remade *value = r->value(r->context, id);
  double bytes = 0;
  *count = 0;
  for (uint32_t i = 0; i < value->base_count; i++) {
    const uint32_t base = value->bases[i];
    const double weight = r->weight(r->context, base);
    if (r->is_kept(r->context, base, id) || (r->decided && r->value(r->context, base)->gain > weight)) continue;
    bytes += weight;
    *lacks = base;
    (*count)++;
  }
  return bytes;
}

void ax_remake_decide(const ax_remaking *r, uint32_t id) {
  ax_remade *value = r->value(r->context, id);
  uint32_t lacks = 0, count;
  if (!value->wanted || value->opaque) return;
  const double bytes = price(r, id, &lacks, &count), weight = r->weight(r->context, id);
  if (!r->decided && count == 1) r->value(r->context, lacks)->gain += weight;
  if (!r->decided || bytes > weight / 2) return;
  value->again = true;
  for (uint32_t i = 0; i < value->base_count; i++) r->keep(r->context, value->bases[i], id);
}
