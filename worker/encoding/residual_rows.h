// The residuals of a sparse table's rows in one shard: for each key a row of what a lossy codec has
// dropped, in bounded memory.
//
// Lives on the worker's loop. Above the limit the caller takes out the rows that were used longest
// ago and sends them unencoded: nothing is dropped.
#ifndef LEEWAY_WORKER_ENCODING_RESIDUAL_ROWS_H_
#define LEEWAY_WORKER_ENCODING_RESIDUAL_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace leeway::worker {

class ResidualRows {
 public:
  // Rows of `width` floats, in about `bytes_max` bytes; at least one row.
  ResidualRows(std::uint64_t width, std::uint64_t bytes_max);

  std::size_t size() const { return places_.size(); }
  std::size_t rows_max() const { return rows_max_; }

  // The row of `key`, zeros if there was none; marks it as used last. Valid until the next call
  // that is not const.
  std::span<float> Use(std::uint64_t key);

  // The row of `key`, empty if there is none. Valid until the next call that is not const.
  std::span<float> Find(std::uint64_t key);

  // How many rows there are above the limit.
  std::size_t excess() const { return size() > rows_max_ ? size() - rows_max_ : 0; }
  // Takes out the row that was used longest ago, of which there must be one: returns its key and
  // appends its values to `values`.
  std::uint64_t TakeColdest(std::vector<float>* values);

  // Calls `visitor(key, span of the row)` from the coldest to the latest.
  template <class Visitor>
  void ForEach(const Visitor& visitor) const {
    for (std::uint32_t at = coldest_; at != kNone; at = links_[at].later) {
      visitor(links_[at].key, std::span<const float>(values_).subspan(at * width_, width_));
    }
  }

  double SumOfSquares() const;

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  struct Link {
    std::uint64_t key = 0;
    std::uint32_t earlier = kNone;
    std::uint32_t later = kNone;
  };

  void Unlink(std::uint32_t at);
  void Append(std::uint32_t at);

  const std::uint64_t width_;
  const std::size_t rows_max_;
  absl::flat_hash_map<std::uint64_t, std::uint32_t> places_;
  std::vector<Link> links_;    // by place; a list from the coldest to the latest
  std::vector<float> values_;  // by place
  std::vector<std::uint32_t> free_;
  std::uint32_t coldest_ = kNone;
  std::uint32_t latest_ = kNone;
};

}  // namespace leeway::worker

#endif  // LEEWAY_WORKER_ENCODING_RESIDUAL_ROWS_H_
