// StatusTables formats a cluster's status for people, as `leeway status` shows it.
#ifndef LEEWAY_TOOLS_FORMAT_STATUS_TABLES_H_
#define LEEWAY_TOOLS_FORMAT_STATUS_TABLES_H_

#include <nlohmann/json.hpp>
#include <string>

namespace leeway::tools {

// Tables of nodes, shards, tables and clocks, and lines about problems, from the scheduler's JSON
// with the answers of each server's threads under servers[].threads. Missing parts are left out.
// Throws Json::exception if a value has an unexpected type.
std::string StatusTables(const nlohmann::ordered_json& status);

}  // namespace leeway::tools

#endif  // LEEWAY_TOOLS_FORMAT_STATUS_TABLES_H_
