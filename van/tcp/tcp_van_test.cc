// Tests of the TCP transport alone: full system buffers, arrival of everything sent whatever the
// sender does next, and handlers that run the loop.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "van/tcp/tcp_receiver.h"
#include "van/tcp/tcp_sender.h"
#include "van/tcp/tcp_transport.h"
#include "van/testing/tcp_feed_receiver.h"
#include "van/testing/test_processes.h"

namespace leeway::van {
namespace {

// Two vans on loops that this thread runs.
class TcpPair {
 public:
  explicit TcpPair(const Limits& limits = {}) {
    server = factory_->New(&server_loop, IdentityOf(Role::kServer, 2), limits, &at_server);
    worker = factory_->New(&worker_loop, IdentityOf(Role::kWorker, 3), limits, &at_worker);
    at_server.admits = server.get();
    const std::string address = server->Listen("tcp://127.0.0.1:0").value();
    peer = worker->Connect(address, absl::Seconds(30)).value();
    EXPECT_TRUE(RunUntil([&] { return at_worker.IsUp(peer); }));
  }
  bool RunUntil(const std::function<bool()>& done) {
    const absl::Time until = server_loop.Now() + absl::Seconds(60);
    while (!done() && server_loop.Now() < until) {
      server_loop.RunReady();
      worker_loop.RunReady();
    }
    return done();
  }

  runtime::RealLoop server_loop{1}, worker_loop{2};
  Recorder at_server, at_worker;

 private:
  std::unique_ptr<Factory> factory_ = NewTcpFactory();

