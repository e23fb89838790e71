// Shard handlers: what one may read and update, which errors it gets, and what a call is to its
// worker. Chains: chain_calls_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "leeway/shard_handler.h"
#include "proto/messages/layout.h"
#include "proto/messages/limits.h"
#include "ps/shard/state/client_sessions.h"
#include "ps/testing/test_support.h"
#include "runtime/base/status_macros.h"

namespace leeway::ps::shard_call_test {

using absl::StatusCode;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The body of the one handler, "body", that all calls here name.
ShardHandler& Body() {
  static ShardHandler& body = *new ShardHandler;
  static const bool registered =
      RegisterShardHandler("body", [](ShardCall& call) { return body(call); }).ok();
  EXPECT_TRUE(registered);
  return body;
}

struct Told {
  absl::Status status;
  std::string answer;
};

proto::Request CallRequest(Bench& bench, std::uint32_t rank, std::uint32_t table,
                           std::uint64_t block = 0) {
  proto::Request request = bench.DensePush(rank, table, 0, block);
  request.op = proto::Op::kCall;
  request.block = request.elements = 0;
  request.settled = request.id.sequence;
  return request;
}

Payload CallPayload(const std::string& handler, const std::string& text = "") {
  return {runtime::Buffer::CopyOf(handler), runtime::Buffer::CopyOf(text)};
}

Told TakeTold(Bench& bench, std::uint32_t rank) {
  const Answer answer = bench.TakeReply(rank);
  return {answer.reply().result, answer.payload.empty() ? "" : answer.text()};
}

Told Call(Bench& bench, std::uint32_t table, ShardHandler body, const std::string& text = "",
          std::uint32_t rank = 0) {
  Body() = std::move(body);
  bench.Send(rank, CallRequest(bench, rank, table), CallPayload("body", text));
  return TakeTold(bench, rank);
}

std::vector<float> Ones(float value = 1) { return std::vector<float>(Bench::kBlock, value); }

absl::Status PushOnes(ShardCall& call, absl::string_view table, std::uint64_t block = 0) {
  const std::vector<float> ones = Ones();
  return call.PushBlock(table, block, std::span<const float>(ones));
}

class ShardCalls : public ::testing::Test {
 protected:
  std::vector<float> Row(std::uint64_t key) {
    std::vector<float> row(2);
    EXPECT_TRUE(Call(bench_, dense_, [&](ShardCall& call) -> absl::StatusOr<std::string> {
                  LEEWAY_RETURN_IF_ERROR(call.Read("rows", {&key, 1}, std::span(row)));
                  return "";
                }).status.ok());
    return row;
  }
  // The error of a handler that does this and returns what it gets.
  absl::Status Error(const std::function<absl::Status(ShardCall&)>& body) {
    return Call(bench_, dense_,
                [&](ShardCall& call) -> absl::StatusOr<std::string> {
                  LEEWAY_RETURN_IF_ERROR(body(call));
                  return "";
                })
        .status;
  }

  Bench bench_{{.message_bytes_max = 1 << 16}};
  const std::uint32_t dense_ = bench_.Install(AddTable("w", Consistency::Asp()));
  const std::uint32_t held_ = bench_.Install(AddTable("held", Consistency::Bsp()));
  const std::uint32_t rows_ = bench_.Install([] {
    TableSpec spec = TableSpec::Sparse("rows", 2);
    spec.updater.name = "add";
    spec.consistency = Consistency::Ssp(1);
    return spec;
  }());
  const std::uint32_t ragged_ = bench_.Install([] {
    TableSpec spec = TableSpec::Ragged("ragged");
    spec.updater.name = "add";
    spec.consistency = Consistency::Asp();
    return spec;
  }());
  // Keys of the shard that calls at block 0 of the dense table are of, and one of another shard.
  const std::uint32_t shard_ = proto::ShardOfBlock(dense_, 0, 2);
  const std::uint64_t key_ = KeyOf(shard_, 0), other_key_ = KeyOf(shard_, key_ + 1);
  const std::uint64_t foreign_ = KeyOf(1 - shard_, 0);

