#include "compress/differences/changes.h"

#include <algorithm>
#include <bit>

#include "compress/differences/elements.h"
#include "compress/differences/places.h"
#include "compress/kernels/kernels.h"

namespace leeway::compress {
namespace {

// Elements that are compared before the changed ones among them are looked at again, while both
// versions are in the processor's first cache.
constexpr std::uint64_t kStretch = 64 * kWordBits;

void MarkChanged(const std::byte* before, const std::byte* after, std::size_t size,
                 std::size_t bytes, std::uint64_t* words) {
  const NonzeroKernels& kernels = ChosenKernels().nonzero;
  const auto differ = bytes == 1   ? kernels.differ1
                      : bytes == 2 ? kernels.differ2
                      : bytes == 4 ? kernels.differ4
                                   : kernels.differ8;
  differ(before, after, size, words);
}

// Writes the places of the bits that are set in the words to `to`, and returns their number. There
// are few in a word: the first two are written in any case, so that no branch depends on whether
// there are. `to` has room for two more than there are bits.
std::size_t PlacesOf(const std::uint64_t* words, std::size_t size, std::uint64_t first,
                     std::uint64_t* to) {
  const std::uint64_t* const begin = to;
  for (std::size_t w = 0; w < size; ++w, first += kWordBits) {
    std::uint64_t word = words[w];
    const int count = std::popcount(word);
    for (int i = 0; i < 2; ++i, word &= word - 1) {
      to[i] = first + static_cast<std::uint64_t>(std::countr_zero(word));
    }
    for (int i = 2; i < count; ++i, word &= word - 1) {
      to[i] = first + static_cast<std::uint64_t>(std::countr_zero(word));
    }
    to += count;
  }
  return static_cast<std::size_t>(to - begin);
}

template <class Unsigned>
void AddChanges(const std::byte* before, const std::byte* after,
                std::span<const std::uint64_t> places, Changes* changes) {
  std::byte* const codes = changes->codes.get() + changes->count * sizeof(Unsigned);
  for (std::size_t i = 0; i < places.size(); ++i) {
    const auto difference = static_cast<Unsigned>(ElementAt<Unsigned>(after, places[i]) -
                                                  ElementAt<Unsigned>(before, places[i]));
    SetElement(codes, i, ZigZag(difference));
  }
  changes->count += places.size();
  std::byte* to = changes->gaps.get() + changes->gap_bytes;
  const std::byte* const end = changes->gaps.get() + changes->bitmap_bytes;
  std::uint64_t next = changes->next;
  for (std::size_t i = 0; i < places.size() && to < end; ++i) {
    to += WriteGap(places[i] - next, to);
    next = places[i] + 1;
  }
  changes->next = next;
  changes->gap_bytes = static_cast<std::uint64_t>(to - changes->gaps.get());
}

template <class Unsigned>
Changes FindChangesOf(const std::byte* before, const std::byte* after, std::uint64_t elements) {
  Changes changes(elements, sizeof(Unsigned));
  std::uint64_t places[kStretch + 2];
  for (std::uint64_t first = 0; first < elements; first += kStretch) {
    const std::uint64_t size = std::min(kStretch, elements - first), at = first * sizeof(Unsigned);
    std::uint64_t* const words = changes.words.get() + first / kWordBits;
    MarkChanged(before + at, after + at, size, sizeof(Unsigned), words);
    const std::size_t found = PlacesOf(words, (size + kWordBits - 1) / kWordBits, first, places);
    AddChanges<Unsigned>(before, after, {places, found}, &changes);
  }
  return changes;
}

}  // namespace

Changes::Changes(std::uint64_t elements, std::size_t element_bytes)
    : bitmap_bytes(BitmapBytes(elements)),
      words(std::make_unique_for_overwrite<std::uint64_t[]>(BitmapWords(elements))),
      gaps(std::make_unique_for_overwrite<std::byte[]>(bitmap_bytes + kGapBytesMax)),
      codes(std::make_unique_for_overwrite<std::byte[]>(elements * element_bytes)) {}

Changes FindChanges(const std::byte* before, const std::byte* after, std::uint64_t elements,
                    std::size_t element_bytes) {
  return WithElement(element_bytes, [&](auto element) {
    return FindChangesOf<decltype(element)>(before, after, elements);
  });
}

}  // namespace leeway::compress
