#include "benchmarks/lab/workloads/wordnet.h"

#include <algorithm>
#include <utility>

#include "benchmarks/lab/workloads/step_rows.h"
#include "examples/wordnet/complex_model.h"
#include "examples/wordnet/graph.h"
#include "examples/wordnet/ranking.h"
#include "examples/wordnet/synsets.h"
#include "runtime/base/random.h"
#include "runtime/base/status_macros.h"

namespace leeway::lab {
namespace {

constexpr std::size_t kGraphRowWidth = 64;   // 32 complex numbers
constexpr std::size_t kGraphNegatives = 64;  // a step
constexpr double kGraphDecay = 0.6, kGraphDeviation = 0.1;
constexpr std::size_t kQuickEvery = 8;  // curves: one held-out triple in so many
constexpr std::uint64_t kNegativeEntities = 0x30e7;
enum : std::size_t { kEntityTable, kRelationTable };

// What one thread computes with.
struct GraphScratch {
  wordnet::ComplexModel model{kGraphRowWidth, kGraphDecay};
  wordnet::Batch batch;
};

class Wordnet final : public Workload {
 public:
  Wordnet(std::uint64_t seed, wordnet::Graph graph) : seed_(seed), graph_(std::move(graph)) {}

  std::vector<TableSpec> tables() const override {
    std::vector<TableSpec> specs = {TableSpec::Sparse("entities", kGraphRowWidth),
                                    TableSpec::Sparse("relations", kGraphRowWidth)};
    for (TableSpec& spec : specs) spec.initializer = Initializer::Normal(0, kGraphDeviation, seed_);
    return specs;
  }
  std::size_t samples() const override { return graph_.train.size(); }
  std::string score_name() const override { return "filtered MRR"; }

  void Choose(std::span<const std::uint32_t> samples, std::uint64_t seed,
              Step* step) const override {
    std::vector<std::uint64_t>& entities = step->keys[kEntityTable];
    std::vector<std::uint64_t>& relations = step->keys[kRelationTable];
    entities.clear();
    relations.clear();
    for (const std::uint32_t sample : samples) {
      const wordnet::Triple& triple = graph_.train[sample];
      entities.insert(entities.end(), {triple.head, triple.tail});
      relations.push_back(triple.relation);
    }
    for (std::size_t i = 0; i < kGraphNegatives; ++i) entities.push_back(NegativeOf(seed, i));
    KeepEachOnce(&entities);
    KeepEachOnce(&relations);
  }

  double Gradient(std::span<const std::uint32_t> samples, std::uint64_t seed,
                  Step* step) const override {
    if (step->scratch == nullptr) step->scratch = std::make_shared<GraphScratch>();
    auto& scratch = *static_cast<GraphScratch*>(step->scratch.get());
    wordnet::Batch& batch = scratch.batch;
    batch.triples.clear();
    for (const std::uint32_t sample : samples) {
      const wordnet::Triple& triple = graph_.train[sample];
      batch.triples.push_back({PlaceOf(step->keys[kEntityTable], triple.head),
                               PlaceOf(step->keys[kRelationTable], triple.relation),
                               PlaceOf(step->keys[kEntityTable], triple.tail)});
    }
    batch.negatives.clear();
    for (std::size_t i = 0; i < kGraphNegatives; ++i) {
      batch.negatives.push_back(PlaceOf(step->keys[kEntityTable], NegativeOf(seed, i)));
    }
    batch.entity_rows = step->values[kEntityTable];
    batch.relation_rows = step->values[kRelationTable];
    const double loss = scratch.model.Gradients(&batch);
    const float scale = 1.0f / static_cast<float>(samples.size());
    const auto scaled = [scale](float gradient) { return scale * gradient; };
    std::ranges::transform(batch.entity_gradients, step->gradients[kEntityTable].begin(), scaled);
    std::ranges::transform(batch.relation_gradients, step->gradients[kRelationTable].begin(),
                           scaled);
    return loss / 2;  // a triple has two sides
  }

  std::vector<std::vector<std::uint64_t>> rows_to_evaluate() const override {
    return {FirstKeys(graph_.entities), FirstKeys(graph_.relations)};
  }

  Evaluation Evaluate(const std::vector<std::vector<float>>& values, bool quick) const override {
    const wordnet::Ranking ranking =
        wordnet::FilteredRanking(graph_, kGraphRowWidth, values[kEntityTable],
                                 values[kRelationTable], quick ? kQuickEvery : 1);
    return {.loss = ranking.loss,
            .score = ranking.mrr,
            .others = {{"filtered Hits@10", ranking.hits_at_10}}};
  }

 private:
  // Drawn uniformly from all entities, and shared by the triples of the step.
  std::uint64_t NegativeOf(std::uint64_t seed, std::size_t i) const {
    return runtime::RandomAt(seed, kNegativeEntities, i) % graph_.entities;
  }
  static std::uint32_t PlaceOf(const std::vector<std::uint64_t>& keys, std::uint64_t key) {
    return static_cast<std::uint32_t>(RowOf(keys, key));
  }

  const std::uint64_t seed_;
  const wordnet::Graph graph_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Workload>> NewWordnet(std::uint64_t seed) {
  LEEWAY_ASSIGN_OR_RETURN(
      const wordnet::Synsets synsets,
      wordnet::LoadSynsets(wordnet::kDefaultFolder, {"noun", "verb", "adj", "adv"}));
  LEEWAY_ASSIGN_OR_RETURN(wordnet::Graph graph,
                          wordnet::MakeGraph(synsets, {.keep_pairs_together = false}));
  return std::make_unique<Wordnet>(seed, std::move(graph));
}

}  // namespace leeway::lab
