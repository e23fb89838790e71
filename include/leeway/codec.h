// Codecs: tensors to bytes and back. The built-in ones and yours implement this one class.
//
// A worker encodes a push block by block (dense tables) or shard by shard (the rows of a sparse
// table), a server encodes what it answers. Each encoded message stands by itself: what a decoder
// needs beyond the shape and the codec's name is in the message. What a lossy codec drops is kept
// by its caller (TableSpec::error_feedback), so a codec has no state but that of EncodeTerms.
//
// Threads. A codec object is shared by all threads of a process; its calls are const.
#ifndef LEEWAY_CODEC_H_
#define LEEWAY_CODEC_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "leeway/dtype.h"

namespace leeway {

// What a message describes. Both ends know it: it is not part of the message.
struct CodecShape {
  DType dtype = DType::kFloat32;  // of the elements, one that the codec supports
  std::uint64_t elements = 0;     // rows × columns, but that the last row of a block may be short
  std::uint64_t columns = 0;      // elements in a row: of a tensor its last dimension; 0: no rows
  // Rows of a sparse table, which have nothing to do with each other: what elements would share
  // (a scale, a threshold) is each row's own.
  bool separate_rows = false;
};

struct EncodeTerms {
  CodecShape shape;
  // What is drawn at random comes from here, so that the same values under the same seed give the
  // same bytes on every machine.
  std::uint64_t seed = 0;
  // Messages encoded from this place before: 0, 1, 2, …
  std::uint64_t step = 0;
  // [StateElements(shape)], zeros at step 0; read and written. Kept beside the residual, and
  // saved with it.
  std::span<float> state = {};
};

class Codec {
 public:
  virtual ~Codec() = default;

  // Asked once, when a table is created. 16-bit tables are widened to float32 for a codec that
  // supports only that.
  virtual bool Supports(DType dtype) const = 0;
  // Whether Decode(Encode(x)) is x, bit by bit. Error feedback has nothing to do then.
  virtual bool lossless() const = 0;
  // Whether decoded values may be NaN or infinite. By default, where there is nothing to rely on,
  // they are looked at.
  virtual bool may_give_non_finite() const { return true; }
  // Whether what it does not send stays in its state (EncodeTerms::state), so that it is its own
  // error feedback: EncodeAndSubtract then leaves zeros.
  virtual bool keeps_residual() const { return false; }
  // Whether what it drops is on average shorter than what it is given, ‖x − C(x)‖ < ‖x‖: otherwise
  // error feedback grows without bound, and a table with such a codec is refused it.
  virtual bool contracts() const { return true; }
  // Whether messages of one shape can be added up as they are: AddEncoded. Servers then decode the
  // sum of a clock's pushes once, on tables without error feedback on workers.
  virtual bool adds_encoded() const { return false; }
  // Floats of state that encoding needs for one block; 0: none. Rows of sparse tables have none:
  // a codec that needs state says so here and is refused for them.
  virtual std::size_t StateElements(const CodecShape& /*shape*/) const { return 0; }

  // Most bytes that Encode writes for this shape.
  virtual std::size_t EncodedBytesMax(const CodecShape& shape) const = 0;
  // Writes values, [elements] of dtype, to `out`, of at least EncodedBytesMax bytes, and returns
  // how many bytes that were. Pointers need the alignment of their type and no more; `out` has
  // none. INVALID_ARGUMENT: NaN or infinity, where the codec cannot carry them (the push then
  // travels uncompressed, and TableSpec::nonfinite decides).
  virtual absl::StatusOr<std::size_t> Encode(const void* values, const EncodeTerms& terms,
                                             std::span<std::byte> out) const = 0;

  // `encoded` may hold anything: nothing is read beyond it, nothing allocated beyond what the shape
  // allows. INVALID_ARGUMENT says what is wrong; `values`, [elements] of dtype, are then undefined.
  virtual absl::Status Decode(std::span<const std::byte> encoded, const CodecShape& shape,
                              void* values) const = 0;
  // Whether Decode would succeed. By default it decodes and throws the values away.
  virtual absl::Status Check(std::span<const std::byte> encoded, const CodecShape& shape) const;
  // sum[i] += factor × decoded[i], for float32 alone. factor is 1 or −1. `encoded` has passed
  // Check; where it has not, the result is an error and `sum` undefined. By default it decodes
  // apart and adds.
  virtual absl::Status DecodeAdd(std::span<const std::byte> encoded, const CodecShape& shape,
                                 float factor, float* sum) const;

  // Adds one message into another: `sum` is then, up to rounding, the message of the sum of both
  // arrays. INVALID_ARGUMENT: one of them is malformed, they cannot be added up, or the sum is more
  // than its numbers hold; `sum` is then as it was. By default UNIMPLEMENTED.
  virtual absl::Status AddEncoded(std::span<const std::byte> encoded, const CodecShape& shape,
                                  std::span<std::byte> sum) const;

  // Error feedback in one call, for float32 alone: encodes `carried`, [elements], and leaves there
  // what was dropped, carried − decoded. By default Encode, then DecodeAdd with −1. After an error
  // `carried` is as it was.
  virtual absl::StatusOr<std::size_t> EncodeAndSubtract(float* carried, const EncodeTerms& terms,
                                                        std::span<std::byte> out) const;

  // For codecs that keep their residual themselves: servers have refused a message, which decodes
  // to `sent` and was encoded from `values`, both [elements] of float32, and nothing of it was
  // applied. What it took out of the state returns, and what the values brought leaves it, so that
  // they may be pushed again. Null: they cannot be, and stay in the state. `later`: messages
  // encoded since. By default nothing.
  virtual void TakeBack(const float* /*sent*/, const float* /*values*/, std::uint64_t /*later*/,
                        const EncodeTerms& /*terms*/) const {}
};

// What stands behind a codec's name: "topk:0.01,exact=1" gives {"": "0.01", "exact": "1"}.
using CodecOptions = std::map<std::string, std::string>;

// Makes a codec from its options, or says which one is unknown or out of range.
using CodecFactory =
    std::function<absl::StatusOr<std::unique_ptr<Codec>>(const CodecOptions& options)>;

// Adds a codec under a name of 1 to 64 letters, digits, '_' and '-'. Workers and servers both need
// it, linked in or as a plugin (LEEWAY_PLUGINS, leeway/server.h), before they connect: a node says
// when it joins which codecs it has, and a table with another is refused. `version` is that of the
// codec's messages, 1 or more: raise it when they change, so that nodes with different versions are
// told so when a table is created. ALREADY_EXISTS if the name is taken, INVALID_ARGUMENT if
// name, factory or version are not as above, RESOURCE_EXHAUSTED beyond 1024 codecs. Any thread.
absl::Status RegisterCodec(absl::string_view name, CodecFactory factory, std::uint32_t version = 1);

}  // namespace leeway

#endif  // LEEWAY_CODEC_H_
