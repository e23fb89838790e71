#include "proto/encoding/write_fields.h"

#include <cstring>

namespace leeway::proto {

// A reason may hold anything (an error text of the system or of a user). Bytes that Decode would
// refuse are replaced, since that is better than to lose the whole message.
Place WriteReason(Builder& out, absl::string_view reason, std::size_t bytes_max) {
  if (!out.mend) return WriteText(out, reason);
  if (IsClean(reason, Lines::kMany)) return WriteText(out, Cut(reason, bytes_max));
  return WriteText(out, Cut(Cleaned(Cut(reason, bytes_max), Lines::kMany), bytes_max));
}

bool TableWriter::operator()(const char*, const std::vector<std::string>& all, const Count&,
                             const Utf8& each) {
  std::vector<Place> places;
  places.reserve(all.size());
  for (const std::string& text : all) {
    const absl::string_view sent = each.cut && out_.mend ? Cut(text, each.max) : text;
    places.push_back(Place(out_.CreateString(sent.data(), sent.size()).o));
  }
  return Put(WriteList(places));
}

[[gnu::always_inline]] inline void TableWriter::Write(int size, int field) {
  const auto at = flatbuffers::FieldIndexToOffset(static_cast<flatbuffers::voffset_t>(field));
  const std::uint64_t bits = bits_[field];
  if (size == 0) return out_.AddElement(at, static_cast<std::uint8_t>(bits));
  if (size == 1) return out_.AddElement(at, static_cast<std::uint16_t>(bits));
  if (size == 3) return out_.AddElement(at, bits);
  if (field == fixed_) {
    out_.Align(sizeof(std::uint64_t));
    out_.PushBytes(image_, fixed_bytes_);
    return out_.TrackField(at, out_.GetSize());
  }
  const auto word = static_cast<std::uint32_t>(bits);
  out_.AddElement(at, places_ >> field & 1 ? out_.ReferTo(word) : word);
}

[[gnu::always_inline]] inline void TableWriter::WriteFromLast(int size) {
  for (std::uint64_t left = of_size_[size]; left != 0;) {
    const int field = static_cast<int>(std::bit_width(left)) - 1;
    left ^= std::uint64_t{1} << field;
    Write(size, field);
  }
}

Place TableWriter::Finish() {
  const flatbuffers::uoffset_t start = out_.StartTable();
  std::uint64_t all = of_size_[0] | of_size_[1] | of_size_[2] | of_size_[3];
  if (!in_order_) {
    WriteFromLast(3);
    WriteFromLast(2);
    WriteFromLast(1);
    WriteFromLast(0);
    return Place(out_.EndTable(start));
  }
  for (; all != 0; all &= all - 1) {
    int size = 0;
    while ((of_size_[size] & all & -all) == 0) ++size;
    Write(size, std::countr_zero(all));
  }
  return Place(out_.EndTable(start));
}

}  // namespace leeway::proto
