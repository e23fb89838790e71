#include "tests/storm/storm.h"

namespace leeway::storm {

absl::Status RunPartitions(const StormOptions&) { return absl::UnimplementedError("partitions"); }

}  // namespace leeway::storm
