#include "worker/encoding/push_encoder.h"

#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace leeway::worker {

SavedTable PushEncoder::Save() const {
  SavedTable saved;
  saved.blocks = blocks_.Save();
  rows_.Save(&saved);
  return saved;
}

absl::Status PushEncoder::CheckSaved(const SavedTable& saved) const {
  const std::uint64_t width = spec_.row_width;
  const bool dense = spec_.kind == TableKind::kDense;
  if (dense ? !saved.keys.empty() : !saved.blocks.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("table '", spec_.name, "': the residuals are of another kind of table"));
  }
  if (!dense && saved.rows.size() != saved.keys.size() * width) {
    return absl::InvalidArgumentError(
        absl::StrCat("table '", spec_.name, "': the residuals have rows of another width"));
  }
  const auto finite = [](const std::vector<float>& values) {
    return std::isfinite(Reduce().max_abs(values.data(), values.size()));
  };
  bool all_finite = finite(saved.rows);
  for (const auto& [index, block] : saved.blocks) {
    LEEWAY_RETURN_IF_ERROR(blocks_.Check(index, block));
    all_finite = all_finite && finite(block.residual) && finite(block.codec_state);
  }
  if (all_finite) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("table '", spec_.name, "': the residuals have NaN or infinity"));
}

void PushEncoder::Take(const SavedTable& saved) {
  blocks_.Take(saved.blocks);
  rows_.Take(saved);
}

double PushEncoder::ResidualNorm() const {
  return std::sqrt(blocks_.SumOfSquares() + rows_.SumOfSquares());
}

}  // namespace leeway::worker
