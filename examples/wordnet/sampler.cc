#include "examples/wordnet/sampler.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>
#include <unordered_map>
#include <utility>

namespace leeway::wordnet {
namespace {

// Separates the seeds of consecutive streams of random numbers.
constexpr std::uint64_t kGoldenRatio = 0x9e3779b97f4a7c15;

// Gives keys their indices in a list of keys.
class KeyIndices {
 public:
  explicit KeyIndices(std::vector<std::uint64_t>* keys) : keys_(keys) { keys->clear(); }
  std::uint32_t Of(std::uint32_t key) {
    const auto [found, fresh] = places_.try_emplace(key, static_cast<std::uint32_t>(keys_->size()));
    if (fresh) keys_->push_back(key);
    return found->second;
  }

 private:
  std::vector<std::uint64_t>* const keys_;
  std::unordered_map<std::uint32_t, std::uint32_t> places_;
};

}  // namespace

Sampler::Sampler(const Graph* graph, std::size_t batch, std::size_t negatives,
                 std::uint32_t workers, std::uint64_t seed)
    : graph_(graph),
      batch_(batch),
      negatives_(negatives),
      workers_(workers),
      seed_(seed),
      steps_per_epoch_((graph->train.size() + batch * workers - 1) / (batch * workers)),
      shuffled_epoch_(std::numeric_limits<std::size_t>::max()) {}

// Fisher–Yates. Its generator is the same everywhere; that of the standard library's shuffle is
// not.
void Sampler::ShuffleFor(std::size_t epoch) {
  if (epoch == shuffled_epoch_) return;
  order_.resize(graph_->train.size());
  std::iota(order_.begin(), order_.end(), 0u);
  std::mt19937_64 random(seed_ + epoch * kGoldenRatio);
  for (std::size_t i = order_.size(); i > 1; --i) {
    std::swap(order_[i - 1], order_[random() % i]);
  }
  shuffled_epoch_ = epoch;
}

void Sampler::Fill(std::size_t step, std::uint32_t rank, Batch* batch) {
  ShuffleFor(step / steps_per_epoch_);
  const std::size_t whole = batch_ * workers_;
  const std::size_t first = step % steps_per_epoch_ * whole;
  const std::size_t size = std::min(whole, order_.size() - first);
  const std::size_t end = first + size * (rank + 1) / workers_;
  KeyIndices entities(&batch->entities), relations(&batch->relations);
  batch->triples.clear();
  for (std::size_t i = first + size * rank / workers_; i < end; ++i) {
    const Triple& triple = graph_->train[order_[i]];
    const std::uint32_t head = entities.Of(triple.head);
    batch->triples.push_back({head, relations.Of(triple.relation), entities.Of(triple.tail)});
  }
  std::mt19937_64 random(~seed_ + (step * workers_ + rank) * kGoldenRatio);
  batch->negatives.clear();
  for (std::size_t i = 0; i < negatives_; ++i) {
    const auto entity = static_cast<std::uint32_t>(random() % graph_->entities);
    batch->negatives.push_back(entities.Of(entity));
  }
}

}  // namespace leeway::wordnet
