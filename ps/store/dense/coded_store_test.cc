// Tables whose replies are differences between versions: when a version is made, and what a reader
// is told.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "compress/codec_schedule.h"
#include "compress/registry.h"
#include "compress/table_codec.h"
#include "ps/store/dense/dense_stores.h"
#include "ps/store/dense/versions.h"
#include "ps/store/testing/store_test_util.h"

namespace leeway::ps::coded_store_testing {
namespace {

constexpr std::uint64_t kElements = 64;
constexpr std::uint64_t kWorkers = 4;

// One block, at version 1, that `workers` push to and pull from.
class CodedStoreTest : public testing::Test {
 protected:
  static TableSpec Spec() {
    TableSpec spec = TableSpec::Dense("w", {kElements});
    spec.consistency = Consistency::Asp();
    spec.codec = "onebit";
    return spec;
  }
  void Push(int times = 1) {
    for (int i = 0; i < times; ++i) {
      ASSERT_TRUE(store_->Apply(DensePush<float>(0, std::vector<float>(kElements, 1))).ok());
    }
  }
  // Of a reader that holds that version, when the slowest worker is at `slowest`.
  bool Wants(std::uint64_t have, std::uint64_t slowest, std::uint64_t needed = 0,
             bool own_push = false) {
    return store_->WantsVersion(ViewOf(have, own_push),
                                {.needed = needed, .slowest = slowest, .workers = kWorkers});
  }
  void Make(std::uint64_t slowest) {
    ASSERT_TRUE(store_->MakeVersion(0, slowest, kNoRate, {.codec = compress::IdOf("onebit")}).ok());
  }
  PullResult Pull(std::uint64_t have) {
    const auto result = store_->Pull(ViewOf(have, false));
    EXPECT_TRUE(result.ok()) << result.status();
    return *result;
  }
  static PullView ViewOf(std::uint64_t have, bool own_push) {
    return {.block = 0,
            .elements = kElements,
            .keys = {},
            .have = have,
            .own_push = own_push,
            .codec = {}};
  }

