// The bytes of the samples on the wire, as digests. They change only with the protocol.
// protocol's version.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "proto/encoding/encoding.h"
#include "proto/testing/samples.h"
#include "runtime/base/random.h"

namespace leeway::proto {
namespace {

// The hash of the headers of the samples of each type, in their order; the types in the order of
// AnyMessage.
std::vector<std::string> Digests() {
  std::vector<std::string> headers(std::variant_size_v<AnyMessage>), digests;
  std::vector<std::string> names(headers.size());
  for (const Sample& sample : AllSamples()) {
    const std::size_t type = sample.message.index();
    absl::StrAppend(&headers[type], Encode(sample.message).text());
    names[type] = std::string(NameOf(sample.message));
  }
  for (std::size_t type = 1; type < headers.size(); ++type) {
    digests.push_back(
        absl::StrCat(names[type], " ", absl::Hex(runtime::StableHash(headers[type]))));
  }
  return digests;
}

TEST(BytesTest, AreThoseOfAllReleasesOfThisProtocol) {
  const std::vector<std::string> expected = {"Hello f217cd04f461b7be",
                                             "Reject 8fd106e1704a3b99",
                                             "Goodbye affa46b465a86545",
                                             "Join a294e5969e0f3fb6",
                                             "Welcome 96ea449ef8005198",
                                             "Refused a19354fed8ba3df9",
                                             "ClusterMap 99caa94d4953ed1d",
                                             "MapAck f333001770398e65",
                                             "Heartbeat 49ce4c1e69d12622",
                                             "HeartbeatAck 47d56968ceaa89d7",
                                             "NodeDown 830d254b7f466761",
                                             "Leave ff2b2751e59c20b3",
                                             "LeaveAck 1725076216c1ca12",
                                             "Shutdown 85316c6fedf64c65",
                                             "BarrierEnter d6aeb5b1e7211274",
                                             "BarrierRelease a7332c59aff604c8",
                                             "CreateTable cabbba35c11fc575",
                                             "OpenTable f4d973a258d2d0c",
                                             "TableReply c0683615531cdbde",
                                             "InstallTable ec7d22f25bd4cc8c",
                                             "InstallTableReply d160af43243fa24b",
                                             "Request ea3d56aa47e5c128",
                                             "Reply f0386aa9673d33e0",
                                             "ClockTick 27149e8173338165",
                                             "ClockAck 7a1e2d0e4e30e540",
                                             "Call 99c33e9258c1d739",
                                             "CallReply 3ed620760d7f6bc9",
                                             "StatusRequest ca15704571219a53",
                                             "StatusReply 50dc814b0b473574",
                                             "EnterClock 448841aa0df68585",
                                             "EnterClockReply a6af04bf826aa6bf",
                                             "Replicate 2d989f1c90ebb30c",
                                             "ReplicateAck 3a866efd2e0e3ed8",
                                             "ReplicaReady 8764676b455ebd72",
                                             "LoadReport 5f02571e07b1de19",
                                             "Admin d0ac62ea91c950a5",
                                             "AdminReply b7b3911e3d7b1210",
                                             "CheckpointPrepare 933f27ac196c4ba3",
                                             "CheckpointPrepared 7a568528e804a392",
                                             "CheckpointCut 38a1f7618b5cf34b",
                                             "CheckpointWritten ea516130da5e953d",
                                             "RestoreShards bcdef5feef211108",
                                             "RestoreShardsReply 8f880789a3f57297",
                                             "SchedulerMoved 599ccf35d84666fe",
                                             "PushBatch 4818df0bd3a7b753",
                                             "PushAcks f5535d1b558f5d27",
                                             "CodecReport d7b993f9ae6a02e5",
                                             "LinkReport 307b4392a72e9b9e",
                                             "LeadNow d20ad764fc91ee02"};
  EXPECT_EQ(Digests(), expected);
}

}  // namespace
}  // namespace leeway::proto
