// ComplexModel is ComplEx: entities and relations are vectors of complex numbers (Trouillon et al.,
// "Complex Embeddings for Simple Link Prediction", ICML 2016). A triple's score, their equations 9
// to 11:
//   φ(h, r, t) = Re(Σ_k h_k r_k conj(t_k))
// A row of `width` floats holds width/2 real parts, then as many imaginary ones.
#ifndef LEEWAY_EXAMPLES_WORDNET_COMPLEX_MODEL_H_
#define LEEWAY_EXAMPLES_WORDNET_COMPLEX_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "examples/wordnet/graph.h"

namespace leeway::wordnet {

// *query = head ∘ relation: the score of (head, relation, t) is query · t for every t.
void TailQuery(std::span<const float> head, std::span<const float> relation,
               std::span<float> query);
// *query = conj(relation) ∘ tail: the score of (h, relation, tail) is query · h for every h.
void HeadQuery(std::span<const float> relation, std::span<const float> tail,
               std::span<float> query);

// A mini-batch with the rows of its keys. Numbers in `triples` and `negatives` are indices of rows,
// not entities.
struct Batch {
  std::vector<Triple> triples;
  std::vector<std::uint32_t> negatives;  // entities that replace heads and tails alike
  std::vector<std::uint64_t> entities;   // key of each row, none twice
  std::vector<std::uint64_t> relations;
  std::vector<float> entity_rows;  // [entities.size()][width]
  std::vector<float> relation_rows;
  std::vector<float> entity_gradients;
  std::vector<float> relation_gradients;
};

// The loss of a batch and its gradient. For each triple and each side it is
//   −log softmax(true entity's score among those of the true entity and the negatives)
// a negative that is the true entity does not count. That is the multi-class log-loss of Lacroix,
// Usunier and Obozinski, "Canonical Tensor Decomposition for Knowledge Base Completion" (ICML
// 2018), over a sample of the entities. For each triple their regulariser is added, the weighted
// nuclear 3-norm: decay / 3 · Σ_k |h_k|³ + |r_k|³ + |t_k|³.
class ComplexModel {
 public:
  ComplexModel(std::size_t width, double decay)
      : width_(width), decay_(static_cast<float>(decay)) {}

  // Returns the loss, without the regulariser, summed over triples and sides; fills both gradients.
  double Gradients(Batch* batch);

 private:
  double AddSide(const Batch& batch, std::uint32_t true_row, std::span<float> gradients);

  const std::size_t width_;
  const float decay_;
  std::vector<float> transposed_;  // [width][negatives.size()]
  std::vector<float> query_;
  std::vector<float> query_gradient_;
  std::vector<float> scores_;
};

}  // namespace leeway::wordnet

#endif  // LEEWAY_EXAMPLES_WORDNET_COMPLEX_MODEL_H_
