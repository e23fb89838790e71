// A ScriptedWorker is a worker whose operations follow from its seed, with the real worker core. It
// records its pushes and reads. It outlives its process: after a kill it goes on in the next
// incarnation.
#ifndef LEEWAY_TESTS_SIMULATION_SCRIPTED_WORKER_H_
#define LEEWAY_TESTS_SIMULATION_SCRIPTED_WORKER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "runtime/base/random.h"
#include "tests/simulation/checker.h"
#include "tests/simulation/coded_checker.h"
#include "tests/simulation/history.h"
#include "tests/simulation/sim_cluster.h"
#include "tests/simulation/sim_table.h"
#include "worker/core/core.h"

namespace leeway::simulation {

// The same for all workers of a run.
struct Script {
  std::vector<SimTable> tables;
  std::uint32_t begins_at = 0;       // the clock that the cluster begins with, and the iteration
  std::uint32_t iterations = 0;      // until then
  absl::Duration think_max;          // between iterations
  std::uint32_t barrier_every = 25;  // 0: none, so that a worker that comes back has missed none
  bool short_deadlines = false;      // now and then
  bool calls_handlers = false;       // likewise
  // A worker creates a table in mid-run just now.
  std::function<void()> on_late_table = nullptr;
};

class ScriptedWorker {
 public:
  ScriptedWorker(std::uint32_t rank, const Script* script, SimCluster* cluster, History* history,
                 Checker* checker, CodedChecker* coded, std::uint64_t seed);

  // Starts a process, and the script or its rest.
  void Start();
  // Its process has been killed, or has ended after it had left.
  void OnKilled();
  // Leaves within its clock, once the operations under way have ended, and then calls `left`. At
  // the gate it stays. Meanwhile nothing may kill it.
  void LeaveInMidRun(std::function<void()> left, std::function<void()> stays);

  std::uint32_t rank() const { return rank_; }
  bool ready() const { return ready_; }        // has joined and the cluster is complete
  bool finished() const { return finished_; }  // has left in order
  bool begun() const { return iteration_ > script_->begins_at; }
  bool at_work() const { return ready_ && begun() && !at_gate_ && !leaves_.has_value(); }
  // Has ended its last iteration, and waits for ReadAll().
  bool at_gate() const { return at_gate_; }
  std::uint64_t clock() const { return core_->clock(); }
  // A server has answered it in this life.
  bool answered() const { return answered_; }
  // Ends some more clocks while it waits.
  void TickAtGate();
  // All living workers wait, none of them in a later clock than this.
  void ReadAll(std::uint64_t clock);
  bool at_end() const { return at_end_; }  // has read everything, and may leave
  // From now on it may be taken for dead: acknowledgements of clocks that have not closed yet may
  // be lost, and its operations may fail.
  void MayBeGivenUp();
  bool may_be_given_up() const { return may_be_given_up_; }
  std::uint32_t life() const { return history_->lives[rank_].incarnation; }
  // The time in which that incarnation could be taken for dead is over.
  void SurvivesIf(std::uint32_t incarnation);
  bool given_up() const { return given_up_; }  // taken for dead, and knows it
  void Leave();
  std::uint64_t operations() const { return operations_; }
  std::uint64_t handler_calls() const { return handler_calls_; }  // that were answered
  std::uint64_t refused() const { return refused_; }  // pushes that were refused, as they must be
  std::uint64_t out_of_time() const { return out_of_time_; }  // operations whose time was too short
  // Its knowledge of each table; complete once ready().
  const std::vector<std::shared_ptr<const worker::TableInfo>>& infos() const { return infos_; }
  // Tells the checker about everything that it waits for.
  void CheckWaiting();

 private:
  struct Call;  // one operation under way, with the arrays it uses

  struct Leaving {
    std::function<void()> left, stays;
  };

  void LeaveNow();
  // Ends the core's clock. False: it failed.
  bool EndClock();
  void OnReady();
  // One of `creating_` tables.
  void Create(const SimTable& table);
  void CreateLateTables();
  void OnTables();
  void Iterate();
  void SubmitSome();
  void EndIteration();
  void Rest();

  void ReadVersions();
  void Submit(const SimTable& table, proto::Op op, std::uint64_t places) {
    Submit(table, op, places, static_cast<int>(random_.Below(3)) - 1);
  }
  void Submit(const SimTable& table, proto::Op op, std::uint64_t places, int priority);
  // Has a handler push to places of one shard, and tell what was there.
  void CallHandler();
  void OnCalled(Call* call);
  // Pushes to all small tables at once.
  void PushToSmall();
  void FillPush(Call* call);
  // Makes values of the push not finite, in some places or in all, so that it is refused there.
  void MakeNonFinite(Call* call);
  void ChooseTimeout(Call* call);
  // True if an operation may end with that result; sets the outcome of its push.
  bool MayFail(const Call& call, const absl::Status& result);
  std::uint64_t PlacesToPush(const SimTable& table);
  std::uint64_t SomePlaces(const SimTable& table);
  void OnDone(const std::shared_ptr<Call>& call, const absl::Status& result, std::uint64_t dropped);
  // Runs `next` when no operation is under way (any more).
  void WhenIdle(std::function<void()> next);
  void Barrier(const std::string& name, std::function<void()> next);
  void After(absl::Duration delay, std::function<void()> next);
  // Fails the run and returns false unless the status is OK.
  bool Expect(const absl::Status& status, const std::string& what);
  void Waits(const std::string& what);  // for a step of the script
  std::string Name() const;

  const std::uint32_t rank_;
  const Script* const script_;
  SimCluster* const cluster_;
  History* const history_;
  Checker* const checker_;
  CodedChecker* const coded_;
  runtime::Random random_, calls_random_;

  worker::Core* core_ = nullptr;
  bool ready_ = false, finished_ = false, at_gate_ = false, at_end_ = false;
  bool answered_ = false;
  std::optional<Leaving> leaves_;
  bool reads_last_ = false;  // no worker pushes any more
  bool may_be_given_up_ = false, given_up_ = false;
  std::uint32_t iteration_;
  std::size_t creating_ = 0;  // tables
  bool opening_ = false;      // the script begins with the last of them
  std::vector<std::shared_ptr<const worker::TableInfo>> infos_;  // by table
  std::map<std::uint64_t, std::shared_ptr<Call>> calls_;         // under way, by number
  std::function<void()> when_idle_;
  std::uint64_t operations_ = 0, refused_ = 0, out_of_time_ = 0, handler_calls_ = 0;
  // Float tables: the clock of the last push to a place, plus 1.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> last_push_;
  std::string waits_for_;
  absl::Time waits_since_;
};

}  // namespace leeway::simulation

#endif  // LEEWAY_TESTS_SIMULATION_SCRIPTED_WORKER_H_
