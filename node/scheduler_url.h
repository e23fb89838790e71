#ifndef LEEWAY_NODE_SCHEDULER_URL_H_
#define LEEWAY_NODE_SCHEDULER_URL_H_

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace leeway::node {

// Config::scheduler as the van wants it: "host:port" means tcp.
inline std::string SchedulerUrl(absl::string_view scheduler) {
  if (scheduler.find("://") != absl::string_view::npos) return std::string(scheduler);
  return absl::StrCat("tcp://", scheduler);
}

}  // namespace leeway::node

#endif  // LEEWAY_NODE_SCHEDULER_URL_H_
