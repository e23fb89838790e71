#include "checkpoint/manifest_tables.h"

#include "absl/strings/str_cat.h"
#include "checkpoint/safetensors.h"
#include "runtime/base/status_macros.h"

namespace leeway::checkpoint {
namespace {

// By the numbers of the enums.
constexpr absl::string_view kKinds[] = {"dense", "sparse", "ragged"};
constexpr absl::string_view kInitializers[] = {"zeros", "constant", "uniform", "normal", "pushed"};
constexpr absl::string_view kAggregates[] = {"sum", "mean"};
constexpr absl::string_view kNonFinite[] = {"count", "refuse"};
constexpr absl::string_view kErrorFeedbacks[] = {"auto", "off", "worker", "server", "both"};
constexpr absl::string_view kCombines[] = {"sum", "last"};

template <class Enum, std::size_t kCount>
std::string NameIn(const absl::string_view (&names)[kCount], Enum value) {
  const auto index = static_cast<std::size_t>(value);
  return std::string(names[index < kCount ? index : 0]);  // TableSpec::Validate has seen it
}

UpdaterSpec UpdaterFrom(const Json& json, absl::Status* status) {
  Members members(json, "an updater");
  UpdaterSpec updater;
  updater.name = members.Text("name");
  const Json& parameters = members.Of("parameters");
  if (!parameters.is_object()) members.Fail("parameters", "are no object");
  for (const auto& [name, value] : parameters.items()) {
    if (!value.is_number()) {
      members.Fail("parameters", "have something that is no number");
      break;
    }
    updater.parameters[name] = value.get<double>();
  }
  status->Update(members.End());
  return updater;
}

Initializer InitializerFrom(const Json& json, absl::Status* status) {
  Members members(json, "an initializer");
  const Initializer initializer{.kind = members.OneOf<Initializer::Kind>("kind", kInitializers),
                                .a = members.Fraction("a"),
                                .b = members.Fraction("b"),
                                .seed = members.Number("seed")};
  status->Update(members.End());
  return initializer;
}

// A text; in older manifests an object, of which only the bound was ever used.
Consistency ConsistencyFrom(const Json& json, absl::Status* status) {
  if (json.is_object()) {
    Members members(json, "a consistency");
    const Consistency consistency{.staleness = members.Number("staleness")};
    for (const char* const unused : {"quorum", "late", "weight"}) members.Of(unused);
    status->Update(members.End());
    return consistency;
  }
  const absl::StatusOr<Consistency> read =
      Consistency::Parse(json.is_string() ? json.get<std::string>() : json.dump());
  status->Update(read.status());
  return read.value_or(Consistency());
}

}  // namespace

Json ToJson(const TableEntry& table) {
  const TableSpec& spec = table.spec;
  return {{"id", table.id},
          {"name", spec.name},
          {"kind", NameIn(kKinds, spec.kind)},
          {"dtype", std::string(Name(TensorTypeOf(spec.dtype)))},
          {"shape", spec.shape},
          {"row_width", spec.row_width},
          {"updater", {{"name", spec.updater.name}, {"parameters", Json(spec.updater.parameters)}}},
          {"initializer",
           {{"kind", NameIn(kInitializers, spec.initializer.kind)},
            {"a", spec.initializer.a},
            {"b", spec.initializer.b},
            {"seed", spec.initializer.seed}}},
          {"consistency", spec.consistency.ToString()},
          {"aggregate", NameIn(kAggregates, spec.aggregate)},
          {"nonfinite", NameIn(kNonFinite, spec.nonfinite)},
          {"codec", spec.codec},
          {"codecs", spec.codecs},
          {"error_feedback", NameIn(kErrorFeedbacks, spec.error_feedback)},
          {"codec_changed", table.codec_changed},
          {"combine", NameIn(kCombines, table.combine)}};
}

std::vector<std::string> TextsOf(const Json& json, absl::string_view what, absl::Status* status) {
  std::vector<std::string> texts;
  if (json.is_array()) {
    for (const Json& text : json) {
      if (text.is_string()) texts.push_back(text.get<std::string>());
    }
  }
  if (!json.is_array() || texts.size() != json.size()) {
    status->Update(absl::InvalidArgumentError(absl::StrCat(what, " are no array of texts")));
  }
  return texts;
}

absl::StatusOr<TableEntry> TableFrom(const Json& json) {
  Members members(json, "a table");
  TableEntry table;
  TableSpec& spec = table.spec;
  absl::Status parts;
  table.id = members.Number32("id");
  spec.name = members.Text("name");
  spec.kind = members.OneOf<TableKind>("kind", kKinds);
  const std::string type = members.Text("dtype");
  const Json& shape = members.Of("shape");
  spec.row_width = members.Number("row_width");
  spec.updater = UpdaterFrom(members.Of("updater"), &parts);
  spec.initializer = InitializerFrom(members.Of("initializer"), &parts);
  spec.consistency = ConsistencyFrom(members.Of("consistency"), &parts);
  spec.aggregate = members.OneOf<Aggregate>("aggregate", kAggregates);
  spec.nonfinite = members.OneOf<NonFinite>("nonfinite", kNonFinite);
  spec.codec = members.Text("codec");
  // Older manifests have none.
  if (members.Has("error_feedback")) {
    spec.error_feedback = members.OneOf<ErrorFeedback>("error_feedback", kErrorFeedbacks);
  }
  if (members.Has("codecs"))
    spec.codecs = TextsOf(members.Of("codecs"), "a table's codecs", &parts);
  if (members.Has("codec_changed")) table.codec_changed = members.Truth("codec_changed");
  table.combine = members.OneOf<Updater::Combine>("combine", kCombines);
  LEEWAY_RETURN_IF_ERROR(members.End());
  LEEWAY_RETURN_IF_ERROR(parts);
  const std::optional<TensorType> tensor = TensorTypeNamed(type);
  const std::optional<DType> dtype = tensor ? DTypeOfTensor(*tensor) : std::nullopt;
  if (!dtype.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat("no table has the dtype '", type, "'"));
  }
  spec.dtype = *dtype;
  if (!shape.is_array()) return absl::InvalidArgumentError("a table's shape is no array");
  for (const Json& extent : shape) {
    if (!extent.is_number_unsigned()) {
      return absl::InvalidArgumentError("a table's shape has something that is no number");
    }
    spec.shape.push_back(extent.get<std::uint64_t>());
  }
  LEEWAY_RETURN_IF_ERROR(spec.Validate());
  return table;
}

}  // namespace leeway::checkpoint
