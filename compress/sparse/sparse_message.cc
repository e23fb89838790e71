#include "compress/sparse/sparse_message.h"

#include <algorithm>
#include <string>

#include "compress/common/byte_io.h"
#include "compress/kernels/kernels.h"
#include "compress/sparse/largest.h"

namespace leeway::compress {
namespace {

using sparse_internal::LowBits;

constexpr float kLargestHalf = 65504;

std::uint64_t BytesOfBits(std::uint64_t bits) { return (bits + 7) / 8; }

std::uint64_t LowBytes(std::uint64_t elements, std::uint64_t sent) {
  return BytesOfBits(sent * static_cast<std::uint64_t>(LowBits(elements, sent)));
}
std::uint64_t HighBytes(std::uint64_t elements, std::uint64_t sent) {
  return BytesOfBits(sent + ((elements - 1) >> LowBits(elements, sent)));
}

// The parts before the values in the shortest form.
struct ShortestForm {
  SparseForm form;
  std::uint64_t bytes;
};
ShortestForm Shortest(std::uint64_t elements, std::uint64_t sent, SparseValues values) {
  if (sent == 0) return {SparseForm::kNone, 1};
  const std::uint64_t value_bytes = SparseValueBytes(values);
  ShortestForm best = {SparseForm::kDense, 1 + elements * value_bytes};
  const auto try_form = [&](SparseForm form, std::uint64_t places) {
    const std::uint64_t bytes = 1 + places + sent * value_bytes;
    if (bytes < best.bytes) best = {form, bytes};
  };
  const std::uint64_t bitmap = BytesOfBits(elements);
  const std::uint64_t places = 4 + LowBytes(elements, sent) + HighBytes(elements, sent);
  if (bitmap <= places + (places + sent * value_bytes) / 16) {
    try_form(SparseForm::kBitmap, bitmap);
  } else {
    try_form(SparseForm::kPlaces, places);
  }
  return best;
}

// Writes a few bits at a time.
class BitWriter {
 public:
  explicit BitWriter(std::byte* at) : at_(at) {}
  void Put(std::uint32_t bits, int count) {
    bits_ |= static_cast<std::uint64_t>(bits) << held_;
    held_ += count;
    if (held_ < 32) return;
    const auto full = static_cast<std::uint32_t>(bits_);
    std::memcpy(at_, &full, sizeof(full));
    at_ += 4;
    bits_ >>= 32;
    held_ -= 32;
  }
  void Finish() {
    for (; held_ > 0; held_ -= 8, bits_ >>= 8) *at_++ = static_cast<std::byte>(bits_);
  }

 private:
  std::byte* at_;
  std::uint64_t bits_ = 0;
  int held_ = 0;
};

void SetBit(std::byte* bits, std::uint64_t bit) {
  bits[bit >> 3] |= static_cast<std::byte>(1u << (bit & 7));
}

void PutValue(float value, SparseValues format, std::byte* to) {
  if (format == SparseValues::kFloat32) {
    std::memcpy(to, &value, sizeof(value));
  } else {
    const Float16 half = HalfOf(value);
    std::memcpy(to, &half.bits, sizeof(half.bits));
  }
}

}  // namespace

absl::Status TakeSparseValues(absl::string_view codec, CodecOptions* options,
                              SparseValues* values) {
  const auto found = options->find("values");
  if (found == options->end()) return absl::OkStatus();
  if (found->second == "fp32") {
    *values = SparseValues::kFloat32;
  } else if (found->second == "fp16") {
    *values = SparseValues::kFloat16;
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("codec ", codec, ": values is ", found->second, ", may be fp32 or fp16"));
  }
  options->erase(found);
  return absl::OkStatus();
}

Float16 HalfOf(float value) { return Float16(std::clamp(value, -kLargestHalf, kLargestHalf)); }

float SentValue(float value, SparseValues values) {
  return values == SparseValues::kFloat32 ? value : static_cast<float>(HalfOf(value));
}

std::size_t SparseMessageBytes(std::uint64_t elements, std::uint64_t sent, SparseValues values) {
  return elements == 0 ? 0 : Shortest(elements, sent, values).bytes;
}

