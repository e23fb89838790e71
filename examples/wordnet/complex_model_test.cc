#include "examples/wordnet/complex_model.h"

#include <cmath>
#include <complex>
#include <random>
#include <vector>

#include "examples/wordnet/ranking.h"
#include "examples/wordnet/sampler.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leeway::wordnet {
namespace {

constexpr std::size_t kWidth = 8;

using Row = std::vector<float>;

Row RandomRows(std::size_t rows, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Row values(rows * kWidth);
  for (float& value : values) value = static_cast<float>(random() % 2001) / 1000.0f - 1;
  return values;
}

std::complex<double> At(const float* row, std::size_t k) { return {row[k], row[kWidth / 2 + k]}; }

// The paper's formula, with complex numbers.
double Score(const float* head, const float* relation, const float* tail) {
  std::complex<double> sum = 0;
  for (std::size_t k = 0; k < kWidth / 2; ++k) {
    sum += At(head, k) * At(relation, k) * std::conj(At(tail, k));
  }
  return sum.real();
}

double CubeNorm(const float* row) {
  double sum = 0;
  for (std::size_t k = 0; k < kWidth / 2; ++k) sum += std::pow(std::abs(At(row, k)), 3);
  return sum;
}

double Dot(const Row& a, const Row& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += double{a[i]} * double{b[i]};
  return sum;
}

TEST(ComplexModel, QueriesGiveTheScore) {
  const Row head = RandomRows(1, 1), relation = RandomRows(1, 2), tail = RandomRows(1, 3);
  const double score = Score(head.data(), relation.data(), tail.data());
  Row query(kWidth);
  TailQuery(head, relation, query);
  EXPECT_NEAR(Dot(query, tail), score, 1e-5);
  HeadQuery(relation, tail, query);
  EXPECT_NEAR(Dot(query, head), score, 1e-5);
}

Batch SmallBatch() {
  Batch batch;
  batch.triples = {{0, 0, 1}, {1, 1, 2}, {3, 0, 0}};
  batch.negatives = {4, 2, 5, 1, 4};  // one twice, and some that are true entities
  batch.entities = {10, 11, 12, 13, 14, 15};
  batch.relations = {0, 1};
  batch.entity_rows = RandomRows(6, 4);
  batch.relation_rows = RandomRows(2, 5);
  return batch;
}

double LossOf(const Batch& batch, double decay) {
  double loss = 0;
  const auto entity = [&](std::uint32_t row) { return batch.entity_rows.data() + row * kWidth; };
  for (const Triple& triple : batch.triples) {
    const float* const relation = batch.relation_rows.data() + triple.relation * kWidth;
    const double score = Score(entity(triple.head), relation, entity(triple.tail));
    double tails = std::exp(score), heads = std::exp(score);
    for (const std::uint32_t other : batch.negatives) {
      if (other != triple.tail)
        tails += std::exp(Score(entity(triple.head), relation, entity(other)));
      if (other != triple.head)
        heads += std::exp(Score(entity(other), relation, entity(triple.tail)));
    }
    loss += std::log(tails) + std::log(heads) - 2 * score;
    loss += decay / 3 *
            (CubeNorm(entity(triple.head)) + CubeNorm(relation) + CubeNorm(entity(triple.tail)));
  }
  return loss;
}

TEST(ComplexModel, GradientsAreThoseOfTheLoss) {
  constexpr double kDecay = 0.5;
  Batch batch = SmallBatch();
  const double loss = ComplexModel(kWidth, 0).Gradients(&batch);
  EXPECT_NEAR(loss, LossOf(batch, 0), 1e-4);
  ComplexModel(kWidth, kDecay).Gradients(&batch);
  const auto check = [&](Row* rows, const Row& gradients) {
    ASSERT_EQ(rows->size(), gradients.size());
    for (std::size_t i = 0; i < rows->size(); ++i) {
      const float value = (*rows)[i];
      const float low = value - 0.01f, high = value + 0.01f;
      (*rows)[i] = high;
      const double above = LossOf(batch, kDecay);
      (*rows)[i] = low;
      const double below = LossOf(batch, kDecay);
      (*rows)[i] = value;
      EXPECT_NEAR(gradients[i], (above - below) / (double{high} - double{low}), 2e-3) << i;
    }
  };
  check(&batch.entity_rows, Row(batch.entity_gradients));
  check(&batch.relation_rows, Row(batch.relation_gradients));
}

// One entity and relation a real number each: scores are products.
TEST(Ranking, RanksAreFilteredAndTiesCountHalf) {
  Graph graph{.entities = 5, .relations = 1, .train = {{0, 0, 1}}, .held_out = {{0, 0, 2}}};
  const std::vector<float> relation = {1, 0};
  // Scores as tails of 0: 1 (itself), 9 (filtered), 3 (true), 3 (a tie), 2.
  const std::vector<float> entities = {1, 0, 9, 0, 3, 0, 3, 0, 2, 0};
  // Tail: 1 + 0 + 1/2. Head of (?, 0, 2), scores 3 · value: 1 is last of 5, 1 + 4.
  EXPECT_DOUBLE_EQ(FilteredRanking(graph, 2, entities, relation).mrr, (1 / 1.5 + 1 / 5.0) / 2);
  // A model with equal scores for all ranks in the middle: of 4 candidates, and of 5.
  EXPECT_DOUBLE_EQ(FilteredRanking(graph, 2, std::vector<float>(10), relation).mrr,
                   (1 / 2.5 + 1 / 3.0) / 2);
  EXPECT_EQ(FilteredRanking(graph, 2, std::vector<float>(10, NAN), relation).mrr, 0);
  EXPECT_EQ(FilteredRanking(graph, 2, std::vector<float>(10, NAN), relation).hits_at_10, 0);
  EXPECT_EQ(FilteredRanking(graph, 2, entities, relation).hits_at_10, 1);
  EXPECT_NEAR(FilteredRanking(graph, 2, std::vector<float>(10), relation).loss, std::log(5.0),
              1e-6);
}

TEST(Sampler, AnEpochTakesEveryTripleOnce) {
  Graph graph{.entities = 300, .relations = 3, .train = {}, .held_out = {}};
  for (std::uint32_t i = 0; i < 299; ++i) graph.train.push_back({i, i % 3, i + 1});
  Sampler sampler(&graph, 10, 7, 4, 1);
  ASSERT_EQ(sampler.steps_per_epoch(), 8u);
  for (const std::size_t epoch : {0u, 3u}) {
    std::vector<Triple> taken;
    for (std::size_t step = epoch * 8; step < (epoch + 1) * 8; ++step) {
      for (std::uint32_t rank = 0; rank < 4; ++rank) {
        Batch batch;
        sampler.Fill(step, rank, &batch);
        EXPECT_EQ(batch.negatives.size(), 7u);
        EXPECT_LE(batch.triples.size(), 10u);
        for (const Triple& places : batch.triples) {
          taken.push_back({static_cast<std::uint32_t>(batch.entities[places.head]),
                           static_cast<std::uint32_t>(batch.relations[places.relation]),
                           static_cast<std::uint32_t>(batch.entities[places.tail])});
        }
      }
    }
    EXPECT_THAT(taken, testing::UnorderedElementsAreArray(graph.train));
  }
}

TEST(Sampler, KeysAreThereOnceAndStepsDiffer) {
  Graph graph{.entities = 20, .relations = 1, .train = {}, .held_out = {}};
  for (std::uint32_t i = 0; i < 19; ++i) graph.train.push_back({i, 0, i + 1});
  Sampler sampler(&graph, 5, 30, 2, 1);
  Batch first, again, second, other;
  sampler.Fill(0, 0, &first);
  sampler.Fill(0, 0, &again);
  sampler.Fill(1, 0, &second);
  sampler.Fill(0, 1, &other);
  std::vector<std::uint64_t> keys = first.entities;
  std::sort(keys.begin(), keys.end());
  EXPECT_EQ(std::adjacent_find(keys.begin(), keys.end()), keys.end());
  const auto drawn = [](const Batch& batch) {
    std::vector<std::uint64_t> entities;
    for (const std::uint32_t place : batch.negatives) entities.push_back(batch.entities[place]);
    return entities;
  };
  EXPECT_EQ(drawn(first), drawn(again));
  EXPECT_NE(drawn(first), drawn(second));
  EXPECT_NE(drawn(first), drawn(other));
}

}  // namespace
}  // namespace leeway::wordnet
