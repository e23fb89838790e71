// The description of an open table on a worker: what slicing and the checks of replies need.
//
// Constant once the table is open; shared by the user's handles and by requests.
#ifndef LEEWAY_WORKER_SLICING_TABLE_INFO_H_
#define LEEWAY_WORKER_SLICING_TABLE_INFO_H_

#include <cstdint>
#include <memory>

#include "leeway/table_spec.h"
#include "leeway/updater.h"

namespace leeway::worker {

struct TableCoding;
class LiveTableSettings;
class UpdatesRead;

struct TableInfo {
  std::uint32_t id = 0;
  TableSpec spec;  // as it was when the table was opened; `settings` has what changes
  Updater::Combine combine = Updater::Combine::kSum;  // how rows of repeated keys become one
  std::uint32_t num_shards = 1;
  std::uint64_t block_bytes = 0;                 // the cluster's: LEEWAY_BLOCK_BYTES
  std::uint64_t message_bytes_max = 1ull << 30;  // one payload frame
  std::shared_ptr<TableCoding> coding;           // null: values are not encoded
  std::shared_ptr<LiveTableSettings> settings;   // null: `spec` holds in every clock
  std::shared_ptr<UpdatesRead> updates_read;     // null: the table has no weights by staleness
};

}  // namespace leeway::worker

#endif  // LEEWAY_WORKER_SLICING_TABLE_INFO_H_
