/* Programs: tracing functions into them, asking, transforming, printing them. See axle/axle.hpp, axle/program.h and axle/transform.h. */
#ifndef AXLE_CXX_PROGRAM_HPP
#define AXLE_CXX_PROGRAM_HPP

#include "axle/cxx/function.hpp"
#include "axle/stages.h"

namespace axle {
inline namespace AXLE_ERRORS_ {

struct linearized;
/* As ax_vmap_options: vmap(f, {x, w}, {{0, AX_NOT_MAPPED}}). */
struct vmap_options {
  std::vector<std::int64_t> in_axes = {}, out_axes = {}; /* empty: all 0; AX_NOT_MAPPED: none */
  std::int64_t size = 0;                                 /* of the mapped dimensions; of a function 0: as the operands have it */
  std::string axis_name = {}, spmd_axis_name = {};       /* empty: none */

  ax_vmap_options raw() const { /* borrows */
    return {detail::listed(in_axes), detail::listed(out_axes), size,
            axis_name.empty() ? nullptr : axis_name.c_str(), spmd_axis_name.empty() ? nullptr : spmd_axis_name.c_str()};
  }
};

/* As ax_cost, and as a table. */
struct cost {
  struct collective {
    std::string primitive, axes;
    std::int64_t members;
    double runs, bytes;
  };
  std::int64_t devices = 0;
  double flops = 0, bytes = 0, received = 0;
  bool at_least = false;
  std::vector<collective> collectives;
  std::string text;
};
namespace detail {
/* Releases the raw one. */
inline may<cost> given_cost(ax_status status, ax_cost raw, location at, const char *name) {
  char *text = nullptr;
  if (status == AX_OK) status = ax_cost_text(&raw, &text);
  cost made{raw.devices, raw.flops, raw.bytes, raw.received, raw.at_least, {}, taken(text)};
  for (std::uint32_t i = 0; i < raw.collective_count; i++) {
    const ax_collective_cost &row = raw.collectives[i];
    made.collectives.push_back({row.primitive, row.axes, row.members, row.runs, row.bytes});
  }
  ax_cost_release(&raw);
  return give(status, std::move(made), at, name);
}
}  // namespace detail

/* A reference to a program. */
class program : public handle<ax_program, ax_program_retain, ax_program_release> {
  template <class Function, class... More>
  may<program> transformed(location at, const char *name, Function function, const More &...more) const {
    ax_program *made;
    ax_status status = function(get(), more..., &made);
    return detail::give(status, program(made), at, name);
  }

 public:
  using handle::handle;
  static may<program> parse(const std::string &text, const std::string &source = "text", location at = location::here()) {
    ax_program *made;
    ax_status status = ax_program_parse(text.data(), text.size(), source.c_str(), &made);
    return detail::give(status, program(made), at, "program_parse");
  }

  std::uint32_t in_count() const { return ax_program_in_count(get()); }
  std::uint32_t out_count() const { return ax_program_out_count(get()); }
  /* Without a dtype when there is none such. */
  type in_type(std::uint32_t index) const { return index < in_count() ? *ax_program_in_type(get(), index) : type{}; }
  type out_type(std::uint32_t index) const { return index < out_count() ? *ax_program_out_type(get(), index) : type{}; }
  mesh axes() const { return get() != nullptr ? mesh(*ax_program_axes(get())) : mesh(); }
  ax_effects effects() const { return ax_program_effects(get()); }
  std::int64_t devices() const { return ax_program_devices(get()); }
  may<std::string> print(location at = location::here()) const {
    char *text = nullptr;
    ax_status status = ax_program_print(get(), &text);
    return detail::give(status, detail::taken(text), at, "program_print");
  }
  may<std::string> print_locations(location at = location::here()) const {
    char *text = nullptr;
    ax_status status = ax_program_print_locations(get(), &text);
    return detail::give(status, detail::taken(text), at, "program_print_locations");
  }
  may<std::string> print_shardings(location at = location::here()) const {
    char *text = nullptr;
    ax_status status = ax_program_print_shardings(get(), &text);
    return detail::give(status, detail::taken(text), at, "program_print_shardings");
  }
  may<std::string> stablehlo(location at = location::here()) const {
    char *text = nullptr;
    ax_status status = ax_program_stablehlo(get(), &text);
    return detail::give(status, detail::taken(text), at, "program_stablehlo");
  }
  may<void> verify(location at = location::here()) const { return detail::give(ax_program_verify(get()), at, "program_verify"); }
  /* Same structure, parameters and types. */
  friend bool operator==(const program &a, const program &b) { return ax_program_equal(a.get(), b.get()); }
  friend bool operator!=(const program &a, const program &b) { return !(a == b); }

  may<program> jvp(const args &wrt, location at = location::here()) const {
    return transformed(at, "program_jvp", ax_program_jvp, ax_args(wrt));
  }
  may<linearized> linearize(const args &wrt, location at = location::here()) const;
  may<program> transpose(const args &linear, location at = location::here()) const {
    return transformed(at, "program_transpose", ax_program_transpose, ax_args(linear));
  }
  may<program> grad(const args &wrt = {0}, location at = location::here()) const {
    return transformed(at, "program_grad", ax_program_grad, ax_args(wrt));
  }
  may<program> value_and_grad(const args &wrt = {0}, location at = location::here()) const {
    return transformed(at, "program_value_and_grad", ax_program_value_and_grad, ax_args(wrt));
  }
  may<program> vmap(const vmap_options &options, location at = location::here()) const {
    ax_vmap_options raw = options.raw();
    return transformed(at, "program_vmap", ax_program_vmap, &raw);
  }
  may<program> dce(location at = location::here()) const { return transformed(at, "program_dce", ax_program_dce); }
  may<program> cse(location at = location::here()) const { return transformed(at, "program_cse", ax_program_cse); }
  may<program> simplify(location at = location::here()) const { return transformed(at, "program_simplify", ax_program_simplify); }
  may<program> with_shardings(const mesh &over, const std::string &specs, location at = location::here()) const {
    return transformed(at, "program_with_shardings", ax_program_with_shardings, &over, specs.c_str());
  }
  may<program> with_explicit_shardings(location at = location::here()) const { return transformed(at, "program_explicit", ax_program_explicit); }
  /* That tracing it took. */
  double seconds() const { return ax_program_seconds(get()); }
  /* What a run costs each device, when it is partitioned. */
  may<axle::cost> cost(location at = location::here()) const {
    ax_cost raw;
    ax_status status = ax_program_cost(get(), &raw);
    return detail::given_cost(status, raw, at, "program_cost");
  }
  /* The same with the devices spread over processes, in blocks: `per_host` of them on each host, or all on one (0). */
  may<axle::cost> cost_over(std::uint32_t processes, std::uint32_t per_host = 0, location at = location::here()) const {
    const ax_process_layout over = {processes, per_host, nullptr, 0};
    ax_cost raw;
    ax_status status = ax_program_cost_over(get(), &over, &raw);
    return detail::given_cost(status, raw, at, "program_cost_over");
  }
  may<program> partition(location at = location::here()) const { return transformed(at, "program_partition", ax_program_partition); }
};

/* What ax_program_linearize gives. */
struct linearized {
  program primal, tangent;
  std::uint32_t residual_count = 0;
};
inline may<linearized> program::linearize(const args &wrt, location at) const {
  ax_program *primal, *tangent;
  std::uint32_t count = 0;
  ax_status status = ax_program_linearize(get(), wrt, &primal, &tangent, &count);
  return detail::give(status, linearized{program(primal), program(tangent), count}, at, "program_linearize");
}

namespace detail {
template <class Closure>
may<program> traced(const ax_mesh *axes, Closure &&function, std::uint32_t count, const type *types, location at,
                    const char *name) {
  if (!function.suits()) return refuse<program>(wrong(at, name, function.mismatch()));
  ax_program *made;
  ax_status status = axes != nullptr ? ax_trace_on(axes, function.fn(), count, types, &made)
                                      : ax_trace(function.fn(), count, types, &made);
  program owned(made);
  function.rethrow();
  return give(status, std::move(owned), at, name);
}
}  // namespace detail

/* Traces a function on values of these types. An exception that leaves the function comes out of this call. */
template <class F, std::size_t N>
may<program> trace(F &&function, const type (&types)[N], location at = location::here()) {
  return detail::traced(nullptr, detail::closure<std::remove_reference_t<F>, N>(function, N), N, types, at, "trace");
}
template <class F>
may<program> trace(F &&function, const std::vector<type> &types = {}, location at = location::here()) {
  auto count = static_cast<std::uint32_t>(types.size());
  return detail::traced(nullptr, detail::closure<std::remove_reference_t<F>, detail::unknown>(function, count), count, types.data(), at, "trace");
}
/* The same inside an axis environment: a per-device program. */
template <class F, std::size_t N>
may<program> trace_on(const mesh &axes, F &&function, const type (&types)[N], location at = location::here()) {
  return detail::traced(&axes, detail::closure<std::remove_reference_t<F>, N>(function, N), N, types, at, "trace_on");
}
template <class F>
may<program> trace_on(const mesh &axes, F &&function, const std::vector<type> &types = {}, location at = location::here()) {
  auto count = static_cast<std::uint32_t>(types.size());
  return detail::traced(&axes, detail::closure<std::remove_reference_t<F>, detail::unknown>(function, count), count, types.data(), at, "trace_on");
}

/* Inside a trace: fails it, with this message. */
inline void trace_fail(const std::string &message, location at = location::here()) {
  ax_trace_fail(message.c_str());
  detail::stamp(at, "trace_fail");
}
/* Inside a trace: runs `called` here. */
inline std::vector<value> call(const program &called, const values &in = {}, location at = location::here()) {
  std::vector<ax_value> out(called.out_count());
  ax_call(called.get(), in.count(), in.data(), called.out_count(), out.data());
  detail::stamp(at, "call");
  return detail::loaded(out.data(), out.size());
}
template <std::size_t N>
std::vector<value> call(const program &called, const value (&in)[N], location at = location::here()) {
  return call(called, values(in, N), at);
}

}  // namespace AXLE_ERRORS_
}  // namespace axle

#endif
