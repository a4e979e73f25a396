/* Operations on values that are more than those of axle/ops.h with C++'s lists, which axle/cxx/functions.hpp has: operators by name, and where C
   trusts a list to be as long as an operand's rank. See axle/axle.hpp. */
#ifndef AXLE_CXX_OPS_HPP
#define AXLE_CXX_OPS_HPP

#include "axle/cxx/host.hpp"
#include "axle/cxx/value.hpp"

namespace axle {
inline namespace AXLE_ERRORS_ {

namespace detail {

/* Whether a list that must have an entry for each dimension of x has; fails the trace otherwise. */
inline bool suits(const input &x, const char *function, const char *what, std::size_t count) {
  type found = ax_typeof(x);
  if (found.dtype == AX_NO_DTYPE) return false;
  if (found.rank == count) return true;
  ax_trace_fail((std::string(function) + ": " + what + " has " + std::to_string(count) + " entries, but the operand " +
                 std::to_string(found.rank) + " dimensions").c_str());
  return false;
}

}  // namespace detail

/* --- Constants --- */
template <class N, std::enable_if_t<std::is_arithmetic<N>::value, int> = 0>
value full(dtype of, const dims &shape, N number, location at = location::here()) {
  if constexpr (std::is_integral<N>::value)
    return detail::lined(ax_full_i64(of, shape.count(), shape.data(), static_cast<std::int64_t>(number)), at, "full_i64");
  else
    return detail::lined(ax_full(of, shape.count(), shape.data(), static_cast<double>(number)), at, "full");
}
/* constant(std::vector<float>{1, 2}), constant(view(table, {8, 4})) */
inline value constant(const host_view &array, location at = location::here()) {
  type own = array.type();
  return detail::lined(ax_constant(&own, own.dtype, array.get().data, SIZE_MAX), at, "constant");
}

/* --- Pointwise --- */
inline value add(operand a, operand b) { return a + b; }
inline value sub(operand a, operand b) { return a - b; }
inline value mul(operand a, operand b) { return a * b; }
inline value div(operand a, operand b) { return a / b; }
inline value neg(input x) { return -x; }
inline value eq(operand a, operand b) { return a == b; }
inline value ne(operand a, operand b) { return a != b; }
inline value lt(operand a, operand b) { return a < b; }
inline value le(operand a, operand b) { return a <= b; }
inline value gt(operand a, operand b) { return a > b; }
inline value ge(operand a, operand b) { return a >= b; }
inline value and_(operand a, operand b) { return a & b; }
inline value or_(operand a, operand b) { return a | b; }
inline value not_(input x) { return ~x; }

/* --- Shape --- */
inline value transpose(input x, const dims &permutation) {
  bool suits = detail::suits(x, "transpose", "the permutation", permutation.count());
  return detail::lined(suits ? ax_transpose(x, permutation.count(), permutation.data()) : ax_value{}, x, "transpose");
}
inline value broadcast_in_dim(input x, const dims &shape, const dims &broadcast_dimensions) {
  bool suits = detail::suits(x, "broadcast_in_dim", "broadcast_dimensions", broadcast_dimensions.count());
  ax_value made = suits ? ax_broadcast_in_dim(x, shape.count(), shape.data(), broadcast_dimensions.count(),
                                              broadcast_dimensions.data()) : ax_value{};
  return detail::lined(made, x, "broadcast_in_dim");
}
inline value slice(input x, const dims &start, const dims &limit, const dims &strides = all_dims) { /* without strides: all 1 */
  bool suits = detail::suits(x, "slice", "start", start.count()) && detail::suits(x, "slice", "limit", limit.count()) &&
               (strides.is_all() || detail::suits(x, "slice", "strides", strides.count()));
  return detail::lined(suits ? ax_slice(x, start.count(), start.data(), limit.count(), limit.data(), strides.count(), strides.data()) : ax_value{}, x,
                       "slice");
}
inline value pad(input x, operand padding, const dims &low, const dims &high, const dims &interior = all_dims) { /* without: all 0 */
  const std::int64_t none[AX_MAX_RANK] = {};
  bool suits = detail::suits(x, "pad", "low", low.count()) && detail::suits(x, "pad", "high", high.count()) &&
               (interior.is_all() || detail::suits(x, "pad", "interior", interior.count()));
  const std::int64_t *inside = interior.is_all() ? none : interior.data();
  return detail::lined(suits ? ax_pad(x, padding, low.count(), low.data(), high.count(), high.data(), low.count(), inside) : ax_value{}, x, "pad");
}
/* dynamic_slice(x, {row, 0}, {1, 8}) */
inline value dynamic_slice(input x, const vectors &starts, const dims &sizes) {
  bool suits = detail::suits(x, "dynamic_slice", "starts", starts.count()) && detail::suits(x, "dynamic_slice", "sizes", sizes.count());
  ax_value made = suits ? ax_dynamic_slice(x, starts.count(), starts.data(), sizes.count(), sizes.data()) : ax_value{};
  return detail::lined(made, x, "dynamic_slice");
}
inline value dynamic_update_slice(input x, input update, const vectors &starts) {
  bool suits = detail::suits(x, "dynamic_update_slice", "starts", starts.count());
  ax_value made = suits ? ax_dynamic_update_slice(x, update, starts.count(), starts.data()) : ax_value{};
  return detail::lined(made, x, "dynamic_update_slice");
}
/* A part for each of the sizes. */
inline std::vector<value> split(input x, const dims &sizes, std::int64_t dimension = 0) {
  std::vector<ax_value> parts(sizes.count());
  ax_split(x, sizes.count(), sizes.data(), dimension, sizes.count(), parts.data());
  detail::stamp(x.at(), "split");
  std::vector<value> made;
  for (ax_value part : parts) made.push_back(value(part));
  return made;
}

/* --- Parts along one dimension --- */
inline constexpr std::int64_t end = AX_END; /* a limit: to the end */

/* --- Indices --- */
using index_options = ax_index_options; /* {.mode = AX_INDEX_CLIP} in C++20; fields set one by one before */
/* Lists that stay as long as the call: those of ax_gather_dims. */
struct gather_dims {
  dims offset_dims{}, collapsed_slice_dims{}, start_index_map{}, operand_batching_dims{}, start_indices_batching_dims{};
};
struct scatter_dims {
  dims update_window_dims{}, inserted_window_dims{}, scatter_dims_to_operand_dims{}, operand_batching_dims{}, scatter_indices_batching_dims{};
};
namespace detail {
inline value scatter(ax_value (*function)(ax_value, ax_value, ax_value, const ax_scatter_dims *, const ax_index_options *), input x, input indices, input updates,
                     const scatter_dims &of, const index_options &options, const char *name) {
  const ax_scatter_dims lists = {listed(of.update_window_dims), listed(of.inserted_window_dims), listed(of.scatter_dims_to_operand_dims),
                                 listed(of.operand_batching_dims), listed(of.scatter_indices_batching_dims)};
  return lined(function(x, indices, updates, &lists, &options), x, name);
}
}  // namespace detail
inline value gather(input x, input indices, const gather_dims &of, const dims &slice_sizes, const index_options &options = {}) {
  bool suits = detail::suits(x, "gather", "slice_sizes", slice_sizes.count());
  const ax_gather_dims lists = {detail::listed(of.offset_dims), detail::listed(of.collapsed_slice_dims), detail::listed(of.start_index_map),
                                detail::listed(of.operand_batching_dims), detail::listed(of.start_indices_batching_dims)};
  return detail::lined(suits ? ax_gather(x, indices, slice_sizes.count(), slice_sizes.data(), &lists, &options) : ax_value{}, x, "gather");
}
inline value scatter(input x, input indices, input updates, const scatter_dims &of, const index_options &options = {}) {
  return detail::scatter(ax_scatter, x, indices, updates, of, options, "scatter");
}
inline value scatter_add(input x, input indices, input updates, const scatter_dims &of, const index_options &options = {}) {
  return detail::scatter(ax_scatter_add, x, indices, updates, of, options, "scatter_add");
}
inline value scatter_mul(input x, input indices, input updates, const scatter_dims &of, const index_options &options = {}) {
  return detail::scatter(ax_scatter_mul, x, indices, updates, of, options, "scatter_mul");
}
inline value scatter_min(input x, input indices, input updates, const scatter_dims &of, const index_options &options = {}) {
  return detail::scatter(ax_scatter_min, x, indices, updates, of, options, "scatter_min");
}
inline value scatter_max(input x, input indices, input updates, const scatter_dims &of, const index_options &options = {}) {
  return detail::scatter(ax_scatter_max, x, indices, updates, of, options, "scatter_max");
}

/* --- Order --- */
/* Each of the values, in the order of the first ones. */
inline std::vector<value> sort_together(const list<value> &xs, std::int64_t dimension = -1, std::uint32_t num_keys = 1, location at = location::here()) {
  values all(xs.data(), xs.size());
  std::vector<ax_value> sorted(all.count());
  ax_sort_together(all.count(), all.data(), dimension, num_keys, all.count(), sorted.data());
  detail::stamp(at, "sort_together");
  std::vector<value> made;
  for (ax_value one : sorted) made.push_back(value(one));
  return made;
}
/* Each of the values, across which nothing is simplified. */
inline std::vector<value> optimization_barrier(const list<value> &xs, location at = location::here()) {
  values all(xs.data(), xs.size());
  std::vector<ax_value> passed(all.count());
  ax_optimization_barrier(all.count(), all.data(), all.count(), passed.data());
  detail::stamp(at, "optimization_barrier");
  std::vector<value> made;
  for (ax_value one : passed) made.push_back(value(one));
  return made;
}
/* The greatest, and where they are. */
inline std::pair<value, value> top_k(input x, std::int64_t k) {
  ax_value out[2];
  ax_top_k(x, k, 2, out);
  detail::stamp(x.at(), "top_k");
  return {value(out[0]), value(out[1])};
}

/* --- Products --- */
/* The dimensions that are contracted are pairs, and so are those of the batch. */
inline value dot_general(input lhs, input rhs, const dims &lhs_contract, const dims &rhs_contract, const dims &lhs_batch = {},
                         const dims &rhs_batch = {}) {
  bool paired = lhs_contract.count() == rhs_contract.count() && lhs_batch.count() == rhs_batch.count();
  if (!paired) ax_trace_fail("dot_general: there are as many dimensions of lhs as of rhs, in pairs");
  ax_value made = paired ? ax_dot_general(lhs, rhs, lhs_contract.count(), lhs_contract.data(), rhs_contract.count(), rhs_contract.data(),
                                          lhs_batch.count(), lhs_batch.data(), rhs_batch.count(), rhs_batch.data())
                         : ax_value{};
  return detail::lined(made, lhs, "dot_general");
}

/* --- Windows --- */
/* As ax_conv_options: conv_general_dilated(x, w, {.lhs = "NHWC", .rhs = "HWIO", .padding = "SAME"}); what is empty is not said. */
struct conv_options {
  std::string lhs{}, rhs{}, out{};
  std::vector<std::int64_t> strides{}, low{}, high{}, lhs_dilation{}, rhs_dilation{};
  std::string padding{};
  std::int64_t feature_group_count = 1, batch_group_count = 1;
  dtype preferred_element_type = AX_NO_DTYPE;
};
/* As ax_window_options. */
struct window_options {
  std::vector<std::int64_t> strides{}, low{}, high{}, base_dilation{}, window_dilation{};
  std::string padding{};
};

namespace detail {

inline const char *said(const std::string &text) { return text.empty() ? nullptr : text.c_str(); }
inline const std::int64_t *said(const std::vector<std::int64_t> &list) { return list.empty() ? nullptr : list.data(); }
/* Whether lists have an entry for each of x's dimensions but `less` of them, where they have any. */
inline bool suit(const input &x, std::uint32_t less, const char *function, const std::vector<const std::vector<std::int64_t> *> &lists) {
  type found = ax_typeof(x);
  for (const auto *list : lists)
    if (!list->empty() && found.dtype != AX_NO_DTYPE && list->size() + less != found.rank) {
      ax_trace_fail((std::string(function) + ": an option has " + std::to_string(list->size()) + " entries, for an operand of " + std::to_string(found.rank) +
                     " dimensions").c_str());
      return false;
    }
  return true;
}
using windowed = ax_value (*)(ax_value, std::uint32_t, const std::int64_t *, const ax_window_options *);
inline value reduce_window(windowed function, const char *name, input x, const dims &window, const window_options &o) {
  ax_window_options raw = {listed(o.strides), listed(o.low), listed(o.high), listed(o.base_dilation), listed(o.window_dilation), said(o.padding)};
  bool good = suits(x, name, "the window", window.count());
  return lined(good ? function(x, window.count(), window.data(), &raw) : ax_value{}, x, name);
}

using selecting = ax_value (*)(ax_value, ax_value, bool, std::uint32_t, const std::int64_t *, const ax_window_options *);
inline value select_and(selecting function, const char *name, input x, input operand, bool largest, const dims &window, const window_options &o) {
  ax_window_options raw = {listed(o.strides), listed(o.low), listed(o.high), listed(o.base_dilation), listed(o.window_dilation), said(o.padding)};
  bool good = suits(operand, name, "the window", window.count());
  return lined(good ? function(x, operand, largest, window.count(), window.data(), &raw) : ax_value{}, x, name);
}

}  // namespace detail

inline value conv_general_dilated(input lhs, input rhs, const conv_options &o = {}) {
  static const char name[] = "conv_general_dilated";
  ax_conv_options raw = {detail::said(o.lhs), detail::said(o.rhs), detail::said(o.out), detail::listed(o.strides), detail::listed(o.low),
                         detail::listed(o.high), detail::listed(o.lhs_dilation), detail::listed(o.rhs_dilation), detail::said(o.padding),
                         o.feature_group_count, o.batch_group_count, o.preferred_element_type};
  return detail::lined(ax_conv_general_dilated(lhs, rhs, &raw), lhs, name);
}
inline value conv(input lhs, input rhs, const std::vector<std::int64_t> &strides = {}, const std::string &padding = "VALID") {
  bool good = detail::suit(lhs, 2, "conv", {&strides});
  return detail::lined(good ? ax_conv(lhs, rhs, static_cast<std::uint32_t>(strides.size()), detail::said(strides), padding.c_str()) : ax_value{}, lhs, "conv");
}
inline value reduce_window_sum(input x, const dims &window, const window_options &o = {}) {
  return detail::reduce_window(ax_reduce_window_sum, "reduce_window_sum", x, window, o);
}
inline value reduce_window_max(input x, const dims &window, const window_options &o = {}) {
  return detail::reduce_window(ax_reduce_window_max, "reduce_window_max", x, window, o);
}
inline value reduce_window_min(input x, const dims &window, const window_options &o = {}) {
  return detail::reduce_window(ax_reduce_window_min, "reduce_window_min", x, window, o);
}
inline value select_and_gather_add(input tangents, input operand, bool largest, const dims &window, const window_options &o = {}) {
  return detail::select_and(ax_select_and_gather_add, "select_and_gather_add", tangents, operand, largest, window, o);
}
inline value select_and_scatter_add(input source, input operand, bool largest, const dims &window, const window_options &o = {}) {
  return detail::select_and(ax_select_and_scatter_add, "select_and_scatter_add", source, operand, largest, window, o);
}
inline value max_pool(input x, const dims &window, const std::vector<std::int64_t> &strides = {}, const std::string &padding = "VALID") {
  bool good = detail::suit(x, 2, "max_pool", {&strides});
  return detail::lined(good ? ax_max_pool(x, window.count(), window.data(), static_cast<std::uint32_t>(strides.size()), detail::said(strides),
                                          padding.c_str())
                            : ax_value{},
                       x, "max_pool");
}
inline value avg_pool(input x, const dims &window, const std::vector<std::int64_t> &strides = {}, const std::string &padding = "VALID") {
  bool good = detail::suit(x, 2, "avg_pool", {&strides});
  return detail::lined(good ? ax_avg_pool(x, window.count(), window.data(), static_cast<std::uint32_t>(strides.size()), detail::said(strides),
                                          padding.c_str())
                            : ax_value{},
                       x, "avg_pool");
}

}  // namespace AXLE_ERRORS_
}  // namespace axle

#endif
