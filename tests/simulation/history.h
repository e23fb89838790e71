// A History records the pushes and reads of a run's workers, for the invariants. All times are of
// one clock: the virtual one of a simulation, or the monotonic one of a machine.
#ifndef LEEWAY_TESTS_SIMULATION_HISTORY_H_
#define LEEWAY_TESTS_SIMULATION_HISTORY_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "proto/messages/messages.h"
#include "tests/simulation/sim_table.h"

namespace leeway::simulation {

enum class Outcome { kUnknown, kAcknowledged, kFailed };

// One push of one worker to one table; pushes are numbered from 0 for each (table, worker).
struct Push {
  std::uint64_t clock = 0;  // its tag
  // Of the worker, counted from 1; 0: it was pushed before, and the run began with a checkpoint
  // that has it (second_life.h).
  std::uint32_t incarnation = 0;
  // Bits: the places that it changes. Places that refuse it are not among them, nor those where the
  // checkpoint that the run began with lacks it: it never shows there.
  std::uint64_t places = 0;
  absl::Time submitted;
  Outcome outcome = Outcome::kUnknown;
  absl::Time acknowledged = absl::InfiniteFuture();
  // Its requests that its worker was told are dropped (PullInfo::parts_dropped): one a block, or
  // one for all rows of a shard.
  std::uint64_t dropped = 0;
};

// One answered pull (or the pull of a push-pull).
struct Read {
  const SimTable* table = nullptr;
  std::uint32_t reader = 0;
  std::uint32_t incarnation = 0;
  std::uint64_t clock = 0;         // the reader's when it asked
  std::uint64_t effective = 0;     // docs/consistency.md
  std::uint64_t reader_clock = 0;  // the reader's when it got the answer
  absl::Time submitted, completed;
  std::size_t own_pushes = 0;         // of the reader to this table, up to this operation
  std::vector<std::uint32_t> places;  // in the order in which they were read
  std::vector<std::int64_t> counts;   // counter tables: the values
  std::vector<float> floats;          // other tables: the values
  std::vector<std::byte> values;      // counters that are floats, until it is answered
  // The values that the reader had seen of each place when it asked
  // (invariants/monotonic_reads.cc).
  std::vector<std::vector<std::int64_t>> seen_before;
  // Likewise, the version of each place (invariants/versions_read.cc).
  std::vector<std::uint64_t> versions_before;

  std::span<const std::int64_t> CountsOf(std::size_t i) const {
    return {counts.data() + OffsetOf(i), table->width};
  }
  std::span<const float> FloatsOf(std::size_t i) const {
    return {floats.data() + OffsetOf(i), table->width};
  }
  // The memory for a pull of a counter table, of `elements` elements; and the counts in it.
  void* MakeRoomForCounts(std::size_t elements) {
    counts.resize(elements);
    if (!table->converts()) return counts.data();
    values.resize(elements * SizeOf(table->spec.dtype));
    return values.data();
  }
  void TakeCounts() {
    if (table->converts()) counts = ToCounts(*table, table->spec.dtype, values);
  }

  bool complete() const { return places.size() == table->places; }

 private:
  std::size_t OffsetOf(std::size_t i) const { return i * table->stride; }
};

struct WorkerLife {
  std::uint32_t incarnation = 0;  // 0: not started
  std::uint32_t killed = 0;       // the last incarnation that was killed or given up; 0: none
  bool leaving = false;           // or has left
  std::uint64_t clock = 0;        // of the newest incarnation
  // By incarnation that was killed or given up: the clock that it had not ended.
  std::map<std::uint32_t, std::uint64_t> died_in = {};
  // The incarnations that have left in order, or are about to.
  std::set<std::uint32_t> left = {};
  // The number of each incarnation at servers.
  std::vector<std::uint64_t> known_as;

  // What a checkpoint has no death takes back.
  bool WasKilled(std::uint32_t of) const { return of > 0 && of <= killed && !left.contains(of); }
  bool DiedIn(std::uint32_t of, std::uint64_t in) const {
    const auto found = died_in.find(of);
    return found != died_in.end() && found->second == in;
  }
  // The incarnation with that number at servers; 0: none.
  std::uint32_t Incarnation(std::uint64_t known) const {
    const auto found = std::find(known_as.begin(), known_as.end(), known);
    return found == known_as.end() ? 0 : static_cast<std::uint32_t>(found - known_as.begin()) + 1;
  }
};

class History {
 public:
  History(std::size_t tables, std::size_t workers)
      : lives(workers), pushes_(tables, std::vector<std::vector<Push>>(workers)), proven_(tables) {}

  std::vector<Push>& pushes(const SimTable& table, std::uint32_t worker) {
    return pushes_[table.index][worker];
  }
  const std::vector<Push>& pushes(const SimTable& table, std::uint32_t worker) const {
    return pushes_[table.index][worker];
  }

  // The gradients that were pushed to a place of a table of floats that are not encoded, in order.
  std::vector<std::vector<float>>& gradients(const SimTable& table, std::uint32_t place) {
    return gradients_[{table.index, place}];
  }
  const std::vector<std::vector<float>>& gradients(const SimTable& table,
                                                   std::uint32_t place) const {
    static const std::vector<std::vector<float>> kNone;
    const auto found = gradients_.find({table.index, place});
    return found == gradients_.end() ? kNone : found->second;
  }

  // A place of floats, encoded or not, had so many updates when the run began. They are not among
  // the pushes.
  void BeginWith(const SimTable& table, std::uint32_t place, std::uint64_t updates) {
    updates_before_[{table.index, place}] = updates;
  }
  std::uint64_t updates_before(const SimTable& table, std::uint32_t place) const {
    const auto found = updates_before_.find({table.index, place});
    return found == updates_before_.end() ? 0 : found->second;
  }

  // The worker has read that whole table at that clock, so all data threads have counted the ticks
  // of this incarnation up to it.
  void Prove(const SimTable& table, std::uint32_t worker, std::uint64_t clock) {
    std::uint64_t& proven = proven_[table.index][{worker, lives[worker].incarnation}];
    if (clock > proven) proven = clock;
  }
  std::uint64_t proven(const SimTable& table, std::uint32_t worker,
                       std::uint32_t incarnation) const {
    const auto found = proven_[table.index].find({worker, incarnation});
    return found == proven_[table.index].end() ? 0 : found->second;
  }

  std::vector<WorkerLife> lives;  // by rank

 private:
  using PlaceOfTable = std::pair<std::uint32_t, std::uint32_t>;  // table, place

  std::vector<std::vector<std::vector<Push>>> pushes_;  // by table, worker
  std::map<PlaceOfTable, std::vector<std::vector<float>>> gradients_;
  std::map<PlaceOfTable, std::uint64_t> updates_before_;
  // By table, then worker and incarnation.
  std::vector<std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t>> proven_;
};

}  // namespace leeway::simulation

#endif  // LEEWAY_TESTS_SIMULATION_HISTORY_H_
