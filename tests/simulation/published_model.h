// The model that a simulated run publishes now and then: its dense counter tables. Checks what
// readers get of it: every reader of a version has the same values, which have each push once at
// most, all that were acknowledged before the version was begun, and none that was made after it
// was announced; of tables of BSP exactly those of the clocks below the version's.
#ifndef LEEWAY_TESTS_SIMULATION_PUBLISHED_MODEL_H_
#define LEEWAY_TESTS_SIMULATION_PUBLISHED_MODEL_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "proto/messages/messages.h"
#include "tests/simulation/checker.h"
#include "tests/simulation/history.h"
#include "tests/simulation/sim_table.h"
#include "van/sim/sim_van.h"
#include "worker/models/model_copy.h"

namespace leeway::simulation {

class PublishedModel {
 public:
  static constexpr char kName[] = "counters";

  PublishedModel(const std::vector<SimTable>* tables, const History* history, Checker* checker);

  // A message leaves a host (SimNetwork::Tap).
  void Hear(const van::Overheard& heard, absl::Time now);
  // The arguments of the scheduler's command `publish`; none: there is no table yet.
  std::vector<std::string> Arguments() const;
  // A reader has applied a version.
  void Judge(const std::string& reader, const worker::ModelCopy& copy);
  // Whether the scheduler has told anybody that the publication is kept, and not yet otherwise.
  bool IsKept(std::uint64_t publication) const;
  std::uint64_t judged() const { return judged_; }

 private:
  const SimTable* Find(const std::string& name) const;
  void JudgeTable(const std::string& reader, const proto::PublishedVersion& version,
                  const SimTable& table, std::vector<std::int64_t> counts);
  void JudgePush(const std::string& reader, const proto::PublishedVersion& version,
                 const Read& read, std::uint32_t worker, std::size_t number);

  const std::vector<SimTable>* const tables_;
  const History* const history_;
  Checker* const checker_;
  std::vector<std::unique_ptr<Invariant>> invariants_;
  std::map<std::uint32_t, const SimTable*> model_;         // by id
  proto::Published newest_;                                // that was told
  std::map<std::uint64_t, absl::Time> begun_, announced_;  // by publication
  // By publication and table.
  std::map<std::pair<std::uint64_t, std::uint32_t>, std::vector<std::int64_t>> values_;
  std::uint64_t judged_ = 0;
};

}  // namespace leeway::simulation

#endif  // LEEWAY_TESTS_SIMULATION_PUBLISHED_MODEL_H_