 public:
  std::unique_ptr<Van> server, worker;
  PeerId peer = 0;
};

Limits Unlimited() {
  Limits limits;
  limits.send_window_bytes = 1ull << 40;
  return limits;
}

// ---- more than the system takes ----

TEST(TcpFull, MessagesOfAllSizesArriveInOrder) {
  TcpPair pair(Unlimited());
  DoneProbe done;
  constexpr int kMessages = 300;
  const auto size = [](int i) { return static_cast<std::size_t>(i % 7) * i * 211 + i % 3; };
  for (int i = 0; i < kMessages; ++i) {
    ASSERT_TRUE(pair.worker
                    ->Send(pair.peer,
                           TextMessage(Pattern(i % 100 * 97, i), {Pattern(size(i), i), "x"}),
                           done.New())
                    .ok());
  }
  ASSERT_TRUE(pair.RunUntil(
      [&] { return pair.at_server.messages.size() == kMessages && done.state().called == 300; }));
  for (int i = 0; i < kMessages; ++i) {
    const Message& message = pair.at_server.messages[i].message;
    ASSERT_TRUE(message.header.text() == Pattern(i % 100 * 97, i)) << i;
    ASSERT_TRUE(message.payload[0].text() == Pattern(size(i), i)) << i;
    ASSERT_EQ(message.payload[1].text(), "x");
  }
  for (const absl::Status& result : done.state().results) EXPECT_TRUE(result.ok());
}

TEST(TcpFull, LongHeadersAndFramesOfAllKindsArriveUnchanged) {
  TcpPair pair;
  const std::string header = Pattern(3'000'000, 1);
  const std::vector<std::string> payload = {Pattern(5'000'001, 2), "", Pattern(4097, 3), "x",
                                            Pattern(2'000'000, 4)};
  DoneProbe done;
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(pair.worker->Send(pair.peer, TextMessage(header, payload), done.New()).ok());
    ASSERT_TRUE(pair.worker->Send(pair.peer, TextMessage("after it"), done.New()).ok());
  }
  ASSERT_TRUE(pair.RunUntil(
      [&] { return pair.at_server.messages.size() == 6 && done.state().called == 6; }));
  for (int m = 0; m < 6; m += 2) {
    const Message& whole = pair.at_server.messages[m].message;
    EXPECT_TRUE(whole.header.text() == header);
    ASSERT_EQ(whole.payload.size(), payload.size());
    for (std::size_t i = 0; i < payload.size(); ++i) {
      EXPECT_TRUE(whole.payload[i].text() == payload[i]) << i;
    }
  }
}

// Together they are far more than the system takes; each is a small part of that.
constexpr int kMany = 1024;
constexpr std::size_t kManyBytes = 64 << 10;

TEST(TcpFull, ASendIsDoneOnlyWhenTheSystemHasItAll) {
  TcpPair pair(Unlimited());
  DoneProbe first, last;
  auto live = std::make_shared<std::atomic<int>>(0);
  for (int i = 0; i < kMany; ++i) {
    Message message = TextMessage("m");
    message.payload.push_back(TrackedBuffer(kManyBytes, 'x', live));
    ASSERT_TRUE(
        pair.worker->Send(pair.peer, std::move(message), i == 0 ? first.New() : last.New()).ok());
  }
  // The server's loop does not run.
  ASSERT_TRUE(TurnUntil(&pair.worker_loop, [&] { return first.state().called == 1; }));
  while (pair.worker_loop.RunReady()) {
  }
  EXPECT_LT(last.state().called, kMany - 1);
  EXPECT_EQ(*live, kMany - 1 - last.state().called);
  ASSERT_TRUE(pair.RunUntil([&] { return last.state().called == kMany - 1 && *live == 0; }));
}

TEST(TcpFull, AVanThatClosesWaitsForRoomButNotForLong) {
  auto pair = std::make_unique<TcpPair>(Unlimited());
  DoneProbe done;
  for (int i = 0; i < kMany; ++i) {
    ASSERT_TRUE(
        pair->worker->Send(pair->peer, TextMessage("m", {Pattern(kManyBytes, i)}), done.New())
            .ok());
  }
  const absl::Time start = pair->worker_loop.Now();
  pair->worker.reset();  // the server's loop does not run
  EXPECT_LT(pair->worker_loop.Now() - start, absl::Seconds(5));
  EXPECT_EQ(done.state().called, kMany);
  EXPECT_EQ(done.state().results.back().code(), absl::StatusCode::kUnavailable);
  ASSERT_TRUE(pair->RunUntil([&] { return pair->at_server.downs.size() == 1; }));
  // Everything that had left arrives.
  const auto left = static_cast<std::size_t>(
      std::count(done.state().results.begin(), done.state().results.end(), absl::OkStatus()));
  EXPECT_GE(left, 1u);
  EXPECT_GE(pair->at_server.messages.size() + 1, left);
  for (std::size_t i = 0; i < pair->at_server.messages.size(); ++i) {
    ASSERT_TRUE(pair->at_server.messages[i].message.payload[0].text() ==
                Pattern(kManyBytes, static_cast<int>(i)));
  }
}

TEST(TcpFull, ADisconnectedPeerStillGetsWhatWaited) {
  // More than the system takes, and little enough to be sent within kSocketLinger on a slow
  // machine.
  constexpr int kWaiting = 12;
  TcpPair pair(Unlimited());
  for (int i = 0; i < kWaiting; ++i) {
    ASSERT_TRUE(pair.worker->Send(pair.peer, TextMessage("m", {Pattern(1 << 20, i)})).ok());
  }
  // In the other direction there are many bytes that are never read.
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE(
        pair.server->Send(pair.at_server.ups[0].peer, TextMessage("m", {std::string(300'000, 'u')}))
            .ok());
  }
  pair.worker->Disconnect(pair.peer, absl::OkStatus());
  ASSERT_TRUE(pair.RunUntil([&] { return pair.at_server.downs.size() == 1; }));
  EXPECT_TRUE(pair.at_server.downs[0].why.ok()) << pair.at_server.downs[0].why;
  EXPECT_EQ(pair.at_server.messages.size(), std::size_t{kWaiting});
}

// ---- handlers that turn the loop ----

TEST(TcpNested, AHandlerMayWaitForWhatComesOverTheSameConnection) {
  TcpPair pair;
  std::vector<std::string> order;
  pair.at_server.on_message = [&](PeerId, Message message) {
    const std::string mine(message.header.text());
    order.push_back(mine);
    if (mine != "0") return;
    // All other messages come meanwhile.
    ASSERT_TRUE(pair.RunUntil([&] { return order.size() == 40; }));
    order.push_back("done");
  };
  for (int i = 0; i < 40; ++i) {
    ASSERT_TRUE(pair.worker
                    ->Send(pair.peer, TextMessage(absl::StrCat(i),
                                                  {std::string(i % 4 == 3 ? 200'000 : 5000, 'x')}))
                    .ok());
  }
  ASSERT_TRUE(pair.RunUntil([&] { return order.size() == 41; }));
  for (int i = 0; i < 40; ++i) EXPECT_EQ(order[i], absl::StrCat(i));
}

TEST(TcpNested, TheConnectionMayEndMeanwhile) {
  TcpPair pair;
  int got = 0;
  bool nested_end = false;
  pair.at_server.on_message = [&](PeerId, Message) {
    if (++got != 2) return;
    pair.worker.reset();
    nested_end = pair.RunUntil([&] { return !pair.at_server.downs.empty(); });
  };
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(pair.worker->Send(pair.peer, TextMessage("m", {std::string(5000, 'x')})).ok());
  }
  ASSERT_TRUE(pair.RunUntil([&] { return nested_end; }));
  while (pair.server_loop.RunReady()) {
  }
  EXPECT_EQ(got, 5);
  EXPECT_EQ(pair.at_server.downs.size(), 1u);
}

TEST(TcpNested, TheVanMayGoWithinAMessageWhileMoreLieReady) {
  TcpPair pair;
  int got = 0;
  pair.at_server.on_message = [&](PeerId, Message) {
    if (++got == 3) pair.server.reset();
  };
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(pair.worker->Send(pair.peer, TextMessage("m", {std::string(5000, 'x')})).ok());
  }
  ASSERT_TRUE(pair.RunUntil([&] { return !pair.at_worker.downs.empty(); }));
  EXPECT_EQ(got, 3);
}

// ---- the end of a process ----

TEST(TcpKilled, AWorkerLeavesNothingBehind) {
  const int descriptors = OpenDescriptors();
  const auto factory = NewTcpFactory();
  auto loop = std::make_unique<runtime::RealLoop>(1);
  Recorder recorder;
  std::uint64_t next = 0;
  recorder.on_message = [&](PeerId, Message message) {
    EXPECT_EQ(std::string(message.header.text()), absl::StrCat(++next));
    ASSERT_EQ(message.payload[0].text(), std::string(message.payload[0].size(), 'k'));
  };
  auto server = factory->New(loop.get(), IdentityOf(Role::kServer, 2), {}, &recorder);
  recorder.admits = server.get();
  const std::string address = server->Listen("tcp://127.0.0.1:0").value();
  for (const std::uint64_t messages : {1, 2, 5, 40}) {
    next = 0;
    const std::size_t downs = recorder.downs.size();
    const pid_t child = WorkerThatSendsForEver(factory.get(), address);
    ASSERT_TRUE(TurnUntil(loop.get(), [&] { return next >= messages; }));
    Kill(child);
    ASSERT_TRUE(TurnUntil(loop.get(), [&] { return recorder.downs.size() == downs + 1; }));
    EXPECT_EQ(recorder.downs.back().why.code(), absl::StatusCode::kUnavailable);
  }
  server.reset();
  loop.reset();
  EXPECT_EQ(OpenDescriptors(), descriptors);
}

TEST(TcpKilled, OneThatIsStoppedIsNotMistakenForDead) {
  const auto factory = NewTcpFactory();
  runtime::RealLoop loop(1);
  Recorder recorder;
  auto server = factory->New(&loop, IdentityOf(Role::kServer, 2), {}, &recorder);
  recorder.admits = server.get();
  const std::string address = server->Listen("tcp://127.0.0.1:0").value();
  const pid_t child = InChild([&] {
    runtime::RealLoop child_loop(2);
    Recorder child_recorder;
    auto van = factory->New(&child_loop, IdentityOf(Role::kWorker, 3), {}, &child_recorder);
    child_recorder.on_message = [&](PeerId peer, Message message) {
      van->Send(peer, std::move(message)).IgnoreError();
    };
    van->Connect(address, absl::Seconds(30)).value();
    TurnUntil(&child_loop, [] { return false; });
  });
  ASSERT_TRUE(TurnUntil(&loop, [&] { return recorder.ups.size() == 1; }));
  ::kill(child, SIGSTOP);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, WUNTRACED), child);
  ASSERT_TRUE(server->Send(recorder.ups[0].peer, TextMessage("wake up")).ok());
  EXPECT_FALSE(TurnUntil(
      &loop, [&] { return !recorder.messages.empty() || !recorder.downs.empty(); },
      absl::Milliseconds(100)));
  ::kill(child, SIGCONT);
  EXPECT_TRUE(TurnUntil(&loop, [&] { return recorder.messages.size() == 1; }));
  Kill(child);
}

// ---- sleeping and waking ----

TEST(TcpSleep, NoWakeUpIsLost) { ExpectNoWakeUpIsLost(NewTcpFactory().get(), "127.0.0.1"); }

TEST(TcpSleep, ASenderOnAnotherThreadDoesNotLoseTheSleepersWakeUp) {
  ExpectNoWakeUpIsLostByASharedLoop(NewTcpFactory().get(), "127.0.0.1");
}

// ---- the framing by itself ----

std::vector<Message> SomeMessages() {
  return {TextMessage("a", {"bc", "", std::string(5000, 'd')}), TextMessage(""),
          TextMessage(std::string(70, 'h')), TextMessage("x", {"y"})};
}

// The bytes that a sender makes of these messages.
std::string WrittenBy(TcpSender* sender, const std::vector<Message>& messages) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return "";
  const UniqueFd in(ends[0]), out(ends[1]);
  for (const Message& message : messages) {
    Prefix prefix;
    prefix.frames = static_cast<std::uint16_t>(message.payload.size() + 1);
    sender->Add(prefix, message, nullptr);
  }
  std::string written;
  std::string part(1 << 20, '\0');
  for (auto wrote = TcpSender::Wrote::kFull; wrote != TcpSender::Wrote::kAll;) {
    wrote = sender->Write(in.get());
    const ssize_t got = ::recv(out.get(), part.data(), part.size(), MSG_DONTWAIT);
    if (got > 0) written.append(part, 0, static_cast<std::size_t>(got));
  }
  for (ssize_t got = 1; got > 0;) {
    got = ::recv(out.get(), part.data(), part.size(), MSG_DONTWAIT);
    if (got > 0) written.append(part, 0, static_cast<std::size_t>(got));
  }
  return written;
}

TcpReceiver NewReceiver(TcpScratch* scratch) {
  return TcpReceiver(
      {.first_bytes_max = 1 << 20, .frame_bytes_max = 1 << 24, .payload_frames_max = 8}, scratch,
      [](std::span<const std::byte>, std::uint64_t) { return nullptr; });
}

void ExpectSame(const Arrival& arrival, const Message& expected) {
  ASSERT_EQ(arrival.frames, expected.payload.size() + 1);
  ASSERT_EQ(arrival.head.size(), kPrefixBytes + expected.header.size());
  const auto header = arrival.head.subspan(kPrefixBytes);
  ASSERT_TRUE(std::equal(header.begin(), header.end(), expected.header.data()));
  for (std::size_t i = 0; i < expected.payload.size(); ++i) {
    ASSERT_EQ(arrival.payload[i].text(), expected.payload[i].text());
  }
}

class TcpFraming : public testing::TestWithParam<bool> {
 protected:
  TcpFraming() {
    if (GetParam()) sender_.SendChecksums();
  }
  DoneList done_;
  TcpSender sender_{&done_};
};

INSTANTIATE_TEST_SUITE_P(Checksums, TcpFraming, testing::Bool());

// A receiver reads what a sender wrote into a socket, wherever the bytes are cut.
TEST_P(TcpFraming, NoMatterWhereItIsCut) {
  const std::vector<Message> messages = SomeMessages();
  const std::string bytes = WrittenBy(&sender_, messages);
  EXPECT_EQ(sender_.waiting_bytes(), 0u);
  for (std::size_t cut = 1; cut <= bytes.size(); cut = cut < 200 ? cut + 1 : cut * 2) {
    TcpScratch scratch;
    TcpReceiver receiver = NewReceiver(&scratch);
    std::size_t whole = 0;
    FeedReceiver(&receiver, bytes, cut, [&](const Arrival& arrival) {
      ASSERT_LT(whole, messages.size());
      ExpectSame(arrival, messages[whole++]);
    });
    EXPECT_EQ(whole, messages.size()) << cut;
    EXPECT_TRUE(receiver.idle());
  }
}

// Longer than the part that is checksummed at once, and than a socket takes at once.
TEST_P(TcpFraming, FramesOfManyParts) {
  std::vector<Message> messages;
  for (const std::size_t size : {4096ul, 512ul << 10, (512ul << 10) + 1, 3'000'017ul}) {
    std::string frame(size, '\0');
    for (std::size_t i = 0; i < size; ++i) frame[i] = static_cast<char>(i * 7 + i / 251);
    messages.push_back(TextMessage("m", {frame, "short", frame}));
  }
  const std::string bytes = WrittenBy(&sender_, messages);
  for (const std::size_t cut : {1000ul, 65'536ul, 1'000'003ul}) {
    TcpScratch scratch;
    TcpReceiver receiver = NewReceiver(&scratch);
    std::size_t whole = 0;
    FeedReceiver(&receiver, bytes, cut, [&](const Arrival& arrival) {
      ASSERT_LT(whole, messages.size());
      ExpectSame(arrival, messages[whole++]);
    });
    EXPECT_EQ(whole, messages.size()) << cut;
  }
}

// Whichever bit changes on the way, its message does not arrive, and those before it do.
TEST(TcpChecksums, NoChangedBitGoesUnnoticed) {
  DoneList done;
  TcpSender sender(&done);
  sender.SendChecksums();
  const std::vector<Message> messages = {TextMessage("a", {"bc", ""}),
                                         TextMessage("d", {std::string(4500, 'e')})};
  const std::string bytes = WrittenBy(&sender, messages);
  int noticed_early = 0;
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string changed = bytes;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << bit % 8));
    TcpScratch scratch;
    TcpReceiver receiver = NewReceiver(&scratch);
    std::array<iovec, 2> places;
    ASSERT_EQ(receiver.Places(&places), 1);
    std::memcpy(places[0].iov_base, changed.data(), changed.size());
    receiver.Took(changed.size());
    std::size_t whole = 0;
    absl::StatusOr<bool> next = receiver.Next();
    for (; next.ok() && *next; next = receiver.Next()) {
      ASSERT_LT(whole, messages.size());
      ExpectSame(receiver.TakeArrival(), messages[whole++]);
    }
    // A changed length is detected at once too, without waiting for the frame that it announces.
    ASSERT_EQ(next.status().code(), absl::StatusCode::kDataLoss) << bit;
    ASSERT_LT(whole, messages.size());
    if (whole == 0) ++noticed_early;
  }
  EXPECT_GT(noticed_early, 0);
}

}  // namespace
}  // namespace leeway::van
