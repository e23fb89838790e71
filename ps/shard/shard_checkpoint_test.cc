// A shard that is saved while workers push, at every moment there may be: what is saved has exactly
// the pushes of the clocks below the cut's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "leeway/shard_handler.h"
#include "ps/shard/shard.h"
#include "ps/store/factory/new_shard_store.h"
#include "runtime/base/random.h"
#include "runtime/sim/sim_world.h"

namespace leeway::ps {
namespace {

constexpr std::uint32_t kWorkers = 3;
constexpr std::uint64_t kKeys = 40;

class NoReplicas final : public ShardEffects, public AnswerSink {
 public:
  bool has_follower() const override { return false; }
  void Log(LogEntry) override {}
  bool provisional() const override { return false; }
  void Answer(van::PeerId, proto::Reply reply, Payload, absl::Time) override { Take(reply); }
  absl::Status AnswerReader(van::PeerId, proto::Reply reply, Payload, absl::Time) override {
    Take(reply);
    return absl::OkStatus();
  }
  void AnswerNow(van::PeerId, proto::Reply reply) override { Take(reply); }
  void Offended(van::PeerId, const absl::Status&) override {}
  void Broken(const absl::Status&) override {}

 private:
  void Take(const proto::Reply& reply) { EXPECT_TRUE(reply.result.ok()) << reply.result; }
};

TableSpec SpecOf(std::uint32_t table, const Consistency& consistency) {
  TableSpec spec = TableSpec::Sparse(absl::StrCat("table", table), 2);
  // The order of its pushes can be told from the state.
  spec.updater.name = consistency.is_bsp() ? "add" : "adam";
  spec.consistency = consistency;
  return spec;
}

std::unique_ptr<ShardStore> NewStore(const TableSpec& spec, std::uint32_t table,
                                     const Updater* updater) {
  return NewShardStore(spec, {.table = table, .shard = 0, .num_shards = 1, .block_bytes = 1 << 20},
                       updater);
}

class ShardCutTest : public ::testing::Test {
 protected:
  explicit ShardCutTest(std::uint64_t seed = 1) : random_(seed) {
    context_.loop = loop_->loop();
    context_.counters = &counters_;
    context_.num_shards = 1;
    context_.block_bytes = 1 << 20;
    context_.message_bytes_max = 1 << 20;
    context_.held.bytes_max = context_.trailing.bytes_max = 1 << 30;
    shard_ = std::make_unique<Shard>(0, &context_, &effects_, &effects_);
  }

  void Install(std::uint32_t id, const Consistency& consistency) {
    const TableSpec spec = SpecOf(id, consistency);
    ASSERT_TRUE(context_.tables.Install(id, spec, *MakeUpdater(spec)).ok());
    tables_.push_back(id);
  }
  void Join() {
    for (std::uint32_t rank = 0; rank < kWorkers; ++rank) {
      proto::WorkerEntry entry;
      entry.rank = rank;
      entry.incarnation = 100 + rank;
      shard_->SetWorker(entry);
    }
    shard_->CloseClocks();
  }

  // Some worker pushes or ends an iteration, staying within `ahead` clocks of the slowest.
  void Step(std::uint64_t ahead) {
    const auto rank = static_cast<std::uint32_t>(random_.Below(kWorkers));
    const std::uint64_t slowest = *std::min_element(clocks_, clocks_ + kWorkers);
    if (random_.Below(3) == 0 && clocks_[rank] < slowest + ahead) {
      // Ticks are cumulative: some are not heard of one by one.
      ++clocks_[rank];
      if (random_.Below(2) == 0) shard_->TakeTick(rank, 100 + rank, clocks_[rank], 0, {});
      return;
    }
    Push(rank, tables_[random_.Below(tables_.size())]);
  }

  void Push(std::uint32_t rank, std::uint32_t table) { PushTo(rank, table, random_.Below(kKeys)); }

