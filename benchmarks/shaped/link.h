// Two network namespaces and a link between them that is as fast as one likes, and no faster.
//
// The machine's own network is never touched, and all of this is gone with the processes that live
// in it. Needs root, iproute2, and a kernel with veth and the token bucket filter (sch_tbf).
#ifndef LEEWAY_BENCHMARKS_SHAPED_LINK_H_
#define LEEWAY_BENCHMARKS_SHAPED_LINK_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "harness/child.h"

namespace leeway::bench {

class ShapedLink {
 public:
  // Moves this process to one end of the link. To be called before it has threads.
  // FAILED_PRECONDITION says what is missing. `rate` as tc says it: "1gbit"; so is `burst`, what
  // may pass at once after a pause: more than one turn of the kernel's clock lets through ("256kb"
  // at 1 Gbit/s), and far less than a message that is measured.
  static absl::StatusOr<ShapedLink> Make(const std::string& rate, const std::string& burst);

  // Both ends get another rate, while they are used.
  absl::Status Reshape(const std::string& rate, const std::string& burst) const;

  // Addresses of this end and of the other one.
  static std::string here();
  static std::string there();
  // Moves the calling process, which has no threads yet, to the other end.
  absl::Status CrossOver() const;

 private:
  Child keeper_;  // whose namespace the other end is
};

}  // namespace leeway::bench

#endif  // LEEWAY_BENCHMARKS_SHAPED_LINK_H_
