#include "van/shm/memory/shm_arena.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <vector>

#include "van/shm/memory/shm_format.h"

namespace leeway::van {
namespace {

constexpr std::uint64_t kUnit = kShmUnitBytes;

class ShmArenaTest : public testing::Test {
 protected:
  void Reclaim(ShmArena* arena) {
    arena->Reclaim([this](const ShmExtent& e) { return released_.contains(e.generation); }, 1000);
  }
  void Release(const ShmExtent& extent) { released_.insert(extent.generation); }

  std::set<std::uint32_t> released_;
};

TEST_F(ShmArenaTest, GivesTheLowestRunThatIsLongEnough) {
  ShmArena arena(200);
  const auto a = arena.Allocate(3 * kUnit), b = arena.Allocate(1), c = arena.Allocate(100 * kUnit);
  EXPECT_EQ(a->unit, 0u);
  EXPECT_EQ(b->unit, 3u);
  EXPECT_EQ(b->units, 1u);
  EXPECT_EQ(c->unit, 4u);
  EXPECT_FALSE(arena.Allocate(97 * kUnit).has_value());
  EXPECT_EQ(arena.Allocate(96 * kUnit)->unit, 104u);
  EXPECT_EQ(arena.used(), 200u);
  EXPECT_FALSE(arena.Allocate(1).has_value());
  Release(*a);
  Release(*c);
  Reclaim(&arena);
  EXPECT_EQ(arena.Allocate(4 * kUnit)->unit, 4u);
  EXPECT_EQ(arena.Allocate(3 * kUnit)->unit, 0u);
  EXPECT_FALSE(arena.Allocate(97 * kUnit).has_value()) << "free, but not in one piece";
}

TEST_F(ShmArenaTest, NeverGivesMoreThanThereIs) {
  ShmArena arena(64);
  EXPECT_FALSE(arena.Allocate(65 * kUnit).has_value());
  EXPECT_FALSE(arena.Allocate(~0ull - 2 * kUnit).has_value());
  EXPECT_TRUE(arena.Allocate(64 * kUnit).has_value());
}

TEST_F(ShmArenaTest, RecordsThatWereNeverShownAreTakenBack) {
  ShmArena arena(10);
  const auto a = arena.Allocate(4 * kUnit), b = arena.Allocate(4 * kUnit);
  arena.Undo(*b);
  arena.Undo(*a);
  EXPECT_EQ(arena.out(), 0u);
  EXPECT_EQ(arena.Allocate(10 * kUnit)->unit, 0u);
}

// Compares with a model that has a bool for each unit.
TEST_F(ShmArenaTest, RandomUse) {
  std::mt19937 random(5);
  for (const std::uint32_t units : {1u, 63u, 64u, 65u, 1000u}) {
    ShmArena arena(units);
    released_.clear();
    std::vector<bool> used(units, false);
    std::vector<ShmExtent> out;
    for (int step = 0; step < 5000; ++step) {
      if (random() % 2 == 0 && !out.empty()) {
        const std::size_t which = random() % out.size();
        Release(out[which]);
        for (std::uint32_t i = 0; i < out[which].units; ++i) used[out[which].unit + i] = false;
        out.erase(out.begin() + static_cast<std::ptrdiff_t>(which));
        Reclaim(&arena);
        continue;
      }
      const std::uint32_t wanted = random() % (units / 3 + 1) + 1;
      std::uint32_t lowest = units, run = 0;
      for (std::uint32_t i = 0; i < units && lowest == units; ++i) {
        run = used[i] ? 0 : run + 1;
        if (run == wanted) lowest = i + 1 - wanted;
      }
      const auto extent = arena.Allocate(wanted * kUnit);
      ASSERT_EQ(extent.has_value(), lowest < units);
      if (!extent.has_value()) continue;
      ASSERT_EQ(extent->unit, lowest);
      for (std::uint32_t i = 0; i < wanted; ++i) used[lowest + i] = true;
      out.push_back(*extent);
    }
  }
}

}  // namespace
}  // namespace leeway::van
