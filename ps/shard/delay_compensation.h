// Delay compensation of stale gradients (DC-ASGD: Zheng et al., "Asynchronous Stochastic Gradient
// Descent with Delay Compensation", ICML 2017, algorithm 2), of one shard.
//
// A gradient g that a worker computed from the values w_bak, which it had pulled, is applied to the
// values w of now as g + λ·g⊙g⊙(w − w_bak). λ is constant, or adaptive: λ₀ / √(v + 10⁻⁷), where v
// is a mean of g⊙g that decays by m (section 5).
//
// Used by the head alone, on the data thread's loop: the log has the compensated gradients. What
// workers have pulled is kept as the blocks themselves, so that it takes memory only for blocks
// that have been updated since, the newest within kPulledBlocksBytesMax. A new head has none, nor
// v: gradients of before are applied as they are, until their workers pull.
#ifndef LEEWAY_PS_SHARD_DELAY_COMPENSATION_H_
#define LEEWAY_PS_SHARD_DELAY_COMPENSATION_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "leeway/consistency.h"
#include "leeway/dtype.h"
#include "runtime/memory/buffer.h"
#include "runtime/memory/byte_budget.h"

namespace leeway::ps {

class DelayCompensation {
 public:
  // `budget`: of all shards of the thread; outlives this.
  explicit DelayCompensation(runtime::ByteBudget* budget) : budget_(budget) {}
  ~DelayCompensation() { Clear(); }
  DelayCompensation(const DelayCompensation&) = delete;
  DelayCompensation& operator=(const DelayCompensation&) = delete;

  // The worker has been sent that block.
  void NotePulled(std::uint32_t worker, std::uint32_t table, std::uint64_t block,
                  runtime::Buffer values);
  // The gradient of that worker, of float32 or float64, compensated for what has changed in `now`
  // since the worker pulled the block. nullopt: it is not known what it pulled.
  std::optional<runtime::Buffer> Compensate(std::uint32_t worker, std::uint32_t table,
                                            std::uint64_t block, const Consistency& consistency,
                                            DType dtype, const runtime::Buffer& gradient,
                                            const runtime::Buffer& now);
  void DropWorker(std::uint32_t worker);
  // Another replica leads.
  void Clear();

 private:
  using Key = std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>;  // worker, table, block
  struct Pulled {
    runtime::Buffer values;
    std::uint64_t number = 0;
  };
  void Drop(std::map<Key, Pulled>::iterator pulled);
  void MakeRoom(std::uint64_t bytes);

  runtime::ByteBudget* const budget_;
  std::map<Key, Pulled> pulled_;
  std::deque<std::pair<std::uint64_t, Key>> order_;  // by number; some have been replaced since
  std::uint64_t numbers_ = 0;
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::vector<double>>
      squares_;  // v: table, block
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_SHARD_DELAY_COMPENSATION_H_
