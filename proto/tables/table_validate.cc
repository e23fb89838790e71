// TableSpec::Validate: the limits of a description, and the values that are supported.
#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "leeway/table_spec.h"
#include "proto/messages/limits.h"
#include "proto/tables/text.h"
#include "runtime/base/status_macros.h"

namespace leeway {
namespace {

template <class... Parts>
absl::Status Wrong(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

// An enum that a caller has cast, or that came from the wire, may hold any number.
template <class Enum>
absl::Status CheckEnum(absl::string_view field, Enum value, Enum last) {
  if (value <= last) return absl::OkStatus();
  return Wrong(field, " is ", static_cast<unsigned>(value), ", may be 0 to ",
               static_cast<unsigned>(last));
}

absl::Status CheckEnums(const TableSpec& spec) {
  LEEWAY_RETURN_IF_ERROR(CheckEnum("kind", spec.kind, TableKind::kRagged));
  LEEWAY_RETURN_IF_ERROR(CheckEnum("dtype", spec.dtype, DType::kInt64));
  LEEWAY_RETURN_IF_ERROR(
      CheckEnum("initializer.kind", spec.initializer.kind, Initializer::Kind::kPushed));
  LEEWAY_RETURN_IF_ERROR(CheckEnum("aggregate", spec.aggregate, Aggregate::kMean));
  LEEWAY_RETURN_IF_ERROR(CheckEnum("nonfinite", spec.nonfinite, NonFinite::kRefuse));
  return CheckEnum("error_feedback", spec.error_feedback, ErrorFeedback::kBoth);
}

absl::Status CheckShape(const TableSpec& spec) {
  const auto shape = [&] {
    return absl::StrCat("shape is [", absl::StrJoin(spec.shape, ", "), "]");
  };
  if (spec.kind != TableKind::kDense) {
    return spec.shape.empty() ? absl::OkStatus() : Wrong(shape(), ", only dense tables have one");
  }
  if (spec.shape.empty() || spec.shape.size() > proto::kDimensionsMax) {
    return Wrong("shape has ", spec.shape.size(), " dimensions, may have 1 to ",
                 proto::kDimensionsMax);
  }
  if (absl::c_linear_search(spec.shape, 0u)) return Wrong(shape(), ", no dimension may be 0");
  if (spec.NumElements() > proto::kTableElementsMax) {
    return Wrong(shape(), ", may have ", proto::kTableElementsMax, " elements");
  }
  return absl::OkStatus();
}

absl::Status CheckRowWidth(const TableSpec& spec) {
  if (spec.kind != TableKind::kSparse) {
    if (spec.row_width == 0) return absl::OkStatus();
    return Wrong("row_width is ", spec.row_width, ", only sparse tables have one");
  }
  if (spec.row_width >= 1 && spec.row_width <= proto::kRowWidthMax) return absl::OkStatus();
  return Wrong("row_width is ", spec.row_width, ", may be 1 to ", proto::kRowWidthMax);
}

// True for built-in updaters that compute with fractions. Servers check the other updaters.
bool NeedsFractions(absl::string_view updater) {
  constexpr absl::string_view kUpdaters[] = {"sgd",     "momentum", "nesterov",
                                             "adagrad", "rmsprop",  "adam",
                                             "adamw",   "ftrl",     "delayed_nesterov"};
  return absl::c_linear_search(kUpdaters, updater);
}

absl::Status CheckUpdater(const TableSpec& spec) {
  const UpdaterSpec& updater = spec.updater;
  LEEWAY_RETURN_IF_ERROR(proto::CheckText("updater.name", updater.name, 1, proto::kNameBytesMax));
  if (updater.parameters.size() > proto::kParametersMax) {
    return Wrong("updater.parameters are ", updater.parameters.size(), ", may be ",
                 proto::kParametersMax);
  }
  for (const auto& [name, value] : updater.parameters) {
    LEEWAY_RETURN_IF_ERROR(
        proto::CheckText("the name of an updater's parameter", name, 1, proto::kNameBytesMax));
    if (!std::isfinite(value)) {
      return Wrong("updater.parameters[", proto::Quoted(name), "] is ", value, ", may be finite");
    }
  }
  if (updater.name == "gradient" && !spec.consistency.is_bsp()) {
    return Wrong("updater is \"gradient\" and consistency ", spec.consistency.ToString(),
                 "; only bsp has clocks whose pushes are added up");
  }
  if (IsInteger(spec.dtype) && NeedsFractions(updater.name)) {
    return Wrong("updater is ", proto::Quoted(updater.name), " and dtype ", Name(spec.dtype),
                 "; of the built-in updaters only \"assign\" and \"add\" update integers");
  }
  return absl::OkStatus();
}

double LargestOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return std::numeric_limits<float>::max();
    case DType::kFloat64:
      return std::numeric_limits<double>::max();
    case DType::kFloat16:
      return 65504;
    case DType::kBFloat16:
      return 0x1.fep127;
    case DType::kInt32:
      return std::numeric_limits<std::int32_t>::max();
    case DType::kInt64:
      return 0x1.fffffffffffffp62;  // the largest double that is an int64
  }
  return 0;
}

absl::Status CheckValue(absl::string_view what, double value, DType dtype) {
  // The negated form is true for NaN as well.
  if (!(std::abs(value) <= LargestOf(dtype))) {
    return Wrong(what, " is ", value, ", may be from ", -LargestOf(dtype), " to ", LargestOf(dtype),
                 " for ", Name(dtype));
  }
  if (IsInteger(dtype) && value != std::trunc(value)) {
    return Wrong(what, " is ", value, ", may be a whole number for ", Name(dtype));
  }
  return absl::OkStatus();
}

// `a`, `b` and `seed` are 0 where the kind does not use them, so that equal tables compare equal.
absl::Status CheckUnused(const Initializer& init) {
  const bool constant = init.kind == Initializer::Kind::kConstant;
  if (!constant && init.a != 0) {
    return Wrong("initializer.a is ", init.a, ", may be 0 for zeros and pushed");
  }
  if (init.b != 0) {
    return Wrong("initializer.b is ", init.b, ", may be 0 for zeros, pushed and constant");
  }
  if (init.seed != 0) {
    return Wrong("initializer.seed is ", init.seed, ", may be 0 for zeros, pushed and constant");
  }
  return absl::OkStatus();
}

absl::Status CheckRandom(const TableSpec& spec) {
  const Initializer& init = spec.initializer;
  if (IsInteger(spec.dtype)) {
    return Wrong("initializer is random and dtype ", Name(spec.dtype),
                 "; integer tables start as zeros or a constant");
  }
  if (init.kind == Initializer::Kind::kNormal) {
    LEEWAY_RETURN_IF_ERROR(CheckValue("initializer.a (mean)", init.a, spec.dtype));
    LEEWAY_RETURN_IF_ERROR(CheckValue("initializer.b (standard deviation)", init.b, spec.dtype));
    if (init.b >= 0) return absl::OkStatus();
    return Wrong("initializer.b (standard deviation) is ", init.b, ", may be 0 or more");
  }
  LEEWAY_RETURN_IF_ERROR(CheckValue("initializer.a (lower bound)", init.a, spec.dtype));
  LEEWAY_RETURN_IF_ERROR(CheckValue("initializer.b (upper bound)", init.b, spec.dtype));
  if (init.a > init.b) {
    return Wrong("initializer.a (lower bound) is ", init.a, ", may be at most initializer.b, ",
                 init.b);
  }
  if (!std::isfinite(init.b - init.a)) {
    return Wrong("initializer is uniform from ", init.a, " to ", init.b, ", which is too wide");
  }
  return absl::OkStatus();
}

absl::Status CheckPushed(const TableSpec& spec) {
  if (spec.kind != TableKind::kDense) {
    return Wrong("initializer is pushed; only dense tables begin with a push of all their values");
  }
  if (spec.updater.name == "gradient") {
    return Wrong("initializer is pushed and updater \"gradient\", which keeps no values");
  }
  return CheckUnused(spec.initializer);
}

absl::Status CheckInitializer(const TableSpec& spec) {
  const Initializer& init = spec.initializer;
  if (spec.kind == TableKind::kRagged && init.kind != Initializer::Kind::kZeros) {
    return Wrong(
        "initializer is not zeros; the rows of a ragged table have no elements before "
        "their first push");
  }
  switch (init.kind) {
    case Initializer::Kind::kConstant:
      LEEWAY_RETURN_IF_ERROR(CheckValue("initializer.a (the constant)", init.a, spec.dtype));
      return CheckUnused(init);
    case Initializer::Kind::kZeros:
      return CheckUnused(init);
    case Initializer::Kind::kPushed:
      return CheckPushed(spec);
    case Initializer::Kind::kUniform:
    case Initializer::Kind::kNormal:
      return CheckRandom(spec);
  }
  return absl::OkStatus();
}

absl::Status CheckConsistency(const TableSpec& spec) {
  const Consistency& consistency = spec.consistency;
  LEEWAY_RETURN_IF_ERROR(consistency.Validate());
  const bool adds_up =
      consistency.collects() || consistency.is_weighted() || consistency.is_compensated();
  const auto with = [&](const auto&... what) {
    return Wrong("consistency is ", consistency.ToString(), " and ", what...);
  };
  if (adds_up && spec.updater.name == "assign") {
    return with("updater \"assign\"; values that replace others are not added up or weighted");
  }
  if (consistency.collects() && spec.kind == TableKind::kRagged) {
    return with("kind ragged; rows of which two pushes give different widths are not added up");
  }
  if (consistency.is_compensated() &&
      (spec.kind != TableKind::kDense ||
       (spec.dtype != DType::kFloat32 && spec.dtype != DType::kFloat64))) {
    return with(
        "a table of another kind than dense float32 or float64; only such pushes are "
        "compensated for their delay");
  }
  // A cut-off alone counts pushes as they are, or not at all.
  if (consistency.is_weighted() && consistency.weight != Consistency::Weight::kCutOff &&
      IsInteger(spec.dtype)) {
    return with("dtype ", Name(spec.dtype), "; integers are not multiplied by a weight");
  }
  return absl::OkStatus();
}

absl::Status CheckAggregate(const TableSpec& spec) {
  if (spec.aggregate != Aggregate::kMean) return absl::OkStatus();
  if (!spec.consistency.is_bsp() && !spec.consistency.collects()) {
    return Wrong("aggregate is mean and consistency ", spec.consistency.ToString(),
                 "; only bsp, backup, softsync and fedbuff apply several pushes at once");
  }
  if (IsInteger(spec.dtype)) {
    return Wrong("aggregate is mean and dtype ", Name(spec.dtype), "; integers have no mean");
  }
  return absl::OkStatus();
}

absl::Status CheckCodecs(const TableSpec& spec) {
  LEEWAY_RETURN_IF_ERROR(proto::CheckText("codec", spec.codec, 1, proto::kNameBytesMax));
  if (spec.codecs.size() > proto::kTableCodecsMax) {
    return Wrong("codecs has ", spec.codecs.size(), " entries, may have ", proto::kTableCodecsMax);
  }
  for (auto codec = spec.codecs.begin(); codec != spec.codecs.end(); ++codec) {
    LEEWAY_RETURN_IF_ERROR(proto::CheckText("codecs", *codec, 1, proto::kNameBytesMax));
    if (std::find(spec.codecs.begin(), codec, *codec) != codec) {
      return Wrong("codecs has ", proto::Quoted(*codec), " twice");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status TableSpec::Validate() const {
  LEEWAY_RETURN_IF_ERROR(proto::CheckText("name", name, 1, proto::kNameBytesMax));
  LEEWAY_RETURN_IF_ERROR(CheckEnums(*this));
  LEEWAY_RETURN_IF_ERROR(CheckShape(*this));
  LEEWAY_RETURN_IF_ERROR(CheckRowWidth(*this));
  LEEWAY_RETURN_IF_ERROR(CheckUpdater(*this));
  LEEWAY_RETURN_IF_ERROR(CheckInitializer(*this));
  LEEWAY_RETURN_IF_ERROR(CheckCodecs(*this));
  LEEWAY_RETURN_IF_ERROR(CheckConsistency(*this));
  return CheckAggregate(*this);
}

}  // namespace leeway
