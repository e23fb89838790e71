#include "examples/wordnet/graph.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"

namespace leeway::wordnet {
namespace {

using Pair = std::pair<std::uint32_t, std::uint32_t>;

Pair PairOf(const Triple& triple) { return std::minmax(triple.head, triple.tail); }

template <class T>
void SortAndDeduplicate(std::vector<T>* values) {
  std::sort(values->begin(), values->end());
  values->erase(std::unique(values->begin(), values->end()), values->end());
}

std::vector<Triple> TriplesOf(const Synsets& synsets) {
  std::vector<Triple> triples;
  for (const Pointer& pointer : synsets.pointers) {
    if (Relations()[pointer.relation].repeats_another || pointer.source == pointer.target) continue;
    triples.push_back({pointer.source, pointer.relation, pointer.target});
  }
  SortAndDeduplicate(&triples);
  return triples;
}

// Removes triples of synsets with fewer than `core` neighbours, until there are no such synsets.
void ReduceToCore(std::uint32_t synsets, std::uint32_t core, std::vector<Triple>* triples) {
  for (std::size_t before = triples->size() + 1; triples->size() < before;) {
    before = triples->size();
    std::vector<Pair> pairs;
    for (const Triple& triple : *triples) pairs.push_back(PairOf(triple));
    SortAndDeduplicate(&pairs);
    std::vector<std::uint32_t> neighbours(synsets);
    for (const auto& [a, b] : pairs) {
      ++neighbours[a];
      ++neighbours[b];
    }
    std::erase_if(*triples, [&](const Triple& triple) {
      return neighbours[triple.head] < core || neighbours[triple.tail] < core;
    });
  }
}

// Numbers the values that occur, from 0 on.
class Numbering {
 public:
  explicit Numbering(std::size_t values) : numbers_(values, kNone) {}
  std::uint32_t Of(std::uint32_t value) {
    if (numbers_[value] == kNone) numbers_[value] = count_++;
    return numbers_[value];
  }
  bool Has(std::uint32_t value) const { return numbers_[value] != kNone; }
  std::uint32_t count() const { return count_; }

 private:
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
  std::vector<std::uint32_t> numbers_;
  std::uint32_t count_ = 0;
};

// The finaliser of MurmurHash3 (Appleby 2011), over both synsets, in their order where `directed`.
std::uint64_t HashOf(const Triple& triple, bool directed) {
  const Pair pair = directed ? Pair(triple.head, triple.tail) : PairOf(triple);
  std::uint64_t x = std::uint64_t{pair.first} << 32 | pair.second;
  x = (x ^ x >> 33) * 0xff51afd7ed558ccd;
  x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53;
  return x ^ x >> 33;
}

}  // namespace

absl::StatusOr<Graph> MakeGraph(const Synsets& synsets, const GraphOptions& options) {
  if (options.core < 1 || options.held_out_every < 2) {
    return absl::InvalidArgumentError(absl::StrCat("core is ", options.core, " and held_out_every ",
                                                   options.held_out_every,
                                                   "; they must be at least 1 and 2"));
  }
  std::vector<Triple> triples = TriplesOf(synsets);
  ReduceToCore(synsets.count, options.core, &triples);
  Graph graph;
  Numbering entities(synsets.count), relations(Relations().size());
  std::vector<Triple> held_out;
  for (const Triple& triple : triples) {
    if (HashOf(triple, !options.keep_pairs_together) % options.held_out_every == 0) {
      held_out.push_back(triple);
      continue;
    }
    const std::uint32_t head = entities.Of(triple.head);
    const std::uint32_t relation = relations.Of(triple.relation);
    graph.train.push_back({head, relation, entities.Of(triple.tail)});
  }
  for (const Triple& triple : held_out) {
    if (!entities.Has(triple.head) || !entities.Has(triple.tail)) continue;
    if (!relations.Has(triple.relation)) continue;
    graph.held_out.push_back(
        {entities.Of(triple.head), relations.Of(triple.relation), entities.Of(triple.tail)});
  }
  std::sort(graph.train.begin(), graph.train.end());
  std::sort(graph.held_out.begin(), graph.held_out.end());
  graph.entities = entities.count();
  graph.relations = relations.count();
  if (graph.train.empty() || graph.held_out.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "with core ", options.core, " and held_out_every ", options.held_out_every, " there are ",
        graph.train.size(), " triples to train with and ", graph.held_out.size(), " held out"));
  }
  return graph;
}

}  // namespace leeway::wordnet
