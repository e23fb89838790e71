#include "ps/shard/state/shard_state.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace leeway::ps {

absl::Status ShardState::CheckRoomToHold(std::uint64_t bytes) const {
  const runtime::ByteBudget& held = context->held;
  const bool room = held.HasRoom(bytes);
  if (room || context->loop->Now() < grace_until) {
    return absl::OkStatus();
  }
  const std::string slow = clocks.DescribeBehind(clocks.slowest() + 1);
  return absl::ResourceExhaustedError(absl::StrCat(
      "this data thread holds ", held.bytes, " bytes of requests that wait for slower workers (",
      slow, "), and ", bytes, " more would be over LEEWAY_HELD_BYTES_MAX (", held.bytes_max,
      "): raise it, or use more servers or LEEWAY_SERVER_THREADS"));
}

}  // namespace leeway::ps
