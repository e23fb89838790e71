#include "leeway/table_spec.h"

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/tables/table_texts.h"

namespace leeway {

using proto::InitializerText;
using proto::kAggregates;
using proto::kErrorFeedbacks;
using proto::kKinds;
using proto::kNonFinites;
using proto::Text;
using proto::UpdaterText;

TableSpec TableSpec::Dense(std::string name, std::vector<std::uint64_t> shape, DType dtype) {
  TableSpec spec;
  spec.name = std::move(name);
  spec.kind = TableKind::kDense;
  spec.dtype = dtype;
  spec.shape = std::move(shape);
  return spec;
}

TableSpec TableSpec::Sparse(std::string name, std::uint64_t row_width, DType dtype) {
  TableSpec spec;
  spec.name = std::move(name);
  spec.kind = TableKind::kSparse;
  spec.dtype = dtype;
  spec.row_width = row_width;
  return spec;
}

TableSpec TableSpec::Ragged(std::string name, DType dtype) {
  TableSpec spec;
  spec.name = std::move(name);
  spec.kind = TableKind::kRagged;
  spec.dtype = dtype;
  return spec;
}

std::uint64_t TableSpec::NumElements() const {
  if (kind != TableKind::kDense || shape.empty()) return 0;
  constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t product = 1;
  bool overflow = false;
  for (const std::uint64_t size : shape) {
    if (size == 0) return 0;
    overflow |= __builtin_mul_overflow(product, size, &product);
  }
  return overflow ? kMax : product;  // far above the limit of Validate
}

std::string TableSpec::ToString() const {
  const std::string form = kind == TableKind::kSparse ? absl::StrCat(" row_width ", row_width)
                           : kind == TableKind::kRagged
                               ? ""
                               : absl::StrCat(" [", absl::StrJoin(shape, ", "), "]");
  return absl::StrCat(
      "table ", proto::Quoted(name), ": ", Text(kKinds, static_cast<unsigned>(kind)), " ",
      Name(dtype), form, ", updater ", UpdaterText(updater), ", initializer ",
      InitializerText(initializer), ", consistency ", consistency.ToString(), ", aggregate ",
      Text(kAggregates, static_cast<unsigned>(aggregate)), ", nonfinite ",
      Text(kNonFinites, static_cast<unsigned>(nonfinite)), ", codec ", proto::Quoted(codec),
      codecs.empty() ? "" : absl::StrCat(" of ", proto::Quoted(absl::StrJoin(codecs, ";"))),
      ", error_feedback ", Text(kErrorFeedbacks, static_cast<unsigned>(error_feedback)));
}

}  // namespace leeway
