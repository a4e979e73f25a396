/* Functions that modules call by names of their own. See axle/axle.hpp and axle/custom_call.h.

     auto calls = axle::custom_calls::create();
     calls.add("scale", [](ax_callback_call &call, const ax_attribute &attributes) { .. });
     ax_stablehlo_options options{};
     options.custom_calls = calls.get();
     auto program = axle::program_from_stablehlo_with(text, text.size(), "m.mlir", options);

   A function object is kept, called and failed as a callback's (axle/cxx/callback.hpp). */
#ifndef AXLE_CXX_CUSTOM_CALL_HPP
#define AXLE_CXX_CUSTOM_CALL_HPP

#include "axle/cxx/callback.hpp"

namespace axle {
inline namespace AXLE_ERRORS_ {

namespace detail {

template <class F>
struct custom_function { /* as a callback sees it */
  F &function;
  const ax_attribute *attributes;
  auto operator()(ax_callback_call &call) { return function(call, *attributes); }
};

template <class F>
ax_status custom_call_back(ax_callback_call *call, const ax_attribute *attributes, void *context) noexcept {
  custom_function<F> bound{*static_cast<F *>(context), attributes};
  return call_back<custom_function<F>>(call, &bound);
}

}  // namespace detail

/* A reference to a collection. */
class custom_calls : public handle<ax_custom_calls, ax_custom_calls_retain, ax_custom_calls_release> {
 public:
  using handle::handle;
  static may<custom_calls> create(location at = location::here()) {
    ax_custom_calls *made;
    const ax_status status = ax_custom_calls_create(&made);
    return detail::give(status, custom_calls(made), at, "custom_calls_create");
  }
  template <class F>
  may<void> add(const std::string &target, F &&function, const ax_custom_call_options &options = {}, location at = location::here()) {
    using kept = std::decay_t<F>;
    auto context = std::make_unique<kept>(std::forward<F>(function));
    const ax_status status =
        ax_custom_call_register(get(), target.c_str(), detail::custom_call_back<kept>, context.get(), detail::let_go<kept>, &options);
    if (status == AX_OK) context.release(); /* the collection's from now on */
    return detail::give(status, at, "custom_call_register");
  }
};

}  // namespace AXLE_ERRORS_
}  // namespace axle

#endif