  void PushTo(std::uint32_t rank, std::uint32_t table, std::uint64_t key) {
    const float values[2] = {static_cast<float>(random_.Below(100)), 1};
    Inbound push;
    push.request.id = {
        .incarnation = 100 + rank, .sequence = ++sequences_[rank], .worker = rank, .shard = 0};
    push.request.table = table;
    push.request.kind = TableKind::kSparse;
    push.request.op = proto::Op::kPush;
    push.request.clock = clocks_[rank];
    push.request.keys = 1;
    push.request.has_learning_rate = !IsBsp(table);
    push.request.learning_rate = 0.1;
    push.payload = {runtime::Buffer::CopyOf(&key, sizeof(key)),
                    runtime::Buffer::CopyOf(values, sizeof(values))};
    pushed_.push_back(push);
    if (calls_ && !IsBsp(table) && random_.Below(2) == 0) MakeCall(&push);
    shard_->TakeRequest(std::move(push));
  }
  // A handler pushes the same.
  static void MakeCall(Inbound* push) {
    (void)RegisterShardHandler("push it", [](ShardCall& call) -> absl::StatusOr<std::string> {
      std::uint64_t key = 0;
      float values[2];
      std::memcpy(&key, call.request().data(), sizeof(key));
      std::memcpy(values, call.request().data() + sizeof(key), sizeof(values));
      const absl::Status pushed =
          call.Push(call.table(), {&key, 1}, std::span<const float>(values), 0.1);
      return pushed.ok() ? absl::StatusOr<std::string>("") : pushed;
    });
    const std::string request =
        absl::StrCat(std::string(push->payload[0].text()), std::string(push->payload[1].text()));
    push->request.op = proto::Op::kCall;
    push->request.keys = push->request.has_learning_rate = 0;
    push->payload = {runtime::Buffer::CopyOf("push it"), runtime::Buffer::CopyOf(request)};
  }

  void Tick(std::uint32_t rank, std::uint64_t clock) {
    clocks_[rank] = clock;
    shard_->TakeTick(rank, 100 + rank, clock, 0, {});
  }
  // Everyone ends the clocks below.
  void TickAll(std::uint64_t clock) {
    for (std::uint32_t rank = 0; rank < kWorkers; ++rank) Tick(rank, clock);
  }

  bool IsBsp(std::uint32_t table) {
    return context_.tables.Find(table)->spec().consistency.is_bsp();
  }

  absl::Status Begin(std::uint64_t clock, const std::string& name, const std::string& base = "",
                     bool bounded = false) {
    return shard_->BeginCut(
        {.checkpoint = 1, .clock = clock, .folder = "d/" + name, .base = base, .bounded = bounded},
        [this](absl::StatusOr<FrozenShard> frozen) {
          EXPECT_FALSE(taken_.has_value());
          taken_.emplace(std::move(frozen));
        });
  }

  // What has been taken, written and read back, and loaded on top of what `base` gave.
  absl::StatusOr<ShardContent> Taken() {
    EXPECT_TRUE(taken_.has_value());
    auto frozen = std::move(*taken_);
    taken_.reset();
    if (!frozen.ok()) return frozen.status();
    return ApplyTrailingPushes(*std::move(frozen));
  }

  static std::uint64_t DigestOf(const std::vector<ShardContent>& contents, std::uint32_t table) {
    const ShardContent::Table* last = Find(contents.back(), table);
    const auto updater = *MakeUpdater(last->spec);
    const auto store = NewStore(last->spec, table, updater.get());
    for (const ShardContent& content : contents) {
      const ShardContent::Table* saved = Find(content, table);
      if (saved == nullptr) continue;
      for (const FrozenPiece& piece : saved->pieces) EXPECT_TRUE(store->Load(piece).ok());
    }
    return store->Digest();
  }
  static const ShardContent::Table* Find(const ShardContent& content, std::uint32_t table) {
    for (const ShardContent::Table& one : content.tables) {
      if (one.id == table) return &one;
    }
    return nullptr;
  }

  // Its values and its state, as bytes.
  static std::string RowOf(const std::vector<FrozenPiece>& pieces, std::uint64_t key) {
    std::string bytes;
    const auto add = [&](std::span<const std::byte> part) {
      bytes.append(reinterpret_cast<const char*>(part.data()), part.size());
    };
    for (const FrozenPiece& piece : pieces) {
      ForEachRow(piece, [&](const FrozenRow& row) {
        if (row.key != key) return;
        add(row.values);
        add(row.state);
      });
    }
    EXPECT_FALSE(bytes.empty());
    return bytes;
  }

