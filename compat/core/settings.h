// The settings of a program written for ps-lite: DMLC_* and PS_* beside Leeway's own.
#ifndef LEEWAY_COMPAT_CORE_SETTINGS_H_
#define LEEWAY_COMPAT_CORE_SETTINGS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "leeway/config.h"
#include "leeway/table_spec.h"

namespace leeway::compat {

// INVALID_ARGUMENT names the variable.
absl::StatusOr<Config> ReadConfig();

// The tables that stand behind KVServerDefaultHandle.
struct TableSettings {
  TableSpec spec;                      // without its name and type of values
  std::uint64_t pushes_per_clock = 1;  // LEEWAY_PS_PUSHES_PER_CLOCK
};
// From LEEWAY_PS_CONSISTENCY, LEEWAY_PS_CODEC, LEEWAY_PS_ROW_WIDTH.
absl::StatusOr<TableSettings> ReadTableSettings();
// LEEWAY_PS_TABLES.
bool UsesTables();

}  // namespace leeway::compat

#endif  // LEEWAY_COMPAT_CORE_SETTINGS_H_
