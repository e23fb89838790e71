// MoveProgress is the progress of moving shards, from the scheduler's status.
#ifndef LEEWAY_TOOLS_FORMAT_MOVE_PROGRESS_H_
#define LEEWAY_TOOLS_FORMAT_MOVE_PROGRESS_H_

#include <cstdint>
#include <optional>
#include <string>

namespace leeway::tools {

class MoveProgress {
 public:
  static MoveProgress OfDrain(std::uint32_t rank) { return MoveProgress(rank); }
  static MoveProgress OfRebalance() { return MoveProgress(std::nullopt); }

  // The scheduler's status as JSON. False: it has nothing about shards.
  bool Take(const std::string& status);

  double part() const;  // of the work, 0 to 1
  const std::string& text() const { return text_; }

 private:
  explicit MoveProgress(std::optional<std::uint32_t> drained) : drained_(drained) {}

  const std::optional<std::uint32_t> drained_;  // rank; nullopt: a rebalance of all servers
  std::uint64_t most_ = 0, left_ = 0;
  std::string text_;
};

}  // namespace leeway::tools

#endif  // LEEWAY_TOOLS_FORMAT_MOVE_PROGRESS_H_
