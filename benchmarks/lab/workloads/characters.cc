#include "benchmarks/lab/workloads/characters.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "absl/strings/string_view.h"
#include "benchmarks/lab/workloads/glosses.h"
#include "examples/fashion_mnist/matrix.h"
#include "runtime/base/random.h"
#include "runtime/base/status_macros.h"

namespace leeway::lab {
namespace {

using fashion_mnist::AddProduct;
using fashion_mnist::AddTransposedProduct;
using fashion_mnist::Transposed;
using Matrix = std::vector<float>;  // rows one after the other

// Others become spaces.
constexpr absl::string_view kAlphabet = " abcdefghijklmnopqrstuvwxyz0123456789.,;:'\"()-/\n";
constexpr std::size_t kSymbols = kAlphabet.size();
constexpr std::size_t kLength = 32;  // characters that are seen, and predicted
constexpr std::size_t kWidth = 48, kForward = 192;
constexpr std::size_t kWindowsTrained = 20'000, kWindowsHeldOut = 500, kWindowsQuick = 100;
constexpr std::uint64_t kWindowOrder = 0xc4a7;

// Tables, in the order of tables().
enum : std::size_t {
  kEmbedding,
  kPosition,
  kQuery,
  kKey,
  kValue,
  kOut,
  kUp,
  kUpBias,
  kDown,
  kDownBias,
  kHead,
  kHeadBias,
};

// to[rows][to_columns] = from[rows][columns] · weight[columns][to_columns]
Matrix Product(const Matrix& from, const Matrix& weight, std::size_t rows, std::size_t columns) {
  const std::size_t to_columns = weight.size() / columns;
  Matrix to(rows * to_columns, 0.0f);
  AddProduct(from.data(), weight.data(), to.data(), rows, columns, to_columns);
  return to;
}

// Back through that product: adds the weight's gradient, and returns that of `from`.
Matrix Back(const Matrix& from, const Matrix& weight, const Matrix& to_gradient, std::size_t rows,
            std::size_t columns, Matrix* weight_gradient) {
  const std::size_t to_columns = weight.size() / columns;
  AddTransposedProduct(from.data(), to_gradient.data(), weight_gradient->data(), columns, rows,
                       to_columns);
  return Product(to_gradient, Transposed(weight, columns, to_columns), rows, to_columns);
}

void AddRows(const Matrix& bias, Matrix* rows) {
  for (std::size_t i = 0; i < rows->size(); ++i) (*rows)[i] += bias[i % bias.size()];
}
void SumInto(const Matrix& rows, Matrix* bias) {
  for (std::size_t i = 0; i < rows.size(); ++i) (*bias)[i % bias->size()] += rows[i];
}
void AddTo(const Matrix& from, Matrix* to) {
  for (std::size_t i = 0; i < from.size(); ++i) (*to)[i] += from[i];
}

// The parts of a batch's forward pass that the backward one needs. [windows · kLength] rows each.
struct Pass {
  std::size_t rows = 0;
  std::vector<std::uint8_t> symbols;  // [windows][kLength + 1]
  Matrix embedded, query, key, value;
  Matrix attention;  // [windows][kLength][kLength]
  Matrix mixed, attended, up, hidden, scores;
};

// Causal attention of each window: mixed = softmax(query · keyᵀ / √width) · value.
void Attend(Pass* pass) {
  const float scale = 1 / std::sqrt(static_cast<float>(kWidth));
  const std::size_t windows = pass->rows / kLength;
  pass->attention.assign(pass->rows * kLength, 0.0f);
  pass->mixed.assign(pass->rows * kWidth, 0.0f);
  for (std::size_t w = 0; w < windows; ++w) {
    for (std::size_t t = 0; t < kLength; ++t) {
      const std::size_t row = w * kLength + t;
      float* const weights = pass->attention.data() + row * kLength;
      float largest = -INFINITY;
      for (std::size_t s = 0; s <= t; ++s) {
        const float* const key = pass->key.data() + (w * kLength + s) * kWidth;
        const float* const query = pass->query.data() + row * kWidth;
        weights[s] = scale * std::inner_product(query, query + kWidth, key, 0.0f);
        largest = std::max(largest, weights[s]);
      }
      float sum = 0;
      for (std::size_t s = 0; s <= t; ++s) sum += weights[s] = std::exp(weights[s] - largest);
      for (std::size_t s = 0; s <= t; ++s) {
        weights[s] /= sum;
        const float* const value = pass->value.data() + (w * kLength + s) * kWidth;
        for (std::size_t k = 0; k < kWidth; ++k) {
          pass->mixed[row * kWidth + k] += weights[s] * value[k];
        }
      }
    }
  }
}

// From the gradient of `mixed`: those of query, key and value.
void AttendBack(const Pass& pass, const Matrix& mixed, Matrix* query, Matrix* key, Matrix* value) {
  const float scale = 1 / std::sqrt(static_cast<float>(kWidth));
  for (Matrix* const gradient : {query, key, value}) gradient->assign(pass.rows * kWidth, 0.0f);
  for (std::size_t row = 0; row < pass.rows; ++row) {
    const std::size_t first = row / kLength * kLength, t = row % kLength;
    const float* const weights = pass.attention.data() + row * kLength;
    const float* const from = mixed.data() + row * kWidth;
    std::array<float, kLength> by_weight{};
    float mean = 0;
    for (std::size_t s = 0; s <= t; ++s) {
      const float* const v = pass.value.data() + (first + s) * kWidth;
      by_weight[s] = std::inner_product(from, from + kWidth, v, 0.0f);
      mean += weights[s] * by_weight[s];
      for (std::size_t k = 0; k < kWidth; ++k) {
        (*value)[(first + s) * kWidth + k] += weights[s] * from[k];
      }
    }
    for (std::size_t s = 0; s <= t; ++s) {
      const float by_score = scale * weights[s] * (by_weight[s] - mean);
      for (std::size_t k = 0; k < kWidth; ++k) {
        (*query)[row * kWidth + k] += by_score * pass.key[(first + s) * kWidth + k];
        (*key)[(first + s) * kWidth + k] += by_score * pass.query[row * kWidth + k];
      }
    }
  }
}

class Characters final : public Workload {
 public:
  Characters(std::uint64_t seed, const std::string& text) : seed_(seed) {
    std::array<std::uint8_t, 256> symbol{};  // 0: a space
    for (std::size_t i = 0; i < kSymbols; ++i) {
      symbol[static_cast<unsigned char>(kAlphabet[i])] = static_cast<std::uint8_t>(i);
    }
    for (const char c : text) text_.push_back(symbol[static_cast<unsigned char>(c)]);
    // The same windows in every run, held-out ones anywhere in the text.
    const std::size_t windows = text_.size() / (kLength + 1);
    order_.resize(windows);
    std::iota(order_.begin(), order_.end(), 0u);
    for (std::size_t i = 0; i < kWindowsTrained + kWindowsHeldOut; ++i) {
      std::swap(order_[i],
                order_[i + runtime::RandomAt(kWindowOrder, kWindowOrder, i) % (windows - i)]);
    }
  }
  static std::size_t least_text() { return (kWindowsTrained + kWindowsHeldOut) * (kLength + 1); }

