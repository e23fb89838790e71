// A ShapedNetwork gives the processes of a real run cards of chosen speed: each lives in a network
// namespace of its own, with a link to a bridge.
//
// The machine's own network is not touched: namespaces and bridge belong to the process that made
// them and to those that it starts, and end with the last of these. Needs root, iproute2, and a
// kernel with veth, bridges and the token bucket filter (sch_tbf).
#ifndef LEEWAY_BENCHMARKS_LAB_ENGINE_SHAPED_NETWORK_H_
#define LEEWAY_BENCHMARKS_LAB_ENGINE_SHAPED_NETWORK_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace leeway::lab {

struct NodeLink {
  double up_mbit = 0, down_mbit = 0;  // 0: unlimited
};

class ShapedNetwork {
 public:
  static constexpr std::size_t kNodesMax = 60'000;

  // Moves this process, which has no threads yet, into namespaces of its own, with one more for
  // each node. FAILED_PRECONDITION says what is missing.
  static absl::Status Make(const std::vector<NodeLink>& nodes);
  // Whether Make would succeed, tried in a process that ends again.
  static absl::Status Check();

  // The command prefix that runs a program at that node, and the node's address.
  static std::vector<std::string> Inside(std::size_t node);
  static std::string AddressOf(std::size_t node);
};

}  // namespace leeway::lab

#endif  // LEEWAY_BENCHMARKS_LAB_ENGINE_SHAPED_NETWORK_H_