  // A store that has had the pushes of clocks below `clock` alone, as they came; of BSP clock by
  // clock (which sums of whole numbers do not show).
  std::uint64_t Expected(std::uint32_t table, std::uint64_t clock) {
    const TableSpec& spec = context_.tables.Find(table)->spec();
    const auto updater = *MakeUpdater(spec);
    const auto store = NewStore(spec, table, updater.get());
    const bool bsp = spec.consistency.is_bsp();
    for (std::uint64_t closing = 0; closing < (bsp ? clock : 1); ++closing) {
      std::vector<PushView> together;
      for (const Inbound& push : pushed_) {
        if (push.request.table != table || push.request.clock >= clock) continue;
        if (!bsp) {
          EXPECT_TRUE(store->Apply(ToPush(push)).ok());
        } else if (push.request.clock == closing) {
          together.push_back(ToPush(push));
        }
      }
      if (!together.empty()) {
        EXPECT_TRUE(store->ApplyCombined(together, kWorkers).ok());
      }
    }
    return store->Digest();
  }

  void ExpectExactly(const std::vector<ShardContent>& contents, std::uint64_t clock) {
    for (const std::uint32_t table : tables_) {
      if (Find(contents.back(), table) == nullptr) continue;
      EXPECT_EQ(DigestOf(contents, table), Expected(table, clock)) << "table " << table;
    }
    for (const proto::ClientSession& session : contents.back().sessions) {
      std::uint64_t admitted = 0, held = 0;
      for (const Inbound& push : pushed_) {
        if (push.request.id.worker != session.rank || push.request.clock >= clock) continue;
        (IsBsp(push.request.table) ? held : admitted) = push.request.id.sequence;
      }
      EXPECT_EQ(session.admitted, admitted) << "worker " << session.rank;
      EXPECT_EQ(session.admitted_held, held) << "worker " << session.rank;
    }
  }

  runtime::SimWorld world_{1};
  std::unique_ptr<runtime::Host> host_ = world_.NewHost("server");
  std::unique_ptr<runtime::LoopRunner> loop_ = host_->Spawn("loop");
  Counters counters_;
  NoReplicas effects_;
  ShardContext context_;
  std::unique_ptr<Shard> shard_;
  runtime::Random random_;
  std::vector<std::uint32_t> tables_;
  std::uint64_t clocks_[kWorkers] = {};
  std::uint64_t sequences_[kWorkers] = {};
  bool calls_ = false;  // half of the pushes to tables that are not BSP are made by a handler
  std::vector<Inbound> pushed_;
  std::optional<absl::StatusOr<FrozenShard>> taken_;
};

class EveryMomentTest : public ShardCutTest, public ::testing::WithParamInterface<std::uint64_t> {
 protected:
  EveryMomentTest() : ShardCutTest(GetParam()) { calls_ = true; }

