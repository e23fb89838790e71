// The requests of workers and readers as a data thread takes them: it checks the
// sender and its map, and hands them to the shard concerned.
//
// Lives on the thread's loop. A peer that is not what it claims is dropped; a request that cannot
// be admitted now is answered ABORTED or UNAVAILABLE, which leaves its number unused.
#ifndef LEEWAY_PS_DATA_REQUESTS_H_
#define LEEWAY_PS_DATA_REQUESTS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/messages/messages.h"
#include "ps/data/reader_turns.h"
#include "ps/data/state/thread_state.h"
#include "ps/data/ticks.h"
#include "van/van.h"

namespace leeway::ps {

class Requests {
 public:
  // All of them outlive this. `readers`: how readers' requests get their turns; its `serve` calls
  // ServeReader.
  Requests(ThreadState* state, Ticks* ticks, ReaderTurns::Owner readers)
      : state_(state), ticks_(ticks), reader_turns_(state->loop, std::move(readers)) {}

  void OnRequest(const van::Identity& sender, Inbound inbound);
  void OnPushBatch(van::PeerId peer, const van::Identity& sender, const proto::PushBatch& batch,
                   const runtime::Buffer& values);

  // A reader's request whose turn has come.
  void ServeReader(Inbound inbound);
  // A worker or another server has sent something: readers wait for these.
  void OthersSpoke() { reader_turns_.OthersSpoke(); }
  void DropPeer(van::PeerId peer) { reader_turns_.DropPeer(peer); }

 private:
  void OnRead(const van::Identity& reader, Inbound inbound);
  absl::Status CheckReader(const van::Identity& reader, const proto::Request& request) const;
  absl::StatusOr<WorkerRecord*> WorkerFor(const van::Identity& sender, std::uint32_t rank,
                                          std::uint64_t incarnation, std::uint64_t epoch);
  void TakeRequest(WorkerRecord* worker, Inbound inbound);
  absl::Status CheckEpoch(std::uint64_t epoch) const;
  absl::Status NotHere(std::uint32_t shard) const;

  ThreadState* const state_;
  Ticks* const ticks_;
  ReaderTurns reader_turns_;
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_DATA_REQUESTS_H_
