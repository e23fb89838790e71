#include "examples/wordnet/graph.h"

#include <algorithm>
#include <set>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leeway::wordnet {
namespace {

enum : std::uint32_t { kAntonym = 0, kHypernym = 1, kHyponym = 3 };

// Each of `count` synsets points to the next three in a circle, and these back.
Synsets Circle(std::uint32_t count) {
  Synsets synsets{.count = count, .pointers = {}};
  for (std::uint32_t i = 0; i < count; ++i) {
    for (std::uint32_t step = 1; step <= 3; ++step) {
      const std::uint32_t other = (i + step) % count;
      synsets.pointers.push_back({i, kHypernym, other});
      synsets.pointers.push_back({other, kHyponym, i});
      synsets.pointers.push_back({i, kAntonym, other});
      synsets.pointers.push_back({other, kAntonym, i});
    }
  }
  return synsets;
}

std::set<std::pair<std::uint32_t, std::uint32_t>> PairsOf(const std::vector<Triple>& triples) {
  std::set<std::pair<std::uint32_t, std::uint32_t>> pairs;
  for (const Triple& triple : triples) pairs.insert(std::minmax(triple.head, triple.tail));
  return pairs;
}

TEST(Graph, TheRelationsOfTheTestAreThese) {
  ASSERT_EQ(Relations()[kAntonym].name, "antonym");
  ASSERT_EQ(Relations()[kHypernym].name, "hypernym");
  ASSERT_TRUE(Relations()[kHyponym].repeats_another);
}

TEST(Graph, NoPairIsOnBothSidesOfTheSplit) {
  const absl::StatusOr<Graph> graph = MakeGraph(Circle(1000), {.core = 3, .held_out_every = 10});
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(graph->entities, 1000u);
  EXPECT_EQ(graph->relations, 2u);  // hyponym repeats hypernym
  EXPECT_EQ(graph->train.size() + graph->held_out.size(), 9000u);
  EXPECT_NEAR(static_cast<double>(graph->held_out.size()), 900, 300);
  const auto train = PairsOf(graph->train);
  for (const auto& pair : PairsOf(graph->held_out)) EXPECT_FALSE(train.contains(pair));
  EXPECT_TRUE(std::is_sorted(graph->train.begin(), graph->train.end()));
}

TEST(Graph, TheSplitIsTheSameEveryTime) {
  const absl::StatusOr<Graph> first = MakeGraph(Circle(100), {});
  Synsets repeated = Circle(100);
  repeated.pointers.insert(repeated.pointers.end(), repeated.pointers.rbegin(),
                           repeated.pointers.rend());
  const absl::StatusOr<Graph> second = MakeGraph(repeated, {});
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->train, second->train);
  EXPECT_EQ(first->held_out, second->held_out);
}

// A chain attached to the circle is removed link by link; a pointer to itself counts for nothing.
TEST(Graph, SynsetsWithFewNeighboursAreLeftOut) {
  Synsets synsets = Circle(100);
  synsets.count += 5;
  for (std::uint32_t i = 100; i < synsets.count; ++i) {
    synsets.pointers.push_back({i, kHypernym, i - 1});
    synsets.pointers.push_back({i, kHypernym, i});
  }
  const absl::StatusOr<Graph> core = MakeGraph(synsets, {.core = 2});
  ASSERT_TRUE(core.ok()) << core.status();
  EXPECT_EQ(core->entities, 100u);
  EXPECT_EQ(MakeGraph(synsets, {.core = 7}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Graph, HeldOutEntitiesOccurInTraining) {
  // Half of all pairs are held out, and many synsets have one alone.
  Synsets synsets{.count = 1000, .pointers = {}};
  for (std::uint32_t i = 1; i < synsets.count; ++i)
    synsets.pointers.push_back({i, kHypernym, i / 2});
  const absl::StatusOr<Graph> graph = MakeGraph(synsets, {.core = 1, .held_out_every = 2});
  ASSERT_TRUE(graph.ok()) << graph.status();
  std::set<std::uint32_t> trained;
  for (const Triple& triple : graph->train) trained.insert({triple.head, triple.tail});
  EXPECT_EQ(trained.size(), graph->entities);
  EXPECT_LT(graph->train.size() + graph->held_out.size(), 999u);
  for (const Triple& triple : graph->held_out) {
    EXPECT_TRUE(trained.contains(triple.head) && trained.contains(triple.tail));
  }
}

// Held-out triples whose other direction is trained with.
TEST(Graph, TheTwoDirectionsOfAPairMayBeParted) {
  Synsets synsets{.count = 1000, .pointers = {}};
  for (std::uint32_t i = 0; i < synsets.count; ++i) {
    const std::uint32_t next = (i + 1) % synsets.count;
    synsets.pointers.push_back({i, kHypernym, next});
    synsets.pointers.push_back({next, kHypernym, i});
  }
  for (const bool together : {true, false}) {
    const absl::StatusOr<Graph> graph =
        MakeGraph(synsets, {.core = 1, .held_out_every = 10, .keep_pairs_together = together});
    ASSERT_TRUE(graph.ok()) << graph.status();
    const auto parted = std::ranges::count_if(graph->held_out, [&](const Triple& triple) {
      const Triple other{triple.tail, triple.relation, triple.head};
      return std::ranges::binary_search(graph->train, other);
    });
    EXPECT_EQ(parted == 0, together) << parted;
  }
}

TEST(Graph, OptionsOutOfRangeAreRefused) {
  for (const GraphOptions& options : {GraphOptions{.core = 0}, GraphOptions{.held_out_every = 1}}) {
    EXPECT_EQ(MakeGraph(Circle(100), options).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace leeway::wordnet
