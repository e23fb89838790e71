// How far each worker is, as one shard knows it from the ticks that reached it.
#ifndef LEEWAY_PS_CONSISTENCY_PROGRESS_H_
#define LEEWAY_PS_CONSISTENCY_PROGRESS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "proto/messages.h"

namespace leeway::ps {

// The clock of a worker is the number of iterations it has ended: a worker at clock c is in
// iteration c, and iteration c has closed once every living worker's clock is above c.
class Progress {
 public:
  struct WorkerClock {
    std::uint32_t rank = 0;
    std::uint64_t clock = 0;
    friend bool operator==(const WorkerClock&, const WorkerClock&) = default;
  };

  // A worker as the cluster map shows it. A new incarnation of a rank starts at clock 0; the same
  // one keeps its clock, through death and return.
  void Set(std::uint32_t rank, std::uint64_t incarnation, proto::WorkerState state);

  // The worker has ended its iterations up to `clock`. False where that is no news, or where no
  // such worker is living.
  bool Advance(std::uint32_t rank, std::uint64_t incarnation, std::uint64_t clock);

  // Living workers.
  std::uint32_t living() const { return living_; }
  // The smallest clock of a living worker; with none living, what it was last.
  std::uint64_t slowest() const { return slowest_; }

  // 0 for a rank that is not known.
  std::uint64_t ClockOf(std::uint32_t rank) const;
  bool IsAlive(std::uint32_t rank) const;
  std::optional<std::uint64_t> IncarnationOf(std::uint32_t rank) const;
  // How many known workers, living or not, have ended iteration `clock`.
  std::uint32_t CountEnded(std::uint64_t clock) const;

  // Living workers that have not reached `clock`, slowest first, then by rank.
  std::vector<WorkerClock> Behind(std::uint64_t clock) const;
  // "worker 3 is at clock 41, worker 5 at clock 42 and 7 more"; empty when nobody is behind.
  std::string DescribeBehind(std::uint64_t clock) const;

  // Every known worker that is living, by rank.
  std::vector<WorkerClock> Living() const;

 private:
  struct Worker {
    std::uint64_t incarnation = 0;
    std::uint64_t clock = 0;
    proto::WorkerState state = proto::WorkerState::kDead;
  };

  void Count(std::uint64_t clock);
  void Uncount(std::uint64_t clock);
  void UpdateSlowest();

  std::map<std::uint32_t, Worker> workers_;           // by rank
  std::map<std::uint64_t, std::uint32_t> living_at_;  // clock → living workers at it
  std::uint32_t living_ = 0;
  std::uint64_t slowest_ = 0;
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_CONSISTENCY_PROGRESS_H_
