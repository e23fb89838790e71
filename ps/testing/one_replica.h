// One replica of a shard, with one table, apart from servers and networks.
#ifndef LEEWAY_PS_TESTING_ONE_REPLICA_H_
#define LEEWAY_PS_TESTING_ONE_REPLICA_H_

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "proto/messages/layout.h"
#include "ps/shard/shard.h"

namespace leeway::ps {

// The test carries its log to others.
class OneReplica final : public ShardEffects, public AnswerSink {
 public:
  static constexpr std::uint32_t kWorkers = 2;
  static constexpr std::uint64_t kBlockElements = 16;

  OneReplica(runtime::Loop* loop, const TableSpec& spec) {
    context.loop = loop;
    context.counters = &counters;
    context.num_shards = 1;
    context.block_bytes = kBlockElements * sizeof(float);
    context.message_bytes_max = 1 << 20;
    context.held.bytes_max = 1 << 20;
    EXPECT_TRUE(context.tables.Install(1, spec, *MakeUpdater(spec)).ok());
    shard = std::make_unique<Shard>(0, &context, this, this);
    for (std::uint32_t rank = 0; rank < kWorkers; ++rank) SetWorker({.rank = rank});
  }

  void SetWorker(proto::WorkerEntry entry) {
    if (entry.incarnation == 0) entry.incarnation = 100 + entry.rank;
    shard->SetWorker(entry);
  }
  void Ask(std::uint32_t rank, proto::Op op, std::uint64_t clock, Payload payload,
           std::uint64_t block = 0) {
    Inbound inbound;
    inbound.request.id = {
        .incarnation = 100 + rank, .sequence = ++sequences[rank], .worker = rank, .shard = 0};
    inbound.request.table = 1;
    inbound.request.op = op;
    inbound.request.clock = clock;
    inbound.request.block = block;
    inbound.request.elements = ElementsOf(block);
    inbound.request.publication = publication_;
    inbound.payload = std::move(payload);
    shard->TakeRequest(std::move(inbound));
  }
  absl::Status Push(std::uint32_t rank, std::uint64_t clock, float value, std::uint64_t block = 0) {
    const std::vector<float> values(ElementsOf(block), value);
    Ask(rank, proto::Op::kPush, clock,
        {runtime::Buffer::CopyOf(values.data(), values.size() * sizeof(float))}, block);
    return answers.back();
  }
  void Pull(std::uint32_t rank) { Ask(rank, proto::Op::kPull, 0, {}); }
  // The first element of the block as it was frozen for that publication.
  absl::StatusOr<float> Published(std::uint64_t publication) {
    publication_ = publication;
    Pull(0);
    publication_ = 0;
    if (!answers.back().ok()) return answers.back();
    return last_payload[0].as<float>()[0];
  }
  // What the head has logged is followed here.
  void Follow(const OneReplica& head) {
    std::vector<LogEntry> updates;
    for (const LogEntry& entry : head.log) {
      if (proto::IsPartOfNext(entry.header.kind)) {
        updates.push_back(entry);
        continue;
      }
      const absl::Status followed = shard->Follow(updates, entry);
      EXPECT_TRUE(followed.ok()) << followed;
      updates.clear();
    }
  }
  std::uint64_t ElementsOf(std::uint64_t block) const {
    return proto::ElementsInBlock(context.tables.all().at(1).spec().NumElements(), kBlockElements,
                                  block);
  }
  float value(std::size_t block = 0) {
    return shard->stores().at(1)->Freeze().pieces.at(block).values.as<float>()[0];
  }

  bool has_follower() const override { return true; }
  void Log(LogEntry entry) override { log.push_back(std::move(entry)); }
  bool provisional() const override { return false; }
  void Answer(van::PeerId, proto::Reply reply, Payload payload, absl::Time) override {
    answers.push_back(reply.result);
    last_payload = std::move(payload);
  }
  absl::Status AnswerReader(van::PeerId, proto::Reply, Payload, absl::Time) override {
    return absl::OkStatus();
  }
  void AnswerNow(van::PeerId, proto::Reply reply) override { answers.push_back(reply.result); }
  void Offended(van::PeerId, const absl::Status& why) override { FAIL() << why; }
  void Broken(const absl::Status& why) override { FAIL() << why; }

  Counters counters;
  ShardContext context;
  std::unique_ptr<Shard> shard;
  std::vector<LogEntry> log;
  std::vector<absl::Status> answers;
  Payload last_payload;  // of the last answer
  std::uint64_t sequences[kWorkers] = {};

 private:
  std::uint64_t publication_ = 0;  // of the next request
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_TESTING_ONE_REPLICA_H_
