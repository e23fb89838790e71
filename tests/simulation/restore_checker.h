// A RestoreChecker checks "restore(checkpoint) + resent pushes = the live run": a shard that begins
// with a checkpoint and gets every push that its workers ever sent to it, also those that are in
// the checkpoint, has each once. And before that, where a codec was changed before the checkpoint,
// and servers heard of that before they had written it, its workers hold nothing: the next
// difference to what they hold begins with the values.
#ifndef LEEWAY_TESTS_SIMULATION_RESTORE_CHECKER_H_
#define LEEWAY_TESTS_SIMULATION_RESTORE_CHECKER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "checkpoint/manifest.h"
#include "ps/checkpoint/shard_file.h"
#include "ps/table/inbound.h"
#include "tests/simulation/history.h"
#include "tests/simulation/restored_shard.h"
#include "tests/simulation/sent_pushes.h"
#include "tests/simulation/sim_table.h"

namespace leeway::simulation {

class RestoreChecker {
 public:
  // Whether servers may have known before that time that the codec of a table was changed at that
  // clock or before.
  using SwitchedBy =
      std::function<bool(std::uint32_t table, std::uint64_t clock, absl::Time before)>;

  RestoreChecker(const std::vector<SimTable>* tables, const History* history,
                 const SentPushes* sent, SwitchedBy switched_by)
      : tables_(tables), history_(history), sent_(sent), switched_by_(std::move(switched_by)) {}

  // Takes one shard of a checkpoint, with all files that it extends (ps::ReadShard), which servers
  // had written at that time. Returns what is wrong with the result; empty: nothing.
  std::string Judge(const checkpoint::Manifest& manifest,
                    const std::vector<ps::ShardContent>& contents, absl::Time written) const;

 private:
  // The digits (sim_table.h) of a place: those that have to be 1, and those that may be.
  struct Digits {
    std::vector<std::int64_t> must, may;
  };
  using DigitsByPlace = std::map<std::pair<std::uint32_t, std::uint32_t>, Digits>;  // table, place

  std::string JudgeHeld(RestoredShard* restored, std::uint64_t clock, absl::Time written) const;
  // Sends all pushes again. Returns the digits that this has to lead to.
  DigitsByPlace SendAgain(RestoredShard* restored) const;
  // Adds the pushes that the run began with, to places of that shard.
  void AddBefore(const checkpoint::Manifest& manifest, std::uint32_t shard,
                 DigitsByPlace* wanted) const;
  std::string Compare(const SimTable& table, std::uint32_t place, const Digits& wanted,
                      const std::vector<std::int64_t>& found) const;

  const std::vector<SimTable>* const tables_;
  const History* const history_;
  const SentPushes* const sent_;
  const SwitchedBy switched_by_;
};

}  // namespace leeway::simulation

#endif  // LEEWAY_TESTS_SIMULATION_RESTORE_CHECKER_H_
