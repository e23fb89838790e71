// The sums over a worker's requests: pushes that are unanswered, bytes that it keeps, and counters
// for statistics.
//
// Lives on the core's loop, in Requests. A request is reported once when it is submitted, once when
// it ends (it is settled, forgotten or lost), and in between when it is retained or abandoned.
#ifndef LEEWAY_WORKER_REQUESTS_REQUEST_TOTALS_H_
#define LEEWAY_WORKER_REQUESTS_REQUEST_TOTALS_H_

#include <cstddef>
#include <cstdint>
#include <utility>

#include "proto/messages/messages.h"
#include "runtime/base/mutants.h"
#include "worker/operations/request.h"

namespace leeway::worker {

class RequestTotals {
 public:
  void OnSubmitted(const Request& request) {
    if (!proto::HasPush(request.op)) return;
    ++unanswered_pushes_;
    if (request.filled) OnFilled(request);
  }
  // Its payload has been made.
  void OnFilled(const Request& request) { pushed_bytes_ += request.piece.payload.back().size(); }
  // Sets Request::retained; ends that it is abandoned.
  void OnRetained(Request* request) {
    request->retained = true;
    --unanswered_pushes_;
    ++retained_pushes_;
    retained_bytes_ += request->bytes;
    if (std::exchange(request->abandoned, false)) abandoned_bytes_ -= request->bytes;
  }
  // Sets Request::abandoned.
  void OnAbandoned(Request* request) {
    request->abandoned = true;
    abandoned_bytes_ += request->bytes;
  }
  void OnResent() { ++resends_; }
  void OnEnded(const Request& request) {
    if (request.retained) {
      --retained_pushes_;
      if (!runtime::Planted<"kept-bytes-not-given-back">()) retained_bytes_ -= request.bytes;
    } else if (proto::HasPush(request.op)) {
      --unanswered_pushes_;
    }
    if (request.abandoned) abandoned_bytes_ -= request.bytes;
  }

  std::size_t unanswered_pushes() const { return unanswered_pushes_; }
  std::size_t retained_pushes() const { return retained_pushes_; }
  std::uint64_t retained_bytes() const { return retained_bytes_; }
  std::uint64_t abandoned_bytes() const { return abandoned_bytes_; }
  std::uint64_t resends() const { return resends_; }
  std::uint64_t pushed_bytes() const { return pushed_bytes_; }  // values frames, as they are sent

 private:
  std::size_t unanswered_pushes_ = 0;
  std::size_t retained_pushes_ = 0;
  std::uint64_t retained_bytes_ = 0;
  std::uint64_t abandoned_bytes_ = 0;
  std::uint64_t resends_ = 0;
  std::uint64_t pushed_bytes_ = 0;
};

}  // namespace leeway::worker

#endif  // LEEWAY_WORKER_REQUESTS_REQUEST_TOTALS_H_
