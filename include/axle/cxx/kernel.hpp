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

/* scratch(vmem(axle::f32, {8})), scratch(barrier_type({2}), 3): what a kernel or a scope has beside its operands. */
inline ax_scratch scratch(const type &of, std::int64_t arrivals = 0) {
  ax_scratch made{};
  made.type = of;
  made.arrivals = arrivals;
  return made;
}

/* --- Refs --- */

/* starts and sizes: one a dimension. */
inline value ref_slice(input ref, const vectors &starts, list<std::int64_t> sizes) {
  return detail::lined(ax_ref_slice(ref, starts.count(), starts.data(), sizes.count(), sizes.data()), ref, "ref_slice");
}
inline value ref_strided_slice(input ref, const vectors &starts, list<std::int64_t> sizes, list<std::int64_t> strides) {
  return detail::lined(ax_ref_strided_slice(ref, starts.count(), starts.data(), sizes.count(), sizes.data(), strides.count(), strides.data()), ref, "ref_strided_slice");
}

/* --- Kernels --- */

namespace detail {

template <class F, class = void>
constexpr bool gives_nothing = false;
template <class F>
constexpr bool gives_nothing<F, std::enable_if_t<std::is_void<std::invoke_result_t<F &, const std::vector<value> &>>::value>> = true;

/* A body as C takes it. What it throws is thrown again when C has come back. */
template <class F>
class kernel_body {
  F &function_;
  std::uint32_t count_, out_count_;
#if AXLE_THROWS
  std::exception_ptr thrown_;
#endif

  void run(const ax_value *in, ax_value *out) {
    static_assert(std::is_invocable<F &, const std::vector<value> &>::value,
                  "axle: the body of a kernel takes one const std::vector<axle::value> & of all refs");
    if constexpr (gives_nothing<F>) {
      (void)out;
      function_(loaded(in, count_));
    } else {
      const values given(function_(loaded(in, count_)));
      for (std::uint32_t i = 0; i < given.count() && i < out_count_ + 16; i++) out[i] = given.data()[i]; /* C sees those too many */
    }
  }

  static void enter(const ax_value *in, ax_value *out, void *context) noexcept {
    auto *self = static_cast<kernel_body *>(context);
#if AXLE_THROWS
    if (self->thrown_ != nullptr) return; /* the trace has failed already */
    try {
      self->run(in, out);
    } catch (...) {
      self->thrown_ = std::current_exception();
      ax_trace_fail("an exception left the kernel's body");
    }
#else
    self->run(in, out);
#endif
  }

 public:
  kernel_body(F &function, std::size_t count, std::uint32_t out_count = 0)
      : function_(function), count_(static_cast<std::uint32_t>(count)), out_count_(out_count) {}
  ax_fn fn() { return {enter, count_, out_count_, this}; }
  void rethrow() {
#if AXLE_THROWS
    if (thrown_ != nullptr) std::rethrow_exception(std::exchange(thrown_, nullptr));
#endif
  }
};

}  // namespace detail

/* kernel.outs.count results. */
template <class F>
std::vector<value> kernel_call(const ax_kernel &kernel, F &&body, const std::vector<value> &in, location at = location::here()) {
  const values given(in);
  detail::kernel_body<F> function(body, in.size() + kernel.outs.count + kernel.options.scratch.count);
  std::vector<ax_value> out(kernel.outs.count + std::size_t{1});
  ax_kernel_call(&kernel, function.fn(), given.count(), given.data(), kernel.outs.count, out.data());
  detail::stamp(at, "kernel_call");
  function.rethrow();
  return detail::loaded(out.data(), kernel.outs.count);
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
    functions.emplace_back(body, in.size() + outs.size() + options.scratch.count);
    fns.push_back(functions.back().fn());
  }
  std::vector<ax_type> types(outs.begin(), outs.end());
  std::vector<ax_value> out(outs.size() + 1);
  const auto type_count = static_cast<std::uint32_t>(types.size());
  ax_mpmd_map(static_cast<std::uint32_t>(meshes.size()), meshes.data(), static_cast<std::uint32_t>(fns.size()), fns.data(), &options, given.count(),
              given.data(), type_count, types.data(), type_count, out.data());
  detail::stamp(at, "mpmd_map");
  for (auto &function : functions) function.rethrow();
  return detail::loaded(out.data(), outs.size());
}

