/* Simulated time. See axle/axle.hpp and axle/simulate.h. */
#ifndef AXLE_CXX_SIMULATE_HPP
#define AXLE_CXX_SIMULATE_HPP

#include <memory>

#include "axle/cxx/exec.hpp"
#include "axle/simulate.h"

namespace axle {
inline namespace AXLE_ERRORS_ {

/* A machine that is described. */
class cluster {
 public:
  cluster() = default;
  explicit cluster(ax_cluster *consumed) : held_(consumed, ax_cluster_release) {}
  static may<cluster> parse(const std::string &text, const std::string &source = "(machine)", location at = location::here()) {
    ax_cluster *made = nullptr;
    ax_status status = ax_cluster_parse(text.c_str(), source.c_str(), &made);
    return detail::give(status, cluster(made), at, "cluster_parse");
  }
  static may<cluster> read(const std::string &name_or_path, location at = location::here()) {
    ax_cluster *made = nullptr;
    ax_status status = ax_cluster_read(name_or_path.c_str(), &made);
    return detail::give(status, cluster(made), at, "cluster_read");
  }
  /* The machines that are there without a file: a name and its text each. */
  static std::vector<std::pair<std::string, std::string>> builtin() {
    std::vector<std::pair<std::string, std::string>> made;
    const char *text = nullptr;
    for (std::uint32_t i = 0; const char *name = ax_cluster_builtin(i, &text); i++) made.emplace_back(name, text);
    return made;
  }
  const ax_cluster *get() const { return held_.get(); }
  std::string name() const { return held_ ? ax_cluster_name(get()) : ""; }
  std::string text() const { return held_ ? ax_cluster_text(get()) : ""; }

 private:
  std::shared_ptr<ax_cluster> held_;
};

/* What came of it: `->` has the fields of ax_simulation. */
class simulation {
 public:
  simulation() : held_(std::make_shared<holder>()) {}
  static may<simulation> of(const lowered &given, const cluster &machine, const ax_simulate_options &options = {}, location at = location::here()) {
    simulation made;
    ax_status status = ax_simulate(given.get(), machine.get(), &options, &made.held_->raw);
    return detail::give(status, std::move(made), at, "simulate");
  }
  const ax_simulation *get() const { return &held_->raw; }
  const ax_simulation *operator->() const { return get(); }
  may<std::string> print(ax_simulation_form form = AX_SIMULATION_TEXT, location at = location::here()) const {
    char *text = nullptr;
    ax_status status = ax_simulation_print(get(), form, &text);
    return detail::give(status, detail::taken(text), at, "simulation_print");
  }

 private:
  struct holder {
    ax_simulation raw{};
    holder() = default;
    holder(const holder &) = delete;
    holder &operator=(const holder &) = delete;
    ~holder() { ax_simulation_release(&raw); }
  };
  std::shared_ptr<holder> held_;
};

}  // namespace AXLE_ERRORS_
}  // namespace axle

#endif
