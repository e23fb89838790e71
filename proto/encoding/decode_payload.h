// The checks of a message's payload against its header. Private to the decode_*.cc files.
#ifndef LEEWAY_PROTO_ENCODING_DECODE_PAYLOAD_H_
#define LEEWAY_PROTO_ENCODING_DECODE_PAYLOAD_H_

#include <cmath>
#include <cstdint>
#include <initializer_list>

#include "proto/encoding/decode_parts.h"

namespace leeway::proto::decode {

// One payload frame as the header describes it: `count` entries of `width` bytes.
struct Frame {
  absl::string_view name;
  std::uint64_t count = 0;
  std::uint64_t width = 1;
  bool trusted = false;  // its checked content is relied upon later, so that it must not change
  bool coded = false;    // of a codec: at least 1 byte, and fewer than count × width
};

inline Frame KeysFrame(std::uint64_t keys) { return {"keys", keys, sizeof(std::uint64_t), true}; }
inline Frame WidthsFrame(std::uint64_t keys) {
  return {"widths", keys, sizeof(std::uint32_t), true};
}
inline Frame ValuesFrame(std::uint64_t elements, DType dtype) {
  return {"values", elements, SizeOf(dtype)};
}

absl::Status CheckFrameCount(const Input& in, std::size_t count);

// Takes one frame of any bytes, to be parsed later: copied if its sender could still change it.
absl::Status TakeBytes(Input& in);

// Takes these frames; others are an error. A frame that is not aligned for its entries is replaced
// by an aligned copy, and so is a trusted one that its sender could still change. The caller has
// bounded the counts, so that count × width cannot overflow.
absl::Status TakeFrames(Input& in, std::initializer_list<Frame> frames);

// OK if the widths add up to the elements.
absl::Status CheckWidths(const runtime::Buffer& widths, std::uint64_t elements);

absl::Status CheckDense(std::uint64_t block, std::uint64_t keys, std::uint64_t elements,
                        DType dtype);

// OK if the elements divide evenly over the keys. Only the table knows the width of its rows.
absl::Status CheckRows(std::uint64_t keys, std::uint64_t elements);

// The target of a message: a dense block, or rows of a sparse or ragged table, with a value for
// each element.
struct Target {
  TableKind kind = TableKind::kDense;
  DType dtype = DType::kFloat32;
  std::uint64_t block = 0;
  std::uint64_t keys = 0;      // at most kKeysPerRequestMax
  std::uint64_t elements = 0;  // at most kTableElementsMax
  bool coded = false;          // a codec has encoded the values
};

// Checks the target's counts and takes its frames: keys, widths, values of type `values` (which may
// be another type than the table's), and `more` behind them.
absl::Status TakeTarget(const Target& target, DType values, std::initializer_list<Frame> more,
                        Input& in);

template <class Wire, class Message>
absl::Status ReadLearningRate(const Wire& from, Message* to) {
  to->has_learning_rate = from.has_learning_rate();
  if (!to->has_learning_rate) return absl::OkStatus();
  to->learning_rate = from.learning_rate();
  if (std::isfinite(to->learning_rate)) return absl::OkStatus();
  return Wrong("learning_rate is ", to->learning_rate, ", may be finite");
}

}  // namespace leeway::proto::decode

#endif  // LEEWAY_PROTO_ENCODING_DECODE_PAYLOAD_H_
