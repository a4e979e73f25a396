/* What takes functions inside a trace: control flow, shard_map, pmap, derivatives, vmap. See axle/axle.hpp, axle/ops.h, axle/collectives.h,
   axle/pmap.h and axle/transform.h; for which functions there may be, axle/cxx/function.hpp.

   Operands are a list, {a, b}, or a vector, an array or one value. Results are what the function gives. Where a function takes another
   number of values than there are operands, a list that is written out does not compile, and any other fails the trace. */
#ifndef AXLE_CXX_TRANSFORM_HPP
#define AXLE_CXX_TRANSFORM_HPP

#include "axle/cxx/program.hpp"

namespace axle {
inline namespace AXLE_ERRORS_ {

namespace detail {

template <class F, std::size_t N>
using closure_of = closure<std::remove_reference_t<F>, N>;

/* Calls C with the function and a place for each of its results, and gives these as the function would. */
template <std::size_t N, class F, class Call>
auto with_function(F &function, const operands<N> &in, location at, const char *name, Call call) {
  closure_of<F, N> closure(function, in.list.count());
  std::vector<ax_value> out(closure.out_count());
  if (suits(closure, at, name)) call(closure.fn(), in.list.count(), in.list.data(), closure.out_count(), out.data());
  closure.rethrow();
  stamp(at, name);
  return closure.load(out.data(), closure.out_count());
}

/* The same of two functions, whose results, where they both have some, are alike. */
template <std::size_t N, class F, class G, class Call>
auto with_functions(F &function, G &other, const operands<N> &in, location at, const char *name, Call call) {
  closure_of<F, N> closure(function, in.list.count());
  closure_of<G, N> beside(other, in.list.count());
  std::vector<ax_value> out(closure.out_count());
  if (suits(closure, at, name) && suits(beside, at, name)) call(closure.fn(), beside.fn(), in.list.count(), in.list.data(), closure.out_count(), out.data());
  closure.rethrow();
  beside.rethrow();
  stamp(at, name);
  return closure.load(out.data(), closure.out_count());
}

}  // namespace detail

/* --- Control flow --- */

template <class F, std::size_t N>
auto closed_call(F &&function, const value (&in)[N], location at = location::here()) {
  return detail::with_function(function, detail::fixed(in), at, "closed_call", ax_closed_call);
}
template <class F>
auto closed_call(F &&function, const values &in = {}, location at = location::here()) {
  return detail::with_function(function, detail::open(in), at, "closed_call", ax_closed_call);
}

namespace detail {
template <std::size_t N, class Then, class Otherwise>
auto if_on(input predicate, Then &then, Otherwise &otherwise, const operands<N> &in) {
  static_assert(std::is_same<typename closure_of<Then, N>::result, typename closure_of<Otherwise, N>::result>::value,
                "axle: both functions of an if_ give results of the same types");
  return with_functions(then, otherwise, in, predicate.at(), "if", [&](ax_fn yes, ax_fn no, auto... lists) {
    ax_if(predicate, yes, no, lists...);
  });
}

template <std::size_t N, class... F, std::size_t... Index>
auto switch_on(input index, const std::tuple<F...> &branches, const operands<N> &in, std::index_sequence<Index...>) {
  using Result = typename closure<const std::tuple_element_t<0, std::tuple<F...>>, N>::result;
  static_assert((std::is_same<typename closure<const F, N>::result, Result>::value && ...),
                "axle: all branches of a switch_ give results of the same types");
  std::tuple<closure<const F, N>...> closures{
      typename closure<const F, N>::start{std::get<Index>(branches), in.list.count()}...};
  ax_fn fns[] = {std::get<Index>(closures).fn()...};
  std::uint32_t out_count = fns[0].out_count;
  std::vector<ax_value> out(out_count);
  if ((suits(std::get<Index>(closures), index.at(), "switch") && ...)) ax_switch(index, sizeof...(F), fns, in.list.count(), in.list.data(), out_count, out.data());
  (std::get<Index>(closures).rethrow(), ...);
  stamp(index.at(), "switch");
  return closure<const std::tuple_element_t<0, std::tuple<F...>>, N>::load(out.data(), out_count);
}
}  // namespace detail

/* if_(x > 0, [&] { return x; }, [&] { return -x; }): as jax.lax.cond. */
template <class Then, class Otherwise, std::size_t N>
auto if_(input predicate, Then &&then, Otherwise &&otherwise, const value (&in)[N]) {
  return detail::if_on(predicate, then, otherwise, detail::fixed(in));
}
template <class Then, class Otherwise>
auto if_(input predicate, Then &&then, Otherwise &&otherwise, const values &in = {}) {
  return detail::if_on(predicate, then, otherwise, detail::open(in));
}
/* switch_(index, std::tuple{f, g, h}, {x}): as jax.lax.switch. */
template <class... F, std::size_t N>
auto switch_(input index, const std::tuple<F...> &branches, const value (&in)[N]) {
  return detail::switch_on(index, branches, detail::fixed(in), std::index_sequence_for<F...>());
}
template <class... F>
auto switch_(input index, const std::tuple<F...> &branches, const values &in = {}) {
  return detail::switch_on(index, branches, detail::open(in), std::index_sequence_for<F...>());
}

/* As jax.lax.scan: body takes the carries, then a slice of each of xs, and gives the carries, then what is stacked. The result is what
   it gives: the final carries, then the stacks. length -1: that of xs. */
namespace detail {
template <std::size_t N, class F>
auto scan_on(F &body, std::uint32_t carry_count, operands<N> in, std::int64_t length, bool reverse, location at) {
  return with_function(body, in, at, "scan", [&](ax_fn f, auto... lists) {
    ax_scan(f, carry_count, length, reverse, lists...);
  });
}
template <std::size_t N>
operands<N> joined(values first, const values &second) {
  first.append(second);
  return {std::move(first)};
}
}  // namespace detail
template <class F, std::size_t C, std::size_t X>
auto scan(F &&body, const value (&carry)[C], const value (&xs)[X], std::int64_t length = -1, bool reverse = false,
          location at = location::here()) {
  return detail::scan_on(body, C, detail::joined<C + X>(values(carry, C), values(xs, X)), length, reverse, at);
}
template <class F, std::size_t C>
auto scan(F &&body, const value (&carry)[C], std::int64_t length, bool reverse = false, location at = location::here()) {
  return detail::scan_on(body, C, detail::fixed(carry), length, reverse, at);
}
template <class F>
auto scan(F &&body, const values &carry, const values &xs, std::int64_t length = -1, bool reverse = false,
          location at = location::here()) {
  return detail::scan_on(body, carry.count(), detail::joined<detail::unknown>(carry, xs), length, reverse, at);
}

/* As jax.lax.associative_scan: combine takes the parts of what stands before, then those of what follows, and gives those of both. */
namespace detail {
template <std::size_t N, class F>
auto associative_scan_on(F &combine, operands<N> twice, std::int64_t axis, bool reverse, location at) {
  return with_function(combine, twice, at, "associative_scan",
                       [&](ax_fn f, std::uint32_t in_count, const ax_value *in, std::uint32_t out_count, ax_value *out) {
                         ax_associative_scan(f, axis, reverse, in_count / 2, in, out_count, out);
                       });
}
}  // namespace detail
template <class F, std::size_t N>
auto associative_scan(F &&combine, const value (&xs)[N], std::int64_t axis = 0, bool reverse = false, location at = location::here()) {
  return detail::associative_scan_on(combine, detail::joined<2 * N>(values(xs, N), values(xs, N)), axis, reverse, at);
}
template <class F>
auto associative_scan(F &&combine, const values &xs, std::int64_t axis = 0, bool reverse = false, location at = location::here()) {
  return detail::associative_scan_on(combine, detail::joined<detail::unknown>(xs, xs), axis, reverse, at);
}

/* As jax.lax.while_loop: condition and body take the carries; the result is what body gives. */
template <class Condition, class Body, std::size_t N>
auto while_(Condition &&condition, Body &&body, const value (&carry)[N], location at = location::here()) {
  return detail::with_functions(body, condition, detail::fixed(carry), at, "while",
                                [](ax_fn f, ax_fn test, auto... lists) { ax_while(test, f, lists...); });
}
template <class Condition, class Body>
auto while_(Condition &&condition, Body &&body, const values &carry, location at = location::here()) {
  return detail::with_functions(body, condition, detail::open(carry), at, "while",
                                [](ax_fn f, ax_fn test, auto... lists) { ax_while(test, f, lists...); });
}

/* As jax.lax.scan with unroll: `unroll` steps in each round of the loop. */
namespace detail {
template <std::size_t N, class F>
auto scan_unrolled_on(F &body, std::uint32_t carry_count, operands<N> in, std::int64_t length, bool reverse, std::int64_t unroll,
                      location at) {
  return with_function(body, in, at, "scan_unrolled", [&](ax_fn f, auto... lists) {
    ax_scan_unrolled(f, carry_count, length, reverse, unroll, lists...);
  });
}
}  // namespace detail
template <class F, std::size_t C, std::size_t X>
auto scan_unrolled(F &&body, std::int64_t unroll, const value (&carry)[C], const value (&xs)[X], std::int64_t length = -1,
                   bool reverse = false, location at = location::here()) {
  return detail::scan_unrolled_on(body, C, detail::joined<C + X>(values(carry, C), values(xs, X)), length, reverse, unroll, at);
}
template <class F>
auto scan_unrolled(F &&body, std::int64_t unroll, const values &carry, const values &xs, std::int64_t length = -1,
                   bool reverse = false, location at = location::here()) {
  return detail::scan_unrolled_on(body, carry.count(), detail::joined<detail::unknown>(carry, xs), length, reverse, unroll, at);
}
/* As jax.lax.map: f of each slice of the operands along dimension 0; so many at a time where batch_size is not 0. */
template <class F, std::size_t N>
auto map(F &&f, const value (&in)[N], std::int64_t batch_size = 0, location at = location::here()) {
  return detail::with_function(f, detail::fixed(in), at, "map", [&](ax_fn g, auto... lists) { ax_map(g, batch_size, lists...); });
}
template <class F>
auto map(F &&f, const values &in, std::int64_t batch_size = 0, location at = location::here()) {
  return detail::with_function(f, detail::open(in), at, "map", [&](ax_fn g, auto... lists) { ax_map(g, batch_size, lists...); });
}

/* As jax.lax.fori_loop: fori_loop(0, 10, [&](value i, value x) { return x + i; }, {x}). */
namespace detail {
template <std::size_t N, class F>
auto fori_on(operand lower, operand upper, F &body, const operands<N> &carry, location at) {
  constexpr std::size_t all = N == unknown ? unknown : N + 1;
  closure_of<F, all> closure(body, carry.list.count() + 1);
  std::vector<ax_value> out(closure.out_count());
  bool sound = suits(closure, at, "fori_loop");
  if (sound && closure.out_count() != carry.list.count()) {
    ax_trace_fail("fori_loop: the body takes the index and the carries, and gives the carries");
    sound = false;
  }
  if (sound) ax_fori_loop(lower, upper, closure.fn(), carry.list.count(), carry.list.data(), closure.out_count(), out.data());
  closure.rethrow();
  stamp(at, "fori_loop");
  return closure.load(out.data(), closure.out_count());
}
}  // namespace detail
template <class F, std::size_t N>
auto fori_loop(operand lower, operand upper, F &&body, const value (&carry)[N], location at = location::here()) {
  return detail::fori_on(lower, upper, body, detail::fixed(carry), at);
}
template <class F>
auto fori_loop(operand lower, operand upper, F &&body, const values &carry, location at = location::here()) {
  return detail::fori_on(lower, upper, body, detail::open(carry), at);
}

/* --- shard_map: specs "data; _,model -> data; " --- */

namespace detail {
template <class Function, std::size_t N, class F>
auto shard_map_on(Function of_c, const mesh &mesh, const std::string &specs, F &body, const operands<N> &in, location at, const char *name) {
  return with_function(body, in, at, name, [&](ax_fn f, auto... lists) {
    of_c(&mesh, specs.c_str(), f, lists...);
  });
}
}  // namespace detail
template <class F, std::size_t N>
auto shard_map(const mesh &mesh, const std::string &specs, F &&body, const value (&in)[N], location at = location::here()) {
  return detail::shard_map_on(ax_shard_map, mesh, specs, body, detail::fixed(in), at, "shard_map");
}
template <class F>
auto shard_map(const mesh &mesh, const std::string &specs, F &&body, const values &in = {}, location at = location::here()) {
  return detail::shard_map_on(ax_shard_map, mesh, specs, body, detail::open(in), at, "shard_map");
}
template <class F, std::size_t N>
auto shard_map_unchecked(const mesh &mesh, const std::string &specs, F &&body, const value (&in)[N], location at = location::here()) {
  return detail::shard_map_on(ax_shard_map_unchecked, mesh, specs, body, detail::fixed(in), at, "shard_map_unchecked");
}
template <class F>
auto shard_map_unchecked(const mesh &mesh, const std::string &specs, F &&body, const values &in = {}, location at = location::here()) {
  return detail::shard_map_on(ax_shard_map_unchecked, mesh, specs, body, detail::open(in), at, "shard_map_unchecked");
}
/* By hand over the named axes alone: shard_map_manual(mesh, "data", "data -> ", f, {x}). */
template <class F, std::size_t N>
auto shard_map_manual(const mesh &mesh, const std::string &names, const std::string &specs, F &&body, const value (&in)[N],
                      location at = location::here()) {
  return detail::with_function(body, detail::fixed(in), at, "shard_map_manual", [&](ax_fn f, auto... lists) {
    ax_shard_map_manual(&mesh, names.c_str(), specs.c_str(), f, lists...);
  });
}
template <class F>
auto shard_map_manual(const mesh &mesh, const std::string &names, const std::string &specs, F &&body, const values &in = {},
                      location at = location::here()) {
  return detail::with_function(body, detail::open(in), at, "shard_map_manual", [&](ax_fn f, auto... lists) {
    ax_shard_map_manual(&mesh, names.c_str(), specs.c_str(), f, lists...);
  });
}

/* As shard_map, computed by one device. */
template <class F, std::size_t N>
auto vtile(const mesh &mesh, const std::string &specs, F &&body, const value (&in)[N], location at = location::here()) {
  return detail::shard_map_on(ax_vtile, mesh, specs, body, detail::fixed(in), at, "vtile");
}
template <class F>
auto vtile(const mesh &mesh, const std::string &specs, F &&body, const values &in = {}, location at = location::here()) {
  return detail::shard_map_on(ax_vtile, mesh, specs, body, detail::open(in), at, "vtile");
}

/* --- pmap --- */

/* As ax_pmap_options: pmap(f, {x, w}, {{0, AX_NOT_MAPPED}}). */
struct pmap_options {
  std::vector<std::int64_t> in_axes = {}, out_axes = {}; /* empty: all 0; AX_NOT_MAPPED: none */
  std::string axis_name = {};                            /* empty: one that nothing else has */
  std::int64_t axis_size = 0;                            /* 0: as the operands have it */
  std::vector<std::int64_t> devices = {};                /* empty: the first there are */

  ax_pmap_options raw() const { /* borrows */
    return {axis_name.empty() ? nullptr : axis_name.c_str(), detail::listed(in_axes), detail::listed(out_axes), axis_size,
            detail::listed(devices)};
  }
};

namespace detail {
template <std::size_t N, class F>
auto pmap_on(F &function, const operands<N> &in, const pmap_options &options, location at) {
  return with_function(function, in, at, "pmap", [&](ax_fn f, auto... lists) {
    ax_pmap_options raw = options.raw();
    ax_pmap(f, lists..., &raw);
  });
}
}  // namespace detail
/* As jax.pmap: pmap(f, {x, w}, {{0, -1}}) */
template <class F, std::size_t N>
auto pmap(F &&function, const value (&in)[N], const pmap_options &options = {}, location at = location::here()) {
  return detail::pmap_on(function, detail::fixed(in), options, at);
}
template <class F>
auto pmap(F &&function, const values &in, const pmap_options &options = {}, location at = location::here()) {
  return detail::pmap_on(function, detail::open(in), options, at);
}

/* --- Derivatives. wrt: {0, 2}, first(4), all_args (the floats among the operands); without it, the first operand --- */

namespace detail {

inline bool is_float(dtype of) { return of > AX_U64 && of <= AX_F64 && of != AX_F8E8M0FNU; }

/* A function, its operands and those that derivatives are taken by, ready for C. */
template <std::size_t N, class F>
struct derivative {
  closure_of<F, N> function;
  const values &in;
  const args &wrt;
  location at;
  const char *name;
  std::uint32_t chosen; /* how many of the operands wrt means; in a trace that has failed, as many as it may have meant */
  bool sound;           /* false: the trace has failed */

  derivative(F &given, const args &by, const operands<N> &from, location stands, const char *called)
      : function(given, from.list.count()), in(from.list), wrt(by), at(stands), name(called), chosen(0) {
    sound = suits(function, at, name);
    if (wrt.is_all()) {
      for (std::uint32_t i = 0; i < in.count(); i++) {
        dtype own = ax_typeof(in.data()[i]).dtype;
        chosen += is_float(own) || own == AX_NO_DTYPE;
      }
    } else {
      chosen = wrt.count() <= AX_MAX_LEAVES ? wrt.count() : 0;
      if (wrt.count() > in.count() && sound) {
        ax_trace_fail((std::string(name) + ": derivatives by " + std::to_string(wrt.count()) + " operands, but there are " +
                       std::to_string(in.count())).c_str());
        sound = false;
      }
    }
  }
  /* A list of vectors that must have `wanted` entries. */
  bool paired(const vectors &given, std::uint32_t wanted, const char *what) {
    if (sound && given.count() != wanted) {
      ax_trace_fail((std::string(name) + ": there are " + std::to_string(given.count()) + " " + what + ", but " + std::to_string(wanted) +
                     " are wanted").c_str());
      sound = false;
    }
    return sound;
  }
  /* Room for `count` results, and for what C poisons when it fails. */
  std::vector<ax_value> room(std::size_t count) const { return std::vector<ax_value>(count + in.count()); }
  void finish() {
    function.rethrow();
    stamp(at, name);
  }
};

template <std::size_t N, class F>
std::vector<value> gradients(F &function, const args &wrt, const operands<N> &in, location at) {
  derivative<N, F> d(function, wrt, in, at, "grad");
  auto out = d.room(d.chosen);
  if (d.sound) ax_grad(d.function.fn(), wrt, d.in.count(), d.in.data(), d.chosen, out.data());
  d.finish();
  return loaded(out.data(), d.chosen);
}
template <std::size_t N, class F>
auto value_and_gradients(F &function, const args &wrt, const operands<N> &in, location at) {
  derivative<N, F> d(function, wrt, in, at, "value_and_grad");
  std::uint32_t count = d.function.out_count();
  auto out = d.room(count + d.chosen);
  if (d.sound) ax_value_and_grad(d.function.fn(), wrt, d.in.count(), d.in.data(), count + d.chosen, out.data());
  d.finish();
  return std::make_pair(d.function.load(out.data(), count), loaded(out.data() + count, d.chosen));
}
inline value only(const std::vector<value> &list) { return list.empty() ? value() : list[0]; }
template <class R>
std::pair<R, value> only(std::pair<R, std::vector<value>> both) {
  return {std::move(both.first), only(both.second)};
}

}  // namespace detail

/* As jax.grad: the gradient by the first operand, or a vector of those by wrt. */
template <class F, std::size_t N>
value grad(F &&function, const value (&in)[N], location at = location::here()) {
  return detail::only(detail::gradients(function, {0}, detail::fixed(in), at));
}
template <class F>
value grad(F &&function, const values &in, location at = location::here()) {
  return detail::only(detail::gradients(function, {0}, detail::open(in), at));
}
template <class F, std::size_t N>
std::vector<value> grad(F &&function, const args &wrt, const value (&in)[N], location at = location::here()) {
  return detail::gradients(function, wrt, detail::fixed(in), at);
}
template <class F>
std::vector<value> grad(F &&function, const args &wrt, const values &in, location at = location::here()) {
  return detail::gradients(function, wrt, detail::open(in), at);
}
/* As jax.value_and_grad: a pair of what the function gives and the gradient, or gradients, of its first result. */
template <class F, std::size_t N>
auto value_and_grad(F &&function, const value (&in)[N], location at = location::here()) {
  return detail::only(detail::value_and_gradients(function, {0}, detail::fixed(in), at));
}
template <class F>
auto value_and_grad(F &&function, const values &in, location at = location::here()) {
  return detail::only(detail::value_and_gradients(function, {0}, detail::open(in), at));
}
template <class F, std::size_t N>
auto value_and_grad(F &&function, const args &wrt, const value (&in)[N], location at = location::here()) {
  return detail::value_and_gradients(function, wrt, detail::fixed(in), at);
}
template <class F>
auto value_and_grad(F &&function, const args &wrt, const values &in, location at = location::here()) {
  return detail::value_and_gradients(function, wrt, detail::open(in), at);
}

/* As jax.checkpoint (ax_checkpoint). */
template <class F, std::size_t N>
auto checkpoint(F &&function, const value (&in)[N], const ax_checkpoint_options &options = {}, location at = location::here()) {
  auto call = [&options](ax_fn f, auto... lists) { ax_checkpoint(f, lists..., &options); };
  return detail::with_function(function, detail::fixed(in), at, "checkpoint", call);
}
template <class F>
auto checkpoint(F &&function, const values &in, const ax_checkpoint_options &options = {}, location at = location::here()) {
  auto call = [&options](ax_fn f, auto... lists) { ax_checkpoint(f, lists..., &options); };
  return detail::with_function(function, detail::open(in), at, "checkpoint", call);
}

/* As jax.ad_checkpoint.checkpoint_name. */
inline value checkpoint_name(input x, const char *name) { return detail::lined(ax_checkpoint_name(x, name), x, "checkpoint_name"); }

/* As jax.custom_vjp and jax.custom_jvp (ax_custom_vjp, ax_custom_jvp). backward and rule take values, or a vector; those that take a vector are
   for functions whose operands and results are all floats. */
namespace detail {
/* How many values F takes; `otherwise` where its parameters do not say. */
template <class F>
std::uint32_t declared_count(std::uint32_t otherwise) {
  constexpr std::size_t declared = arity<std::remove_const_t<typename uncounted<std::remove_const_t<F>>::type>>::value;
  return declared == by_vector || declared == unknown ? otherwise : static_cast<std::uint32_t>(declared);
}
template <std::size_t N, class F, class G, class B>
auto custom_vjp_on(F &function, G &forward, B &backward, const operands<N> &in, location at) {
  closure_of<F, N> f(function, in.list.count());
  closure_of<G, N> ahead(forward, in.list.count());
  closure_of<B, unknown> back(backward, declared_count<B>(ahead.out_count()));
  std::vector<ax_value> out(f.out_count());
  if (suits(f, at, "custom_vjp") && suits(ahead, at, "custom_vjp") && suits(back, at, "custom_vjp"))
    ax_custom_vjp(f.fn(), ahead.fn(), back.fn(), in.list.count(), in.list.data(), f.out_count(), out.data());
  f.rethrow();
  ahead.rethrow();
  back.rethrow();
  stamp(at, "custom_vjp");
  return f.load(out.data(), f.out_count());
}
template <std::size_t N, class F, class R>
auto custom_jvp_on(F &function, R &rule, const operands<N> &in, location at) {
  closure_of<F, N> f(function, in.list.count());
  closure_of<R, unknown> by(rule, declared_count<R>(2 * in.list.count()));
  std::vector<ax_value> out(f.out_count());
  if (suits(f, at, "custom_jvp") && suits(by, at, "custom_jvp")) 
    ax_custom_jvp(f.fn(), by.fn(), in.list.count(), in.list.data(), f.out_count(), out.data());
  f.rethrow();
  by.rethrow();
  stamp(at, "custom_jvp");
  return f.load(out.data(), f.out_count());
}
}  // namespace detail
template <class F, class G, class B, std::size_t N>
auto custom_vjp(F &&function, G &&forward, B &&backward, const value (&in)[N], location at = location::here()) {
  return detail::custom_vjp_on(function, forward, backward, detail::fixed(in), at);
}
template <class F, class G, class B>
auto custom_vjp(F &&function, G &&forward, B &&backward, const values &in, location at = location::here()) {
  return detail::custom_vjp_on(function, forward, backward, detail::open(in), at);
}
template <class F, class R, std::size_t N>
auto custom_jvp(F &&function, R &&rule, const value (&in)[N], location at = location::here()) {
  return detail::custom_jvp_on(function, rule, detail::fixed(in), at);
}
template <class F, class R>
auto custom_jvp(F &&function, R &&rule, const values &in, location at = location::here()) {
  return detail::custom_jvp_on(function, rule, detail::open(in), at);
}

namespace detail {
template <std::size_t N, class F>
auto jvp_on(F &function, const args &wrt, const operands<N> &in, const vectors &tangents, location at) {
  derivative<N, F> d(function, wrt, in, at, "jvp");
  std::uint32_t count = d.function.out_count();
  std::vector<ax_value> out(count), out_tangents(count);
  if (d.paired(tangents, d.chosen, "tangents"))
    ax_jvp(d.function.fn(), wrt, d.in.count(), d.in.data(), tangents.count(), tangents.data(), count, out.data(), count, out_tangents.data());
  d.finish();
  return std::make_pair(d.function.load(out.data(), count), d.function.load(out_tangents.data(), count));
}
template <std::size_t N, class F>
auto vjp_on(F &function, const args &wrt, const operands<N> &in, const vectors &cotangents, location at) {
  derivative<N, F> d(function, wrt, in, at, "vjp");
  std::uint32_t count = d.function.out_count();
  auto out = d.room(count), gradients = d.room(d.chosen);
  if (d.paired(cotangents, count, "cotangents"))
    ax_vjp(d.function.fn(), wrt, d.in.count(), d.in.data(), count, cotangents.data(), count, out.data(), d.chosen, gradients.data());
  d.finish();
  return std::make_pair(d.function.load(out.data(), count), loaded(gradients.data(), d.chosen));
}
}  // namespace detail

/* As jax.jvp: a pair of what the function gives and its tangents. Tangents, one for each of wrt, may be numbers. */
template <class F, std::size_t N>
auto jvp(F &&function, const value (&in)[N], const vectors &tangents, location at = location::here()) {
  return detail::jvp_on(function, all_args, detail::fixed(in), tangents, at);
}
template <class F>
auto jvp(F &&function, const values &in, const vectors &tangents, location at = location::here()) {
  return detail::jvp_on(function, all_args, detail::open(in), tangents, at);
}
template <class F, std::size_t N>
auto jvp(F &&function, const args &wrt, const value (&in)[N], const vectors &tangents, location at = location::here()) {
  return detail::jvp_on(function, wrt, detail::fixed(in), tangents, at);
}
template <class F>
auto jvp(F &&function, const args &wrt, const values &in, const vectors &tangents, location at = location::here()) {
  return detail::jvp_on(function, wrt, detail::open(in), tangents, at);
}
/* As jax.vjp, with what it gives called on the cotangents, one for each result: a pair of what the function gives and the gradients. */
template <class F, std::size_t N>
auto vjp(F &&function, const value (&in)[N], const vectors &cotangents, location at = location::here()) {
  return detail::vjp_on(function, all_args, detail::fixed(in), cotangents, at);
}
template <class F>
auto vjp(F &&function, const values &in, const vectors &cotangents, location at = location::here()) {
  return detail::vjp_on(function, all_args, detail::open(in), cotangents, at);
}
template <class F, std::size_t N>
auto vjp(F &&function, const args &wrt, const value (&in)[N], const vectors &cotangents, location at = location::here()) {
  return detail::vjp_on(function, wrt, detail::fixed(in), cotangents, at);
}
template <class F>
auto vjp(F &&function, const args &wrt, const values &in, const vectors &cotangents, location at = location::here()) {
  return detail::vjp_on(function, wrt, detail::open(in), cotangents, at);
}

/* A function linearized at a point: a plain value, good in the trace that it was made in. */
class linear {
  ax_linear map_{};

 public:
  linear() = default;
  explicit linear(ax_linear map) : map_(map) {}
  /* The tangents of the results. */
  std::vector<value> pushforward(const vectors &tangents, location at = location::here()) const {
    std::vector<ax_value> out(map_.out_count);
    if (tangents.count() != map_.in_count) ax_trace_fail("pushforward: another number of tangents than operands were chosen");
    else ax_pushforward(map_, map_.in_count, tangents.data(), map_.out_count, out.data());
    detail::stamp(at, "pushforward");
    return detail::loaded(out.data(), out.size());
  }
  /* The gradients. */
  std::vector<value> pullback(const vectors &cotangents, location at = location::here()) const {
    std::vector<ax_value> out(map_.in_count);
    if (cotangents.count() != map_.out_count) ax_trace_fail("pullback: another number of cotangents than there are results");
    else ax_pullback(map_, map_.out_count, cotangents.data(), map_.in_count, out.data());
    detail::stamp(at, "pullback");
    return detail::loaded(out.data(), out.size());
  }
};

namespace detail {
template <std::size_t N, class F>
auto linearize_on(F &function, const args &wrt, const operands<N> &in, location at) {
  derivative<N, F> d(function, wrt, in, at, "linearize");
  std::uint32_t count = d.function.out_count();
  auto out = d.room(count);
  ax_linear map{0, 0, d.chosen, count};
  if (d.sound) map = ax_linearize(d.function.fn(), wrt, d.in.count(), d.in.data(), count, out.data());
  d.finish();
  return std::make_pair(d.function.load(out.data(), count), linear(map));
}
using jacobian_function = void (*)(ax_fn, ax_args, std::uint32_t, const ax_value *, std::uint32_t, ax_value *);
/* r results by n operands, once or twice: as the function gives them when n is 1 and no list was asked for. */
template <std::size_t N, class F>
std::vector<ax_value> jacobian_of(derivative<N, F> &d, jacobian_function of_c, std::uint32_t order) {
  std::size_t count = d.function.out_count();
  for (std::uint32_t i = 0; i < order; i++) count *= d.chosen;
  std::vector<ax_value> out(count);
  if (d.sound) of_c(d.function.fn(), d.wrt, d.in.count(), d.in.data(), static_cast<std::uint32_t>(count), out.data());
  d.finish();
  return out;
}
template <std::size_t N, class F>
auto jacobian_by_first(F &function, const operands<N> &in, location at, const char *name, jacobian_function of_c, std::uint32_t order) {
  const args first_one = {0};
  derivative<N, F> d(function, first_one, in, at, name);
  std::vector<ax_value> out = jacobian_of(d, of_c, order);
  return d.function.load(out.data(), d.function.out_count());
}
template <std::size_t N, class F>
std::vector<value> jacobian(F &function, const args &wrt, const operands<N> &in, location at, const char *name, jacobian_function of_c,
                            std::uint32_t order) {
  derivative<N, F> d(function, wrt, in, at, name);
  std::vector<ax_value> out = jacobian_of(d, of_c, order);
  return loaded(out.data(), out.size());
}
}  // namespace detail

/* As jax.linearize: a pair of what the function gives and the linear map. */
template <class F, std::size_t N>
auto linearize(F &&function, const value (&in)[N], location at = location::here()) {
  return detail::linearize_on(function, all_args, detail::fixed(in), at);
}
template <class F>
auto linearize(F &&function, const values &in, location at = location::here()) {
  return detail::linearize_on(function, all_args, detail::open(in), at);
}
template <class F, std::size_t N>
auto linearize(F &&function, const args &wrt, const value (&in)[N], location at = location::here()) {
  return detail::linearize_on(function, wrt, detail::fixed(in), at);
}
template <class F>
auto linearize(F &&function, const args &wrt, const values &in, location at = location::here()) {
  return detail::linearize_on(function, wrt, detail::open(in), at);
}

/* As jax.jacfwd, jax.jacrev and jax.hessian: by the first operand, as the function gives its results; or, by wrt, in the order that
   ax_jacfwd and ax_hessian say. */
template <class F, std::size_t N>
auto jacfwd(F &&function, const value (&in)[N], location at = location::here()) {
  return detail::jacobian_by_first(function, detail::fixed(in), at, "jacfwd", ax_jacfwd, 1);
}
template <class F>
auto jacfwd(F &&function, const values &in, location at = location::here()) {
  return detail::jacobian_by_first(function, detail::open(in), at, "jacfwd", ax_jacfwd, 1);
}
template <class F, std::size_t N>
std::vector<value> jacfwd(F &&function, const args &wrt, const value (&in)[N], location at = location::here()) {
  return detail::jacobian(function, wrt, detail::fixed(in), at, "jacfwd", ax_jacfwd, 1);
}
template <class F>
std::vector<value> jacfwd(F &&function, const args &wrt, const values &in, location at = location::here()) {
  return detail::jacobian(function, wrt, detail::open(in), at, "jacfwd", ax_jacfwd, 1);
}
template <class F, std::size_t N>
auto jacrev(F &&function, const value (&in)[N], location at = location::here()) {
  return detail::jacobian_by_first(function, detail::fixed(in), at, "jacrev", ax_jacrev, 1);
}
template <class F>
auto jacrev(F &&function, const values &in, location at = location::here()) {
  return detail::jacobian_by_first(function, detail::open(in), at, "jacrev", ax_jacrev, 1);
}
template <class F, std::size_t N>
std::vector<value> jacrev(F &&function, const args &wrt, const value (&in)[N], location at = location::here()) {
  return detail::jacobian(function, wrt, detail::fixed(in), at, "jacrev", ax_jacrev, 1);
}
template <class F>
std::vector<value> jacrev(F &&function, const args &wrt, const values &in, location at = location::here()) {
  return detail::jacobian(function, wrt, detail::open(in), at, "jacrev", ax_jacrev, 1);
}
template <class F, std::size_t N>
auto hessian(F &&function, const value (&in)[N], location at = location::here()) {
  return detail::jacobian_by_first(function, detail::fixed(in), at, "hessian", ax_hessian, 2);
}
template <class F>
auto hessian(F &&function, const values &in, location at = location::here()) {
  return detail::jacobian_by_first(function, detail::open(in), at, "hessian", ax_hessian, 2);
}
template <class F, std::size_t N>
std::vector<value> hessian(F &&function, const args &wrt, const value (&in)[N], location at = location::here()) {
  return detail::jacobian(function, wrt, detail::fixed(in), at, "hessian", ax_hessian, 2);
}
template <class F>
std::vector<value> hessian(F &&function, const args &wrt, const values &in, location at = location::here()) {
  return detail::jacobian(function, wrt, detail::open(in), at, "hessian", ax_hessian, 2);
}

/* The gradients by wrt, and the products of the Hessian with a vector for each of wrt. */
namespace detail {
template <std::size_t N, class F>
std::pair<std::vector<value>, std::vector<value>> hvp_on(F &function, const args &wrt, const operands<N> &in, const vectors &given, location at) {
  derivative<N, F> d(function, wrt, in, at, "hvp");
  auto gradients = d.room(d.chosen), products = d.room(d.chosen);
  if (d.paired(given, d.chosen, "vectors"))
    ax_hvp(d.function.fn(), wrt, d.in.count(), d.in.data(), given.count(), given.data(), d.chosen, gradients.data(), d.chosen, products.data());
  d.finish();
  return {loaded(gradients.data(), d.chosen), loaded(products.data(), d.chosen)};
}
}  // namespace detail
template <class F, std::size_t N>
auto hvp(F &&function, const args &wrt, const value (&in)[N], const vectors &given, location at = location::here()) {
  return detail::hvp_on(function, wrt, detail::fixed(in), given, at);
}
template <class F>
auto hvp(F &&function, const args &wrt, const values &in, const vectors &given, location at = location::here()) {
  return detail::hvp_on(function, wrt, detail::open(in), given, at);
}

/* --- vmap --- */

namespace detail {
template <std::size_t N, class F>
auto vmap_on(F &function, const operands<N> &in, const vmap_options &options, location at) {
  return with_function(function, in, at, "vmap", [&](ax_fn f, auto... lists) {
    ax_vmap_options raw = options.raw();
    ax_vmap(f, lists..., &raw);
  });
}
}  // namespace detail
/* As jax.vmap: vmap(f, {x, w}, {{0, -1}}) */
template <class F, std::size_t N>
auto vmap(F &&function, const value (&in)[N], const vmap_options &options = {}, location at = location::here()) {
  return detail::vmap_on(function, detail::fixed(in), options, at);
}
template <class F>
auto vmap(F &&function, const values &in, const vmap_options &options = {}, location at = location::here()) {
  return detail::vmap_on(function, detail::open(in), options, at);
}

}  // namespace AXLE_ERRORS_
}  // namespace axle

#endif
