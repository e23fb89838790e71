#include "examples/wordnet/ranking.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "examples/wordnet/complex_model.h"

namespace leeway::wordnet {
namespace {

// The scores of so many entities stay in the first-level cache.
constexpr std::size_t kTile = 2048;

class Scorer {
 public:
  Scorer(std::size_t entities, std::size_t width, std::span<const float> rows)
      : entities_(entities), width_(width), transposed_(entities * width), scores_(entities) {
    for (std::size_t e = 0; e < entities; ++e) {
      for (std::size_t j = 0; j < width; ++j) transposed_[j * entities + e] = rows[e * width + j];
    }
  }

  // query · row, for every entity; valid until the next call.
  std::span<const float> Scores(std::span<const float> query) {
    std::fill(scores_.begin(), scores_.end(), 0.0f);
    for (std::size_t first = 0; first < entities_; first += kTile) {
      const std::size_t size = std::min(kTile, entities_ - first);
      float* const to = scores_.data() + first;
      for (std::size_t j = 0; j < width_; ++j) {
        const float* const from = transposed_.data() + j * entities_ + first;
        const float factor = query[j];
        for (std::size_t e = 0; e < size; ++e) to[e] += factor * from[e];
      }
    }
    return scores_;
  }

 private:
  const std::size_t entities_, width_;
  std::vector<float> transposed_;  // [width][entities]
  std::vector<float> scores_;
};

double RankOf(std::span<const float> scores, std::uint32_t true_entity,
              const std::vector<std::uint32_t>& also_true) {
  const float score = scores[true_entity];
  std::ptrdiff_t above = 0, equal = 0;
  for (const float other : scores) {
    above += other > score;
    equal += other == score;
  }
  for (const std::uint32_t other : also_true) {
    above -= scores[other] > score;
    equal -= scores[other] == score;
  }
  // `equal` counts the others: the true entity is among `also_true`. A NaN counts as rank infinity.
  if (!(score == score)) return std::numeric_limits<double>::infinity();
  return 1 + static_cast<double>(above) + static_cast<double>(equal) / 2;
}

double LogLoss(std::span<const float> scores, std::uint32_t true_entity) {
  const float largest = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (const float score : scores) sum += std::exp(score - largest);
  return std::log(sum) - double{scores[true_entity] - largest};
}

}  // namespace

Ranking FilteredRanking(const Graph& graph, std::size_t width, std::span<const float> entity_rows,
                        std::span<const float> relation_rows, std::size_t every) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::uint32_t>> tails, heads;
  for (const std::vector<Triple>* triples : {&graph.train, &graph.held_out}) {
    for (const Triple& triple : *triples) {
      tails[{triple.head, triple.relation}].push_back(triple.tail);
      heads[{triple.relation, triple.tail}].push_back(triple.head);
    }
  }
  Scorer scorer(graph.entities, width, entity_rows);
  std::vector<float> query(width);
  Ranking ranking;
  std::size_t asked = 0;
  const auto count = [&](std::span<const float> scores, std::uint32_t true_entity,
                         const std::vector<std::uint32_t>& also_true) {
    const double rank = RankOf(scores, true_entity, also_true);
    ranking.mrr += 1 / rank;
    ranking.hits_at_10 += rank <= 10;
    ranking.loss += LogLoss(scores, true_entity);
    ++asked;
  };
  for (std::size_t i = 0; i < graph.held_out.size(); i += every) {
    const Triple& triple = graph.held_out[i];
    const auto head = entity_rows.subspan(triple.head * width, width);
    const auto tail = entity_rows.subspan(triple.tail * width, width);
    const auto relation = relation_rows.subspan(triple.relation * width, width);
    TailQuery(head, relation, query);
    count(scorer.Scores(query), triple.tail, tails[{triple.head, triple.relation}]);
    HeadQuery(relation, tail, query);
    count(scorer.Scores(query), triple.head, heads[{triple.relation, triple.tail}]);
  }
  for (double* const mean : {&ranking.mrr, &ranking.hits_at_10, &ranking.loss}) {
    *mean /= static_cast<double>(asked);
  }
  return ranking;
}

}  // namespace leeway::wordnet
