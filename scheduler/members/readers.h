// The table of readers (Config::read_only): clients that only pull.
//
// They are no members: they have no rank, are in no map, take part in no barrier and no clock, are
// not in the durable state, and nothing waits for them. The scheduler knows those that are
// connected, so that they get new maps. One that it has forgotten joins again. Lives on the
// scheduler's loop.
#ifndef LEEWAY_SCHEDULER_MEMBERS_READERS_H_
#define LEEWAY_SCHEDULER_MEMBERS_READERS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/statusor.h"
#include "scheduler/members/membership_table.h"
#include "van/van.h"

namespace leeway::scheduler {

inline constexpr std::size_t kReadersMax = 4096;  // at a time
// Their node ids are far from those of members, which count up from 2.
inline constexpr std::uint32_t kFirstReaderNode = 1u << 31;

class Readers {
 public:
  // Takes in a reader that is not known. A reader that joins again after it was forgotten keeps its
  // node id. RESOURCE_EXHAUSTED: there are kReadersMax.
  absl::StatusOr<Node*> Admit(const van::Identity& identity);
  // It has left, its connections are gone, or it was not heard for long.
  void Forget(std::uint32_t id);

  // Null where there is none. Pointers hold until it is forgotten.
  Node* FindIncarnation(std::uint64_t incarnation);
  Node* Find(std::uint32_t id);
  std::vector<Node*> All();  // by id
  std::size_t size() const { return readers_.size(); }

 private:
  std::uint32_t FreeId(const van::Identity& identity) const;

  std::map<std::uint32_t, Node> readers_;       // by id
  std::map<std::uint64_t, std::uint32_t> ids_;  // by incarnation
};

}  // namespace leeway::scheduler

#endif  // LEEWAY_SCHEDULER_MEMBERS_READERS_H_
