// The codecs of a table on a worker, with what they keep from message to message: the encoder of
// pushes, the decoder of replies, and the schedule of codec changes.
//
// One for each table whose values are encoded, however often it is opened. Owned by Tables and by
// TableInfo; lives on the worker's loop.
#ifndef LEEWAY_WORKER_SLICING_TABLE_CODING_H_
#define LEEWAY_WORKER_SLICING_TABLE_CODING_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "compress/codec_cost.h"
#include "compress/codec_schedule.h"
#include "compress/common/halves.h"
#include "runtime/base/status_macros.h"
#include "worker/encoding/push_encoder.h"
#include "worker/slicing/pulled_blocks.h"
#include "worker/slicing/slice.h"

namespace leeway::worker {

// Some pushed values, on which codecs are measured (control/codec_meter.h).
struct ValueSample {
  bool wanted = false;
  std::vector<std::byte> values;  // of the table's dtype; empty: there are none yet
};

struct TableCoding {
  TableCoding(const TableSpec& of, compress::TableCodecs with, const PushContext& context)
      : spec(of),
        table_id(context.table),
        codecs(std::move(with)),
        pushes(of, &codecs, context),
        pulls(of, &codecs) {}
  TableCoding(const TableCoding&) = delete;
  TableCoding& operator=(const TableCoding&) = delete;

  // The number of the codec that encodes a push of that clock. None while that is being decided:
  // such a push waits, and one that cannot (its operation has ended) is sent unencoded.
  std::optional<std::uint32_t> ChoiceAt(std::uint64_t clock) const { return schedule.At(clock); }
  // Takes what the newest map says of the table's codec. True if that was new.
  bool Follow(const proto::CodecSwitch& change) {
    const std::size_t choices = codecs.choices.size();
    return change.choice < choices && change.before < choices && schedule.Follow(change);
  }

  // Whether one of the codecs keeps residuals on the worker.
  bool keeps_residuals() const { return codecs.AnyHas(&compress::TableCodec::worker_feedback); }
  // Whether anything is kept from push to push: residuals, momentum, a codec's state, or the number
  // of messages, which seeds random choices.
  bool keeps_state() const {
    return std::ranges::any_of(codecs.choices, [](const compress::TableCodec& choice) {
      return choice.encodes() && !choice.codec->lossless();
    });
  }

  // Keeps the first of the pushed values if a sample is wanted.
  void TakeSample(const std::byte* values, std::uint64_t elements) {
    if (!sample.wanted || elements == 0) return;
    const std::uint64_t row = std::max<std::uint64_t>(1, spec.row_width);
    const std::uint64_t most = std::max(row, kSampleElements / row * row);
    sample.values.assign(values, values + std::min(elements, most) * SizeOf(spec.dtype));
    sample.wanted = false;
  }
  absl::StatusOr<compress::CodecSpeed> MeasureSample(const compress::TableCodec& codec,
                                                     const std::function<absl::Time()>& now) const {
    const std::uint64_t elements = sample.values.size() / SizeOf(spec.dtype);
    const CodecShape shape = spec.kind == TableKind::kDense
                                 ? compress::BlockShape(spec, codec, elements)
                                 : compress::RowsShape(spec, codec, elements / spec.row_width);
    if (codec.dtype == spec.dtype) {
      return compress::MeasureCodec(*codec.codec, shape, sample.values, now);
    }
    std::vector<float> widened(elements);
    compress::Widen(spec.dtype, sample.values.data(), widened);
    LEEWAY_ASSIGN_OR_RETURN(
        compress::CodecSpeed speed,
        compress::MeasureCodec(*codec.codec, shape, std::as_bytes(std::span(widened)), now));
    // In terms of the bytes that would be sent unencoded; a message that is no smaller is not sent.
    const double wider = static_cast<double>(sizeof(float)) / SizeOf(spec.dtype);
    speed.code_seconds_per_byte *= wider;
    speed.ratio = std::min(1.0, speed.ratio * wider);
    return speed;
  }

  // Servers have refused a push for good, and applied nothing of it: undoes its effect on kept
  // state (push_encoder.h).
  void TakeBack(const Piece& piece, const Refundable& refundable) {
    const runtime::Buffer& given = refundable.given;
    RefusedPush push{.traces = refundable.traces,
                     .codec = piece.codec,
                     .message = piece.payload.back().bytes(),
                     .given = given.empty() ? nullptr : given.data(),
                     .elements = piece.elements,
                     .learning_rate = refundable.learning_rate};
    if (spec.kind == TableKind::kDense) return pushes.TakeBackBlock(piece.block, push);
    push.elements = given.size() / SizeOf(spec.dtype);
    pushes.TakeBackRows(piece.shard, piece.payload.front().as<std::uint64_t>(), push);
  }

  static constexpr std::uint64_t kSampleElements = 16 << 10;

  const TableSpec spec;
  const std::uint32_t table_id;
  const compress::TableCodecs codecs;
  compress::CodecSchedule schedule;
  ValueSample sample;
  PushEncoder pushes;
  PulledBlocks pulls;
};

}  // namespace leeway::worker

#endif  // LEEWAY_WORKER_SLICING_TABLE_CODING_H_
