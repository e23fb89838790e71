#include "tools/format/move_progress.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"

namespace leeway::tools {
namespace {

using Json = nlohmann::json;

std::uint64_t PlacesOf(const Json& server) {
  return server.at("heads").get<std::uint64_t>() + server.at("replicas").get<std::uint64_t>();
}

}  // namespace

bool MoveProgress::Take(const std::string& status) {
  try {
    const Json shards = Json::parse(status).at("shards");
    std::uint64_t least = std::numeric_limits<std::uint64_t>::max(), most = 0, drained = 0;
    for (const Json& server : shards.at("servers")) {
      least = std::min(least, PlacesOf(server));
      most = std::max(most, PlacesOf(server));
      if (server.at("rank") == drained_.value_or(0)) drained = PlacesOf(server);
    }
    const auto joining = shards.at("filling").get<std::uint64_t>();
    left_ = drained_.has_value() ? drained : std::max(joining, most - std::min(least, most));
    most_ = std::max(most_, left_);
    text_ = drained_.has_value() ? absl::StrCat(drained, " shards left on server ", *drained_, ", ",
                                                joining, " on their way")
                                 : absl::StrCat(joining, " shards on their way; servers have ",
                                                std::min(least, most), " to ", most);
    return true;
  } catch (const Json::exception&) {
    return false;
  }
}

double MoveProgress::part() const {
  return most_ == 0 ? 0 : 1 - static_cast<double>(left_) / static_cast<double>(most_);
}

}  // namespace leeway::tools
