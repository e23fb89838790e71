// Meetings counts which events of a run happened while which states held: a promise is most often
// broken where two features meet that are each tested well alone (docs/simulator.md, "Meetings").
//
// It hears all messages of a run (SimNetwork::Tap): an event that is in no message has not
// happened. An event meets what held before its message, so not a state that the message begins.
// It does not meet what it ends by itself either: a worker that ends its clock meets the open
// clocks of others. Lives on the run's thread.
#ifndef LEEWAY_TESTS_SIMULATION_MEETINGS_H_
#define LEEWAY_TESTS_SIMULATION_MEETINGS_H_

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
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
  kHandover,          // a living server was told to give a shard to another one, which has not all
  kTransfer,          // a chain has a joining replica
  kCodecSwitch,       // announced and not decided
  kTableChange,       // likewise
  kCreate,            // a table is asked for, and its worker is not answered
  kCheckpoint,        // a server was told the clock of one, and has not written its part
  kLateJoin,          // a worker asks for its first clock
  kLeave,             // a worker has said that it leaves, and is not answered
  kRefusal,           // a push was refused a moment ago
  kReader,            // a reader has pulled a moment ago
  kSchedulerRestart,  // a scheduler has died, and the next one has sent no map
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
  kServerDies,        // likewise, and it has not left
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
  // `is_cut`: whether some host cannot reach another one now. `scheduler_is_dead`: whether there is
  // none although the cluster goes on.
  Meetings(std::function<bool()> is_cut, std::function<bool()> scheduler_is_dead)
      : is_cut_(std::move(is_cut)), scheduler_is_dead_(std::move(scheduler_is_dead)) {}

  // A message leaves its host.
  void Hear(const van::Overheard& heard, absl::Time now);
  const Met& met() const { return met_; }

 private:
  using Host = std::string;
  using Push = std::tuple<std::uint64_t, std::uint32_t, std::uint64_t>;  // of proto::RequestId
  struct Handover {
    std::uint32_t from = 0;  // the old head's rank
    std::uint64_t incarnation = 0;
    std::uint64_t epoch = 0;  // the first one of the new head
    std::uint32_t to = 0;     // the new head's rank
    // The last entry that the old head hands over, once it is known.
    std::uint64_t stream = 0, entry = 0;
  };
  using Handovers = std::map<std::uint32_t, Handover>;  // by shard

  // `alone`: a state that the event ends, and nothing else was in.
  void Happens(Event event, std::optional<State> alone = std::nullopt);
  bool Holds(State state) const;
  void OnJoin(const van::Overheard& heard);
  void OnFromWorker(const van::Overheard& heard);
  void OnPush(const Host& host, std::uint64_t clock);
  void OnTick(const Host& host, const proto::ClockTick& tick);
  void OnFromScheduler(const van::Overheard& heard);
  void OnCut(const Host& host, const proto::CheckpointCut& cut);
  void OnMap(const proto::ClusterMap& map);
  void CompareServers(const proto::ClusterMap& before, const proto::ClusterMap& map);
  void CompareChains(const proto::ClusterMap& before, const proto::ClusterMap& map,
                     Handovers* handed_over);
  void CompareWorkers(const proto::ClusterMap& before, const proto::ClusterMap& map);
  // What nodes that the map does not show as living were in is over.
  void ForgetGone(const proto::ClusterMap& map);
  void OnFromServer(const van::Overheard& heard);
  void OnHandoverEnd(const Host& host, const proto::Replicate& end);
  void OnAck(const Host& host, const proto::ReplicateAck& ack);
  void OnWritten(const Host& host, const proto::CheckpointWritten& written);
  void OnReply(const proto::Reply& reply);
  // What the host's process was in is over.
  void Forget(const Host& worker);

  const std::function<bool()> is_cut_, scheduler_is_dead_;
  Met met_{};
  absl::Time now_;
  std::shared_ptr<const proto::ClusterMap> map_;  // the newest
  bool restored_ = false;
  bool restarting_ = false;               // a scheduler has died, and the next one has sent no map
  std::map<Host, std::uint64_t> joined_;  // the van of the host's last process
  std::set<Host> open_, entering_, leaving_;
  std::set<Host> fresh_;                              // late, and in their first clock
  std::set<Host> said_leave_;                         // processes that have
  std::map<Host, std::uint64_t> ended_;               // clocks of a worker
  std::map<Host, std::set<std::uint64_t>> creating_;  // requests that are not answered
  std::set<std::pair<Host, std::uint64_t>> asked_;    // for a table, with which request
  std::uint64_t cut_ = 0;                             // the newest checkpoint whose clock was said
  std::map<Host, std::uint64_t> writing_, written_;   // checkpoints, by server
  Handovers handed_over_;
  std::set<std::uint64_t> left_;  // incarnations of servers
  std::set<Push> refusals_;
  absl::Time refused_ = absl::InfinitePast(), read_ = absl::InfinitePast();
};

}  // namespace leeway::simulation

#endif  // LEEWAY_TESTS_SIMULATION_MEETINGS_H_
