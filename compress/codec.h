// Codecs: tensors to bytes and back. A table names its codec; each end asks here for it.
//
// A codec knows tensors and no network. It is the stage between slicing and framing on the way
// out, and between the message and the updater on the way in.
#ifndef LEEWAY_COMPRESS_CODEC_H_
#define LEEWAY_COMPRESS_CODEC_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "leeway/dtype.h"
#include "runtime/buffer.h"

namespace leeway::compress {

// Stateless, so that any thread may use it; what a lossy codec drops is kept by the caller.
class Codec {
 public:
  virtual ~Codec() = default;

  virtual bool Supports(DType dtype) const = 0;
  // Whether Decode(Encode(x)) is always x. The ends keep residuals only for codecs that lose.
  virtual bool lossless() const = 0;

  // `values`: elements of `dtype`, aligned for it. The result may share memory with `values`.
  virtual absl::StatusOr<runtime::Buffer> Encode(DType dtype, runtime::Buffer values) const = 0;
  // `encoded` may hold anything. INVALID_ARGUMENT unless it gives exactly `elements` elements.
  virtual absl::StatusOr<runtime::Buffer> Decode(DType dtype, std::uint64_t elements,
                                                 runtime::Buffer encoded) const = 0;
};

// NOT_FOUND names the codecs there are. Any thread; the codec lives for ever.
absl::StatusOr<const Codec*> FindCodec(absl::string_view name);

}  // namespace leeway::compress

#endif  // LEEWAY_COMPRESS_CODEC_H_
