// Valid and wrong answers about a coded block: differences between versions, the block itself
// without loss, the block as it is.
#include "tests/simulation/version_ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/simulation/coded_table_testing.h"

namespace leeway::simulation {
namespace version_ledger_test {
namespace {

using coded_table_testing::AsItIs;
using coded_table_testing::DenseTable;
using coded_table_testing::Encoded;
using coded_table_testing::kElements;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

constexpr std::uint32_t kZstd = 1, kOnebit = 2;  // in the order of the description

std::vector<float> All(float value) { return std::vector<float>(kElements, value); }

class VersionLedgerTest : public testing::Test {
 protected:
  explicit VersionLedgerTest(SimTable table = DenseTable("none", {"zstd", "onebit"}))
      : table_(std::move(table)), history_(1, 1), ledger_(&history_) {
    history_.lives[0].incarnation = 1;
    for (const std::uint64_t clock : {0, 1}) {
      Push push;
      push.clock = clock;
      push.incarnation = push.places = 1;
      history_.pushes(table_, 0).push_back(push);
    }
  }

  // A worker that holds version `have` asks, and gets an answer with clocks below `below`.
  proto::Reply Ask(std::uint64_t have, std::uint64_t below) {
    proto::Request request;
    request.id = {.incarnation = 77, .sequence = ++sequence_};
    request.have = have;
    ledger_.OnAsked(table_, request);
    proto::Reply reply;
    reply.id = request.id;
    reply.op = proto::Op::kPull;
    reply.clock = reply.slowest_clock = below;
    return reply;
  }
  std::string AnswerAsItIs(const std::vector<float>& values) {
    return ledger_.OnAnswered(Ask(0, 0), std::vector{AsItIs(values)});
  }
  std::string AnswerItself(std::uint32_t choice, std::uint64_t version, std::uint64_t below,
                           const runtime::Buffer& message) {
    return AnswerPart(0, below,
                      {.version = version,
                       .bytes = message.size(),
                       .codec = table_.codecs.choices[choice].id,
                       .whole = true},
                      message);
  }
  std::string AnswerItself(std::uint64_t version, std::uint64_t below,
                           const std::vector<float>& values) {
    return AnswerItself(kZstd, version, below, Encoded(table_, kZstd, values));
  }
  std::string AnswerPart(std::uint64_t have, std::uint64_t below, const proto::ReplyPart& part,
                         const runtime::Buffer& message) {
    proto::Reply reply = Ask(have, below);
    reply.coded = true;
    reply.parts = {part};
    return ledger_.OnAnswered(reply, std::vector{message});
  }

