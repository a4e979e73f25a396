/* What all else in C++ stands on: errors, lines, lists, dtypes, meshes, handles. See axle/axle.hpp. */
#ifndef AXLE_CXX_BASE_HPP
#define AXLE_CXX_BASE_HPP

#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "axle/axle.h"

#if defined(AXLE_NO_EXCEPTIONS) || !defined(__cpp_exceptions)
#define AXLE_THROWS 0
#define AXLE_ERRORS_ statuses /* the namespace that says which of the two, so that files of both kinds can be linked together */
#else
#define AXLE_THROWS 1
#define AXLE_ERRORS_ exceptions
#endif

namespace axle {
inline namespace AXLE_ERRORS_ {

/* --- Lines --- */

/* Where a call stands. Every function has one as its last parameter, or takes it with its first value; nobody passes one. */
struct location {
  const char *file; /* NULL: not known */
  int line;
  static constexpr location here(const char *file = __builtin_FILE(), int line = __builtin_LINE()) { return {file, line}; }
};

namespace detail {

/* "prog.cc:12: matmul", as ax_stamp and ax_blame take it. */
class call {
  char text_[640];

 public:
  call(location at, const char *function) { std::snprintf(text_, sizeof text_, "%.500s:%d: %.100s", at.file, at.line, function); }
  operator const char *() const { return text_; }
};

inline void stamp(location at, const char *function) {
  if (at.file != nullptr) ax_stamp(call(at, function));
}

inline ax_status blamed(ax_status status, location at, const char *function) {
  if (status != AX_OK && at.file != nullptr) ax_blame(status, call(at, function));
  return status;
}

/* The status of a call that was wrong before it came to C. */
struct failure {
  ax_status status;
  std::string message;
};

inline failure wrong(location at, const char *function, const std::string &what) {
  return {AX_INVALID_ARGUMENT, std::string(call(at, function)) + ": " + what};
}

}  // namespace detail

/* --- Errors --- */

#if AXLE_THROWS

/* What a failed call throws. what() is ax_message: "prog.cc:12: trace: ...". */
class error : public std::runtime_error {
  ax_status status_;

 public:
  error(ax_status status, const std::string &message) : std::runtime_error(message), status_(status) {}
  ax_status status() const noexcept { return status_; }
};

/* What a call that can fail gives. */
template <class T>
using may = T;

namespace detail {

inline void give(ax_status status, location at, const char *function) {
  if (blamed(status, at, function) != AX_OK) throw error(status, ax_message());
}
template <class T>
T give(ax_status status, T &&made, location at, const char *function) {
  give(status, at, function);
  return std::forward<T>(made);
}
template <class T>
[[noreturn]] T refuse(const failure &failed) {
  throw error(failed.status, failed.message);
}

}  // namespace detail

#else

/* What a call that can fail gives: a status, and what was made or a message. To ask a failed one for what it made ends the process. */
template <class T>
class [[nodiscard]] result {
  ax_status status_ = AX_OK;
  std::string message_;
  T made_{};

  void require() const {
    if (status_ == AX_OK) return;
    std::fprintf(stderr, "axle: a result that failed is used: %s\n", message_.c_str());
    std::abort();
  }

 public:
  result(T made) : made_(std::move(made)) {}
  result(ax_status status, std::string message) : status_(status), message_(std::move(message)) {}
  bool ok() const { return status_ == AX_OK; }
  explicit operator bool() const { return ok(); }
  ax_status status() const { return status_; }
  const std::string &message() const { return message_; } /* "" when it is ok */
  T &value() & { return require(), made_; }
  const T &value() const & { return require(), made_; }
  T value() && { return require(), std::move(made_); }
  T &operator*() & { return value(); }
  const T &operator*() const & { return value(); }
  T operator*() && { return std::move(*this).value(); }
  T *operator->() { return &value(); }
  const T *operator->() const { return &value(); }
};
template <>
class [[nodiscard]] result<void> {
  ax_status status_ = AX_OK;
  std::string message_;

 public:
  result() = default;
  result(ax_status status, std::string message) : status_(status), message_(std::move(message)) {}
  bool ok() const { return status_ == AX_OK; }
  explicit operator bool() const { return ok(); }
  ax_status status() const { return status_; }
  const std::string &message() const { return message_; }
};

template <class T>
using may = result<T>;

namespace detail {

inline result<void> give(ax_status status, location at, const char *function) {
  if (blamed(status, at, function) != AX_OK) return {status, ax_message()};
  return {};
}
template <class T>
result<T> give(ax_status status, T &&made, location at, const char *function) {
  if (blamed(status, at, function) != AX_OK) return {status, ax_message()};
  return std::forward<T>(made);
}
template <class T>
result<T> refuse(const failure &failed) {
  return {failed.status, failed.message};
}

}  // namespace detail
#endif

/* --- Lists --- */

/* Lists that a function takes for the length of a call: {a, b}, a vector, an array. They borrow; never keep one. */
template <class T>
class list {
  const T *data_ = nullptr;
  std::size_t size_ = 0;

 public:
  list() = default;
  list(std::initializer_list<T> given) : size_(given.size()) { data_ = given.begin(); } /* not initialised with it: gcc warns of keeping */
  list(const std::vector<T> &given) : data_(given.data()), size_(given.size()) {}
  template <std::size_t N>
  list(const std::array<T, N> &given) : data_(given.data()), size_(N) {}
  list(const T *data, std::size_t size) : data_(data), size_(size) {}
  const T *data() const { return data_; }
  std::size_t size() const { return size_; }
  std::uint32_t count() const { return static_cast<std::uint32_t>(size_); }
  const T *begin() const { return data_; }
  const T *end() const { return data_ + size_; }
  const T &operator[](std::size_t i) const { return data_[i]; }
};

/* {{0, 1}, {1, 0}}: from member 0 to 1, and from 1 to 0. */
using pairs = list<std::array<std::int64_t, 2>>;

namespace detail {
inline const std::int64_t (*raw(const pairs &given))[2] { return reinterpret_cast<const std::int64_t(*)[2]>(given.data()); }

/* A text that a function takes for the length of a call: "a", a std::string; nullptr, or nothing, where C may be given NULL. */
class text {
  const char *text_ = nullptr;

 public:
  text() = default;
  text(const char *given) : text_(given) {}
  text(const std::string &given) : text_(given.c_str()) {}
  operator const char *() const { return text_; }
};
}  // namespace detail

/* Dimensions, axes and the like: {2, 3}, {}, 5, a vector, an array; or all_dims, where that is allowed. Borrows, as list does. */
class dims {
  std::int64_t one_ = 0;
  const std::int64_t *data_ = nullptr; /* NULL: one_ */
  std::size_t size_ = 0;
  bool all_ = false;
  struct everything {};
  explicit constexpr dims(everything) : all_(true) {}

 public:
  dims() = default;
  template <class N, std::enable_if_t<std::is_integral<N>::value && !std::is_same<N, bool>::value, int> = 0>
  dims(N one) : one_(static_cast<std::int64_t>(one)), size_(1) {}
  dims(std::initializer_list<std::int64_t> given) : size_(given.size()) { data_ = given.begin(); }
  dims(const std::vector<std::int64_t> &given) : data_(given.data()), size_(given.size()) {}
  template <std::size_t N>
  dims(const std::array<std::int64_t, N> &given) : data_(given.data()), size_(N) {}
  dims(const std::int64_t *data, std::size_t size) : data_(data), size_(size) {}
  static constexpr dims all() { return dims(everything{}); }
  std::uint32_t count() const { return static_cast<std::uint32_t>(size_); }
  const std::int64_t *data() const { return all_ ? nullptr : data_ != nullptr ? data_ : &one_; }
  std::int64_t operator[](std::size_t i) const { return data()[i]; }
  bool is_all() const { return all_; }
};
inline constexpr dims all_dims = dims::all();
namespace detail {
/* As options of C have lists. Borrows. */
inline ax_dim_list listed(const dims &of) { return {of.count(), of.data()}; }
}  // namespace detail

/* Inputs, operands or arguments by number: {0, 2}, first(4), range(1, 3), all_args, a vector. Owns its list. */
class args {
  std::vector<std::uint32_t> list_;
  ax_args borrowed_{};

 public:
  args() = default;
  args(std::initializer_list<std::uint32_t> given) : list_(given) {}
  args(std::vector<std::uint32_t> given) : list_(std::move(given)) {}
  args(const ax_args &given) : borrowed_(given) {}
  operator ax_args() const { return list_.empty() ? borrowed_ : ax_args{list_.data(), 0, count()}; }
  std::uint32_t count() const { return list_.empty() ? borrowed_.count : static_cast<std::uint32_t>(list_.size()); }
  bool is_all() const { return list_.empty() && borrowed_.list == nullptr && borrowed_.first == 0 && borrowed_.count == UINT32_MAX; }
};
inline args range(std::uint32_t first, std::uint32_t count) { return args(ax_args{nullptr, first, count}); }
inline args first(std::uint32_t count) { return range(0, count); }
inline constexpr ax_args all_args{nullptr, 0, UINT32_MAX};

/* --- Dtypes, types, meshes --- */

using dtype = ax_dtype;
inline constexpr dtype boolean = AX_BOOL, s2 = AX_S2, s4 = AX_S4, s8 = AX_S8, s16 = AX_S16, s32 = AX_S32, s64 = AX_S64, u2 = AX_U2,
                       u4 = AX_U4, u8 = AX_U8, u16 = AX_U16, u32 = AX_U32, u64 = AX_U64, f4e2m1fn = AX_F4E2M1FN,
                       f6e2m3fn = AX_F6E2M3FN, f6e3m2fn = AX_F6E3M2FN, f8e3m4 = AX_F8E3M4,
                       f8e4m3 = AX_F8E4M3, f8e4m3b11fnuz = AX_F8E4M3B11FNUZ, f8e4m3fn = AX_F8E4M3FN, f8e4m3fnuz = AX_F8E4M3FNUZ,
                       f8e5m2 = AX_F8E5M2, f8e5m2fnuz = AX_F8E5M2FNUZ, f8e8m0fnu = AX_F8E8M0FNU, bf16 = AX_BF16, f16 = AX_F16,
                       f32 = AX_F32, f64 = AX_F64, c64 = AX_C64, c128 = AX_C128, prng_key = AX_KEY;

namespace detail {
template <class T>
constexpr dtype dtype_of_number() {
  constexpr bool is_signed = std::is_signed<T>::value;
  if (std::is_same<T, bool>::value) return AX_BOOL;
  if (std::is_same<T, float>::value) return AX_F32;
  if (std::is_same<T, double>::value) return AX_F64;
  if (std::is_same<T, std::complex<float>>::value) return AX_C64;
  if (std::is_same<T, std::complex<double>>::value) return AX_C128;
  if (!std::is_integral<T>::value) return AX_NO_DTYPE;
  switch (sizeof(T)) {
    case 1: return is_signed ? AX_S8 : AX_U8;
    case 2: return is_signed ? AX_S16 : AX_U16;
    case 4: return is_signed ? AX_S32 : AX_U32;
    default: return is_signed ? AX_S64 : AX_U64;
  }
}
}  // namespace detail

/* The dtype whose elements are these C++ numbers. Narrow floats and short integers have none. */
template <class T>
inline constexpr dtype dtype_of = detail::dtype_of_number<T>();

using type = ax_type;
/* array_type(axle::f32, {8, 4}) is f32[8,4], array_type(axle::f32) a scalar. */
inline type array_type(dtype of, const dims &shape = {}) { return ax_array_type(of, shape.count(), shape.data()); }

/* An ax_mesh: a plain value. */
struct mesh : ax_mesh {
  mesh() : ax_mesh() {}
  mesh(const ax_mesh &given) : ax_mesh(given) {}
  static may<mesh> parse(const std::string &text, location at = location::here()) {
    mesh made;
    ax_status status = ax_mesh_parse(text.c_str(), &made);
    return detail::give(status, std::move(made), at, "mesh_parse");
  }
  /* The mesh of which a shard_map takes the named axes by hand. */
  may<mesh> manual(const std::string &names, location at = location::here()) const {
    mesh made;
    ax_status status = ax_mesh_manual(this, names.c_str(), &made);
    return detail::give(status, std::move(made), at, "mesh_manual");
  }
  std::int64_t devices() const { return ax_mesh_devices(this); }
  int find(const std::string &name) const { return ax_mesh_find(this, name.c_str()); }
};

/* --- Handles --- */

/* A reference to an object of the library: a copy retains, the end releases. One that was moved from, or made by nothing, holds
   nothing, as NULL does in C. Like pointers, references to one object may be used from any thread, one reference by one thread at a time. */
template <class Object, Object *(*Retain)(Object *), void (*Release)(Object *)>
class handle {
  Object *object_ = nullptr;

 public:
  handle() = default;
  explicit handle(Object *owned) noexcept : object_(owned) {}
  handle(const handle &other) noexcept : object_(Retain(other.object_)) {}
  handle(handle &&other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  handle &operator=(handle other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~handle() { Release(object_); }
  explicit operator bool() const noexcept { return object_ != nullptr; }
  Object *get() const noexcept { return object_; }                             /* borrowed */
  Object *release() noexcept { return std::exchange(object_, nullptr); } /* the caller's from now on */
};

namespace detail {
/* Of what C has given: the owners. */
template <class Owner, class Raw>
std::vector<Owner> owned(const std::vector<Raw> &given) {
  std::vector<Owner> made;
  made.reserve(given.size());
  for (const Raw &one : given) made.emplace_back(one);
  return made;
}
}  // namespace detail

/* One owner: it can be moved, not copied. */
template <class Object, void (*Release)(Object *)>
class unique {
  Object *object_ = nullptr;

 public:
  unique() = default;
  explicit unique(Object *owned) noexcept : object_(owned) {}
  unique(unique &&other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  unique &operator=(unique &&other) noexcept {
    unique taken(std::move(other));
    std::swap(object_, taken.object_);
    return *this;
  }
  ~unique() { Release(object_); }
  explicit operator bool() const noexcept { return object_ != nullptr; }
  Object *get() const noexcept { return object_; }
  Object *release() noexcept { return std::exchange(object_, nullptr); }
};

namespace detail {
/* A text of the library's as one of C++. */
inline std::string taken(char *text) {
  std::string copy = text != nullptr ? text : "";
  ax_string_free(text);
  return copy;
}
}  // namespace detail

}  // namespace AXLE_ERRORS_
}  // namespace axle

#endif
