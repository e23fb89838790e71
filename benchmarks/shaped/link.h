// A ShapedLink is two network namespaces and a link of a chosen speed between them.
//
// It does not touch the machine's own network, and ends with the processes that live in it. Needs
// root, iproute2, and a kernel with veth and the token bucket filter (sch_tbf).
#ifndef LEEWAY_BENCHMARKS_SHAPED_LINK_H_
#define LEEWAY_BENCHMARKS_SHAPED_LINK_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "harness/child.h"

namespace leeway::bench {

class ShapedLink {
 public:
  // Moves this process to one end of the link. Call it before the process has threads.
  // FAILED_PRECONDITION names what is missing. `rate` is as for tc: "1gbit". So is `burst`, the
  // bytes that may pass at once after a pause: more than pass in one tick of the kernel's clock
  // ("256kb" at 1 Gbit/s), and far less than a measured message.
  static absl::StatusOr<ShapedLink> Make(const std::string& rate, const std::string& burst);

  // Gives both ends another rate, while they are used.
  absl::Status Reshape(const std::string& rate, const std::string& burst) const;

  // Addresses of this end and of the other one.
  static std::string here();
  static std::string there();
  // Moves the calling process, which has no threads yet, to the other end.
  absl::Status CrossOver() const;

 private:
  Child keeper_;  // lives in the other end's namespace
};

}  // namespace leeway::bench

#endif  // LEEWAY_BENCHMARKS_SHAPED_LINK_H_
