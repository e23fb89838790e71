#include "leeway/table_spec.h"

#include <charconv>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/text.h"

namespace leeway {
namespace {

// An enum's text, or its number where it is none we know: a description that came from elsewhere
// must be printable before it has been checked.
template <std::size_t n>
std::string Text(const absl::string_view (&texts)[n], unsigned value) {
  return value < n ? std::string(texts[value]) : absl::StrCat("unknown (", value, ")");
}

constexpr absl::string_view kKinds[] = {"dense", "sparse", "ragged"};
constexpr absl::string_view kLates[] = {"apply", "drop"};
constexpr absl::string_view kWeights[] = {"one", "inverse_staleness"};
constexpr absl::string_view kAggregates[] = {"sum", "mean"};
constexpr absl::string_view kNonFinites[] = {"count", "refuse"};
constexpr absl::string_view kErrorFeedbacks[] = {"auto", "off", "worker", "server", "both"};

// The shortest text that reads back as the same number.
std::string Exact(double value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof(text), value).ptr;
  return std::string(text, end);
}

std::string InitializerText(const Initializer& init) {
  switch (init.kind) {
    case Initializer::Kind::kZeros:
      return "zeros";
    case Initializer::Kind::kConstant:
      return absl::StrCat("constant(", Exact(init.a), ")");
    case Initializer::Kind::kUniform:
      return absl::StrCat("uniform(", Exact(init.a), ", ", Exact(init.b), ", seed ", init.seed,
                          ")");
    case Initializer::Kind::kNormal:
      return absl::StrCat("normal(", Exact(init.a), ", ", Exact(init.b), ", seed ", init.seed, ")");
  }
  return absl::StrCat("unknown (", static_cast<unsigned>(init.kind), ")");
}

std::string UpdaterText(const UpdaterSpec& updater) {
  const std::string parameters = absl::StrJoin(
      updater.parameters, ", ", [](std::string* out, const std::pair<std::string, double>& item) {
        absl::StrAppend(out, proto::Quoted(item.first), ": ", Exact(item.second));
      });
  return absl::StrCat(proto::Quoted(updater.name), " {", parameters, "}");
}

}  // namespace

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
  return overflow ? kMax : product;  // far above what Validate lets through
}

std::string TableSpec::ToString() const {
  const std::string form = kind == TableKind::kSparse ? absl::StrCat(" row_width ", row_width)
                           : kind == TableKind::kRagged
                               ? ""
                               : absl::StrCat(" [", absl::StrJoin(shape, ", "), "]");
  return absl::StrCat(
      "table ", proto::Quoted(name), ": ", Text(kKinds, static_cast<unsigned>(kind)), " ",
      Name(dtype), form, ", updater ", UpdaterText(updater), ", initializer ",
      InitializerText(initializer), ", consistency ", consistency.ToString(), ", quorum ",
      consistency.quorum, ", late ", Text(kLates, static_cast<unsigned>(consistency.late)),
      ", weight ", Text(kWeights, static_cast<unsigned>(consistency.weight)), ", aggregate ",
      Text(kAggregates, static_cast<unsigned>(aggregate)), ", nonfinite ",
      Text(kNonFinites, static_cast<unsigned>(nonfinite)), ", codec ", proto::Quoted(codec),
      codecs.empty() ? "" : absl::StrCat(" of ", proto::Quoted(absl::StrJoin(codecs, ";"))),
      ", error_feedback ", Text(kErrorFeedbacks, static_cast<unsigned>(error_feedback)));
}

}  // namespace leeway
