// Decode refuses a message with each kind of wrong meaning, and the error names the field.
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/encoding/encoding.h"
#include "proto/messages/limits.h"
#include "proto/testing/samples.h"
#include "proto/testing/violations.h"

namespace leeway::proto {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using Frames = std::vector<runtime::Buffer>;

// The error of Decode for a message and its payload, sent as they are.
std::string ErrorOf(const AnyMessage& message, Frames payload = {}) {
  const absl::Status status = Decode(EncodeAsIs(message), payload).status();
  EXPECT_TRUE(status.ok() || absl::IsInvalidArgument(status)) << status;
  EXPECT_EQ(status.message().find('\n'), absl::string_view::npos) << status;
  return std::string(status.message());
}

// ---- what a description says of each field ----

TEST(WrongTest, EachCheckOfEachFieldOfEachSample) {
  int violations = 0;
  for (const Sample& sample : AllSamples()) {
    ForEachViolation(sample.message, [&](const Violation& violation) {
      ++violations;
      if (EncodeAsIs(violation.message).size() > kHeaderBytesMax) {
        EXPECT_THAT(ErrorOf(violation.message), StartsWith("malformed header: it is "));
      } else if (violation.allowed) {
        EXPECT_THAT(ErrorOf(violation.message, sample.payload),
                    ::testing::Not(StartsWith(violation.says)));
      } else {
        EXPECT_THAT(ErrorOf(violation.message, sample.payload), StartsWith(violation.says));
      }
    });
  }
  EXPECT_GT(violations, 2000);
}

// ---- payload frames ----

bool IsCall(const AnyMessage& message) {
  return std::holds_alternative<Call>(message) || std::holds_alternative<CallReply>(message);
}

TEST(WrongTest, FramesOfACallAreOneToEight) {
  for (const AnyMessage& message : {AnyMessage(Call{.handler = "h"}), AnyMessage(CallReply{})}) {
    for (const std::size_t frames : {0, 1, 5, 8, 9}) {
      const bool allowed = frames >= 1 && frames <= kCallFramesMax;
      const std::string error = ErrorOf(message, Frames(frames));
      EXPECT_EQ(error.empty(), allowed);
      if (allowed) continue;
      EXPECT_THAT(error, HasSubstr(absl::StrCat("payload frames is ", frames, ", may be 1 to 8")));
    }
  }
}

bool IsShardCall(const AnyMessage& message) {
  const auto* const request = std::get_if<Request>(&message);
  return request != nullptr && request->op == Op::kCall;
}

TEST(WrongTest, FramesMissingTooManyOrOfAnotherLength) {
  for (const Sample& sample : AllSamples()) {
    SCOPED_TRACE(NameOf(sample.message));
    if (IsCall(sample.message)) continue;
    const std::size_t frames = sample.payload.size();
    Frames payload = sample.payload;
    payload.emplace_back();
    EXPECT_THAT(
        ErrorOf(sample.message, payload),
        HasSubstr(absl::StrCat("number of payload frames is ", frames + 1, ", may be ", frames)));
    if (frames == 0) continue;
    payload.resize(frames - 1);
    EXPECT_THAT(
        ErrorOf(sample.message, payload),
        HasSubstr(absl::StrCat("number of payload frames is ", frames - 1, ", may be ", frames)));
    for (std::size_t i = 0; i < frames; ++i) {
      payload = sample.payload;
      payload[i] = runtime::Buffer::CopyOf(std::string(payload[i].size() + 64, 'x'));
      const std::string error = ErrorOf(sample.message, payload);
      // A handler's, a tool's: of any length.
      if (error.empty() && (frames == 1 || IsShardCall(sample.message))) continue;
      EXPECT_THAT(error, HasSubstr(absl::StrCat("are ", payload[i].size(), " bytes of payload")));
    }
  }
}

// The number of elements of the blocks that have a number of bytes that no block has.
std::uint64_t BeyondABlock(DType dtype) { return kBlockBytesMax / SizeOf(dtype) + 1; }

// Changes a message with values for a target, in each way in which its counts can be wrong.
template <class Message>
void CountsThatAreWrong(const Message& good, TableKind kind, const Frames& payload) {
  const auto error_of = [&](void (*change)(Message&)) {
    Message m = good;
    change(m);
    return ErrorOf(m, payload);
  };
  if (kind == TableKind::kDense) {
    EXPECT_THAT(error_of([](Message& m) { m.block = kTableElementsMax; }),
                HasSubstr("block is 281474976710656, may be 0 to 281474976710655"));
    EXPECT_THAT(error_of([](Message& m) { m.keys = 1; }), HasSubstr("keys is 1, may be 0"));
    EXPECT_THAT(error_of([](Message& m) { m.elements = 0; }),
                HasSubstr("elements is 0, may be 1 to "));
    EXPECT_THAT(
        error_of([](Message& m) { m.elements = BeyondABlock(m.dtype); }),
        HasSubstr(absl::StrCat("elements is ", BeyondABlock(good.dtype), ", may be 1 to ")));
    return;
  }
  EXPECT_THAT(error_of([](Message& m) { m.block = 1; }), HasSubstr("block is 1, may be 0"));
  if (kind == TableKind::kSparse) {
    EXPECT_THAT(error_of([](Message& m) { m.keys = 0, m.elements = 2; }),
                HasSubstr("elements is 2, may be 0"));
    for (const auto change : {+[](Message& m) { m.keys = 2, m.elements = 3; },
                              +[](Message& m) { m.keys = 2, m.elements = 0; },
                              +[](Message& m) { m.keys = 2, m.elements = 2 * kRowWidthMax + 2; }}) {
      EXPECT_THAT(error_of(change), HasSubstr(", may be 1 to 16777216 for each of 2 keys"));
    }
    return;
  }
  Frames widths = payload;
  widths[1] = runtime::Buffer::CopyOf(std::string(widths[1].size(), '\1'));
  EXPECT_THAT(ErrorOf(good, widths), HasSubstr("width is 16843009, may be 0 to 16777216"));
  widths[1] = runtime::Buffer::CopyOf(std::string(widths[1].size(), '\0'));
  EXPECT_THAT(ErrorOf(good, widths), HasSubstr(", widths add up to 0"));
}

TEST(WrongTest, CountsOfATarget) {
  for (const Sample& sample : AllSamples()) {
    if (const auto* m = std::get_if<Request>(&sample.message);
        m != nullptr && HasPush(m->op) && !IsShardCall(sample.message)) {
      CountsThatAreWrong(*m, m->kind, sample.payload);
    }
    if (const auto* m = std::get_if<Replicate>(&sample.message); m != nullptr && m->has().target) {
      CountsThatAreWrong(*m, m->table_kind, sample.payload);
    }
  }
}

TEST(WrongTest, CallsOfHandlers) {
  const Request call{.id = {.sequence = 1}, .table = 1, .op = Op::kCall};
  const auto error_of = [&](std::uint64_t keys, std::uint64_t elements, std::uint64_t block,
                            std::size_t name) {
    Request m = call;
    m.keys = keys, m.elements = elements, m.block = block;
    return ErrorOf(m, {runtime::Buffer::CopyOf(std::string(name, 'x')), runtime::Buffer()});
  };
  EXPECT_EQ(error_of(0, 0, 0, 1), "");
  EXPECT_EQ(error_of(0, 0, 0, 255), "");
  EXPECT_THAT(error_of(0, 0, 0, 0), HasSubstr("bytes of the handler's name is 0, may be 1 to 255"));
  EXPECT_THAT(error_of(0, 0, 0, 256), HasSubstr("bytes of the handler's name is 256"));
  EXPECT_THAT(error_of(1, 0, 0, 1), HasSubstr("keys is 1, may be 0"));
  EXPECT_THAT(error_of(0, 1, 0, 1), HasSubstr("elements is 1, may be 0"));
  EXPECT_THAT(error_of(0, 0, 1, 1), HasSubstr("block is 1, may be 0"));
}

// Four floats, or two rows of them.
const runtime::Buffer& Floats() {
  static const auto& floats = *new runtime::Buffer(FrameOf<float>({1, 2, 3, 4}));
  return floats;
}
Request NewPull(TableKind kind, std::uint64_t keys, std::uint64_t elements) {
  return {.id = {.sequence = 1},
          .table = 1,
          .kind = kind,
          .op = Op::kPull,
          .keys = keys,
          .elements = elements};
}
Reply NewReply(TableKind kind, std::uint64_t keys) {
  return {.id = {.sequence = 1}, .op = Op::kPull, .kind = kind, .keys = keys, .elements = 4};
}

TEST(WrongTest, CountsOfAPull) {
  EXPECT_THAT(ErrorOf(NewPull(TableKind::kDense, 0, 0)),
              HasSubstr("elements is 0, may be 1 to 67108864"));
  const Frames keys = {FrameOf<std::uint64_t>({1, 2})};
  for (const TableKind kind : {TableKind::kSparse, TableKind::kRagged}) {
    EXPECT_EQ(ErrorOf(NewPull(kind, 2, 0), keys), "");
    EXPECT_THAT(ErrorOf(NewPull(kind, 2, 4), keys), HasSubstr("elements is 4, may be 0"));
    Request block = NewPull(kind, 2, 0);
    block.block = 1;
    EXPECT_THAT(ErrorOf(block, keys), HasSubstr("block is 1, may be 0"));
  }
}

TEST(WrongTest, EncodedValuesThatAreNotShorter) {
  Request push{.id = {.sequence = 1}, .table = 1, .elements = 4, .codec = 1};
  EXPECT_THAT(ErrorOf(push, {Floats()}),
              HasSubstr("encoded values are 16 bytes of payload, may be at least 1 and fewer than "
                        "the 16 that they stand for"));
  EXPECT_THAT(ErrorOf(push, {runtime::Buffer()}), HasSubstr("encoded values are 0 bytes"));
}

TEST(WrongTest, CountsOfAReply) {
  EXPECT_EQ(ErrorOf(NewReply(TableKind::kDense, 0), {Floats()}), "");
  EXPECT_THAT(ErrorOf(NewReply(TableKind::kDense, 1), {Floats()}),
              HasSubstr("keys is 1, may be 0"));
  EXPECT_THAT(ErrorOf(NewReply(TableKind::kSparse, 3), {Floats()}),
              HasSubstr("elements are 4, may be 1 to 16777216 for each of 3 keys"));
  EXPECT_THAT(ErrorOf(NewReply(TableKind::kRagged, 2), {FrameOf<std::uint32_t>({1, 2}), Floats()}),
              HasSubstr("elements are 4, widths add up to 3"));
  Reply reply = NewReply(TableKind::kDense, 0);
  reply.elements = 0;
  EXPECT_THAT(ErrorOf(reply, {runtime::Buffer()}),
              HasSubstr("elements is 0, may be 1 to 67108864"));
  reply.elements = 4;
  reply.coded = true;
  reply.parts = {{.bytes = 9}, {.bytes = 8}};
  EXPECT_THAT(ErrorOf(reply, {Floats()}),
              HasSubstr("parts are 16 bytes of payload, may be 17 (17 of 1 bytes)"));
}

TEST(WrongTest, ValuesOfAReplyThatHasNone) {
  Reply push = NewReply(TableKind::kDense, 0), error = push;
  push.op = Op::kPush;
  error.result = absl::AbortedError("x");
  for (const Reply& reply : {push, error}) {
    EXPECT_THAT(ErrorOf(reply, {Floats()}), HasSubstr("number of payload frames is 1, may be 0"));
  }
}

TEST(WrongTest, BytesOfABatch) {
  PushBatch batch{.pushes = {{.sequence = 1, .elements = 513, .table = 1}}};
  EXPECT_THAT(ErrorOf(batch), HasSubstr("bytes of a push is 2052, may be 1 to 2048"));
  batch.pushes[0].elements = 512;
  batch.pushes.resize(33, batch.pushes[0]);
  EXPECT_THAT(ErrorOf(batch), HasSubstr("bytes of all pushes is 67584, may be 1 to 65536"));
}

// An aggregate has the type that it is computed in, and rows have steps of their own.
TEST(WrongTest, FramesOfAnEntry) {
  Replicate entry{.epoch = 1, .entry = 1, .kind = LogEntryKind::kUpdate, .index = 1, .table = 1};
  entry.dtype = DType::kFloat16;
  entry.elements = 4;
  EXPECT_THAT(ErrorOf(entry, {FrameOf<std::uint16_t>({1, 2, 3, 4})}),
              HasSubstr("values are 8 bytes of payload, may be 16 (4 of 4 bytes)"));
  entry.kind = LogEntryKind::kTransferPiece;
  entry.state_slots = 3;
  const runtime::Buffer values = FrameOf<std::uint16_t>({1, 2, 3, 4});
  EXPECT_THAT(ErrorOf(entry, {values, Floats(), values}),
              HasSubstr("state are 16 bytes of payload, may be 48 (12 of 4 bytes)"));
  entry.state_slots = 1;
  EXPECT_THAT(ErrorOf(entry, {values, Floats(), Floats()}),
              HasSubstr("steps are 16 bytes of payload, may be 8 (1 of 8 bytes)"));
  entry.table_kind = TableKind::kSparse;
  entry.keys = 2;
  EXPECT_THAT(ErrorOf(entry, {FrameOf<std::uint64_t>({1, 2}), values, Floats(), values}),
              HasSubstr("steps are 8 bytes of payload, may be 16 (2 of 8 bytes)"));
}

// ---- what depends on several fields or entries ----

// The error for the first sample of that type, after `change`.
template <class Message>
std::string After(void (*change)(Message&)) {
  for (const Sample& sample : AllSamples()) {
    if (const auto* good = std::get_if<Message>(&sample.message)) {
      Message m = *good;
      change(m);
      return ErrorOf(m, sample.payload);
    }
  }
  return "there is no sample";
}

TEST(WrongTest, Members) {
  EXPECT_EQ(After<Hello>([](Hello& m) { m.protocol_min = 1, m.role = static_cast<Role>(6); }),
            "malformed Hello: role is 6, may be 0 to 5");
  EXPECT_EQ(After<Join>([](Join& m) { m.role = Role::kWorker; }),
            "malformed Join: number of endpoints is 2, may be 0");
  EXPECT_EQ(After<Join>([](Join& m) { m.rank_wanted = -2; }),
            "malformed Join: rank_wanted is -2, may be -1 (none) to 4095");
  EXPECT_EQ(After<Join>([](Join& m) { m.rank_wanted = kServersMax; }),
            "malformed Join: rank_wanted is 4096, may be -1 (none) to 4095");
  EXPECT_EQ(After<Join>([](Join& m) { m.codecs[1].name = m.codecs[0].name; }),
            "malformed Join: codecs are not in order, or one is there twice: entry 1");
  EXPECT_THAT(After<Heartbeat>([](Heartbeat&) {}), "");
}

std::string AfterMap(void (*change)(ClusterMap&)) { return After<ClusterMap>(change); }

TEST(WrongTest, RanksOfAMap) {
  EXPECT_EQ(AfterMap([](ClusterMap& m) { m.servers[1].rank = 2; }),
            "malformed ClusterMap: servers[1].rank is 2, may be 1");
  EXPECT_EQ(AfterMap([](ClusterMap& m) { m.workers[0].rank = 1; }),
            "malformed ClusterMap: workers[0].rank is 1, may be 0");
  const auto incomplete = [](ClusterMap& m) {
    m.epoch = 0;
    m.owners.clear();
    m.replicas.clear();
    m.servers[1].rank = 0;
  };
  EXPECT_EQ(AfterMap(incomplete),
            "malformed ClusterMap: servers are not in order, or one is there twice: entry 1");
}

TEST(WrongTest, OwnersAndReplicasOfAMap) {
  const std::pair<void (*)(ClusterMap&), const char*> changes[] = {
      {[](ClusterMap& m) { m.owners[2].server_rank = 3; },
       "owner of shard 2 is server 3, there are 3 servers"},
      {[](ClusterMap& m) { m.owners[0].thread = 1; },
       "owner of shard 0 is thread 1 of server 1, which has 1 threads"},
      {[](ClusterMap& m) { m.owners[3].thread = 1; },
       "owner of shard 3 is server 4294967295, there are 3 servers"},
      {[](ClusterMap& m) { m.epoch = 0; }, "number of owners is 4, may be 0"},
      {[](ClusterMap& m) { m.epoch = 0, m.owners.clear(); }, "number of replicas is 3, may be 0"},
      {[](ClusterMap& m) { m.replicas[0].shard = 3; }, "shard 3 has a replica but no owner"},
      {[](ClusterMap& m) { m.replicas[0].shard = 2; }, "replicas[1].shard is 0, may be 2 to 3"},
      {[](ClusterMap& m) { m.replicas[2].shard = 4; }, "replicas[2].shard is 4, may be 0 to 3"},
      {[](ClusterMap& m) { m.replicas[2].shard = 3; }, "shard 3 has a replica but no owner"},
      {[](ClusterMap& m) { m.replicas[1].place.server_rank = 3; },
       "replica of shard 0 is server 3, there are 3 servers"},
      {[](ClusterMap& m) { m.replicas[1].place.server_rank = kNoServer; },
       "replica of shard 0 is server 4294967295, there are 3 servers"},
      {[](ClusterMap& m) { m.replicas[1].place.thread = 1; },
       "replica of shard 0 is thread 1 of server 2, which has 1 threads"},
      {[](ClusterMap& m) { m.replicas[1].place = m.owners[0]; }, "shard 0 is on server 1 twice"},
      {[](ClusterMap& m) {
         m.replicas[1].place = {0, 0};
       },
       "shard 0 is on server 0 twice"},
      {[](ClusterMap& m) { m.replicas[0].joining = true, m.replicas[1].joining = false; },
       "shard 0 has a joining replica before a member"},
      {[](ClusterMap& m) {
         m.replicas.assign(kChainMax, {0, {2, 0}, false});
       },
       "length of a chain is 17, may be 1 to 16"},
  };
  for (const auto& [change, says] : changes) {
    EXPECT_THAT(AfterMap(change), StartsWith(absl::StrCat("malformed ClusterMap: ", says)));
  }
}

TEST(WrongTest, SwitchesAndSettingsOfAMap) {
  for (const auto change : {+[](ClusterMap& m) { m.codecs[1].number = 2; },
                            +[](ClusterMap& m) { m.codecs[1].decided = true; },
                            +[](ClusterMap& m) { m.codecs[0].decided = false; },
                            +[](ClusterMap& m) { m.codecs[0].table = 2; }}) {
    EXPECT_EQ(AfterMap(change), "malformed ClusterMap: codecs of table 1 are not in order");
  }
  for (const auto change : {+[](ClusterMap& m) { m.table_settings[1].number = 2; },
                            +[](ClusterMap& m) { m.table_settings[1].since = 8; },
                            +[](ClusterMap& m) { m.table_settings[0].decided = false; }}) {
    EXPECT_EQ(AfterMap(change), "malformed ClusterMap: table_settings of table 1 are not in order");
  }
}

TEST(WrongTest, Tables) {
  EXPECT_THAT(After<CreateTable>([](CreateTable& m) { m.spec.shape[1] = 0; }),
              StartsWith("malformed CreateTable: spec of table \"Gewichte/\xc3\xb6\": shape is "));
  EXPECT_THAT(After<InstallTable>([](InstallTable& m) { m.spec.kind = static_cast<TableKind>(3); }),
              StartsWith("malformed InstallTable: spec of table \"u\": kind is 3, may be 0 to 2"));
  EXPECT_THAT(After<TableReply>([](TableReply& m) { m.spec.updater.parameters["decay"] = NAN; }),
              HasSubstr("updater.parameters[\"decay\"] is nan, may be finite"));
  EXPECT_EQ(After<TableReply>([](TableReply& m) { m.table = 4; }),
            "malformed TableReply: table_settings are of table 3");
  EXPECT_EQ(
      After<TableReply>([](TableReply& m) { m.table_settings.resize(2, m.table_settings[0]); }),
      "malformed TableReply: table_settings of table 3 are not in order");
}

TEST(WrongTest, ReportsFilesAndSessions) {
  EXPECT_EQ(After<CodecReport>([](CodecReport& m) { m.lossy = 8; }),
            "malformed CodecReport: lossy is 8, may be 0 to 7");
  EXPECT_EQ(After<LoadReport>([](LoadReport& m) { m.shards[1] = m.shards[0]; }),
            "malformed LoadReport: shards are not in order, or one is there twice: entry 1");
  for (const char* const name : {"../x", "..", ".", "/"}) {
    EXPECT_EQ(ErrorOf(CheckpointWritten{.files = {{.name = name}}}),
              absl::StrCat("malformed CheckpointWritten: a file's name is \"", name,
                           "\", may be without directories"));
  }
  Replicate close{.epoch = 1, .entry = 1, .kind = LogEntryKind::kClose, .index = 1};
  for (const ClientSession& second : {ClientSession{.rank = 1}, ClientSession{.rank = 0}}) {
    close.workers = {{.rank = 1}, second};
    EXPECT_EQ(ErrorOf(close),
              "malformed Replicate: workers are not in order, or one is there twice: entry 1");
  }
  close.workers = {{.rank = 1}, {.rank = 1, .incarnation = 1}};
  EXPECT_EQ(ErrorOf(close), "");
}

}  // namespace
}  // namespace leeway::proto
