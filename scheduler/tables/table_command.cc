#include "scheduler/tables/table_command.h"

#include <set>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "proto/tables/text.h"
#include "runtime/base/status_macros.h"

namespace leeway::scheduler {
namespace {

absl::Status ChangeParameter(const std::string& name, const std::string& value, TableSpec* spec) {
  if (value == "default") {
    if (spec->updater.parameters.erase(name) > 0) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(proto::QuotedBriefly("updater." + name),
                     " is not among the table's hyper-parameters, so that it has its default"));
  }
  double number = 0;
  if (!absl::SimpleAtod(value, &number)) {
    return absl::InvalidArgumentError(absl::StrCat(proto::QuotedBriefly("updater." + name), " is ",
                                                   proto::QuotedBriefly(value),
                                                   ": it must be a number, or default"));
  }
  spec->updater.parameters[name] = number;
  return absl::OkStatus();
}

// Applies one "field=value" to `spec`. `given`: the fields of the arguments before it.
absl::Status ChangeField(const std::string& argument, std::set<std::string>* given,
                         TableSpec* spec) {
  const std::pair<std::string, std::string> change =
      absl::StrSplit(argument, absl::MaxSplits('=', 1));
  absl::string_view field = change.first;
  const std::string& value = change.second;
  if (!given->insert(change.first).second) {
    return absl::InvalidArgumentError(
        absl::StrCat(proto::QuotedBriefly(field), " is given twice: say once what it should be"));
  }
  if (absl::ConsumePrefix(&field, "updater.") && !field.empty()) {
    return ChangeParameter(std::string(field), value, spec);
  }
  if (field == "consistency") {
    LEEWAY_ASSIGN_OR_RETURN(spec->consistency, Consistency::Parse(value));
    return absl::OkStatus();
  }
  if (field == "nonfinite" && (value == "count" || value == "refuse")) {
    spec->nonfinite = value == "count" ? NonFinite::kCount : NonFinite::kRefuse;
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(proto::QuotedBriefly(argument),
                                                 " changes nothing of a table: it may be ",
                                                 kTableChangeUsage));
}

}  // namespace

absl::StatusOr<TableSpec> WithChanges(TableSpec spec, const AdminService::Arguments& arguments) {
  std::set<std::string> given;
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    LEEWAY_RETURN_IF_ERROR(ChangeField(arguments[i], &given, &spec));
  }
  return spec;
}

}  // namespace leeway::scheduler
