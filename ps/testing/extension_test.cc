// What users add: updaters and request handlers, linked in or from a plugin; and the small parts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compress/registry.h"
#include "leeway/server.h"
#include "node/plugins.h"
#include "ps/control/endpoints.h"
#include "ps/testing/test_support.h"

namespace leeway::ps {
namespace {

using absl::StatusCode;
using testing::Each;
using testing::HasSubstr;

// value ← 2·value + gradient
class DoubleAndAdd final : public Updater {
 public:
  void Update(const UpdateRun<float>& run) const override {
    for (std::size_t i = 0; i < run.size; ++i) run.value[i] = 2 * run.value[i] + run.gradient[i];
  }
  bool Supports(DType dtype) const override { return dtype == DType::kFloat32; }
};

proto::CallReply CallOf(Bench& bench, const std::string& handler, const std::string& request,
                        std::string* answer) {
  bench.Send(0, proto::Call{.request = 5, .handler = handler}, {runtime::Buffer::CopyOf(request)});
  const std::vector<Answer> answers = bench.Take(0);
  EXPECT_EQ(answers.size(), 1u);
  if (answers.size() != 1) return {};
  *answer = answers[0].text();
  return std::get<proto::CallReply>(answers[0].message);
}

TEST(CustomUpdater, IsUsedByTablesThatNameIt) {
  ASSERT_TRUE(
      RegisterUpdater("double_and_add",
                      [](const UpdaterParameters&) -> absl::StatusOr<std::unique_ptr<Updater>> {
                        return std::make_unique<DoubleAndAdd>();
                      })
          .ok());
  Bench bench;
  TableSpec spec = AddTable("w", Consistency::Asp());
  spec.updater.name = "double_and_add";
  const std::uint32_t table = bench.Install(spec);
  EXPECT_TRUE(bench.PushNow(0, table, 0, 3).ok());
  EXPECT_TRUE(bench.PushNow(0, table, 0, 1).ok());
  EXPECT_THAT(bench.PullNow(0, table, 0), Each(7));
}

TEST(CustomHandler, SeesItsCallerAndAnswers) {
  ASSERT_TRUE(RegisterHandler("greet",
                              [](const HandlerContext& context,
                                 absl::string_view name) -> absl::StatusOr<std::string> {
                                if (name.empty()) return absl::InvalidArgumentError("greet whom?");
                                return absl::StrCat("hello ", std::string(name), " from worker ",
                                                    context.worker_rank, " on thread ",
                                                    context.thread);
                              })
                  .ok());
  Bench bench;
  std::string answer;
  proto::CallReply reply = CallOf(bench, "greet", "moon", &answer);
  EXPECT_TRUE(reply.result.ok()) << reply.result;
  EXPECT_EQ(reply.request, 5u);
  EXPECT_EQ(answer, "hello moon from worker 0 on thread 0");
  reply = CallOf(bench, "greet", "", &answer);
  EXPECT_EQ(reply.result, absl::InvalidArgumentError("greet whom?"));
  reply = CallOf(bench, "nobody", "", &answer);
  EXPECT_EQ(reply.result.code(), StatusCode::kNotFound);
  EXPECT_THAT(reply.result.message(), HasSubstr("greet"));
}

TEST(CustomHandler, AnswersHaveALimit) {
  ASSERT_TRUE(
      RegisterHandler("long",
                      [](const HandlerContext&, absl::string_view) -> absl::StatusOr<std::string> {
                        return std::string(10000, 'x');
                      })
          .ok());
  Bench bench({.message_bytes_max = 4096});
  std::string answer;
  const proto::CallReply reply = CallOf(bench, "long", "", &answer);
  EXPECT_THAT(reply.result.message(), HasSubstr("LEEWAY_MESSAGE_BYTES_MAX"));
  EXPECT_EQ(answer, "");
}

// ---- handlers that answer in their own time ----

// The calls that the handler "later" has not answered.
std::vector<std::pair<CallFrames, Responder>>& Waiting() {
  static auto& waiting = *new std::vector<std::pair<CallFrames, Responder>>;
  static const absl::Status registered = RegisterAsyncHandler(
      "later", [](const HandlerContext&, CallFrames request, Responder responder) {
        waiting.emplace_back(std::move(request), std::move(responder));
      });
  EXPECT_TRUE(registered.ok()) << registered;
  return waiting;
}

TEST(AsyncHandler, AnswersLaterInAnotherOrderWithTheFramesItGot) {
  auto& waiting = Waiting();
  Bench bench;
  for (const std::uint64_t number : {1, 2}) {
    bench.Send(0, proto::Call{.request = number, .handler = "later"},
               {runtime::Buffer::CopyOf("head"), runtime::Buffer::CopyOf(absl::StrCat(number))});
  }
  ASSERT_EQ(waiting.size(), 2u);
  EXPECT_TRUE(bench.Take(0).empty());
  for (const std::uint64_t number : {2, 1}) {
    waiting[number - 1].second.Answer(std::move(waiting[number - 1].first));
    bench.world().RunFor(absl::Milliseconds(1));
    const std::vector<Answer> answers = bench.Take(0);
    ASSERT_EQ(answers.size(), 1u);
    EXPECT_EQ(std::get<proto::CallReply>(answers[0].message).request, number);
    ASSERT_EQ(answers[0].payload.size(), 2u);
    EXPECT_EQ(answers[0].payload[1].text(), absl::StrCat(number));
  }
  waiting.clear();
}

TEST(AsyncHandler, ThatDropsACallAnswersWithAnError) {
  auto& waiting = Waiting();
  Bench bench;
  bench.Send(0, proto::Call{.request = 1, .handler = "later"}, {runtime::Buffer()});
  waiting.clear();
  bench.world().RunFor(absl::Milliseconds(1));
  const std::vector<Answer> answers = bench.Take(0);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(std::get<proto::CallReply>(answers[0].message).result.code(), StatusCode::kInternal);
}

TEST(AsyncHandler, MayAnswerAfterTheServerHasGone) {
  auto& waiting = Waiting();
  {
    Bench bench;
    bench.Send(0, proto::Call{.request = 1, .handler = "later"}, {runtime::Buffer()});
    ASSERT_EQ(waiting.size(), 1u);
  }
  waiting[0].second.Answer(CallFrames{CallFrame::Of("nobody hears it")});
  waiting.clear();
}

TEST(AsyncHandler, HasALimitOfBytesThatItKeeps) {
  auto& waiting = Waiting();
  Bench bench({.held_bytes_max = 100});
  const auto call = [&](std::size_t bytes) {
    bench.Send(0, proto::Call{.request = bytes, .handler = "later"},
               {runtime::Buffer::CopyOf(std::string(bytes, 'x'))});
  };
  call(60);
  EXPECT_TRUE(bench.Take(0).empty());
  call(41);
  const std::vector<Answer> answers = bench.Take(0);
  ASSERT_EQ(answers.size(), 1u);
  const auto& refused = std::get<proto::CallReply>(answers[0].message).result;
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(refused.message(), HasSubstr("LEEWAY_HELD_BYTES_MAX"));
  waiting.clear();
  bench.world().RunFor(absl::Milliseconds(1));
  EXPECT_EQ(bench.Take(0).size(), 1u);
  call(100);
  EXPECT_EQ(waiting.size(), 1u);
  waiting.clear();
}

TEST(RegisterHandler, RefusesWhatCannotBe) {
  auto handler = [](const HandlerContext&, absl::string_view) -> absl::StatusOr<std::string> {
    return "";
  };
  EXPECT_TRUE(RegisterHandler("once", handler).ok());
  EXPECT_EQ(RegisterHandler("once", handler).code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(RegisterHandler("", handler).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(RegisterHandler("empty", nullptr).code(), StatusCode::kInvalidArgument);
}

TEST(Plugin, BringsAnUpdaterAndAHandler) {
  const absl::Status loaded = node::LoadPlugins({LEEWAY_TEST_PLUGIN});
  ASSERT_TRUE(loaded.ok()) << loaded;
  Bench bench;
  TableSpec spec = AddTable("w", Consistency::Asp());
  spec.updater.name = "plugin_negate";
  const std::uint32_t table = bench.Install(spec);
  EXPECT_TRUE(bench.PushNow(0, table, 0, 3).ok());
  EXPECT_THAT(bench.PullNow(0, table, 0), Each(-3));
  std::string answer;
  EXPECT_TRUE(CallOf(bench, "plugin_reverse", "abc", &answer).result.ok());
  EXPECT_EQ(answer, "cba");
}

TEST(Plugin, BringsACodec) {
  ASSERT_TRUE(node::LoadPlugins({LEEWAY_TEST_PLUGIN}).ok());
  node::LoadCodecPlugins({LEEWAY_TEST_PLUGIN, "/no/such/plugin.so", LEEWAY_TEST_NOT_A_PLUGIN});
  Bench bench;
  TableSpec spec = AddTable("w", Consistency::Asp());
  spec.codec = "plugin_ones";
  spec.error_feedback = ErrorFeedback::kOff;
  const std::uint32_t table = bench.Install(spec);
  proto::Request request = bench.DensePush(0, table, 0);
  request.codec = compress::IdOf("plugin_ones");
  bench.Send(0, request, {runtime::Buffer::CopyOf("x")});
  EXPECT_TRUE(bench.TakeReply(0).reply().result.ok());
  EXPECT_THAT(bench.PullNow(0, table, 0), Each(1));
}

// A worker that sends what its codec cannot decode is told so, counted and dropped.
TEST(EncodedPush, ThatCannotBeDecodedEndsTheConnection) {
  for (const Consistency& consistency : {Consistency::Bsp(), Consistency::Asp()}) {
    Bench bench;
    TableSpec spec = AddTable("w", consistency);
    spec.codec = "onebit";
    const std::uint32_t table = bench.Install(spec);
    proto::Request request = bench.DensePush(0, table, 0);
    request.codec = compress::IdOf("onebit");
    bench.Send(0, request, {runtime::Buffer::CopyOf("nonsense!")});
    EXPECT_EQ(bench.TakeReply(0).reply().result.code(), StatusCode::kInvalidArgument);
    EXPECT_TRUE(bench.van().Dropped(bench.PeerOf(0)).has_value());
    EXPECT_EQ(bench.counters().malformed, 1u);
    // Another codec than the table's is a mistake, and no offence.
    request = bench.DensePush(1, table, 0);
    request.codec = compress::IdOf("qsgd");
    bench.Send(1, request, {runtime::Buffer::CopyOf("nonsense!")});
    EXPECT_EQ(bench.TakeReply(1).reply().result.code(), StatusCode::kInvalidArgument);
    EXPECT_FALSE(bench.van().Dropped(bench.PeerOf(1)).has_value());
  }
}

TEST(Plugin, ThatCannotBeLoadedSaysWhy) {
  const absl::Status missing = node::LoadPlugins({"/no/such/plugin.so"});
  EXPECT_EQ(missing.code(), StatusCode::kNotFound);
  EXPECT_THAT(missing.message(), HasSubstr("LEEWAY_PLUGINS"));
  EXPECT_THAT(missing.message(), HasSubstr("/no/such/plugin.so"));
  EXPECT_THAT(missing.message(), HasSubstr("No such file"));
  const absl::Status other = node::LoadPlugins({LEEWAY_TEST_NOT_A_PLUGIN});
  EXPECT_EQ(other.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(other.message(), HasSubstr("LeewayRegister"));
}

TEST(Status, IsJsonWithCountersAndClocks) {
  Bench bench;
  const std::uint32_t table = bench.Install(AddTable("w", Consistency::Ssp(3)));
  EXPECT_TRUE(bench.PushNow(0, table, 0, 1).ok());
  bench.Tick(0, 2);
  bench.Take(0);
  const van::PeerId tool = bench.ConnectAs({Role::kTool, 0, 7, 0, 0});
  bench.SendFrom(tool, proto::StatusRequest{.request = 3});
  const std::vector<Answer> answers = bench.TakeFrom(tool);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(std::get<proto::StatusReply>(answers[0].message).request, 3u);
  const std::string json = answers[0].text();
  EXPECT_THAT(json, HasSubstr(R"("role":"server")"));
  EXPECT_THAT(json, HasSubstr(R"("pushes_applied":1)"));
  EXPECT_THAT(json, HasSubstr(R"({"worker":0,"clock":2},{"worker":1,"clock":0})"));
  EXPECT_THAT(json, HasSubstr(R"("name":"w","consistency":"ssp:3")"));
}

TEST(Endpoints, FollowTheConfiguration) {
  struct {
    const char *scheduler, *interface, *host, *bound, *announced;
  } cases[] = {
      {"127.0.0.1:9000", "", "", "127.0.0.1", "tcp://1.2.3.4:5"},
      {"tcp://localhost:9000", "", "", "127.0.0.1", "tcp://1.2.3.4:5"},
      {"tcp://[::1]:9000", "", "", "127.0.0.1", "tcp://1.2.3.4:5"},
      {"ipc:///tmp/x", "", "", "127.0.0.1", "tcp://1.2.3.4:5"},
      {"10.0.0.1:9000", "", "", "", "tcp://1.2.3.4:5"},
      {"10.0.0.1:9000", "eth1", "", "eth1", "tcp://1.2.3.4:5"},
      {"10.0.0.1:9000", "eth1", "node7", "eth1", "tcp://node7:5"},
      {"10.0.0.1:9000", "", "node7", "", "tcp://node7:5"},
      {"10.0.0.1:9000", "", "127.0.0.1", "127.0.0.1", "tcp://127.0.0.1:5"},
      {"10.0.0.1:9000", "", "fe80::1", "", "tcp://[fe80::1]:5"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.scheduler);
    Config config;
    config.scheduler = c.scheduler;
    config.interface = c.interface;
    config.host = c.host;
    EXPECT_EQ(BindHost(config), c.bound);
    EXPECT_EQ(AnnouncedEndpoint(config, "tcp://1.2.3.4:5"), c.announced);
    EXPECT_EQ(AnnouncedEndpoint(config, "sim://server/1"), "sim://server/1");
  }
}

}  // namespace
}  // namespace leeway::ps
