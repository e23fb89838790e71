// Groups, GroupWriter and GroupReader lay out messages of elements in groups, each with a scale of
// its own and a few bits for each element: the common part of the messages of onebit, ternary and
// qsgd.
//
// Behind what the codec puts in front of it (scales must lie within that):
//
//   2 bytes             elements in a group / 8; 0: all are one group, or each row is one
//   4 bytes a group     its scale, float32, finite and not negative
//   ⌈n·bits / 8⌉ bytes  for each group of n elements, so that each begins at a byte: element i has
//                       bits i·bits … i·bits + bits − 1, the lowest bit of a byte being its first.
//                       The rest of the last byte is written as 0 and ignored by readers.
//
// Where rows are separate each row is split by itself, so that its last group may be short, and the
// number in front is 0 unless groups are smaller than a row.
//
// No elements, no bytes.
#ifndef LEEWAY_COMPRESS_COMMON_GROUPS_H_
#define LEEWAY_COMPRESS_COMMON_GROUPS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compress/common/byte_io.h"
#include "compress/common/options.h"
#include "leeway/codec.h"

namespace leeway::compress {

// The option "group": 0 or a multiple of 8 from 8 to 2^18.
NumberOption GroupOption(double* value);
// INVALID_ARGUMENT: the value is in that range, but no multiple of 8.
absl::Status CheckGroupOption(absl::string_view codec, double value);

// The message of a tensor without elements: INVALID_ARGUMENT if it has bytes.
absl::Status CheckNothing(absl::string_view codec, std::span<const std::byte> encoded);

// The places of each group in the tensor and in the message.
class Groups {
 public:
  // `group` elements in a group; 0: one group, or one for each separate row.
  Groups(const CodecShape& shape, std::uint64_t group, int bits);

  std::size_t count() const { return count_; }
  std::size_t First(std::size_t g) const {
    return g / groups_of_stretch_ * stretch_ + g % groups_of_stretch_ * group_;
  }
  std::size_t Elements(std::size_t g) const {
    const std::size_t left = stretch_ - g % groups_of_stretch_ * group_;
    return std::min({group_, left, elements_ - First(g)});
  }
  // The offset of a group's codes, counted from the end of the scales.
  std::size_t CodesAt(std::size_t g) const {
    return g / groups_of_stretch_ * stretch_bytes_ + g % groups_of_stretch_ * group_bytes_;
  }
  std::size_t CodeBytes() const;
  // The size of all that the comment at the top describes.
  std::size_t MessageBytes() const;

 private:
  std::size_t elements_;
  std::size_t stretch_;  // elements of a row where rows are separate, otherwise all of them
  std::size_t group_;
  std::size_t groups_of_stretch_;
  std::size_t count_ = 0;
  std::size_t group_bytes_;        // of codes
  std::size_t stretch_bytes_ = 0;  // of codes
  int bits_;
};

// A message that is being written: its parts are laid out, and the caller fills them.
class GroupWriter {
 public:
  GroupWriter(const CodecShape& shape, std::uint64_t group, int bits, ByteWriter* writer);

  const Groups& groups() const { return groups_; }
  void PutScale(std::size_t g, float scale) {
    std::memcpy(scales_ + g * sizeof(float), &scale, sizeof(scale));
  }
  float Scale(std::size_t g) const {
    float scale;
    std::memcpy(&scale, scales_ + g * sizeof(float), sizeof(scale));
    return scale;
  }
  std::uint8_t* Codes(std::size_t g) const {
    return reinterpret_cast<std::uint8_t*>(codes_) + groups_.CodesAt(g);
  }

 private:
  Groups groups_;
  std::byte* scales_;
  std::byte* codes_;
};

// A received message, checked.
class GroupReader {
 public:
  // Takes all bytes that `reader` has left. The error says why they are no such message.
  static absl::StatusOr<GroupReader> Of(absl::string_view codec, const CodecShape& shape, int bits,
                                        ByteReader* reader);

  const Groups& groups() const { return groups_; }
  float Scale(std::size_t g) const {
    float scale;
    std::memcpy(&scale, scales_ + g * sizeof(float), sizeof(scale));
    return scale;
  }
  const std::uint8_t* Codes(std::size_t g) const {
    return reinterpret_cast<const std::uint8_t*>(codes_) + groups_.CodesAt(g);
  }

 private:
  GroupReader(const Groups& groups, const std::byte* scales, const std::byte* codes)
      : groups_(groups), scales_(scales), codes_(codes) {}

  Groups groups_;
  const std::byte* scales_;
  const std::byte* codes_;
};

}  // namespace leeway::compress

#endif  // LEEWAY_COMPRESS_COMMON_GROUPS_H_
