/* sdy.manual_computation and sdy.named_computation. What their layouts say is read by whoever needs it (hlo/sdy.h). */
#include "hlo/read_sdy.h"

#include <string.h>

/* name=[..] or name={..}, kept as text with its brackets. */
static ax_status want_layout(ax_hlo_scan *r, ax_hlo_draft *draft, const char *name) {
  ax_hlo_attribute attribute = {.kind = AX_HLO_OPAQUE};
  AX_TRY(ax_hlo_want(r, name));
  AX_TRY(ax_hlo_want(r, "="));
  ax_hlo_skip(r);
  const char *at = r->cursor;
  AX_TRY(ax_hlo_want_balanced(r, &attribute.text));
  attribute.text = (ax_hlo_slice){at, (size_t)(r->cursor - at)};
  return ax_hlo_draft_attribute(draft, name, &attribute);
}

ax_status ax_hlo_want_operands(ax_hlo_scan *r, ax_hlo_draft *draft) {
  uint32_t value;
  AX_TRY(ax_hlo_want(r, "("));
  if (ax_hlo_take(r, ")")) return AX_OK;
  do {
    AX_TRY(ax_hlo_want_operand(r, &value));
    AX_TRY(ax_hlo_list_add(&draft->operands, &value, sizeof value));
  } while (ax_hlo_take(r, ","));
  return ax_hlo_want(r, ")");
}

/* (%a: type, %b: type) */
static ax_status want_arguments(ax_hlo_scan *r, ax_hlo_list *names, ax_hlo_list *types) {
  AX_TRY(ax_hlo_want(r, "("));
  if (ax_hlo_take(r, ")")) return AX_OK;
  do {
    ax_hlo_slice name, location;
    const ax_hlo_value_type *type;
    AX_TRY(ax_hlo_want_name(r, '%', &name));
    AX_TRY(ax_hlo_want(r, ":"));
    AX_TRY(ax_hlo_want_type(r, &type));
    AX_TRY(ax_hlo_list_add(names, &name, sizeof name));
    AX_TRY(ax_hlo_list_add(types, &type, sizeof type));
    if (ax_hlo_take(r, "loc")) AX_TRY(ax_hlo_want_balanced(r, &location));
  } while (ax_hlo_take(r, ","));
  return ax_hlo_want(r, ")");
}

static ax_status want_body(ax_hlo_scan *r, ax_hlo_draft *draft) {
  ax_hlo_list names = {0}, types = {0};
  ax_status status = want_arguments(r, &names, &types);
  const ax_hlo_arguments arguments = {names.items, types.items, names.count};
  if (status == AX_OK) status = ax_hlo_want_region(r, draft, &arguments);
  ax_free(names.items);
  ax_free(types.items);
  AX_TRY(status);
  AX_TRY(ax_hlo_draft_attributes(r, draft));
  return ax_hlo_want_typed(r, draft);
}

/* (%a) in_shardings=[<..>] out_shardings=[<..>] manual_axes={"data"} (%b: type) {..} : (type) -> type */
ax_status ax_hlo_read_manual(ax_hlo_scan *r, ax_hlo_draft *draft) {
  AX_TRY(ax_hlo_want_operands(r, draft));
  AX_TRY(want_layout(r, draft, "in_shardings"));
  AX_TRY(want_layout(r, draft, "out_shardings"));
  AX_TRY(want_layout(r, draft, "manual_axes"));
  return want_body(r, draft);
}

/* <"name">(%a) in_shardings=[..] out_shardings=[..] (%b: type) {..} : (type) -> type; either layout may be missing. */
ax_status ax_hlo_read_named(ax_hlo_scan *r, ax_hlo_draft *draft) {
  ax_hlo_attribute name = {.kind = AX_HLO_STRING};
  AX_TRY(ax_hlo_want(r, "<"));
  AX_TRY(ax_hlo_want_string(r, &name.text));
  AX_TRY(ax_hlo_want(r, ">"));
  AX_TRY(ax_hlo_draft_attribute(draft, "name", &name));
  AX_TRY(ax_hlo_want_operands(r, draft));
  if (ax_hlo_sees(r, "in_shardings")) AX_TRY(want_layout(r, draft, "in_shardings"));
  if (ax_hlo_sees(r, "out_shardings")) AX_TRY(want_layout(r, draft, "out_shardings"));
  return want_body(r, draft);
}
