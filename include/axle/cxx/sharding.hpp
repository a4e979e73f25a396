/* Shardings: which device has which block. See axle/axle.hpp and axle/sharding.h. */
#ifndef AXLE_CXX_SHARDING_HPP
#define AXLE_CXX_SHARDING_HPP

#include "axle/cxx/exec.hpp"

namespace axle {
inline namespace AXLE_ERRORS_ {

/* A reference to a sharding. `devices`, wherever it is taken: the ids at the mesh's places, in order; none: 0, 1, .. */
class sharding : public handle<ax_sharding, ax_sharding_retain, ax_sharding_release> {
  static ax_sharding_options options(const list<std::int64_t> &devices) {
    ax_sharding_options made{};
    made.devices = {devices.count(), devices.data()};
    return made;
  }
  static may<std::string> give_text(ax_status status, char *text, location at, const char *function) {
    return detail::give(status, detail::taken(text), at, function);
  }

 public:
  using handle::handle;
  static may<sharding> named(const axle::mesh &mesh, const std::string &spec, const list<std::int64_t> &devices = {}, location at = location::here()) {
    ax_sharding *made;
    const ax_sharding_options raw = options(devices);
    ax_status status = ax_sharding_named(&mesh, spec.c_str(), &raw, &made);
    return detail::give(status, sharding(made), at, "sharding_named");
  }
  static may<sharding> single(std::int64_t device, location at = location::here()) {
    ax_sharding *made;
    ax_status status = ax_sharding_single(device, &made);
    return detail::give(status, sharding(made), at, "sharding_single");
  }
  /* On devices 0 and on, so many. */
  static may<sharding> replicated(std::uint32_t count, location at = location::here()) {
    ax_sharding *made;
    ax_sharding_options raw{};
    raw.device_count = count;
    ax_status status = ax_sharding_replicated(&raw, &made);
    return detail::give(status, sharding(made), at, "sharding_replicated");
  }
  static may<sharding> replicated(const list<std::int64_t> &devices, location at = location::here()) {
    ax_sharding *made;
    const ax_sharding_options raw = options(devices);
    ax_status status = ax_sharding_replicated(&raw, &made);
    return detail::give(status, sharding(made), at, "sharding_replicated");
  }
  static may<sharding> tiled(const std::string &text, const list<std::int64_t> &devices = {}, location at = location::here()) {
    ax_sharding *made;
    const ax_sharding_options raw = options(devices);
    ax_status status = ax_sharding_tiled(text.c_str(), &raw, &made);
    return detail::give(status, sharding(made), at, "sharding_tiled");
  }
  static may<sharding> pmap(const pmap_sharding &of, const list<std::int64_t> &devices = {}, location at = location::here()) {
    ax_sharding *made;
    const ax_sharding_options raw = options(devices);
    ax_status status = ax_sharding_pmap(&of, &raw, &made);
    return detail::give(status, sharding(made), at, "sharding_pmap");
  }

  axle::mesh mesh() const { return get() != nullptr ? axle::mesh(*ax_sharding_mesh(get())) : axle::mesh(); }
  ax_spec spec() const { return get() != nullptr ? *ax_sharding_spec(get()) : ax_spec{}; }
  std::int64_t device_count() const { return ax_sharding_device_count(get()); }
  std::int64_t device(std::int64_t place) const { return ax_sharding_device(get(), place); } /* -1: no such place */
  std::int64_t place(std::int64_t device) const { return ax_sharding_place(get(), device); } /* -1: none of its devices */
  std::int64_t block_count() const { return ax_sharding_block_count(get()); }
  bool is_replicated() const { return ax_sharding_is_replicated(get()); }
  /* The same devices have the same blocks. */
  bool equals(const sharding &other) const { return ax_sharding_equal(get(), other.get()); }

  may<axle::type> block(const axle::type &whole, location at = location::here()) const {
    axle::type made{};
    ax_status status = ax_sharding_block(get(), &whole, &made);
    return detail::give(status, std::move(made), at, "sharding_block");
  }
  may<std::vector<std::int64_t>> start(const axle::type &whole, std::int64_t device, location at = location::here()) const {
    std::int64_t start[AX_MAX_RANK] = {};
    ax_status status = ax_sharding_start(get(), &whole, device, start);
    return detail::give(status, std::vector<std::int64_t>(start, start + (status == AX_OK ? whole.rank : 0)), at, "sharding_start");
  }
  /* Where each device's block begins, in the order of the places. */
  may<std::vector<std::vector<std::int64_t>>> starts(const axle::type &whole, location at = location::here()) const {
    std::vector<std::int64_t> flat(static_cast<std::size_t>(device_count()) * AX_MAX_RANK + 1);
    ax_status status = ax_sharding_starts(get(), &whole, flat.data());
    std::vector<std::vector<std::int64_t>> made;
    for (std::int64_t p = 0; status == AX_OK && p < device_count(); p++)
      made.emplace_back(flat.begin() + p * whole.rank, flat.begin() + (p + 1) * whole.rank);
    return detail::give(status, std::move(made), at, "sharding_starts");
  }
  /* A mesh whose places are the devices' ids, and a spec over it. */
  struct ordered {
    axle::mesh mesh;
    ax_spec spec{};
  };
  may<ordered> in_order(location at = location::here()) const {
    ax_mesh mesh{};
    ordered made;
    ax_status status = ax_sharding_in_order(get(), &mesh, &made.spec);
    made.mesh = axle::mesh(mesh);
    return detail::give(status, std::move(made), at, "sharding_in_order");
  }
  may<std::string> text(location at = location::here()) const {
    char *text = nullptr;
    ax_status status = ax_sharding_print(get(), &text);
    return give_text(status, text, at, "sharding_print");
  }
  may<std::string> tiles(std::uint32_t rank, location at = location::here()) const {
    char *text = nullptr;
    ax_status status = ax_sharding_tiles(get(), rank, &text);
    return give_text(status, text, at, "sharding_tiles");
  }
  may<std::string> picture(const axle::type &whole, location at = location::here()) const {
    char *text = nullptr;
    ax_status status = ax_sharding_picture(get(), &whole, &text);
    return give_text(status, text, at, "sharding_picture");
  }
};

namespace detail {
inline std::vector<const ax_sharding *> raw_shardings(const list<sharding> &given) {
  std::vector<const ax_sharding *> made;
  for (const sharding &one : given) made.push_back(one.get());
  return made;
}
}  // namespace detail

/* --- Arrays: put(runtime, sharding, view(x, {8, 4})), put(array, sharding) and what else axle/sharding.h has --- */

inline may<array> put(const runtime &runtime, const sharding &sharding, const host_view &data, location at = location::here()) {
  ax_array *made;
  ax_status status = ax_device_put_as(runtime.get(), sharding.get(), &data.get(), &made);
  return detail::give(status, array(made), at, "device_put_as");
}
inline may<array> put(const array &from, const sharding &sharding, location at = location::here()) {
  ax_array *made;
  ax_status status = ax_array_reshard(from.get(), sharding.get(), &made);
  return detail::give(status, array(made), at, "array_reshard");
}
/* Several at once: all or none. */
inline may<std::vector<array>> put_many(const runtime &runtime, const list<sharding> &shardings, const list<host_view> &data,
                                        location at = location::here()) {
  std::vector<ax_array *> out(shardings.size());
  std::vector<ax_host_array> raw(data.begin(), data.end());
  ax_status status = ax_device_put_many(runtime.get(), shardings.count(), detail::raw_shardings(shardings).data(), data.count(), raw.data(),
                                        shardings.count(), out.data());
  return detail::give(status, detail::owned<array>(out), at, "device_put_many");
}
inline may<std::vector<array>> put_many(const list<array> &from, const list<sharding> &shardings, location at = location::here()) {
  std::vector<ax_array *> out(from.size());
  ax_status status = ax_array_reshard_many(from.count(), detail::raw(from).data(), shardings.count(), detail::raw_shardings(shardings).data(),
                                           from.count(), out.data());
  return detail::give(status, detail::owned<array>(out), at, "array_reshard_many");
}
/* In memory of its own. */
inline may<array> copy_to(const array &from, const sharding &sharding, location at = location::here()) {
  ax_array *made;
  ax_status status = ax_array_copy_to(from.get(), sharding.get(), &made);
  return detail::give(status, array(made), at, "array_copy_to");
}
/* Of a part, or an array, for each device, in the order of the sharding's places. */
inline may<array> from_device_parts(const runtime &runtime, const sharding &sharding, const type &whole, const list<ax_part> &parts,
                                    location at = location::here()) {
  ax_array *made;
  ax_status status = ax_array_from_device_parts(runtime.get(), sharding.get(), &whole, parts.count(), parts.data(), &made);
  return detail::give(status, array(made), at, "array_from_device_parts");
}
inline may<array> from_device_arrays(const runtime &runtime, const sharding &sharding, const type &whole, const list<array> &arrays,
                                     location at = location::here()) {
  ax_array *made;
  ax_status status = ax_array_from_device_arrays(runtime.get(), sharding.get(), &whole, arrays.count(), detail::raw(arrays).data(), &made);
  return detail::give(status, array(made), at, "array_from_device_arrays");
}
/* What one device has, as an array of that device alone. */
inline may<array> on_device(const array &from, std::int64_t device, location at = location::here()) {
  ax_array *made;
  ax_status status = ax_array_on_device(from.get(), device, &made);
  return detail::give(status, array(made), at, "array_on_device");
}
/* A box of the array: sizes[d] elements from start[d] on. */
template <class T>
may<std::vector<element<T>>> read_slice(const array &from, const list<std::int64_t> &start, const list<std::int64_t> &sizes,
                                        location at = location::here()) {
  using result = std::vector<element<T>>;
  const type own = from.type();
  if (own.dtype != dtype_of<T> || start.size() != own.rank || sizes.size() != own.rank)
    return detail::refuse<result>(detail::wrong(at, "array_read_slice", std::string("the array is of ") + ax_dtype_name(own.dtype) + ", of rank " +
                                                                            std::to_string(own.rank)));
  std::size_t count = 1;
  for (std::int64_t size : sizes) count *= size > 0 ? static_cast<std::size_t>(size) : 0;
  std::int64_t most = ax_type_elems(&own);
  result data(count <= static_cast<std::size_t>(most) ? count : 0);
  ax_status status = ax_array_read_slice(from.get(), own.rank, start.data(), own.rank, sizes.data(), dtype_of<T>, data.data(), data.size() * sizeof(T));
  return detail::give(status, std::move(data), at, "array_read_slice");
}
inline may<sharding> sharding_of(const array &of, location at = location::here()) {
  ax_sharding *made;
  ax_status status = ax_array_sharding(of.get(), &made);
  return detail::give(status, sharding(made), at, "array_sharding");
}
/* Its blocks lie on the devices that the sharding says. */
inline bool lies(const array &of, const sharding &sharding) { return ax_array_is_laid_as(of.get(), sharding.get()); }

/* --- Devices --- */

using device = ax_device;
inline std::int64_t device_count(const runtime &runtime) { return ax_runtime_device_count(runtime.get()); }
inline may<device> device_of(const runtime &runtime, std::int64_t id, location at = location::here()) {
  device made{};
  ax_status status = ax_runtime_device(runtime.get(), id, &made);
  return detail::give(status, std::move(made), at, "runtime_device");
}

}  // namespace AXLE_ERRORS_
}  // namespace axle

#endif
