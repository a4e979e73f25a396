/* Collectives that are more than those of axle/collectives.h and axle/collective_matmul.h with C++'s lists, which axle/cxx/functions.hpp has. See
   axle/axle.hpp. */
#ifndef AXLE_CXX_COLLECTIVES_HPP
#define AXLE_CXX_COLLECTIVES_HPP

#include "axle/cxx/value.hpp"

namespace axle {
inline namespace AXLE_ERRORS_ {

namespace detail {
/* The future of a collective that was started (functions.hpp). */
inline value started(const value &made, const input &x, const char *function) { return lined(ax_start_close(made.get()), x, function); }
}  // namespace detail

inline value pbroadcast(input x, const detail::text &axes, input source) {
  return detail::lined(ax_pbroadcast_dynamic(x, axes, source), x, "pbroadcast_dynamic");
}

/* Rings for collective_matmul_kernel: rings({{0, 1, 2}, {5, 4, 3}}); none: one of all members in their order. Of one length; owns its table. */
class rings {
  std::vector<std::int32_t> ids_;
  ax_rings raw_{};
  bool all_ = true;

  template <class Table>
  void take(const Table &given) {
    bool even = true;
    std::size_t length = given.size() > 0 ? given.begin()->size() : 0;
    for (const auto &ring : given) {
      ids_.insert(ids_.end(), ring.begin(), ring.end());
      even = even && ring.size() == length;
    }
    if (even) raw_.type = array_type(s32, {static_cast<std::int64_t>(given.size()), static_cast<std::int64_t>(length)}); /* else no dtype: refused */
    all_ = false;
  }

 public:
  rings() = default;
  rings(std::initializer_list<std::initializer_list<std::int32_t>> given) { take(given); }
  rings(const std::vector<std::vector<std::int32_t>> &given) { take(given); }
  ax_rings raw() const { return {raw_.type, ids_.data()}; } /* borrows */
  bool all() const { return all_; }
};
inline value collective_matmul_kernel(input lhs, input rhs, const detail::text &axes, const rings &over = {}, const ax_ring_options &options = {}) {
  const ax_rings raw = over.raw();
  return detail::lined(ax_collective_matmul_kernel(lhs, rhs, axes, over.all() ? nullptr : &raw, &options), lhs, "collective_matmul_kernel");
}
inline value matmul_reduce_scatter_kernel(input lhs, input rhs, const detail::text &axes, const rings &over = {}, const ax_ring_options &options = {}) {
  const ax_rings raw = over.raw();
  return detail::lined(ax_matmul_reduce_scatter_kernel(lhs, rhs, axes, over.all() ? nullptr : &raw, &options), lhs, "matmul_reduce_scatter_kernel");
}

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

}  // namespace AXLE_ERRORS_
}  // namespace axle

#endif
