// FeedReceiver gives bytes to a receiver in parts of any size, for tests.
#ifndef LEEWAY_VAN_TESTING_TCP_FEED_RECEIVER_H_
#define LEEWAY_VAN_TESTING_TCP_FEED_RECEIVER_H_

#include <algorithm>
#include <array>
#include <cstring>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "van/tcp/tcp_receiver.h"

namespace leeway::van {

// Works as if each read had returned at most `cut` bytes. `take` is called with each message when
// it is complete.
inline void FeedReceiver(TcpReceiver* receiver, absl::string_view bytes, std::size_t cut,
                         absl::FunctionRef<void(const Arrival&)> take) {
  while (!bytes.empty()) {
    std::array<iovec, 2> places;
    const int count = receiver->Places(&places);
    const absl::string_view read = bytes.substr(0, cut);
    std::size_t took = 0;
    for (int i = 0; i < count; ++i) {
      const std::size_t part = std::min(places[i].iov_len, read.size() - took);
      std::memcpy(places[i].iov_base, read.data() + took, part);
      took += part;
    }
    bytes.remove_prefix(took);
    receiver->Took(took);
    while (receiver->Next().value()) take(receiver->TakeArrival());
    receiver->Rest();
  }
}

}  // namespace leeway::van

#endif  // LEEWAY_VAN_TESTING_TCP_FEED_RECEIVER_H_
