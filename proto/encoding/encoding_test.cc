// Decode returns every field of every type that Encode wrote, whatever the frames' alignment.
#include "proto/encoding/encoding.h"

#include <array>
#include <limits>
#include <set>
#include <utility>

#include "flatbuffers/flatbuffers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/messages/limits.h"
#include "proto/testing/samples.h"

namespace leeway::proto {
namespace {

using ::testing::HasSubstr;

// Which fields of the body's table are there, as bits.
std::uint64_t FieldsIn(const runtime::Buffer& header) {
  const auto* const root = flatbuffers::GetRoot<flatbuffers::Table>(header.data());
  const auto* const body = root->GetPointer<const flatbuffers::Table*>(6);
  std::uint64_t there = 0;
  for (int field = 0; field < 64; ++field) {
    const auto at = flatbuffers::FieldIndexToOffset(static_cast<flatbuffers::voffset_t>(field));
    there |= std::uint64_t{body->CheckField(at)} << field;
  }
  return there;
}

// Counts members, and fields on the wire.
struct FieldCounter {
  std::uint64_t members = 0, fields = 0, next = 0;
  bool At(int field) { return next = std::uint64_t(field), true; }
  bool InOrder() { return true; }
  bool operator()(const absl::Status&, const Result& = {}) { return Count(2); }
  bool operator()(const char*, const auto&, const auto&...) { return Count(1); }
  bool Count(std::uint64_t count) {
    ++members;
    fields |= ((std::uint64_t{1} << count) - 1) << next;
    next += count;
    return true;
  }
};

// Anything that a member may be initialised with, to count how many members an aggregate has.
struct Anything {
  template <class T>
  operator T() const;
};
template <class M, class... Before>
constexpr std::size_t MembersOf() {
  if constexpr (requires { M{Before()..., Anything()}; }) {
    return MembersOf<M, Before..., Anything>();
  }
  return sizeof...(Before);
}

TEST(SamplesTest, SetEveryFieldOfEveryType) {
  std::array<std::uint64_t, kMessageTypes> there{}, described{};
  std::set<std::size_t> types;
  for (const Sample& sample : AllSamples()) {
    const std::size_t type = sample.message.index();
    types.insert(type);
    there[type] |= FieldsIn(Encode(sample.message));
    std::visit(
        [&]<class Message>(const Message& m) {
          if constexpr (!std::is_same_v<Message, std::monostate>) {
            FieldCounter counter;
            FieldsOf(counter, m);
            described[type] = counter.fields;
            EXPECT_LE(counter.next, 64u) << "TableWriter has room for so many";
            // A reply's priority stays here.
            const bool stays = std::is_same_v<Message, Reply>;
            EXPECT_EQ(counter.members + stays, MembersOf<Message>()) << NameOf(sample.message);
          }
        },
        sample.message);
  }
  EXPECT_EQ(types.size(), kMessageTypes - 1);
  EXPECT_EQ(there, described);
}

template <class... M>
void ExpectEveryMemberDescribed() {
  const auto expect = []<class T>(T m) {
    FieldCounter counter;
    if constexpr (Fixed<T>) {
      T::FixedFields(counter, m);
    } else {
      FieldsOf(counter, m);
    }
    EXPECT_EQ(counter.members, MembersOf<T>()) << TypeName<T>();
  };
  (expect(M()), ...);
}

TEST(SamplesTest, EveryMemberOfWhatMessagesHoldIsDescribed) {
  ExpectEveryMemberDescribed<CodecVersion, ShardOwner, ServerEntry, WorkerEntry, CodecSwitch,
                             TableSettings, RequestId, ReplyPart, ShardWatermark, BatchedPush,
                             PushAck, ClientSession, Refusal, ShardLoad, CheckpointFile>();
  FieldCounter replica, spec;
  ShardReplica::FixedFields(replica, static_cast<const ShardReplica&>(ShardReplica()));
  EXPECT_EQ(replica.members, MembersOf<ShardReplica>() + 1) << "a place is two";
  const TableSpec table;
  FieldsOf(spec, table);
  EXPECT_EQ(spec.members, MembersOf<TableSpec>() + 1 + 3)
      << "an updater is two, an initializer four";
}

// True if nothing that is described differs.
bool Same(const AnyMessage& a, const AnyMessage& b) {
  return EncodeAsIs(a).text() == EncodeAsIs(b).text();
}

TEST(CodecTest, EveryMessageArrivesWhole) {
  for (const Sample& sample : AllSamples()) {
    SCOPED_TRACE(std::string(NameOf(sample.message)));
    const auto arrived = Arrive(sample);
    ASSERT_TRUE(arrived.ok()) << arrived.status();
    EXPECT_TRUE(Same(*arrived, sample.message));
  }
}

// Bytes at an address that is `offset` beyond a multiple of 64.
runtime::Buffer Shifted(const runtime::Buffer& buffer, std::size_t offset,
                        std::vector<runtime::Buffer>* keep) {
  std::byte* bytes = nullptr;
  keep->push_back(runtime::Buffer::Allocate(buffer.size() + offset + 1, &bytes));
  if (!buffer.empty()) std::memcpy(bytes + offset, buffer.data(), buffer.size());
  return runtime::Buffer::Unowned(bytes + offset, buffer.size());
}

TEST(CodecTest, FramesMayLieAnywhere) {
  for (const Sample& sample : AllSamples()) {
    SCOPED_TRACE(std::string(NameOf(sample.message)));
    const runtime::Buffer header = Encode(sample.message);
    for (std::size_t offset = 0; offset < 8; ++offset) {
      std::vector<runtime::Buffer> keep, payload;
      for (const auto& frame : sample.payload) payload.push_back(Shifted(frame, offset, &keep));
      const auto arrived = Decode(Shifted(header, offset, &keep), payload);
      ASSERT_TRUE(arrived.ok()) << arrived.status();
      EXPECT_TRUE(Same(*arrived, sample.message));
      for (std::size_t i = 0; i < payload.size(); ++i) {
        EXPECT_EQ(payload[i].text(), sample.payload[i].text());
      }
    }
  }
}

TEST(CodecTest, MisalignedPayloadIsReplacedByAnAlignedCopy) {
  Request request{.id = {.sequence = 1}, .table = 1, .kind = TableKind::kRagged};
  request.dtype = DType::kFloat64;
  request.keys = 1;
  request.elements = 1;
  std::vector<runtime::Buffer> keep;
  std::vector<runtime::Buffer> payload = {Shifted(FrameOf<std::uint64_t>({7}), 4, &keep),
                                          Shifted(FrameOf<std::uint32_t>({1}), 2, &keep),
                                          Shifted(FrameOf<double>({2.5}), 1, &keep)};
  ASSERT_TRUE(Decode(Encode(request), payload).ok());
  EXPECT_TRUE(payload[0].aligned_to(8));
  EXPECT_TRUE(payload[1].aligned_to(4));
  EXPECT_TRUE(payload[2].aligned_to(8));
  EXPECT_EQ(payload[0].as<std::uint64_t>()[0], 7u);
  EXPECT_EQ(payload[1].as<std::uint32_t>()[0], 1u);
  EXPECT_EQ(payload[2].as<double>()[0], 2.5);
}

// Memory that its sender can still change.
class SharedBytes final : public runtime::BufferOwner {
 public:
  bool may_change() const override { return true; }
};

TEST(CodecTest, FieldsReliedUponAreCopiedWhereTheirSenderCouldChangeThem) {
  Request request{.id = {.sequence = 1}, .table = 1, .kind = TableKind::kRagged};
  request.keys = 2;
  request.elements = 3;
  alignas(8) std::uint64_t keys[] = {7, 8};
  alignas(8) std::uint32_t widths[] = {1, 2};
  alignas(8) float values[] = {1, 2, 3};
  const auto shared = [](const auto& array) {
    return runtime::Buffer(array, sizeof(array), new SharedBytes);
  };
  std::vector<runtime::Buffer> payload = {shared(keys), shared(widths), shared(values)};
  ASSERT_TRUE(Decode(Encode(request), payload).ok());
  keys[0] = widths[0] = 1000;
  EXPECT_EQ(payload[0].as<std::uint64_t>()[0], 7u);
  EXPECT_EQ(payload[1].as<std::uint32_t>()[0], 1u);
  EXPECT_EQ(payload[2].data(), reinterpret_cast<const std::byte*>(values)) << "only values";
}

TEST(CodecTest, BytesToBeParsedAreCopiedWhereTheirSenderCouldChangeThem) {
  char json[] = "{}";
  for (const AnyMessage& message :
       {AnyMessage(Call{.request = 1, .handler = "h"}), AnyMessage(StatusReply{.request = 1})}) {
    std::vector<runtime::Buffer> payload = {runtime::Buffer(json, 2, new SharedBytes)};
    json[0] = '{';
    ASSERT_TRUE(Decode(Encode(message), payload).ok());
    json[0] = '[';
    EXPECT_EQ(payload[0].text(), "{}");
  }
}

TEST(CodecTest, AlignedPayloadIsNotCopied) {
  const runtime::Buffer values = FrameOf<float>({1, 2, 3});
  Request request{.id = {.sequence = 1}, .table = 1};
  request.elements = 3;
  std::vector<runtime::Buffer> payload = {values};
  ASSERT_TRUE(Decode(Encode(request), payload).ok());
  EXPECT_EQ(payload[0].data(), values.data());
}

TEST(CodecTest, ALargeHeaderMayLieAnywhereToo) {
  ClusterMap map{.version = 1, .epoch = 1, .servers = {{.node = 2, .endpoints = {"tcp://a:1"}}}};
  map.owners.resize(100'000);
  std::vector<runtime::Buffer> keep, none;
  const auto arrived = Decode(Shifted(Encode(map), 3, &keep), none);
  ASSERT_TRUE(arrived.ok()) << arrived.status();
  EXPECT_EQ(std::get<ClusterMap>(*arrived), map);
}

TEST(CodecTest, TheLargestClusterFits) {
  ClusterMap map{.version = 1, .epoch = 1};
  for (std::uint32_t rank = 0; rank < kServersMax; ++rank) {
    map.servers.push_back({rank, rank, true, {"tcp://server-" + std::to_string(rank) + ":4711"}});
    for (int i = 0; i < 32; ++i) map.owners.push_back({rank, 0});
  }
  for (std::uint32_t rank = 0; rank < kWorkersMax; ++rank) {
    map.workers.push_back({rank, rank, rank, WorkerState::kAlive});
  }
  for (std::uint32_t shard = 0; shard < map.owners.size(); ++shard) {
    for (std::uint32_t next = 1; next < 3; ++next) {
      map.replicas.push_back({shard, {(shard / 32 + next) % kServersMax, 0}, false});
    }
  }
  const auto arrived = Arrive({map});
  ASSERT_TRUE(arrived.ok()) << arrived.status();
  EXPECT_EQ(std::get<ClusterMap>(*arrived), map);
}

TEST(CodecTest, LongReasonsAreCutAtACharacter) {
  std::string reason(kReasonBytesMax - 1, 'x');
  const Leave leave{.reason = reason + "\xc3\xa4 and more"};
  const auto arrived = Arrive({leave});
  ASSERT_TRUE(arrived.ok()) << arrived.status();
  EXPECT_EQ(std::get<Leave>(*arrived).reason, reason);
}

TEST(CodecTest, ReasonsAreCleaned) {
  const auto arrived = Arrive({Reject{absl::InternalError("a\x1b[31mb\xff\nc\td")}});
  ASSERT_TRUE(arrived.ok()) << arrived.status();
  EXPECT_EQ(std::get<Reject>(*arrived).why, absl::InternalError("a?[31mb?\nc\td"));
}

TEST(CodecTest, LongNamesAreCut) {
  const auto arrived = Arrive({OpenTable{.request = 1, .name = std::string(300, 'n')}});
  ASSERT_TRUE(arrived.ok()) << arrived.status();
  EXPECT_EQ(std::get<OpenTable>(*arrived).name, std::string(kNameBytesMax, 'n'));
}

TEST(CodecTest, ARateThatIsNotGivenIsNotSent) {
  Request request{.id = {.sequence = 1}, .table = 1, .op = Op::kPull, .elements = 1};
  request.learning_rate = std::numeric_limits<double>::quiet_NaN();
  const auto arrived = Arrive({request});
  ASSERT_TRUE(arrived.ok()) << arrived.status();
  EXPECT_EQ(std::get<Request>(*arrived).learning_rate, 0);
}

// Half a path would be another path.
TEST(CodecTest, PathsAreNotCut) {
  const std::string path(kPathBytesMax + 1, 'd');
  const RestoreShards restore{.directory = path};
  EXPECT_THAT(Arrive({restore}).status().message(), HasSubstr("directory is 4096 bytes long"));
}

// A replicated push has the types of the table, an aggregate those that it is computed in.
TEST(CodecTest, MisalignedStateAndStepsAreReplacedByAlignedCopies) {
  Replicate piece{.epoch = 1, .entry = 1, .kind = LogEntryKind::kTransferPiece, .table = 1};
  piece.dtype = DType::kFloat16;
  piece.elements = 2;
  piece.state_slots = 1;
  std::vector<runtime::Buffer> keep;
  std::vector<runtime::Buffer> payload = {Shifted(FrameOf<std::uint16_t>({1, 2}), 1, &keep),
                                          Shifted(FrameOf<float>({3, 4}), 2, &keep),
                                          Shifted(FrameOf<std::uint64_t>({5}), 4, &keep)};
  ASSERT_TRUE(Decode(Encode(piece), payload).ok());
  EXPECT_TRUE(payload[0].aligned_to(2));
  EXPECT_TRUE(payload[1].aligned_to(4));
  EXPECT_TRUE(payload[2].aligned_to(8));
  EXPECT_EQ(payload[1].as<float>()[1], 4.f);
  EXPECT_EQ(payload[2].as<std::uint64_t>()[0], 5u);
}

TEST(CodecTest, AnotherVersionsRoleDoesNotHideTheVersion) {
  Hello hello{.protocol = kProtocolVersion + 2,
              .protocol_min = kProtocolVersion + 1,
              .role = static_cast<Role>(17)};
  const auto arrived = Arrive({hello});
  ASSERT_TRUE(arrived.ok()) << arrived.status();
  EXPECT_EQ(std::get<Hello>(*arrived).role, Role::kUnknown);
  EXPECT_EQ(std::get<Hello>(*arrived).protocol_min, kProtocolVersion + 1);
}

TEST(CodecTest, NothingEncodesToWhatIsRefused) {
  EXPECT_THAT(Arrive({AnyMessage()}).status().message(), HasSubstr("it has no body"));
  EXPECT_EQ(NameOf(AnyMessage()), "nothing");
}

TEST(CodecTest, NamesAreThoseOfTheTypes) {
  EXPECT_EQ(NameOf(Hello{}), "Hello");
  EXPECT_EQ(NameOf(InstallTableReply{}), "InstallTableReply");
  EXPECT_EQ(NameOf(StatusReply{}), "StatusReply");
  EXPECT_EQ(NameOf(EnterClock{}), "EnterClock");
  EXPECT_EQ(NameOf(Replicate{}), "Replicate");
  EXPECT_EQ(NameOf(CheckpointCut{}), "CheckpointCut");
  EXPECT_EQ(NameOf(SchedulerMoved{}), "SchedulerMoved");
  EXPECT_EQ(NameOf(PushAcks{}), "PushAcks");
}

}  // namespace
}  // namespace leeway::proto
