// sparse: the elements that are not zero, of every type, and their places. Lossless.
//
// An element is zero if all of its bits are: −0.0 and every NaN are values like others. Each
// message takes the shortest of three forms (of equally short ones the first):
//     dense      all elements as they are
//     bitmap     a bit for each element, and the nonzero values
//     indices    the distances from one nonzero value to the next, and the values
//
// Message:
//     1 byte           form: 0 dense, 1 bitmap, 2 indices
//   dense:
//     elements         little-endian
//   bitmap:
//     ⌈elements / 8⌉   bit i mod 8 of byte i / 8: 1 if element i is not zero; no bits beyond
//     values           as many as there are set bits, in their order
//   indices:
//     count            of the values
//     distances        as many: elements skipped since the value before, or since the beginning
//     values           as many
// Count and distances are LEB128 numbers: 7 bits in each byte, the lowest first, the highest bit
// set in all bytes but the last; 10 bytes at most.
//
// Options: none.
// NaN and infinity pass, bit by bit; error feedback has nothing to do.
// DecodeAdd changes only elements of the message: if sum[i] is −0.0 and element i is zero, it stays
// −0.0, where the addition of 0.0 would make it +0.0.
#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>

#include "compress/codecs/builtin.h"
#include "compress/common/byte_io.h"
#include "compress/common/float_codec.h"
#include "compress/common/options.h"
#include "compress/kernels/kernels.h"
#include "runtime/base/status_macros.h"

namespace leeway::compress {
namespace {

enum class Form : std::uint8_t { kDense = 0, kBitmap = 1, kIndices = 2 };

constexpr std::size_t kVarintBytesMax = 10;

std::size_t VarintBytes(std::uint64_t number) {
  return (static_cast<std::size_t>(std::bit_width(number | 1)) + 6) / 7;
}

void PutVarint(std::uint64_t number, ByteWriter* writer) {
  for (; number >= 0x80; number >>= 7) {
    writer->Put(static_cast<std::uint8_t>(number | 0x80));
  }
  writer->Put(static_cast<std::uint8_t>(number));
}

[[nodiscard]] bool TakeVarint(ByteReader* reader, std::uint64_t* number) {
  *number = 0;
  for (std::size_t i = 0; i < kVarintBytesMax; ++i) {
    std::uint8_t byte = 0;
    if (!reader->Take(&byte)) return false;
    const std::uint64_t bits = byte & 0x7f;
    if (i == kVarintBytesMax - 1 && bits > 1) return false;
    *number |= bits << (7 * i);
    if (byte < 0x80) return true;
  }
  return false;
}

constexpr std::uint64_t kWordBits = 64;

std::uint64_t BitmapBytes(std::uint64_t elements) { return (elements + 7) / 8; }

// use(i) for each bit that is set in the words of a bitmap.
template <class Use>
void ForEachSet(std::uint64_t word, std::uint64_t first, Use use) {
  for (; word != 0; word &= word - 1) {
    use(first + static_cast<std::uint64_t>(std::countr_zero(word)));
  }
}

// Eight bitmap bytes of a message; bits beyond their end are 0.
std::uint64_t WordAt(const std::byte* bitmap, std::uint64_t bytes, std::uint64_t at) {
  std::uint64_t word = 0;
  std::memcpy(&word, bitmap + at, std::min<std::uint64_t>(sizeof(word), bytes - at));
  return word;
}

// The elements that are not zero.
class Marks {
 public:
  Marks(const std::byte* values, const CodecShape& shape)
      : size_((shape.elements + kWordBits - 1) / kWordBits),
        words_(std::make_unique_for_overwrite<std::uint64_t[]>(size_)) {
    const NonzeroKernels& kernels = ChosenKernels().nonzero;
    const std::size_t width = SizeOf(shape.dtype);
    const auto mark = width == 2 ? kernels.mark2 : width == 4 ? kernels.mark4 : kernels.mark8;
    mark(values, shape.elements, words_.get());
    for (std::size_t w = 0; w < size_; ++w) {
      count_ += static_cast<std::uint64_t>(std::popcount(words_[w]));
    }
  }

  std::uint64_t count() const { return count_; }
  const std::uint64_t* words() const { return words_.get(); }

