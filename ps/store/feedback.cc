#include "ps/store/feedback.h"

#include "compress/table_codec.h"

namespace leeway::ps {

std::uint32_t FeedbackSlots(const TableSpec& spec) {
  if (spec.codec == "none" && spec.codecs.empty()) return 0;
  const absl::StatusOr<compress::TableCodecs> codecs = compress::TableCodecsOf(spec);
  return codecs.ok() && codecs->AnyHas(&compress::TableCodec::server_feedback) ? 1 : 0;
}

bool FeedbackIsValue(const TableSpec& spec) {
  return spec.updater.name != compress::kGradientUpdater;
}

}  // namespace leeway::ps
