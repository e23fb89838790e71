// A CodedChecker checks the messages of workers and servers about the coded tables of a simulated
// run against the pushes.
#ifndef LEEWAY_TESTS_SIMULATION_CODED_CHECKER_H_
#define LEEWAY_TESTS_SIMULATION_CODED_CHECKER_H_

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "ps/shard/shard.h"
#include "tests/simulation/checker.h"
#include "tests/simulation/codec_ledger.h"
#include "tests/simulation/coded_pushes.h"
#include "tests/simulation/coded_states.h"
#include "tests/simulation/history.h"
#include "tests/simulation/saved_place.h"
#include "tests/simulation/sim_table.h"
#include "tests/simulation/table_settings_ledger.h"
#include "tests/simulation/version_ledger.h"
#include "van/sim/sim_van.h"
#include "worker/slicing/table_info.h"

namespace leeway::simulation {

class CodedChecker {
 public:
  CodedChecker(const std::vector<SimTable>* tables, const History* history, Checker* checker);

  // A worker knows the table by that id.
  void Know(std::uint32_t id, const SimTable& table) {
    pushes_.Know(id, table);
    if (table.coded) codecs_.Know(id, table);
  }
  // The run begins with that place of a coded table.
  void BeginWith(const SimTable& table, std::uint32_t place, const SavedPlace& saved);
  // A message leaves a host at that time (SimNetwork::Tap).
  void Hear(const van::Overheard& heard, absl::Time now);
  void OnPush(const SimTable& table, std::uint32_t rank, std::uint32_t place,
              std::span<const float> gradient, double rate) {
    pushes_.OnPush(table, rank, place, gradient, rate);
  }
  // A living worker has read everything, and no worker pushes any more.
  void OnLastRead(const Read& read);

  // At the end, when the cluster is at rest and all workers are in that clock.
  void JudgeShard(ps::Shard* head, std::uint64_t clock);
  void JudgeWorker(std::uint32_t rank,
                   const std::vector<std::shared_ptr<const worker::TableInfo>>& infos);
  // As CodecLedger::SwitchedBy.
  bool SwitchedBy(std::uint32_t id, std::uint64_t clock, absl::Time before) const {
    return codecs_.SwitchedBy(id, clock, before);
  }
  // Codec switches that were decided.
  std::uint64_t switches() const { return codecs_.decided(); }

 private:
  void HearPush(const ps::Inbound& push, absl::Time now);
  void HearRequest(const proto::Request& request);
  void HearReply(const proto::Reply& reply, std::span<const runtime::Buffer> payload);
  void JudgeVersions(const SimTable& table, const compress::TableCodec& codec,
                     ps::ShardStore* store);

  const std::vector<SimTable>* const tables_;
  Checker* const checker_;
  CodedPushes pushes_;
  CodedStates states_;
  CodecLedger codecs_;
  VersionLedger ledger_;
  TableSettingsLedger settings_;  // of all tables
  // Pulls of gradient tables, by rank, incarnation, shard and number: table and block.
  std::map<std::tuple<std::uint32_t, std::uint64_t, std::uint32_t, std::uint64_t>,
           std::pair<const SimTable*, std::uint32_t>>
      gradients_asked_;
  // The last values that each reader has read: by table, place and reader.
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::vector<float>> last_;
};

}  // namespace leeway::simulation

#endif  // LEEWAY_TESTS_SIMULATION_CODED_CHECKER_H_