  template <class Use>
  void ForEach(Use use) const {
    for (std::size_t w = 0; w < size_; ++w) ForEachSet(words_[w], w * kWordBits, use);
  }
  // Calls use(distance), as a message has it, for each of them.
  template <class Use>
  void ForEachDistance(Use use) const {
    std::uint64_t next = 0;
    ForEach([&](std::uint64_t i) {
      use(i - next);
      next = i + 1;
    });
  }

 private:
  std::size_t size_;
  std::unique_ptr<std::uint64_t[]> words_;
  std::uint64_t count_ = 0;
};

// A message taken apart. Its places are checked while they are read.
struct Message {
  Form form = Form::kDense;
  std::uint64_t count = 0;  // of values
  std::span<const std::byte> places;
  const std::byte* values = nullptr;
};

absl::StatusOr<Message> Read(std::span<const std::byte> encoded, const CodecShape& shape) {
  const std::size_t width = SizeOf(shape.dtype);
  ByteReader reader(encoded);
  Message message;
  if (!reader.Take(&message.form) || message.form > Form::kIndices) {
    return Malformed("sparse", "it begins with no known form");
  }
  if (message.form == Form::kDense) {
    message.count = shape.elements;
  } else if (message.form == Form::kBitmap) {
    const std::uint64_t bytes = BitmapBytes(shape.elements);
    const std::byte* const bitmap = reader.Skip(bytes);
    if (bitmap == nullptr) return Malformed("sparse", encoded.size(), " bytes hold no bitmap");
    for (std::uint64_t at = 0; at < bytes; at += sizeof(std::uint64_t)) {
      message.count += static_cast<std::uint64_t>(std::popcount(WordAt(bitmap, bytes, at)));
    }
    if (shape.elements % 8 != 0 &&
        static_cast<unsigned>(bitmap[bytes - 1]) >> (shape.elements % 8) != 0) {
      return Malformed("sparse", "its bitmap goes beyond ", shape.elements, " elements");
    }
    message.places = {bitmap, bytes};
  } else {
    if (!TakeVarint(&reader, &message.count) || message.count > shape.elements ||
        reader.left() / width < message.count) {
      return Malformed("sparse", encoded.size(), " bytes do not hold its values");
    }
    const std::size_t bytes = reader.left() - message.count * width;
    message.places = {reader.Skip(bytes), bytes};
  }
  if (reader.left() != message.count * width) {
    return Malformed("sparse", encoded.size(), " bytes do not fit ", message.count, " values");
  }
  message.values = reader.Skip(reader.left());
  return message;
}

// Calls use(index, number of the value) for each value of a bitmap or of indices.
template <class Use>
absl::Status ForEachPlace(const Message& message, const CodecShape& shape, Use use) {
  std::uint64_t value = 0;
  if (message.form == Form::kBitmap) {
    const std::uint64_t bytes = message.places.size();
    for (std::uint64_t at = 0; at < bytes; at += sizeof(std::uint64_t)) {
      ForEachSet(WordAt(message.places.data(), bytes, at), at * 8,
                 [&](std::uint64_t i) { use(i, value++); });
    }
    return absl::OkStatus();
  }
  ByteReader reader(message.places);
  std::uint64_t next = 0;
  for (; value < message.count; ++value) {
    std::uint64_t distance = 0;
    if (!TakeVarint(&reader, &distance)) return Malformed("sparse", "a distance is cut off");
    if (distance >= shape.elements - next) {
      return Malformed("sparse", "an index is beyond ", shape.elements, " elements");
    }
    use(next + distance, value);
    next += distance + 1;
  }
  if (reader.left() > 0) return Malformed("sparse", reader.left(), " bytes too many");
  return absl::OkStatus();
}

template <std::size_t width>
void CopyMarked(const Marks& marks, const std::byte* from, std::byte* to) {
  marks.ForEach([&](std::uint64_t i) {
    std::memcpy(to, from + i * width, width);
    to += width;
  });
}

template <std::size_t width>
absl::Status Place(const Message& message, const CodecShape& shape, std::byte* to) {
  return ForEachPlace(message, shape, [&](std::uint64_t i, std::uint64_t value) {
    std::memcpy(to + i * width, message.values + value * width, width);
  });
}

class Sparse final : public Codec {
 public:
  bool Supports(DType) const override { return true; }
  bool lossless() const override { return true; }

  // The size of the dense form; other forms are used only if they are shorter.
  std::size_t EncodedBytesMax(const CodecShape& shape) const override {
    return sizeof(Form) + shape.elements * SizeOf(shape.dtype);
  }

