// The switches of tables' codecs: each takes effect for all workers at one clock.
//
// A switch is announced in the cluster map with a clock that no worker is known to have reached.
// From then on a worker that has not reached it holds back its pushes to the table of that clock
// and later. When all living workers have taken the map before reaching the clock the switch is
// decided, and the next map says so. If a worker was at the clock already, the switch is announced
// again, for a later clock. docs/compression.md, "Changing a table's codec".
//
// A worker's acknowledgement also says which is the oldest clock that it may still send anything of
// (MapAck::oldest). A decided switch stays among the entries until no worker is left in clocks that
// need it, so that a late push is never answered by a switch of another clock. With `told_max`
// decided ones of a table the next is put off until one of them is no longer needed.
//
// Knows no network. Lives on the scheduler's loop.
#ifndef LEEWAY_SCHEDULER_TABLES_CODEC_SWITCHES_H_
#define LEEWAY_SCHEDULER_TABLES_CODEC_SWITCHES_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/messages/messages.h"

namespace leeway::scheduler {

inline constexpr std::size_t kSwitchesWaitingMax = 64;  // of one table
// Clocks between the fastest worker that is known and a switch: a map may take one or two where
// links are busy. It doubles whenever a worker was there before the map.
inline constexpr std::uint64_t kMarginMin = 3;

class CodecSwitches {
 public:
  // The nodes of the living workers.
  using Workers = std::function<std::vector<std::uint32_t>()>;
  // entries() has changed: a new map is to say so, and Published to be called with its version.
  using Changed = std::function<void()>;
  // With the clock from which on the codec holds, once that is decided.
  using Done = std::function<void(const absl::StatusOr<std::uint64_t>&)>;

  // `told_max`: the most decided switches of a table in the entries, 1 at least.
  CodecSwitches(std::size_t told_max, Workers workers, Changed changed)
      : told_max_(told_max), workers_(std::move(workers)), changed_(std::move(changed)) {}

  // The table's codec number `choice` (compress::CodecTextsOf), after the switches asked for
  // before. RESOURCE_EXHAUSTED: too many wait.
  void Switch(std::uint32_t table, std::uint32_t choice, Done done);

  // No worker uses the table: it has had that choice from that clock on.
  void Set(std::uint32_t table, std::uint32_t choice, std::uint64_t clock);

  // The newest map, of that version, has the present entries().
  void Published(std::uint64_t version);
  // A worker has taken a map of that version, in that clock. `oldest`: proto::MapAck::oldest.
  void OnAck(std::uint32_t worker, std::uint64_t version, std::uint64_t clock,
             std::uint64_t oldest);
  // A worker leaves in that clock. A switch that it may not have known of, and whose clock it had
  // reached, is announced again for a later one: its pushes of that clock count.
  void OnLeave(std::uint32_t worker, std::uint64_t clock);
  // A worker is in that clock: the next switch is announced for a later one.
  void OnClock(std::uint64_t clock);
  // Some workers have joined, or gone.
  void WorkersChanged();
  // To be called often: announces the switches again that could not be decided.
  void Tick();

  // By table, then number: the decided switches that are still needed, the newest at least, and the
  // one that is announced.
  std::vector<proto::CodecSwitch> entries() const;
  // Goes on where another scheduler was. `decided` (may be null) is called once an announced switch
  // is decided.
  using Decided = std::function<void(std::uint32_t table, std::uint64_t clock)>;
  void Restore(const std::vector<proto::CodecSwitch>& entries, const Decided& decided = nullptr);
  // Grows whenever entries() changes.
  std::uint64_t changes() const { return changes_; }
  // The choice before the first switch of the table in the entries: no older one is needed.
  std::uint32_t OldestChoice(std::uint32_t table) const;

  // The codec that holds, and from which clock on.
  struct Current {
    std::uint32_t choice = 0;
    std::uint64_t since = 0;
    bool being_changed = false;
  };
  Current CurrentOf(std::uint32_t table) const;

 private:
  struct Wish {
    std::uint32_t choice = 0;
    Done done;
  };
  struct Table {
    std::deque<proto::CodecSwitch> decided;  // by number
    std::optional<proto::CodecSwitch> announced;
    std::optional<std::uint64_t> version;  // of the first map with `announced`
    std::set<std::uint32_t> agreed;        // workers that had not reached its clock
    bool again = false;                    // no decided switch can make room for it yet
    std::uint64_t margin = kMarginMin;
    std::deque<Wish> wishes;  // the first is the one that is announced
  };

  void Begin(std::uint32_t id, Table* table);
  void Announce(Table* table);
  void Hear(std::uint32_t worker, std::uint64_t clock, Table* table);
  // The oldest clock that some living worker may still send anything of.
  std::uint64_t OldestClock() const;
  bool IsFull(const Table& table) const;
  void DropUnneeded(Table* table) const;
  bool DecideIfAgreed(std::uint32_t id, Table* table);
  void NoteChange();

  const std::size_t told_max_;
  const Workers workers_;
  const Changed changed_;
  std::map<std::uint32_t, Table> tables_;
  std::map<std::uint32_t, std::uint64_t> oldest_;  // MapAck::oldest, by living worker
  std::uint64_t newest_clock_ = 0;                 // that any worker has told
  std::uint64_t changes_ = 0;
};

}  // namespace leeway::scheduler

#endif  // LEEWAY_SCHEDULER_TABLES_CODEC_SWITCHES_H_
