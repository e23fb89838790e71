// The index of a shard's rows: an open-addressing hash table from keys to places.
//
// A group of twelve places and a byte of each one's hash fill one cache line, so that to look a key
// up takes one line here, and one to see whether the row there is the key's. The keys themselves
// lie with the rows. Groups make up segments, each of which grows by itself and is cut in two when
// it is large: so no insertion ever moves more than a few thousand places, however many there are.
// Nothing may depend on their order: the hash has a seed, so that nobody can choose keys that meet.
#ifndef LEEWAY_PS_STORE_SPARSE_ROW_INDEX_H_
#define LEEWAY_PS_STORE_SPARSE_ROW_INDEX_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "ps/store/memory/shared_bytes.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace leeway::ps {

// `Keys` has `std::uint64_t KeyAt(RowLocation) const`, the key of the row there, and
// `PrefetchKey(RowLocation)`.
class RowIndex {
  struct Group;
  struct Part;

 public:
  using RowLocation = std::uint32_t;

  explicit RowIndex(std::uint64_t seed);

  std::uint64_t size() const { return size_; }
  std::uint64_t bytes() const;  // of memory

  std::uint64_t HashOf(std::uint64_t key) const { return Hash(key, seeds_); }

  // Begins to bring what a look-up reads into the cache.
  [[gnu::always_inline]] void Prefetch(std::uint64_t hash) const {
    const Part& part = PartOf(hash);
    __builtin_prefetch(part.groups + HomeOf(hash, part.num_groups));
  }

  // The place where the look-up of a key begins: found once, and of use again when the group that
  // is there has come into the cache.
  class Home {
   public:
    Home() = default;
    Home(const Group* group, std::uint64_t tags) : group_(group), tags_(tags) {}

    [[gnu::always_inline]] void Prefetch() const { __builtin_prefetch(group_); }
    // Null, or a place which is most likely that of the key.
    [[gnu::always_inline]] const RowLocation* Guess() const {
      const Matches matches(*group_, tags_);
      return matches.any() ? group_->places + matches.first() : nullptr;
    }
    // Whether the key may be in a group behind this one.
    bool full() const { return group_->full(); }
    bool operator==(const Home&) const = default;

   private:
    const Group* group_ = nullptr;
    std::uint64_t tags_ = 0;
  };

  // The homes of keys, which are where they are until layout() changes. A copy of the little that
  // is needed to find them: after everything that a loop writes it would have to read the index
  // again.
  class Homes {
   public:
    explicit Homes(const RowIndex& index)
        : directory_(index.directory_.data()),
          seeds_{index.seeds_[0], index.seeds_[1]},
          shift_(63 - index.depth_) {}

    [[gnu::always_inline]] Home Of(std::uint64_t key) const {
      const std::uint64_t hash = Hash(key, seeds_);
      const Part& part = directory_[hash >> 1 >> shift_];
      return {part.groups + HomeOf(hash, part.num_groups), TagsOf(hash)};
    }

   private:
    const Part* const directory_;
    const std::uint64_t seeds_[2];
    const std::uint32_t shift_;
  };

  // As Home::Guess, of a key that was not where its home is, which is full.
  const RowLocation* GuessBeyondHome(std::uint64_t key) const;

  // Changes whenever groups move.
  std::uint64_t layout() const { return layout_; }

  // The place of a key, or null. To be written to, until the next Insert.
  template <class Keys>
  RowLocation* Find(std::uint64_t key, std::uint64_t hash, const Keys& keys) const {
    const Part& part = PartOf(hash);
    for (std::uint32_t home = HomeOf(hash, part.num_groups);;) {
      Group& group = part.groups[home];
      for (Matches matches(group, TagsOf(hash)); matches.any(); matches.Next()) {
        RowLocation* const place = group.places + matches.first();
        if (keys.KeyAt(*place) == key) return place;
      }
      if (!group.full()) return nullptr;
      if (++home == part.num_groups) home = 0;
    }
  }

  // Of a key that is not there.
  template <class Keys>
  void Insert(std::uint64_t hash, RowLocation place, const Keys& keys) {
    while (!HasRoom(segments_[PartOf(hash).segment])) MakeRoom(hash, HashesNear(hash, keys));
    Put(segments_[PartOf(hash).segment], hash, place);
    ++size_;
  }

 private:
  static constexpr std::uint32_t kSlots = 12;  // of a group
  static constexpr std::uint64_t kOnes = 0x0101010101010101;
  static constexpr std::uint64_t kMultipliers[] = {0x9fb21c651e98df25, 0xd6e8feb86659fd93};

  // Slots are filled in order and never emptied.
  struct alignas(64) Group {
    std::uint8_t tags[16];  // 0: empty; those beyond kSlots always are
    RowLocation places[kSlots];

    bool full() const { return tags[kSlots - 1] != 0; }
  };

  struct Segment {
    Segment(std::uint32_t groups_in_it, std::uint32_t common)
        : groups(groups_in_it * sizeof(Group)), num_groups(groups_in_it), depth(common) {
      std::memset(groups.data(), 0, groups.size());
    }

    Group* begin() const { return reinterpret_cast<Group*>(groups.data()); }

    SharedBytes groups;  // empty at first
    std::uint32_t num_groups;
    std::uint32_t depth;     // how many of the hash's first bits all in it have in common
    std::uint64_t used = 0;  // slots
  };

