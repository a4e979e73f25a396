/* Loops and branches whose bodies stand in blocks, over axle::value: the macros of axle/bodies.h.

     axle::value x = in, total = axle::full(axle::f32, {}, 0);
     AX_LOOP (i, 0, 10, &x, &total) {
       x *= 0.5;
       total += axle::reduce_sum(x);
     }

   What a head declares is a const axle::value. Lambdas do the same (axle::fori_loop, scan, while_, if_); they see what is carried by their
   signature. */
#ifndef AXLE_CXX_BODIES_HPP
#define AXLE_CXX_BODIES_HPP

#include "axle/bodies.h"
#include "axle/cxx/value.hpp"

namespace axle {
inline namespace AXLE_ERRORS_ {

static_assert(std::is_standard_layout<value>::value && sizeof(value) == sizeof(ax_value), "a value is its handle");

/* As ax_each and ax_collect. */
inline value each(input xs) { return detail::lined(ax_each(xs), xs, "each"); }
inline void collect(value *stacked, input y) {
  ax_collect(reinterpret_cast<ax_value *>(stacked), y);
  detail::stamp(y.at(), "collect");
}

/* What the macros call, found by their arguments. */
inline ax_value *ax_block_variable(value *variable) { return reinterpret_cast<ax_value *>(variable); }
inline ax_value ax_block_operand(const value &operand) { return operand.get(); }

}  // namespace AXLE_ERRORS_
}  // namespace axle

#undef AX_BLOCK_VALUE
#define AX_BLOCK_VALUE(name, handle) \
  ::axle::value name { handle }

#endif
