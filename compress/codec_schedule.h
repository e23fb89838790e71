// A CodecSchedule holds which of a table's codecs holds from which clock on, as the scheduler's
// maps say it. Each worker and each data thread has one for a table, and so all agree. Used on its
// owner's loop.
//
// A switch is announced before it is decided (docs/compression.md, "Changing a table's codec").
// Until it is decided, the codec of the announced clock and later ones is unknown: a worker keeps
// its pushes of these clocks back.
#ifndef LEEWAY_COMPRESS_CODEC_SCHEDULE_H_
#define LEEWAY_COMPRESS_CODEC_SCHEDULE_H_

#include <cstdint>
#include <deque>
#include <optional>

#include "proto/messages/messages.h"

namespace leeway::compress {

class CodecSchedule {
 public:
  // Takes over a switch of the newest map. True if it was new.
  bool Follow(const proto::CodecSwitch& change);

  // The codec of pushes in that clock, as an index in TableCodecs::choices; nullopt while a switch
  // for it is announced and not decided.
  std::optional<std::uint32_t> At(std::uint64_t clock) const;

  // The last decided codec for a clock: its index, and the clock from which on it holds.
  struct Known {
    std::uint32_t choice = 0;
    std::uint64_t since = 0;
  };
  Known KnownAt(std::uint64_t clock) const;

  // True if a switch is announced and not decided.
  bool open() const { return announced_.has_value(); }

 private:
  std::deque<Known> decided_ = {Known{}};  // in the order of clocks
  std::uint64_t number_ = 0;               // of the newest switch that is decided
  std::optional<proto::CodecSwitch> announced_;
};

}  // namespace leeway::compress

#endif  // LEEWAY_COMPRESS_CODEC_SCHEDULE_H_
