#include "worker/encoding/residual_rows.h"

#include <algorithm>

namespace leeway::worker {
namespace {

// The memory of a row beside its values: its link, and its place in the hash table at half load.
constexpr std::uint64_t kOverheadBytes = 48;
// Places have 32 bits, and one of them is none.
constexpr std::uint64_t kRowsMax = 0xfffffffe;

}  // namespace

ResidualRows::ResidualRows(std::uint64_t width, std::uint64_t bytes_max)
    : width_(width),
      rows_max_(std::clamp<std::uint64_t>(bytes_max / (width * sizeof(float) + kOverheadBytes), 1,
                                          kRowsMax)) {}

void ResidualRows::Unlink(std::uint32_t at) {
  const Link& link = links_[at];
  (link.earlier == kNone ? coldest_ : links_[link.earlier].later) = link.later;
  (link.later == kNone ? latest_ : links_[link.later].earlier) = link.earlier;
}

void ResidualRows::Append(std::uint32_t at) {
  links_[at].earlier = latest_;
  links_[at].later = kNone;
  (latest_ == kNone ? coldest_ : links_[latest_].later) = at;
  latest_ = at;
}

std::span<float> ResidualRows::Find(std::uint64_t key) {
  const auto found = places_.find(key);
  if (found == places_.end()) return {};
  return std::span(values_).subspan(found->second * width_, width_);
}

std::span<float> ResidualRows::Use(std::uint64_t key) {
  const auto [found, fresh] = places_.try_emplace(key, kNone);
  if (fresh) {
    if (free_.empty()) {
      found->second = static_cast<std::uint32_t>(links_.size());
      links_.emplace_back();
      values_.resize(values_.size() + width_);
    } else {
      found->second = free_.back();
      free_.pop_back();
      std::fill_n(values_.begin() + static_cast<std::ptrdiff_t>(found->second * width_), width_,
                  0.0f);
    }
    links_[found->second].key = key;
  } else {
    Unlink(found->second);
  }
  Append(found->second);
  return std::span<float>(values_).subspan(found->second * width_, width_);
}

std::uint64_t ResidualRows::TakeColdest(std::vector<float>* values) {
  const std::uint32_t at = coldest_;
  const std::uint64_t key = links_[at].key;
  const auto row = std::span<const float>(values_).subspan(at * width_, width_);
  values->insert(values->end(), row.begin(), row.end());
  Unlink(at);
  places_.erase(key);
  free_.push_back(at);
  return key;
}

double ResidualRows::SumOfSquares() const {
  double sum = 0;
  ForEach([&](std::uint64_t, std::span<const float> row) {
    for (const float value : row) sum += static_cast<double>(value) * static_cast<double>(value);
  });
  return sum;
}

}  // namespace leeway::worker
