/* Collectives: those of axle/collectives.h and axle/collective_matmul.h, which say what each does. See axle/axle.hpp. `axes`: "data" or "data,model". */
#ifndef AXLE_CXX_COLLECTIVES_HPP
#define AXLE_CXX_COLLECTIVES_HPP

#include "axle/cxx/value.hpp"

namespace axle {
inline namespace AXLE_ERRORS_ {

using axis_names = const std::string &;
/* {{0, 1}, {1, 0}}: from member 0 to 1, and from 1 to 0. */
using pairs = list<std::array<std::int64_t, 2>>;

namespace detail {
inline const std::int64_t (*raw(const pairs &given))[2] { return reinterpret_cast<const std::int64_t(*)[2]>(given.data()); }
/* The operand of a collective that is started, in its trace, and the future of what it came to. */
inline operand begun(const input &x) { return operand(value(ax_start_with(x)), x.at()); }
inline value started(const value &made, const input &x, const char *function) { return lined(ax_start_close(made.get()), x, function); }
}  // namespace detail

inline value psum(operand x, axis_names axes) { return detail::lined(ax_psum(x, axes.c_str()), x, "psum"); }
inline value pmean(operand x, axis_names axes) { return detail::lined(ax_pmean(x, axes.c_str()), x, "pmean"); }
inline value pmax(operand x, axis_names axes) { return detail::lined(ax_pmax(x, axes.c_str()), x, "pmax"); }
inline value pmin(operand x, axis_names axes) { return detail::lined(ax_pmin(x, axes.c_str()), x, "pmin"); }
inline value pargmax(input x, axis_names axes) { return detail::lined(ax_pargmax(x, axes.c_str()), x, "pargmax"); }
inline value pargmin(input x, axis_names axes) { return detail::lined(ax_pargmin(x, axes.c_str()), x, "pargmin"); }
inline value all_gather(input x, axis_names axes, std::int64_t dimension = 0, bool tiled = false) {
  return detail::lined(ax_all_gather(x, axes.c_str(), dimension, tiled), x, "all_gather");
}
inline value all_gather_invariant(input x, axis_names axes, std::int64_t dimension = 0, bool tiled = false) {
  return detail::lined(ax_all_gather_invariant(x, axes.c_str(), dimension, tiled), x, "all_gather_invariant");
}
inline value all_gather_reduced(input x, axis_names axes, std::int64_t dimension = 0, bool tiled = false) {
  return detail::lined(ax_all_gather_reduced(x, axes.c_str(), dimension, tiled), x, "all_gather_reduced");
}
inline value psum_scatter(input x, axis_names axes, std::int64_t dimension = 0, bool tiled = false) {
  return detail::lined(ax_psum_scatter(x, axes.c_str(), dimension, tiled), x, "psum_scatter");
}
inline value all_to_all(input x, axis_names axes, std::int64_t split_axis, std::int64_t concat_axis, bool tiled = false) {
  return detail::lined(ax_all_to_all(x, axes.c_str(), split_axis, concat_axis, tiled), x, "all_to_all");
}
inline value collective_matmul(input x, input w, axis_names axes, const ax_ring_options &options = {}) {
  return detail::lined(ax_collective_matmul(x, w, axes.c_str(), &options), x, "collective_matmul");
}
inline value matmul_reduce_scatter(input x, input w, axis_names axes, const ax_ring_options &options = {}) {
  return detail::lined(ax_matmul_reduce_scatter(x, w, axes.c_str(), &options), x, "matmul_reduce_scatter");
}
inline value ppermute(input x, axis_names axes, const pairs &moves) {
  return detail::lined(ax_ppermute(x, axes.c_str(), moves.count(), detail::raw(moves)), x, "ppermute");
}
inline value pshift(input x, axis_names axes, std::int64_t by, bool wrap) {
  return detail::lined(ax_pshift(x, axes.c_str(), by, wrap), x, "pshift");
}
inline value pshuffle(input x, axis_names axes, list<std::int64_t> perm) {
  return detail::lined(ax_pshuffle(x, axes.c_str(), perm.count(), perm.data()), x, "pshuffle");
}
inline value pswapaxes(input x, axis_names axes, std::int64_t dimension) {
  return detail::lined(ax_pswapaxes(x, axes.c_str(), dimension), x, "pswapaxes");
}
inline value pbroadcast(input x, axis_names axes, std::int64_t source) {
  return detail::lined(ax_pbroadcast(x, axes.c_str(), source), x, "pbroadcast");
}
inline value pbroadcast(input x, axis_names axes, input source) {
  return detail::lined(ax_pbroadcast_dynamic(x, axes.c_str(), source), x, "pbroadcast_dynamic");
}
inline value psend(input x, axis_names axes, const pairs &moves) {
  return detail::lined(ax_psend(x, axes.c_str(), moves.count(), detail::raw(moves)), x, "psend");
}
inline value precv(input token, const type &wanted, axis_names axes, const pairs &moves) {
  return detail::lined(ax_precv(token, wanted, axes.c_str(), moves.count(), detail::raw(moves)), token, "precv");
}
inline value create_token(location at = location::here()) { return detail::lined(ax_create_token(), at, "create_token"); }
inline value ragged_all_to_all(input operand, input output, input input_offsets, input send_sizes, input output_offsets, input recv_sizes,
                               axis_names axes) {
  return detail::lined(ax_ragged_all_to_all(operand, output, input_offsets, send_sizes, output_offsets, recv_sizes, axes.c_str()), operand,
                       "ragged_all_to_all");
}
inline value top_level_all_gather(input x, const mesh &over, const std::string &specs) {
  return detail::lined(ax_top_level_all_gather(x, &over, specs.c_str()), x, "top_level_all_gather");
}
inline value with_sharding(input x, const mesh &over, const std::string &spec) {
  return detail::lined(ax_with_sharding(x, &over, spec.c_str()), x, "with_sharding");
}
inline value axis_index(axis_names axes, location at = location::here()) {
  return detail::lined(ax_axis_index(axes.c_str()), at, "axis_index");
}
inline std::int64_t axis_size(axis_names axes, location at = location::here()) {
  std::int64_t size = ax_axis_size(axes.c_str());
  detail::stamp(at, "axis_size");
  return size;
}
inline value pvary(input x, axis_names axes) { return detail::lined(ax_pvary(x, axes.c_str()), x, "pvary"); }
inline value preduced(input x, axis_names axes) { return detail::lined(ax_preduced(x, axes.c_str()), x, "preduced"); }
inline value reduced_vary_cast(input x, axis_names axes) {
  return detail::lined(ax_reduced_vary_cast(x, axes.c_str()), x, "reduced_vary_cast");
}
inline value vary_unreduced_cast(input x, axis_names axes, ax_unreduced_kind kind = AX_UNREDUCED_SUM) {
  return detail::lined(ax_vary_unreduced_cast(x, axes.c_str(), kind), x, "vary_unreduced_cast");
}
inline value pcast(input x, axis_names axes, const std::string &to) {
  return detail::lined(ax_pcast(x, axes.c_str(), to.c_str()), x, "pcast");
}

inline value unreduced_psum(input x, axis_names axes) { return detail::lined(ax_unreduced_psum(x, axes.c_str()), x, "unreduced_psum"); }
inline value unreduced_pmax(input x, axis_names axes) { return detail::lined(ax_unreduced_pmax(x, axes.c_str()), x, "unreduced_pmax"); }
inline value unreduced_pmin(input x, axis_names axes) { return detail::lined(ax_unreduced_pmin(x, axes.c_str()), x, "unreduced_pmin"); }
inline value unreduced_psum_scatter(input x, axis_names axes, std::int64_t dimension = 0, bool tiled = false) {
  return detail::lined(ax_unreduced_psum_scatter(x, axes.c_str(), dimension, tiled), x, "unreduced_psum_scatter");
}
inline value psum_invariant(input x, axis_names axes) { return detail::lined(ax_psum_invariant(x, axes.c_str()), x, "psum_invariant"); }

/* In two parts: what begins, of one collective or any that a lambda gives, and done.
     value sum = axle::start([&] { return psum(x, "data") / n; });
   An exception that leaves the lambda ends what was begun and fails the trace. */
template <class F>
value start(F &&expression, location at = location::here()) {
  struct closing { /* what is left unfinished, with nothing to show */
    bool open = true;
    ~closing() {
      if (open) ax_start_close(ax_value{0, 0});
    }
  };
  ax_start_open();
  closing last;
  value made = expression();
  detail::stamp(at, "start");
  last.open = false;
  return detail::lined(ax_start_close(made.get()), at, "start");
}
/* Of one collective. */
inline value psum_start(input x, axis_names axes) { return detail::started(psum(detail::begun(x), axes), x, "psum_start"); }
inline value all_gather_start(input x, axis_names axes, std::int64_t dimension = 0, bool tiled = false) {
  return detail::started(all_gather(detail::begun(x), axes, dimension, tiled), x, "all_gather_start");
}
inline value psum_scatter_start(input x, axis_names axes, std::int64_t dimension = 0, bool tiled = false) {
  return detail::started(psum_scatter(detail::begun(x), axes, dimension, tiled), x, "psum_scatter_start");
}
inline value all_to_all_start(input x, axis_names axes, std::int64_t split_axis, std::int64_t concat_axis, bool tiled = false) {
  return detail::started(all_to_all(detail::begun(x), axes, split_axis, concat_axis, tiled), x, "all_to_all_start");
}
inline value pbroadcast_start(input x, axis_names axes, std::int64_t source) {
  return detail::started(pbroadcast(detail::begun(x), axes, source), x, "pbroadcast_start");
}
inline value ppermute_start(input x, axis_names axes, const pairs &moves) {
  return detail::started(ppermute(detail::begun(x), axes, moves), x, "ppermute_start");
}
inline value done(input future) { return detail::lined(ax_done(future), future, "done"); }

}  // namespace AXLE_ERRORS_
}  // namespace axle

#endif
