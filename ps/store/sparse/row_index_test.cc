#include "ps/store/sparse/row_index.h"

#include <algorithm>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/base/random.h"

namespace leeway::ps {
namespace {

// Rows that are nothing but their keys, and how often these are looked at.
struct KeyList {
  std::uint64_t KeyAt(RowIndex::RowLocation place) const {
    ++looks;
    return keys[place];
  }
  void PrefetchKey(RowIndex::RowLocation) const {}

  std::vector<std::uint64_t> keys;
  mutable std::uint64_t looks = 0;
};

class Indexed {
 public:
  explicit Indexed(std::uint64_t seed = 1) : index_(seed) {}

  void Insert(std::uint64_t key) {
    list_.keys.push_back(key);
    index_.Insert(index_.HashOf(key), static_cast<RowIndex::RowLocation>(list_.keys.size() - 1),
                  list_);
  }
  const RowIndex::RowLocation* Find(std::uint64_t key) const {
    return index_.Find(key, index_.HashOf(key), list_);
  }
  std::uint64_t LooksToFindAll() const {
    list_.looks = 0;
    for (std::uint32_t i = 0; i < list_.keys.size(); ++i) {
      const RowIndex::RowLocation* const place = Find(list_.keys[i]);
      EXPECT_TRUE(place != nullptr && *place == i) << i;
    }
    return list_.looks;
  }

  RowIndex index_;
  KeyList list_;
};

TEST(RowIndex, FindsExistingKeysOnly) {
  for (const std::uint64_t size : {0, 1, 9, 10, 11, 12, 13, 1000, 3000, 4100, 100'000}) {
    Indexed rows;
    runtime::Random random(size);
    for (std::uint64_t i = 0; i < size; ++i) rows.Insert(random.Next() << 1);
    EXPECT_EQ(rows.index_.size(), size);
    rows.LooksToFindAll();
    for (int i = 0; i < 1000; ++i) EXPECT_EQ(rows.Find(random.Next() | 1), nullptr);
  }
}

TEST(RowIndex, FindsEachKeyAgainAfterEachInsertion) {
  Indexed rows;
  for (std::uint64_t key = 0; key < 1000; ++key) {
    rows.Insert(key);
    rows.LooksToFindAll();
  }
}

TEST(RowIndex, APlaceThatWasFoundMayBeChanged) {
  Indexed rows;
  for (std::uint64_t key = 0; key < 100; ++key) rows.Insert(key);
  rows.list_.keys.push_back(42);  // the row has moved there
  *const_cast<RowIndex::RowLocation*>(rows.Find(42)) = 100;
  EXPECT_EQ(*rows.Find(42), 100u);
}

// As who looks keys up one after the other does, to know what to fetch.
const RowIndex::RowLocation* GuessOf(const RowIndex& index, std::uint64_t key) {
  const RowIndex::Home home = RowIndex::Homes(index).Of(key);
  const RowIndex::RowLocation* const guess = home.Guess();
  return guess == nullptr && home.full() ? index.GuessBeyondHome(key) : guess;
}

// What lies ahead is fetched by it, at every size, however full the groups are then.
TEST(RowIndex, AGuessIsNearlyAlwaysRight) {
  Indexed rows;
  runtime::Random random(1);
  bool some_beyond = false;
  for (const std::size_t size : {100, 1000, 4000, 5000, 30'000, 60'000, 100'000}) {
    while (rows.list_.keys.size() < size) rows.Insert(random.Next());
    std::size_t right = 0, at_home = 0;
    for (std::uint32_t i = 0; i < size; ++i) {
      const std::uint64_t key = rows.list_.keys[i];
      const RowIndex::RowLocation* const guess = GuessOf(rows.index_, key);
      right += guess != nullptr && *guess == i;
      at_home += RowIndex::Homes(rows.index_).Of(key).Guess() != nullptr;
    }
    EXPECT_GT(right, size * 95 / 100) << size;
    some_beyond = some_beyond || at_home < size;
  }
  EXPECT_TRUE(some_beyond);
}

TEST(RowIndex, MissingKeysAreSeldomGuessed) {
  Indexed rows;
  runtime::Random random(1);
  EXPECT_EQ(GuessOf(rows.index_, 1), nullptr);
  for (int i = 0; i < 50'000; ++i) rows.Insert(random.Next() << 1);
  int guessed = 0;
  for (int i = 0; i < 10'000; ++i) {
    guessed += GuessOf(rows.index_, random.Next() | 1) != nullptr;
  }
  EXPECT_LT(guessed, 1000);
}

// Who has found homes asks whether they are still right.
TEST(RowIndex, TheLayoutChangesWheneverGroupsMove) {
  Indexed rows;
  runtime::Random random(1);
  std::uint64_t layout = rows.index_.layout();
  std::uint64_t changes = 0;
  while (rows.list_.keys.size() < 20'000) {
    const RowIndex::Home before = RowIndex::Homes(rows.index_).Of(7);
    rows.Insert(random.Next());
    const RowIndex::Home after = RowIndex::Homes(rows.index_).Of(7);
    EXPECT_TRUE(before == after || rows.index_.layout() != layout);
    changes += rows.index_.layout() != layout;
    layout = rows.index_.layout();
  }
  EXPECT_GT(changes, 10u);
  EXPECT_LT(changes, 200u);
}

// However many there are.
TEST(RowIndex, NoInsertionMovesMoreThanAFewThousand) {
  Indexed rows;
  std::uint64_t most = 0;
  for (std::uint64_t key = 0; key < 300'000; ++key) {
    rows.list_.looks = 0;
    rows.Insert(key);
    most = std::max(most, rows.list_.looks);
  }
  EXPECT_GT(most, 1000u);
  EXPECT_LT(most, 5000u);
}

// Keys as users choose them, or as somebody does who does not know the seed.
TEST(RowIndex, RegularKeysDoNotMeet) {
  for (const std::uint64_t factor :
       {std::uint64_t{1}, std::uint64_t{1} << 20, std::uint64_t{1} << 44,
        std::uint64_t{12345678901}, 0x9e3779b97f4a7c15, 0x9fb21c651e98df25, 0xd6e8feb86659fd93}) {
    Indexed rows(factor);
    for (std::uint64_t i = 0; i < 50'000; ++i) rows.Insert(i * factor);
    EXPECT_LT(rows.LooksToFindAll(), 50'000 * 1.1) << factor;
  }
}

// Chosen by one who knows the seed: their hashes all begin with the same bits.
TEST(RowIndex, KeysWithEqualHashBytesAreFound) {
  constexpr std::uint64_t kKeys = 6000;
  Indexed known(1), other(2);
  for (std::uint64_t key = 0; known.index_.size() < kKeys; ++key) {
    if (known.index_.HashOf(key) >> 50 != 0) continue;
    known.Insert(key);
    other.Insert(key);
  }
  EXPECT_LT(known.LooksToFindAll(), kKeys * 1.2);
  EXPECT_LT(known.index_.bytes(), kKeys * 16);
  EXPECT_LT(other.LooksToFindAll(), kKeys * 1.1);
  EXPECT_LT(other.index_.bytes(), kKeys * 16);
}

}  // namespace
}  // namespace leeway::ps
