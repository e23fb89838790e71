// Delay compensation of stale gradients (DC-ASGD: Zheng et al., "Asynchronous Stochastic Gradient
// Descent with Delay Compensation", ICML 2017, algorithm 2), of one shard.
//
// A gradient g that a worker computed from the values w_bak, which it had pulled, is applied to the
// values w of now as g + λ·g⊙g⊙(w − w_bak). λ is constant, or adaptive: λ₀ / √(v + 10⁻⁷), where v
// is a mean of g⊙g that decays by m (section 5).
//
// Used by the head alone, on the data thread's loop: the log has the compensated gradients. What
// workers have pulled is kept as the blocks themselves, so that it takes memory only for blocks
// that have been updated since; of these and of v, 8 bytes for each element, the newest are kept
// within kPulledBlocksBytesMax. A new head has none: gradients of before are applied as they are,
// until their workers pull.
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

  struct Compensated {
    runtime::Buffer gradient;
    std::vector<double> squares;  // v with this gradient; empty where λ is constant
  };

  // The worker has been sent that block; as it decodes it.
  void NotePulled(std::uint32_t worker, std::uint32_t table, std::uint64_t block,
                  runtime::Buffer values);
  // The gradient of that worker, of float32 or float64, compensated for what has changed in `now`
  // since the worker pulled the block. nullopt: it is not known what it pulled, or there is no room
  // for v.
  std::optional<Compensated> Compensate(std::uint32_t worker, std::uint32_t table,
                                        std::uint64_t block, const Consistency& consistency,
                                        DType dtype, const runtime::Buffer& gradient,
                                        const runtime::Buffer& now);
  // It has been applied.
  void NoteApplied(std::uint32_t table, std::uint64_t block, Compensated compensated);
  void DropWorker(std::uint32_t worker);
  // Another replica leads.
  void Clear();

 private:
  static constexpr std::uint64_t kSquares = std::uint64_t{1} << 32;  // above all workers

  using Key = std::tuple<std::uint64_t, std::uint32_t, std::uint64_t>;  // worker, table, block
  struct Kept {
    runtime::Buffer values = {};
    std::vector<double> squares = {};  // of kSquares
    std::uint64_t number = 0;
    std::uint64_t bytes() const { return values.size() + squares.size() * sizeof(double); }
  };
  Kept* Keep(const Key& key, Kept kept);
  void Touch(const Key& key, Kept* kept);
  void Drop(std::map<Key, Kept>::iterator kept);
  void MakeRoom(std::uint64_t bytes);

  runtime::ByteBudget* const budget_;
  std::map<Key, Kept> kept_;
  std::deque<std::pair<std::uint64_t, Key>> order_;  // by number; some have been replaced since
  std::uint64_t numbers_ = 0;
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_SHARD_DELAY_COMPENSATION_H_
