// The rows of one or several pushes, grouped by key.
#ifndef LEEWAY_PS_STORE_KEY_GROUPS_H_
#define LEEWAY_PS_STORE_KEY_GROUPS_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ps/store/shard_store.h"

namespace leeway::ps {

// Whether each key is above the one before it. Then none repeats.
inline bool StrictlyIncreasing(const PushView& push) {
  const auto keys = push.keys.as<std::uint64_t>();
  return std::adjacent_find(keys.begin(), keys.end(), std::greater_equal<>()) == keys.end();
}

// Groups come in the order in which their keys first appear, and a group's rows in the order
// given. The pushes outlive it and have been checked.
template <class Stored>
class KeyGroups {
 public:
  // `row_width` elements a row; 0: as the pushes' widths say.
  KeyGroups(std::span<const PushView> pushes, std::uint64_t row_width) {
    if (pushes.size() == 1 && StrictlyIncreasing(pushes.front())) {
      AppendAll(pushes.front(), row_width);
    } else {
      GroupAll(pushes, row_width);
    }
  }

  std::size_t size() const { return keys_.size(); }
  std::uint64_t key(std::size_t group) const { return keys_[group]; }
  std::span<const std::uint64_t> keys() const { return keys_; }
  std::span<const Stored* const> rows(std::size_t group) const { return Of(group, rows_); }
  // Only where the pushes say them.
  std::span<const std::uint32_t> widths(std::size_t group) const { return Of(group, widths_); }

 private:
  template <class T>
  std::span<const T> Of(std::size_t group, const std::vector<T>& all) const {
    return std::span<const T>(all).subspan(begins_[group], begins_[group + 1] - begins_[group]);
  }

  // Calls `visitor(i, row, width)` for the rows of a push.
  template <class Visitor>
  static void ForEachRow(const PushView& push, std::uint64_t row_width, const Visitor& visitor) {
    const auto widths = push.widths.template as<std::uint32_t>();
    const Stored* row = push.values.template as<Stored>().data();
    const std::size_t size = push.keys.template as<std::uint64_t>().size();
    for (std::size_t i = 0; i < size; ++i) {
      const std::uint64_t width = row_width != 0 ? row_width : widths[i];
      visitor(i, row, width);
      row += width;
    }
  }

  void AppendAll(const PushView& push, std::uint64_t row_width) {
    const auto keys = push.keys.template as<std::uint64_t>();
    keys_.assign(keys.begin(), keys.end());
    begins_.reserve(keys.size() + 1);
    rows_.reserve(keys.size());
    ForEachRow(push, row_width, [&](std::size_t i, const Stored* row, std::uint64_t width) {
      begins_.push_back(i);
      rows_.push_back(row);
      if (row_width == 0) widths_.push_back(static_cast<std::uint32_t>(width));
    });
    begins_.push_back(keys.size());
  }

  // Numbers the keys as they appear, counts their rows, and deals the rows out to their groups.
  void GroupAll(std::span<const PushView> pushes, std::uint64_t row_width) {
    absl::flat_hash_map<std::uint64_t, std::size_t> numbers;
    std::vector<std::size_t> group_of;  // row → its key's number
    begins_.push_back(0);
    for (const PushView& push : pushes) {
      for (const std::uint64_t key : push.keys.template as<std::uint64_t>()) {
        const auto [found, added] = numbers.try_emplace(key, keys_.size());
        if (added) {
          keys_.push_back(key);
          begins_.push_back(0);
        }
        group_of.push_back(found->second);
        ++begins_[found->second + 1];
      }
    }
    for (std::size_t i = 1; i < begins_.size(); ++i) begins_[i] += begins_[i - 1];

    std::vector<std::size_t> next(begins_.begin(), begins_.end() - 1);
    rows_.resize(group_of.size());
    if (row_width == 0) widths_.resize(group_of.size());
    std::size_t first = 0;
    for (const PushView& push : pushes) {
      ForEachRow(push, row_width, [&](std::size_t i, const Stored* row, std::uint64_t width) {
        const std::size_t to = next[group_of[first + i]]++;
        rows_[to] = row;
        if (row_width == 0) widths_[to] = static_cast<std::uint32_t>(width);
      });
      first += push.keys.template as<std::uint64_t>().size();
    }
  }

  std::vector<std::uint64_t> keys_;
  std::vector<std::size_t> begins_;  // of a group among the rows; one more than there are groups
  std::vector<const Stored*> rows_;
  std::vector<std::uint32_t> widths_;
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_STORE_KEY_GROUPS_H_
