// The numbers of nodes and groups, as ps-lite has them.
#ifndef LEEWAY_COMPAT_CORE_NODES_H_
#define LEEWAY_COMPAT_CORE_NODES_H_

#include <cstdint>
#include <vector>

namespace leeway::compat {

inline constexpr int kSchedulerNode = 1;
inline constexpr int kServers = 2, kWorkers = 4;  // groups, with kSchedulerNode as the third
inline constexpr int kEveryNode = kSchedulerNode + kServers + kWorkers;

constexpr int ServerNode(std::uint32_t rank) { return static_cast<int>(2 * rank + 8); }
constexpr int WorkerNode(std::uint32_t rank) { return static_cast<int>(2 * rank + 9); }
constexpr bool IsServerNode(int node) { return node >= 8 && node % 2 == 0; }
constexpr std::uint32_t RankOf(int node) { return static_cast<std::uint32_t>((node - 8) / 2); }

// Empty: there is no such node or group.
inline std::vector<int> NodesOf(int node_or_group, std::uint32_t servers, std::uint32_t workers) {
  std::vector<int> nodes;
  if (node_or_group <= 0) return nodes;
  if (node_or_group > kEveryNode) {
    const std::uint32_t most = IsServerNode(node_or_group) ? servers : workers;
    if (RankOf(node_or_group) < most) nodes.push_back(node_or_group);
    return nodes;
  }
  for (std::uint32_t i = 0; (node_or_group & kWorkers) != 0 && i < workers; ++i) {
    nodes.push_back(WorkerNode(i));
  }
  for (std::uint32_t i = 0; (node_or_group & kServers) != 0 && i < servers; ++i) {
    nodes.push_back(ServerNode(i));
  }
  if ((node_or_group & kSchedulerNode) != 0) nodes.push_back(kSchedulerNode);
  return nodes;
}

}  // namespace leeway::compat

#endif  // LEEWAY_COMPAT_CORE_NODES_H_
