#include "compress/common/groups.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "compress/common/float_codec.h"

namespace leeway::compress {
namespace {

constexpr std::uint64_t kUnit = 8;  // a group has a multiple of it
constexpr std::uint64_t kLargestGroup = std::uint64_t{1} << 18;

// The elements within which groups lie: a row if rows are separate, or all.
std::uint64_t StretchOf(const CodecShape& shape) {
  return shape.separate_rows && shape.columns > 0 ? shape.columns : shape.elements;
}

// The elements of a group within a stretch; `group` 0: the whole stretch.
std::uint64_t GroupWithin(const CodecShape& shape, std::uint64_t group) {
  return shape.separate_rows && group >= StretchOf(shape) ? 0 : group;
}

std::size_t BytesOf(std::size_t elements, int bits) {
  return (elements * static_cast<std::size_t>(bits) + 7) / 8;
}

}  // namespace

NumberOption GroupOption(double* value) {
  return {.name = "group",
          .value = value,
          .low = 0,
          .high = static_cast<double>(kLargestGroup),
          .whole = true};
}

absl::Status CheckGroupOption(absl::string_view codec, double value) {
  if (std::fmod(value, static_cast<double>(kUnit)) == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("codec ", codec, ": group is ", value,
                                                 ", may be a multiple of ", kUnit,
                                                 ", or 0 for one group"));
}

absl::Status CheckNothing(absl::string_view codec, std::span<const std::byte> encoded) {
  if (encoded.empty()) return absl::OkStatus();
  return Malformed(codec, encoded.size(), " bytes for no elements");
}

Groups::Groups(const CodecShape& shape, std::uint64_t group, int bits)
    : elements_(shape.elements),
      stretch_(StretchOf(shape)),
      group_(group == 0 ? stretch_ : std::min<std::uint64_t>(group, stretch_)),
      groups_of_stretch_(NumGroups(stretch_, group_)),
      group_bytes_(BytesOf(group_, bits)),
      bits_(bits) {
  if (elements_ == 0) return;
  const std::size_t last = stretch_ - (groups_of_stretch_ - 1) * group_;
  stretch_bytes_ = (groups_of_stretch_ - 1) * group_bytes_ + BytesOf(last, bits);
  count_ = elements_ / stretch_ * groups_of_stretch_ + NumGroups(elements_ % stretch_, group_);
}

std::size_t Groups::CodeBytes() const {
  if (count_ == 0) return 0;
  return CodesAt(count_ - 1) + BytesOf(Elements(count_ - 1), bits_);
}

std::size_t Groups::MessageBytes() const {
  if (count_ == 0) return 0;
  return sizeof(std::uint16_t) + count_ * sizeof(float) + CodeBytes();
}

GroupWriter::GroupWriter(const CodecShape& shape, std::uint64_t group, int bits, ByteWriter* writer)
    : groups_(shape, group, bits) {
  writer->Put(static_cast<std::uint16_t>(GroupWithin(shape, group) / kUnit));
  scales_ = writer->Skip(groups_.count() * sizeof(float));
  codes_ = writer->Skip(groups_.CodeBytes());
}

absl::StatusOr<GroupReader> GroupReader::Of(absl::string_view codec, const CodecShape& shape,
                                            int bits, ByteReader* reader) {
  std::uint16_t units = 0;
  if (!reader->Take(&units)) return Malformed(codec, "it ends before the size of its groups");
  const std::uint64_t group = units * kUnit;
  if (group > kLargestGroup || group != GroupWithin(shape, group)) {
    return Malformed(codec, "groups of ", group, " elements");
  }
  const Groups groups(shape, group, bits);
  if (reader->left() != groups.count() * sizeof(float) + groups.CodeBytes()) {
    return Malformed(codec, reader->left(), " bytes behind its front are not ", shape.elements,
                     " elements of ", bits, " bits in ", groups.count(), " groups");
  }
  const std::byte* const scales = reader->Skip(groups.count() * sizeof(float));
  GroupReader message(groups, scales, reader->Skip(groups.CodeBytes()));
  for (std::size_t g = 0; g < groups.count(); ++g) {
    const float scale = message.Scale(g);
    if (!std::isfinite(scale) || scale < 0) return Malformed(codec, "scale ", scale);
  }
  return message;
}

}  // namespace leeway::compress