  const SimTable table_;
  History history_;
  VersionLedger ledger_;
  std::uint64_t sequence_ = 0;
};

TEST_F(VersionLedgerTest, AnAnswerAsItIsIsKnownByItsValues) {
  EXPECT_FALSE(ledger_.WasToldAsItIs(table_, 0, All(3)));
  EXPECT_THAT(AnswerAsItIs(All(3)), IsEmpty());
  EXPECT_THAT(AnswerAsItIs(All(5)), IsEmpty());
  EXPECT_TRUE(ledger_.WasToldAsItIs(table_, 0, All(3)));
  EXPECT_TRUE(ledger_.WasToldAsItIs(table_, 0, std::vector<float>(4, 5)));  // a read of its front
  EXPECT_FALSE(ledger_.WasToldAsItIs(table_, 0, All(4)));
  EXPECT_FALSE(ledger_.WasToldAsItIs(table_, 1, All(3)));
  EXPECT_THAT(ledger_.Of(table_, 0), IsEmpty());
  EXPECT_THAT(ledger_.ItselfOf(table_, 0), IsEmpty());
}

TEST_F(VersionLedgerTest, AnAnswerAsItIsHasTheBlocksSize) {
  EXPECT_THAT(AnswerAsItIs(std::vector<float>(kElements - 1)), HasSubstr("has another size"));
  EXPECT_THAT(AnswerAsItIs(std::vector<float>(kElements + 1)), HasSubstr("has another size"));
  EXPECT_FALSE(ledger_.WasToldAsItIs(table_, 0, std::vector<float>(4)));
}

TEST_F(VersionLedgerTest, AVersionOfTheBlockItselfHasOneContent) {
  EXPECT_THAT(AnswerItself(2, 1, All(3)), IsEmpty());
  EXPECT_THAT(AnswerItself(2, 1, All(3)), IsEmpty());
  EXPECT_THAT(AnswerItself(2, 1, All(4)), HasSubstr("version 2 of the block itself has two"));
  EXPECT_THAT(ledger_.ItselfOf(table_, 0), UnorderedElementsAre(Pair(2, All(3))));
  EXPECT_THAT(ledger_.Of(table_, 0), IsEmpty());
  EXPECT_FALSE(ledger_.WasToldAsItIs(table_, 0, All(3)));
}

// The values that workers hold after differences lag behind the block.
TEST_F(VersionLedgerTest, AVersionOfDifferencesMayHaveAnotherContent) {
  EXPECT_THAT(AnswerItself(2, 1, All(3)), IsEmpty());
  const runtime::Buffer whole = AsItIs(All(2));
  EXPECT_THAT(AnswerPart(0, 1, {.version = 2, .bytes = whole.size(), .whole = true}, whole),
              IsEmpty());
  const runtime::Buffer difference = Encoded(table_, kOnebit, All(1));
  EXPECT_THAT(
      AnswerPart(
          2, 2,
          {.version = 3, .bytes = difference.size(), .codec = table_.codecs.choices[kOnebit].id},
          difference),
      IsEmpty());
  EXPECT_THAT(ledger_.Of(table_, 0), UnorderedElementsAre(Pair(2, All(2)), Pair(3, All(3))));
  EXPECT_THAT(ledger_.ItselfOf(table_, 0), UnorderedElementsAre(Pair(2, All(3))));
}

TEST_F(VersionLedgerTest, TheBlockItselfHasTheUpdatesThatItIsSaidToHave) {
  EXPECT_THAT(AnswerItself(2, 2, All(3)), HasSubstr("the clocks below 2, which are 2 updates"));
  EXPECT_THAT(AnswerItself(3, 2, All(4)), IsEmpty());
}

TEST_F(VersionLedgerTest, TheBlockItselfIsNotOfACodecOfDifferences) {
  EXPECT_THAT(AnswerItself(kOnebit, 1, 0, Encoded(table_, kOnebit, All(3))),
              HasSubstr("a whole block has a codec of differences"));
}

TEST_F(VersionLedgerTest, TheBlockItselfIsWellFormed) {
  const runtime::Buffer message = Encoded(table_, kZstd, All(3));
  EXPECT_THAT(AnswerItself(kZstd, 1, 0, message.Part(0, message.size() - 1)),
              HasSubstr("it is malformed"));
  EXPECT_THAT(ledger_.ItselfOf(table_, 0), IsEmpty());
}

TEST_F(VersionLedgerTest, FailedAndUnaskedRepliesSayNothing) {
  proto::Reply reply = Ask(0, 0);
  reply.result = absl::UnavailableError("gone");
  EXPECT_THAT(ledger_.OnAnswered(reply, {}), IsEmpty());
  proto::Reply other = Ask(0, 0);
  ++other.id.sequence;
  EXPECT_THAT(ledger_.OnAnswered(other, {}), IsEmpty());
}

class VersionLedgerOfDifferencesTest : public VersionLedgerTest {
 protected:
  VersionLedgerOfDifferencesTest() : VersionLedgerTest(DenseTable("onebit", {})) {}
};

TEST_F(VersionLedgerOfDifferencesTest, NothingIsAnsweredAsItIs) {
  EXPECT_THAT(AnswerAsItIs(All(3)), HasSubstr("the answer is not encoded"));
}

}  // namespace
}  // namespace version_ledger_test
}  // namespace leeway::simulation
