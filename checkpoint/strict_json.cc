#include "checkpoint/strict_json.h"

#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/tables/text.h"

namespace leeway::checkpoint {
namespace {

const Json& Nothing() {
  static const Json* const nothing = new Json();
  return *nothing;
}

}  // namespace

absl::StatusOr<Json> ParseJson(absl::string_view text, int depth_max) {
  std::string problem;
  std::vector<std::set<std::string>> names;  // of the objects that are open
  const auto look = [&](int depth, Json::parse_event_t event, Json& parsed) {
    switch (event) {
      case Json::parse_event_t::object_start:
        names.emplace_back();
        [[fallthrough]];
      case Json::parse_event_t::array_start:
        if (depth >= depth_max) problem = absl::StrCat("it is nested deeper than ", depth_max);
        break;
      case Json::parse_event_t::object_end:
        names.pop_back();
        break;
      case Json::parse_event_t::key:
        if (!names.back().insert(parsed.get<std::string>()).second) {
          problem = absl::StrCat(proto::Quoted(parsed.get<std::string>()), " appears twice");
        }
        break;
      default:
        break;
    }
    return problem.empty();  // what follows a problem need not be kept
  };
  Json json = Json::parse(text.begin(), text.end(), look, /*allow_exceptions=*/false);
  if (!problem.empty()) return absl::InvalidArgumentError(problem);
  if (json.is_discarded()) return absl::InvalidArgumentError("it is no JSON");
  return json;
}

Members::Members(const Json& json, std::string what) : json_(json), what_(std::move(what)) {
  if (!json.is_object()) status_ = absl::InvalidArgumentError(absl::StrCat(what_, " is no object"));
}

bool Members::Has(const char* name) const { return json_.is_object() && json_.contains(name); }

const Json& Members::Of(const char* name) {
  if (!status_.ok()) return Nothing();
  const auto found = json_.find(name);
  if (found == json_.end()) {
    Fail(name, "is missing");
    return Nothing();
  }
  ++asked_;
  return *found;
}

std::uint64_t Members::Number(const char* name) {
  const Json& value = Of(name);
  if (value.is_number_unsigned()) return value.get<std::uint64_t>();
  Fail(name, "is no whole number");
  return 0;
}

std::uint32_t Members::Number32(const char* name) {
  const std::uint64_t number = Number(name);
  if (number <= std::numeric_limits<std::uint32_t>::max()) {
    return static_cast<std::uint32_t>(number);
  }
  Fail(name, "is too large");
  return 0;
}

double Members::Fraction(const char* name) {
  const Json& value = Of(name);
  if (value.is_number()) return value.get<double>();
  Fail(name, "is no number");
  return 0;
}

bool Members::Truth(const char* name) {
  const Json& value = Of(name);
  if (value.is_boolean()) return value.get<bool>();
  Fail(name, "is neither true nor false");
  return false;
}

std::string Members::Text(const char* name) {
  const Json& value = Of(name);
  // It may be shown to people: nothing in it may do anything to their terminals.
  if (value.is_string() && proto::IsClean(value.get<std::string>(), proto::Lines::kOne)) {
    return value.get<std::string>();
  }
  Fail(name, value.is_string() ? "has control characters" : "is no text");
  return {};
}

std::size_t Members::IndexOf(const char* name, const absl::string_view* names, std::size_t count) {
  const std::string text = Text(name);
  for (std::size_t i = 0; i < count; ++i) {
    if (names[i] == text) return i;
  }
  Fail(name, absl::StrCat("is '", text, "', which is not known"));
  return 0;
}

void Members::Fail(const char* name, absl::string_view problem) {
  if (!status_.ok()) return;
  status_ = absl::InvalidArgumentError(absl::StrCat("'", name, "' of ", what_, " ", problem));
}

absl::Status Members::End() const {
  if (!status_.ok() || json_.size() == asked_) return status_;
  return absl::InvalidArgumentError(
      absl::StrCat(what_, " has ", json_.size() - asked_, " members that are not known"));
}

}  // namespace leeway::checkpoint
