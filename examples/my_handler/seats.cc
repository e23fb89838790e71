// A plugin for servers with a shard handler: it sells numbered seats, none twice.
//
//     LEEWAY_PLUGINS=…/libmy_handler.so leeway launch -s 2 -w 4 -- buyers
//
// The table "sold" has the number of seats sold of each show. That may be read and updated by
// itself, too; but a worker that pulls the number and then pushes would sell a seat twice, when
// another one does so at the same time.
#include <charconv>
#include <cstdint>
#include <span>
#include <string>

#include "leeway/server.h"
#include "leeway/shard_handler.h"

namespace {

constexpr std::int64_t kSeats = 100;  // of each show

// The request is the show's number as text; the answer is the seat's.
absl::StatusOr<std::string> Sell(leeway::ShardCall& call) {
  const absl::string_view text = call.request();
  std::uint64_t show = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), show).ec != std::errc()) {
    return absl::InvalidArgumentError("which show? '" + std::string(text) + "' is no number");
  }
  std::int64_t sold = 0;
  absl::Status status = call.Read("sold", {&show, 1}, std::span(&sold, 1));
  if (!status.ok()) return status;
  if (sold == kSeats) return absl::OutOfRangeError("show " + std::string(text) + " is sold out");
  const std::int64_t one = 1;
  status = call.Push("sold", {&show, 1}, std::span(&one, 1));
  if (!status.ok()) return status;
  return std::to_string(sold);
}

}  // namespace

extern "C" void LeewayRegister() {
  const absl::Status status = leeway::RegisterShardHandler("sell", Sell);
  (void)status;  // ALREADY_EXISTS: it was loaded twice
}
