#include "tools/compression/plan.h"

#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "compress/registry.h"
#include "compress/table_codec.h"
#include "runtime/base/status_macros.h"

namespace leeway::tools {
namespace {

absl::Status Wrong(const absl::Status& why) {
  return absl::InvalidArgumentError(absl::StrCat("--codecs: ", why.message()));
}

ErrorFeedback FeedbackOf(const compress::TableCodec& codec) {
  if (codec.worker_feedback && codec.server_feedback) return ErrorFeedback::kBoth;
  if (codec.worker_feedback) return ErrorFeedback::kWorker;
  return codec.server_feedback ? ErrorFeedback::kServer : ErrorFeedback::kOff;
}

absl::Status AddVariants(TableSpec table, std::vector<Variant>* variants) {
  table.error_feedback = ErrorFeedback::kAuto;
  const absl::StatusOr<compress::TableCodec> automatic = compress::TableCodecOf(table);
  if (!automatic.ok()) return Wrong(automatic.status());
  const ErrorFeedback feedback = FeedbackOf(*automatic);
  variants->push_back({table.codec, feedback});
  table.error_feedback = ErrorFeedback::kOff;
  if (feedback != ErrorFeedback::kOff && compress::TableCodecOf(table).ok()) {
    variants->push_back({table.codec, ErrorFeedback::kOff});
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<Variant>> PlanVariants(absl::string_view codecs,
                                                  const TableSpec& table) {
  std::vector<Variant> variants = {{"none", ErrorFeedback::kOff}};
  std::set<std::string> seen;
  for (const absl::string_view part : absl::StrSplit(codecs, ';')) {
    const std::string codec(absl::StripAsciiWhitespace(part));
    if (codec.empty()) continue;
    if (!seen.insert(codec).second) {
      return absl::InvalidArgumentError(absl::StrCat("--codecs: '", codec, "' is listed twice"));
    }
    if (codec == "none") continue;
    if (const absl::Status known = compress::MakeCodec(codec).status(); !known.ok()) {
      return Wrong(known);
    }
    TableSpec encoded = table;
    encoded.codec = codec;
    LEEWAY_RETURN_IF_ERROR(AddVariants(encoded, &variants));
  }
  // "none" alone counts as a codec, too.
  if (seen.empty()) return absl::InvalidArgumentError("--codecs: it names no codec");
  return variants;
}

}  // namespace leeway::tools
