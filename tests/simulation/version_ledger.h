// A VersionLedger records every version of a block that servers of a simulated run have sent to
// workers.
//
// A version is the content of a block that all workers have once they were sent it, so it is the
// same from any server, before a failover and after it. Version v includes the first v − 1 updates
// of the block.
//
// While the table has a codec whose replies are not differences, answers are the block itself:
// either lossless and with its version, whose content may differ from that of the same version by
// lossy answers, or as it is and without a version.
#ifndef LEEWAY_TESTS_SIMULATION_VERSION_LEDGER_H_
#define LEEWAY_TESTS_SIMULATION_VERSION_LEDGER_H_

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "proto/messages/messages.h"
#include "runtime/memory/buffer.h"
#include "tests/simulation/history.h"
#include "tests/simulation/sim_table.h"

namespace leeway::simulation {

class VersionLedger {
 public:
  using Contents = std::map<std::uint64_t, std::vector<float>>;  // by version

  explicit VersionLedger(const History* history) : history_(history) {}

  // The run begins with that version of a block, as workers hold it, or of the block itself.
  void BeginWith(const SimTable& table, std::uint32_t block, std::uint64_t version,
                 std::vector<float> content) {
    contents_[{table.index, block}][version] = std::move(content);
  }
  void BeginWithItself(const SimTable& table, std::uint32_t block, std::uint64_t version,
                       std::vector<float> content) {
    itself_[{table.index, block}][version] = std::move(content);
  }
  // A pull leaves a worker.
  void OnAsked(const SimTable& table, const proto::Request& request);
  // An answer leaves a server. Returns what is wrong with it; empty: nothing.
  std::string OnAnswered(const proto::Reply& reply, std::span<const runtime::Buffer> payload);

  // The known contents of the block: its versions, and the versions of the block itself.
  const Contents& Of(const SimTable& table, std::uint32_t block) const {
    return ContentsIn(contents_, table, block);
  }
  const Contents& ItselfOf(const SimTable& table, std::uint32_t block) const {
    return ContentsIn(itself_, table, block);
  }
  // True if an answer without a version began with these values.
  bool WasToldAsItIs(const SimTable& table, std::uint32_t block,
                     std::span<const float> values) const;

 private:
  struct Asked {
    const SimTable* table = nullptr;
    std::uint32_t block = 0;
    std::set<std::uint64_t> have;  // Request::have, each time that it was sent
  };
  using BlockKey = std::pair<std::uint32_t, std::uint32_t>;  // table, block
  using ByBlock = std::map<BlockKey, Contents>;

  static const Contents& ContentsIn(const ByBlock& places, const SimTable& table,
                                    std::uint32_t block);
  // An answer that is the block itself.
  std::string TakeItself(const Asked& asked, const proto::Reply& reply,
                         const compress::TableCodec& codec, std::span<const std::byte> bytes);
  std::string TakeAsItIs(const Asked& asked, std::span<const std::byte> bytes);

  // The answer, as a worker that holds that version decodes it. `told`: all versions in it.
  std::string Follow(const Asked& asked, const proto::Reply& reply,
                     std::span<const std::byte> bytes, std::uint64_t have, Contents* told) const;
  std::string JudgeStaleness(const Asked& asked, const proto::Reply& reply,
                             std::uint64_t version) const;

  const History* const history_;
  std::map<std::tuple<std::uint32_t, std::uint64_t, std::uint32_t, std::uint64_t>, Asked>
      asked_;  // by rank, incarnation, shard and number
  ByBlock contents_, itself_;
  std::map<BlockKey, std::set<std::vector<float>>> as_they_were_;  // answers without a version
};

// The least number of updates of a block that its version must include if it includes all pushes
// for which `promised(worker, number, push)` holds.
template <class Promised>
std::uint64_t UpdatesPromised(const SimTable& table, std::uint32_t block, const History& history,
                              const Promised& promised) {
  std::uint64_t updates = history.updates_before(table, block);
  std::set<std::uint64_t> clocks;  // in BSP each is one update
  for (std::uint32_t worker = 0; worker < history.lives.size(); ++worker) {
    const std::vector<Push>& pushes = history.pushes(table, worker);
    for (std::size_t number = 0; number < pushes.size(); ++number) {
      const Push& push = pushes[number];
      if (((push.places >> block) & 1) == 0 || !promised(worker, number, push)) continue;
      updates += !table.bsp() || clocks.insert(push.clock).second ? 1 : 0;
    }
  }
  return updates;
}

}  // namespace leeway::simulation

#endif  // LEEWAY_TESTS_SIMULATION_VERSION_LEDGER_H_
