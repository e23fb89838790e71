// The tables that a worker has opened: the settings that hold in each clock, and the codecs with
// what they keep from push to push (residuals, momentum).
//
// One of each for a table, however often it is opened. Lives on the core's loop, in Core, from the
// welcome on.
#ifndef LEEWAY_WORKER_CORE_TABLES_H_
#define LEEWAY_WORKER_CORE_TABLES_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "leeway/config.h"
#include "proto/messages/messages.h"
#include "worker/control/codec_meter.h"
#include "worker/encoding/residual_file.h"
#include "worker/requests/requests.h"
#include "worker/slicing/live_table_settings.h"
#include "worker/slicing/table_coding.h"
#include "worker/slicing/table_info.h"

namespace leeway::worker {

class Tables {
 public:
  // All pointers and `config` outlive this.
  Tables(const Config& config, const proto::Welcome& welcome, Requests* requests, CodecMeter* meter)
      : config_(config), welcome_(welcome), requests_(requests), meter_(meter) {}

  // The newest map, of an epoch above 0. Sends the requests that waited for what it decides.
  void Follow(std::shared_ptr<const proto::ClusterMap> map);
  // The table that the scheduler describes; after Follow.
  absl::StatusOr<std::shared_ptr<const TableInfo>> Open(const proto::TableReply& reply);

  // The residuals and other kept state of all open tables. Encodes all waiting pushes first, which
  // fixes their order.
  SavedResiduals Residuals();
  // Takes over residuals of another worker: for all tables that are open, or none.
  // INVALID_ARGUMENT where they do not fit a table.
  absl::Status TakeResiduals(const SavedResiduals& saved);
  // ‖e‖₂ of what is kept, by the name of the table.
  std::map<std::string, double> ResidualNorms() const;

 private:
  void FollowSettings();
  void FollowCodecs();
  void TakeSettings(const proto::TableReply& reply, TableInfo* info);
  absl::Status SetCoding(TableInfo* info);

  const Config& config_;
  const proto::Welcome welcome_;
  Requests* const requests_;
  CodecMeter* const meter_;
  std::shared_ptr<const proto::ClusterMap> map_;
  std::map<std::uint32_t, std::shared_ptr<TableCoding>> codings_;         // by table
  std::map<std::uint32_t, std::shared_ptr<LiveTableSettings>> settings_;  // by table
  std::map<std::uint32_t, std::shared_ptr<UpdatesRead>> updates_read_;    // by table with weights
};

}  // namespace leeway::worker

#endif  // LEEWAY_WORKER_CORE_TABLES_H_