// The size of the dense form: each other form is used only if it is shorter than that.
std::size_t SparseMessageBytesMax(std::uint64_t elements, SparseValues values) {
  return elements == 0 ? 0 : 1 + elements * SparseValueBytes(values);
}

std::size_t WriteSparseMessage(std::span<const std::uint32_t> places, const float* values,
                               std::uint64_t elements, SparseValues format,
                               std::span<std::byte> out) {
  if (elements == 0) return 0;
  const std::uint64_t sent = places.size(), value_bytes = SparseValueBytes(format);
  const ShortestForm shortest = Shortest(elements, sent, format);
  ByteWriter writer(out);
  writer.Put(static_cast<std::uint8_t>(static_cast<unsigned>(shortest.form) |
                                       static_cast<unsigned>(format)));
  switch (shortest.form) {
    case SparseForm::kNone:
      return writer.size();
    case SparseForm::kDense: {
      std::byte* const to = writer.Skip(elements * value_bytes);
      std::memset(to, 0, elements * value_bytes);
      for (const std::uint32_t place : places) {
        PutValue(values[place], format, to + place * value_bytes);
      }
      return writer.size();
    }
    case SparseForm::kBitmap: {
      const std::uint64_t bytes = BytesOfBits(elements);
      std::byte* const bitmap = writer.Skip(bytes);
      std::memset(bitmap, 0, bytes);
      for (const std::uint32_t place : places) SetBit(bitmap, place);
      break;
    }
    case SparseForm::kPlaces: {
      writer.Put(static_cast<std::uint32_t>(sent));
      const int low_bits = LowBits(elements, sent);
      const std::uint32_t low_mask = (1u << low_bits) - 1;
      BitWriter low(writer.Skip(LowBytes(elements, sent)));
      const std::uint64_t high_bytes = HighBytes(elements, sent);
      std::byte* const high = writer.Skip(high_bytes);
      std::memset(high, 0, high_bytes);
      for (std::uint64_t i = 0; i < sent; ++i) {
        low.Put(places[i] & low_mask, low_bits);
        SetBit(high, (places[i] >> low_bits) + i);
      }
      low.Finish();
      break;
    }
  }
  std::byte* const to = writer.Skip(sent * value_bytes);
  for (std::uint64_t i = 0; i < sent; ++i) {
    PutValue(values[places[i]], format, to + i * value_bytes);
  }
  return writer.size();
}

void SubtractSent(std::span<const std::uint32_t> places, SparseValues values, float* carried) {
  for (const std::uint32_t place : places) carried[place] -= SentValue(carried[place], values);
}

absl::StatusOr<SparseMessage> ReadSparseMessage(absl::string_view codec,
                                                std::span<const std::byte> encoded,
                                                std::uint64_t elements) {
  SparseMessage message{.elements = elements};
  if (elements == 0) {
    if (encoded.empty()) return message;
    return Malformed(codec, encoded.size(), " bytes for no elements");
  }
  if (elements > kMaxSparseElements) return Malformed(codec, elements, " elements");
  ByteReader reader(encoded);
  std::uint8_t kind = 0;
  if (!reader.Take(&kind)) return Malformed(codec, "no form");
  if ((kind & ~16u) > static_cast<unsigned>(SparseForm::kNone)) {
    return Malformed(codec, "form ", static_cast<int>(kind));
  }
  message.form = static_cast<SparseForm>(kind & 15u);
  message.format = static_cast<SparseValues>(kind & 16u);
  switch (message.form) {
    case SparseForm::kNone:
      break;
    case SparseForm::kDense:
      message.sent = elements;
      break;
    case SparseForm::kBitmap: {
      const std::uint64_t bytes = BytesOfBits(elements);
      message.high = reader.Skip(bytes);
      if (message.high == nullptr) return Malformed(codec, "the bitmap is cut short");
      for (std::uint64_t at = 0; at < bytes; at += 8) {
        message.sent += static_cast<unsigned>(
            std::popcount(sparse_internal::WordOfBits(message.high, bytes, at)));
      }
      if (elements % 8 != 0 && std::to_integer<unsigned>(message.high[bytes - 1]) >> elements % 8) {
        return Malformed(codec, "places beyond ", elements, " elements");
      }
      break;
    }
    case SparseForm::kPlaces: {
      std::uint32_t sent = 0;
      if (!reader.Take(&sent) || sent == 0 || sent > elements) {
        return Malformed(codec, sent, " of ", elements, " elements");
      }
      message.sent = sent;
      message.low = reader.Skip(LowBytes(elements, sent));
      message.high = reader.Skip(HighBytes(elements, sent));
      if (message.low == nullptr || message.high == nullptr) {
        return Malformed(codec, "the places are cut short");
      }
      break;
    }
  }
  const std::size_t value_bytes = message.sent * SparseValueBytes(message.format);
  if (reader.left() != value_bytes) {
    return Malformed(codec, reader.left(), " bytes of values instead of ", value_bytes);
  }
  message.values = reader.Skip(value_bytes);
  return message;
}

