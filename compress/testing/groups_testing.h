// Helpers for the tests of codecs whose messages are those of groups.h.
#ifndef LEEWAY_COMPRESS_TESTING_GROUPS_TESTING_H_
#define LEEWAY_COMPRESS_TESTING_GROUPS_TESTING_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "compress/registry.h"
#include "gtest/gtest.h"
#include "leeway/codec.h"

namespace leeway::compress::groups_testing {

inline std::shared_ptr<const Codec> Make(const std::string& codec) {
  const auto made = MakeCodec(codec);
  EXPECT_TRUE(made.ok()) << made.status();
  return made->codec;
}

// Encodes all values: terms.shape.elements becomes their number.
inline std::vector<std::uint8_t> Encode(const std::string& codec, const std::vector<float>& values,
                                        EncodeTerms terms = {}) {
  const auto made = Make(codec);
  terms.shape.elements = values.size();
  std::vector<std::uint8_t> out(made->EncodedBytesMax(terms.shape));
  const auto bytes = made->Encode(values.data(), terms, std::as_writable_bytes(std::span(out)));
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(bytes.value_or(0), out.size());  // these codecs know it beforehand
  return out;
}

inline std::vector<float> Decode(const std::string& codec, const std::vector<std::uint8_t>& encoded,
                                 const CodecShape& shape) {
  std::vector<float> values(shape.elements);
  const absl::Status decoded =
      Make(codec)->Decode(std::as_bytes(std::span(encoded)), shape, values.data());
  EXPECT_TRUE(decoded.ok()) << decoded;
  return values;
}

// The error of Check, "" if it is OK.
inline std::string Checked(const std::string& codec, const std::vector<std::uint8_t>& encoded,
                           const CodecShape& shape) {
  const absl::Status status = Make(codec)->Check(std::as_bytes(std::span(encoded)), shape);
  EXPECT_TRUE(status.ok() || status.code() == absl::StatusCode::kInvalidArgument) << status;
  return std::string(status.message());
}

// The scale of a group in a message whose scales begin at byte `front`.
inline float ScaleIn(const std::vector<std::uint8_t>& encoded, std::size_t front,
                     std::size_t group = 0) {
  float scale;
  std::memcpy(&scale, encoded.data() + front + group * sizeof(float), sizeof(scale));
  return scale;
}

inline std::vector<std::uint8_t> LastBytes(const std::vector<std::uint8_t>& encoded,
                                           std::size_t bytes) {
  return {encoded.end() - static_cast<std::ptrdiff_t>(bytes), encoded.end()};
}

}  // namespace leeway::compress::groups_testing

#endif  // LEEWAY_COMPRESS_TESTING_GROUPS_TESTING_H_
