// One table as one data thread holds it: its description, its updater and the shards of it that
// the thread owns.
#ifndef LEEWAY_PS_TABLE_H_
#define LEEWAY_PS_TABLE_H_

#include <cstdint>
#include <map>
#include <memory>

#include "absl/status/status.h"
#include "ps/consistency/policy.h"
#include "ps/inbound.h"
#include "ps/store/shard_store.h"

namespace leeway::ps {

class Table {
 public:
  Table(std::uint32_t id, TableSpec spec, std::unique_ptr<Updater> updater)
      : id_(id), spec_(std::move(spec)), updater_(std::move(updater)), policy_(spec_.consistency) {}

  std::uint32_t id() const { return id_; }
  const TableSpec& spec() const { return spec_; }
  const Policy& policy() const { return policy_; }

  // The values of the shard at `place`; made when they are first asked for. The table in `place` is
  // filled in here.
  ShardStore* Shard(StorePlace place);

  // Whether a request speaks of a table like this one, and of a reply that may be sent.
  absl::Status Fits(const proto::Request& request, std::uint64_t message_bytes_max) const;

  // Whether a request has ever been let through to it.
  bool asked_for() const { return asked_for_; }
  void NoteAskedFor() { asked_for_ = true; }

  StoreStats stats() const;  // of all its shards here

 private:
  std::uint32_t id_;
  TableSpec spec_;
  std::unique_ptr<Updater> updater_;
  Policy policy_;
  bool asked_for_ = false;
  std::map<std::uint32_t, std::unique_ptr<ShardStore>> shards_;
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_TABLE_H_
