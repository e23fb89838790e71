// Faults of structure, which Encode cannot produce: headers put together by hand.
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "flatbuffers/flatbuffers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/encoding/encoding.h"
#include "proto/messages/limits.h"
#include "proto/testing/samples.h"

namespace leeway::proto {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using RawBuilder = flatbuffers::FlatBufferBuilder;
using RawTable = flatbuffers::Offset<flatbuffers::Table>;

std::string Says(const runtime::Buffer& header) {
  return std::string(Decode(header, {}).status().message());
}

// A field of a table: a number, or where something lies that has been written.
template <class T>
struct Field {
  int number;
  T value;
};
template <class T>
Field(int, T) -> Field<T>;  // clang 14 does not deduce it from an aggregate

template <class T>
void Add(RawBuilder& out, const Field<T>& field) {
  const auto at =
      flatbuffers::FieldIndexToOffset(static_cast<flatbuffers::voffset_t>(field.number));
  if constexpr (std::is_arithmetic_v<T>) {
    out.AddElement(at, field.value);
  } else {
    out.AddOffset(at, field.value);
  }
}

template <class... T>
RawTable Table(RawBuilder& out, const Field<T>&... fields) {
  const auto start = out.StartTable();
  (Add(out, fields), ...);
  return RawTable(out.EndTable(start));
}

// The error of Decode for a header with these fields: type, body.
template <class... T>
std::string SaysTo(RawBuilder& out, const Field<T>&... fields) {
  out.Finish(Table(out, fields...), kHeaderIdentifier);
  return Says(runtime::Buffer::CopyOf(out.GetBufferPointer(), out.GetSize()));
}
template <class Message>
std::string SaysTo(RawBuilder& out, RawTable body) {
  return SaysTo(out, Field{0, std::uint8_t(AnyMessage(Message()).index())}, Field{1, body});
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
  RawBuilder out;
  out.Finish(Table(out), "LWY2");
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

TEST(StructureTest, TypeAndBody) {
  const std::uint8_t types = kMessageTypes;
  for (const std::uint8_t type : {std::uint8_t{0}, types, std::uint8_t{255}}) {
    RawBuilder out;
    const RawTable body = Table(out);
    EXPECT_EQ(
        SaysTo(out, Field{0, type}, Field{1, body}),
        absl::StrCat("malformed header: body's type is ", int{type}, ", may be 1 to ", types - 1));
  }
  RawBuilder out;
  EXPECT_EQ(SaysTo(out, Field{0, std::uint8_t{1}}), "malformed header: it has no body");
}

TEST(StructureTest, WithoutId) {
  RawBuilder request, reply;
  EXPECT_EQ(SaysTo<Request>(request, Table(request)), "malformed Request: id is missing");
  EXPECT_EQ(SaysTo<Reply>(reply, Table(reply)), "malformed Reply: id is missing");
}

TEST(StructureTest, WithoutSpec) {
  RawBuilder create, install, reply, failed;
  const Field table{0, std::uint32_t{1}};
  EXPECT_EQ(SaysTo<CreateTable>(create, Table(create)), "malformed CreateTable: spec is missing");
  EXPECT_EQ(SaysTo<InstallTable>(install, Table(install, table)),
            "malformed InstallTable: spec is missing");
  EXPECT_EQ(SaysTo<TableReply>(reply, Table(reply, Field{3, std::uint32_t{1}})),
            "malformed TableReply: spec is missing");
  const RawTable spec = Table(failed);
  EXPECT_EQ(SaysTo<TableReply>(failed, Table(failed, Field{1, 5}, Field{4, spec})),
            "malformed TableReply: spec is there, may be missing");
}

TEST(StructureTest, SpecWithoutNames) {
  RawBuilder out;
  const RawTable spec = Table(out);
  EXPECT_EQ(SaysTo<CreateTable>(out, Table(out, Field{1, spec})),
            "malformed CreateTable: spec.name is 0 bytes long, may be 1 to 255");
}

TEST(StructureTest, PlaceOfNothing) {
  for (const std::uint32_t place : {0u, 0x80000000u, ~0u}) {
    RawBuilder out;
    EXPECT_EQ(SaysTo<OpenTable>(out, Table(out, Field{1, place})), kBroken) << place;
  }
}

TEST(StructureTest, StatusCodes) {
  for (const int code : {-1, 17, 1 << 30}) {
    RawBuilder out;
    EXPECT_EQ(SaysTo<Shutdown>(out, Table(out, Field{0, code})),
              absl::StrCat("malformed Shutdown: code is ", code, ", may be 0 to 16"));
  }
}

// Points each field of a message's table to each place in the header and beyond: none is read where
// it is not aligned or not within the header.
TEST(StructureTest, FieldsElsewhere) {
  for (const Sample& sample : AllSamples()) {
    if (!std::holds_alternative<Request>(sample.message)) continue;
    std::string header(Encode(sample.message).text());
    const auto read = [&](std::size_t at) {
      return flatbuffers::ReadScalar<std::uint32_t>(&header[at]);
    };
    const std::size_t root = read(0);
    const std::size_t root_fields = root - static_cast<std::int32_t>(read(root));
    const std::size_t body_at = root + static_cast<std::uint16_t>(read(root_fields + 6));
    const std::size_t body = body_at + read(body_at);
    const std::size_t fields = body - static_cast<std::int32_t>(read(body));
    const std::size_t fields_end = static_cast<std::uint16_t>(read(fields)) + fields;
    for (std::size_t field = fields + 4; field < fields_end; field += 2) {
      const std::string before = header;
      for (std::size_t place = 4; place < header.size() + 16; ++place) {
        flatbuffers::WriteScalar(&header[field], static_cast<std::uint16_t>(place));
        std::vector<runtime::Buffer> payload = sample.payload;
        const bool within = body + place < header.size();
        EXPECT_TRUE(!Decode(runtime::Buffer::CopyOf(header), payload).ok() || within) << place;
      }
      header = before;
    }
  }
}

TEST(StructureTest, ParameterTwice) {
  RawBuilder out;
  const auto name = out.CreateString("rate");
  const std::vector parameters = {Table(out, Field{0, name}, Field{1, 1.0}),
                                  Table(out, Field{0, name}, Field{1, 2.0})};
  const auto at = out.CreateVector(parameters);
  const RawTable spec = Table(out, Field{0, name}, Field{5, name}, Field{6, at});
  EXPECT_EQ(SaysTo<CreateTable>(out, Table(out, Field{1, spec})),
            "malformed CreateTable: spec.parameters have \"rate\" twice");
}

// A vector of one element, whose length is aligned but whose element is not. The builder writes
// from the end to the front, so the address of an element is its distance from the end.
RawTable MisalignedVector(RawBuilder& out, std::size_t element_bytes) {
  out.PushElement<std::uint32_t>(0);
  for (std::size_t i = 0; i < element_bytes / 4; ++i) out.PushElement<std::uint32_t>(0);
  return RawTable(out.PushElement<std::uint32_t>(1));
}

TEST(StructureTest, MisalignedWatermarks) {
  RawBuilder out;
  const RawTable watermarks = MisalignedVector(out, 16);
  EXPECT_EQ(SaysTo<ClockTick>(out, Table(out, Field{3, std::uint64_t{1}}, Field{4, watermarks})),
            "malformed ClockTick: watermarks are not aligned to 8 bytes");
}

TEST(StructureTest, MisalignedBatches) {
  RawBuilder out;
  const RawTable pushes = MisalignedVector(out, 40);
  EXPECT_EQ(SaysTo<PushBatch>(out, Table(out, Field{0, std::uint64_t{1}}, Field{9, pushes})),
            "malformed PushBatch: pushes are not aligned to 8 bytes");
}

TEST(StructureTest, MisalignedLoads) {
  RawBuilder out;
  out.PushElement<std::uint64_t>(0);  // so that the header ends at a multiple of 8
  const RawTable shards = MisalignedVector(out, 24);
  EXPECT_EQ(SaysTo<LoadReport>(out, Table(out, Field{0, shards})),
            "malformed LoadReport: shards are not aligned to 8 bytes");
}

TEST(StructureTest, MisalignedDimensions) {
  RawBuilder out;
  out.PushElement<std::uint64_t>(0);
  const RawTable shape = MisalignedVector(out, 8);
  const auto name = out.CreateString("w");
  const RawTable spec = Table(out, Field{0, name}, Field{3, shape});
  EXPECT_EQ(SaysTo<CreateTable>(out, Table(out, Field{1, spec})),
            "malformed CreateTable: spec.shape are not aligned to 8 bytes");
}

// A short header whose texts are all one text must not unfold into many times its length.
TEST(StructureTest, SharedTexts) {
  RawBuilder out;
  const std::vector texts(kServerThreadsMax, out.CreateString(std::string(500, 'x')));
  const auto endpoints = out.CreateVector(texts);
  const Field role{0, std::uint8_t(Role::kServer)};
  EXPECT_THAT(SaysTo<Join>(out, Table(out, role, Field{3, endpoints})),
              HasSubstr("] is one text too many: all texts together exceed the header's length"));
}

RawTable MapOfSharedEndpoints(RawBuilder& out, std::size_t servers, std::size_t endpoints) {
  const std::vector texts(endpoints, out.CreateString("a"));
  const auto endpoints_at = out.CreateVector(texts);
  std::vector<RawTable> entries;
  for (std::uint32_t rank = 0; rank < servers; ++rank) {
    entries.push_back(Table(out, Field{1, rank}, Field{3, endpoints_at}));
  }
  const auto entries_at = out.CreateVector(entries);
  return Table(out, Field{3, entries_at});
}

TEST(StructureTest, SharedEndpoints) {
  RawBuilder out;
  EXPECT_THAT(SaysTo<ClusterMap>(out, MapOfSharedEndpoints(out, kServersMax, kServerThreadsMax)),
              HasSubstr("is one text too many"));
}

// Lists are bounded before their entries are looked at.
TEST(StructureTest, DecodingTakesNoLongerThanTheHeaderIsLong) {
  RawBuilder servers, endpoints;
  const absl::Time start = absl::Now();
  EXPECT_EQ(SaysTo<ClusterMap>(servers, MapOfSharedEndpoints(servers, kWorkersMax, 3 << 20)),
            "malformed ClusterMap: number of servers is 65536, may be 0 to 4096");
  EXPECT_EQ(SaysTo<ClusterMap>(endpoints, MapOfSharedEndpoints(endpoints, kServersMax, 3 << 20)),
            "malformed ClusterMap: number of servers[0].endpoints is 3145728, may be 1 to 256");
  EXPECT_LT(absl::Now() - start, absl::Seconds(20));
}

TEST(StructureTest, SharedArguments) {
  RawBuilder out;
  const auto command = out.CreateString("drain");
  const std::vector texts(kArgumentsMax, out.CreateString(std::string(kArgumentBytesMax, 'x')));
  const auto arguments = out.CreateVector(texts);
  EXPECT_THAT(SaysTo<Admin>(out, Table(out, Field{1, command}, Field{2, arguments})),
              HasSubstr("] is one text too many"));
}

TEST(StructureTest, SharedFiles) {
  RawBuilder out;
  const auto name = out.CreateString(std::string(kNameBytesMax, 'x'));
  const std::vector files(kCheckpointFilesMax, Table(out, Field{0, name}));
  const auto files_at = out.CreateVector(files);
  EXPECT_THAT(SaysTo<CheckpointWritten>(out, Table(out, Field{3, files_at})),
              HasSubstr("].name is one text too many"));
}

TEST(StructureTest, TooManyTables) {
  RawBuilder many, within;
  const std::vector workers(200'000, Table(many, Field{0, std::uint32_t{1}}));
  const auto workers_at = many.CreateVector(workers);
  EXPECT_EQ(SaysTo<ClusterMap>(many, Table(many, Field{4, workers_at})),
            "malformed ClusterMap: number of workers is 200000, may be 0 to 65536");
  // Fewer settings than there may be, but more than the largest honest header has tables.
  const std::vector settings(70'000, Table(within, Field{0, std::uint32_t{1}}));
  const auto settings_at = within.CreateVector(settings);
  EXPECT_EQ(SaysTo<ClusterMap>(within, Table(within, Field{7, settings_at})), kBroken);
}

// Each list is small, but together they share one table more often than there may be tables.
TEST(StructureTest, TooManyTablesInSeveralLists) {
  RawBuilder out;
  const auto bsp = out.CreateString("bsp");
  const RawTable setting =
      Table(out, Field{0, std::uint32_t{1}}, Field{1, std::uint32_t{1}}, Field{5, bsp});
  std::vector<RawTable> workers;
  for (std::uint32_t rank = 0; rank < kWorkersMax; ++rank) {
    workers.push_back(Table(out, Field{1, rank}));
  }
  const auto workers_at = out.CreateVector(workers);
  const auto settings_at = out.CreateVector(std::vector(10'000, setting));
  EXPECT_EQ(SaysTo<ClusterMap>(out, Table(out, Field{4, workers_at}, Field{7, settings_at})),
            kBroken);
}

}  // namespace
}  // namespace leeway::proto
