// OnePassFeedback is error feedback in one pass over memory, an addition to Codec that built-in
// codecs may implement.
//
// Codec::EncodeAndSubtract reads and writes the residual twice a message: to add it to the values,
// and to subtract the decoded values once the whole message is known (its scale is). Here the
// subtraction waits for the next message, which reads the residual anyway.
#ifndef LEEWAY_COMPRESS_COMMON_ONE_PASS_FEEDBACK_H_
#define LEEWAY_COMPRESS_COMMON_ONE_PASS_FEEDBACK_H_

#include <cstddef>
#include <span>

#include "absl/status/statusor.h"
#include "leeway/codec.h"

namespace leeway::compress {

class OnePassFeedback {
 public:
  virtual ~OnePassFeedback() = default;

  // All arrays have [terms.shape.elements] floats; `carried` overlaps none of the others.
  struct Terms {
    const float* values;
    const float* kept;  // `carried` of the previous call
    // The message that the previous call made; empty: nothing is to be subtracted from `kept`.
    std::span<const std::byte> sent;
    float factor;
    float* carried;
  };

  // Computes carried = values + factor × (kept − decoded sent) and writes its message to `out`,
  // both bit by bit as DecodeAdd(sent, −1, kept), ReduceKernels::carry and Codec::Encode do.
  // Returns the message's bytes. INVALID_ARGUMENT: values or sums hold NaN or infinity, or `sent`
  // is no message of this codec and shape; `carried` is then undefined. Any thread.
  virtual absl::StatusOr<std::size_t> CarryAndEncode(const Terms& carry, const EncodeTerms& terms,
                                                     std::span<std::byte> out) const = 0;
};

}  // namespace leeway::compress

#endif  // LEEWAY_COMPRESS_COMMON_ONE_PASS_FEEDBACK_H_
