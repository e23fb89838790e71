// The clocks of all workers, as one shard knows them from the ticks that reached it.
#ifndef LEEWAY_PS_CONSISTENCY_WORKER_CLOCKS_H_
#define LEEWAY_PS_CONSISTENCY_WORKER_CLOCKS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "proto/messages/messages.h"

namespace leeway::ps {

// Clocks are below it, so that sums of them do not overflow; a request of a later one is refused.
inline constexpr std::uint64_t kClockMax = std::uint64_t{1} << 62;

// The clock of a worker is the number of iterations it has ended: a worker at clock c is in
// iteration c, and iteration c has closed once every living worker's clock is above c.
class WorkerClocks {
 public:
  struct WorkerClock {
    std::uint32_t rank = 0;
    std::uint64_t clock = 0;
    friend bool operator==(const WorkerClock&, const WorkerClock&) = default;
  };

  // `since` of a worker that came late and has not entered yet.
  static constexpr std::uint64_t kNotEntered = kClockMax;

  // A worker as the cluster map shows it. A new incarnation of a rank starts at clock 0; the same
  // one keeps its clock, through death and return. One that is `late` does not count, and nobody
  // waits for it, before it has entered.
  void Set(std::uint32_t rank, std::uint64_t incarnation, proto::WorkerState state,
           bool late = false);

  // From now on the worker counts: for the iterations from `since` on, being at `clock`. Of one
  // that counts already the larger of each holds. Nothing for an unknown incarnation.
  void Enter(std::uint32_t rank, std::uint64_t incarnation, std::uint64_t clock,
             std::uint64_t since);

  // The worker has ended its iterations up to `clock`. False where that is no news, or where no
  // such worker is living.
  bool Advance(std::uint32_t rank, std::uint64_t incarnation, std::uint64_t clock);

  // Forgets which iterations from `clock` on workers have ended, but not the ones they began at.
  void ForgetFrom(std::uint64_t clock);

  // Living workers that count.
  std::uint32_t living() const { return living_; }
  // The smallest clock of one of them; with none, what it was last.
  std::uint64_t slowest() const { return slowest_; }
  // The largest; with none, 0.
  std::uint64_t fastest() const { return living_at_.empty() ? 0 : living_at_.rbegin()->first; }

  // The clock that `count` living workers have reached, or all where there are fewer: by their
  // ticks, or as their pushes say (RunsAhead). Takes time in proportion to the number of workers.
  std::uint64_t ReachedBy(std::uint32_t count) const;
  // The next request of that worker, all before which have been admitted, is of iteration `clock`:
  // of pushes that are applied as they come it has ended the iterations before. True if that is
  // news.
  bool RunsAhead(std::uint32_t rank, std::uint64_t incarnation, std::uint64_t clock);
  // The last such iteration; 0: none.
  std::uint64_t WaitingAt(std::uint32_t rank, std::uint64_t incarnation) const;
  // The smallest clock of so many other living workers, drawn anew for each rank and clock; all of
  // them where there are no more, and the worker's own where there is no other. Takes time in
  // proportion to the number of workers.
  std::uint64_t SlowestOfSample(std::uint32_t rank, std::uint64_t clock, std::uint32_t size) const;

  // 0 for a rank that is not known.
  std::uint64_t ClockOf(std::uint32_t rank) const;
  // The first iteration it takes part in.
  std::uint64_t SinceOf(std::uint32_t rank) const;
  bool IsAlive(std::uint32_t rank) const;
  std::optional<std::uint64_t> IncarnationOf(std::uint32_t rank) const;
  // Whether that worker was given up as dead: the map says so, or shows another process under its
  // rank, which is given again at once only where the one before is dead.
  bool IsDead(std::uint32_t rank, std::uint64_t incarnation) const;
  // Whether the map says that that worker has left.
  bool HasLeft(std::uint32_t rank, std::uint64_t incarnation) const;
  // The number of workers, living or not, that took part in iteration `clock` and have ended it;
  // each incarnation of a rank counts.
  std::uint32_t CountEnded(std::uint64_t clock) const;
  // Each of those that have ended an iteration from `clock` on.
  struct Ended {
    std::uint32_t rank = 0;
    std::uint64_t incarnation = 0;
    std::uint64_t clock = 0;
    std::uint64_t since = 0;
  };
  std::vector<Ended> EndedFrom(std::uint64_t clock) const;
  // One of them, at another replica. It may have left, or have been replaced on its rank.
  void NoteEnded(const Ended& ended);
  // Whether that worker is among them.
  bool HasEnded(std::uint32_t rank, std::uint64_t incarnation, std::uint64_t clock) const;
  // Nobody asks for iterations below `clock` any more.
  void ForgetEndedBelow(std::uint64_t clock);

  // Living workers that have not reached `clock`, slowest first, then by rank.
  std::vector<WorkerClock> Behind(std::uint64_t clock) const;
  // "worker 3 is at clock 41, worker 5 at clock 42 and 7 more"; empty when nobody is behind.
  std::string DescribeBehind(std::uint64_t clock) const;

  // Every living worker that counts, by rank.
  std::vector<WorkerClock> Living() const;

 private:
  struct Worker {
    std::uint64_t incarnation = 0;
    std::uint64_t clock = 0;
    std::uint64_t since = 0;
    std::uint64_t ahead = 0;  // RunsAhead
    proto::WorkerState state = proto::WorkerState::kDead;

    bool counts() const { return state == proto::WorkerState::kAlive && since != kNotEntered; }
    bool has_ended(std::uint64_t iteration) const {
      return clock > iteration && since <= iteration;
    }
  };
  // An earlier incarnation of a rank, with iterations that may not have closed yet.
  struct Replaced {
    std::uint32_t rank = 0;
    Worker worker;
  };

  void Count(std::uint64_t clock);
  void Uncount(std::uint64_t clock);
  void UpdateSlowest();

  std::map<std::uint32_t, Worker> workers_;  // by rank
  std::vector<Replaced> replaced_;
  std::map<std::uint64_t, std::uint32_t> living_at_;  // clock → living workers at it
  std::uint32_t living_ = 0;
  std::uint64_t slowest_ = 0;
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_CONSISTENCY_WORKER_CLOCKS_H_
