// The tables of one data thread: what each is like and how a push changes it. What they hold lies
// in the shards.
#ifndef LEEWAY_PS_TABLE_H_
#define LEEWAY_PS_TABLE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compress/codec_schedule.h"
#include "compress/table_codec.h"
#include "ps/consistency/policy.h"
#include "ps/inbound.h"
#include "ps/staleness_counts.h"
#include "ps/store/shard_store.h"

namespace leeway::ps {

class Table {
 public:
  Table(std::uint32_t id, TableSpec spec, std::unique_ptr<Updater> updater)
      : id_(id),
        spec_(std::move(spec)),
        updater_(std::move(updater)),
        policy_(spec_.consistency),
        codecs_(CodecsOf(spec_)) {}

  std::uint32_t id() const { return id_; }
  const TableSpec& spec() const { return spec_; }
  const Policy& policy() const { return policy_; }
  const Updater* updater() const { return updater_.get(); }

  // Whether a request speaks of a table like this one, and of a reply that may be sent.
  absl::Status Fits(const proto::Request& request, std::uint64_t message_bytes_max) const;

  // Its codecs, and which of them holds from which clock on.
  const compress::TableCodecs& codecs() const { return codecs_; }
  const compress::CodecSchedule& codec_schedule() const { return schedule_; }
  void Follow(const proto::CodecSwitch& change);

  // How stale its replies were. It is counted, and changes nothing else.
  const StalenessCounts& staleness() const { return staleness_; }
  void CountStaleness(std::uint64_t clocks) const { staleness_.Count(clocks); }

  // Whether a request has ever been let through to it.
  bool asked_for() const { return asked_for_; }
  void NoteAskedFor() { asked_for_ = true; }

 private:
  static compress::TableCodecs CodecsOf(const TableSpec& spec);

  std::uint32_t id_;
  TableSpec spec_;
  std::unique_ptr<Updater> updater_;
  Policy policy_;
  compress::TableCodecs codecs_;
  compress::CodecSchedule schedule_;
  mutable StalenessCounts staleness_;
  bool asked_for_ = false;
};

class Tables {
 public:
  // OK too where an equal table of that id is installed already.
  absl::Status Install(std::uint32_t id, const TableSpec& spec, std::unique_ptr<Updater> updater);
  // The table was not created after all: another server did not take it. Nobody is ever given the
  // id of such a table; if somebody has asked for it all the same it stays, since what waits here
  // may speak of it.
  void Forget(std::uint32_t id);
  // What the newest map says of codecs; of tables that are not here nothing happens.
  void Follow(const std::vector<proto::CodecSwitch>& changes);
  // Null where there is none.
  Table* Find(std::uint32_t id);
  const std::map<std::uint32_t, Table>& all() const { return tables_; }

 private:
  std::map<std::uint32_t, Table> tables_;
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_TABLE_H_
