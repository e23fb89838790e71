// Meetings counts which events of a run happened while which states held: a promise is most often
// broken where two features meet that are each tested well alone (docs/simulator.md, "Meetings").
//
// It hears all messages of a run (SimNetwork::Tap), and is asked of nothing else: an event that is
// in no message has not happened. Lives on the run's thread.
#ifndef LEEWAY_TESTS_SIMULATION_MEETINGS_H_
#define LEEWAY_TESTS_SIMULATION_MEETINGS_H_

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/messages/messages.h"
#include "van/sim/sim_van.h"

namespace leeway::simulation {

// A state lasts for a while.
enum class State : std::uint8_t {
  kOpenClock,         // a worker has pushed in a clock that it has not ended
  kHandover,          // a living server was told to give a shard to another one
  kTransfer,          // a chain has a joining replica
  kCodecSwitch,       // announced and not decided
  kTableChange,       // likewise
  kCreate,            // a table is asked for, and its worker is not answered
  kCheckpoint,        // servers prepare or write one
  kLateJoin,          // a worker asks for its first clock
  kLeave,             // a worker has said that it leaves, and is not answered
  kRefusal,           // a push was refused a moment ago
  kReader,            // a reader has pulled a moment ago
  kSchedulerRestart,  // there is no scheduler, or one that has not sent a map yet
  kCut,               // a host cannot reach another one
  kRestored,          // the cluster began with a checkpoint
};
inline constexpr std::size_t kStates = 14;
absl::string_view NameOf(State state);

// An event happens at a moment.
enum class Event : std::uint8_t {
  kTick,              // a worker ends a clock
  kHandover,          // a map gives a shard of a living server to another one
  kTransferBegins,    // a map has a joining replica
  kTransferEnds,      // a replica that joined is a member
  kSwitchDecided,     // of a codec
  kChangeDecided,     // of a table's settings
  kCreate,            // a worker asks for a table
  kCut,               // the clock of a checkpoint is said
  kWritten,           // a server has written its part of one
  kEntered,           // a late worker ends its first clock
  kLeaves,            // a worker
  kWorkerDies,        // a map says so
  kServerDies,        // likewise
  kRankTakenAgain,    // a map shows another process under a worker's rank
  kRefusal,           // a push is refused
  kRead,              // a reader pulls
  kSchedulerRestart,  // another scheduler sends its first map
};
inline constexpr std::size_t kEvents = 17;
absl::string_view NameOf(Event event);

// Whether each event of a seed met each state, by event.
using Met = std::array<std::bitset<kStates>, kEvents>;
// In how many seeds each event met each state, as a table in Markdown. `seeds`: all.
std::string DescribeMeetings(const std::vector<Met>& seeds);

class Meetings {
 public:
  // `is_cut`: whether some host cannot reach another one now. `scheduler_lives`: likewise now.
  Meetings(std::function<bool()> is_cut, std::function<bool()> scheduler_lives)
      : is_cut_(std::move(is_cut)), scheduler_lives_(std::move(scheduler_lives)) {}

  // A message leaves its host.
  void Hear(const van::Overheard& heard, absl::Time now);
  const Met& met() const { return met_; }

 private:
  using Host = std::string;

  void Happens(Event event);
  bool Holds(State state) const;
  void OnMap(const proto::ClusterMap& map);
  void CompareChains(const proto::ClusterMap& before, const proto::ClusterMap& map);
  void CompareWorkers(const proto::ClusterMap& before, const proto::ClusterMap& map);
  void OnFromWorker(const van::Overheard& heard);
  void OnFromScheduler(const van::Overheard& heard);
  void OnFromServer(const van::Overheard& heard);
  void OnResult(const absl::Status& result);

  const std::function<bool()> is_cut_, scheduler_lives_;
  Met met_{};
  absl::Time now_;
  std::shared_ptr<const proto::ClusterMap> map_;  // the newest
  bool restored_ = false;
  bool restarting_ = false;  // a scheduler has ended, and the next one has sent no map
  std::set<Host> open_, creating_, entering_, leaving_, preparing_;
  std::set<std::uint32_t> handed_over_;  // shards whose new head has not led yet
  absl::Time refused_ = absl::InfinitePast(), read_ = absl::InfinitePast();
};

}  // namespace leeway::simulation

#endif  // LEEWAY_TESTS_SIMULATION_MEETINGS_H_
