#include "scheduler/members/readers.h"

#include "absl/strings/str_cat.h"

namespace leeway::scheduler {

absl::StatusOr<Node*> Readers::Admit(const van::Identity& identity) {
  if (identity.incarnation == 0) return absl::InvalidArgumentError("its incarnation is 0");
  if (readers_.size() >= kReadersMax) {
    return absl::ResourceExhaustedError(
        absl::StrCat("there are ", kReadersMax,
                     " readers (LEEWAY_READ_ONLY) already, and there cannot be more at a time"));
  }
  const std::uint32_t id = FreeId(identity);
  Node& node = readers_[id];
  node.id = id;
  node.role = Role::kReader;
  node.rank = id - kFirstReaderNode;  // for people: it has none
  node.incarnation = identity.incarnation;
  ids_[node.incarnation] = id;
  return &node;
}

// A random one, so that readers that come back to a restarted scheduler find theirs free.
std::uint32_t Readers::FreeId(const van::Identity& identity) const {
  const bool had_one = identity.node >= kFirstReaderNode;
  std::uint32_t id =
      had_one
          ? identity.node
          : kFirstReaderNode | static_cast<std::uint32_t>(identity.incarnation % kFirstReaderNode);
  while (readers_.contains(id)) id = kFirstReaderNode | (id + 1);
  return id;
}

void Readers::Forget(std::uint32_t id) {
  const auto found = readers_.find(id);
  if (found == readers_.end()) return;
  ids_.erase(found->second.incarnation);
  readers_.erase(found);
}

Node* Readers::FindIncarnation(std::uint64_t incarnation) {
  const auto id = ids_.find(incarnation);
  return id == ids_.end() ? nullptr : Find(id->second);
}

Node* Readers::Find(std::uint32_t id) {
  const auto found = readers_.find(id);
  return found == readers_.end() ? nullptr : &found->second;
}

std::vector<Node*> Readers::All() {
  std::vector<Node*> all;
  all.reserve(readers_.size());
  for (auto& [id, node] : readers_) all.push_back(&node);
  return all;
}

}  // namespace leeway::scheduler