  Shard store_{Spec()};
};

TEST_F(CodedStoreTest, WhereNothingWasPushedNoVersionIsMade) {
  EXPECT_FALSE(Wants(1, 0));
  EXPECT_FALSE(Wants(1, 100, 100, true));
  Push();
  Make(5);
  EXPECT_FALSE(Wants(2, 100, 100, true));
}

TEST_F(CodedStoreTest, AVersionIsMadeWhenTheSlowestWorkerHasGoneOn) {
  Push();
  Make(5);
  Push();
  EXPECT_FALSE(Wants(2, 5));
  EXPECT_TRUE(Wants(2, 6));
  Make(6);
  Push();
  EXPECT_FALSE(Wants(3, 6));
}

TEST_F(CodedStoreTest, AReaderGetsTheNewestVersionUnlessItIsTooOld) {
  Push();
  Make(5);
  Push();
  for (const std::uint64_t have : {0, 1}) {
    EXPECT_FALSE(Wants(have, 5 + kLagMax)) << have;
    EXPECT_TRUE(Wants(have, 5 + kLagMax + 1)) << have;
  }
  const PullResult told = Pull(1);
  ASSERT_EQ(told.parts.size(), 1u);
  EXPECT_EQ(told.parts[0].version, 2u);
  EXPECT_EQ(told.slowest, 5u);
}

TEST_F(CodedStoreTest, WhereTheSlowestWorkerStandsAVersionIsMadeEveryTwoRoundsOfUpdates) {
  Push();
  Make(5);
  Push(kRoundsMax * kWorkers - 1);
  EXPECT_FALSE(Wants(2, 5));
  Push();
  EXPECT_TRUE(Wants(2, 5));
  EXPECT_FALSE(Wants(1, 5));  // it is told of version 2
}

TEST_F(CodedStoreTest, RepeatedPullsWithoutNewsGetEverything) {
  Push();
  for (std::uint64_t i = 0; i < kRoundsMax * kWorkers; ++i) {
    EXPECT_FALSE(Wants(1, 0)) << i;
    const PullResult told = Pull(1);
    EXPECT_TRUE(told.parts.empty());
    EXPECT_EQ(told.slowest, 0u);
  }
  EXPECT_TRUE(Wants(1, 0));
  Make(0);
  EXPECT_EQ(Pull(1).parts.size(), 1u);
  Push();
  EXPECT_FALSE(Wants(2, 0));  // counted anew
}

TEST_F(CodedStoreTest, PullsWithNewsAreNotCountedAsWithout) {
  Push();
  Make(0);
  Push();
  for (std::uint64_t i = 0; i < 3 * kRoundsMax * kWorkers; ++i) EXPECT_FALSE(Pull(1).parts.empty());
  EXPECT_FALSE(Wants(2, 0));
}

TEST_F(CodedStoreTest, ABoundOrAPushOfItsOwnMakesAVersion) {
  Push();
  Make(5);
  Push();
  EXPECT_FALSE(Wants(1, 5, 5));
  EXPECT_TRUE(Wants(1, 6, 6));
  EXPECT_TRUE(Wants(1, 5, 5, true));
}

TEST_F(CodedStoreTest, AVersionIsMadeWithoutLivingWorkers) {
  Push(static_cast<int>(kRoundsMax));
  EXPECT_TRUE(store_->WantsVersion(ViewOf(1, false), {.workers = 0}));
}

TEST_F(CodedStoreTest, WhenClocksWentBackVersionsAreOfNoClock) {
  Push();
  Make(5);
  Push();
  EXPECT_FALSE(Wants(1, 4, 4));
  store_->ForgetSlowest();
  EXPECT_TRUE(Wants(1, 4, 4));
  EXPECT_TRUE(Wants(1, 0, 0));
  EXPECT_EQ(Pull(1).slowest, 0u);
}

// The block as workers hold it is being sent while it is updated.
TEST_F(CodedStoreTest, AnUpdateLeavesWhatWorkersHold) {
  Push(3);
  Make(5);
  const PullResult sent = Pull(0);
  Push();
  EXPECT_EQ(ValuesOf<float>(Pull(0).payload[0]), ValuesOf<float>(sent.payload[0]));
}

// Of a table whose replies said nothing of versions, until it was given one codec after another.
TEST(CodedTableTest, ACodecUnderWhichNothingWasAnsweredDoesNotHideTheOneBefore) {
  TableSpec spec = TableSpec::Dense("w", {kElements});
  spec.consistency = Consistency::Asp();
  spec.codec = "none";
  spec.codecs = {"topk:0.1", "topk:0.05"};
  spec.updater = {"add", {}};
  compress::CodecSchedule codecs;
  const Shard store(spec);
  const std::vector<float> ones(kElements, 1);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(store->Apply(DensePush<float>(0, ones)).ok());
  codecs.Follow({.table = 1, .number = 1, .choice = 1, .clock = 10, .decided = true});
  codecs.Follow({.table = 1, .number = 2, .before = 1, .choice = 2, .clock = 13, .decided = true});
  const PullView view{.block = 0, .elements = kElements, .codec = codecs.KnownAt(13)};
  ASSERT_TRUE(store->WantsVersion(view, {.slowest = 13, .workers = 1}));
  const VersionBy by = store->NextVersion(0, codecs, 13);
  ASSERT_TRUE(store->MakeVersion(0, 13, kNoRate, by).ok());
  const auto pulled = store->Pull(view);
  ASSERT_TRUE(pulled.ok()) << pulled.status();
  EXPECT_EQ(ValuesOf<float>(pulled->payload[0]), store.Block<float>(0, kElements));
  EXPECT_EQ(ValuesOf<float>(pulled->payload[0]), std::vector<float>(kElements, 100));
}

TEST(VersionsTest, NoMessagesLeadAcrossAWholeBlock) {
  constexpr std::uint64_t kBytesMax = 1 << 10;
  const runtime::Buffer message = BufferOf<float>({1});
  Versions versions;
  versions.Append(2, 0, 1, message, kBytesMax);
  versions.StartAt(5, 0);
  versions.Append(6, 0, 1, message, kBytesMax);
  std::vector<proto::ReplyPart> parts;
  std::vector<runtime::Buffer> messages;
  EXPECT_FALSE(versions.MessagesSince(1, kBytesMax, &parts, &messages));
  EXPECT_TRUE(versions.MessagesSince(5, kBytesMax, &parts, &messages));
  EXPECT_EQ(messages.size(), 1u);
  EXPECT_EQ(versions.bytes(), message.size());
}

// Rows that travel as they are beside encoded ones are nothing that a codec vouches for.
TEST(CodedRowsTest, PlainRowsAreLookedAtForNan) {
  constexpr std::uint64_t kWidth = 4;
  TableSpec spec = TableSpec::Sparse("s", kWidth);
  spec.codec = "int8";
  Shard store{spec};
  const compress::TableCodec codec = *compress::TableCodecOf(spec);
  const EncodeTerms terms{.shape = compress::RowsShape(spec, codec, 1)};
  const std::vector<float> ones(kWidth, 1);
  std::vector<std::byte> encoded(codec.codec->EncodedBytesMax(terms.shape));
  encoded.resize(*codec.codec->Encode(ones.data(), terms, encoded));
  for (const float value : {1.0f, std::numeric_limits<float>::quiet_NaN()}) {
    const std::vector<float> row(kWidth, value);
    const std::uint32_t plain = 1;
    std::string frame(reinterpret_cast<const char*>(&plain), sizeof(plain));
    frame.append(reinterpret_cast<const char*>(encoded.data()), encoded.size());
    frame.append(reinterpret_cast<const char*>(row.data()), row.size() * sizeof(float));
    const std::uint64_t keys[] = {1, 2};
    const PushView push{.keys = runtime::Buffer::CopyOf(keys, sizeof(keys)),
                        .values = runtime::Buffer::CopyOf(frame.data(), frame.size()),
                        .codec = compress::IdOf("int8")};
    const absl::StatusOr<bool> nonfinite = store->EncodedNonFinite(push);
    ASSERT_TRUE(nonfinite.ok()) << nonfinite.status();
    EXPECT_EQ(*nonfinite, value != 1.0f);
  }
}

}  // namespace
}  // namespace leeway::ps::coded_store_testing
