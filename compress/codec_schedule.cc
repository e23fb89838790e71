#include "compress/codec_schedule.h"

#include <algorithm>
#include <iterator>

namespace leeway::compress {
namespace {

// A switch is announced only when all workers have reached the one before, so that the last two
// would be enough.
constexpr std::size_t kKept = 8;

}  // namespace

bool CodecSchedule::Follow(const proto::CodecSwitch& change) {
  if (change.number <= number_) return false;
  if (!change.decided) {
    if (announced_ == change) return false;
    announced_ = change;
    return true;
  }
  announced_.reset();
  number_ = change.number;
  // The first switch that a process sees has the codec before it.
  if (decided_.size() == 1) decided_.front().choice = change.before;
  decided_.push_back({.choice = change.choice, .since = change.clock});
  if (decided_.size() > kKept) {
    decided_.pop_front();
    decided_.front().since = 0;
  }
  return true;
}

std::optional<std::uint32_t> CodecSchedule::At(std::uint64_t clock) const {
  if (announced_.has_value() && clock >= announced_->clock) return std::nullopt;
  return KnownAt(clock).choice;
}

CodecSchedule::Known CodecSchedule::KnownAt(std::uint64_t clock) const {
  const auto later =
      std::upper_bound(std::next(decided_.begin()), decided_.end(), clock,
                       [](std::uint64_t at, const Known& known) { return at < known.since; });
  return *std::prev(later);
}

}  // namespace leeway::compress
