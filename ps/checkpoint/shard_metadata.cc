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

absl::StatusOr<proto::ClientSession> SessionFrom(const Json& json) {
  Members members(json, "a worker");
  proto::ClientSession session;
  session.rank = members.Number32("rank");
  session.incarnation = members.Number("incarnation");
  session.clock = members.Number("clock");
  session.since = members.Number("since");
  session.admitted = members.Number("admitted");
  session.admitted_held = members.Number("admitted_held");
  LEEWAY_RETURN_IF_ERROR(members.End());
  return session;
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
  Json sessions = Json::array(), tables = Json::array();
  for (const proto::ClientSession& session : content.sessions) {
    sessions.push_back({{"rank", session.rank},
                        {"incarnation", session.incarnation},
                        {"clock", session.clock},
                        {"since", session.since},
                        {"admitted", session.admitted},
                        {"admitted_held", session.admitted_held}});
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
                     {"windows", std::move(sessions)},
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
  const Json& sessions = members.Of("windows");
  const Json& tables = members.Of("tables");
  LEEWAY_RETURN_IF_ERROR(members.End());
  if (!sessions.is_array() || !tables.is_array()) {
    return absl::InvalidArgumentError("the metadata have no sessions or no tables");
  }
  for (const Json& one : sessions) {
    LEEWAY_ASSIGN_OR_RETURN(proto::ClientSession session, SessionFrom(one));
    content.sessions.push_back(session);
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
