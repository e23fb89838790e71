#include "compress/differences/difference.h"

#include <array>
#include <bit>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compress/common/float_codec.h"
#include "compress/common/planes.h"
#include "compress/differences/changes.h"
#include "compress/differences/elements.h"
#include "compress/differences/places.h"
#include "compress/differences/streams.h"
#include "runtime/base/status_macros.h"

namespace leeway::compress {
namespace {

enum class Form : std::uint8_t { kNothing = 0, kGaps = 1, kBitmap = 2 };

void PutPlanes(const Changes& changes, std::size_t planes, std::vector<std::byte>* message) {
  const auto split = std::make_unique_for_overwrite<std::byte[]>(changes.count * planes);
  SplitPlanes(changes.codes.get(), changes.count, planes, split.get());
  for (std::size_t p = 0; p < planes; ++p) {
    // Small differences of both signs, and above them zeros but for a few.
    const Repeats repeats = p == 0 ? Repeats::kBytes : Repeats::kStretches;
    PutStream({split.get() + p * changes.count, changes.count}, repeats, message);
  }
}

// A message that was found to be whole and sound.
struct Parsed {
  std::uint64_t elements;
  Form form = Form::kNothing;
  std::uint64_t count = 0;  // of elements that change
  Stream places = {};
  std::size_t place_bytes = 0;
  std::array<Stream, kPlanesMax> planes = {};
};

absl::Status ArePlaces(const Parsed& parsed) {
  const std::span<const std::byte> places(parsed.places.bytes, parsed.place_bytes);
  if (parsed.form == Form::kGaps) {
    if (ForEachGap(places, parsed.count, parsed.elements, [](std::uint64_t) {})) {
      return absl::OkStatus();
    }
    return Malformed(kDifference, places.size(), " bytes are not the gaps of ", parsed.count,
                     " among ", parsed.elements, " elements");
  }
  std::uint64_t count = 0;
  for (std::uint64_t i = 0; i < parsed.elements; i += kWordBits) {
    count += static_cast<std::uint64_t>(std::popcount(BitmapWord(places, i / kWordBits)));
  }
  if (count != parsed.count) {
    return Malformed(kDifference, count, " elements are marked, not ", parsed.count);
  }
  const std::uint64_t rest = parsed.elements % 8;
  if (rest != 0 && static_cast<std::uint8_t>(places.back()) >> rest != 0) {
    return Malformed(kDifference, "an element behind the last one is marked");
  }
  return absl::OkStatus();
}

absl::StatusOr<Parsed> Parse(std::span<const std::byte> message, std::size_t element_bytes,
                             std::uint64_t elements) {
  ByteReader reader(message);
  Parsed parsed{.elements = elements};
  if (!reader.Take(&parsed.form)) return Malformed(kDifference, "no bytes");
  if (parsed.form > Form::kBitmap) return Malformed(kDifference, "its form is unknown");
  if (parsed.form != Form::kNothing) {
    std::uint64_t place_bytes = BitmapBytes(elements);
    if (!TakeNumber(&reader, &parsed.count) || parsed.count == 0 || parsed.count > elements) {
      return Malformed(kDifference, "it does not change 1 to ", elements, " elements");
    }
    if (parsed.form == Form::kGaps) {
      std::uint64_t gap_bytes = 0;
      if (!TakeNumber(&reader, &gap_bytes) || gap_bytes >= place_bytes) {
        return Malformed(kDifference, "its gaps are no shorter than a bitmap");
      }
      place_bytes = gap_bytes;
    }
    parsed.place_bytes = place_bytes;
    LEEWAY_ASSIGN_OR_RETURN(parsed.places, TakeStream(&reader, place_bytes));
    LEEWAY_RETURN_IF_ERROR(ArePlaces(parsed));
    for (std::size_t p = 0; p < element_bytes; ++p) {
      LEEWAY_ASSIGN_OR_RETURN(parsed.planes[p], TakeStream(&reader, parsed.count));
    }
  }
  if (reader.left() > 0) return Malformed(kDifference, reader.left(), " bytes too many");
  return parsed;
}

template <class Unsigned>
void Apply(const Parsed& parsed, std::byte* values) {
  const std::size_t count = parsed.count;
  const std::byte* planes[kPlanesMax] = {};
  for (std::size_t p = 0; p < sizeof(Unsigned); ++p) planes[p] = parsed.planes[p].bytes;
  const auto codes = std::make_unique_for_overwrite<std::byte[]>(count * sizeof(Unsigned));
  JoinPlanes(planes, count, sizeof(Unsigned), codes.get());

  std::uint64_t changed = 0;
  const auto change = [&](std::uint64_t i) {
    const auto difference = UnZigZag(ElementAt<Unsigned>(codes.get(), changed++));
    SetElement(values, i, static_cast<Unsigned>(ElementAt<Unsigned>(values, i) + difference));
  };
  const std::span<const std::byte> places(parsed.places.bytes, parsed.place_bytes);
  if (parsed.form == Form::kGaps) {
    (void)ForEachGap(places, count, parsed.elements, change);  // Parse has checked them
    return;
  }
  for (std::uint64_t i = 0; i < parsed.elements; i += kWordBits) {
    ForEachBit(BitmapWord(places, i / kWordBits), i, change);
  }
}

}  // namespace

bool EncodeDifference(std::span<const std::byte> before, std::span<const std::byte> after,
                      std::size_t element_bytes, std::vector<std::byte>* message) {
  const std::uint64_t elements = before.size() / element_bytes;
  const Changes changes = FindChanges(before.data(), after.data(), elements, element_bytes);
  const std::size_t begin = message->size();
  const auto put_form = [&](Form form) { message->push_back(static_cast<std::byte>(form)); };
  if (changes.count == 0) {
    put_form(Form::kNothing);
    return true;
  }
  if (changes.gap_bytes < changes.bitmap_bytes) {
    put_form(Form::kGaps);
    PutNumber(changes.count, message);
    PutNumber(changes.gap_bytes, message);
    PutStream({changes.gaps.get(), changes.gap_bytes}, Repeats::kStretches, message);
  } else {
    put_form(Form::kBitmap);
    PutNumber(changes.count, message);
    PutStream(changes.bitmap(), Repeats::kStretches, message);
  }
  PutPlanes(changes, element_bytes, message);
  if (message->size() - begin < before.size()) return true;
  message->resize(begin);
  return false;
}

absl::Status CheckDifference(std::span<const std::byte> message, std::size_t element_bytes,
                             std::uint64_t elements) {
  return Parse(message, element_bytes, elements).status();
}

absl::Status ApplyDifference(std::span<const std::byte> message, std::size_t element_bytes,
                             std::span<std::byte> values) {
  LEEWAY_ASSIGN_OR_RETURN(const Parsed parsed,
                          Parse(message, element_bytes, values.size() / element_bytes));
  if (parsed.form == Form::kNothing) return absl::OkStatus();
  WithElement(element_bytes,
              [&](auto element) { Apply<decltype(element)>(parsed, values.data()); });
  return absl::OkStatus();
}

// The difference of their sum from zeros is the sum of the differences.
absl::StatusOr<bool> MergeDifferences(std::span<const std::span<const std::byte>> messages,
                                      std::size_t element_bytes, std::uint64_t elements,
                                      std::vector<std::byte>* merged) {
  const std::vector<std::byte> zeros(elements * element_bytes);
  std::vector<std::byte> sum = zeros;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const absl::Status applied = ApplyDifference(messages[i], element_bytes, sum);
    if (!applied.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("message ", i, ": ", applied.message()));
    }
  }
  return EncodeDifference(zeros, sum, element_bytes, merged);
}

}  // namespace leeway::compress
