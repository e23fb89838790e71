// The updaters that a manifest names, checked as far as this program knows them. Updaters of
// plugins that are not loaded here are checked by the servers.
#ifndef LEEWAY_PS_CHECKPOINT_MANIFEST_UPDATERS_H_
#define LEEWAY_PS_CHECKPOINT_MANIFEST_UPDATERS_H_

#include <cstdint>
#include <optional>

#include "leeway/table_spec.h"

namespace leeway::ps {

// State values that the updater of a table keeps for each element. Nothing: it is not known here.
std::optional<std::uint32_t> StateSlotsOf(const TableSpec& spec);

}  // namespace leeway::ps

#endif  // LEEWAY_PS_CHECKPOINT_MANIFEST_UPDATERS_H_
