// The start of a cluster from a checkpoint. Once the cluster is complete, every server installs the
// checkpoint's tables and takes the map; then each loads the rows of its shards, and only then do
// the workers get the map. A server that fails meanwhile ends the cluster: nothing has been trained
// yet, and a part of a model is of no use.
//
// Knows no network: messages go out through `tell`. Lives on the scheduler's loop.
#ifndef LEEWAY_SCHEDULER_CHECKPOINTS_RESTORATION_H_
#define LEEWAY_SCHEDULER_CHECKPOINTS_RESTORATION_H_

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/messages/messages.h"
#include "runtime/files/file_system.h"
#include "scheduler/tables/table_catalogue.h"

namespace leeway::scheduler {

class Restoration {
 public:
  // The durable state.
  struct State {
    std::string path;            // of the checkpoint; empty: the cluster started with nothing
    std::uint64_t checksum = 0;  // of its manifest
    std::uint64_t clock = 0;     // where it starts
    bool loaded = false;         // by all servers
    friend bool operator==(const State&, const State&) = default;
  };
  using Tell = std::function<void(std::uint32_t node, const proto::AnyMessage& message)>;
  using Describe = std::function<std::string(std::uint32_t node)>;

  Restoration(absl::Duration timeout, absl::Duration resend_interval, Tell tell, Describe describe)
      : timeout_(timeout),
        resend_interval_(resend_interval),
        tell_(std::move(tell)),
        describe_(std::move(describe)) {}

  // Reads the checkpoint; before any node has joined. The error names the file.
  absl::Status Open(runtime::FileSystem* files, const std::string& path);
  // Goes on where another scheduler was.
  void GoOnFrom(State state) { state_ = std::move(state); }

  // The cluster is complete: waits until these servers are prepared, and loads.
  void Begin(const std::vector<std::uint32_t>& servers, std::uint64_t request, absl::Time now);
  // The server has all tables.
  void Prepared(std::uint32_t server);
  // The servers have the map: they are asked to load, if they have the tables and were not asked
  // yet.
  void Load(absl::Time now);
  // OK: the answer was taken; `loading` tells whether that was the last.
  absl::Status OnReply(std::uint32_t server, const proto::RestoreShardsReply& reply);
  // Asks again; an error once its time is up, which names the servers that it waited for.
  absl::Status Tick(absl::Time now);

  const State& state() const { return state_; }
  bool wanted() const { return !state_.path.empty() && !state_.loaded; }
  bool loading() const { return loading_; }
  // The tables of the checkpoint, and the next free id.
  const std::vector<TableCatalogue::Entry>& tables() const { return tables_; }
  std::uint32_t next_table() const { return next_table_; }
  std::uint64_t block_bytes() const { return block_bytes_; }
  // How many servers have loaded, of how many: for people.
  std::string Progress() const;

 private:
  void Ask(absl::Time now);

  const absl::Duration timeout_, resend_interval_;
  const Tell tell_;
  const Describe describe_;
  State state_;
  std::vector<TableCatalogue::Entry> tables_;
  std::uint32_t next_table_ = 1;
  std::uint64_t block_bytes_ = 0;

  bool loading_ = false;
  std::uint64_t request_ = 0;
  std::size_t servers_ = 0;
  std::set<std::uint32_t> preparing_;  // servers that lack tables
  std::set<std::uint32_t> waiting_;    // servers that have not loaded
  absl::Time deadline_,
      resend_at_ = absl::InfiniteFuture();  // of the request; infinite: there is none
};

}  // namespace leeway::scheduler

#endif  // LEEWAY_SCHEDULER_CHECKPOINTS_RESTORATION_H_