  // Of the directory: the segment of the hashes with certain first bits.
  struct Part {
    Group* groups;
    std::uint32_t num_groups;
    std::uint32_t segment;
  };

#if defined(__SSE2__)
  // The slots of a group whose tags are like one.
  class Matches {
   public:
    Matches(const Group& group, std::uint64_t wanted) {
      const __m128i tags = _mm_load_si128(reinterpret_cast<const __m128i*>(group.tags));
      const __m128i like = _mm_cmpeq_epi8(tags, _mm_set1_epi64x(static_cast<std::int64_t>(wanted)));
      slots_ = static_cast<std::uint32_t>(_mm_movemask_epi8(like));  // a tag is never 0
    }
    bool any() const { return slots_ != 0; }
    std::uint32_t first() const { return static_cast<std::uint32_t>(std::countr_zero(slots_)); }
    void Next() { slots_ &= slots_ - 1; }

   private:
    std::uint32_t slots_;  // bits
  };
#else
  // The slots of a group whose tags are like one: in eight bytes at a time, the highest bit of each
  // byte that is. A byte above one that is may be shown as well, by mistake.
  class Matches {
   public:
    Matches(const Group& group, std::uint64_t wanted) {
      std::uint64_t words[2];
      std::memcpy(words, group.tags, sizeof(words));
      low_ = Zeros(words[0] ^ wanted);
      high_ = Zeros(words[1] ^ wanted) & kSlotsOfHigh;
    }
    bool any() const { return (low_ | high_) != 0; }
    std::uint32_t first() const { return low_ != 0 ? ByteOf(low_) : 8 + ByteOf(high_); }
    void Next() {
      std::uint64_t& word = low_ != 0 ? low_ : high_;
      word &= word - 1;
    }

   private:
    static constexpr std::uint64_t kHighs = 0x8080808080808080;
    static constexpr std::uint64_t kSlotsOfHigh = 0x80808080;
    static_assert(std::endian::native == std::endian::little);

    static std::uint64_t Zeros(std::uint64_t word) { return (word - kOnes) & ~word & kHighs; }
    static std::uint32_t ByteOf(std::uint64_t word) {
      return static_cast<std::uint32_t>(std::countr_zero(word)) / 8;
    }

    std::uint64_t low_;
    std::uint64_t high_;
  };
#endif

  __extension__ using Product = unsigned __int128;
  static std::uint64_t Fold(std::uint64_t a, std::uint64_t b) {
    const Product product = static_cast<Product>(a) * b;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  }

  // The first bits of a hash choose the segment, the last ones the group, those between the tag.
  std::size_t IndexOf(std::uint64_t hash) const { return hash >> 1 >> (63 - depth_); }
  const Part& PartOf(std::uint64_t hash) const { return directory_[IndexOf(hash)]; }
  static std::uint64_t Hash(std::uint64_t key, const std::uint64_t (&seeds)[2]) {
    return Fold(Fold(key ^ seeds[0], kMultipliers[0]) ^ seeds[1], kMultipliers[1]);
  }
  static std::uint32_t HomeOf(std::uint64_t hash, std::uint32_t num_groups) {
    return static_cast<std::uint32_t>((hash & 0xffffffff) * num_groups >> 32);
  }
  static std::uint8_t TagOf(std::uint64_t hash) {
    const auto tag = static_cast<std::uint8_t>(hash >> 32);
    return static_cast<std::uint8_t>(tag + (tag == 0));
  }

  // Whether there is room for one more than `used`.
  static bool HasRoom(std::uint32_t num_groups, std::uint64_t used) {
    return used < std::uint64_t{num_groups} * kSlots * 7 / 8;
  }
  static bool HasRoom(const Segment& segment) { return HasRoom(segment.num_groups, segment.used); }
  // The tag eight times, as a group's are compared with it.
  static std::uint64_t TagsOf(std::uint64_t hash) { return TagOf(hash) * kOnes; }
  static void Put(Segment& segment, std::uint64_t hash, RowLocation place);

  struct Hashed {
    std::uint64_t hash;
    RowLocation place;
  };
  // All that are in the segment of a hash.
  template <class Keys>
  std::vector<Hashed> HashesNear(std::uint64_t hash, const Keys& keys) const {
    constexpr std::size_t kAhead = 16;
    std::vector<Hashed> all = PlacesIn(segments_[PartOf(hash).segment]);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (i + kAhead < all.size()) keys.PrefetchKey(all[i + kAhead].place);
      all[i].hash = HashOf(keys.KeyAt(all[i].place));
    }
    return all;
  }
  static std::vector<Hashed> PlacesIn(const Segment& segment);
  void MakeRoom(std::uint64_t hash, const std::vector<Hashed>& all);
  void Cut(std::uint32_t index, const std::vector<Hashed>& all);
  void Show(std::uint32_t index, std::uint64_t hash);

  std::uint64_t seeds_[2];
  std::uint32_t depth_ = 0;  // of the directory: how many of a hash's first bits choose its part
  std::vector<Part> directory_;  // [1 << depth_]
  std::vector<Segment> segments_;
  std::uint64_t size_ = 0;
  std::uint64_t layout_ = 0;
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_STORE_SPARSE_ROW_INDEX_H_
