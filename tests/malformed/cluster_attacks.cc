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

proto::Replicate Entry(proto::LogEntryKind kind) {
  proto::Replicate entry;
  entry.epoch = 1;
  entry.stream = 1;
  entry.entry = 1;
  entry.kind = kind;
  entry.index = 1;
  entry.clock = 1;
  return entry;
}

proto::Replicate DenseEntry(proto::LogEntryKind kind) {
  proto::Replicate entry = Entry(kind);
  entry.table = 1;
  entry.dtype = DType::kInt64;
  entry.elements = 2;
  return entry;
}

proto::Replicate PushEntry(proto::LogEntryKind kind) {
  proto::Replicate entry = DenseEntry(kind);
  entry.incarnation = kForeignIncarnation;
  entry.sequence = 1;
  return entry;
}

proto::Replicate CallEntry(proto::LogEntryKind kind) {
  proto::Replicate entry = Entry(kind);
  entry.incarnation = kForeignIncarnation;
  entry.sequence = 1;
  return entry;
}

// Well-formed messages: only their sender is wrong.
std::vector<Said> Items() {
  using proto::LogEntryKind;
  const std::string values(16, '\1'), step(8, '\1');
  std::vector<Said> all = {
      {PushEntry(LogEntryKind::kPush), {values}},
      {PushEntry(LogEntryKind::kHeld), {values}},
      {DenseEntry(LogEntryKind::kEffect), {values}},
      {DenseEntry(LogEntryKind::kUpdate), {values}},
      {DenseEntry(LogEntryKind::kTransferPiece), {values, "", step}},
      {CallEntry(LogEntryKind::kCall), {values}},
      {CallEntry(LogEntryKind::kAnswer), {values}},
      {Entry(LogEntryKind::kTransferEnd)},
      {Entry(LogEntryKind::kConfirm)},
  };
  for (const auto kind : {LogEntryKind::kClose, LogEntryKind::kEnter, LogEntryKind::kTransferBegin,
                          LogEntryKind::kHandoverEnd}) {
    proto::Replicate entry = Entry(kind);
    entry.workers = {{.rank = 0, .incarnation = kForeignIncarnation, .clock = ~0ull}};
    all.push_back({entry});
  }
  return all;
}

std::vector<Said> Others() {
  return {
      {proto::EnterClock{.worker = 0, .incarnation = kForeignIncarnation, .epoch = 1}},
      {proto::EnterClockReply{.clock = ~0ull}},
      {proto::ReplicateAck{.stream = 1, .entry = ~0ull, .committed = ~0ull}},
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

// The message unchanged, from a sender that has no right to it.
ZmqAttack Whole(const Said& said) {
  return [said](Forge& f) { return std::vector<Frames>{{HelloOfSomeRole(f)}, FramesOf(said)}; };
}

// The message with a changed bit in its header, or a changed length of its payload.
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
  // Rows beyond any memory.
  proto::Replicate huge = PushEntry(proto::LogEntryKind::kPush);
  huge.table_kind = TableKind::kRagged;
  huge.keys = 1ull << 61;
  huge.elements = ~0ull;
  attacks.push_back(Whole({huge, {"12345678", "1234", ""}}));
  return attacks;
}

}  // namespace leeway::tests
