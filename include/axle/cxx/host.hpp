/* Host arrays: views of C++ memory, and arrays that own theirs. See axle/axle.hpp and axle/host.h. */
#ifndef AXLE_CXX_HOST_HPP
#define AXLE_CXX_HOST_HPP

#include <cstring>
#include <memory>

#include "axle/cxx/base.hpp"

namespace axle {
inline namespace AXLE_ERRORS_ {

/* Elements as std::vector holds them; bools a byte each. */
template <class T>
using element = std::conditional_t<std::is_same<T, bool>::value, unsigned char, T>;

/* Memory that is somebody else's, which must live as long as the view: what puts elements somewhere takes one. A vector or a
   std::array is a view of one dimension, view(x, {8, 4}) one of more; a host_array is a view of itself. */
class host_view {
  ax_host_array array_{};

 public:
  host_view() = default;
  host_view(const ax_host_array &given) : array_(given) { array_.view = true; }
  template <class T>
  host_view(const std::vector<T> &given) : host_view(given.data(), given.size()) {}
  template <class T, std::size_t N>
  host_view(const std::array<T, N> &given) : host_view(given.data(), N) {}
  template <class T>
  host_view(const T *data, std::size_t count) : host_view(data, dtype_of<T>, {static_cast<std::int64_t>(count)}) {
    static_assert(dtype_of<T> != AX_NO_DTYPE, "axle: no dtype has elements of this C++ type");
  }
  host_view(const void *data, dtype of, const dims &shape) : array_(ax_host_view(of, shape.count(), shape.data(), AX_NO_DTYPE, data, SIZE_MAX)) {}
  const ax_host_array &get() const { return array_; }
  operator const ax_host_array &() const { return array_; }
  axle::type type() const { return ax_array_type(array_.dtype, array_.rank, array_.dims); }
};

/* The elements of a vector or std::array, row-major, in other dimensions: view(pixels, {64, 8, 8}). Where they are more or fewer than the
   dimensions say, the view has no dtype, which every function refuses. */
template <class List>
host_view view(const List &elements, const dims &shape) {
  using T = std::remove_cv_t<std::remove_pointer_t<decltype(elements.data())>>;
  static_assert(dtype_of<T> != AX_NO_DTYPE, "axle: no dtype has elements of this C++ type");
  type whole = array_type(dtype_of<T>, shape);
  bool fits = whole.dtype != AX_NO_DTYPE && ax_type_elems(&whole) == static_cast<std::int64_t>(elements.size());
  return host_view(elements.data(), fits ? whole.dtype : AX_NO_DTYPE, shape);
}
/* The same elements as another dtype of their size: what C++ has no type for, as bf16 in std::uint16_t. */
template <class List>
host_view view(const List &elements, dtype of, const dims &shape) {
  type whole = array_type(of, shape);
  bool fits = whole.dtype != AX_NO_DTYPE && ax_dtype_bytes(of) == sizeof(elements.data()[0]) &&
              ax_type_elems(&whole) == static_cast<std::int64_t>(elements.size());
  return host_view(elements.data(), fits ? of : AX_NO_DTYPE, shape);
}

/* A dense row-major array of a dtype that is known when the program runs, with memory of its own. A copy is deep. */
class host_array {
  ax_host_array array_{};                  /* the library's memory, or a view of own_ */
  std::unique_ptr<unsigned char[]> own_{}; /* of those that C++ made */

  std::size_t bytes() const { return static_cast<std::size_t>(size()) * ax_dtype_bytes(array_.dtype); }

 public:
  host_array() = default; /* no dtype and no elements */
  /* All zero. */
  explicit host_array(const axle::type &of) : array_{of.dtype, of.rank, {}, nullptr, true, {}} {
    for (std::uint32_t d = 0; d < of.rank; d++) array_.dims[d] = of.dims[d];
    own_ = std::make_unique<unsigned char[]>(bytes() + 1); /* even of no elements it lies somewhere */
    array_.data = own_.get();
  }
  explicit host_array(ax_host_array owned) : array_(owned) {}
  host_array(const host_array &other) : host_array(other.array_.dtype != AX_NO_DTYPE ? host_array(other.type()) : host_array()) {
    if (bytes() > 0) std::memcpy(array_.data, other.array_.data, bytes());
  }
  host_array(host_array &&other) noexcept : array_(std::exchange(other.array_, ax_host_array{})), own_(std::move(other.own_)) {}
  host_array &operator=(host_array other) noexcept {
    std::swap(array_, other.array_);
    own_.swap(other.own_);
    return *this;
  }
  ~host_array() { ax_host_array_release(&array_); }

  const ax_host_array &get() const { return array_; }
  operator host_view() const { return host_view(array_); }
  axle::dtype dtype() const { return array_.dtype; }
  axle::type type() const { return ax_array_type(array_.dtype, array_.rank, array_.dims); }
  std::uint32_t rank() const { return array_.rank; }
  std::int64_t dim(std::uint32_t d) const { return d < array_.rank ? array_.dims[d] : 0; }
  std::int64_t size() const { /* elements */
    axle::type own = type();
    return own.dtype != AX_NO_DTYPE ? ax_type_elems(&own) : 0;
  }
  /* Whether the elements are of this C++ type; where they are, row-major. NULL when they are of another. */
  template <class T>
  bool holds() const { return array_.dtype == dtype_of<T> && array_.dtype != AX_NO_DTYPE; }
  template <class T>
  const element<T> *data() const { return holds<T>() ? static_cast<const element<T> *>(array_.data) : nullptr; }
  template <class T>
  element<T> *data() { return holds<T>() ? static_cast<element<T> *>(array_.data) : nullptr; }
  const void *raw() const { return array_.data; }
  void *raw() { return array_.data; }
  /* A copy of the elements; empty when they are of another type. */
  template <class T>
  std::vector<element<T>> elements() const {
    return holds<T>() && size() > 0 ? std::vector<element<T>>(data<T>(), data<T>() + size()) : std::vector<element<T>>();
  }
};

/* --- Files; see axle/npy.h --- */

inline may<host_array> npy_read(const std::string &path, location at = location::here()) {
  ax_host_array made{};
  ax_status status = ax_npy_read(path.c_str(), &made);
  return detail::give(status, host_array(made), at, "npy_read");
}
inline may<void> npy_write(const std::string &path, const host_view &array, location at = location::here()) {
  return detail::give(ax_npy_write(path.c_str(), &array.get()), at, "npy_write");
}
inline may<host_array> csv_read(const std::string &path, location at = location::here()) {
  ax_host_array made{};
  ax_status status = ax_csv_read(path.c_str(), &made);
  return detail::give(status, host_array(made), at, "csv_read");
}

/* The arrays of one .npz file. Views of them live as long as this does. */
class npz : public unique<ax_npz, ax_npz_release> {
 public:
  using unique::unique;
  static may<npz> read(const std::string &path, location at = location::here()) {
    ax_npz *made;
    ax_status status = ax_npz_read(path.c_str(), &made);
    return detail::give(status, npz(made), at, "npz_read");
  }
  std::uint32_t count() const { return ax_npz_count(get()); }
  std::string name(std::uint32_t index) const { return index < count() ? ax_npz_name(get(), index) : ""; }
  /* Borrowed; without a dtype where there is none such. */
  host_view array(std::uint32_t index) const { return index < count() ? host_view(*ax_npz_array(get(), index)) : host_view(); }
  host_view find(const std::string &name) const {
    const ax_host_array *found = get() != nullptr ? ax_npz_find(get(), name.c_str()) : nullptr;
    return found != nullptr ? host_view(*found) : host_view();
  }
};
/* npz_write("w.npz", {{"w1", w1}, {"w2", w2}}) */
inline may<void> npz_write(const std::string &path, const list<std::pair<std::string, host_view>> &named, location at = location::here()) {
  std::vector<const char *> names;
  std::vector<ax_host_array> arrays;
  for (const auto &entry : named) {
    names.push_back(entry.first.c_str());
    arrays.push_back(entry.second.get());
  }
  return detail::give(ax_npz_write(path.c_str(), named.count(), names.data(), named.count(), arrays.data()), at, "npz_write");
}

}  // namespace AXLE_ERRORS_
}  // namespace axle

#endif
