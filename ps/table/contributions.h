// The contributions to the open clocks of one shard (BSP): pushes that were accepted and wait for
// their clock to close. Charged to a budget that the shards of a thread share.
#ifndef LEEWAY_PS_TABLE_CONTRIBUTIONS_H_
#define LEEWAY_PS_TABLE_CONTRIBUTIONS_H_

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "ps/store/shard_store.h"
#include "runtime/memory/byte_budget.h"

namespace leeway::ps {

struct Contribution {
  std::uint32_t rank = 0;
  std::uint64_t incarnation = 0;
  std::uint64_t sequence = 0;
  std::uint64_t bytes = 0;     // what it is charged
  std::uint64_t elements = 0;  // in its values, encoded or not
  PushView push;
};

// The target of one combined update: a dense block, or the whole part of a sparse table in the
// shard.
struct Target {
  std::uint32_t table = 0;
  std::uint64_t block = 0;
  friend auto operator<=>(const Target&, const Target&) = default;
};

// By target; each in the order of (rank, incarnation, sequence), whatever order they came in.
using ClosedClock = std::map<Target, std::vector<Contribution>>;

class Contributions {
 public:
  explicit Contributions(runtime::ByteBudget* budget) : budget_(budget) {}
  ~Contributions() { budget_->bytes -= bytes_; }
  Contributions(const Contributions&) = delete;
  Contributions& operator=(const Contributions&) = delete;

  // The buffers of its push become the server's own.
  void Add(std::uint64_t clock, const Target& target, Contribution contribution);

  // The first clock that has any.
  std::optional<std::uint64_t> FirstClock() const;
  // Takes out everything of one clock.
  ClosedClock Take(std::uint64_t clock);
  void Clear();
  // Calls `visitor(clock, target, contribution)` in the order of clocks.
  template <class Visitor>
  void ForEach(const Visitor& visitor) const {
    for (const auto& [clock, targets] : clocks_) {
      for (const auto& [target, list] : targets) {
        for (const Contribution& contribution : list) visitor(clock, target, contribution);
      }
    }
  }

  // Discards the contributions of a worker that died to clocks that it had not ended: `clock` and
  // later ones.
  // Returns how many pushes that were.
  std::uint64_t Discard(std::uint32_t rank, std::uint64_t incarnation, std::uint64_t clock);

  std::uint64_t bytes() const { return bytes_; }

 private:
  void Release(const Contribution& contribution);

  runtime::ByteBudget* budget_;
  std::map<std::uint64_t, ClosedClock> clocks_;
  std::uint64_t bytes_ = 0;
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_TABLE_CONTRIBUTIONS_H_
