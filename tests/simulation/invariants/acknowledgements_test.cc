#include "tests/simulation/invariants/acknowledgements.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "proto/encoding/encoding.h"

namespace leeway::simulation::acknowledgements_test {
namespace {

using ::testing::HasSubstr;

constexpr std::uint32_t kHeld = 1, kAtOnce = 2;  // tables

class AcknowledgementsTest : public testing::Test {
 protected:
  AcknowledgementsTest() {
    for (const std::uint32_t table : {kHeld, kAtOnce}) {
      proto::InstallTable install{.table = table, .spec = TableSpec::Sparse("w", 1)};
      install.spec.consistency = table == kHeld ? Consistency::Bsp() : Consistency::Asp();
      EXPECT_EQ(Hear(install), "");
    }
    proto::PushBatch batch{.incarnation = 7, .worker = 1, .epoch = 1, .clock = 4};
    batch.pushes = {Pushed(1, kAtOnce), Pushed(2, kHeld)};
    EXPECT_EQ(Hear(batch), "");
  }
  static proto::BatchedPush Pushed(std::uint64_t sequence, std::uint32_t table) {
    proto::BatchedPush push;
    push.sequence = sequence;
    push.shard = 3;
    push.table = table;
    return push;
  }
  std::string Hear(const proto::AnyMessage& message) {
    van::Message raw;
    van::Overheard heard("from", "to", {}, std::move(raw));
    heard.message = message;
    return acknowledgements_.Hear(heard);
  }
  std::string HearAcks(bool first, bool second) {
    return Hear(proto::PushAcks{.incarnation = 7,
                                .worker = 1,
                                .acks = {{.sequence = 1, .shard = 3, .provisional = first},
                                         {.sequence = 2, .shard = 3, .provisional = second}}});
  }

  Acknowledgements acknowledgements_{2};
};

TEST_F(AcknowledgementsTest, EachPushOfABatchHasItsOwn) {
  EXPECT_EQ(HearAcks(false, true), "");
  EXPECT_THAT(HearAcks(true, true), HasSubstr("push 1 of worker 1 to shard 3, of clock 4, is "
                                              "provisional"));
  EXPECT_THAT(HearAcks(false, false), HasSubstr("push 2 of worker 1 to shard 3, of clock 4, is "
                                                "settled"));
}

TEST_F(AcknowledgementsTest, AHeldOneIsSettledOnceItsWorkerHasEndedTheClock) {
  EXPECT_EQ(Hear(proto::ClockTick{.worker = 1, .incarnation = 7, .epoch = 1, .clock = 4}), "");
  EXPECT_THAT(HearAcks(false, false), HasSubstr("settled"));
  EXPECT_EQ(Hear(proto::ClockTick{.worker = 1, .incarnation = 7, .epoch = 1, .clock = 5}), "");
  EXPECT_EQ(HearAcks(false, false), "");
}

TEST_F(AcknowledgementsTest, ARefusalIsNone) {
  proto::Reply reply;
  reply.id = {.incarnation = 7, .sequence = 2, .worker = 1, .shard = 3};
  EXPECT_THAT(Hear(reply), HasSubstr("settled"));
  reply.result = absl::InvalidArgumentError("not finite");
  EXPECT_EQ(Hear(reply), "");
}

}  // namespace
}  // namespace leeway::simulation::acknowledgements_test
