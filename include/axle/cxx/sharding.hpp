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
    made.devices = devices.size() > 0 ? devices.data() : nullptr;
    made.device_count = devices.count();
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

  axle::mesh mesh() const { return get() != nullptr ? axle::mesh(*ax_sharding_get_mesh(get())) : axle::mesh(); }
  ax_spec spec() const { return get() != nullptr ? *ax_sharding_get_spec(get()) : ax_spec{}; }
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

}  // namespace AXLE_ERRORS_
}  // namespace axle

#endif
