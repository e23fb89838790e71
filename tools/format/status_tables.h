// What `leeway status` shows to people.
#ifndef LEEWAY_TOOLS_FORMAT_STATUS_TABLES_H_
#define LEEWAY_TOOLS_FORMAT_STATUS_TABLES_H_

#include <nlohmann/json.hpp>
#include <string>

namespace leeway::tools {

// Tables of nodes, shards, tables and clocks, and lines on what is out of the ordinary, from the
// scheduler's JSON with what each server thread answered under servers[].threads. What is missing
// there is left out. Throws Json::exception where something has another type than it should.
std::string StatusTables(const nlohmann::ordered_json& status);

}  // namespace leeway::tools

#endif  // LEEWAY_TOOLS_FORMAT_STATUS_TABLES_H_
