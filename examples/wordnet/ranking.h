// FilteredRanking measures how well a model tells true triples from others.
#ifndef LEEWAY_EXAMPLES_WORDNET_RANKING_H_
#define LEEWAY_EXAMPLES_WORDNET_RANKING_H_

#include <cstddef>
#include <span>
#include <vector>

#include "examples/wordnet/graph.h"

namespace leeway::wordnet {

// Every held-out triple is asked for twice: its tail, and its head. Its rank is that of the true
// entity among all entities by score, without those that also make a true triple, in training or
// held out (the filtered setting of Bordes et al., "Translating Embeddings for Modeling
// Multi-relational Data", NIPS 2013, section 4.2). Entities with the same score as the true one
// count half.
struct Ranking {
  double mrr = 0;         // the mean of 1 / rank
  double hits_at_10 = 0;  // the part of the ranks that are at most 10
  // The mean of −log softmax of the true entity's score among those of all entities, unfiltered.
  double loss = 0;
};
// Rows are those of ComplexModel, by entity and relation. Asks for one held-out triple in `every`.
Ranking FilteredRanking(const Graph& graph, std::size_t width, std::span<const float> entity_rows,
                        std::span<const float> relation_rows, std::size_t every = 1);

}  // namespace leeway::wordnet

#endif  // LEEWAY_EXAMPLES_WORDNET_RANKING_H_
