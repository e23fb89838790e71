// MakeLocalTable makes a table without a cluster: a server's store, in this process.
#ifndef LEEWAY_TOOLS_TRAIN_LOCAL_TABLE_H_
#define LEEWAY_TOOLS_TRAIN_LOCAL_TABLE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "examples/fashion_mnist/reference.h"
#include "leeway/table_spec.h"

namespace leeway::tools {

absl::StatusOr<std::unique_ptr<fashion_mnist::LocalTable>> MakeLocalTable(const TableSpec& spec);

}  // namespace leeway::tools

#endif  // LEEWAY_TOOLS_TRAIN_LOCAL_TABLE_H_
