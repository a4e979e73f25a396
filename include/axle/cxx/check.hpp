/* The checker of kernels. See axle/axle.hpp and axle/check.h. */
#ifndef AXLE_CXX_CHECK_HPP
#define AXLE_CXX_CHECK_HPP

#include <memory>

#include "axle/check.h"
#include "axle/cxx/program.hpp"

namespace axle {
inline namespace AXLE_ERRORS_ {

/* What was found: `->` has the fields of ax_check_report. */
class check_report {
 public:
  check_report() = default;
  static may<check_report> of(const program &given, const ax_check_options &options = {}, location at = location::here()) {
    ax_check_report *made = nullptr;
    ax_status status = ax_check(given.get(), &options, &made);
    check_report report;
    report.held_.reset(made, ax_check_report_release);
    return detail::give(status, std::move(report), at, "check");
  }
  bool proved() const { return held_ && held_->verdict == AX_PROVED; }
  const ax_check_report *get() const { return held_.get(); }
  const ax_check_report *operator->() const { return get(); }

 private:
  std::shared_ptr<ax_check_report> held_;
};

}  // namespace AXLE_ERRORS_
}  // namespace axle

#endif