  // Two cuts, the second on top of the first, each begun at some moment and `later` clocks away.
  void Run(std::uint64_t ahead) {
    Join();
    std::vector<ShardContent> saved;
    for (const char* name : {"ckpt-00000001", "ckpt-00000002"}) {
      const std::uint64_t steps = random_.Below(150);
      for (std::uint64_t i = 0; i < steps; ++i) Step(ahead);
      const std::uint64_t clock = shard_->newest_clock() + 1 + random_.Below(2);
      ASSERT_TRUE(Begin(clock, name, saved.empty() ? "" : "ckpt-00000001").ok());
      for (int i = 0; i < 5000 && !taken_.has_value(); ++i) Step(ahead);
      auto content = Taken();
      ASSERT_TRUE(content.ok()) << content.status();
      EXPECT_EQ(content->base, saved.empty() ? "" : "ckpt-00000001");
      saved.push_back(*std::move(content));
      ExpectExactly(saved, clock);
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Seeds, EveryMomentTest, ::testing::Range<std::uint64_t>(1, 61));

TEST_P(EveryMomentTest, Bsp) {
  Install(1, Consistency::Bsp());
  Run(3);
}

TEST_P(EveryMomentTest, Ssp) {
  Install(1, Consistency::Ssp(3));
  Run(4);
}

TEST_P(EveryMomentTest, OfSeveralKindsAtOnce) {
  Install(1, Consistency::Bsp());
  Install(2, Consistency::Ssp(3));
  Install(3, Consistency::Asp());
  Run(4);
}

TEST_F(ShardCutTest, WithoutABoundItIsTakenAtOnce) {
  Install(1, Consistency::Asp());
  Join();
  for (int i = 0; i < 100; ++i) Step(50);
  ASSERT_TRUE(Begin(shard_->newest_clock(), "ckpt-00000001").ok());
  const std::vector<ShardContent> saved = {*Taken()};
  const std::uint64_t all = shard_->newest_clock() + 1;
  ExpectExactly(saved, all);
}

// The scheduler knows of a bound of which this server has not heard yet.
TEST_F(ShardCutTest, AnOrderWithABoundIsTakenByTheClock) {
  Install(1, Consistency::Asp());
  Join();
  for (int i = 0; i < 100; ++i) Step(3);
  const std::uint64_t clock = shard_->newest_clock() + 1;
  ASSERT_TRUE(Begin(clock, "ckpt-00000001", "", /*bounded=*/true).ok());
  EXPECT_FALSE(taken_.has_value());
  for (int i = 0; i < 5000 && !taken_.has_value(); ++i) Step(3);
  const std::vector<ShardContent> saved = {*Taken()};
  ExpectExactly(saved, clock);
}

// It is not in the incremental checkpoint as it was before the push.
TEST_F(ShardCutTest, ATrailingPushMayChangeARowThatTheBaseHas) {
  Install(1, Consistency::Ssp(3));
  Join();
  PushTo(1, 1, 7);
  ASSERT_TRUE(Begin(1, "ckpt-00000001").ok());
  TickAll(1);
  std::vector<ShardContent> saved = {*Taken()};
  ExpectExactly(saved, 1);

  ASSERT_TRUE(Begin(2, "ckpt-00000002", "ckpt-00000001").ok());
  Tick(0, 2);
  PushTo(0, 1, 9);  // of a clock that is not in it
  PushTo(1, 1, 7);  // of clock 1, and trailing
  TickAll(2);
  saved.push_back(*Taken());
  EXPECT_EQ(saved.back().base, "ckpt-00000001");
  ExpectExactly(saved, 2);
}

TEST_F(ShardCutTest, ATrailingPushIsAppliedWithTheSettingsOfItsClock) {
  Install(1, Consistency::Ssp(3));
  Join();
  proto::TableSettings changed{.table = 1, .number = 1, .since = 1, .decided = true};
  changed.consistency = Consistency::Ssp(3);
  changed.parameters = context_.tables.Find(1)->spec().updater.parameters;
  changed.parameters["beta1"] = 0.25;
  ASSERT_TRUE(context_.tables.Follow({changed}).ok());
  PushTo(1, 1, 7);
  TickAll(1);
  ASSERT_TRUE(Begin(2, "ckpt-00000001").ok());
  Tick(0, 2);
  PushTo(0, 1, 9);  // of a clock that is not in it
  PushTo(1, 1, 7);  // of clock 1, and trailing
  TickAll(2);
  const std::vector<ShardContent> saved = {*Taken()};
  const ShardContent::Table* const table = Find(saved.back(), 1);
  ASSERT_NE(table, nullptr);
  EXPECT_EQ(RowOf(table->pieces, 7), RowOf(shard_->stores().at(1)->Freeze().pieces, 7));
}

TEST_F(ShardCutTest, ATrailingPushIsAppliedWithItsWeight) {
  Install(1, *Consistency::Parse("ssp:3,weight=table:1/0.5"));
  Join();
  TickAll(1);
  ASSERT_TRUE(Begin(2, "ckpt-00000001").ok());
  Tick(0, 2);
  PushTo(0, 1, 9);  // of a clock that is not in it
  PushTo(1, 1, 7);  // of clock 1, and trailing: one update later than what it was computed from
  TickAll(2);
  const std::vector<ShardContent> saved = {*Taken()};
  const ShardContent::Table* const table = Find(saved.back(), 1);
  ASSERT_NE(table, nullptr);
  EXPECT_EQ(RowOf(table->pieces, 7), RowOf(shard_->stores().at(1)->Freeze().pieces, 7));
}

TEST_F(ShardCutTest, ATrailingPushIsAppliedCompensated) {
  TableSpec spec = TableSpec::Dense("w", {1});
  spec.updater = {"add", {}};
  spec.consistency = *Consistency::Parse("ssp:3,dc=1");
  ASSERT_TRUE(context_.tables.Install(1, spec, *MakeUpdater(spec)).ok());
  Join();
  const auto request = [&](std::uint32_t rank, proto::Op op, Payload payload) {
    Inbound inbound;
    inbound.request.id = {
        .incarnation = 100 + rank, .sequence = ++sequences_[rank], .worker = rank, .shard = 0};
    inbound.request.table = 1;
    inbound.request.kind = TableKind::kDense;
    inbound.request.op = op;
    inbound.request.clock = clocks_[rank];
    inbound.request.elements = 1;
    inbound.payload = std::move(payload);
    shard_->TakeRequest(std::move(inbound));
  };
  const auto push = [&](std::uint32_t rank, float value) {
    request(rank, proto::Op::kPush, {runtime::Buffer::CopyOf(&value, sizeof(value))});
  };
  TickAll(1);
  request(1, proto::Op::kPull, {});
  ASSERT_TRUE(Begin(2, "ckpt-00000001").ok());
  Tick(0, 2);
  push(0, 1);
  push(1, 2);  // 2 + 2 * 2 * (1 - 0)
  TickAll(2);
  const auto content = Taken();
  ASSERT_TRUE(content.ok()) << content.status();
  ASSERT_EQ(content->tables.at(0).pieces.size(), 1u);
  EXPECT_THAT(content->tables[0].pieces[0].values.as<float>(), testing::ElementsAre(6));
}

// Its worker has read the values that the cluster began with.
TEST_F(ShardCutTest, APushToARestoredShardIsAsStaleAsTheUpdatesSinceThen) {
  for (const bool dense : {true, false}) {
    SCOPED_TRACE(dense);
    const std::uint32_t id = dense ? 1 : 2;
    TableSpec spec = dense ? TableSpec::Dense("dense", {1}) : TableSpec::Sparse("sparse", 1);
    spec.updater = {"add", {}};
    spec.consistency = *Consistency::Parse("asp,weight=table:1/0.5/0");
    ASSERT_TRUE(context_.tables.Install(id, spec, *MakeUpdater(spec)).ok());
    Join();
    const auto send = [&](Shard* shard, proto::Op op, std::uint64_t read) {
      const std::uint64_t key = 0;
      const float value = 1;
      Inbound inbound;
      inbound.request.id = {
          .incarnation = 101, .sequence = ++sequences_[1], .worker = 1, .shard = 0};
      inbound.request.table = id;
      inbound.request.kind = spec.kind;
      inbound.request.op = op;
      inbound.request.elements = dense ? 1 : 0;
      inbound.request.keys = dense ? 0 : 1;
      inbound.request.read_updates = read;
      if (!dense) inbound.payload.push_back(runtime::Buffer::CopyOf(&key, sizeof(key)));
      if (proto::HasPush(op)) {
        inbound.payload.push_back(runtime::Buffer::CopyOf(&value, sizeof(value)));
      }
      shard->TakeRequest(std::move(inbound));
    };
    const auto push = [&](Shard* shard, std::uint64_t read) {
      send(shard, proto::Op::kPush, read);
      return shard->stores().at(id)->Freeze().pieces.at(0).values.as<float>()[0];
    };
    EXPECT_EQ(push(shard_.get(), 0), 1);
    EXPECT_EQ(push(shard_.get(), 0), 1.5f);
    EXPECT_EQ(push(shard_.get(), 0), 1.5f);
    ASSERT_TRUE(Begin(shard_->newest_clock(), "ckpt-00000001").ok());
    const auto content = Taken();
    ASSERT_TRUE(content.ok()) << content.status();
    Shard other(0, &context_, &effects_, &effects_);
    ASSERT_TRUE(other.Restore(*content).ok());
    other.SetWorker({.rank = 1, .incarnation = 101});
    EXPECT_EQ(push(&other, 0), 2.5f);
    EXPECT_EQ(push(&other, 0), 3);
    send(&other, proto::Op::kPull, 0);
    EXPECT_EQ(push(&other, 2), 4);
    // A replica that gets it counts on.
    Shard third(0, &context_, &effects_, &effects_);
    third.ImportBegin(other.ExportBegin());
    for (const LogEntry& piece : other.Freeze()) ASSERT_TRUE(third.LoadPiece(piece).ok());
    third.SetWorker({.rank = 1, .incarnation = 101});
    send(&third, proto::Op::kPull, 0);
    EXPECT_EQ(push(&third, 2), 4.5f);
  }
}

// The checkpoint says that nobody has pushed to it: should anybody send that again, it counts.
TEST_F(ShardCutTest, WithoutABoundATableFirstPushedToLaterIsLeftOut) {
  Install(1, Consistency::Bsp());
  Install(2, Consistency::Asp());
  Join();
  ASSERT_TRUE(Begin(1, "ckpt-00000001").ok());
  Push(0, 2);
  for (std::uint32_t rank = 0; rank < kWorkers; ++rank) {
    clocks_[rank] = 1;
    shard_->TakeTick(rank, 100 + rank, 1, 0, {});
  }
  const ShardContent content = *Taken();
  const ShardContent::Table* const saved = Find(content, 2);
  EXPECT_TRUE(saved == nullptr || saved->pieces.empty());
  for (const proto::ClientSession& session : content.sessions) EXPECT_EQ(session.admitted, 0u);
}

TEST_F(ShardCutTest, AClockThatHasPassedIsRefused) {
  Install(1, Consistency::Ssp(3));
  Join();
  clocks_[0] = 2;
  shard_->TakeTick(0, 100, 2, 0, {});
  Push(0, 1);
  EXPECT_EQ(shard_->newest_clock(), 2u);
  EXPECT_EQ(Begin(2, "ckpt-00000001").code(), absl::StatusCode::kOutOfRange);
  EXPECT_TRUE(Begin(3, "ckpt-00000001").ok());
}

TEST_F(ShardCutTest, ANewCutReplacesTheOneUnderWay) {
  Install(1, Consistency::Ssp(3));
  Join();
  ASSERT_TRUE(Begin(5, "ckpt-00000001").ok());
  ASSERT_TRUE(Begin(6, "ckpt-00000002").ok());
  EXPECT_EQ(Taken().status().code(), absl::StatusCode::kAborted);
}

TEST_F(ShardCutTest, TrailingPushesHaveALimit) {
  Install(1, Consistency::Ssp(3));
  Join();
  context_.trailing.bytes_max = 5000;
  Push(1, 1);
  ASSERT_TRUE(Begin(1, "ckpt-00000001").ok());
  clocks_[0] = 1;
  shard_->TakeTick(0, 100, 1, 0, {});
  Push(0, 1);
  for (int i = 0; i < 20 && !taken_.has_value(); ++i) Push(1, 1);
  const absl::Status refused = Taken().status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()), testing::HasSubstr("LEEWAY_HELD_BYTES_MAX"));
  shard_->AbandonCut(absl::CancelledError("enough"));
  EXPECT_EQ(context_.trailing.bytes, 0u);
}

TEST_F(ShardCutTest, ABaseThatIsNotKnownMeansAll) {
  Install(1, Consistency::Bsp());
  Join();
  for (int i = 0; i < 50; ++i) Step(1);
  ASSERT_TRUE(Begin(shard_->newest_clock() + 1, "ckpt-00000002", "ckpt-00000001").ok());
  for (int i = 0; i < 1000 && !taken_.has_value(); ++i) Step(1);
  const auto content = Taken();
  ASSERT_TRUE(content.ok());
  EXPECT_EQ(content->base, "");
}

TEST_F(ShardCutTest, WithoutLivingWorkersItIsTakenAtOnce) {
  Install(1, Consistency::Ssp(3));
  Join();
  for (int i = 0; i < 50; ++i) Step(4);
  ASSERT_TRUE(Begin(1000, "ckpt-00000001").ok());
  for (std::uint32_t rank = 0; rank < kWorkers; ++rank) {
    proto::WorkerEntry entry;
    entry.rank = rank;
    entry.incarnation = 100 + rank;
    entry.state = proto::WorkerState::kDead;
    shard_->SetWorker(entry);
  }
  shard_->CloseClocks();
  ASSERT_TRUE(taken_.has_value());
}

TEST_F(ShardCutTest, ARestoredShardKeepsItsSessions) {
  Install(1, Consistency::Ssp(3));
  Join();
  for (int i = 0; i < 200; ++i) Step(4);
  const std::uint64_t clock = shard_->newest_clock() + 1;
  ASSERT_TRUE(Begin(clock, "ckpt-00000001").ok());
  for (int i = 0; i < 2000 && !taken_.has_value(); ++i) Step(4);
  const ShardContent content = *Taken();
  Shard restored(0, &context_, &effects_, &effects_);
  ASSERT_TRUE(restored.Restore(content).ok());
  EXPECT_EQ(restored.stores().at(1)->Digest(), Expected(1, clock));
  // Everything is sent again: what was in it counts once.
  for (std::uint32_t rank = 0; rank < kWorkers; ++rank) {
    proto::WorkerEntry entry;
    entry.rank = rank;
    entry.incarnation = 100 + rank;
    restored.SetWorker(entry);
  }
  for (const Inbound& push : pushed_) {
    if (push.request.clock < clock) restored.TakeRequest(push);
  }
  EXPECT_EQ(restored.stores().at(1)->Digest(), Expected(1, clock));
}

TEST_F(ShardCutTest, SessionsOfWorkersThatAreReplacedAreNotRestored) {
  Install(1, Consistency::Ssp(3));
  Join();
  for (int i = 0; i < 200; ++i) Step(4);
  ASSERT_TRUE(Begin(shard_->newest_clock() + 1, "ckpt-00000001").ok());
  for (int i = 0; i < 2000 && !taken_.has_value(); ++i) Step(4);
  const ShardContent content = *Taken();
  Shard restored(0, &context_, &effects_, &effects_);
  proto::WorkerEntry another;
  another.rank = 0;
  another.incarnation = 7;
  restored.SetWorker(another);
  ASSERT_TRUE(restored.Restore(content).ok());
  std::set<std::uint64_t> known;
  for (const proto::ClientSession& session : restored.ExportBegin().header.workers) {
    known.insert(session.incarnation);
  }
  EXPECT_TRUE(known.contains(7));
  EXPECT_FALSE(known.contains(100));
  EXPECT_TRUE(known.contains(101));
}

// A shard that has moved away and come back: its changes are counted anew, from another beginning
// than those that the earlier checkpoint has.
// As it is where a checkpoint builds on one from before a change of the table.
TEST_F(ShardCutTest, OtherSettingsMayBeRestoredButNoOtherShape) {
  Install(1, Consistency::Ssp(3));
  Join();
  for (int i = 0; i < 50; ++i) Step(4);
  const std::uint64_t clock = shard_->newest_clock() + 1;
  ASSERT_TRUE(Begin(clock, "ckpt-00000001").ok());
  for (int i = 0; i < 2000 && !taken_.has_value(); ++i) Step(4);
  ShardContent content = *Taken();
  content.tables[0].spec.consistency = Consistency::Ssp(1);
  content.tables[0].spec.updater.parameters["learning_rate"] = 0.5;
  Shard restored(0, &context_, &effects_, &effects_);
  ASSERT_TRUE(restored.Restore(content).ok());
  EXPECT_EQ(restored.stores().at(1)->Digest(), Expected(1, clock));
  content.tables[0].spec.row_width = 3;
  EXPECT_FALSE(restored.Restore(content).ok());
}

TEST_F(ShardCutTest, AfterAStateTransferNoBaseIsKnown) {
  Install(1, Consistency::Asp());
  Join();
  for (int i = 0; i < 50; ++i) Step(50);
  ASSERT_TRUE(Begin(shard_->newest_clock(), "ckpt-00000001").ok());
  ASSERT_TRUE(Taken().ok());
  const LogEntry begin = shard_->ExportBegin();
  const std::vector<LogEntry> pieces = shard_->Freeze();
  shard_->ImportBegin(begin);
  for (const LogEntry& piece : pieces) ASSERT_TRUE(shard_->LoadPiece(piece).ok());
  ASSERT_TRUE(Begin(shard_->newest_clock(), "ckpt-00000002", "ckpt-00000001").ok());
  const auto content = Taken();
  ASSERT_TRUE(content.ok());
  EXPECT_EQ(content->base, "");
}

// A worker has pushed of a clock ahead of all others and died: the clock of a checkpoint has to be
// beyond that also where the head got its state after it.
TEST_F(ShardCutTest, AStateTransferCarriesPushedUntil) {
  Install(1, Consistency::Ssp(3));
  Join();
  for (int i = 0; i < 200; ++i) Step(4);
  Shard joined(0, &context_, &effects_, &effects_);
  joined.ImportBegin(shard_->ExportBegin());
  for (const LogEntry& piece : shard_->Freeze()) ASSERT_TRUE(joined.LoadPiece(piece).ok());
  EXPECT_EQ(joined.newest_clock(), shard_->newest_clock());
}

// What is added up and not applied yet is in the checkpoint, and goes on in another cluster.
TEST_F(ShardCutTest, HasWhatIsCollected) {
  Install(1, Consistency::FedBuff(3));
  Join();
  PushTo(0, 1, 5);
  PushTo(1, 1, 5);
  PushTo(2, 1, 6);  // an update
  PushTo(0, 1, 6);
  ASSERT_TRUE(Begin(4, "ckpt-00000001").ok());
  PushTo(1, 1, 7);  // not in it
  const auto content = Taken();
  ASSERT_TRUE(content.ok()) << content.status();
  const ShardContent::Table* const table = Find(*content, 1);
  ASSERT_NE(table, nullptr);
  ASSERT_EQ(table->collected.size(), 1u);
  EXPECT_EQ(table->collected[0].collected, 1u);

  Shard other(0, &context_, &effects_, &effects_);
  ASSERT_TRUE(other.Restore(*content).ok());
  PushTo(2, 1, 7);  // an update
  const std::uint64_t applied = counters_.pushes_applied;
  for (std::uint32_t rank = 0; rank < kWorkers; ++rank) {
    other.SetWorker({.rank = rank, .incarnation = 200 + rank});
  }
  Inbound push = pushed_.back();
  push.request.id.worker = 0;
  push.request.id.incarnation = 200;
  push.request.id.sequence = 1;
  other.TakeRequest(push);
  EXPECT_EQ(counters_.pushes_applied, applied);
  push.request.id.sequence = 2;
  other.TakeRequest(push);
  EXPECT_EQ(counters_.pushes_applied, applied + 3);
}

// Beside a table with a bound: with exactly the pushes of the clocks below the cut's.
TEST_F(ShardCutTest, CollectedPushesGoByClocksToo) {
  Install(1, Consistency::Ssp(3));
  Install(2, Consistency::FedBuff(3));
  Join();
  PushTo(0, 2, 5);
  ASSERT_TRUE(Begin(1, "ckpt-00000001").ok());
  PushTo(0, 1, 5);
  Tick(0, 1);
  PushTo(0, 2, 6);  // of a clock that is not in it
  PushTo(1, 2, 7);  // in the shard's first update, with the one before
  PushTo(2, 2, 8);  // in the checkpoint's first update
  PushTo(1, 2, 9);
  PushTo(2, 1, 5);
  TickAll(1);
  const auto content = Taken();
  ASSERT_TRUE(content.ok()) << content.status();
  const ShardContent::Table* const table = Find(*content, 2);
  ASSERT_NE(table, nullptr);
  std::set<std::uint64_t> keys;
  for (const FrozenPiece& piece : table->pieces) {
    ForEachRow(piece, [&](const FrozenRow& row) { keys.insert(row.key); });
  }
  EXPECT_THAT(keys, testing::ElementsAre(5, 7, 8));
  ASSERT_EQ(table->collected.size(), 1u);
  EXPECT_EQ(table->collected[0].collected, 1u);
  EXPECT_EQ(table->collected[0].keys.as<std::uint64_t>()[0], 9u);
  for (const proto::ClientSession& session : content->sessions) {
    EXPECT_EQ(session.admitted, 2u) << "worker " << session.rank;
  }
  // A clock of which it has collected has begun.
  EXPECT_EQ(shard_->newest_clock(), 1u);
  clocks_[0] = 7;
  PushTo(0, 2, 5);
  EXPECT_EQ(shard_->newest_clock(), 7u);
}

// Also where the shard has got it from another, and nothing of that table has ever been applied.
TEST_F(ShardCutTest, HasWhatWasCollectedElsewhere) {
  for (const bool restored : {false, true}) {
    SCOPED_TRACE(restored);
    if (context_.tables.Find(1) == nullptr) Install(1, Consistency::FedBuff(3));
    Join();
    PushTo(0, 1, 5);
    PushTo(1, 1, 5);
    auto other = std::make_unique<Shard>(0, &context_, &effects_, &effects_);
    if (restored) {
      ASSERT_TRUE(Begin(4, "ckpt-00000001").ok());
      ASSERT_TRUE(other->Restore(*Taken()).ok());
    } else {
      other->ImportBegin(shard_->ExportBegin());
      for (const LogEntry& piece : shard_->Freeze()) ASSERT_TRUE(other->LoadPiece(piece).ok());
    }
    shard_ = std::move(other);
    ASSERT_TRUE(Begin(4, "ckpt-00000002").ok());
    const auto content = Taken();
    ASSERT_TRUE(content.ok()) << content.status();
    const ShardContent::Table* const table = Find(*content, 1);
    ASSERT_NE(table, nullptr);
    ASSERT_EQ(table->collected.size(), 1u);
    EXPECT_EQ(table->collected[0].collected, 2u);
    shard_ = std::make_unique<Shard>(0, &context_, &effects_, &effects_);
  }
}

}  // namespace
}  // namespace leeway::ps
