/* Named trees of arrays. See axle/axle.hpp and axle/tree.h. Leaves in a trace are a std::vector of values in the treedef's order. */
#ifndef AXLE_CXX_TREE_HPP
#define AXLE_CXX_TREE_HPP

#include "axle/cxx/exec.hpp"

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
    ax_status status = ax_treedef_create(leaves.count(), names.data(), types.data(), specs.data(), &made);
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
    auto *own = const_cast<ax_treedef *>(ax_tree_get_def(get())); /* to be retained; nothing of it changes */
    return treedef(ax_treedef_retain(own));
  }
  may<void> init(const std::string &rules, std::uint64_t seed, location at = location::here()) {
    return detail::give(ax_tree_init(get(), rules.c_str(), seed), at, "tree_init");
  }
  may<void> put(const std::string &name, const host_view &data, location at = location::here()) {
    return detail::give(ax_tree_put_host(get(), &data.get(), "%s", name.c_str()), at, "tree_put_host");
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
