#include "compress/common/dithering.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "compress/common/byte_io.h"
#include "runtime/base/random.h"
#include "runtime/base/status_macros.h"

namespace leeway::compress {
namespace {

constexpr std::uint8_t kNatural = 0x80;
constexpr int kMinBits = 2, kMaxBits = 8;
// Elements whose codes, a byte each, are made or taken apart in one piece; a multiple of 8, so that
// each piece begins at a byte of the message.
constexpr std::size_t kCodesAtOnce = 1024;

const LevelKernels& KernelOf(bool natural) {
  const DitherKernels& kernels = ChosenKernels().dither;
  return natural ? kernels.natural : kernels.uniform;
}

std::size_t PackedBytes(std::size_t elements, int bits) {
  return elements * static_cast<std::size_t>(bits) / 8;
}

std::uint64_t KeyOf(const EncodeTerms& terms) {
  return runtime::RandomAt(terms.seed, terms.step, 0);
}

// The front of a message; behind it are the parts that groups.h describes.
struct Front {
  int bits;
  bool natural;
};

absl::StatusOr<Front> TakeFront(absl::string_view name, ByteReader* reader) {
  std::uint8_t form = 0;
  if (!reader->Take(&form)) return Malformed(name, "it is empty");
  const Front front = {.bits = form & ~kNatural, .natural = (form & kNatural) != 0};
  if (front.bits < kMinBits || front.bits > kMaxBits) {
    return Malformed(name, front.bits, " bits for an element");
  }
  return front;
}

}  // namespace

const LevelKernels& Dithering::Kernel() const { return KernelOf(options_.natural); }

bool Dithering::contracts() const {
  if (options_.fit) return true;
  if (!options_.euclidean) return options_.bits > kMinBits;
  if (options_.group == 0) return false;  // of any length
  const double levels = std::ldexp(1.0, options_.bits - 1) - 1;
  const double lowest = options_.natural ? std::exp2(1 - levels) : 1 / levels;
  return lowest * std::sqrt(static_cast<double>(options_.group)) < 1;
}

std::size_t Dithering::EncodedBytesMax(const CodecShape& shape) const {
  if (shape.elements == 0) return 0;
  return 1 + Groups(shape, options_.group, options_.bits).MessageBytes();
}

absl::Status Dithering::PutScale(const float* values, std::size_t g, GroupWriter* message) const {
  const float* const from = values + message->groups().First(g);
  const std::size_t size = message->groups().Elements(g);
  const Kernels& kernels = ChosenKernels();
  const float largest = kernels.reduce.max_abs(from, size);
  if (!std::isfinite(largest)) return NotFinite(name_);
  double scale = largest;
  if (options_.euclidean) {
    scale = std::min<double>(std::sqrt(kernels.dither.sum_squares(from, size)),
                             std::numeric_limits<float>::max());
  }
  if (options_.clip > 0) {
    const double mean = kernels.dither.sum_squares(from, size) / static_cast<double>(size);
    scale = std::min(scale, options_.clip * std::sqrt(mean));
  }
  message->PutScale(g, static_cast<float>(scale));
  return absl::OkStatus();
}

void Dithering::PutGroup(const float* values, std::uint64_t key, std::size_t g,
                         GroupWriter* message) const {
  const auto round = Kernel().round;
  const auto pack = ChosenKernels().dither.pack;
  const std::size_t first = message->groups().First(g), size = message->groups().Elements(g);
  const float scale = message->Scale(g);
  std::uint8_t codes[kCodesAtOnce];
  double sum = 0;  // of the magnitudes of elements that are sent
  std::size_t sent = 0;
  for (std::size_t i = 0; i < size; i += kCodesAtOnce) {
    const std::size_t elements = std::min(kCodesAtOnce, size - i);
    const float* const from = values + first + i;
    round(from, elements, scale, options_.bits, key, static_cast<std::uint32_t>(first + i), codes);
    pack(codes, elements, options_.bits, message->Codes(g) + PackedBytes(i, options_.bits));
    if (!options_.fit) continue;
    for (std::size_t j = 0; j < elements; ++j) {
      if ((codes[j] & 1) == 0) continue;
      sum += static_cast<double>(std::abs(from[j]));
      ++sent;
    }
  }
  // <v, t> / <t, t> for the drawn signs t: the remainder, v − scale · t, is at right angles to t.
  if (sent > 0) message->PutScale(g, static_cast<float>(sum / static_cast<double>(sent)));
}

template <class Piece>
void Dithering::WalkGroup(std::size_t g, const GroupWriter& message, const Piece& piece) const {
  const auto unpack = ChosenKernels().dither.unpack;
  const std::size_t first = message.groups().First(g), size = message.groups().Elements(g);
  std::uint8_t codes[kCodesAtOnce];
  for (std::size_t i = 0; i < size; i += kCodesAtOnce) {
    const std::size_t elements = std::min(kCodesAtOnce, size - i);
    unpack(message.Codes(g) + PackedBytes(i, options_.bits), elements, options_.bits, codes);
    piece(codes, first + i, elements);
  }
}

absl::StatusOr<std::size_t> Dithering::Encode(const void* values, const EncodeTerms& terms,
                                              std::span<std::byte> out) const {
  if (terms.shape.elements == 0) return 0;
  const float* const from = static_cast<const float*>(values);
  const std::uint64_t key = KeyOf(terms);
  ByteWriter writer(out);
  writer.Put(static_cast<std::uint8_t>(options_.bits | (options_.natural ? kNatural : 0)));
  GroupWriter message(terms.shape, options_.group, options_.bits, &writer);
  for (std::size_t g = 0; g < message.groups().count(); ++g) {
    LEEWAY_RETURN_IF_ERROR(PutScale(from, g, &message));
    PutGroup(from, key, g, &message);
  }
  return writer.size();
}

// Finds all scales before any element changes: if a group is refused, all must stay as they are.
absl::StatusOr<std::size_t> Dithering::EncodeAndSubtract(float* carried, const EncodeTerms& terms,
                                                         std::span<std::byte> out) const {
  if (terms.shape.elements == 0) return 0;
  const std::uint64_t key = KeyOf(terms);
  ByteWriter writer(out);
  writer.Put(static_cast<std::uint8_t>(options_.bits | (options_.natural ? kNatural : 0)));
  GroupWriter message(terms.shape, options_.group, options_.bits, &writer);
  for (std::size_t g = 0; g < message.groups().count(); ++g) {
    LEEWAY_RETURN_IF_ERROR(PutScale(carried, g, &message));
  }
  const auto add = Kernel().add;
  for (std::size_t g = 0; g < message.groups().count(); ++g) {
    PutGroup(carried, key, g, &message);
    const float scale = message.Scale(g);
    WalkGroup(g, message, [&](const std::uint8_t* codes, std::size_t first, std::size_t elements) {
      add(codes, elements, scale, options_.bits, -1, carried + first);
    });
  }
  return writer.size();
}

template <class Piece>
absl::Status Dithering::Walk(std::span<const std::byte> encoded, const CodecShape& shape,
                             const Piece& piece) const {
  if (shape.elements == 0) return CheckNothing(name_, encoded);
  ByteReader reader(encoded);
  LEEWAY_ASSIGN_OR_RETURN(const Front front, TakeFront(name_, &reader));
  LEEWAY_ASSIGN_OR_RETURN(const GroupReader message,
                          GroupReader::Of(name_, shape, front.bits, &reader));
  const LevelKernels& kernel = KernelOf(front.natural);
  const auto unpack = ChosenKernels().dither.unpack;
  std::uint8_t codes[kCodesAtOnce];
  for (std::size_t g = 0; g < message.groups().count(); ++g) {
    const std::size_t first = message.groups().First(g), size = message.groups().Elements(g);
    const float scale = message.Scale(g);
    for (std::size_t i = 0; i < size; i += kCodesAtOnce) {
      const std::size_t elements = std::min(kCodesAtOnce, size - i);
      unpack(message.Codes(g) + PackedBytes(i, front.bits), elements, front.bits, codes);
      piece(kernel, codes, first + i, elements, scale, front.bits);
    }
  }
  return absl::OkStatus();
}

absl::Status Dithering::Check(std::span<const std::byte> encoded, const CodecShape& shape) const {
  if (shape.elements == 0) return CheckNothing(name_, encoded);
  ByteReader reader(encoded);
  LEEWAY_ASSIGN_OR_RETURN(const Front front, TakeFront(name_, &reader));
  return GroupReader::Of(name_, shape, front.bits, &reader).status();
}

absl::Status Dithering::Decode(std::span<const std::byte> encoded, const CodecShape& shape,
                               void* values) const {
  float* const to = static_cast<float*>(values);
  return Walk(encoded, shape,
              [to](const LevelKernels& kernel, const std::uint8_t* codes, std::size_t first,
                   std::size_t elements, float scale,
                   int bits) { kernel.restore(codes, elements, scale, bits, to + first); });
}

absl::Status Dithering::DecodeAdd(std::span<const std::byte> encoded, const CodecShape& shape,
                                  float factor, float* sum) const {
  return Walk(encoded, shape,
              [sum, factor](const LevelKernels& kernel, const std::uint8_t* codes,
                            std::size_t first, std::size_t elements, float scale, int bits) {
                kernel.add(codes, elements, scale, bits, factor, sum + first);
              });
}

}  // namespace leeway::compress
