/* Functions compiled by their calls: what f = jax.jit(f) gives. See axle/axle.hpp and axle/jitted.h.

     axle::jitted step = axle::jitted::of(runtime, [](value w, value x) { return w - 0.1 * x; });
     w = step.run({w, x}).at(0);                                 traces and compiles once for each kind of arguments

   With static values a function makes the function that is traced:

     axle::jitted power = axle::jitted::of_static<int>(runtime, [](int n) { return [n](value x) { return axle::integer_pow(x, n); }; });
     y = power.run_static(3, {x}).at(0); */
#ifndef AXLE_CXX_JITTED_HPP
#define AXLE_CXX_JITTED_HPP

#include <cstring>
#include <memory>

#include "axle/cxx/exec.hpp"

namespace axle {
inline namespace AXLE_ERRORS_ {
namespace detail {

#if AXLE_THROWS
inline thread_local std::exception_ptr thrown_in_jitted; /* by the function, in the call that this thread makes */
#endif

/* Throws again what left the function, after C has come back. */
inline void rethrow_from_jitted() {
#if AXLE_THROWS
  if (thrown_in_jitted != nullptr) std::rethrow_exception(std::exchange(thrown_in_jitted, nullptr));
#endif
}

/* Calls a function in a trace, on any thread and on several at once: each call has a closure of its own. */
template <class F>
void trace_jitted(const F &function, std::uint32_t in_count, const ax_value *in, ax_value *out) {
  closure<const F, unknown> once(function, in_count);
  const ax_fn fn = once.fn();
  fn.function(in, out, fn.context);
#if AXLE_THROWS
  try {
    once.rethrow();
  } catch (...) {
    thrown_in_jitted = std::current_exception();
  }
#endif
}

template <class F>
struct jitted_function {
  F function;
  std::uint32_t in_count;
  static void enter(const ax_value *in, ax_value *out, void *context) {
    auto *self = static_cast<const jitted_function *>(context);
    trace_jitted(self->function, self->in_count, in, out);
  }
};

/* The bytes that a static call is told: who it is for, and the value. */
template <class S>
struct jitted_statics {
  const void *self;
  S value;
};
template <class S, class F>
struct jitted_maker {
  F make;
  std::uint32_t in_count;
  static void enter(const ax_value *in, ax_value *out, void *context) {
    auto *told = static_cast<const jitted_statics<S> *>(context);
    auto *self = static_cast<const jitted_maker *>(told->self);
    trace_jitted(self->make(told->value), self->in_count, in, out);
  }
};

/* How many values F takes, unless the caller has said it. */
template <class F>
constexpr std::uint32_t jitted_arity(std::uint32_t said) {
  constexpr std::size_t declared = arity<typename uncounted<F>::type>::value;
  return declared == unknown || declared == by_vector ? said : static_cast<std::uint32_t>(declared);
}

}  // namespace detail

/* A reference to a function compiled by its calls. Copies refer to one. The function is copied, and const: it may be traced on
   several threads at once. What it captures by reference stays until the last copy is gone. */
class jitted : public handle<ax_jitted, ax_jitted_retain, ax_jitted_release> {
  std::shared_ptr<const void> function_;
  std::uint32_t out_count_ = 0;

  using run_function = ax_status (*)(ax_jitted *, std::uint32_t, ax_array *const *, std::uint32_t, ax_array **);
  template <class Call>
  may<std::vector<array>> called(Call &&call, location at, const char *name) const {
    std::vector<ax_array *> out(out_count_);
    const ax_status status = call(static_cast<std::uint32_t>(out.size()), out.data());
    std::vector<array> owned = detail::owned<array>(out);
    detail::rethrow_from_jitted();
    return detail::give(status, std::move(owned), at, name);
  }
  may<std::vector<array>> run_by(run_function function, const list<array> &in, location at, const char *name) const {
    return called([&](std::uint32_t count, ax_array **out) { return function(get(), in.count(), detail::raw(in).data(), count, out); },
                  at, name);
  }
  static may<jitted> created(const runtime &on, ax_fn fn, std::shared_ptr<const void> function, const compile_options &options,
                             std::uint32_t most_kept, location at) {
    ax_jitted_options raw{};
    raw.compile = options.raw();
    raw.most_kept = most_kept;
    ax_jitted *made;
    const ax_status status = ax_jitted_create(on.get(), fn, &raw, &made);
    jitted owned(made);
    owned.function_ = std::move(function);
    owned.out_count_ = fn.out_count;
    return detail::give(status, std::move(owned), at, "jitted_create");
  }
  template <class S>
  static detail::jitted_statics<S> told(const void *self, const S &value) {
    detail::jitted_statics<S> made;
    std::memset(static_cast<void *>(&made), 0, sizeof made); /* the bytes between members too */
    made.self = self;
    std::memcpy(static_cast<void *>(&made.value), &value, sizeof value);
    return made;
  }

 public:
  using handle::handle;
  /* in_count: how many values a generic lambda, or one that takes a vector, is given. most_kept: executables; 0: as ax_jitted_options. */
  template <class F>
  static may<jitted> of(const runtime &on, F &&function, const compile_options &options = {}, std::uint32_t most_kept = 0,
                        std::uint32_t in_count = 1, location at = location::here()) {
    using body = detail::jitted_function<std::decay_t<F>>;
    const std::uint32_t takes = detail::jitted_arity<std::decay_t<F>>(in_count);
    auto held = std::make_shared<const body>(body{std::forward<F>(function), takes});
    const std::uint32_t gives = detail::closure<const std::decay_t<F>, detail::unknown>(held->function, takes).out_count();
    ax_fn fn{body::enter, takes, gives, const_cast<body *>(held.get())};
    return created(on, fn, held, options, most_kept, at);
  }
  /* S: plain data, compared byte by byte. make(statics) gives the function that is traced. */
  template <class S, class F>
  static may<jitted> of_static(const runtime &on, F &&make, const compile_options &options = {}, std::uint32_t most_kept = 0,
                               std::uint32_t in_count = 1, location at = location::here()) {
    static_assert(std::is_trivially_copyable<S>::value, "axle: static values are plain data");
    using made = std::decay_t<decltype(make(std::declval<const S &>()))>;
    using body = detail::jitted_maker<S, std::decay_t<F>>;
    const std::uint32_t takes = detail::jitted_arity<made>(in_count);
    auto held = std::make_shared<const body>(body{std::forward<F>(make), takes});
    static_assert(detail::results<typename detail::closure<const made, detail::unknown>::result>::known,
                  "axle: the number of results must not depend on the static values");
    ax_fn fn{body::enter, takes, detail::results<typename detail::closure<const made, detail::unknown>::result>::count,
             const_cast<body *>(held.get())};
    return created(on, fn, held, options, most_kept, at);
  }

  may<std::vector<array>> run(const list<array> &in = {}, location at = location::here()) const {
    return run_by(ax_jitted_run, in, at, "jitted_run");
  }
  may<std::vector<array>> run_start(const list<array> &in = {}, location at = location::here()) const {
    return run_by(ax_jitted_run_start, in, at, "jitted_run_start");
  }
  template <class S>
  may<std::vector<array>> run_static(const S &statics, const list<array> &in = {}, location at = location::here()) const {
    const detail::jitted_statics<S> bytes = told(function_.get(), statics);
    return called(
        [&](std::uint32_t count, ax_array **out) {
          return ax_jitted_run_static(get(), {&bytes, sizeof bytes}, in.count(), detail::raw(in).data(), count, out);
        },
        at, "jitted_run_static");
  }
  may<std::vector<host_array>> run_host(const list<host_view> &in = {}, location at = location::here()) const {
    std::vector<ax_host_array> raw(in.begin(), in.end()), out(out_count_);
    const ax_status status = ax_jitted_run_host(get(), in.count(), raw.data(), out_count_, out.data());
    std::vector<host_array> owned = detail::owned<host_array>(out);
    detail::rethrow_from_jitted();
    return detail::give(status, std::move(owned), at, "jitted_run_host");
  }
  /* What such a call runs; the second of a static call. */
  may<axle::executable> executable(const list<array> &in = {}, location at = location::here()) const {
    return found({nullptr, 0}, in, at);
  }
  template <class S>
  may<axle::executable> executable_static(const S &statics, const list<array> &in = {}, location at = location::here()) const {
    const detail::jitted_statics<S> bytes = told(function_.get(), statics);
    return found({&bytes, sizeof bytes}, in, at);
  }
  ax_jitted_counters counters() const { return ax_jitted_count(get()); }
  void clear() const { ax_jitted_clear(get()); }

 private:
  may<axle::executable> found(ax_static statics, const list<array> &in, location at) const {
    ax_executable *made;
    const ax_status status = ax_jitted_executable(get(), statics, in.count(), detail::raw(in).data(), &made);
    axle::executable owned(made);
    detail::rethrow_from_jitted();
    return detail::give(status, std::move(owned), at, "jitted_executable");
  }
};

}  // namespace AXLE_ERRORS_
}  // namespace axle

#endif
