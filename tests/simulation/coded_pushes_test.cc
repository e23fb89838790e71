// Tests under which of its table's codecs a push may travel as it is.
#include "tests/simulation/coded_pushes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/simulation/coded_table_testing.h"

namespace leeway::simulation {
namespace coded_pushes_test {
namespace {

using coded_table_testing::AsItIs;
using coded_table_testing::DenseTable;
using coded_table_testing::Encoded;
using coded_table_testing::kElements;
using coded_table_testing::kKey;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::uint32_t kId = 9;
constexpr std::uint32_t kRank = 1;
constexpr std::uint32_t kNone = 0, kSparse = 1, kOnebit = 2;  // in the order of the description
constexpr std::uint32_t kUnderNone = 1u << kNone, kUnderSparse = 1u << kSparse;

// `sparse` takes 6 bytes and 4 for each of these in a bitmap, or one byte more than the values; a
// push of rows, 4 more.
std::vector<float> WithNonzero(std::size_t count) {
  std::vector<float> values(kElements);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i + 1);
  return values;
}
constexpr std::size_t kSmallRow = 37, kSmallBlock = 38, kGrows = 39;

class CodedPushesTest : public testing::Test {
 protected:
  explicit CodedPushesTest(std::vector<SimTable> tables = {DenseTable("none",
                                                                      {"sparse", "onebit"})})
      : tables_(std::move(tables)), history_(1, 2), pushes_(&tables_, &history_) {
    history_.lives[kRank].incarnation = 2;
    history_.lives[kRank].known_as = {77, 78};
    pushes_.Know(kId, tables_[0]);
  }

  const SimTable& table() const { return tables_[0]; }

  ps::Inbound Push(std::uint32_t codec, ps::Payload payload, std::uint64_t incarnation = 77) {
    ps::Inbound push;
    push.request.id = {.incarnation = incarnation, .sequence = ++sequence_, .worker = kRank};
    push.request.table = kId;
    push.request.kind = table().spec.kind;
    push.request.codec = codec;
    push.payload = std::move(payload);
    return push;
  }
  CodedPushes::Heard HearAsItIs(const std::vector<float>& values, std::uint64_t incarnation = 77) {
    return pushes_.Hear(table(), Push(compress::kNoCodec, {AsItIs(values)}, incarnation));
  }
  CodedPushes::Heard HearEncoded(std::uint32_t choice, const std::vector<float>& values) {
    return pushes_.Hear(
        table(), Push(table().codecs.choices[choice].id, {Encoded(table(), choice, values)}));
  }

  const std::vector<SimTable> tables_;
  History history_;
  CodedPushes pushes_;
  std::uint64_t sequence_ = 0;
};

TEST_F(CodedPushesTest, ABlockIsPlainUnderALosslessCodecThatMakesItNoSmaller) {
  EXPECT_EQ(HearAsItIs(WithNonzero(kSmallBlock)).plain_under, kUnderNone);
  EXPECT_EQ(HearAsItIs(WithNonzero(kGrows)).plain_under, kUnderNone | kUnderSparse);
}

TEST_F(CodedPushesTest, ABlockIsPlainUnderALosslessCodecRightAfterALossyOne) {
  const CodedPushes::Heard lossy = HearEncoded(kOnebit, WithNonzero(kSmallBlock));
  EXPECT_THAT(lossy.wrong, IsEmpty());
  EXPECT_EQ(lossy.plain_under, 0u);
  EXPECT_EQ(HearAsItIs(WithNonzero(kSmallBlock)).plain_under, kUnderNone | kUnderSparse);
  EXPECT_EQ(HearAsItIs(WithNonzero(kSmallBlock)).plain_under, kUnderNone);
}

TEST_F(CodedPushesTest, ResidualsBelongToTheirIncarnation) {
  HearEncoded(kOnebit, WithNonzero(kSmallBlock));
  EXPECT_EQ(HearAsItIs(WithNonzero(kSmallBlock), 78).plain_under, kUnderNone);
}

TEST_F(CodedPushesTest, ALosslessPushTakesAlongWhatWasKept) {
  HearEncoded(kOnebit, WithNonzero(kSmallBlock));
  EXPECT_THAT(HearEncoded(kSparse, WithNonzero(kSmallBlock)).wrong, IsEmpty());
  EXPECT_EQ(HearAsItIs(WithNonzero(kSmallBlock)).plain_under, kUnderNone);
}

TEST_F(CodedPushesTest, ResentPushesAreNotJudgedAgain) {
  const ps::Inbound push = Push(compress::kNoCodec, {AsItIs(WithNonzero(kGrows))});
  EXPECT_TRUE(pushes_.Hear(table(), push).fresh);
  const CodedPushes::Heard again = pushes_.Hear(table(), push);
  EXPECT_FALSE(again.fresh);
  EXPECT_THAT(again.wrong, IsEmpty());
  ps::Inbound other = push;
  other.payload = {AsItIs(WithNonzero(kSmallRow))};
  EXPECT_THAT(pushes_.Hear(table(), other).wrong, HasSubstr("is another one now"));
}

class CodedPushesWithoutFeedbackTest : public CodedPushesTest {
 protected:
  CodedPushesWithoutFeedbackTest() : CodedPushesTest({Table()}) {}

  static SimTable Table() {
    TableSpec spec = TableSpec::Dense("t", {kElements});
    spec.error_feedback = ErrorFeedback::kOff;
    return coded_table_testing::TableOf(spec, "add", "none", {"sparse", "onebit"});
  }
};

TEST_F(CodedPushesWithoutFeedbackTest, NothingIsKept) {
  HearEncoded(kOnebit, WithNonzero(kSmallBlock));
  EXPECT_EQ(HearAsItIs(WithNonzero(kSmallBlock)).plain_under, kUnderNone);
}

class CodedPushesOfRowsTest : public CodedPushesTest {
 protected:
  CodedPushesOfRowsTest()
      : CodedPushesTest({coded_table_testing::TableOf(TableSpec::Sparse("t", kElements), "add",
                                                      "none", {"sparse", "onebit"})}) {}

  CodedPushes::Heard HearRow(const std::vector<float>& values) {
    const runtime::Buffer keys = runtime::Buffer::CopyOf(&kKey, sizeof kKey);
    return pushes_.Hear(table(), Push(compress::kNoCodec, {keys, AsItIs(values)}));
  }
};

TEST_F(CodedPushesOfRowsTest, TheFrontOfEncodedRowsCounts) {
  const CodedPushes::Heard heard = HearRow(WithNonzero(kSmallRow));
  EXPECT_THAT(heard.wrong, IsEmpty());
  ASSERT_THAT(heard.pieces, SizeIs(1));
  EXPECT_EQ(heard.pieces[0].values, WithNonzero(kSmallRow));
  EXPECT_EQ(heard.plain_under, kUnderNone);
  EXPECT_EQ(HearRow(WithNonzero(kSmallBlock)).plain_under, kUnderNone | kUnderSparse);
}

}  // namespace
}  // namespace coded_pushes_test
}  // namespace leeway::simulation