/* --- Within a kernel --- */

/* Runs the body on refs that are made for it: run_scoped({scratch(vmem(axle::f32, {8}))}, [&](const std::vector<value> &ref) { .. }). It gives what
   the body does, or nothing. */
template <class F>
auto run_scoped(const list<ax_scratch> &made, F &&body, const detail::text &along = {}, location at = location::here()) {
  using given = std::remove_reference_t<F>;
  if constexpr (detail::gives_nothing<given>) {
    detail::kernel_body<given> function(body, made.size());
    ax_value none;
    ax_run_scoped(made.count(), made.data(), along, function.fn(), 0, &none);
    detail::stamp(at, "run_scoped");
    function.rethrow();
  } else {
    detail::closure<given, detail::unknown> function(body, made.count());
    std::vector<ax_value> out(function.out_count() + std::size_t{1});
    if (detail::suits(function, at, "run_scoped"))
      ax_run_scoped(made.count(), made.data(), along, function.fn(), function.out_count(), out.data());
    detail::stamp(at, "run_scoped");
    function.rethrow();
    return function.load(out.data(), function.out_count());
  }
}

/* The body takes the refs of the slots of all operands and results, once a step. */
template <class F>
void emit_pipeline(const ax_pipeline_options &options, F &&body, const std::vector<value> &refs, location at = location::here()) {
  const values given(refs);
  const std::size_t count = std::size_t{options.in_count} + options.out_count;
  detail::kernel_body<std::remove_reference_t<F>> function(body, count);
  if (refs.size() != count)
    ax_trace_fail("emit_pipeline: there are not as many refs as operands and results");
  else
    ax_emit_pipeline(&options, function.fn(), given.data());
  detail::stamp(at, "emit_pipeline");
  function.rethrow();
}

/* Without values that are carried, and with them: first() gives options.carry_count of them, the body takes them last and gives the next ones,
   and last(carries) has those of the last step. */
template <class First, class F, class Last>
void emit_pipeline_warp_specialized(const ax_warp_pipeline_options &options, First &&first, F &&body, Last &&last, const std::vector<value> &refs,
                                    location at = location::here()) {
  const values given(refs);
  const std::size_t count = std::size_t{options.pipeline.in_count} + options.pipeline.out_count;
  const std::size_t barriers = options.manual_consumed_barriers ? options.pipeline.in_count : 0;
  auto begin = [&first](const std::vector<value> &) { return first(); };
  detail::kernel_body<decltype(begin)> init(begin, 0, options.carry_count);
  detail::kernel_body<std::remove_reference_t<F>> function(body, count + barriers + options.carry_count, options.carry_count);
  detail::kernel_body<std::remove_reference_t<Last>> final(last, options.carry_count);
  ax_warp_pipeline_options raw = options;
  if (options.carry_count > 0) {
    raw.carry_init = init.fn();
    raw.carry_final = final.fn();
  }
  if (refs.size() != count)
    ax_trace_fail("emit_pipeline_warp_specialized: there are not as many refs as operands and results");
  else
    ax_emit_pipeline_warp_specialized(&raw, function.fn(), given.data());
  detail::stamp(at, "emit_pipeline_warp_specialized");
  init.rethrow();
  function.rethrow();
  final.rethrow();
}
template <class F>
void emit_pipeline_warp_specialized(const ax_warp_pipeline_options &options, F &&body, const std::vector<value> &refs, location at = location::here()) {
  auto nothing = [](const auto &...) {};
  emit_pipeline_warp_specialized(options, nothing, std::forward<F>(body), nothing, refs, at);
}

}  // namespace AXLE_ERRORS_
}  // namespace axle

#endif
