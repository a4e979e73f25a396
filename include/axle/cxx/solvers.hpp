/* axle/solvers.h in C++: functions are callables that take and give values. */
#ifndef AXLE_CXX_SOLVERS_HPP
#define AXLE_CXX_SOLVERS_HPP

#include "axle/cxx/transform.hpp"
#include "axle/solvers.h"

namespace axle {

/* As jax.lax.custom_linear_solve (ax_custom_linear_solve): matvec takes what b is, and solve gives x from b. */
template <class A, class S, std::size_t N>
auto custom_linear_solve(A &&matvec, S &&solve, const value (&b)[N], const ax_linear_solve_options &options = {},
                         location at = location::here()) {
  return detail::with_functions(matvec, solve, detail::fixed(b), at, "custom_linear_solve",
                                [&options](ax_fn f, ax_fn by, auto... lists) { ax_custom_linear_solve(f, by, lists..., &options); });
}
template <class A, class S>
auto custom_linear_solve(A &&matvec, S &&solve, const values &b, const ax_linear_solve_options &options = {},
                         location at = location::here()) {
  return detail::with_functions(matvec, solve, detail::open(b), at, "custom_linear_solve",
                                [&options](ax_fn f, ax_fn by, auto... lists) { ax_custom_linear_solve(f, by, lists..., &options); });
}

/* As jax.scipy.sparse.linalg.cg, bicgstab and gmres (ax_cg, ax_bicgstab, ax_gmres): A takes what b is. */
template <class A, std::size_t N>
auto cg(A &&matvec, const value (&b)[N], const ax_krylov_options &options = {}, location at = location::here()) {
  return detail::with_function(matvec, detail::fixed(b), at, "cg", [&options](ax_fn f, auto... lists) { ax_cg(f, lists..., &options); });
}
template <class A>
auto cg(A &&matvec, const values &b, const ax_krylov_options &options = {}, location at = location::here()) {
  return detail::with_function(matvec, detail::open(b), at, "cg", [&options](ax_fn f, auto... lists) { ax_cg(f, lists..., &options); });
}
template <class A, std::size_t N>
auto bicgstab(A &&matvec, const value (&b)[N], const ax_krylov_options &options = {}, location at = location::here()) {
  return detail::with_function(matvec, detail::fixed(b), at, "bicgstab",
                               [&options](ax_fn f, auto... lists) { ax_bicgstab(f, lists..., &options); });
}
template <class A>
auto bicgstab(A &&matvec, const values &b, const ax_krylov_options &options = {}, location at = location::here()) {
  return detail::with_function(matvec, detail::open(b), at, "bicgstab",
                               [&options](ax_fn f, auto... lists) { ax_bicgstab(f, lists..., &options); });
}
template <class A, std::size_t N>
auto gmres(A &&matvec, const value (&b)[N], const ax_krylov_options &options = {}, location at = location::here()) {
  return detail::with_function(matvec, detail::fixed(b), at, "gmres", [&options](ax_fn f, auto... lists) { ax_gmres(f, lists..., &options); });
}
template <class A>
auto gmres(A &&matvec, const values &b, const ax_krylov_options &options = {}, location at = location::here()) {
  return detail::with_function(matvec, detail::open(b), at, "gmres", [&options](ax_fn f, auto... lists) { ax_gmres(f, lists..., &options); });
}

/* f linearized at its root, as tangent_solve gets it: takes and gives what the guess is. */
class linear_function {
  ax_fn fn_;

 public:
  explicit linear_function(ax_fn fn) : fn_(fn) {}
  std::vector<value> operator()(const std::vector<value> &x) const {
    std::vector<ax_value> in(fn_.in_count), out(fn_.out_count);
    for (std::size_t i = 0; i < in.size(); i++) in[i] = x.at(i).get();
    fn_.function(in.data(), out.data(), fn_.context);
    return detail::loaded(out.data(), out.size());
  }
  value operator()(const value &x) const { return (*this)(std::vector<value>{x}).front(); }
};

namespace detail {
struct tangent_call {
  ax_fn g, solve;
};
inline void solve_tangents(ax_fn g, const ax_value *b, ax_value *out, void *context) {
  tangent_call *call = static_cast<tangent_call *>(context);
  call->g = g;
  call->solve.function(b, out, call->solve.context);
}

template <std::size_t N, class F, class S, class T>
auto custom_root_on(F &f, S &solve, T &tangent_solve, const operands<N> &guess, location at) {
  tangent_call call = {};
  auto of_tangents = [&](const std::vector<value> &b) {
    if constexpr (std::is_invocable<T &, linear_function, value>::value)
      return tangent_solve(linear_function(call.g), b.front());
    else
      return tangent_solve(linear_function(call.g), b);
  };
  closure_of<decltype(of_tangents), N> tangents(of_tangents, guess.list.count());
  return with_functions(f, solve, guess, at, "custom_root",
                        [&](ax_fn of, ax_fn by, std::uint32_t in_count, const ax_value *in, std::uint32_t out_count, ax_value *out) {
                          call.solve = tangents.fn();
                          ax_custom_root(of, by, {solve_tangents, &call}, in_count, in, out_count, out);
                          tangents.rethrow();
                        });
}
}  // namespace detail

/* As jax.lax.custom_root (ax_custom_root): f and solve take and give what the guess is; tangent_solve takes g, a linear_function, and b,
   a value or a std::vector of them, and gives the y for which g(y) is b. */
template <class F, class S, class T, std::size_t N>
auto custom_root(F &&f, S &&solve, T &&tangent_solve, const value (&guess)[N], location at = location::here()) {
  return detail::custom_root_on(f, solve, tangent_solve, detail::fixed(guess), at);
}
template <class F, class S, class T>
auto custom_root(F &&f, S &&solve, T &&tangent_solve, const values &guess, location at = location::here()) {
  return detail::custom_root_on(f, solve, tangent_solve, detail::open(guess), at);
}

/* Where a function is least. */
struct minimize_result {
  value x, fun, jac;
  value status;    /* of ax_minimize_status */
  value nit, nfev; /* rounds, and evaluations of f with its gradient */
};
/* As jax.scipy.optimize.minimize (ax_minimize): f takes a vector and gives a scalar. */
template <class F>
minimize_result minimize(F &&f, const value &x0, const ax_minimize_options &options = {}, location at = location::here()) {
  detail::closure_of<F, 1> closure(f, 1);
  ax_value out[6] = {};
  if (detail::suits(closure, at, "minimize")) ax_minimize(closure.fn(), x0.get(), 6, out, &options);
  closure.rethrow();
  detail::stamp(at, "minimize");
  return {value(out[0]), value(out[1]), value(out[2]), value(out[3]), value(out[4]), value(out[5])};
}

/* As jax.experimental.ode.odeint (ax_odeint): f takes y, the time and further operands, and gives what y is. */
template <class F, std::size_t N>
auto odeint(F &&f, const value (&in)[N], const ax_odeint_options &options = {}, location at = location::here()) {
  return detail::with_function(f, detail::fixed(in), at, "odeint", [&options](ax_fn g, auto... lists) { ax_odeint(g, lists..., &options); });
}
template <class F>
auto odeint(F &&f, const values &in, const ax_odeint_options &options = {}, location at = location::here()) {
  return detail::with_function(f, detail::open(in), at, "odeint", [&options](ax_fn g, auto... lists) { ax_odeint(g, lists..., &options); });
}

}  // namespace axle

#endif
