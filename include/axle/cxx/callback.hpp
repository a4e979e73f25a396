/* Functions of the host that programs call, and debug_print. See axle/axle.hpp and axle/callback.h.

     auto seen = axle::callback::create("seen", [&](ax_callback_call &call) { total += ax_host_at(&call.in[0], 0); });
     axle::io_callback(seen, {x});

   The function object is kept by what holds the callback: programs, executables, runtimes. It may be called on several threads at once. It gives
   nothing, or an ax_status. An exception that leaves it fails the run, with its text; it is not thrown again. */
#ifndef AXLE_CXX_CALLBACK_HPP
#define AXLE_CXX_CALLBACK_HPP

#include <exception>
#include <memory>

#include "axle/cxx/program.hpp"

namespace axle {
inline namespace AXLE_ERRORS_ {

namespace detail {

template <class F>
ax_status called_back(ax_callback_call *call, F &function) {
  if constexpr (std::is_void<decltype(function(*call))>::value) {
    function(*call);
    return AX_OK;
  } else {
    return function(*call);
  }
}

template <class F>
ax_status call_back(ax_callback_call *call, void *context) noexcept {
  F &function = *static_cast<F *>(context);
#if AXLE_THROWS
  try {
    return called_back(call, function);
  } catch (const std::exception &thrown) {
    std::snprintf(call->message, AX_MESSAGE_BYTES, "%s", thrown.what());
  } catch (...) {
    std::snprintf(call->message, AX_MESSAGE_BYTES, "an exception left the function");
  }
  return AX_INVALID_ARGUMENT;
#else
  return called_back(call, function);
#endif
}

template <class F>
void let_go(void *context) noexcept {
  delete static_cast<F *>(context);
}

}  // namespace detail

/* A reference to a callback. */
class callback : public handle<ax_callback, ax_callback_retain, ax_callback_release> {
 public:
  using handle::handle;
  template <class F>
  static may<callback> create(const std::string &name, F &&function, location at = location::here()) {
    using kept = std::decay_t<F>;
    auto context = std::make_unique<kept>(std::forward<F>(function));
    ax_callback *made;
    ax_status status = ax_callback_create(name.c_str(), detail::call_back<kept>, context.get(), detail::let_go<kept>, &made);
    if (status == AX_OK) context.release(); /* the callback's from now on */
    return detail::give(status, callback(made), at, "callback_create");
  }
  std::string name() const { return get() != nullptr ? ax_callback_name(get()) : ""; }
};

/* As many results as there are types. */
inline std::vector<value> pure_callback(const callback &called, const list<value> &in, const list<type> &types, bool vectorized = false,
                                        location at = location::here()) {
  values all(in.data(), in.size());
  std::vector<ax_value> out(types.size());
  ax_pure_callback(called.get(), vectorized, all.count(), all.data(), types.count(), types.data(), types.count(), out.data());
  detail::stamp(at, "pure_callback");
  return detail::loaded(out.data(), out.size());
}
inline std::vector<value> io_callback(const callback &called, const list<value> &in, const list<type> &types = {}, bool ordered = false,
                                      location at = location::here()) {
  values all(in.data(), in.size());
  std::vector<ax_value> out(types.size());
  ax_io_callback(called.get(), ordered, all.count(), all.data(), types.count(), types.data(), types.count(), out.data());
  detail::stamp(at, "io_callback");
  return detail::loaded(out.data(), out.size());
}
inline void debug_print(const std::string &format, const list<value> &in = {}, bool ordered = false, location at = location::here()) {
  values all(in.data(), in.size());
  ax_debug_print(format.c_str(), ordered, all.count(), all.data());
  detail::stamp(at, "debug_print");
}

}  // namespace AXLE_ERRORS_
}  // namespace axle

#endif
