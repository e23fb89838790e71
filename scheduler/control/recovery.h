// The scheduler's durable state: collects it from the services for the StateKeeper, and gives it
// back to them when a scheduler is started on a state that another one has kept.
//
// Without LEEWAY_SCHEDULER_STATE nothing is kept, and no restart is recovered from. After a restart
// at another address it tells servers where the scheduler is. A state that turns out to be an old
// copy ends the scheduler without a word to the nodes. Lives on the scheduler's loop.
#ifndef LEEWAY_SCHEDULER_CONTROL_RECOVERY_H_
#define LEEWAY_SCHEDULER_CONTROL_RECOVERY_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "scheduler/control/services.h"
#include "scheduler/state/state_keeper.h"

namespace leeway::scheduler {

class Recovery {
 public:
  explicit Recovery(const Services* services) : s_(services) {}

  // Before any node can connect: takes up the state that was kept, if there is one.
  absl::Status Open();
  // The scheduler listens at that address.
  void SetAddress(std::string address) { address_ = std::move(address); }
  // If the scheduler is a restarted one, the cluster goes on: every member has the failure timeout
  // to come back. To be called once, when nodes can connect.
  void GoOn();
  bool restarted() const { return !address_before_.empty(); }

  // ---- finding that the state is an old copy ----
  // A member has taken the map of that version. False: this scheduler never made it, and ends.
  bool CheckMapOf(const Node& node, std::uint64_t version);
  // True if a process that is not known says that it has joined this cluster: it is refused, or has
  // to ask again while it is not clear whether the state here is an old copy.
  bool IsOfUnknownPast(const Sender& sender);

  // ---- telling servers the new address ----
  // The node has connected. One that has left or is dead is told where the scheduler is, too: it
  // may run, and not know that.
  void CameBack(std::uint32_t node);
  // To be called now and then: dials the data threads of servers that have not connected.
  void TellAddress();
  // True if the connection was made for that, and is nobody else's business.
  bool OnPeerUp(van::PeerId peer);
  bool OnPeerDown(van::PeerId peer) { return telling_.erase(peer) > 0; }

  // ---- keeping the state ----
  // Writes the state if it has changed.
  void Write();
  // Makes a new map when tables have changed: nodes tell an old state by the map's version.
  void NumberTables();
  // The cluster is over: the state is removed.
  void ForgetState();
  // Null: nothing is kept.
  const StateKeeper* keeper() const { return keeper_.get(); }

 private:
  void GoOnFrom(State state);
  std::uint64_t Stamp() const;
  State Collect() const;
  std::string PublicAddress() const;
  void Dial(absl::Duration patience);
  void EndAsOutdated(const std::string& evidence);

  const Services* const s_;
  std::string address_;
  std::string address_before_;  // of the scheduler before; empty: there was none
  absl::Time recovered_at_;
  std::uint64_t tables_numbered_ = 0;  // TableCatalogue::changes, of the newest map
  // A member has a map that was made here, or this is no restart: the state is no old copy.
  bool state_is_newest_ = true;
  std::unique_ptr<StateKeeper> keeper_;
  std::map<std::uint32_t, std::string> untold_;   // node → endpoint: has not connected yet
  std::map<van::PeerId, std::uint32_t> telling_;  // → node
};

}  // namespace leeway::scheduler

#endif  // LEEWAY_SCHEDULER_CONTROL_RECOVERY_H_
