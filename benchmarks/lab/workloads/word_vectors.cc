#include "benchmarks/lab/workloads/word_vectors.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "benchmarks/lab/workloads/glosses.h"
#include "benchmarks/lab/workloads/step_rows.h"
#include "runtime/base/random.h"
#include "runtime/base/status_macros.h"

namespace leeway::lab {
namespace {

constexpr std::size_t kWordRowWidth = 32, kWindow = 3;
constexpr std::size_t kOccurrencesMin = 20;  // of a word that gets a vector
constexpr std::size_t kWordNegatives = 32;   // a step
constexpr float kNegativeWeight = 5.0f / kWordNegatives;
constexpr std::size_t kPairsTrained = 400'000, kPairsHeldOut = 10'000;
constexpr std::uint64_t kPairOrder = 0x303d, kDrawn = 0x303e, kOthers = 0x303f;
enum : std::size_t { kWordTable, kContextTable };

struct Pair {
  std::uint32_t word = 0, context = 0;
};

// Words by their numbers, the most frequent first, and all pairs of neighbours.
struct Corpus {
  std::vector<std::uint32_t> counts;
  std::vector<Pair> pairs;
};

std::vector<std::string> WordsOf(const std::string& gloss) {
  std::string text = gloss;
  for (char& c : text) {
    if (!absl::ascii_isalpha(static_cast<unsigned char>(c))) c = ' ';
  }
  return absl::StrSplit(text, ' ', absl::SkipEmpty());
}

Corpus CorpusOf(const std::vector<std::string>& glosses) {
  std::map<std::string, std::uint32_t> counts;
  for (const std::string& gloss : glosses) {
    for (const std::string& word : WordsOf(gloss)) ++counts[word];
  }
  std::vector<std::pair<std::uint32_t, std::string>> words;
  for (const auto& [word, count] : counts) {
    if (count >= kOccurrencesMin) words.emplace_back(count, word);
  }
  std::ranges::sort(words, std::greater<>());
  Corpus corpus;
  std::map<std::string, std::uint32_t> numbers;
  for (const auto& [count, word] : words) {
    numbers[word] = static_cast<std::uint32_t>(corpus.counts.size());
    corpus.counts.push_back(count);
  }
  for (const std::string& gloss : glosses) {
    std::vector<std::uint32_t> line;
    for (const std::string& word : WordsOf(gloss)) {
      if (const auto found = numbers.find(word); found != numbers.end()) {
        line.push_back(found->second);
      }
    }
    for (std::size_t i = 0; i < line.size(); ++i) {
      for (std::size_t j = i + 1; j < line.size() && j <= i + kWindow; ++j) {
        corpus.pairs.push_back({line[i], line[j]});
        corpus.pairs.push_back({line[j], line[i]});
      }
    }
  }
  return corpus;
}

float Dot(const float* a, const float* b) {
  return std::inner_product(a, a + kWordRowWidth, b, 0.0f);
}
double Logistic(double x) { return 1 / (1 + std::exp(-x)); }
// −log of the logistic function, without overflow.
double LogLoss(double x) { return x > 0 ? std::log1p(std::exp(-x)) : std::log1p(std::exp(x)) - x; }

class WordVectors final : public Workload {
 public:
  WordVectors(std::uint64_t seed, Corpus corpus) : seed_(seed), words_(corpus.counts.size()) {
    // The same pairs in every run: only the initial values and the order are the seed's.
    for (std::size_t i = 0; i < kPairsTrained + kPairsHeldOut; ++i) {
      const std::size_t other =
          i + runtime::RandomAt(kPairOrder, kPairOrder, i) % (corpus.pairs.size() - i);
      std::swap(corpus.pairs[i], corpus.pairs[other]);
    }
    pairs_.assign(corpus.pairs.begin(), corpus.pairs.begin() + kPairsTrained + kPairsHeldOut);
    double sum = 0;
    for (const std::uint32_t count : corpus.counts) {
      cumulated_.push_back(sum += std::pow(count, 0.75));
    }
  }

  std::vector<TableSpec> tables() const override {
    std::vector<TableSpec> specs = {TableSpec::Sparse("words", kWordRowWidth),
                                    TableSpec::Sparse("contexts", kWordRowWidth)};
    for (TableSpec& spec : specs) spec.initializer = Initializer::Normal(0, 0.1, seed_);
    return specs;
  }
  std::size_t samples() const override { return kPairsTrained; }
  std::string score_name() const override { return "AUC"; }

