/* Named trees of arrays. See axle/axle.hpp and axle/tree.h. Leaves in a trace are a std::vector of values in the treedef's order. */
#ifndef AXLE_CXX_TREE_HPP
#define AXLE_CXX_TREE_HPP

#include "axle/cxx/exec.hpp"
#include "axle/cxx/transform.hpp"

namespace axle {
inline namespace AXLE_ERRORS_ {

/* A reference to a treedef. */
class treedef : public handle<ax_treedef, ax_treedef_retain, ax_treedef_release> {
 public:
  using handle::handle;
  static may<treedef> parse(const std::string &text, location at = location::here()) {
    ax_treedef *made;
    ax_status status = ax_treedef_parse(text.c_str(), &made);
    return detail::give(status, treedef(made), at, "treedef_parse");
  }
  struct leaf {
    std::string name;
    axle::type type;
    std::string spec;
  };
  static may<treedef> create(const list<leaf> &leaves, location at = location::here()) {
    std::vector<const char *> names, specs;
    std::vector<axle::type> types;
    for (const leaf &one : leaves) {
      names.push_back(one.name.c_str());
      types.push_back(one.type);
      specs.push_back(one.spec.c_str());
    }
    ax_treedef *made;
    ax_status status = ax_treedef_create(leaves.count(), names.data(), leaves.count(), types.data(), leaves.count(), specs.data(), &made);
    return detail::give(status, treedef(made), at, "treedef_create");
  }
  /* join({{"params", params}, {"batch", batch}}) */
  static may<treedef> join(const list<std::pair<std::string, treedef>> &parts, location at = location::here()) {
    std::string prefixes;
    std::vector<ax_treedef *> defs;
    for (const auto &part : parts) {
      prefixes += (defs.empty() ? "" : ";") + part.first;
      defs.push_back(part.second.get());
    }
    ax_treedef *made;
    ax_status status = ax_treedef_join(prefixes.c_str(), parts.count(), defs.data(), &made);
    return detail::give(status, treedef(made), at, "treedef_join");
  }
  may<treedef> with_specs(const std::string &rules, location at = location::here()) const {
    ax_treedef *made;
    ax_status status = ax_treedef_with_specs(get(), rules.c_str(), &made);
    return detail::give(status, treedef(made), at, "treedef_with_specs");
  }

  std::uint32_t count() const { return ax_treedef_count(get()); }
  std::string name(std::uint32_t index) const { return index < count() ? ax_treedef_name(get(), index) : ""; }
  axle::type type(std::uint32_t index) const { return index < count() ? *ax_treedef_type(get(), index) : axle::type{}; }
  std::string spec(std::uint32_t index) const { return index < count() ? ax_treedef_spec(get(), index) : ""; }
  /* As trace takes them, and shard_map. */
  std::vector<axle::type> types() const {
    const axle::type *all = ax_treedef_types(get());
    return count() > 0 ? std::vector<axle::type>(all, all + count()) : std::vector<axle::type>();
  }
  std::string specs() const { return get() != nullptr ? ax_treedef_specs(get()) : ""; }
  std::int64_t find(const std::string &name) const { return get() != nullptr ? ax_treedef_find(get(), "%s", name.c_str()) : -1; }
  /* Good as long as the treedef lives. */
  args select(const std::string &patterns, location at = location::here()) const {
    ax_args selected = ax_treedef_select(get(), patterns.c_str());
    detail::stamp(at, "treedef_select");
    return selected;
  }
  may<std::string> text(location at = location::here()) const {
    char *text = nullptr;
    ax_status status = ax_treedef_text(get(), &text);
    return detail::give(status, detail::taken(text), at, "treedef_text");
  }
};

/* --- Leaves, in a trace --- */

namespace detail {
/* Whether the leaves are as many as a treedef's; fails the trace otherwise. */
inline bool suits(const treedef &def, const values &leaves, const char *function) {
  if (leaves.count() == def.count()) return true;
  ax_trace_fail((std::string(function) + ": there are " + std::to_string(leaves.count()) + " leaves, but the treedef has " +
                 std::to_string(def.count())).c_str());
  return false;
}
}  // namespace detail

/* As ax_leaf: leaf(def, leaves, "layers/0/w"). */
inline value leaf(const treedef &def, const values &leaves, const std::string &name, location at = location::here()) {
  bool suits = detail::suits(def, leaves, "leaf");
  return detail::lined(suits ? ax_leaf(def.get(), leaves.data(), "%s", name.c_str()) : ax_value{}, at, "leaf");
}
/* Those below a node, in order. */
inline std::vector<value> leaves(const treedef &def, const values &all, const std::string &node, location at = location::here()) {
  std::vector<value> below;
  if (detail::suits(def, all, "leaves")) (void)ax_leaves(def.get(), all.data(), node.c_str()); /* says that there is none */
  for (std::uint32_t i = 0; i < def.count() && i < all.count(); i++) {
    std::string name = def.name(i);
    if (name == node || name.compare(0, node.size() + 1, node + "/") == 0) below.push_back(value(all.data()[i]));
  }
  detail::stamp(at, "leaves");
  return below;
}
/* Each times a scalar or a number. */
inline std::vector<value> tree_scale(operand factor, const values &leaves) {
  std::vector<ax_value> out(leaves.count());
  ax_tree_scale(factor, leaves.count(), leaves.data(), leaves.count(), out.data());
  detail::stamp(factor.at(), "tree_scale");
  return detail::loaded(out.data(), out.size());
}
inline value global_norm(const values &leaves, location at = location::here()) {
  return detail::lined(ax_global_norm(leaves.count(), leaves.data()), at, "global_norm");
}
inline value tree_ravel(const values &leaves, location at = location::here()) {
  return detail::lined(ax_tree_ravel(leaves.count(), leaves.data()), at, "tree_ravel");
}
inline std::vector<value> tree_unravel(input flat, const values &like) {
  std::vector<ax_value> out(like.count());
  ax_tree_unravel(flat, like.count(), like.data(), like.count(), out.data());
  detail::stamp(flat.at(), "tree_unravel");
  return detail::loaded(out.data(), out.size());
}
/* The body is given the leaves of `in_def` as a vector, and gives a vector of those of `out_def`. */
template <class F>
std::vector<value> tree_shard_map(const mesh &mesh, const treedef &in_def, const treedef &out_def, F &&body, const values &in,
                                  location at = location::here()) {
  auto counted = returning(out_def.count(), [&](const std::vector<value> &leaves) -> std::vector<value> { return body(leaves); });
  return detail::with_function(counted, detail::open(in), at, "tree_shard_map", [&](ax_fn f, auto... lists) {
    if (detail::suits(in_def, in, "tree_shard_map")) ax_tree_shard_map(&mesh, in_def.get(), out_def.get(), f, lists...);
  });
}
/* Compiles such a body on the mesh. */
template <class F>
may<executable> tree_jit(const runtime &runtime, const mesh &mesh, const treedef &in_def, const treedef &out_def, F &&body,
                         const compile_options &options = {}, location at = location::here()) {
  auto counted = returning(out_def.count(), [&](const std::vector<value> &leaves) -> std::vector<value> { return body(leaves); });
  detail::closure<decltype(counted), detail::unknown> closure(counted, in_def.count());
  ax_compile_options raw = options.raw();
  ax_executable *made;
  ax_status status = ax_tree_jit(runtime.get(), &mesh, in_def.get(), out_def.get(), closure.fn(), &raw, &made);
  executable owned(made);
  closure.rethrow();
  return detail::give(status, std::move(owned), at, "tree_jit");
}

/* --- Optimisers: ax_optimizer and ax_schedule are plain values, which ax_adamw and the like make; see axle/optimizer.h --- */

inline may<treedef> optimizer_state(const ax_optimizer &optimizer, const treedef &params, location at = location::here()) {
  ax_treedef *made;
  ax_status status = ax_optimizer_state(&optimizer, params.get(), &made);
  return detail::give(status, treedef(made), at, "optimizer_state");
}
/* In a trace, one step: a pair of the new state and the new parameters. */
inline std::pair<std::vector<value>, std::vector<value>> optimizer_update(const ax_optimizer &optimizer, const treedef &params_def,
                                                                          const values &gradients, const values &state,
                                                                          const values &params, location at = location::here()) {
  std::vector<ax_value> new_state(state.count()), new_params(params.count());
  ax_treedef *state_def = nullptr;
  if (ax_optimizer_state(&optimizer, params_def.get(), &state_def) != AX_OK)
    ax_trace_fail(ax_message());
  else if (detail::suits(params_def, gradients, "optimizer_update") && detail::suits(params_def, params, "optimizer_update") &&
           detail::suits(treedef(ax_treedef_retain(state_def)), state, "optimizer_update"))
    ax_optimizer_update(&optimizer, params_def.get(), gradients.count(), gradients.data(), state.count(), state.data(), params.count(),
                        params.data(), state.count(), new_state.data(), params.count(), new_params.data());
  ax_treedef_release(state_def);
  detail::stamp(at, "optimizer_update");
  return {detail::loaded(new_state.data(), new_state.size()), detail::loaded(new_params.data(), new_params.size())};
}
/* Schedules that are made of lists, which they borrow: vectors that live as long. Where the lists are not of the lengths that go together,
   the trace that uses the schedule fails and says so. */
inline ax_schedule piecewise_constant_schedule(double from, const std::vector<std::int64_t> &boundaries, const std::vector<double> &scales) {
  return ax_piecewise_constant_schedule(from, static_cast<std::uint32_t>(boundaries.size()), boundaries.data(),
                                        static_cast<std::uint32_t>(scales.size()), scales.data());
}
inline ax_schedule join_schedules(const std::vector<ax_schedule> &parts, const std::vector<std::int64_t> &boundaries) {
  return ax_join_schedules(static_cast<std::uint32_t>(parts.size()), parts.data(), static_cast<std::uint32_t>(boundaries.size()), boundaries.data());
}
ax_schedule piecewise_constant_schedule(double, std::vector<std::int64_t> &&, const std::vector<double> &) = delete; /* would be gone */
ax_schedule piecewise_constant_schedule(double, const std::vector<std::int64_t> &, std::vector<double> &&) = delete;
ax_schedule join_schedules(std::vector<ax_schedule> &&, const std::vector<std::int64_t> &) = delete;
ax_schedule join_schedules(const std::vector<ax_schedule> &, std::vector<std::int64_t> &&) = delete;
inline value schedule_at(const ax_schedule &schedule, input count) {
  return detail::lined(ax_schedule_at(&schedule, count), count, "schedule_at");
}

/* A tree: it changes, and has one owner. */
class tree : public unique<ax_tree, ax_tree_release> {
 public:
  using unique::unique;
  static may<tree> create(const runtime &runtime, const mesh &mesh, const treedef &def, location at = location::here()) {
    ax_tree *made;
    ax_status status = ax_tree_create(runtime.get(), &mesh, def.get(), &made);
    return detail::give(status, tree(made), at, "tree_create");
  }
  treedef def() const {
    auto *own = const_cast<ax_treedef *>(ax_tree_def(get())); /* to be retained; nothing of it changes */
    return treedef(ax_treedef_retain(own));
  }
  may<void> init(const std::string &rules, std::uint64_t seed, location at = location::here()) {
    return detail::give(ax_tree_init(get(), rules.c_str(), seed), at, "tree_init");
  }
  may<void> put(const std::string &name, const host_view &data, location at = location::here()) {
    return detail::give(ax_tree_put_host(get(), &data.get(), "%s", name.c_str()), at, "tree_put_host");
  }
  /* From and into memory of one's own; `bytes`: how much there is. */
  may<void> put_raw(const std::string &name, const void *data, location at = location::here()) {
    return detail::give(ax_tree_put(get(), AX_NO_DTYPE, data, SIZE_MAX, "%s", name.c_str()), at, "tree_put");
  }
  may<void> read_raw(const std::string &name, void *data, std::size_t bytes, location at = location::here()) const {
    return detail::give(ax_tree_read(get(), AX_NO_DTYPE, data, bytes, "%s", name.c_str()), at, "tree_read");
  }
  may<host_array> to_host(const std::string &name, location at = location::here()) const {
    ax_host_array made{};
    ax_status status = ax_tree_to_host(get(), &made, "%s", name.c_str());
    return detail::give(status, host_array(made), at, "tree_to_host");
  }
  /* Holds nothing when there is no such leaf, or the leaf holds nothing. */
  array at(const std::string &name) const { return array(ax_array_retain(ax_tree_get(get(), "%s", name.c_str()))); }
  may<void> set(const std::string &name, const array &array, location at = location::here()) {
    return detail::give(ax_tree_set(get(), array.get(), "%s", name.c_str()), at, "tree_set");
  }
  may<void> copy_to(tree &other, location at = location::here()) const {
    return detail::give(ax_tree_copy(get(), other.get()), at, "tree_copy");
  }
  may<void> read_npz(const std::string &path, location at = location::here()) {
    return detail::give(ax_tree_read_npz(get(), path.c_str()), at, "tree_read_npz");
  }
  may<void> read_csv(const std::string &path, const std::string &parts, location at = location::here()) {
    return detail::give(ax_tree_read_csv(get(), path.c_str(), parts.c_str()), at, "tree_read_csv");
  }
  may<void> write_npz(const std::string &path, location at = location::here()) const {
    return detail::give(ax_tree_write_npz(get(), path.c_str()), at, "tree_write_npz");
  }
};

namespace detail {
inline std::vector<ax_tree *> raw(const list<tree *> &given) {
  std::vector<ax_tree *> made;
  for (const tree *one : given) made.push_back(one != nullptr ? one->get() : nullptr);
  return made;
}
}  // namespace detail

/* tree_run(step, {&params, &batch}, {&metrics, &params}) */
inline may<void> tree_run(const executable &executable, const list<tree *> &in, const list<tree *> &out, location at = location::here()) {
  ax_status status = ax_tree_run(executable.get(), in.count(), detail::raw(in).data(), out.count(), detail::raw(out).data());
  return detail::give(status, at, "tree_run");
}
inline may<void> tree_run_start(const executable &executable, const list<tree *> &in, const list<tree *> &out,
                                location at = location::here()) {
  ax_status status = ax_tree_run_start(executable.get(), in.count(), detail::raw(in).data(), out.count(), detail::raw(out).data());
  return detail::give(status, at, "tree_run_start");
}

}  // namespace AXLE_ERRORS_
}  // namespace axle

#endif
