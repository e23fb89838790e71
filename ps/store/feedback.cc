#include "ps/store/feedback.h"

#include "compress/table_codec.h"

namespace leeway::ps {

std::uint32_t FeedbackSlots(const TableSpec& spec) {
  if (spec.codec == "none") return 0;
  const absl::StatusOr<compress::TableCodec> codec = compress::TableCodecOf(spec);
  return codec.ok() && codec->server_feedback ? 1 : 0;
}

bool FeedbackIsValue(const TableSpec& spec) {
  return spec.updater.name != compress::kGradientUpdater;
}

}  // namespace leeway::ps
