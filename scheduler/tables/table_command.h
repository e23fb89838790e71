// The arguments of the command `table NAME [FIELD=VALUE …]`, parsed.
#ifndef LEEWAY_SCHEDULER_TABLES_TABLE_COMMAND_H_
#define LEEWAY_SCHEDULER_TABLES_TABLE_COMMAND_H_

#include "absl/status/statusor.h"
#include "leeway/table_spec.h"
#include "scheduler/admin/admin_service.h"

namespace leeway::scheduler {

inline constexpr char kTableChangeUsage[] =
    "updater.NAME=NUMBER, updater.NAME=default, consistency=bsp|ssp:S|asp or "
    "nonfinite=count|refuse";

// `spec` with the changes that the arguments behind the first one, the table's name, ask for.
// INVALID_ARGUMENT names the argument that asks for none.
absl::StatusOr<TableSpec> WithChanges(TableSpec spec, const AdminService::Arguments& arguments);

}  // namespace leeway::scheduler

#endif  // LEEWAY_SCHEDULER_TABLES_TABLE_COMMAND_H_