  std::vector<TableSpec> tables() const override {
    const auto normal = [this](std::size_t inputs) {
      return Initializer::Normal(0, 1 / std::sqrt(static_cast<double>(inputs)), seed_);
    };
    std::vector<TableSpec> specs;
    const auto add = [&](const char* name, std::vector<std::uint64_t> shape,
                         const Initializer& initializer) {
      specs.push_back(TableSpec::Dense(name, std::move(shape)));
      specs.back().initializer = initializer;
    };
    add("embedding", {kSymbols, kWidth}, Initializer::Normal(0, 0.5, seed_));
    add("position", {kLength, kWidth}, Initializer::Normal(0, 0.1, seed_));
    for (const char* name : {"query", "key", "value", "out"}) {
      add(name, {kWidth, kWidth}, normal(kWidth));
    }
    add("up", {kWidth, kForward}, normal(kWidth));
    add("up.bias", {kForward}, Initializer::Zeros());
    add("down", {kForward, kWidth}, normal(kForward));
    add("down.bias", {kWidth}, Initializer::Zeros());
    add("head", {kWidth, kSymbols}, normal(kWidth));
    add("head.bias", {kSymbols}, Initializer::Zeros());
    return specs;
  }
  std::size_t samples() const override { return kWindowsTrained; }
  std::string score_name() const override { return "accuracy"; }

  double Gradient(std::span<const std::uint32_t> samples, std::uint64_t,
                  Step* step) const override {
    Pass pass = Forward(samples, step->values);
    std::size_t right = 0;
    // By the mean loss of all characters.
    const double loss = LossOf(&pass, &right);
    Backward(pass, step);
    return loss / kLength;
  }

  Evaluation Evaluate(const std::vector<std::vector<float>>& values, bool quick) const override {
    std::vector<std::uint32_t> windows(quick ? kWindowsQuick : kWindowsHeldOut);
    std::iota(windows.begin(), windows.end(), static_cast<std::uint32_t>(kWindowsTrained));
    Pass pass = Forward(windows, values);
    std::size_t right = 0;
    const double loss = LossOf(&pass, &right);
    return {.loss = loss / static_cast<double>(pass.rows),
            .score = static_cast<double>(right) / static_cast<double>(pass.rows)};
  }