 private:
  static std::uint64_t KeyOf(std::uint32_t shard, std::uint64_t from) {
    while (proto::ShardOfKey(from, 2) != shard) ++from;
    return from;
  }
};

TEST_F(ShardCalls, SeeTheirCallerAndTheShard) {
  const Told told = Call(
      bench_, dense_,
      [&](ShardCall& call) -> absl::StatusOr<std::string> {
        EXPECT_TRUE(call.HasKey(key_));
        EXPECT_FALSE(call.HasKey(foreign_));
        EXPECT_EQ(call.shard(), shard_);
        EXPECT_EQ(call.Spec("rows")->row_width, 2u);
        EXPECT_EQ(call.Blocks("w")->size(), 1u);
        EXPECT_EQ(call.Blocks("w")->front().elements, Bench::kBlock);
        return absl::StrCat(call.table(), " ", call.worker_rank(), " ", call.clock(), " ",
                            std::string(call.request()));
      },
      "asked", 1);
  EXPECT_TRUE(told.status.ok()) << told.status;
  EXPECT_EQ(told.answer, "w 1 0 asked");
}

TEST_F(ShardCalls, ReadAndUpdateEveryKindOfTable) {
  const Told told = Call(bench_, dense_, [&](ShardCall& call) -> absl::StatusOr<std::string> {
    LEEWAY_RETURN_IF_ERROR(PushOnes(call, "w"));
    const float row[] = {1, 2}, ragged[] = {3, 4, 5};
    const std::uint32_t width = 3;
    LEEWAY_RETURN_IF_ERROR(call.Push("rows", {&key_, 1}, std::span<const float>(row)));
    LEEWAY_RETURN_IF_ERROR(call.Push("rows", {&other_key_, 1}, std::span<const float>(row)));
    LEEWAY_RETURN_IF_ERROR(
        call.PushRagged("ragged", {&key_, 1}, {&width, 1}, std::span<const float>(ragged)));
    std::vector<float> before(Bench::kBlock);
    LEEWAY_RETURN_IF_ERROR(call.ReadBlock("w", 0, std::span(before)));
    EXPECT_THAT(before, Each(0));  // its own updates come when it has returned
    return "done";
  });
  EXPECT_EQ(told.answer, "done") << told.status;
  EXPECT_THAT(bench_.PullNow(0, dense_, 0), Each(1));
  EXPECT_THAT(Row(key_), ElementsAre(1, 2));
  EXPECT_THAT(Row(other_key_), ElementsAre(1, 2));
  EXPECT_TRUE(Error([&](ShardCall& call) {
                std::vector<std::uint32_t> widths;
                std::vector<float> values;
                const std::uint64_t keys[] = {key_, other_key_};
                const absl::Status read = call.ReadRagged("ragged", keys, &widths, &values);
                EXPECT_THAT(widths, ElementsAre(3, 0));
                EXPECT_THAT(values, ElementsAre(3, 4, 5));
                return read;
              }).ok());
}

TEST_F(ShardCalls, ThatFailChangeNothing) {
  EXPECT_EQ(Error([&](ShardCall& call) {
              EXPECT_TRUE(PushOnes(call, "w").ok());
              return absl::OutOfRangeError("not enough");
            }),
            absl::OutOfRangeError("not enough"));
  EXPECT_THAT(bench_.PullNow(0, dense_, 0), Each(0));
}

TEST_F(ShardCalls, ThatThrowAreErrors) {
  const auto thrown = [&](auto what) {
    return Error([&](ShardCall& call) -> absl::Status {
      EXPECT_TRUE(PushOnes(call, "w").ok());
      throw what;
    });
  };
  EXPECT_EQ(thrown(std::runtime_error("lost my way")),
            absl::InternalError("shard handler \"body\" has thrown: lost my way"));
  EXPECT_EQ(thrown(7).code(), StatusCode::kInternal);
  EXPECT_EQ(thrown(std::bad_alloc()).code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(bench_.PullNow(0, dense_, 0), Each(0));
}

// The worker's library asks again after some codes, and takes others for an unknown outcome.
TEST_F(ShardCalls, ErrorsOfCodesThatSaySomethingOfRequestsAreRenamed) {
  for (const absl::Status& error :
       {absl::UnavailableError("busy"), absl::AbortedError("busy"), absl::UnknownError("busy"),
        absl::CancelledError("busy"), absl::DeadlineExceededError("busy")}) {
    const absl::Status told = Error([&](ShardCall&) { return error; });
    EXPECT_EQ(told.code(), StatusCode::kFailedPrecondition);
    EXPECT_THAT(told.message(), HasSubstr(absl::StatusCodeToString(error.code())));
  }
}

TEST_F(ShardCalls, WrongReadsAndUpdatesNameTheTableAndWhatIsWrong) {
  const std::vector<float> ones = Ones();
  std::vector<float> values(Bench::kBlock), row(2);
  std::vector<double> doubles(Bench::kBlock);
  const std::span<const float> short_row(ones.data(), 1), good_row(ones.data(), 2);
  const std::uint64_t twice[] = {key_, key_};
  const std::uint32_t width = 2;
  const struct {
    StatusCode code;
    const char* says;
    std::function<absl::Status(ShardCall&)> body;
  } wrongs[] = {
      {StatusCode::kNotFound, "nowhere",
       [&](ShardCall& c) { return c.ReadBlock("nowhere", 0, std::span(values)); }},
      {StatusCode::kInvalidArgument, "holds float32, not float64",
       [&](ShardCall& c) { return c.ReadBlock("w", 0, std::span(doubles)); }},
      {StatusCode::kInvalidArgument, "ReadBlock and PushBlock",
       [&](ShardCall& c) {
         return c.Read("w", {&key_, 1}, std::span(row));
       }},
      {StatusCode::kInvalidArgument, "Read and Push",
       [&](ShardCall& c) { return c.PushBlock("rows", 0, good_row); }},
      {StatusCode::kInvalidArgument, "16",
       [&](ShardCall& c) { return c.ReadBlock("w", 0, std::span(row)); }},
      {StatusCode::kInvalidArgument, "block 1",
       [&](ShardCall& c) { return c.ReadBlock("w", 1, std::span(values)); }},
      {StatusCode::kInvalidArgument, "block 1", [&](ShardCall& c) { return PushOnes(c, "w", 1); }},
      {StatusCode::kOutOfRange, "block 7", [&](ShardCall& c) { return PushOnes(c, "w", 7); }},
      {StatusCode::kInvalidArgument, "belongs to shard",
       [&](ShardCall& c) {
         return c.Read("rows", {&foreign_, 1}, std::span(row));
       }},
      {StatusCode::kInvalidArgument, "belongs to shard",
       [&](ShardCall& c) {
         return c.Push("rows", {&foreign_, 1}, good_row);
       }},
      {StatusCode::kInvalidArgument, "'rows'",
       [&](ShardCall& c) {
         return c.Push("rows", {&key_, 1}, short_row);
       }},
      {StatusCode::kInvalidArgument, "'rows'",
       [&](ShardCall& c) {
         return c.Read("rows", {&key_, 1}, std::span(values));
       }},
      {StatusCode::kInvalidArgument, "twice",
       [&](ShardCall& c) { return c.Push("rows", twice, std::span<const float>(ones.data(), 4)); }},
      {StatusCode::kInvalidArgument, "twice",
       [&](ShardCall& c) {
         EXPECT_TRUE(PushOnes(c, "w").ok());
         return PushOnes(c, "w");
       }},
      {StatusCode::kInvalidArgument, "learning rates",
       [&](ShardCall& c) {
         EXPECT_TRUE(c.Push("rows", {&key_, 1}, good_row).ok());
         return c.Push("rows", {&other_key_, 1}, good_row, 0.5);
       }},
      {StatusCode::kInvalidArgument, "learning_rate",
       [&](ShardCall& c) {
         return c.Push("rows", {&key_, 1}, good_row, -1);
       }},
      {StatusCode::kInvalidArgument, "1 key were given with 0 widths",
       [&](ShardCall& c) {
         return c.PushRagged("ragged", {&key_, 1}, {}, good_row);
       }},
      {StatusCode::kInvalidArgument, "'ragged'",
       [&](ShardCall& c) {
         return c.PushRagged("ragged", {&key_, 1}, {&width, 1}, short_row);
       }},
      {StatusCode::kFailedPrecondition, "bsp", [&](ShardCall& c) { return PushOnes(c, "held"); }},
  };
  for (const auto& wrong : wrongs) {
    const absl::Status told = Error(wrong.body);
    EXPECT_EQ(told.code(), wrong.code) << told;
    EXPECT_THAT(told.message(), HasSubstr(wrong.says));
  }
  EXPECT_THAT(bench_.PullNow(0, dense_, 0), Each(0));
  // A failed update is none; the handler may go on.
  EXPECT_TRUE(Error([&](ShardCall& c) {
                EXPECT_FALSE(c.Push("rows", twice, std::span<const float>(ones.data(), 4)).ok());
                return c.Push("rows", {&key_, 1}, good_row);
              }).ok());
  EXPECT_THAT(Row(key_), ElementsAre(1, 1));
}

TEST_F(ShardCalls, UpdatesAndAnswersHaveLimits) {
  const Told long_answer = Call(bench_, dense_, [](ShardCall&) -> absl::StatusOr<std::string> {
    return std::string((1 << 16) + 1, 'x');
  });
  EXPECT_EQ(long_answer.status.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(long_answer.status.message(), HasSubstr("65537"));
  const absl::Status updates = Error([&](ShardCall& call) {
    const std::vector<float> row(6000, 1);
    const auto width = static_cast<std::uint32_t>(row.size());
    absl::Status pushed;
    for (std::uint64_t key = 0; pushed.ok(); ++key) {
      if (!call.HasKey(key)) continue;
      pushed = call.PushRagged("ragged", {&key, 1}, {&width, 1}, std::span<const float>(row));
    }
    return pushed;
  });
  EXPECT_EQ(updates.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(updates.message(), HasSubstr("LEEWAY_MESSAGE_BYTES_MAX"));
}

TEST_F(ShardCalls, SeeBspTablesAsOfTheLastClosedClock) {
  ASSERT_TRUE(bench_.PushNow(0, held_, 0, 3).ok());
  const auto first = [&] {
    std::vector<float> values(Bench::kBlock);
    EXPECT_TRUE(Error([&](ShardCall& call) {
                  const std::uint64_t block = call.Blocks("held")->at(0).index;
                  return call.ReadBlock("held", block, std::span(values));
                }).ok());
    return values[0];
  };
  for (const std::uint64_t block : {0, 1}) {
    ASSERT_TRUE(bench_.PushNow(1, held_, 0, 4, block).ok());
  }
  EXPECT_EQ(first(), 0);
  for (const std::uint32_t rank : {0u, 1u}) bench_.Tick(rank, 1);
  for (const std::uint32_t rank : {0u, 1u}) (void)bench_.Take(rank);
  EXPECT_GE(first(), 4);
}

TEST_F(ShardCalls, ThatAreSentAgainGetTheSameAnswer) {
  int runs = 0;
  Body() = [&](ShardCall& call) -> absl::StatusOr<std::string> {
    LEEWAY_RETURN_IF_ERROR(PushOnes(call, "w"));
    if (++runs == 2) return absl::NotFoundError("second");
    return absl::StrCat("run ", runs);
  };
  const proto::Request first = CallRequest(bench_, 0, dense_);
  const auto send = [&](const proto::Request& request) {
    bench_.Send(0, request, CallPayload("body"));
    return TakeTold(bench_, 0);
  };
  EXPECT_EQ(send(first).answer, "run 1");
  EXPECT_EQ(send(first).answer, "run 1");
  proto::Request second = CallRequest(bench_, 0, dense_);
  second.settled = first.id.sequence;
  EXPECT_EQ(send(second).status, absl::NotFoundError("second"));
  EXPECT_EQ(send(second).status, absl::NotFoundError("second"));
  EXPECT_EQ(send(first).answer, "run 1");
  EXPECT_EQ(runs, 2);
  EXPECT_THAT(bench_.PullNow(0, dense_, 0), Each(1));
  // The worker has both answers now.
  EXPECT_EQ(send(CallRequest(bench_, 0, dense_)).answer, "run 3");
  EXPECT_EQ(send(first).status.code(), StatusCode::kUnknown);
}

TEST_F(ShardCalls, AreRefusedWhileTooManyAnswersAreKept) {
  Body() = [](ShardCall&) -> absl::StatusOr<std::string> { return ""; };
  Told told;
  std::size_t calls = 0;
  std::uint64_t oldest = 0;
  while (told.status.ok() && calls <= proto::kAnswersKeptMax) {
    ++calls;
    proto::Request request = CallRequest(bench_, 0, dense_);
    if (oldest == 0) oldest = request.id.sequence;
    request.settled = oldest;
    bench_.Send(0, request, CallPayload("body"));
    told = TakeTold(bench_, 0);
  }
  EXPECT_EQ(told.status.code(), StatusCode::kResourceExhausted) << told.status;
  EXPECT_EQ(calls, proto::kAnswersKeptMax + 1);
  bench_.Send(0, CallRequest(bench_, 0, dense_), CallPayload("body"));
  EXPECT_TRUE(TakeTold(bench_, 0).status.ok());
}

TEST(KeptAnswersTest, HaveLimits) {
  KeptAnswers answers;
  const runtime::Buffer answer = runtime::Buffer::CopyOf(std::string(1 << 20, 'x'));
  std::uint64_t number = 0;
  while (answers.CheckRoom(answer.size()).ok()) answers.Keep(++number, answer);
  EXPECT_EQ(number, proto::kAnswersKeptBytesMax >> 20);
  answers.Keep(1, answer);  // a second time
  answers.ForgetBelow(2);
  EXPECT_TRUE(answers.CheckRoom(answer.size()).ok());
  EXPECT_FALSE(answers.CheckRoom(answer.size() + 1).ok());
  EXPECT_EQ(answers.Find(1), nullptr);
  EXPECT_NE(answers.Find(2), nullptr);
}

TEST_F(ShardCalls, OfAHandlerThatIsNotThereNameThoseThatAre) {
  Body();
  bench_.Send(0, CallRequest(bench_, 0, dense_), CallPayload("nobody"));
  const absl::Status told = TakeTold(bench_, 0).status;
  EXPECT_EQ(told.code(), StatusCode::kNotFound);
  EXPECT_THAT(told.message(), HasSubstr("body"));
}

TEST_F(ShardCalls, UpdatesThatATableRefusesAreRefusedTogether) {
  TableSpec spec = AddTable("finite", Consistency::Asp());
  spec.nonfinite = NonFinite::kRefuse;
  const std::uint32_t finite = bench_.Install(spec);
  Body() = [&](ShardCall& call) -> absl::StatusOr<std::string> {
    const std::vector<float> bad(Bench::kBlock, HUGE_VALF);
    const std::uint64_t block = call.Blocks("finite")->at(0).index;
    LEEWAY_ASSIGN_OR_RETURN(const std::vector<ShardBlock> blocks, call.Blocks("w"));
    for (const ShardBlock& mine : blocks) {
      LEEWAY_RETURN_IF_ERROR(PushOnes(call, "w", mine.index));
    }
    LEEWAY_RETURN_IF_ERROR(call.PushBlock("finite", block, std::span<const float>(bad)));
    return "";
  };
  bench_.Send(0, CallRequest(bench_, 0, dense_), CallPayload("body"));
  const absl::Status told = TakeTold(bench_, 0).status;
  EXPECT_EQ(told.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(told.message(), HasSubstr("finite"));
  EXPECT_THAT(bench_.PullNow(0, dense_, 0), Each(0));
  (void)finite;
}

TEST(RegisterShardHandler, RefusesWhatCannotBe) {
  const auto handler = [](ShardCall&) -> absl::StatusOr<std::string> { return ""; };
  EXPECT_TRUE(RegisterShardHandler("once", handler).ok());
  EXPECT_EQ(RegisterShardHandler("once", handler).code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(RegisterShardHandler("", handler).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(RegisterShardHandler(std::string(256, 'x'), handler).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(RegisterShardHandler("empty", nullptr).code(), StatusCode::kInvalidArgument);
}

}  // namespace leeway::ps::shard_call_test
