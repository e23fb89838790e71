// The JSON form of a scheduler's state, of the whole or of what changed in it (RFC 7396, "JSON
// Merge Patch"). The format of the file around it is in state_file.h.
#ifndef LEEWAY_SCHEDULER_STATE_STATE_JSON_H_
#define LEEWAY_SCHEDULER_STATE_STATE_JSON_H_

#include <nlohmann/json.hpp>

#include "scheduler/state/state.h"

namespace leeway::scheduler {

nlohmann::json ToJson(const State& state);
// What merges ToJson(before) into ToJson(after). Takes time for what changed, and little for each
// node and table that did not.
nlohmann::json ChangesBetween(const State& before, const State& after);
// Throws an exception of the library, or std::invalid_argument, for anything that ToJson has not
// made.
State StateFrom(const nlohmann::json& json);

}  // namespace leeway::scheduler

#endif  // LEEWAY_SCHEDULER_STATE_STATE_JSON_H_
