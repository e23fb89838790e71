#include "worker/links/link.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/format_duration.h"

namespace leeway::worker {

std::string Link::Describe() const {
  return absl::StrCat("server ", server_rank, " thread ", thread, " (", address, ")");
}

std::string Link::Silence(absl::Time now) const {
  return heard == absl::InfinitePast()
             ? ""
             : absl::StrCat(", last heard ", runtime::FormatDuration(now - heard), " ago");
}

}  // namespace leeway::worker