 private:
  Pass Forward(std::span<const std::uint32_t> windows, const std::vector<Matrix>& w) const {
    Pass pass;
    pass.rows = windows.size() * kLength;
    for (const std::uint32_t window : windows) {
      const std::uint8_t* const at = text_.data() + std::size_t{order_[window]} * (kLength + 1);
      pass.symbols.insert(pass.symbols.end(), at, at + kLength + 1);
      for (std::size_t t = 0; t < kLength; ++t) {
        for (std::size_t k = 0; k < kWidth; ++k) {
          pass.embedded.push_back(w[kEmbedding][at[t] * kWidth + k] + w[kPosition][t * kWidth + k]);
        }
      }
    }
    pass.query = Product(pass.embedded, w[kQuery], pass.rows, kWidth);
    pass.key = Product(pass.embedded, w[kKey], pass.rows, kWidth);
    pass.value = Product(pass.embedded, w[kValue], pass.rows, kWidth);
    Attend(&pass);
    pass.attended = Product(pass.mixed, w[kOut], pass.rows, kWidth);
    AddTo(pass.embedded, &pass.attended);
    pass.up = Product(pass.attended, w[kUp], pass.rows, kWidth);
    AddRows(w[kUpBias], &pass.up);
    for (float& x : pass.up) x = std::max(x, 0.0f);
    pass.hidden = Product(pass.up, w[kDown], pass.rows, kForward);
    AddRows(w[kDownBias], &pass.hidden);
    AddTo(pass.attended, &pass.hidden);
    pass.scores = Product(pass.hidden, w[kHead], pass.rows, kWidth);
    AddRows(w[kHeadBias], &pass.scores);
    return pass;
  }

  // The sum of the characters' losses. Scores become the gradient of their mean.
  static double LossOf(Pass* pass, std::size_t* right) {
    double loss = 0;
    for (std::size_t row = 0; row < pass->rows; ++row) {
      float* const scores = pass->scores.data() + row * kSymbols;
      const std::size_t next = pass->symbols[row / kLength * (kLength + 1) + row % kLength + 1];
      const float* const largest = std::max_element(scores, scores + kSymbols);
      *right += static_cast<std::size_t>(largest - scores) == next;
      const float top = *largest;
      double sum = 0;
      for (std::size_t i = 0; i < kSymbols; ++i) sum += std::exp(double{scores[i] - top});
      loss += std::log(sum) - double{scores[next] - top};
      for (std::size_t i = 0; i < kSymbols; ++i) {
        const double part = std::exp(double{scores[i] - top}) / sum - (i == next ? 1 : 0);
        scores[i] = static_cast<float>(part / static_cast<double>(pass->rows));
      }
    }
    return loss;
  }

  static void Backward(const Pass& pass, Step* step) {
    const std::vector<Matrix>& w = step->values;
    std::vector<Matrix>& g = step->gradients;
    for (Matrix& gradient : g) std::ranges::fill(gradient, 0.0f);
    SumInto(pass.scores, &g[kHeadBias]);
    const Matrix hidden = Back(pass.hidden, w[kHead], pass.scores, pass.rows, kWidth, &g[kHead]);
    SumInto(hidden, &g[kDownBias]);
    Matrix up = Back(pass.up, w[kDown], hidden, pass.rows, kForward, &g[kDown]);
    for (std::size_t i = 0; i < up.size(); ++i) {
      if (pass.up[i] <= 0) up[i] = 0;
    }
    SumInto(up, &g[kUpBias]);
    Matrix attended = Back(pass.attended, w[kUp], up, pass.rows, kWidth, &g[kUp]);
    AddTo(hidden, &attended);
    const Matrix mixed = Back(pass.mixed, w[kOut], attended, pass.rows, kWidth, &g[kOut]);
    Matrix query, key, value;
    AttendBack(pass, mixed, &query, &key, &value);
    Matrix embedded = std::move(attended);
    AddTo(Back(pass.embedded, w[kQuery], query, pass.rows, kWidth, &g[kQuery]), &embedded);
    AddTo(Back(pass.embedded, w[kKey], key, pass.rows, kWidth, &g[kKey]), &embedded);
    AddTo(Back(pass.embedded, w[kValue], value, pass.rows, kWidth, &g[kValue]), &embedded);
    for (std::size_t row = 0; row < pass.rows; ++row) {
      const std::size_t t = row % kLength;
      const std::size_t symbol = pass.symbols[row / kLength * (kLength + 1) + t];
      for (std::size_t k = 0; k < kWidth; ++k) {
        g[kEmbedding][symbol * kWidth + k] += embedded[row * kWidth + k];
        g[kPosition][t * kWidth + k] += embedded[row * kWidth + k];
      }
    }
  }

  const std::uint64_t seed_;
  std::vector<std::uint8_t> text_;    // numbers of symbols
  std::vector<std::uint32_t> order_;  // of windows: trained ones first, then held-out ones
};

}  // namespace

absl::StatusOr<std::unique_ptr<Workload>> NewCharacters(std::uint64_t seed) {
  LEEWAY_ASSIGN_OR_RETURN(const std::vector<std::string> glosses, LoadGlosses());
  std::string text;
  for (const std::string& gloss : glosses) text += gloss + "\n";
  if (text.size() < Characters::least_text()) {
    return absl::FailedPreconditionError("the glosses of WordNet are shorter than they should be");
  }
  return std::make_unique<Characters>(seed, text);
}

}  // namespace leeway::lab
