// A RestoredShard is a shard that begins with a checkpoint, and the workers that send it all their
// pushes again. The shard is a real one, without replicas; there is no network, and no time passes.
//
// The workers are those of the checkpoint's file. Pushes of their earlier incarnations are not sent
// again; a later incarnation comes with its first push. Workers end their clocks as their pushes
// say.
#ifndef LEEWAY_TESTS_SIMULATION_RESTORED_SHARD_H_
#define LEEWAY_TESTS_SIMULATION_RESTORED_SHARD_H_

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "checkpoint/manifest.h"
#include "ps/checkpoint/shard_file.h"
#include "ps/replication/log/shard_effects.h"
#include "ps/shard/shard.h"
#include "ps/shard/state/shard_context.h"
#include "ps/table/counters.h"
#include "runtime/sim/sim_world.h"
#include "tests/simulation/history.h"

namespace leeway::simulation {

class RestoredShard {
 public:
  RestoredShard(const checkpoint::Manifest& manifest, std::uint32_t shard, const History* history);

  // Restores as a server does when its cluster begins: all files that the shard's extends, in
  // order.
  absl::Status Begin(const checkpoint::Manifest& manifest,
                     const std::vector<ps::ShardContent>& contents);
  // Sends a push again. False if no worker sends it any more.
  bool Take(const ps::Inbound& sent);
  // All workers end all clocks.
  void End();

  // Null: the checkpoint has no such table.
  const ps::Table* Find(std::uint32_t table) { return context_.tables.Find(table); }
  const ps::Shard& shard() const { return *shard_; }

 private:
  struct Worker {
    std::uint32_t incarnation = 0;  // counted from 1
    std::uint64_t known_as = 0;
    std::uint64_t clock = 0;
    ps::Shard::Watermarks sent = {};
  };

  // A chain of one member, whose answers are dropped.
  class Alone final : public ps::ShardEffects, public ps::AnswerSink {
   public:
    bool has_follower() const override { return false; }
    void Log(ps::LogEntry) override {}
    bool provisional() const override { return false; }
    void Answer(van::PeerId, proto::Reply, ps::Payload, absl::Time) override {}
    absl::Status AnswerReader(van::PeerId, proto::Reply, ps::Payload, absl::Time) override {
      return absl::OkStatus();
    }
    void AnswerNow(van::PeerId, proto::Reply) override {}
    void Offended(van::PeerId, const absl::Status&) override {}
    void Broken(const absl::Status&) override {}
  };

  std::uint32_t NewestIn(const ps::ShardContent& content, std::uint32_t rank) const;
  void Join(std::uint32_t rank, std::uint32_t incarnation, bool late);
  void EndClocks(std::uint32_t rank, std::uint64_t clock);

  const History* const history_;
  runtime::SimWorld world_{1};
  const std::unique_ptr<runtime::Host> host_ = world_.NewHost("server");
  const std::unique_ptr<runtime::LoopRunner> loop_ = host_->Spawn("loop");
  ps::Counters counters_;
  Alone alone_;
  ps::ShardContext context_;
  std::unique_ptr<ps::Shard> shard_;
  std::map<std::uint32_t, Worker> workers_;  // by rank
  std::uint64_t fastest_;
};

}  // namespace leeway::simulation

#endif  // LEEWAY_TESTS_SIMULATION_RESTORED_SHARD_H_
