// The check that all nodes have a table's codecs, by the lists in their Join messages.
#ifndef LEEWAY_SCHEDULER_TABLES_KNOWN_CODECS_H_
#define LEEWAY_SCHEDULER_TABLES_KNOWN_CODECS_H_

#include <vector>

#include "absl/status/status.h"
#include "leeway/table_spec.h"
#include "scheduler/members/membership_table.h"

namespace leeway::scheduler {

// FAILED_PRECONDITION names a node of `living` that lacks a codec which another one has, or has it
// in another version. Nodes without such a list pass, and so does a codec that no node
// has: the servers refuse it, listing those there are. Any thread.
absl::Status CheckCodecsAreKnown(const TableSpec& spec, const std::vector<Node*>& living);

}  // namespace leeway::scheduler

#endif  // LEEWAY_SCHEDULER_TABLES_KNOWN_CODECS_H_
