#include <utility>

#include "tests/malformed/attack_parts.h"

namespace leeway::tests {
namespace {

constexpr std::uint64_t kForeignIncarnation = 99;

// A message with its payload.
struct Said {
  proto::AnyMessage message;
  Frames payload = {};
};

proto::Replicate Item(proto::ReplicaItem kind) {
  proto::Replicate item;
  item.epoch = 1;
  item.stream = 1;
  item.item = 1;
  item.kind = kind;
  item.index = 1;
  item.clock = 1;
  return item;
}

proto::Replicate DenseItem(proto::ReplicaItem kind) {
  proto::Replicate item = Item(kind);
  item.table = 1;
  item.dtype = DType::kInt64;
  item.elements = 2;
  return item;
}

proto::Replicate PushItem(proto::ReplicaItem kind) {
  proto::Replicate item = DenseItem(kind);
  item.incarnation = kForeignIncarnation;
  item.sequence = 1;
  return item;
}

// Well-formed: nothing but who says it is wrong.
std::vector<Said> Items() {
  using proto::ReplicaItem;
  const std::string values(16, '\1'), step(8, '\1');
  std::vector<Said> all = {
      {PushItem(ReplicaItem::kPush), {values}},
      {PushItem(ReplicaItem::kHeld), {values}},
      {DenseItem(ReplicaItem::kUpdate), {values}},
      {DenseItem(ReplicaItem::kFillPiece), {values, "", step}},
      {Item(ReplicaItem::kFillEnd)},
      {Item(ReplicaItem::kConfirm)},
  };
  for (const auto kind : {ReplicaItem::kClose, ReplicaItem::kEnter, ReplicaItem::kFillBegin,
                          ReplicaItem::kHandoverEnd}) {
    proto::Replicate item = Item(kind);
    item.workers = {{.rank = 0, .incarnation = kForeignIncarnation, .clock = ~0ull}};
    all.push_back({item});
  }
  return all;
}

std::vector<Said> Others() {
  return {
      {proto::EnterClock{.worker = 0, .incarnation = kForeignIncarnation, .epoch = 1}},
      {proto::EnterClockReply{.clock = ~0ull}},
      {proto::ReplicateAck{.stream = 1, .item = ~0ull, .committed = ~0ull}},
      {proto::ReplicaReady{.epoch = 1, .shard = 0}},
      {proto::LinkReport{.epoch = 1, .shard = 0, .server = 1, .handover = true}},
      {proto::LeadNow{.epoch = ~0ull, .shard = 0, .from = 0}},
      {proto::LoadReport{{{.shard = 0, .bytes = ~0ull, .requests = ~0ull}}}},
      {proto::Admin{.request = 1, .command = "no-such-command", .arguments = {"../..", ""}}},
      {proto::AdminReply{.request = 1}, {"{}"}},
      {proto::CheckpointPrepare{.checkpoint = 1}},
      {proto::CheckpointPrepared{.checkpoint = 1, .fastest_clock = ~0ull}},
      {proto::CheckpointCut{.checkpoint = 1, .clock = 1, .directory = "/nonexistent/attack"}},
      {proto::CheckpointWritten{.checkpoint = 1, .files = {{.name = "x", .bytes = ~0ull}}}},
      {proto::RestoreShards{.request = 1, .directory = "/nonexistent/attack"}},
      {proto::RestoreShardsReply{.request = 1}},
      {proto::SchedulerMoved{.address = "tcp://127.0.0.1:1", .cluster = 1}},
  };
}

Frames FramesOf(const Said& said) {
  Frames frames = {Data(said.message, said.payload.size())};
  frames.insert(frames.end(), said.payload.begin(), said.payload.end());
  return frames;
}

std::string HelloOfSomeRole(Forge& forge) {
  constexpr Role kRoles[] = {Role::kScheduler, Role::kServer, Role::kWorker, Role::kTool};
  proto::Hello hello;
  hello.role = kRoles[forge.random.Below(4)];
  return Hello(hello);
}

// The message as it is, said by somebody who is nobody.
ZmqAttack Whole(const Said& said) {
  return [said](Forge& f) { return std::vector<Frames>{{HelloOfSomeRole(f)}, FramesOf(said)}; };
}

// The message with a bit of its header, or the length of its payload, changed.
ZmqAttack Damaged(const Said& said) {
  return [said](Forge& f) {
    Frames frames = FramesOf(said);
    if (f.random.Below(2) == 0) {
      frames[0] = f.FlipBit(frames[0], van::kPrefixBytes);
    } else if (frames.size() > 1) {
      frames.back() = f.Noise(f.random.Below(64));
    } else {
      frames[0] = Data(said.message, 1);
      frames.push_back(f.Noise(8));
    }
    return std::vector<Frames>{{HelloOfSomeRole(f)}, frames};
  };
}

}  // namespace

std::vector<ZmqAttack> ClusterAttacks() {
  std::vector<ZmqAttack> attacks;
  for (const auto& list : {Items(), Others()}) {
    for (const Said& said : list) {
      attacks.push_back(Whole(said));
      attacks.push_back(Damaged(said));
    }
  }
  // Rows that no memory could hold.
  proto::Replicate huge = PushItem(proto::ReplicaItem::kPush);
  huge.table_kind = TableKind::kRagged;
  huge.keys = 1ull << 61;
  huge.elements = ~0ull;
  attacks.push_back(Whole({huge, {"12345678", "1234", ""}}));
  return attacks;
}

}  // namespace leeway::tests
