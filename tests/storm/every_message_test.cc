// Attackers say whole messages of every type, with what the cluster's tables hold.
#include "tests/storm/every_message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "proto/encoding/encoding.h"

namespace leeway::storm::every_message_test {
namespace {

constexpr std::uint64_t kIncarnation = 77;

KnownCluster Known() {
  KnownCluster cluster;
  cluster.id = 5;
  cluster.block_bytes = 1024;
  cluster.map = {.version = 8, .epoch = 3};
  cluster.map.owners.resize(6);
  cluster.tables.resize(2);
  cluster.tables[0].table = 11;
  cluster.tables[0].spec = TableSpec::Dense("w", {1000});
  cluster.tables[1].table = 12;
  cluster.tables[1].spec = TableSpec::Sparse("rows", 4);
  return cluster;
}

TEST(EveryMessageTest, AllTypesAreSaidAndCanBeDecoded) {
  const KnownCluster cluster = Known();
  const EveryMessage every(&cluster, {.role = Role::kReader}, Role::kServer);
  std::set<absl::string_view> types;
  for (const EveryMessage::Said& said : every.All(kIncarnation)) {
    types.insert(proto::NameOf(said.message));
    std::vector<runtime::Buffer> payload;
    for (const std::string& frame : said.payload) {
      payload.push_back(runtime::Buffer::CopyOf(frame));
    }
    const auto arrived = proto::Decode(proto::Encode(said.message), payload);
    EXPECT_TRUE(arrived.ok()) << arrived.status();
  }
  EXPECT_EQ(types.size(), proto::kMessageTypes - 1);
  EXPECT_EQ(every.types(), types.size());
}

TEST(EveryMessageTest, RequestsNameTablesOfTheCluster) {
  const KnownCluster cluster = Known();
  const EveryMessage every(&cluster, {.role = Role::kReader}, Role::kServer);
  std::set<std::uint32_t> pulled;
  for (const EveryMessage::Said& said : every.All(kIncarnation)) {
    if (const auto* const join = std::get_if<proto::Join>(&said.message)) {
      EXPECT_FALSE(join->elastic);
    }
    if (const auto* const open = std::get_if<proto::OpenTable>(&said.message)) {
      EXPECT_EQ(open->name, "w");
    }
    const auto* const request = std::get_if<proto::Request>(&said.message);
    if (request == nullptr) continue;
    EXPECT_EQ(request->id.incarnation, kIncarnation);
    EXPECT_EQ(request->epoch, 3u);
    if (request->op == proto::Op::kPull) pulled.insert(request->table);
  }
  EXPECT_THAT(pulled, testing::ElementsAre(11, 12));
}

}  // namespace
}  // namespace leeway::storm::every_message_test
