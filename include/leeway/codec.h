// A Codec turns tensors into bytes and back; the built-in codecs and yours implement this class.
//
// A worker encodes a push block by block (dense tables) or shard by shard (the rows of a sparse
// table); a server encodes its answers. Each encoded message stands by itself: what a decoder needs
// beyond the shape and the codec's name is in the message. The caller keeps what a lossy codec
// drops (TableSpec::error_feedback), so a codec has no state but that of EncodeTerms.
//
// Threads. All threads of a process share one codec object; its calls are const.
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

// The form of a message's values. Both ends know it, so it is not part of the message.
struct CodecShape {
  DType dtype = DType::kFloat32;  // of the elements, one that the codec supports
  std::uint64_t elements = 0;     // rows × columns; the last row of a block may be short
  std::uint64_t columns = 0;      // elements in a row: a tensor's last dimension; 0: no rows
  // True: these are rows of a sparse table, which are independent of each other. Each row then has
  // values of its own where elements would share one (a scale, a threshold).
  bool separate_rows = false;
};

// The inputs of Encode beside the values.
struct EncodeTerms {
  CodecShape shape;
  // The source of everything that the codec draws at random, so that the same values under the same
  // seed give the same bytes on every machine.
  std::uint64_t seed = 0;
  // The number of messages encoded before from this block: 0, 1, 2, …
  std::uint64_t step = 0;
  // [StateElements(shape)], zeros at step 0; read and written. Kept beside the residual, and
  // saved with it.
  std::span<float> state = {};
};

class Codec {
 public:
  virtual ~Codec() = default;

  // Called once, when a table is created. The caller widens 16-bit tables to float32 for a codec
  // that supports only that.
  virtual bool Supports(DType dtype) const = 0;
  // True if Decode(Encode(x)) is x, bit by bit. Error feedback has nothing to do then.
  virtual bool lossless() const = 0;
  // True if decoded values may be NaN or infinite. The default is true: the caller then checks
  // them.
  virtual bool may_give_non_finite() const { return true; }
  // True if the values that a message leaves out stay in the codec's state (EncodeTerms::state), so
  // that the codec is its own error feedback: EncodeAndSubtract then leaves zeros.
  virtual bool keeps_residual() const { return false; }
  // True if the dropped part is on average shorter than the input, ‖x − C(x)‖ < ‖x‖ (a contraction:
  // Stich, Cordonnier and Jaggi 2018, arXiv 1809.07599, definition 2.1). Otherwise error feedback
  // grows without bound, and a table that combines it with such a codec is refused.
  virtual bool contracts() const { return true; }
  // True if AddEncoded can add up messages of one shape without decoding them. Servers then decode
  // the sum of a clock's pushes once, on tables without error feedback on workers.
  virtual bool adds_encoded() const { return false; }
  // Floats of state that encoding needs for one block; 0: none. Rows of sparse tables have no
  // state: a codec that needs some says so here and is refused for such tables.
  virtual std::size_t StateElements(const CodecShape& /*shape*/) const { return 0; }

  // An upper bound of the bytes that Encode writes for this shape.
  virtual std::size_t EncodedBytesMax(const CodecShape& shape) const = 0;
  // Writes the message of `values`, [elements] of dtype, to `out`, which has at least
  // EncodedBytesMax bytes, and returns the number of bytes written. `values` is aligned for its
  // type and no more; `out` has no alignment. INVALID_ARGUMENT: NaN or infinity that the codec
  // cannot carry (the push then travels uncompressed, and TableSpec::nonfinite decides).
  virtual absl::StatusOr<std::size_t> Encode(const void* values, const EncodeTerms& terms,
                                             std::span<std::byte> out) const = 0;

  // `encoded` may hold anything: the decoder reads nothing beyond it and allocates nothing beyond
  // what the shape allows. INVALID_ARGUMENT says what is wrong; `values`, [elements] of dtype, are
  // then undefined.
  virtual absl::Status Decode(std::span<const std::byte> encoded, const CodecShape& shape,
                              void* values) const = 0;
  // OK if Decode would succeed. The default decodes and discards the values.
  virtual absl::Status Check(std::span<const std::byte> encoded, const CodecShape& shape) const;
  // sum[i] += factor × decoded[i], for float32 alone. factor is 1 or −1. `encoded` has passed
  // Check; if it has not, the result is an error and `sum` is undefined. The default decodes into
  // memory of its own and adds.
  virtual absl::Status DecodeAdd(std::span<const std::byte> encoded, const CodecShape& shape,
                                 float factor, float* sum) const;

  // Adds one message into another: `sum` is then, up to rounding, the message of the sum of both
  // arrays. INVALID_ARGUMENT: one of them is malformed, they cannot be added up, or the sum exceeds
  // the range of the message's numbers; `sum` is then unchanged. The default is UNIMPLEMENTED.
  virtual absl::Status AddEncoded(std::span<const std::byte> encoded, const CodecShape& shape,
                                  std::span<std::byte> sum) const;

  // Error feedback in one call, for float32 alone: encodes `carried`, [elements], and leaves in it
  // the dropped part, carried − decoded. The default is Encode, then DecodeAdd with −1. After an
  // error `carried` is unchanged.
  virtual absl::StatusOr<std::size_t> EncodeAndSubtract(float* carried, const EncodeTerms& terms,
                                                        std::span<std::byte> out) const;

  // For codecs that keep their residual themselves. Servers have refused a message that decodes to
  // `sent` and was encoded from `values`, both [elements] of float32, and applied nothing of it.
  // The codec returns to its state what the message took out of it, and removes from it what
  // `values` brought, so that the caller may push the values again. `values` is null if they cannot
  // be pushed again; they then stay in the state. `later`: messages encoded since. The default does
  // nothing.
  virtual void TakeBack(const float* /*sent*/, const float* /*values*/, std::uint64_t /*later*/,
                        const EncodeTerms& /*terms*/) const {}
};

// The options of a codec's name: "topk:0.01,exact=1" gives {"": "0.01", "exact": "1"}.
using CodecOptions = std::map<std::string, std::string>;

// Makes a codec from its options. The error names the option that is unknown or out of range.
using CodecFactory =
    std::function<absl::StatusOr<std::unique_ptr<Codec>>(const CodecOptions& options)>;

// Adds a codec under a name of 1 to 64 letters, digits, '_' and '-'. Workers and servers both need
// it, linked in or as a plugin (LEEWAY_PLUGINS, leeway/server.h), before they connect: a node lists
// its codecs when it joins, and a table with a codec that a node lacks is refused. `version` is
// that of the codec's messages, 1 or more: raise it when they change, so that the creation of a
// table fails and names the nodes whose versions differ. ALREADY_EXISTS if the name is taken,
// INVALID_ARGUMENT if name, factory or version are not as above, RESOURCE_EXHAUSTED beyond 1024
// codecs. Any thread.
absl::Status RegisterCodec(absl::string_view name, CodecFactory factory, std::uint32_t version = 1);

}  // namespace leeway

#endif  // LEEWAY_CODEC_H_