  void Choose(std::span<const std::uint32_t> samples, std::uint64_t seed,
              Step* step) const override {
    for (std::vector<std::uint64_t>& keys : step->keys) keys.clear();
    for (const std::uint32_t sample : samples) {
      step->keys[kWordTable].push_back(pairs_[sample].word);
      step->keys[kContextTable].push_back(pairs_[sample].context);
    }
    for (std::size_t i = 0; i < kWordNegatives; ++i) {
      step->keys[kContextTable].push_back(Drawn(seed, kDrawn, i));
    }
    for (std::vector<std::uint64_t>& keys : step->keys) KeepEachOnce(&keys);
  }

  double Gradient(std::span<const std::uint32_t> samples, std::uint64_t seed,
                  Step* step) const override {
    for (std::vector<float>& gradient : step->gradients) std::ranges::fill(gradient, 0.0f);
    std::vector<std::size_t> negatives;
    for (std::size_t i = 0; i < kWordNegatives; ++i) {
      negatives.push_back(PlaceOf(*step, kContextTable, Drawn(seed, kDrawn, i)));
    }
    const float scale = 1.0f / static_cast<float>(samples.size());
    double loss = 0;
    for (const std::uint32_t sample : samples) {
      const std::size_t word = PlaceOf(*step, kWordTable, pairs_[sample].word);
      const auto add = [&](std::size_t context, float weight, bool is_true) {
        const float* const u = step->values[kWordTable].data() + word;
        const float* const v = step->values[kContextTable].data() + context;
        const double score = Dot(u, v);
        loss += weight * LogLoss(is_true ? score : -score);
        const float error =
            scale * weight * static_cast<float>(Logistic(score) - (is_true ? 1 : 0));
        for (std::size_t k = 0; k < kWordRowWidth; ++k) {
          step->gradients[kWordTable][word + k] += error * v[k];
          step->gradients[kContextTable][context + k] += error * u[k];
        }
      };
      add(PlaceOf(*step, kContextTable, pairs_[sample].context), 1, true);
      for (const std::size_t negative : negatives) add(negative, kNegativeWeight, false);
    }
    return loss;
  }

  std::vector<std::vector<std::uint64_t>> rows_to_evaluate() const override {
    return {FirstKeys(words_), FirstKeys(words_)};
  }

  Evaluation Evaluate(const std::vector<std::vector<float>>& values, bool) const override {
    const auto score = [&](std::uint64_t word, std::uint64_t context) {
      return double{Dot(values[kWordTable].data() + word * kWordRowWidth,
                        values[kContextTable].data() + context * kWordRowWidth)};
    };
    double loss = 0, higher = 0;
    for (std::size_t i = kPairsTrained; i < pairs_.size(); ++i) {
      const double held_out = score(pairs_[i].word, pairs_[i].context);
      const double other = score(pairs_[i].word, Drawn(kOthers, kOthers, i));
      loss += LogLoss(held_out) + 5 * LogLoss(-other);
      higher += held_out > other ? 1 : held_out == other ? 0.5 : 0;
    }
    return {.loss = loss / kPairsHeldOut, .score = higher / kPairsHeldOut};
  }

 private:
  // A word, drawn by its frequency to the power 3/4.
  std::uint64_t Drawn(std::uint64_t seed, std::uint64_t stream, std::size_t i) const {
    const double at = runtime::UniformAt(seed, stream, i) * cumulated_.back();
    const auto found = std::ranges::upper_bound(cumulated_, at);
    return std::min<std::uint64_t>(static_cast<std::uint64_t>(found - cumulated_.begin()),
                                   words_ - 1);
  }
  // Where the row begins in the step's values.
  static std::size_t PlaceOf(const Step& step, std::size_t table, std::uint64_t key) {
    return RowOf(step.keys[table], key) * kWordRowWidth;
  }

  const std::uint64_t seed_;
  const std::size_t words_;
  std::vector<Pair> pairs_;
  std::vector<double> cumulated_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Workload>> NewWordVectors(std::uint64_t seed) {
  LEEWAY_ASSIGN_OR_RETURN(const std::vector<std::string> glosses, LoadGlosses());
  Corpus corpus = CorpusOf(glosses);
  if (corpus.pairs.size() < kPairsTrained + kPairsHeldOut) {
    return absl::FailedPreconditionError("the glosses of WordNet are shorter than they should be");
  }
  return std::make_unique<WordVectors>(seed, std::move(corpus));
}

}  // namespace leeway::lab
