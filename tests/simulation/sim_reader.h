// A SimReader is a reader of a simulated run: again and again it joins, pulls counter tables for a
// while, and leaves or is killed. Its reads are checked against the promises to readers.
#ifndef LEEWAY_TESTS_SIMULATION_SIM_READER_H_
#define LEEWAY_TESTS_SIMULATION_SIM_READER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "runtime/base/random.h"
#include "tests/simulation/checker.h"
#include "tests/simulation/history.h"
#include "tests/simulation/published_model.h"
#include "tests/simulation/sim_cluster.h"
#include "tests/simulation/sim_table.h"
#include "worker/core/core.h"
#include "worker/models/model_copy.h"

namespace leeway::simulation {

class SimReader {
 public:
  SimReader(std::uint32_t number, const std::vector<SimTable>* tables, SimCluster* cluster,
            const History* history, PublishedModel* model, Checker* checker, std::uint64_t seed);
  SimReader(const SimReader&) = delete;
  SimReader& operator=(const SimReader&) = delete;

  void Come();
  // The cluster is about to end: from now on its operations may fail.
  void MayFail() { may_fail_ = true; }
  // Ends its process, if there is one, for good.
  void End();
  // True if it waits for something.
  bool waits() const { return !waits_for_.empty(); }
  // True if it is away, or a server has answered it in this visit.
  bool settled() const { return core_ == nullptr || answered_; }
  // Tells the checker what it waits for.
  void CheckWaiting();
  std::uint64_t visits() const { return visits_; }
  std::uint64_t reads() const { return reads_; }

 private:
  struct Call {
    Read read;
    std::vector<std::uint64_t> keys;
    RaggedRows ragged;
  };

  std::string Host() const;
  std::string Name() const;
  // Runs `next` unless the process has ended meanwhile.
  void After(absl::Duration delay, void (SimReader::*next)());
  void OpenTables();
  void PullOrGo();
  void Pull();
  // Fetches the newest version of the published model. False: there is none that it can have.
  bool FetchModel();
  void OnFetched(const worker::Operation& operation);
  void OnPulled(const std::shared_ptr<Call>& call, const worker::Operation& operation);
  void JudgeClock(const Read& read, const PullInfo& info);
  void JudgeVersion(const Read& read, const PullInfo& info);
  void Go();
  void ComeBack();
  bool Expect(const absl::Status& status, const std::string& what);
  void Waits(const std::string& what);

  const std::uint32_t number_;
  const std::vector<SimTable>* const tables_;
  SimCluster* const cluster_;
  const History* const history_;
  PublishedModel* const model_;
  Checker* const checker_;
  runtime::Random random_;
  std::vector<std::unique_ptr<Invariant>> invariants_;

  worker::Core* core_ = nullptr;
  std::uint64_t visits_ = 0, reads_ = 0;
  std::uint64_t pulls_left_ = 0;
  std::size_t tables_asked_ = 0;
  std::map<std::uint32_t, std::shared_ptr<const worker::TableInfo>> infos_;  // by table
  std::unique_ptr<worker::ModelCopy> copy_;                                  // of this visit
  std::size_t fetching_ = 0;  // pulls that are not answered
  absl::Status fetched_;
  std::uint64_t fetching_version_ = 0;  // its publication
  bool answered_ = false;
  bool may_fail_ = false;
  std::string waits_for_;
  absl::Time waits_since_;
  // By table and place: the newest version, and the values with it.
  std::map<std::pair<std::uint32_t, std::uint64_t>,
           std::pair<std::uint64_t, std::vector<std::int64_t>>>
      newest_;
};

}  // namespace leeway::simulation

#endif  // LEEWAY_TESTS_SIMULATION_SIM_READER_H_
