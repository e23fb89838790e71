#include "ps/store/sparse/row_index.h"

#include <algorithm>
#include <utility>

#include "runtime/base/random.h"

namespace leeway::ps {
namespace {

// A segment that needs more groups is cut into two of two thirds as many each, so that these are
// filled as much as one that has grown.
constexpr std::uint32_t kGroupsMax = 384;
constexpr std::uint32_t kGroupsOfHalf = kGroupsMax / 3 * 2;

// 1, 2, 3, 4, 6, 8, 12, …: steps this small, since slots that are empty take memory as well.
std::uint32_t MoreThan(std::uint32_t groups) {
  if (groups < 3) return groups + 1;
  return std::has_single_bit(groups) ? groups / 2 * 3 : groups / 3 * 4;
}

}  // namespace

RowIndex::RowIndex(std::uint64_t seed)
    : seeds_{runtime::RandomAt(seed, 0, 0), runtime::RandomAt(seed, 0, 1)}, directory_(1) {
  segments_.emplace_back(1, 0);
  Show(0, 0);
}

std::uint64_t RowIndex::bytes() const {
  std::uint64_t bytes =
      directory_.capacity() * sizeof(Part) + segments_.capacity() * sizeof(Segment);
  for (const Segment& segment : segments_) bytes += segment.num_groups * sizeof(Group);
  return bytes;
}

const RowIndex::RowLocation* RowIndex::GuessBeyondHome(std::uint64_t key) const {
  const std::uint64_t hash = HashOf(key);
  const Part& part = PartOf(hash);
  const std::uint32_t home = HomeOf(hash, part.num_groups);
  for (std::uint32_t at = home;;) {
    if (++at == part.num_groups) at = 0;
    const Group& group = part.groups[at];
    const Matches matches(group, TagsOf(hash));
    if (matches.any()) return group.places + matches.first();
    if (!group.full() || at == home) return nullptr;
  }
}

void RowIndex::Put(Segment& segment, std::uint64_t hash, RowLocation place) {
  std::uint32_t home = HomeOf(hash, segment.num_groups);
  while (segment.begin()[home].full()) {
    if (++home == segment.num_groups) home = 0;
  }
  Group& group = segment.begin()[home];
  const auto slot = std::find(group.tags, group.tags + kSlots, 0) - group.tags;
  group.tags[slot] = TagOf(hash);
  group.places[slot] = place;
  ++segment.used;
}

std::vector<RowIndex::Hashed> RowIndex::PlacesIn(const Segment& segment) {
  std::vector<Hashed> all;
  all.reserve(segment.used);
  for (std::uint32_t i = 0; i < segment.num_groups; ++i) {
    const Group& group = segment.begin()[i];
    for (std::uint32_t slot = 0; slot < kSlots && group.tags[slot] != 0; ++slot) {
      all.push_back({0, group.places[slot]});
    }
  }
  return all;
}

void RowIndex::MakeRoom(std::uint64_t hash, const std::vector<Hashed>& all) {
  const std::uint32_t index = PartOf(hash).segment;
  if (segments_[index].num_groups >= kGroupsMax) {
    Cut(index, all);
  } else {
    Segment grown(MoreThan(segments_[index].num_groups), segments_[index].depth);
    for (const Hashed& one : all) Put(grown, one.hash, one.place);
    segments_[index] = std::move(grown);
    Show(index, hash);
  }
}

// In two, by the next bit of the hash; each half has room for those that go there, however they are
// spread.
void RowIndex::Cut(std::uint32_t index, const std::vector<Hashed>& all) {
  const std::uint32_t depth = segments_[index].depth + 1;
  if (depth > depth_) {
    std::vector<Part> parts(2 * directory_.size());
    for (std::size_t i = 0; i < parts.size(); ++i) parts[i] = directory_[i / 2];
    directory_ = std::move(parts);
    ++depth_;
  }
  const std::uint64_t bit = std::uint64_t{1} << (64 - depth);
  std::uint64_t second = 0;  // how many go there
  for (const Hashed& one : all) second += (one.hash & bit) != 0;
  const auto half = [&](std::uint64_t places) {
    std::uint32_t groups = kGroupsOfHalf;
    while (!HasRoom(groups, places)) groups = MoreThan(groups);
    return Segment(groups, depth);
  };
  Segment halves[] = {half(all.size() - second), half(second)};
  for (const Hashed& one : all) Put(halves[(one.hash & bit) != 0], one.hash, one.place);
  segments_[index] = std::move(halves[0]);
  segments_.push_back(std::move(halves[1]));
  const std::uint64_t hash = all.front().hash;
  Show(index, hash & ~bit);
  Show(static_cast<std::uint32_t>(segments_.size() - 1), hash | bit);
}

// In all parts of the directory that lead to a segment, which has hashes like this one.
void RowIndex::Show(std::uint32_t index, std::uint64_t hash) {
  ++layout_;
  const Segment& segment = segments_[index];
  const std::size_t parts = std::size_t{1} << (depth_ - segment.depth);
  const std::size_t first = IndexOf(hash) / parts * parts;
  std::fill_n(directory_.begin() + static_cast<std::ptrdiff_t>(first), parts,
              Part{segment.begin(), segment.num_groups, index});
}

}  // namespace leeway::ps
