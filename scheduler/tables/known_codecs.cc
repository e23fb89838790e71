#include "scheduler/tables/known_codecs.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "compress/common/options.h"
#include "compress/table_codec.h"
#include "runtime/base/status_macros.h"

namespace leeway::scheduler {
namespace {

constexpr absl::string_view kRemedy =
    "; give all nodes the same LEEWAY_PLUGINS, and programs that register codecs the same ones";

// 0: the node does not have it.
std::uint32_t VersionOf(const Node& node, absl::string_view codec) {
  const auto found = std::lower_bound(
      node.codecs.begin(), node.codecs.end(), codec,
      [](const proto::CodecVersion& one, absl::string_view name) { return one.name < name; });
  return found != node.codecs.end() && found->name == codec ? found->version : 0;
}

absl::Status Check(absl::string_view table, const std::string& codec,
                   const std::vector<Node*>& living) {
  const auto has = std::find_if(living.begin(), living.end(),
                                [&](const Node* node) { return VersionOf(*node, codec) != 0; });
  if (has == living.end()) return absl::OkStatus();
  const std::uint32_t version = VersionOf(**has, codec);
  for (const Node* const node : living) {
    const std::uint32_t its = VersionOf(*node, codec);
    if (node->codecs.empty() || its == version) continue;
    const std::string what =
        its == 0 ? absl::StrCat(node->FullName(), " has no codec '", codec, "', which ",
                                (*has)->FullName(), " has")
                 : absl::StrCat(node->FullName(), " has version ", its, " of codec '", codec,
                                "', and ", (*has)->FullName(), " version ", version);
    return absl::FailedPreconditionError(
        absl::StrCat("cannot create table '", table, "': ", what, kRemedy));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckCodecsAreKnown(const TableSpec& spec, const std::vector<Node*>& living) {
  for (const std::string& text : compress::CodecTextsOf(spec)) {
    const auto parsed = compress::ParseCodecText(text);
    if (!parsed.ok()) continue;  // the servers refuse it with the reason
    LEEWAY_RETURN_IF_ERROR(Check(spec.name, parsed->name, living));
  }
  return absl::OkStatus();
}

}  // namespace leeway::scheduler
