// Handlers of XLA's FFI as users write them, with the headers that jaxlib brings. tests/oracle/ffi.py compiles them, and calls them by
// XLA and by Axle.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

// --- Each row divided by its root mean square ---
static ffi::Error RmsNormImpl(float eps, ffi::Buffer<ffi::F32> x, ffi::ResultBuffer<ffi::F32> y) {
  const auto dims = x.dimensions();
  if (dims.size() == 0) return ffi::Error::InvalidArgument("RmsNorm takes an array");
  const int64_t width = dims.back(), rows = width > 0 ? static_cast<int64_t>(x.element_count()) / width : 0;
  for (int64_t r = 0; r < rows; r++) {
    float sum = 0;
    for (int64_t i = 0; i < width; i++) sum += x.typed_data()[r * width + i] * x.typed_data()[r * width + i];
    const float scale = 1.0f / std::sqrt(sum / static_cast<float>(width) + eps);
    for (int64_t i = 0; i < width; i++) y->typed_data()[r * width + i] = x.typed_data()[r * width + i] * scale;
  }
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(RmsNorm, RmsNormImpl,
                              ffi::Ffi::Bind().Attr<float>("eps").Arg<ffi::Buffer<ffi::F32>>().Ret<ffi::Buffer<ffi::F32>>());

// --- Any dtype: the bytes in the opposite order of elements, and the dtype's number ---
static ffi::Error TurnImpl(ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> y, ffi::ResultBuffer<ffi::S32> dtype) {
  if (x.element_type() != y->element_type()) return ffi::Error(ffi::ErrorCode::kFailedPrecondition, "other dtypes");
  const size_t count = x.element_count(), bytes = count > 0 ? x.size_bytes() / count : 0;
  for (size_t i = 0; i < count; i++)
    std::memcpy(static_cast<char *>(y->untyped_data()) + i * bytes, static_cast<char *>(x.untyped_data()) + (count - 1 - i) * bytes, bytes);
  dtype->typed_data()[0] = static_cast<int32_t>(x.element_type());
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(Turn, TurnImpl,
                              ffi::Ffi::Bind().Arg<ffi::AnyBuffer>().Ret<ffi::AnyBuffer>().Ret<ffi::Buffer<ffi::S32>>());

// --- Attributes of each kind, written into the result ---
static ffi::Error AttributesImpl(ffi::Dictionary attrs, ffi::ResultBuffer<ffi::F64> y) {
  double *out = y->typed_data();
  auto give = [&](auto value) {
    if (value.has_value()) *out++ = static_cast<double>(*value);
    return value.has_value();
  };
  auto inner = attrs.get<ffi::Dictionary>("inner");
  auto text = attrs.get<std::string_view>("text");
  auto i32 = attrs.get<ffi::Span<const int32_t>>("i32s");
  auto f64 = attrs.get<ffi::Span<const double>>("f64s");
  auto u8 = attrs.get<ffi::Span<const uint8_t>>("u8s");
  bool ok = give(attrs.get<bool>("b")) && give(attrs.get<int8_t>("i8")) && give(attrs.get<int16_t>("i16")) && give(attrs.get<int32_t>("i32")) &&
            give(attrs.get<int64_t>("i64")) && give(attrs.get<uint8_t>("u8")) && give(attrs.get<uint16_t>("u16")) &&
            give(attrs.get<uint32_t>("u32")) && give(attrs.get<uint64_t>("u64")) && give(attrs.get<float>("f32")) && give(attrs.get<double>("f64"));
  ok = ok && inner.has_value() && text.has_value() && i32.has_value() && f64.has_value() && u8.has_value() && give(inner->get<int64_t>("deep"));
  if (!ok) return ffi::Error::InvalidArgument("an attribute is missing");
  for (auto v : *i32) *out++ = v;
  for (auto v : *f64) *out++ = v;
  for (auto v : *u8) *out++ = v;
  *out++ = static_cast<double>(text->size());
  *out++ = text->empty() ? 0 : text->back();
  *out++ = static_cast<double>(attrs.size());
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(Attributes, AttributesImpl, ffi::Ffi::Bind().Attrs().Ret<ffi::Buffer<ffi::F64>>());

// --- Any number of operands and results ---
static ffi::Error SumsImpl(ffi::RemainingArgs args, ffi::RemainingRets rets) {
  for (size_t k = 0; k < rets.size(); k++) {
    auto y = rets.get<ffi::Buffer<ffi::F32>>(k);
    if (!y.has_value()) return y.error();
    std::fill_n((*y)->typed_data(), (*y)->element_count(), static_cast<float>(k));
    for (size_t i = 0; i < args.size(); i++) {
      auto x = args.get<ffi::Buffer<ffi::F32>>(i);
      if (!x.has_value()) return x.error();
      for (size_t e = 0; e < (*y)->element_count(); e++) (*y)->typed_data()[e] += x->typed_data()[e];
    }
  }
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(Sums, SumsImpl, ffi::Ffi::Bind().RemainingArgs().RemainingRets());

// --- Errors ---
static ffi::Error FailImpl(int32_t code, std::string_view message, ffi::AnyBuffer, ffi::Result<ffi::AnyBuffer>) {
  return code == 0 ? ffi::Error::Success() : ffi::Error(static_cast<ffi::ErrorCode>(code), std::string(message));
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    Fail, FailImpl, ffi::Ffi::Bind().Attr<int32_t>("code").Attr<std::string_view>("message").Arg<ffi::AnyBuffer>().Ret<ffi::AnyBuffer>());

// --- A state, made once for each call of a module ---
struct Polynomial {
  static ffi::TypeId id;
  std::vector<float> coefficients;
};
ffi::TypeId Polynomial::id = {};
extern "C" XLA_FFI_TypeInfo PolynomialInfo;
XLA_FFI_TypeInfo PolynomialInfo = ffi::MakeTypeInfo<Polynomial>();
static ffi::ErrorOr<std::unique_ptr<Polynomial>> MakePolynomialImpl(ffi::Span<const float> coefficients) {
  if (coefficients.size() == 0) return ffi::Unexpected(ffi::Error::InvalidArgument("a polynomial needs coefficients"));
  auto made = std::make_unique<Polynomial>();
  made->coefficients.assign(coefficients.begin(), coefficients.end());
  return made;
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(MakePolynomial, MakePolynomialImpl, ffi::Ffi::BindInstantiate().Attr<ffi::Span<const float>>("coefficients"));
static ffi::Error EvaluateImpl(Polynomial *p, ffi::Buffer<ffi::F32> x, ffi::ResultBuffer<ffi::F32> y) {
  for (size_t i = 0; i < x.element_count(); i++) {
    float sum = 0;
    for (size_t k = p->coefficients.size(); k-- > 0;) sum = sum * x.typed_data()[i] + p->coefficients[k];
    y->typed_data()[i] = sum;
  }
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(Evaluate, EvaluateImpl,
                              ffi::Ffi::Bind().Ctx<ffi::State<Polynomial>>().Arg<ffi::Buffer<ffi::F32>>().Ret<ffi::Buffer<ffi::F32>>());

// --- Tasks of the thread pool, and scratch; a task ends the future ---
static ffi::Future SquareImpl(ffi::ThreadPool pool, ffi::Buffer<ffi::F32> x, ffi::ResultBuffer<ffi::F32> y) {
  ffi::CountDownPromise promise(4);
  ffi::Future future(promise);
  const size_t count = x.element_count();
  for (size_t part = 0; part < 4; part++)
    pool.Schedule([promise, part, count, in = x.typed_data(), out = y->typed_data()]() mutable {
      for (size_t i = part * count / 4; i < (part + 1) * count / 4; i++) out[i] = in[i] * in[i];
      promise.CountDown();
    });
  return future;
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(Square, SquareImpl,
                              ffi::Ffi::Bind().Ctx<ffi::ThreadPool>().Arg<ffi::Buffer<ffi::F32>>().Ret<ffi::Buffer<ffi::F32>>());

// --- A thread of its own ends the future ---
static ffi::Future LaterImpl(bool fails, ffi::Buffer<ffi::F32> x, ffi::ResultBuffer<ffi::F32> y) {
  ffi::Promise promise;
  ffi::Future future(promise);
  std::thread([promise = std::move(promise), fails, count = x.element_count(), in = x.typed_data(), out = y->typed_data()]() mutable {
    for (size_t i = 0; i < count; i++) out[i] = -in[i];
    if (fails) promise.SetError(ffi::Error::Internal("later"));
    else promise.SetAvailable();
  }).detach();
  return future;
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(Later, LaterImpl,
                              ffi::Ffi::Bind().Attr<bool>("fails").Arg<ffi::Buffer<ffi::F32>>().Ret<ffi::Buffer<ffi::F32>>());

// --- In place: the result begins as the operand ---
static ffi::Error BumpImpl(ffi::Buffer<ffi::F32>, ffi::ResultBuffer<ffi::F32> y) {
  for (size_t i = 0; i < y->element_count(); i++) y->typed_data()[i] += 1;
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(Bump, BumpImpl, ffi::Ffi::Bind().Arg<ffi::Buffer<ffi::F32>>().Ret<ffi::Buffer<ffi::F32>>());

// --- The elements as they lie in memory, numbered ---
static ffi::Error NumberImpl(ffi::Buffer<ffi::F32> x, ffi::ResultBuffer<ffi::F32> y) {
  for (size_t i = 0; i < x.element_count(); i++) y->typed_data()[i] = x.typed_data()[i] * static_cast<float>(i);
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(Number, NumberImpl, ffi::Ffi::Bind().Arg<ffi::Buffer<ffi::F32>>().Ret<ffi::Buffer<ffi::F32>>());

// --- The same by way of scratch ---
static ffi::Error ScratchImpl(ffi::ScratchAllocator scratch, int32_t device, ffi::Buffer<ffi::F32> x, ffi::ResultBuffer<ffi::F32> y) {
  auto memory = scratch.Allocate(x.size_bytes() + 4, 256);
  if (!memory.has_value() || device != 0) return ffi::Error::Internal("no scratch");
  float *numbers = static_cast<float *>(*memory);
  for (size_t i = 0; i < x.element_count(); i++) numbers[i] = x.typed_data()[i] * static_cast<float>(i);
  std::memcpy(y->typed_data(), numbers, x.size_bytes());
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    Scratch, ScratchImpl,
    ffi::Ffi::Bind().Ctx<ffi::ScratchAllocator>().Ctx<ffi::DeviceOrdinal>().Arg<ffi::Buffer<ffi::F32>>().Ret<ffi::Buffer<ffi::F32>>());

// --- The kinds before the FFI ---
extern "C" void Half(float *out, const float **in) {
  for (int i = 0; i < 6; i++) out[i] = in[0][i] / 2;
}
