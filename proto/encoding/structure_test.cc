// Faults of structure, which Encode cannot produce: headers put together by hand.
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "leeway_generated.h"
#include "proto/encoding/encoding.h"
#include "proto/messages/limits.h"

namespace leeway::proto {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using Builder = flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

std::string Says(const runtime::Buffer& header) {
  return std::string(Decode(header, {}).status().message());
}

// The error of Decode for a header with that body.
template <class Wire>
std::string SaysTo(Builder& out, Offset<Wire> body) {
  wire::FinishHeaderBuffer(
      out, wire::CreateHeader(out, wire::BodyTraits<Wire>::enum_value, body.Union()));
  return Says(runtime::Buffer::CopyOf(out.GetBufferPointer(), out.GetSize()));
}

constexpr char kBroken[] = "malformed header: its structure is broken or over its limits";

TEST(StructureTest, Length) {
  const std::string bytes(kHeaderBytesMax + 1, '\0');
  EXPECT_EQ(Says(runtime::Buffer()), "malformed header: it is 0 bytes long, may be 12 to 16777216");
  EXPECT_THAT(Says(runtime::Buffer::Unowned(bytes.data(), 11)), HasSubstr("is 11 bytes long"));
  EXPECT_THAT(Says(runtime::Buffer::Unowned(bytes.data(), bytes.size())),
              HasSubstr("is 16777217 bytes long"));
}

TEST(StructureTest, Identifier) {
  Builder out;
  out.Finish(wire::CreateHeader(out), "LWY2");
  EXPECT_EQ(Says(runtime::Buffer::CopyOf(out.GetBufferPointer(), out.GetSize())),
            "malformed header: its identifier is not \"LWY1\"");
  const std::string http = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
  EXPECT_THAT(Says(runtime::Buffer::CopyOf(http)), HasSubstr("its identifier is not"));
}

TEST(StructureTest, Garbage) {
  for (const char fill : {'\0', '\1', '\x7f', '\xff'}) {
    std::string bytes(200, fill);
    std::memcpy(bytes.data() + 4, "LWY1", 4);
    EXPECT_EQ(Says(runtime::Buffer::CopyOf(bytes)), kBroken);
  }
}

TEST(StructureTest, BodyOfAnUnknownType) {
  Builder out;
  const auto body = wire::CreateGoodbye(out);
  wire::FinishHeaderBuffer(out, wire::CreateHeader(out, static_cast<wire::Body>(50), body.Union()));
  EXPECT_EQ(Says(runtime::Buffer::CopyOf(out.GetBufferPointer(), out.GetSize())),
            "malformed header: body's type is 50, may be 1 to 49");
}

TEST(StructureTest, TypeWithoutBody) {
  Builder out;
  wire::FinishHeaderBuffer(out, wire::CreateHeader(out, wire::Body::Request));
  EXPECT_EQ(Says(runtime::Buffer::CopyOf(out.GetBufferPointer(), out.GetSize())),
            "malformed header: it has no body");
}

TEST(StructureTest, BodyWithoutType) {
  Builder out;
  const auto body = wire::CreateGoodbye(out);
  wire::FinishHeaderBuffer(out, wire::CreateHeader(out, wire::Body::NONE, body.Union()));
  EXPECT_THAT(Says(runtime::Buffer::CopyOf(out.GetBufferPointer(), out.GetSize())),
              HasSubstr("body's type is 0"));
}

TEST(StructureTest, RequestWithoutId) {
  Builder out;
  EXPECT_EQ(SaysTo(out, wire::CreateRequest(out)), "malformed Request: id is missing");
}

TEST(StructureTest, ReplyWithoutId) {
  Builder out;
  EXPECT_EQ(SaysTo(out, wire::CreateReply(out)), "malformed Reply: id is missing");
}

TEST(StructureTest, TablesWithoutSpec) {
  Builder create, install, reply;
  EXPECT_EQ(SaysTo(create, wire::CreateCreateTable(create, 1)),
            "malformed CreateTable: spec is missing");
  EXPECT_EQ(SaysTo(install, wire::CreateInstallTable(install, 1)),
            "malformed InstallTable: spec is missing");
  EXPECT_EQ(SaysTo(reply, wire::CreateTableReply(reply, 1, 0, 0, 1)),
            "malformed TableReply: spec is missing");
}

TEST(StructureTest, SpecWithoutNames) {
  Builder out;
  EXPECT_EQ(SaysTo(out, wire::CreateCreateTable(out, 1, wire::CreateTableSpec(out))),
            "malformed CreateTable: spec.name is 0 bytes long, may be 1 to 255");
}

TEST(StructureTest, StatusCodes) {
  for (const int code : {-1, 17, 1 << 30}) {
    Builder out;
    EXPECT_EQ(SaysTo(out, wire::CreateShutdown(out, code)),
              absl::StrCat("malformed Shutdown: code is ", code, ", may be 0 to 16"));
  }
}

TEST(StructureTest, ReasonTooLong) {
  Builder out;
  const auto reason = out.CreateString(std::string(kReasonBytesMax + 1, 'x'));
  EXPECT_EQ(SaysTo(out, wire::CreateLeave(out, reason)),
            "malformed Leave: reason is 4097 bytes long, may be 0 to 4096");
}

TEST(StructureTest, ReasonNotText) {
  Builder out;
  const auto reason = out.CreateString("\x1b[2J");
  EXPECT_EQ(SaysTo(out, wire::CreateLeave(out, reason)),
            "malformed Leave: reason is \"\\033[2J\", may be UTF-8 without control characters");
}

TEST(StructureTest, NameTooLong) {
  Builder out;
  const auto name = out.CreateString(std::string(256, 'x'));
  EXPECT_EQ(SaysTo(out, wire::CreateOpenTable(out, 1, name)),
            "malformed OpenTable: name is 256 bytes long, may be 1 to 255");
}

TEST(StructureTest, AddressTooLong) {
  Builder out;
  const std::vector endpoints = {out.CreateString(std::string(513, 'x'))};
  const auto server = std::uint8_t(Role::kServer);
  EXPECT_EQ(SaysTo(out, wire::CreateJoin(out, server, 0, 0, out.CreateVector(endpoints))),
            "malformed Join: endpoint is 513 bytes long, may be 1 to 512");
}

TEST(StructureTest, ParameterTwice) {
  Builder out;
  const auto name = out.CreateString("rate");
  const std::vector parameters = {wire::CreateParameter(out, name, 1),
                                  wire::CreateParameter(out, name, 2)};
  const auto at = out.CreateVector(parameters);
  wire::TableSpecBuilder spec(out);
  spec.add_name(name);
  spec.add_updater(name);
  spec.add_parameters(at);
  const auto spec_at = spec.Finish();
  EXPECT_EQ(SaysTo(out, wire::CreateCreateTable(out, 1, spec_at)),
            "malformed CreateTable: parameter \"rate\" is given twice");
}

// A vector of one element, whose length is aligned but whose element is not. The builder writes
// from the end to the front, so the address of an element is its distance from the end.
std::uint32_t MisalignedVector(Builder& out, std::size_t element_bytes) {
  out.PushElement<std::uint32_t>(0);
  for (std::size_t i = 0; i < element_bytes / 4; ++i) out.PushElement<std::uint32_t>(0);
  return out.PushElement<std::uint32_t>(1);
}

TEST(StructureTest, MisalignedWatermarks) {
  Builder out;
  const Offset<flatbuffers::Vector<const wire::ShardWatermark*>> watermarks(
      MisalignedVector(out, 16));
  EXPECT_EQ(SaysTo(out, wire::CreateClockTick(out, 0, 0, 0, 1, watermarks)),
            "malformed ClockTick: watermarks are not aligned to 8 bytes");
}

TEST(StructureTest, MisalignedBatches) {
  Builder out;
  const Offset<flatbuffers::Vector<const wire::BatchedPush*>> pushes(MisalignedVector(out, 40));
  wire::PushBatchBuilder batch(out);
  batch.add_incarnation(1);
  batch.add_pushes(pushes);
  EXPECT_EQ(SaysTo(out, batch.Finish()), "malformed PushBatch: pushes are not aligned to 8 bytes");
}

TEST(StructureTest, MisalignedSessions) {
  Builder out;
  const Offset<flatbuffers::Vector<const wire::ClientSession*>> workers(MisalignedVector(out, 48));
  wire::ReplicateBuilder entry(out);
  entry.add_epoch(1);
  entry.add_entry(1);
  entry.add_kind(std::uint8_t(LogEntryKind::kTransferBegin));
  entry.add_workers(workers);
  EXPECT_EQ(SaysTo(out, entry.Finish()), "malformed Replicate: workers are not aligned to 8 bytes");
}

TEST(StructureTest, MisalignedLoads) {
  Builder out;
  out.PushElement<std::uint64_t>(0);  // so that the header ends at a multiple of 8
  const Offset<flatbuffers::Vector<const wire::ShardLoad*>> shards(MisalignedVector(out, 24));
  EXPECT_EQ(SaysTo(out, wire::CreateLoadReport(out, shards)),
            "malformed LoadReport: shards are not aligned to 8 bytes");
}

TEST(StructureTest, MisalignedDimensions) {
  Builder out;
  const Offset<flatbuffers::Vector<std::uint64_t>> shape(MisalignedVector(out, 8));
  const auto name = out.CreateString("w");
  const auto spec = wire::CreateTableSpec(out, name, 0, 0, shape);
  EXPECT_EQ(SaysTo(out, wire::CreateCreateTable(out, 1, spec)),
            "malformed CreateTable: dimensions are not aligned to 8 bytes");
}

// A short header whose texts are all one text must not unfold into many times its length.
TEST(StructureTest, SharedTexts) {
  Builder out;
  const std::vector texts(kServerThreadsMax, out.CreateString(std::string(500, 'x')));
  const auto endpoints = out.CreateVector(texts);
  const auto server = std::uint8_t(Role::kServer);
  EXPECT_EQ(SaysTo(out, wire::CreateJoin(out, server, 0, 0, endpoints)),
            "malformed Join: endpoint is one text too many: all texts together exceed the "
            "header's length");
}

Offset<wire::ClusterMap> MapOfSharedEndpoints(Builder& out, std::size_t servers,
                                              std::size_t endpoints) {
  const std::vector texts(endpoints, out.CreateString("a"));
  const auto endpoints_at = out.CreateVector(texts);
  std::vector<Offset<wire::ServerEntry>> entries;
  for (std::uint32_t rank = 0; rank < servers; ++rank) {
    entries.push_back(wire::CreateServerEntry(out, rank, rank, true, endpoints_at));
  }
  return wire::CreateClusterMap(out, 1, 0, 0, out.CreateVector(entries));
}

TEST(StructureTest, SharedEndpoints) {
  Builder out;
  EXPECT_THAT(SaysTo(out, MapOfSharedEndpoints(out, kServersMax, kServerThreadsMax)),
              StartsWith("malformed ClusterMap: endpoint is one text too many"));
}

// Without the bound on endpoints before the verification this takes minutes.
TEST(StructureTest, VerificationTakesNoLongerThanTheHeaderIsLong) {
  Builder out;
  const absl::Time start = absl::Now();
  EXPECT_EQ(SaysTo(out, MapOfSharedEndpoints(out, kWorkersMax, 3 << 20)), kBroken);
  EXPECT_LT(absl::Now() - start, absl::Seconds(20));
}

TEST(StructureTest, SharedArguments) {
  Builder out;
  const auto command = out.CreateString("drain");
  const std::vector texts(kArgumentsMax, out.CreateString(std::string(kArgumentBytesMax, 'x')));
  EXPECT_THAT(SaysTo(out, wire::CreateAdmin(out, 1, command, out.CreateVector(texts))),
              StartsWith("malformed Admin: argument is one text too many"));
}

TEST(StructureTest, SharedFiles) {
  Builder out;
  const auto name = out.CreateString(std::string(kNameBytesMax, 'x'));
  const std::vector files(kCheckpointFilesMax, wire::CreateCheckpointFile(out, name));
  EXPECT_THAT(SaysTo(out, wire::CreateCheckpointWritten(out, 1, 0, 0, out.CreateVector(files))),
              StartsWith("malformed CheckpointWritten: file's name is one text too many"));
}

TEST(StructureTest, TooManyTables) {
  Builder out;
  const std::vector entries(200'000, wire::CreateWorkerEntry(out, 1));
  const auto workers = out.CreateVector(entries);
  EXPECT_EQ(SaysTo(out, wire::CreateClusterMap(out, 1, 0, 0, 0, workers)), kBroken);
}

}  // namespace
}  // namespace leeway::proto
