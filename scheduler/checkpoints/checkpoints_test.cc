#include "scheduler/checkpoints/checkpoints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "checkpoint/checksum.h"
#include "checkpoint/folder.h"
#include "runtime/sim/sim_file_system.h"
#include "runtime/sim/sim_world.h"

namespace leeway::scheduler {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kDirectory[] = "saved";
constexpr std::uint32_t kShards = 3;
constexpr std::uint32_t kFirst = 2;  // the node of the first server

// Two servers, nodes 2 and 3, with shards 0, 1 and 2, which answer at once, as the test wants it.
class CheckpointsTest : public ::testing::Test {
 protected:
  struct Options {
    std::string directory = {};
    std::uint64_t every_s = 0, every_clocks = 0, keep = 0, full_every = 1;
  };
  void Start(const Options& options) {
    config_.checkpoint_dir = options.directory;
    config_.checkpoint_every_s = options.every_s;
    config_.checkpoint_every_clocks = options.every_clocks;
    config_.checkpoint_keep = options.keep;
    config_.checkpoint_full_every = options.full_every;
    config_.checkpoint_timeout = absl::Seconds(20);
    config_.resend_interval = absl::Seconds(1);
    for (const Role role : {Role::kServer, Role::kServer, Role::kWorker}) Admit(role);
    checkpoints_ = std::make_unique<Checkpoints>(
        &config_, host_.get(), runner_->loop(), &members_, [this] { return facts_; },
        [this](std::uint32_t node, const proto::AnyMessage& message) { Tell(node, message); });
    Tick();
  }
  void Admit(Role role) {
    proto::Join join;
    join.role = role;
    join.elastic = true;
    if (role == Role::kServer) join.endpoints = {"sim://server/0"};
    van::Identity identity;
    identity.role = role;
    identity.incarnation = members_.next_id();
    (*members_.Admit(join, identity))->heard = runner_->loop()->Now();
  }
  ~CheckpointsTest() override { checkpoints_.reset(); }
  void Tick() {
    checkpoints_->Tick();
    runner_->loop()->After(absl::Milliseconds(100), [this] { Tick(); });
  }

  absl::StatusOr<Checkpoints::Saved> Save(bool incremental = false,
                                          const std::string& directory = kDirectory) {
    std::optional<absl::StatusOr<Checkpoints::Saved>> saved;
    checkpoints_->Save({.directory = directory, .incremental = incremental, .at = at_},
                       [&](const auto& result) { saved = result; });
    EXPECT_TRUE(world_.RunUntil([&] { return saved.has_value(); }, absl::Minutes(5)).ok());
    return saved.has_value() ? *saved : absl::UnknownError("nothing was answered");
  }

  // ---- the cluster ----
  void Tell(std::uint32_t node, const proto::AnyMessage& message) {
    if (lost_messages_ > 0) {
      --lost_messages_;
      return;
    }
    if (silent_.contains(node)) return;
    if (const auto* prepare = std::get_if<proto::CheckpointPrepare>(&message)) {
      runner_->loop()->Post([this, node, id = prepare->checkpoint] {
        checkpoints_->OnPrepared(node,
                                 {.checkpoint = id, .fastest_clock = fastest_ + node - kFirst});
      });
    } else if (const auto* cut = std::get_if<proto::CheckpointCut>(&message)) {
      cuts_.push_back(*cut);
      runner_->loop()->Post([this, node, cut = *cut] { Write(node, cut); });
    }
  }
  void Write(std::uint32_t node, const proto::CheckpointCut& cut) {
    if (never_written_) return;
    proto::CheckpointWritten written{.checkpoint = cut.checkpoint};
    if (aborts_ > 0) {
      --aborts_;
      written.result = absl::OutOfRangeError("clock has passed");
    } else if (!failure_.ok()) {
      written.result = failure_;
    } else {
      for (std::uint32_t shard = node - kFirst; shard < kShards; shard += 2) {
        if (shard == missing_shard_) continue;
        const std::string name = checkpoint::ShardFileName(shard);
        auto file = host_->files()->Create(checkpoint::JoinPath(cut.directory, name));
        ASSERT_TRUE(file.ok()) << file.status();
        ASSERT_TRUE((*file)->Append("12345").ok());
        ASSERT_TRUE((*file)->Sync().ok());
        written.files.push_back(
            {.name = name, .bytes = bytes_said_, .checksum = checkpoint::ChecksumOf("12345")});
      }
    }
    checkpoints_->OnWritten(node, written);
  }

