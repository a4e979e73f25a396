/* Checks of callers' lists against their counts, and of callers' memory against the dtype and bytes that the C compiler knows of it
   (axle/type.h). */
#include "ir/program.h"

ax_status ax_list_check(const char *who, const char *takes, const char *what, uint32_t count, uint32_t needed) {
  uint32_t given = ax_list_entries(count, needed);
  if (given == needed) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "%s: %s %u %s%s, but the list has %u", who, takes, needed, what, needed == 1 ? "" : "s",
                  given);
}

ax_status ax_option_check(const char *who, const char *option, uint32_t count, const void *v, uint32_t needed, const char *what) {
  if (count == 0 || (count == needed && v != NULL)) return AX_OK;
  if (v == NULL) return ax_error(AX_INVALID_ARGUMENT, "%s: %s has a count of %u, but no entries", who, option, count);
  return ax_error(AX_INVALID_ARGUMENT, "%s: %s has %u %s, but there %s %u %s%s", who, option, count,
                  count == 1 ? "entry" : "entries", needed == 1 ? "is" : "are", needed, what, needed == 1 ? "" : "s");
}

bool ax_option_fits(const char *who, const char *option, uint32_t count, const void *v, uint32_t needed, const char *what) {
  ax_status status = ax_option_check(who, option, count, v, needed, what);
  if (status != AX_OK) ax_fail(status);
  return status == AX_OK;
}

ax_status ax_list_length(const char *who, const char *what, uint32_t count, uint32_t *length) {
  *length = ax_list_entries(count, AX_ROOM(0));
  if (count != AX_ANY_ROOM) return AX_OK;
  *length = 0;
  return ax_error(AX_INVALID_ARGUMENT, "%s: nothing says how many %s there are: AX_LIST(count, pointer) does", who, what);
}

static bool is_integer(ax_dtype dtype) {
  const ax_dtype_kind kind = ax_dtype_get(dtype)->kind;
  return kind == AX_KIND_SIGNED || kind == AX_KIND_UNSIGNED;
}

/* Signed and unsigned integers of one size may stand for each other, as C lets them; keys are held as their words. */
static bool holds(ax_dtype element, ax_dtype dtype) {
  if (element == AX_NO_DTYPE || element == dtype) return true;
  if (is_integer(element) && is_integer(dtype)) return ax_dtype_bytes(element) == ax_dtype_bytes(dtype);
  if (ax_is_byte_float(dtype)) return element == AX_U8 || element == AX_S8;
  if (ax_is_key(dtype)) return element == AX_U32;
  return element == AX_U16 ? ax_is_narrow_float(dtype) : element == AX_S8 && dtype == AX_BOOL;
}

ax_status ax_memory_check(const char *who, const ax_type *type, ax_dtype element, size_t bytes) {
  int64_t needed;
  if (!holds(element, type->dtype))
    return ax_error(AX_INVALID_ARGUMENT, "%s: the array is %s, but the memory in C has elements of type %s", who,
                    ax_type_string(type, NULL), ax_dtype_name(element));
  if (!ax_mul_i64(ax_type_elems(type), (int64_t)ax_dtype_bytes(type->dtype), &needed) || (uint64_t)needed <= bytes) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "%s: %s takes %lld bytes, but the memory in C has %zu", who, ax_type_string(type, NULL),
                  (long long)needed, bytes);
}

ax_status ax_view_check(const ax_host_array *host) {
  const ax_refused_view *view = &host->refused;
  uint32_t rank;
  if (view->call == NULL) return AX_OK;
  AX_TRY(ax_list_length(view->call, "dimensions", host->rank, &rank));
  if (view->dtype <= AX_NO_DTYPE || view->dtype >= AX_DTYPE_COUNT)
    return ax_error(AX_INVALID_ARGUMENT, "%s: %d is no dtype", view->call, (int)view->dtype);
  if (rank > AX_MAX_RANK)
    return ax_error(AX_INVALID_ARGUMENT, "%s: an array has %d dimensions at most, not %u", view->call, AX_MAX_RANK, rank);
  for (uint32_t d = 0; d < rank; d++)
    if (host->dims[d] < 0)
      return ax_error(AX_INVALID_ARGUMENT, "%s: dimension %u is %lld", view->call, d, (long long)host->dims[d]);
  const ax_type type = ax_array_type(view->dtype, AX_LIST(rank, host->dims));
  return ax_memory_check(view->call, &type, view->element, view->bytes);
}

bool ax_list_fits(const char *who, const char *takes, const char *what, uint32_t count, uint32_t needed) {
  ax_status status = ax_list_check(who, takes, what, count, needed);
  if (status != AX_OK) ax_fail(status);
  return status == AX_OK;
}

void ax_poison_list(uint32_t count, uint32_t needed, ax_value *out) {
  for (uint32_t k = 0; out != NULL && k < ax_list_entries(count, needed); k++) out[k] = ax_poison;
}

bool ax_lists_fit(const char *who, uint32_t in_count, uint32_t in_needed, uint32_t out_count, uint32_t out_needed, ax_value *out) {
  if (ax_list_fits(who, "the function takes", "operand", in_count, in_needed) &&
      ax_list_fits(who, "the call gives", "result", out_count, out_needed))
    return true;
  ax_poison_list(out_count, out_needed, out);
  return false;
}
