// Descriptions of tables in a manifest.
#ifndef LEEWAY_CHECKPOINT_MANIFEST_TABLES_H_
#define LEEWAY_CHECKPOINT_MANIFEST_TABLES_H_

#include "checkpoint/manifest.h"
#include "checkpoint/strict_json.h"

namespace leeway::checkpoint {

Json ToJson(const TableEntry& table);
absl::StatusOr<TableEntry> TableFrom(const Json& json);

}  // namespace leeway::checkpoint

#endif  // LEEWAY_CHECKPOINT_MANIFEST_TABLES_H_
