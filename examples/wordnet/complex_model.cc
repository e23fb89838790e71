#include "examples/wordnet/complex_model.h"

#include <algorithm>
#include <cmath>

namespace leeway::wordnet {
namespace {

// sum += conj(a) ∘ b: the gradient with respect to x of g · (a ∘ x), where b = g.
void AddConjugateProduct(std::span<const float> a, std::span<const float> b, std::span<float> sum) {
  const std::size_t half = a.size() / 2;
  for (std::size_t k = 0; k < half; ++k) {
    sum[k] += a[k] * b[k] + a[half + k] * b[half + k];
    sum[half + k] += a[k] * b[half + k] - a[half + k] * b[k];
  }
}

// sum += a ∘ b.
void AddProduct(std::span<const float> a, std::span<const float> b, std::span<float> sum) {
  const std::size_t half = a.size() / 2;
  for (std::size_t k = 0; k < half; ++k) {
    sum[k] += a[k] * b[k] - a[half + k] * b[half + k];
    sum[half + k] += a[k] * b[half + k] + a[half + k] * b[k];
  }
}

void AddScaled(float factor, const float* from, std::size_t size, float* to) {
  for (std::size_t i = 0; i < size; ++i) to[i] += factor * from[i];
}

// gradient += factor · |x| ∘ x, |x| being the moduli of x's complex numbers: of factor / 3 · Σ
// |x|³.
void AddCubeGradient(float factor, std::span<const float> x, std::span<float> gradient) {
  const std::size_t half = x.size() / 2;
  for (std::size_t k = 0; k < half; ++k) {
    const float modulus = std::sqrt(x[k] * x[k] + x[half + k] * x[half + k]);
    gradient[k] += factor * modulus * x[k];
    gradient[half + k] += factor * modulus * x[half + k];
  }
}

float Dot(std::span<const float> a, std::span<const float> b) {
  float sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace

void TailQuery(std::span<const float> head, std::span<const float> relation,
               std::span<float> query) {
  std::fill(query.begin(), query.end(), 0.0f);
  AddProduct(head, relation, query);
}

void HeadQuery(std::span<const float> relation, std::span<const float> tail,
               std::span<float> query) {
  std::fill(query.begin(), query.end(), 0.0f);
  AddConjugateProduct(relation, tail, query);
}

// The part of one side, from `query_`: adds the gradients of the true entity and of the negatives,
// and writes that of the query to `query_gradient_`.
double ComplexModel::AddSide(const Batch& batch, std::uint32_t true_row,
                             std::span<float> gradients) {
  const std::size_t negatives = batch.negatives.size();
  const std::span rows(batch.entity_rows);
  std::fill(scores_.begin(), scores_.end(), 0.0f);
  for (std::size_t j = 0; j < width_; ++j) {
    AddScaled(query_[j], transposed_.data() + j * negatives, negatives, scores_.data());
  }
  const std::span<const float> true_values = rows.subspan(true_row * width_, width_);
  const float true_score = Dot(query_, true_values);
  // Shifted by the largest, so that no exponential overflows.
  const float largest = std::max(true_score, *std::max_element(scores_.begin(), scores_.end()));
  double sum = std::exp(static_cast<double>(true_score - largest));
  for (std::size_t c = 0; c < negatives; ++c) {
    scores_[c] = batch.negatives[c] == true_row ? 0.0f : std::exp(scores_[c] - largest);
    sum += static_cast<double>(scores_[c]);
  }
  const double loss = std::log(sum) - static_cast<double>(true_score - largest);
  std::fill(query_gradient_.begin(), query_gradient_.end(), 0.0f);
  const auto add = [&](std::uint32_t row, float gradient) {
    AddScaled(gradient, rows.data() + row * width_, width_, query_gradient_.data());
    AddScaled(gradient, query_.data(), width_, gradients.data() + row * width_);
  };
  for (std::size_t c = 0; c < negatives; ++c) {
    add(batch.negatives[c], scores_[c] / static_cast<float>(sum));
  }
  add(true_row, static_cast<float>(std::expm1(-loss)));  // its probability less 1
  return loss;
}

double ComplexModel::Gradients(Batch* batch) {
  const std::size_t negatives = batch->negatives.size();
  transposed_.resize(width_ * negatives);
  for (std::size_t c = 0; c < negatives; ++c) {
    const float* const row = batch->entity_rows.data() + batch->negatives[c] * width_;
    for (std::size_t j = 0; j < width_; ++j) transposed_[j * negatives + c] = row[j];
  }
  query_.resize(width_);
  query_gradient_.resize(width_);
  scores_.resize(negatives);
  batch->entity_gradients.assign(batch->entity_rows.size(), 0.0f);
  batch->relation_gradients.assign(batch->relation_rows.size(), 0.0f);
  const std::span entity_gradients(batch->entity_gradients);
  double loss = 0;
  for (const Triple& triple : batch->triples) {
    const auto row_of = [&](auto& rows, std::uint32_t row) {
      return std::span(rows).subspan(row * width_, width_);
    };
    const std::span<const float> head = row_of(batch->entity_rows, triple.head);
    const std::span<const float> tail = row_of(batch->entity_rows, triple.tail);
    const std::span<const float> relation = row_of(batch->relation_rows, triple.relation);
    const std::span<float> head_gradient = row_of(batch->entity_gradients, triple.head);
    const std::span<float> tail_gradient = row_of(batch->entity_gradients, triple.tail);
    const std::span<float> relation_gradient = row_of(batch->relation_gradients, triple.relation);

    TailQuery(head, relation, query_);
    loss += AddSide(*batch, triple.tail, entity_gradients);
    AddConjugateProduct(relation, query_gradient_, head_gradient);
    AddConjugateProduct(head, query_gradient_, relation_gradient);

    HeadQuery(relation, tail, query_);
    loss += AddSide(*batch, triple.head, entity_gradients);
    AddProduct(relation, query_gradient_, tail_gradient);
    AddConjugateProduct(query_gradient_, tail, relation_gradient);

    AddCubeGradient(decay_, head, head_gradient);
    AddCubeGradient(decay_, tail, tail_gradient);
    AddCubeGradient(decay_, relation, relation_gradient);
  }
  return loss;
}

}  // namespace leeway::wordnet
