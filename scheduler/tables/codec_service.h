// The codecs of tables while these are used: the command `codec`, and the choice of codecs for
// tables whose description says "auto".
//
// Owns CodecSwitches (how a codec is changed at one clock) and CodecChooser (which is cheapest).
// Lives on the scheduler's loop.
#ifndef LEEWAY_SCHEDULER_TABLES_CODEC_SERVICE_H_
#define LEEWAY_SCHEDULER_TABLES_CODEC_SERVICE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "proto/messages/messages.h"
#include "scheduler/admin/admin_service.h"
#include "scheduler/members/cluster_life.h"
#include "scheduler/members/membership_table.h"
#include "scheduler/tables/codec_chooser.h"
#include "scheduler/tables/codec_switches.h"
#include "scheduler/tables/table_catalogue.h"

namespace leeway::scheduler {

class CodecService {
 public:
  // All outlive it. `changed`: the next map is to say what switches().entries() does.
  CodecService(MembershipTable* members, const TableCatalogue* catalogue, const ClusterLife* life,
               CodecSwitches::Changed changed);

  // codec TABLE CODEC. Answered once it is decided from which clock on the codec holds.
  void Command(const AdminService::Arguments& arguments, const AdminService::Answer& answer);
  // From a worker.
  void OnReport(std::uint32_t worker, const proto::CodecReport& report);
  // To be called at regular intervals: changes the codec of tables where another is cheaper.
  void Choose();
  void WorkerGone(std::uint32_t worker);

  CodecSwitches* switches() { return &switches_; }
  const CodecSwitches& switches() const { return switches_; }
  // By table: why its codec was changed last.
  const std::map<std::uint32_t, std::string>& reasons() const { return reasons_; }
  // Tables with codec "auto" whose codec was set by a command.
  const std::set<std::uint32_t>& pinned() const { return pinned_; }
  void RestorePinned(std::set<std::uint32_t> pinned);
  // Grows whenever pinned() changes.
  std::uint64_t pin_changes() const { return pin_changes_; }

 private:
  MembershipTable* const members_;
  const TableCatalogue* const catalogue_;
  const ClusterLife* const life_;
  CodecSwitches switches_;
  CodecChooser chooser_;
  std::map<std::uint32_t, std::string> reasons_;
  std::set<std::uint32_t> pinned_;
  std::uint64_t pin_changes_ = 0;
};

}  // namespace leeway::scheduler

#endif  // LEEWAY_SCHEDULER_TABLES_CODEC_SERVICE_H_
