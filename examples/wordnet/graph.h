// MakeGraph makes the graph to embed: triples (head, relation, tail) of WordNet, split into
// training and held-out ones.
#ifndef LEEWAY_EXAMPLES_WORDNET_GRAPH_H_
#define LEEWAY_EXAMPLES_WORDNET_GRAPH_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "examples/wordnet/synsets.h"

namespace leeway::wordnet {

struct Triple {
  std::uint32_t head = 0;
  std::uint32_t relation = 0;
  std::uint32_t tail = 0;
  friend auto operator<=>(const Triple&, const Triple&) = default;
};

struct GraphOptions {
  // Synsets with pointers to or from fewer than so many others are left out, repeatedly (the
  // k-core): a synset that a single pointer describes cannot be predicted without it.
  std::uint32_t core = 3;
  // One in so many pairs of synsets is held out.
  std::uint32_t held_out_every = 20;
  // All pointers between the same two synsets are on the same side of the split. False: each triple
  // is drawn by itself, as in WN18RR (Dettmers et al., AAAI 2018): the other direction of a
  // symmetric pointer may be trained with, which makes a third of the triples easy.
  bool keep_pairs_together = true;
};

struct Graph {
  std::uint32_t entities = 0;
  std::uint32_t relations = 0;
  std::vector<Triple> train;     // sorted, none twice
  std::vector<Triple> held_out;  // likewise; their entities and relations occur in `train`
};

// Relations that are the inverse of another are left out: otherwise a held-out triple could be read
// off its inverse, as in WN18 (Toutanova and Chen, CVSC 2015). The split depends on the synsets
// alone. INVALID_ARGUMENT: options are out of range, or one of the sides is empty.
absl::StatusOr<Graph> MakeGraph(const Synsets& synsets, const GraphOptions& options);

}  // namespace leeway::wordnet

#endif  // LEEWAY_EXAMPLES_WORDNET_GRAPH_H_
