/* Lambdas, function objects and functions where C has ax_fn: how many values one takes is told by its parameters, how many it gives by
   what it returns. See axle/axle.hpp.

     [&](value w, value x) { return w * x; }                              two operands, one result
     [&](const std::vector<value> &xs) { return xs[0]; }                  as many operands as there are
     [&](value x) { return std::tuple(x, 2 * x); }                        results: a value, a std::tuple, std::pair or std::array of such
     returning(n, [&](value x) { return std::vector<value>(n, x); })      a std::vector of values: their number is said before

   The function is called where it stands, by reference: it may capture what it likes, and is called while the call that it is given to
   lasts, once or more often.

   No exception crosses the library. One that leaves the function is kept here; the trace fails; and when the C function has come back
   it is thrown again, so that it passes through one trace after the other without leaving anything behind. */
#ifndef AXLE_CXX_FUNCTION_HPP
#define AXLE_CXX_FUNCTION_HPP

#include <exception>
#include <tuple>

#include "axle/cxx/value.hpp"

namespace axle {
inline namespace AXLE_ERRORS_ {

/* A function that gives a std::vector of `count` values. */
template <class F>
struct counted {
  F function;
  std::uint32_t count;
};
template <class F>
counted<std::decay_t<F>> returning(std::uint32_t count, F &&function) {
  return {std::forward<F>(function), count};
}

namespace detail {

/* --- Results: how many there are, out of C's array and into it --- */

template <class R>
struct results {
  static constexpr bool known = false;
};
template <>
struct results<value> {
  static constexpr bool known = true;
  static constexpr std::uint32_t count = 1;
  static void store(const value &given, ax_value *out) { *out = given.get(); }
  static value load(const ax_value *out) { return value(*out); }
};
template <class T, std::size_t N>
struct results<std::array<T, N>> {
  static constexpr bool known = results<T>::known;
  static constexpr std::uint32_t count = N * results<T>::count;
  static void store(const std::array<T, N> &given, ax_value *out) {
    for (const T &one : given) results<T>::store(one, out), out += results<T>::count;
  }
  static std::array<T, N> load(const ax_value *out) {
    std::array<T, N> made;
    for (T &one : made) one = results<T>::load(out), out += results<T>::count;
    return made;
  }
};
/* Of std::tuple and std::pair. */
template <class Tuple, class... T>
struct tuple_results {
  static constexpr bool known = (results<T>::known && ...);
  static constexpr std::uint32_t count = (results<T>::count + ... + 0);
  static void store(const Tuple &given, ax_value *out) {
    std::apply([&out](const T &...one) { (void)out, ((results<T>::store(one, out), out += results<T>::count), ...); }, given);
  }
  static Tuple load(const ax_value *out) { return Tuple{next<T>(out)...}; } /* braces: in order */

 private:
  template <class One>
  static One next(const ax_value *&out) {
    out += results<One>::count;
    return results<One>::load(out - results<One>::count);
  }
};
template <class... T>
struct results<std::tuple<T...>> : tuple_results<std::tuple<T...>, T...> {};
template <class A, class B>
struct results<std::pair<A, B>> : tuple_results<std::pair<A, B>, A, B> {};

inline std::vector<value> loaded(const ax_value *out, std::size_t count) {
  std::vector<value> made;
  made.reserve(count);
  for (std::size_t i = 0; i < count; i++) made.push_back(value(out[i]));
  return made;
}

/* --- Operands: how many a function takes --- */

inline constexpr std::size_t by_vector = SIZE_MAX; /* one vector of however many there are */
inline constexpr std::size_t unknown = SIZE_MAX - 1; /* a generic lambda; a list of operands whose length is known when it runs */

template <class... A>
constexpr std::size_t arity_of_parameters() {
  if constexpr (sizeof...(A) == 1 && (std::is_same<std::decay_t<A>, std::vector<value>>::value && ...))
    return by_vector;
  else
    return sizeof...(A);
}
template <class F>
struct parameters {
  static constexpr std::size_t arity = unknown;
};
template <class R, class... A>
struct parameters<R(A...)> {
  static constexpr std::size_t arity = arity_of_parameters<A...>();
};
template <class R, class... A>
struct parameters<R(A...) noexcept> : parameters<R(A...)> {};
template <class C, class R, class... A>
struct parameters<R (C::*)(A...)> : parameters<R(A...)> {};
template <class C, class R, class... A>
struct parameters<R (C::*)(A...) const> : parameters<R(A...)> {};
template <class C, class R, class... A>
struct parameters<R (C::*)(A...) noexcept> : parameters<R(A...)> {};
template <class C, class R, class... A>
struct parameters<R (C::*)(A...) const noexcept> : parameters<R(A...)> {};

/* A lambda, or any object with one operator(); a function. */
template <class F, class = void>
struct arity : std::integral_constant<std::size_t, parameters<std::remove_pointer_t<F>>::arity> {};
template <class F>
struct arity<F, std::void_t<decltype(&F::operator())>>
    : std::integral_constant<std::size_t, parameters<decltype(&F::operator())>::arity> {};

template <std::size_t>
using one_value = value;

template <class F, class Indices>
struct takes;
template <class F, std::size_t... Index>
struct takes<F, std::index_sequence<Index...>> : std::is_invocable<F &, one_value<Index>...> {};

/* What F is called with when there are N operands (`unknown`: that many as there are when it runs): N values or one vector. */
template <class F, std::size_t N>
constexpr std::size_t called_with() {
  constexpr std::size_t declared = arity<F>::value;
  if constexpr (declared != unknown) {
    static_assert(N == unknown || declared == by_vector || declared == N,
                  "axle: the function takes another number of values than there are operands");
    return declared;
  } else if constexpr (N != unknown) {
    return takes<F, std::make_index_sequence<N>>::value ? N : by_vector;
  } else {
    return by_vector;
  }
}

/* No location: what is made with it is stamped by the call that the function is given to. */
inline operand argument(ax_value handle) { return operand(value(handle), location{nullptr, 0}); }

/* A parameter that is an operand or input gets one without a location, any other a value. */
struct any_argument {
  ax_value handle;
  operator value() const { return value(handle); }
  operator operand() const { return argument(handle); }
  operator input() const { return argument(handle); }
};

template <class F, std::size_t... Index>
decltype(auto) call_with(F &function, const ax_value *in, std::index_sequence<Index...>) {
  (void)in;
  if constexpr (std::is_invocable<F &, one_value<Index>...>::value && arity<F>::value == unknown)
    return function(value(in[Index])...);
  else
    return function(any_argument{in[Index]}...);
}

template <std::size_t Called, class F>
decltype(auto) invoke(F &function, const ax_value *in, std::uint32_t in_count) {
  if constexpr (Called == by_vector) {
    static_assert(std::is_invocable<F &, const std::vector<value> &>::value,
                  "axle: a function that is traced takes axle::value for each operand, or one const std::vector<axle::value> & for all");
    return function(loaded(in, in_count));
  } else {
    (void)in_count;
    return call_with(function, in, std::make_index_sequence<Called>());
  }
}

template <class F>
struct uncounted {
  using type = F;
  static constexpr bool is_counted = false;
};
template <class F>
struct uncounted<counted<F>> {
  using type = F;
  static constexpr bool is_counted = true;
};

/* --- A function as C takes it. It stands on the stack of the call that it is given to. --- */
template <class Given, std::size_t N>
class closure {
  using bare = std::remove_const_t<Given>;
  static constexpr bool is_counted = uncounted<bare>::is_counted;
  using F = std::conditional_t<std::is_const<Given>::value, const typename uncounted<bare>::type, typename uncounted<bare>::type>;
  static constexpr std::size_t called = called_with<std::remove_const_t<F>, N>();

  F &function_;
  std::uint32_t in_count_, out_count_;
#if AXLE_THROWS
  std::exception_ptr thrown_;
#endif

  static F &function_of(Given &given) {
    if constexpr (is_counted)
      return given.function;
    else
      return given;
  }

 public:
  using result = std::decay_t<decltype(invoke<called>(std::declval<F &>(), static_cast<const ax_value *>(nullptr), 0))>;

 private:
  static constexpr bool by_vector_result = is_counted && std::is_same<result, std::vector<value>>::value;
  static_assert(!is_counted || by_vector_result, "axle: axle::returning(count, f) is for a function that gives a std::vector<axle::value>");
  static_assert(is_counted || !std::is_same<result, std::vector<value>>::value,
                "axle: how many values a std::vector will have must be known before: axle::returning(count, f)");
  static_assert(by_vector_result || std::is_same<result, std::vector<value>>::value || results<result>::known,
                "axle: a function that is traced gives an axle::value, or a std::tuple, std::pair or std::array of them");

  void run(const ax_value *in, ax_value *out) {
    auto &&given = invoke<called>(function_, in, in_count_);
    if constexpr (by_vector_result) {
      for (std::size_t i = 0; i < given.size() && i < std::size_t{out_count_} + 16; i++) out[i] = given[i].get(); /* C sees those too many */
    } else {
      results<result>::store(given, out);
    }
  }

  static void enter(const ax_value *in, ax_value *out, void *context) noexcept {
    auto *self = static_cast<closure *>(context);
#if AXLE_THROWS
    if (self->thrown_ != nullptr) return; /* the trace has failed already */
    try {
      self->run(in, out);
    } catch (const std::exception &thrown) {
      self->thrown_ = std::current_exception();
      ax_trace_fail((std::string("an exception left the function: ") + thrown.what()).c_str());
    } catch (...) {
      self->thrown_ = std::current_exception();
      ax_trace_fail("an exception left the function");
    }
#else
    self->run(in, out);
#endif
  }

  static std::uint32_t count_of(Given &given) {
    (void)given;
    if constexpr (is_counted)
      return given.count;
    else
      return results<result>::count;
  }

 public:
  struct start {
    Given &given;
    std::uint32_t in_count;
  };
  closure(Given &given, std::uint32_t in_count) : function_(function_of(given)), in_count_(in_count), out_count_(count_of(given)) {}
  closure(const start &from) : closure(from.given, from.in_count) {}
  closure(const closure &) = delete;
  closure &operator=(const closure &) = delete;

  std::uint32_t out_count() const { return out_count_; }
  ax_fn fn() { return {enter, in_count_, out_count_, this}; }
  /* Whether the function takes as many values as there are operands, when that is known only now. */
  bool suits() const { return called == by_vector || called == in_count_; }
  std::string mismatch() const {
    return "the function takes " + std::to_string(called) + " values, but there are " + std::to_string(in_count_) + " operands";
  }
  /* What C has put into `out`, as the function gives it. */
  static result load(const ax_value *out, std::uint32_t count) {
    (void)count;
    if constexpr (by_vector_result)
      return loaded(out, count);
    else
      return results<result>::load(out);
  }
  /* After the C function has come back. */
  void rethrow() {
#if AXLE_THROWS
    if (thrown_ != nullptr) std::rethrow_exception(std::exchange(thrown_, nullptr));
#endif
  }
};

/* Inside a trace: fails it when a function does not take what it would be given. */
template <class Closure>
bool suits(const Closure &function, location at, const char *name) {
  if (function.suits()) return true;
  ax_trace_fail((std::string(name) + ": " + function.mismatch()).c_str());
  stamp(at, name);
  return false;
}

/* The operands of a call: N of them, or, with `unknown`, as many as there are. */
template <std::size_t N>
struct operands {
  values list;
};
template <std::size_t N>
operands<N> fixed(const value (&given)[N]) {
  return {values(given, N)};
}
inline operands<unknown> open(const values &given) { return {given}; }

}  // namespace detail

}  // namespace AXLE_ERRORS_
}  // namespace axle

#endif