  absl::StatusOr<std::size_t> Encode(const void* values, const EncodeTerms& terms,
                                     std::span<std::byte> out) const override {
    const CodecShape& shape = terms.shape;
    const std::size_t width = SizeOf(shape.dtype);
    const auto* const from = static_cast<const std::byte*>(values);
    const Marks marks(from, shape);
    const std::uint64_t bitmap_bytes = BitmapBytes(shape.elements);
    std::uint64_t index_bytes = VarintBytes(marks.count()) + marks.count();
    if (index_bytes < bitmap_bytes) {  // if each distance took one byte
      marks.ForEachDistance(
          [&](std::uint64_t distance) { index_bytes += VarintBytes(distance) - 1; });
    }

    ByteWriter writer(out);
    const std::uint64_t saved = (shape.elements - marks.count()) * width;
    if (saved <= std::min(bitmap_bytes, index_bytes)) {
      writer.Put(Form::kDense);
      const std::size_t bytes = shape.elements * width;
      if (bytes > 0) std::memcpy(writer.Skip(bytes), from, bytes);
      return writer.size();
    }
    if (index_bytes < bitmap_bytes) {
      writer.Put(Form::kIndices);
      PutVarint(marks.count(), &writer);
      marks.ForEachDistance([&](std::uint64_t distance) { PutVarint(distance, &writer); });
    } else {
      writer.Put(Form::kBitmap);
      std::memcpy(writer.Skip(bitmap_bytes), marks.words(), bitmap_bytes);
    }
    std::byte* const to = writer.Skip(marks.count() * width);
    if (width == 2) CopyMarked<2>(marks, from, to);
    if (width == 4) CopyMarked<4>(marks, from, to);
    if (width == 8) CopyMarked<8>(marks, from, to);
    return writer.size();
  }

  absl::StatusOr<std::size_t> EncodeAndSubtract(float* carried, const EncodeTerms& terms,
                                                std::span<std::byte> out) const override {
    LEEWAY_ASSIGN_OR_RETURN(const std::size_t bytes, Encode(carried, terms, out));
    std::fill_n(carried, terms.shape.elements, 0.0f);
    return bytes;
  }

  absl::Status Check(std::span<const std::byte> encoded, const CodecShape& shape) const override {
    LEEWAY_ASSIGN_OR_RETURN(const Message message, Read(encoded, shape));
    if (message.form != Form::kIndices) return absl::OkStatus();
    return ForEachPlace(message, shape, [](std::uint64_t, std::uint64_t) {});
  }

  absl::Status Decode(std::span<const std::byte> encoded, const CodecShape& shape,
                      void* values) const override {
    LEEWAY_ASSIGN_OR_RETURN(const Message message, Read(encoded, shape));
    const std::size_t width = SizeOf(shape.dtype);
    const std::size_t bytes = shape.elements * width;
    auto* const to = static_cast<std::byte*>(values);
    if (message.form == Form::kDense) {
      if (bytes > 0) std::memcpy(to, message.values, bytes);
      return absl::OkStatus();
    }
    if (bytes > 0) std::memset(to, 0, bytes);
    if (width == 2) return Place<2>(message, shape, to);
    if (width == 4) return Place<4>(message, shape, to);
    return Place<8>(message, shape, to);
  }

  absl::Status DecodeAdd(std::span<const std::byte> encoded, const CodecShape& shape, float factor,
                         float* sum) const override {
    LEEWAY_ASSIGN_OR_RETURN(const Message message, Read(encoded, shape));
    const auto add = [&](std::uint64_t i, std::uint64_t value) {
      float number;
      std::memcpy(&number, message.values + value * sizeof(number), sizeof(number));
      sum[i] += factor * number;
    };
    if (message.form != Form::kDense) return ForEachPlace(message, shape, add);
    for (std::uint64_t i = 0; i < shape.elements; ++i) add(i, i);
    return absl::OkStatus();
  }
};

absl::StatusOr<std::unique_ptr<Codec>> MakeSparse(const CodecOptions& options) {
  LEEWAY_RETURN_IF_ERROR(ReadOptions("sparse", options, {}));
  return std::make_unique<Sparse>();
}

}  // namespace

CodecList SparseCodecs() { return {{"sparse", MakeSparse}}; }

}  // namespace leeway::compress
