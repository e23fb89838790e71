// The order of one worker's requests to one shard: each is admitted once, in the order of their
// numbers. Part of a ClientSession. A request that comes early is kept within the limits of
// table/inbound.h; how requests failed is remembered for kFailuresRememberedMax of them.
#ifndef LEEWAY_PS_SHARD_STATE_REQUEST_ORDER_H_
#define LEEWAY_PS_SHARD_STATE_REQUEST_ORDER_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "ps/table/inbound.h"
#include "runtime/memory/byte_budget.h"

namespace leeway::ps {

class RequestOrder {
 public:
  enum class Verdict { kSeen, kNext, kEarly };

  // `budget`: of the early requests of all sessions of a thread together.
  explicit RequestOrder(runtime::ByteBudget* budget) : budget_(budget) {}
  ~RequestOrder();
  RequestOrder(const RequestOrder&) = delete;
  RequestOrder& operator=(const RequestOrder&) = delete;

  // `after`: the number of the request before it that its worker still waits for or keeps. The
  // numbers in between are settled and will not come again.
  Verdict Judge(std::uint64_t sequence, std::uint64_t after) const;
  // The highest number admitted; 0 before the first.
  std::uint64_t admitted() const { return admitted_; }

  // The request of that number, judged to be next, is being admitted. What was remembered of it is
  // void: an earlier head may have refused it without its worker hearing of that.
  void Admit(std::uint64_t sequence) {
    admitted_ = sequence;
    failures_.erase(sequence);
  }

  // Everything up to that number has been admitted by whoever says so. What failed is remembered.
  void NoteAdmitted(std::uint64_t sequence) { admitted_ = std::max(admitted_, sequence); }

  // From now on everything up to that number has been admitted, here or elsewhere, and nothing
  // else. What was kept goes; failures are still remembered.
  void Restart(std::uint64_t admitted);

  // Keeps an early request; one that is kept already is replaced (it may have come over a new
  // connection). False when there is no room: it will be sent again.
  bool Keep(Inbound early);
  // The kept request that is next now.
  std::optional<Inbound> TakeNext();
  // Everything kept, in order; or what came from one peer, dropped.
  std::vector<Inbound> TakeAll();
  void DropPeer(van::PeerId peer);
  bool keeps_nothing() const { return early_.empty(); }

  // How a request that was seen before had failed; OK where it had not. UNKNOWN where that is
  // too long ago to be remembered.
  void RememberFailure(std::uint64_t sequence, absl::Status failure);
  absl::Status OutcomeOf(std::uint64_t sequence) const;
  // Failures of requests up to that number may have been forgotten.
  void ForgetFailuresUpTo(std::uint64_t sequence) { forgotten_ = std::max(forgotten_, sequence); }
  const std::map<std::uint64_t, absl::Status>& failures() const { return failures_; }
  std::uint64_t forgotten_failures() const { return forgotten_; }

 private:
  void Release(const Inbound& kept) { budget_->bytes -= kept.bytes(); }

  runtime::ByteBudget* budget_;
  std::uint64_t admitted_ = 0;
  std::map<std::uint64_t, Inbound> early_;
  std::map<std::uint64_t, absl::Status> failures_;
  std::uint64_t forgotten_ = 0;  // failures up to this number may have been forgotten
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_SHARD_STATE_REQUEST_ORDER_H_