namespace {
absl::Status BadPlaceOrValue(absl::string_view codec, const CodecShape& shape) {
  return Malformed(codec, "places that do not ascend below ", shape.elements,
                   ", or a value that is not finite");
}

// Adds whole bytes of the bitmap by the kernel, and the rest one by one. False: a value is not
// finite.
bool AddBitmap(const SparseMessage& message, float factor, float* sum) {
  const std::uint64_t whole = message.elements / 8 * 8;
  unsigned rest = 0;
  if (whole < message.elements) rest = std::to_integer<unsigned>(message.high[whole / 8]);
  const std::uint64_t in_rest = static_cast<unsigned>(std::popcount(rest));
  const std::uint64_t in_whole = message.sent - in_rest;
  std::uint32_t largest = ChosenKernels().sparse.add_where_set(message.high, whole, message.values,
                                                               in_whole, factor, sum);
  const std::byte* from = message.values + 4 * in_whole;
  for (; rest != 0; rest &= rest - 1, from += 4) {
    float value;
    std::memcpy(&value, from, sizeof(value));
    largest = std::max(largest, std::bit_cast<std::uint32_t>(value) & 0x7fffffffu);
    sum[whole + static_cast<unsigned>(std::countr_zero(rest))] += factor * value;
  }
  return largest < kInfiniteMagnitude;
}
}  // namespace

absl::Status SparseCodec::CheckElements(const CodecShape& shape) const {
  if (shape.elements <= kMaxSparseElements) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("codec ", name_, ": ", shape.elements,
                                                 " elements in one message, may be up to ",
                                                 kMaxSparseElements));
}

absl::Status SparseCodec::Check(std::span<const std::byte> encoded, const CodecShape& shape) const {
  LEEWAY_ASSIGN_OR_RETURN(const SparseMessage message,
                          ReadSparseMessage(name_, encoded, shape.elements));
  if (ForEachSent(message, nullptr, [](std::uint64_t, float) {})) return absl::OkStatus();
  return BadPlaceOrValue(name_, shape);
}

absl::Status SparseCodec::Decode(std::span<const std::byte> encoded, const CodecShape& shape,
                                 void* values) const {
  LEEWAY_ASSIGN_OR_RETURN(const SparseMessage message,
                          ReadSparseMessage(name_, encoded, shape.elements));
  float* const to = static_cast<float*>(values);
  if (message.form != SparseForm::kDense) std::fill_n(to, shape.elements, 0.0f);
  if (ForEachSent(message, to, [to](std::uint64_t place, float value) { to[place] = value; })) {
    return absl::OkStatus();
  }
  return BadPlaceOrValue(name_, shape);
}

absl::Status SparseCodec::DecodeAdd(std::span<const std::byte> encoded, const CodecShape& shape,
                                    float factor, float* sum) const {
  LEEWAY_ASSIGN_OR_RETURN(const SparseMessage message,
                          ReadSparseMessage(name_, encoded, shape.elements));
  if (message.form == SparseForm::kBitmap && message.format == SparseValues::kFloat32) {
    if (AddBitmap(message, factor, sum)) return absl::OkStatus();
    return BadPlaceOrValue(name_, shape);
  }
  if (ForEachSent(message, sum, [sum, factor](std::uint64_t place, float value) {
        sum[place] += factor * value;
      })) {
    return absl::OkStatus();
  }
  return BadPlaceOrValue(name_, shape);
}

}  // namespace leeway::compress
