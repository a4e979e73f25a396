/* Values of a trace, and operators on them. See axle/axle.hpp and, for what each operation does, axle/ops.h. */
#ifndef AXLE_CXX_VALUE_HPP
#define AXLE_CXX_VALUE_HPP

#include "axle/cxx/base.hpp"

namespace axle {
inline namespace AXLE_ERRORS_ {

/* A value of the trace in progress: a plain handle, as ax_value. One that was never set is an error where it is used. */
class value {
  ax_value handle_{0, 0};

 public:
  value() = default;
  explicit value(ax_value handle) : handle_(handle) {}
  ax_value get() const { return handle_; }

  /* As ax_typeof; its parts. */
  axle::type type(location at = location::here()) const {
    axle::type found = ax_typeof(handle_);
    detail::stamp(at, "typeof");
    return found;
  }
  axle::dtype dtype(location at = location::here()) const { return type(at).dtype; }
  std::uint32_t rank(location at = location::here()) const { return type(at).rank; }
  /* The size of a dimension, which may count from the end; 0 when there is none such. */
  std::int64_t dim(std::int64_t dimension, location at = location::here()) const {
    axle::type found = type(at);
    std::int64_t d = dimension < 0 ? dimension + found.rank : dimension;
    return d >= 0 && d < found.rank ? found.dims[d] : 0;
  }
};

/* A value, and where the call it is given to stands. */
class input {
  ax_value handle_;
  location at_;

 public:
  input(const value &given, location at = location::here()) : handle_(given.get()), at_(at) {}
  operator ax_value() const { return handle_; }
  location at() const { return at_; }

 protected:
  input(ax_value handle, location at) : handle_(handle), at_(at) {}
};

/* The same, or a number: it becomes a scalar of the dtype of the other operand (axle/program.h). */
class operand : public input {
  template <class N>
  static ax_value number(N given) {
    if constexpr (std::is_floating_point<N>::value)
      return ax_real(static_cast<double>(given));
    else if constexpr (std::is_unsigned<N>::value && !std::is_same<N, bool>::value)
      return ax_unsigned(given);
    else
      return ax_integer(given);
  }

 public:
  operand(const value &given, location at = location::here()) : input(given, at) {}
  template <class N, std::enable_if_t<std::is_arithmetic<N>::value, int> = 0>
  operand(N given, location at = location::here()) : input(number(given), at) {}
};

namespace detail {
/* The result of the C function of this name, which was called with `first`. */
inline value lined(ax_value made, location at, const char *function) {
  stamp(at, function);
  return value(made);
}
inline value lined(ax_value made, const input &first, const char *function) { return lined(made, first.at(), function); }
}  // namespace detail

/* Each is the function of ops.h of the name it stands for. Comparisons give values, as in NumPy; & | ~ are and, or and not of bools
   and integers, and bind less tightly than comparisons: (x > 0) & (x < 1). */
inline value operator+(operand a, operand b) { return detail::lined(ax_add(a, b), a, "add"); }
inline value operator-(operand a, operand b) { return detail::lined(ax_sub(a, b), a, "sub"); }
inline value operator*(operand a, operand b) { return detail::lined(ax_mul(a, b), a, "mul"); }
inline value operator/(operand a, operand b) { return detail::lined(ax_div(a, b), a, "div"); }
inline value operator-(input x) { return detail::lined(ax_neg(x), x, "neg"); }
inline value operator==(operand a, operand b) { return detail::lined(ax_eq(a, b), a, "eq"); }
inline value operator!=(operand a, operand b) { return detail::lined(ax_ne(a, b), a, "ne"); }
inline value operator<(operand a, operand b) { return detail::lined(ax_lt(a, b), a, "lt"); }
inline value operator<=(operand a, operand b) { return detail::lined(ax_le(a, b), a, "le"); }
inline value operator>(operand a, operand b) { return detail::lined(ax_gt(a, b), a, "gt"); }
inline value operator>=(operand a, operand b) { return detail::lined(ax_ge(a, b), a, "ge"); }
inline value operator&(operand a, operand b) { return detail::lined(ax_and(a, b), a, "and"); }
inline value operator^(operand a, operand b) { return detail::lined(ax_xor(a, b), a, "xor"); }
inline value operator|(operand a, operand b) { return detail::lined(ax_or(a, b), a, "or"); }
inline value operator~(input x) { return detail::lined(ax_not(x), x, "not"); }
/* x becomes another value; what else holds the old one still does. */
inline value &operator+=(value &x, operand y) { return x = operator+(operand(x, y.at()), y); }
inline value &operator-=(value &x, operand y) { return x = operator-(operand(x, y.at()), y); }
inline value &operator*=(value &x, operand y) { return x = operator*(operand(x, y.at()), y); }
inline value &operator/=(value &x, operand y) { return x = operator/(operand(x, y.at()), y); }

/* Values that a function takes as a list whose length is known when it runs: a vector, an array, one value, none. Where the list is
   written out, {a, b}, its length is known before. */
class values {
  std::vector<ax_value> list_;

 public:
  values() = default;
  values(const value &one) : list_{one.get()} {}
  values(const std::vector<value> &given) : values(given.data(), given.size()) {}
  template <std::size_t N>
  values(const std::array<value, N> &given) : values(given.data(), N) {}
  values(const value *data, std::size_t count) {
    list_.reserve(count);
    for (std::size_t i = 0; i < count; i++) list_.push_back(data[i].get());
  }
  const ax_value *data() const { return list_.data(); }
  std::uint32_t count() const { return static_cast<std::uint32_t>(list_.size()); }
  void append(const values &more) { list_.insert(list_.end(), more.list_.begin(), more.list_.end()); }
};

/* The same, some of which may be numbers: tangents, starts. */
class vectors {
  std::vector<ax_value> list_;

 public:
  vectors() = default;
  vectors(std::initializer_list<operand> given) : list_(given.begin(), given.end()) {}
  vectors(const std::vector<value> &given) : vectors(given.data(), given.size()) {}
  template <std::size_t N>
  vectors(const std::array<value, N> &given) : vectors(given.data(), N) {}
  vectors(const value *data, std::size_t count) {
    list_.reserve(count);
    for (std::size_t i = 0; i < count; i++) list_.push_back(data[i].get());
  }
  const ax_value *data() const { return list_.data(); }
  std::uint32_t count() const { return static_cast<std::uint32_t>(list_.size()); }
};

}  // namespace AXLE_ERRORS_
}  // namespace axle

#endif
