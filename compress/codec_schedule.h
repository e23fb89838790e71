// Which of a table's codecs holds from which clock on, as the scheduler has told it in its maps.
// Workers and servers each follow one, and so agree on it.
//
// A switch is announced before it is decided (docs/compression.md, "Changing a table's codec").
// From the announced clock on nothing is known until then: a worker keeps what it pushes there.
#ifndef LEEWAY_COMPRESS_CODEC_SCHEDULE_H_
#define LEEWAY_COMPRESS_CODEC_SCHEDULE_H_

#include <cstdint>
#include <deque>
#include <optional>

#include "proto/messages/messages.h"

namespace leeway::compress {

class CodecSchedule {
 public:
  // Says what the newest map says of the table. True if that was new.
  bool Follow(const proto::CodecSwitch& change);

  // An index in TableCodecs::choices, for what is pushed in that clock; none while it is being
  // decided.
  std::optional<std::uint32_t> At(std::uint64_t clock) const;

  // The same as far as it is decided, the clock from which on it holds, and the index before.
  struct Known {
    std::uint32_t choice = 0;
    std::uint64_t since = 0;
    std::uint32_t before = 0;
  };
  Known KnownAt(std::uint64_t clock) const;

  // Whether something is being decided.
  bool open() const { return announced_.has_value(); }

 private:
  std::deque<Known> decided_ = {Known{}};  // in the order of clocks
  std::uint64_t number_ = 0;               // of the newest switch that is decided
  std::optional<proto::CodecSwitch> announced_;
};

}  // namespace leeway::compress

#endif  // LEEWAY_COMPRESS_CODEC_SCHEDULE_H_
