// Request admission of one shard: each request of a worker is admitted once, in the order of its
// worker's numbers, and answered.
//
// Used by the head alone, on the data thread's loop. A request that comes early waits for its
// predecessors, within limits (table/inbound.h). One that was seen before gets the answer that it
// got then, as far as that is known.
#ifndef LEEWAY_PS_SHARD_REQUEST_ADMISSION_H_
#define LEEWAY_PS_SHARD_REQUEST_ADMISSION_H_

#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ps/shard/pulls.h"
#include "ps/shard/pushes.h"
#include "ps/shard/state/shard_state.h"
#include "ps/table/inbound.h"

namespace leeway::ps {

class RequestAdmission {
 public:
  // All of them outlive this.
  RequestAdmission(ShardState* state, Pushes* pushes, Pulls* pulls)
      : state_(state), pushes_(pushes), pulls_(pulls) {}

  // Admits the request and those that waited for it, if its turn has come. Returns the session of
  // its worker if anything was admitted, else null.
  ClientSession* Take(Inbound inbound);
  // Whether, since the last call, a worker was seen to run ahead (WorkerClocks::RunsAhead).
  bool TakeRanAhead() { return std::exchange(ran_ahead_, false); }
  // Clocks have opened: admits the requests that waited for that, and calls `admitted(worker,
  // session)` for their workers.
  using Admitted = absl::FunctionRef<void(const WorkerKey& worker, ClientSession* session)>;
  void AdmitWaiting(Admitted admitted);
  // The table of a request that the request fits.
  absl::StatusOr<const Table*> TableFor(const proto::Request& request) const;

 private:
  RequestClass ClassOf(const proto::Request& request) const;
  bool MustWait(const proto::Request& request) const;
  bool AdmitNext(ClientSession* session, RequestClass kind, Inbound inbound);
  void KeepEarly(const WorkerKey& worker, RequestOrder* order, Inbound inbound);
  absl::Status Admit(Inbound inbound);
  void TakeCall(ClientSession* session, const Inbound& inbound);
  absl::StatusOr<runtime::Buffer> Call(const ClientSession& session, const Inbound& inbound);
  void NoteFailure(ClientSession* session, RequestClass kind, const proto::RequestId& id,
                   bool pushes, absl::Status outcome);
  void AnswerAgain(const ClientSession& session, RequestClass kind, Inbound inbound);

  ShardState* const state_;
  Pushes* const pushes_;
  Pulls* const pulls_;
  bool ran_ahead_ = false;
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_SHARD_REQUEST_ADMISSION_H_
