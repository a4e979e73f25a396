/* Kernels. See axle/axle.hpp and, for what each function does, axle/kernel.h. Bodies take one const std::vector<axle::value> & of all refs, and give nothing:

     auto sum = axle::kernel_call(kernel, [](const std::vector<axle::value> &ref) {
       axle::ref_store(ref[2], axle::ref_load(ref[0]) + axle::ref_load(ref[1]));
     }, {x, y});
*/
#ifndef AXLE_CXX_KERNEL_HPP
#define AXLE_CXX_KERNEL_HPP

#include <functional>

#include "axle/cxx/function.hpp"
#include "axle/kernel.h"

namespace axle {
inline namespace AXLE_ERRORS_ {

/* --- Types: vmem(axle::f32, {8, 128}) is AX_VMEM(AX_F32, 8, 128) of C --- */

inline type ref_type(ax_space space, dtype of, const dims &shape = {}) { return ax_ref_type(space, of, shape.count(), shape.data()); }
inline type vmem(dtype of, const dims &shape = {}) { return ref_type(AX_SPACE_VMEM, of, shape); }
inline type smem(dtype of, const dims &shape = {}) { return ref_type(AX_SPACE_SMEM, of, shape); }
inline type hbm(dtype of, const dims &shape = {}) { return ref_type(AX_SPACE_HBM, of, shape); }

/* --- Refs --- */

inline value ref_at(input ref, operand index) { return detail::lined(ax_ref_at(ref, index), ref, "ref_at"); }
/* starts and sizes: one a dimension. */
inline value ref_slice(input ref, const vectors &starts, list<std::int64_t> sizes) {
  return detail::lined(ax_ref_slice(ref, starts.data(), sizes.data()), ref, "ref_slice");
}
inline value ref_strided_slice(input ref, const vectors &starts, list<std::int64_t> sizes, list<std::int64_t> strides) {
  return detail::lined(ax_ref_strided_slice(ref, starts.data(), sizes.data(), strides.data()), ref, "ref_strided_slice");
}
inline value ref_transpose(input ref, list<std::int64_t> permutation) {
  return detail::lined(ax_ref_transpose(ref, permutation.count(), permutation.data()), ref, "ref_transpose");
}
inline value ref_reshape(input ref, list<std::int64_t> dims) { return detail::lined(ax_ref_reshape(ref, dims.count(), dims.data()), ref, "ref_reshape"); }
inline value ref_load(input ref) { return detail::lined(ax_ref_load(ref), ref, "ref_load"); }
inline value ref_load_masked(input ref, input mask, operand other) {
  return detail::lined(ax_ref_load_masked(ref, mask, other), ref, "ref_load_masked");
}
inline void ref_store(input ref, operand given) {
  ax_ref_store(ref, given);
  detail::stamp(ref.at(), "ref_store");
}
inline void ref_store_masked(input ref, input mask, operand given) {
  ax_ref_store_masked(ref, mask, given);
  detail::stamp(ref.at(), "ref_store_masked");
}
inline value ref_swap(input ref, operand given) { return detail::lined(ax_ref_swap(ref, given), ref, "ref_swap"); }
inline value ref_swap_masked(input ref, input mask, operand given, operand other) {
  return detail::lined(ax_ref_swap_masked(ref, mask, given, other), ref, "ref_swap_masked");
}
inline void ref_add(input ref, operand given) {
  ax_ref_add(ref, given);
  detail::stamp(ref.at(), "ref_add");
}

/* --- Semaphores, barriers, copies. `to`: whose; the own without one. --- */

inline void semaphore_signal(input semaphore, operand amount, const ax_target_core *to = nullptr) {
  ax_semaphore_signal(semaphore, amount, to);
  detail::stamp(semaphore.at(), "semaphore_signal");
}
inline void semaphore_wait(input semaphore, operand amount) {
  ax_semaphore_wait(semaphore, amount);
  detail::stamp(semaphore.at(), "semaphore_wait");
}
inline value semaphore_read(input semaphore) { return detail::lined(ax_semaphore_read(semaphore), semaphore, "semaphore_read"); }
inline value barrier_semaphore(location at = location::here()) { return detail::lined(ax_barrier_semaphore(), at, "barrier_semaphore"); }
inline void barrier_arrive(input barrier) {
  ax_barrier_arrive(barrier);
  detail::stamp(barrier.at(), "barrier_arrive");
}
inline void barrier_wait(input barrier) {
  ax_barrier_wait(barrier);
  detail::stamp(barrier.at(), "barrier_wait");
}
inline void copy_start(input source, input destination, const ax_copy_options &options) {
  ax_copy_start(source, destination, &options);
  detail::stamp(source.at(), "copy_start");
}
inline void copy_wait(input semaphore, input ref) {
  ax_copy_wait(semaphore, ref);
  detail::stamp(semaphore.at(), "copy_wait");
}
inline void copy(input source, input destination) {
  ax_copy(source, destination);
  detail::stamp(source.at(), "copy");
}

/* --- Where one is --- */

inline value program_id(std::uint32_t dimension, location at = location::here()) { return detail::lined(ax_program_id(dimension), at, "program_id"); }
inline value num_programs(std::uint32_t dimension, location at = location::here()) {
  return detail::lined(ax_num_programs(dimension), at, "num_programs");
}

/* --- Kernels --- */

namespace detail {

/* A body as C takes it. What it throws is thrown again when C has come back. */
template <class F>
class kernel_body {
  F &function_;
  std::uint32_t count_;
#if AXLE_THROWS
  std::exception_ptr thrown_;
#endif

  static void enter(const ax_value *in, ax_value *, void *context) noexcept {
    auto *self = static_cast<kernel_body *>(context);
#if AXLE_THROWS
    if (self->thrown_ != nullptr) return; /* the trace has failed already */
    try {
      self->function_(loaded(in, self->count_));
    } catch (...) {
      self->thrown_ = std::current_exception();
      ax_trace_fail("an exception left the kernel's body");
    }
#else
    self->function_(loaded(in, self->count_));
#endif
  }

 public:
  kernel_body(F &function, std::size_t count) : function_(function), count_(static_cast<std::uint32_t>(count)) {}
  ax_fn fn() { return {enter, count_, 0, this}; }
  void rethrow() {
#if AXLE_THROWS
    if (thrown_ != nullptr) std::rethrow_exception(std::exchange(thrown_, nullptr));
#endif
  }
};

}  // namespace detail

/* kernel.out_count results. */
template <class F>
std::vector<value> kernel_call(const ax_kernel &kernel, F &&body, const std::vector<value> &in, location at = location::here()) {
  const values given(in);
  detail::kernel_body<F> function(body, in.size() + kernel.out_count + kernel.options.scratch_count);
  std::vector<ax_value> out(kernel.out_count + std::size_t{1});
  ax_kernel_call(&kernel, function.fn(), given.count(), given.data(), out.data());
  detail::stamp(at, "kernel_call");
  function.rethrow();
  return detail::loaded(out.data(), kernel.out_count);
}

/* A function for each of the meshes. */
using kernel_function = std::function<void(const std::vector<value> &)>;
inline std::vector<value> mpmd_map(const std::vector<ax_core_mesh> &meshes, std::vector<kernel_function> bodies, const ax_kernel_options &options,
                                   const std::vector<value> &in, const std::vector<axle::type> &outs, location at = location::here()) {
  const values given(in);
  std::vector<detail::kernel_body<kernel_function>> functions;
  std::vector<ax_fn> fns;
  functions.reserve(bodies.size()); /* they are pointed to */
  for (kernel_function &body : bodies) {
    functions.emplace_back(body, in.size() + outs.size() + options.scratch_count);
    fns.push_back(functions.back().fn());
  }
  std::vector<ax_type> types(outs.begin(), outs.end());
  std::vector<ax_value> out(outs.size() + 1);
  if (fns.size() != meshes.size())
    ax_trace_fail("mpmd_map: there are not as many functions as meshes");
  else
    ax_mpmd_map(static_cast<std::uint32_t>(meshes.size()), meshes.data(), fns.data(), &options, given.count(), given.data(),
                static_cast<std::uint32_t>(types.size()), types.data(), out.data());
  detail::stamp(at, "mpmd_map");
  for (auto &function : functions) function.rethrow();
  return detail::loaded(out.data(), outs.size());
}

}  // namespace AXLE_ERRORS_
}  // namespace axle

#endif
