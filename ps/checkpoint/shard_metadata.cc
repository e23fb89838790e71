#include "ps/checkpoint/shard_metadata.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "checkpoint/strict_json.h"
#include "proto/messages/limits.h"
#include "runtime/base/status_macros.h"

namespace leeway::ps {
namespace {

using checkpoint::Json;
using checkpoint::Members;

// Texts by name are all that the format has room for, so that ours is one of JSON.
constexpr char kKey[] = "leeway";
constexpr int kDepthMax = 4;

absl::StatusOr<proto::WorkerWindow> WindowFrom(const Json& json) {
  Members members(json, "a worker");
  proto::WorkerWindow window;
  window.rank = members.Number32("rank");
  window.incarnation = members.Number("incarnation");
  window.clock = members.Number("clock");
  window.since = members.Number("since");
  window.admitted = members.Number("admitted");
  window.admitted_held = members.Number("admitted_held");
  LEEWAY_RETURN_IF_ERROR(members.End());
  return window;
}

absl::StatusOr<ShardContent::Table> TableFrom(const Json& json) {
  Members members(json, "a table");
  ShardContent::Table table;
  table.id = members.Number32("id");
  table.state_slots = members.Number32("state_slots");
  if (table.state_slots > proto::kStateSlotsMax) members.Fail("state_slots", "is too large");
  LEEWAY_RETURN_IF_ERROR(members.End());
  return table;
}

}  // namespace

std::map<std::string, std::string> ToMetadata(const ShardContent& content) {
  Json windows = Json::array(), tables = Json::array();
  for (const proto::WorkerWindow& window : content.windows) {
    windows.push_back({{"rank", window.rank},
                       {"incarnation", window.incarnation},
                       {"clock", window.clock},
                       {"since", window.since},
                       {"admitted", window.admitted},
                       {"admitted_held", window.admitted_held}});
  }
  for (const ShardContent::Table& table : content.tables) {
    tables.push_back({{"id", table.id}, {"state_slots", table.state_slots}});
  }
  const Json json = {{"format", checkpoint::kFormatVersion},
                     {"checkpoint", content.checkpoint},
                     {"shard", content.shard},
                     {"num_shards", content.num_shards},
                     {"block_bytes", content.block_bytes},
                     {"clock", content.clock},
                     {"base", content.base},
                     {"windows", std::move(windows)},
                     {"tables", std::move(tables)}};
  return {{kKey, json.dump()}};
}

absl::StatusOr<ShardContent> FromMetadata(const std::map<std::string, std::string>& metadata) {
  const auto text = metadata.find(kKey);
  if (text == metadata.end()) return absl::InvalidArgumentError("it is no file of a checkpoint");
  LEEWAY_ASSIGN_OR_RETURN(const Json json, checkpoint::ParseJson(text->second, kDepthMax));
  Members members(json, "the metadata");
  ShardContent content;
  if (members.Number("format") != checkpoint::kFormatVersion) {
    members.Fail("format", "is of another version");
  }
  content.checkpoint = members.Text("checkpoint");
  content.shard = members.Number32("shard");
  content.num_shards = members.Number32("num_shards");
  content.block_bytes = members.Number("block_bytes");
  content.clock = members.Number("clock");
  content.base = members.Text("base");
  const Json& windows = members.Of("windows");
  const Json& tables = members.Of("tables");
  LEEWAY_RETURN_IF_ERROR(members.End());
  if (!windows.is_array() || !tables.is_array()) {
    return absl::InvalidArgumentError("the metadata have no windows or no tables");
  }
  for (const Json& one : windows) {
    LEEWAY_ASSIGN_OR_RETURN(proto::WorkerWindow window, WindowFrom(one));
    content.windows.push_back(window);
  }
  for (const Json& one : tables) {
    LEEWAY_ASSIGN_OR_RETURN(ShardContent::Table table, TableFrom(one));
    if (!content.tables.empty() && content.tables.back().id >= table.id) {
      return absl::InvalidArgumentError("the tables of the metadata are mixed up");
    }
    content.tables.push_back(std::move(table));
  }
  return content;
}

}  // namespace leeway::ps