  std::vector<std::string> Names() {
    std::vector<std::string> names;
    const auto found = checkpoint::ListCheckpoints(host_->files(), kDirectory);
    for (const checkpoint::Found& one : *found) {
      names.push_back(absl::StrCat(one.name, one.manifest.ok() ? "" : "?"));
    }
    return names;
  }

  runtime::SimWorld world_{1};
  std::unique_ptr<runtime::Host> host_ = world_.NewHost("scheduler");
  std::unique_ptr<runtime::LoopRunner> runner_ = host_->Spawn("loop");
  MembershipTable members_{2, 1};
  Config config_;
  Checkpoints::Facts facts_{.ready = absl::OkStatus(),
                            .cluster = 77,
                            .epoch = 1,
                            .num_shards = kShards,
                            .block_bytes = 1 << 20,
                            .servers = {kFirst, kFirst + 1},
                            .tables = {{.id = 1, .spec = TableSpec::Dense("w", {10})}}};
  std::uint64_t fastest_ = 40;
  std::optional<std::uint64_t> at_;
  std::set<std::uint32_t> silent_;
  int lost_messages_ = 0;
  bool never_written_ = false;
  int aborts_ = 0;
  absl::Status failure_;
  std::uint32_t missing_shard_ = ~0u;
  std::uint64_t bytes_said_ = 5;
  std::vector<proto::CheckpointCut> cuts_;
  std::unique_ptr<Checkpoints> checkpoints_;
};

// Servers take no lower numbers than they have seen: the calendar, which may be set back between
// two lives of a scheduler, has no part in them.
TEST_F(CheckpointsTest, NumbersGrowWithEveryLifeOfTheScheduler) {
  Start({});
  checkpoints_->NumberFrom(4);
  ASSERT_TRUE(Save().ok());
  const std::uint64_t first = cuts_.back().checkpoint;
  EXPECT_EQ(first, (4ull << 32) + 1);
  ASSERT_TRUE(Save().ok());
  EXPECT_GT(cuts_.back().checkpoint, first);
  const std::uint64_t last = cuts_.back().checkpoint;
  checkpoints_->NumberFrom(5);
  ASSERT_TRUE(Save().ok());
  EXPECT_GT(cuts_.back().checkpoint, last);
}

TEST_F(CheckpointsTest, OneIsSaved) {
  Start({});
  const auto saved = Save();
  ASSERT_TRUE(saved.ok()) << saved.status();
  EXPECT_EQ(saved->path, "saved/ckpt-00000001");
  const auto manifest = checkpoint::ReadManifest(host_->files(), saved->path);
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_EQ(*manifest, saved->manifest);
  EXPECT_EQ(manifest->clock, 41u);  // held pushes: the fastest worker's clock will do
  EXPECT_EQ(manifest->cluster, 77u);
  EXPECT_EQ(manifest->tables, facts_.tables);
}

// Shards have those tables that there were when they were taken.
TEST_F(CheckpointsTest, TablesThatWereCreatedMeanwhileAreInTheManifest) {
  Start({});
  never_written_ = true;
  std::optional<absl::StatusOr<Checkpoints::Saved>> saved;
  checkpoints_->Save({.directory = kDirectory}, [&](const auto& result) { saved = result; });
  ASSERT_TRUE(world_.RunUntil([&] { return cuts_.size() == 2; }, absl::Minutes(1)).ok());
  facts_.tables.push_back({.id = 2, .spec = TableSpec::Sparse("late", 1)});
  never_written_ = false;
  ASSERT_TRUE(world_.RunUntil([&] { return saved.has_value(); }, absl::Minutes(1)).ok());
  ASSERT_TRUE(saved->ok()) << saved->status();
  EXPECT_EQ((*saved)->manifest.tables, facts_.tables);
}

TEST_F(CheckpointsTest, WithABoundTheCutIsBehindAllThatWasPushed) {
  facts_.tables[0].spec.consistency = Consistency::Ssp(2);
  Start({});
  EXPECT_EQ(Save()->manifest.clock, 42u);
}

TEST_F(CheckpointsTest, LostRequestsAreRepeated) {
  Start({});
  lost_messages_ = 3;
  EXPECT_TRUE(Save().ok());
}

TEST_F(CheckpointsTest, AClockThatHasPassedIsTriedAgainFurtherAway) {
  Start({});
  aborts_ = 3;
  const auto saved = Save();
  ASSERT_TRUE(saved.ok()) << saved.status();
  EXPECT_EQ(saved->manifest.clock, 41u + 3);
  EXPECT_THAT(Names(), ElementsAre(saved->manifest.name));  // nothing is left of the others
}

TEST_F(CheckpointsTest, AClockAtWhichWorkersWaitIsTaken) {
  at_ = 39;  // others are further
  Start({});
  EXPECT_EQ(Save()->manifest.clock, 39u);
  aborts_ = 1;  // it went on meanwhile
  EXPECT_EQ(Save()->manifest.clock, 41u + 1);
  facts_.tables[0].spec.consistency = Consistency::Ssp(2);
  EXPECT_EQ(Save()->manifest.clock, 42u);  // what is applied at once cannot be told apart
}

TEST_F(CheckpointsTest, AMissingShardFailsTheCheckpoint) {
  Start({});
  missing_shard_ = 1;
  const auto saved = Save();
  EXPECT_EQ(saved.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(saved.status().message()), HasSubstr("2 files of 3 shards"));
  world_.RunFor(absl::Seconds(1));
  EXPECT_THAT(Names(), IsEmpty());
}

TEST_F(CheckpointsTest, AServersErrorIsReported) {
  Start({});
  facts_.model_bytes = 4'999'999'999;
  failure_ = absl::ResourceExhaustedError("no space left");
  const auto saved = Save();
  EXPECT_EQ(saved.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(saved.status().message()), HasSubstr("server"));
  EXPECT_THAT(std::string(saved.status().message()),
              HasSubstr("a full checkpoint takes about 5000 MB in all"));
  world_.RunFor(absl::Seconds(1));
  EXPECT_THAT(Names(), IsEmpty());
  failure_ = absl::OkStatus();
  EXPECT_TRUE(Save().ok());
}

TEST_F(CheckpointsTest, AMissingServerIsNamed) {
  Start({});
  silent_ = {kFirst + 1};
  const auto saved = Save();
  EXPECT_EQ(saved.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(saved.status().message()),
              HasSubstr("not heard from server 1 (last heard "));
  EXPECT_THAT(std::string(saved.status().message()), HasSubstr("LEEWAY_CHECKPOINT_TIMEOUT_MS"));
}

TEST_F(CheckpointsTest, TheWorkerThatHoldsUpTheClockIsNamed) {
  Start({});
  never_written_ = true;
  const auto saved = Save();
  EXPECT_EQ(saved.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(saved.status().message()), HasSubstr("until all workers have reached"));
  EXPECT_THAT(std::string(saved.status().message()),
              HasSubstr("the most silent is worker 0, last heard "));
}

TEST_F(CheckpointsTest, AFolderThatIsNotSharedIsFound) {
  Start({});
  bytes_said_ = 6;  // so much was written, on another machine
  EXPECT_EQ(Save().status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(CheckpointsTest, WhenAServerGoesItBeginsAnew) {
  Start({});
  silent_ = {kFirst + 1};
  runner_->loop()->After(absl::Seconds(3), [this] {
    facts_.servers = {kFirst};
    facts_.epoch = 2;
    facts_.num_shards = 1;
  });
  missing_shard_ = 2;
  const auto saved = Save();
  ASSERT_TRUE(saved.ok()) << saved.status();
  EXPECT_EQ(saved->manifest.num_shards, 1u);
}

TEST_F(CheckpointsTest, IncrementalOnesAddToTheNewest) {
  Start({});
  EXPECT_EQ(Save(true)->manifest.base, std::nullopt);  // there is none to add to
  const auto second = Save(true);
  ASSERT_TRUE(second->manifest.base.has_value());
  EXPECT_EQ(second->manifest.base->name, "ckpt-00000001");
  EXPECT_EQ(cuts_.back().base, "ckpt-00000001");
  facts_.cluster = 78;  // another one knows nothing of what was written since
  EXPECT_EQ(Save(true)->manifest.base, std::nullopt);
}

// Such a checkpoint could not be read.
TEST_F(CheckpointsTest, AnIncrementalOneAddsToNoneWhoseOwnBaseIsGone) {
  Start({});
  ASSERT_TRUE(Save().ok());
  ASSERT_TRUE(Save(true)->manifest.base.has_value());
  ASSERT_TRUE(checkpoint::RemoveCheckpoint(host_->files(), "saved/ckpt-00000001").ok());
  EXPECT_EQ(Save(true)->manifest.base, std::nullopt);
}

// The number of shards is the cluster's setting.
TEST_F(CheckpointsTest, AnIncrementalOneAddsToNoneOfOtherShards) {
  Start({});
  ASSERT_TRUE(Save().ok());
  facts_.num_shards = 2;
  missing_shard_ = 2;
  const auto saved = Save(true);
  ASSERT_TRUE(saved.ok()) << saved.status();
  EXPECT_EQ(saved->manifest.base, std::nullopt);
}

TEST_F(CheckpointsTest, ChainsEndWhereTheyCouldNotBeRead) {
  Start({});
  for (std::size_t i = 0; i < checkpoint::kChainMax; ++i) ASSERT_TRUE(Save(true).ok());
  const auto saved = Save(true);
  ASSERT_TRUE(saved.ok()) << saved.status();
  EXPECT_EQ(saved->manifest.base, std::nullopt);
  EXPECT_TRUE(checkpoint::ReadChain(host_->files(), saved->path).ok());
}

// A server may be writing still into the folder of an attempt that was given up.
TEST_F(CheckpointsTest, EachAttemptHasAFolderOfItsOwn) {
  Start({});
  aborts_ = 3;
  ASSERT_TRUE(Save().ok());
  std::map<std::string, std::uint64_t> attempts;
  for (const proto::CheckpointCut& cut : cuts_) {
    EXPECT_EQ(attempts.emplace(cut.directory, cut.checkpoint).first->second, cut.checkpoint);
  }
  EXPECT_GT(attempts.size(), 2u);
}

TEST_F(CheckpointsTest, FilesOfAnotherAttemptDoNotCount) {
  Start({});
  never_written_ = true;
  std::optional<absl::StatusOr<Checkpoints::Saved>> saved;
  checkpoints_->Save({.directory = kDirectory}, [&](const auto& result) { saved = result; });
  ASSERT_TRUE(world_.RunUntil([&] { return !cuts_.empty(); }, absl::Seconds(5)).ok());
  world_.RunFor(absl::Milliseconds(10));  // both have heard of it
  never_written_ = false;
  proto::CheckpointCut before = cuts_.back();
  --before.checkpoint;
  runner_->loop()->Post([&] {
    for (const std::uint32_t node : {kFirst, kFirst + 1}) Write(node, before);
  });
  world_.RunFor(absl::Milliseconds(50));
  EXPECT_FALSE(saved.has_value());
}

// The files of a failed one are removed when it fails, not only when the next one is saved.
TEST_F(CheckpointsTest, AFailedOneLeavesNothing) {
  Start({});
  bytes_said_ = 6;
  EXPECT_FALSE(Save().ok());
  world_.RunFor(absl::Seconds(1));
  EXPECT_THAT(Names(), IsEmpty());
}

TEST_F(CheckpointsTest, FilesOfADeadSchedulerAreRemovedWhereFewAreKept) {
  Start({.directory = kDirectory, .keep = 2});
  ASSERT_TRUE(host_->files()->CreateDirectories("saved/ckpt-00000001").ok());
  ASSERT_TRUE(Save().ok());
  world_.RunFor(absl::Seconds(1));
  EXPECT_THAT(Names(), ElementsAre("ckpt-00000002"));
}

TEST_F(CheckpointsTest, OldOnesAreRemovedOnlyOnceTheNextIsThere) {
  Start({.directory = kDirectory, .keep = 1});
  ASSERT_TRUE(Save().ok());
  bytes_said_ = 6;
  EXPECT_FALSE(Save().ok());
  world_.RunFor(absl::Seconds(1));
  EXPECT_THAT(Names(), ElementsAre("ckpt-00000001"));
}

TEST_F(CheckpointsTest, TooManyThatWaitAreRefused) {
  Start({});
  silent_ = {kFirst, kFirst + 1};
  absl::Status last;
  for (std::size_t i = 0; i <= kSavesWaitingMax; ++i) {
    checkpoints_->Save({.directory = kDirectory},
                       [&](const auto& result) { last = result.status(); });
  }
  EXPECT_EQ(last.code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(CheckpointsTest, OnesThatAreAskedForTogetherComeOneAfterAnother) {
  Start({});
  int saved = 0;
  for (int i = 0; i < 5; ++i) {
    checkpoints_->Save({.directory = kDirectory}, [&](const auto& result) {
      EXPECT_TRUE(result.ok()) << result.status();
      ++saved;
    });
  }
  EXPECT_TRUE(world_.RunUntil([&] { return saved == 5; }, absl::Minutes(1)).ok());
  EXPECT_EQ(Names().size(), 5u);
}

TEST_F(CheckpointsTest, ByTimeAndTheNewestAreKept) {
  Start({.directory = kDirectory, .every_s = 10, .keep = 2});
  world_.RunFor(absl::Seconds(65));
  EXPECT_THAT(Names(), ElementsAre(checkpoint::CheckpointName(5), checkpoint::CheckpointName(6)));
}

// Checkpoints of another cluster, and files that are none, are not removed to keep few.
TEST_F(CheckpointsTest, ForeignFilesStay) {
  Start({.directory = kDirectory, .keep = 1});
  facts_.cluster = 78;
  ASSERT_TRUE(Save().ok());
  facts_.cluster = 77;
  runtime::FileSystem* const files = host_->files();
  const std::string notes = "saved/ckpt-00000002/notes.txt";
  ASSERT_TRUE(Save().ok());
  ASSERT_TRUE(files->Create(notes).ok());
  ASSERT_TRUE(files->CreateDirectories("saved/ckpt-00000000/folder").ok());
  ASSERT_TRUE(files->CreateDirectories("saved/ckpt-18446744073709551615").ok());
  ASSERT_TRUE(files->CreateDirectories("saved/ckpt-best").ok());
  ASSERT_TRUE(Save().ok());
  ASSERT_TRUE(Save().ok());
  EXPECT_THAT(Names(),
              ElementsAre("ckpt-00000000?", "ckpt-00000001", "ckpt-00000002?", "ckpt-00000004"));
  EXPECT_TRUE(files->Exists(notes));
  EXPECT_TRUE(files->Exists("saved/ckpt-00000000/folder"));
  EXPECT_TRUE(files->Exists("saved/ckpt-best"));
  EXPECT_TRUE(files->Exists("saved/ckpt-18446744073709551615"));
}

TEST_F(CheckpointsTest, AfterTheLastNumberThereIsNone) {
  Start({});
  const std::string last = checkpoint::CheckpointName(checkpoint::kNumberMax);
  ASSERT_TRUE(host_->files()->CreateDirectories(checkpoint::JoinPath(kDirectory, last)).ok());
  const absl::Status refused = Save().status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr(last));
  EXPECT_TRUE(Save(false, "another").ok()) << "a number is a folder's";
  ASSERT_TRUE(host_->files()->Remove(checkpoint::JoinPath(kDirectory, last)).ok());
  EXPECT_TRUE(Save().ok()) << "and it may be moved away";
}

TEST_F(CheckpointsTest, TimeCountsFromWhenThereIsSomethingToSave) {
  facts_.ready = absl::UnavailableError("the cluster is not complete");
  Start({.directory = kDirectory, .every_s = 10});
  world_.RunFor(absl::Seconds(100));
  facts_.ready = absl::OkStatus();
  world_.RunFor(absl::Seconds(9));
  EXPECT_THAT(Names(), IsEmpty());
  world_.RunFor(absl::Seconds(3));
  EXPECT_EQ(Names().size(), 1u);
}

TEST_F(CheckpointsTest, ByClocks) {
  Start({.directory = kDirectory, .every_clocks = 100});
  world_.RunFor(absl::Seconds(10));
  EXPECT_THAT(Names(), IsEmpty());
  fastest_ = 99;  // the faster server says 100
  world_.RunFor(absl::Seconds(10));
  EXPECT_EQ(Names().size(), 1u);
  fastest_ = 150;
  world_.RunFor(absl::Seconds(10));
  EXPECT_EQ(Names().size(), 1u);
  fastest_ = 210;
  world_.RunFor(absl::Seconds(10));
  EXPECT_EQ(Names().size(), 2u);
}

TEST_F(CheckpointsTest, SomeFullOnesAndWhatWasAdded) {
  Start({.directory = kDirectory, .every_s = 10, .keep = 1, .full_every = 3});
  world_.RunFor(absl::Seconds(55));
  // 4 is full, 5 adds to it; 1 to 3 are not needed any more.
  EXPECT_THAT(Names(), ElementsAre(checkpoint::CheckpointName(4), checkpoint::CheckpointName(5)));
}

TEST_F(CheckpointsTest, NoFolderIsAnError) {
  Start({});
  EXPECT_THAT(std::string(Save(false, "").status().message()), HasSubstr("LEEWAY_CHECKPOINT_DIR"));
}

TEST_F(CheckpointsTest, AClusterThatIsNotReadyIsNotSaved) {
  Start({});
  facts_.ready = absl::UnavailableError("the cluster is not complete");
  EXPECT_EQ(Save().status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(CheckpointsTest, ADiskThatFailsLeavesWhatIsThere) {
  Start({});
  ASSERT_TRUE(Save().ok());
  world_.files("scheduler")->SetFaults({.error_probability = 1});
  EXPECT_FALSE(Save().ok());
  world_.files("scheduler")->SetFaults({});
  EXPECT_TRUE(checkpoint::ReadManifest(host_->files(), "saved/ckpt-00000001").ok());
}

TEST_F(CheckpointsTest, WhenTheClusterEndsWaitingSavesFail) {
  Start({});
  silent_ = {kFirst, kFirst + 1};
  absl::Status told;
  checkpoints_->Save({.directory = kDirectory},
                     [&](const auto& result) { told = result.status(); });
  world_.RunFor(absl::Seconds(1));
  checkpoints_->Stop();
  EXPECT_EQ(told.code(), absl::StatusCode::kUnavailable);
}

// A server may have been writing there still.
TEST_F(CheckpointsTest, FilesThatCouldNotBeRemovedAreRemovedBeforeTheNextOne) {
  Start({});
  silent_ = {kFirst, kFirst + 1};
  checkpoints_->Save({.directory = kDirectory}, [](const auto&) {});
  world_.RunFor(absl::Milliseconds(300));
  const std::string foreign = "saved/ckpt-00000001/notes";
  ASSERT_TRUE(host_->files()->Create(foreign).ok());
  failure_ = absl::InternalError("no");
  silent_.clear();
  world_.RunFor(absl::Seconds(3));
  failure_ = absl::OkStatus();
  ASSERT_EQ(Names(), std::vector<std::string>{"ckpt-00000001?"});
  ASSERT_TRUE(host_->files()->Remove(foreign).ok());
  ASSERT_TRUE(Save().ok());
  EXPECT_THAT(Names(), ElementsAre("ckpt-00000002"));
}

// The folder may be made only after the attempt was given up.
TEST_F(CheckpointsTest, GivenUpWhileItIsOpenedItLeavesNothing) {
  Start({});
  absl::Status told;
  checkpoints_->Save({.directory = kDirectory},
                     [&](const auto& result) { told = result.status(); });
  checkpoints_->Stop();
  EXPECT_EQ(told.code(), absl::StatusCode::kUnavailable);
  world_.RunFor(absl::Seconds(1));
  EXPECT_THAT(Names(), IsEmpty());
}

// The files of an attempt that is tried again are removed as well.
TEST_F(CheckpointsTest, AnAttemptThatIsTriedAgainLeavesNothing) {
  Start({});
  aborts_ = 1;
  ASSERT_TRUE(Save().ok());
  world_.RunFor(absl::Seconds(1));
  EXPECT_EQ(Names().size(), 1u);
}

// The workers may have gone on since.
TEST_F(CheckpointsTest, ClocksThatWereToldBeforeAnAttemptDoNotCount) {
  Start({});
  silent_ = {kFirst, kFirst + 1};
  checkpoints_->Save({.directory = kDirectory}, [](const auto&) {});
  world_.RunFor(absl::Milliseconds(500));
  for (const std::uint32_t node : {kFirst, kFirst + 1}) {
    checkpoints_->OnPrepared(node, {.checkpoint = 0, .fastest_clock = 5});
  }
  silent_.clear();
  world_.RunFor(absl::Milliseconds(200));
  EXPECT_THAT(cuts_, IsEmpty());
  world_.RunFor(absl::Seconds(2));
  ASSERT_FALSE(cuts_.empty());
  EXPECT_EQ(cuts_[0].clock, 41u);
}

TEST_F(CheckpointsTest, RemembersTheLastGoodOneAndTheLastFailure) {
  Start({.directory = kDirectory});
  EXPECT_FALSE(checkpoints_->history().last_good.has_value());
  EXPECT_FALSE(checkpoints_->history().last_failure.has_value());
  const absl::StatusOr<Checkpoints::Saved> saved = Save();
  ASSERT_TRUE(saved.ok()) << saved.status();
  const absl::Time saved_at = runner_->loop()->Now();
  world_.RunFor(absl::Minutes(5));
  failure_ = absl::ResourceExhaustedError("no space left");
  EXPECT_FALSE(Save().ok());
  const Checkpoints::History& history = checkpoints_->history();
  ASSERT_TRUE(history.last_good.has_value());
  EXPECT_EQ(history.last_good->path, saved->path);
  EXPECT_EQ(history.last_good->clock, saved->manifest.clock);
  EXPECT_LE(absl::AbsDuration(history.last_good->at - saved_at), absl::Seconds(1));
  ASSERT_TRUE(history.last_failure.has_value());
  EXPECT_THAT(history.last_failure->reason, HasSubstr("no space left"));
  EXPECT_GT(history.last_failure->at - history.last_good->at, absl::Minutes(4));
}

}  // namespace
}  // namespace leeway::scheduler
