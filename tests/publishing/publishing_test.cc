// Published models over whole clusters: every version that a subscription has is that of one
// moment, whatever is pushed meanwhile.
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "leeway/model.h"
#include "leeway/worker.h"
#include "tests/support/local_cluster.h"

namespace leeway::tests {
namespace {

constexpr std::uint64_t kBlockBytes = 4096;
constexpr std::uint64_t kElements = 5 * kBlockBytes / sizeof(float) + 7;

TableSpec Spec(const std::string& name, const Consistency& consistency) {
  TableSpec spec = TableSpec::Dense(name, {kElements});
  spec.consistency = consistency;
  spec.updater.name = "assign";
  return spec;
}

class Publishing : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    LocalCluster::Setup setup;
    setup.servers = 2;
    setup.config.block_bytes = kBlockBytes;
    setup.config.versions_kept = 3;
    auto cluster = LocalCluster::Start(setup);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    cluster_ = *std::move(cluster);
    auto worker = cluster_->Connect();
    ASSERT_TRUE(worker.ok()) << worker.status();
    trainer_ = *std::move(worker);
    for (const char* const name : {"first", "second"}) {
      auto table = trainer_->CreateTable(Spec(name, Consistency::Parse(GetParam()).value()));
      ASSERT_TRUE(table.ok()) << table.status();
      tables_.push_back(*table);
    }
  }

  std::unique_ptr<Worker> Reader() {
    Config config = cluster_->WorkerConfig();
    config.read_only = true;
    auto reader = cluster_->Connect(config);
    EXPECT_TRUE(reader.ok()) << reader.status();
    return *std::move(reader);
  }
  // All elements of both tables become `value`.
  void Push(float value) {
    const std::vector<float> values(kElements, value);
    for (const Table& table : tables_) {
      const absl::Status pushed = trainer_->Wait(table.Push(std::span(values)));
      ASSERT_TRUE(pushed.ok()) << pushed;
    }
    ASSERT_TRUE(trainer_->Clock().ok());
  }
  std::uint64_t Publish() {
    const absl::StatusOr<std::uint64_t> version = trainer_->Publish("policy", tables_);
    EXPECT_TRUE(version.ok()) << version.status();
    return version.value_or(0);
  }
  static void ExpectAll(const Subscription& policy, float value) {
    ASSERT_EQ(policy.num_tables(), 2u);
    for (std::size_t table = 0; table < 2; ++table) {
      EXPECT_EQ(std::vector<float>(kElements, value),
                std::vector<float>(policy.values<float>(table).begin(),
                                   policy.values<float>(table).end()));
    }
  }

  std::unique_ptr<LocalCluster> cluster_;
  std::unique_ptr<Worker> trainer_;
  std::vector<Table> tables_;
};

TEST_P(Publishing, AVersionIsAsItWasWhateverIsPushedLater) {
  const std::unique_ptr<Worker> reader = Reader();
  EXPECT_TRUE(absl::IsNotFound(reader->Subscribe("policy").status()));
  Push(1);
  EXPECT_EQ(Publish(), 1u);
  Push(2);
  auto policy = reader->Subscribe("policy");
  ASSERT_TRUE(policy.ok()) << policy.status();
  EXPECT_EQ(policy->Apply().code(), absl::StatusCode::kFailedPrecondition);
  const absl::StatusOr<std::uint64_t> fetched = policy->Fetch();
  ASSERT_TRUE(fetched.ok()) << fetched.status();
  EXPECT_EQ(*fetched, 1u);
  EXPECT_EQ(policy->version(), 0u);
  ExpectAll(*policy, 0);
  ASSERT_TRUE(policy->Apply().ok());
  EXPECT_EQ(policy->version(), 1u);
  EXPECT_EQ(policy->clock(), 1u);
  ExpectAll(*policy, 1);
  EXPECT_TRUE(absl::IsDeadlineExceeded(policy->Fetch(absl::ZeroDuration()).status()));

  EXPECT_EQ(Publish(), 2u);
  EXPECT_EQ(Publish(), 3u);
  // The reader may hear of the third one later than the trainer.
  while (policy->version() < 3) ASSERT_TRUE(policy->Fetch().ok() && policy->Apply().ok());
  ExpectAll(*policy, 2);
  const SubscriptionStats stats = policy->stats();
  EXPECT_EQ(stats.versions_fetched + stats.versions_skipped, 3u);
}

TEST_P(Publishing, BlocksThatHaveNotChangedAreNotSentAgain) {
  const std::unique_ptr<Worker> reader = Reader();
  Push(1);
  Publish();
  auto policy = reader->Subscribe("policy");
  ASSERT_TRUE(policy.ok() && policy->Fetch().ok() && policy->Apply().ok());
  const std::uint64_t whole = policy->stats().bytes_received;
  EXPECT_EQ(whole, 2 * kElements * sizeof(float));
  Publish();
  ASSERT_TRUE(policy->Fetch().ok() && policy->Apply().ok());
  EXPECT_EQ(policy->stats().bytes_received, whole);
  ExpectAll(*policy, 1);
}

TEST_P(Publishing, AModelThatCannotBeIsRefused) {
  TableSpec rows = TableSpec::Sparse("rows", 4);
  rows.consistency = Consistency::Asp();
  auto table = trainer_->CreateTable(rows);
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_TRUE(absl::IsUnimplemented(trainer_->Publish("policy", {{*table}}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(trainer_->Publish("policy", {}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(trainer_->Publish("", tables_).status()));
  const std::vector<Table> twice = {tables_[0], tables_[0]};
  EXPECT_TRUE(absl::IsInvalidArgument(trainer_->Publish("policy", twice).status()));
  const std::unique_ptr<Worker> reader = Reader();
  EXPECT_TRUE(absl::IsFailedPrecondition(reader->Publish("policy", tables_).status()));
  EXPECT_TRUE(absl::IsNotFound(reader->Subscribe("policy").status()));
}

// Of two readers, of which one has missed a version, each gets the difference to what it has.
TEST_P(Publishing, ChangesAreSentAlone) {
  const std::unique_ptr<Worker> reader = Reader();
  Push(1);
  Publish();
  auto follows = reader->Subscribe("policy"), misses = reader->Subscribe("policy");
  for (auto* const policy : {&follows, &misses}) {
    ASSERT_TRUE(policy->ok() && (*policy)->Fetch().ok() && (*policy)->Apply().ok());
  }
  const std::uint64_t whole = follows->stats().bytes_received;
  std::vector<float> values(kElements, 1);
  for (const std::size_t place : {std::size_t{3}, kElements / 2}) {
    values[place] += 1;
    for (const Table& table : tables_) {
      ASSERT_TRUE(trainer_->Wait(table.Push(std::span<const float>(values))).ok());
    }
    ASSERT_TRUE(trainer_->Clock().ok());
    Publish();
    while (follows->version() < trainer_->clock()) {
      ASSERT_TRUE(follows->Fetch().ok() && follows->Apply().ok());
    }
  }
  while (misses->version() < 3) ASSERT_TRUE(misses->Fetch().ok() && misses->Apply().ok());
  for (auto* const policy : {&follows, &misses}) {
    EXPECT_LT((*policy)->stats().bytes_received, whole + 200);
    for (std::size_t table = 0; table < 2; ++table) {
      const std::span<const float> now = (*policy)->values<float>(table);
      EXPECT_EQ(values, std::vector<float>(now.begin(), now.end()));
    }
    // Looks at the digests.
    EXPECT_TRUE(absl::IsDeadlineExceeded((*policy)->Fetch(absl::ZeroDuration()).status()));
  }
  EXPECT_EQ(follows->digest(), misses->digest());
}

// A trainer publishes while a reader follows: both tables are always of one push.
TEST_P(Publishing, AReaderNeverSeesAMixture) {
  const std::unique_ptr<Worker> reader = Reader();
  Push(0);
  Publish();
  auto policy = reader->Subscribe("policy");
  ASSERT_TRUE(policy.ok()) << policy.status();
  constexpr std::uint64_t kVersions = 60;
  std::thread training([this] {
    for (std::uint64_t i = 1; i < kVersions; ++i) {
      Push(static_cast<float>(i));
      EXPECT_EQ(Publish(), i + 1);
    }
  });
  while (policy->version() < kVersions) {
    const absl::StatusOr<std::uint64_t> fetched = policy->Fetch();
    ASSERT_TRUE(fetched.ok()) << fetched.status();
    ASSERT_TRUE(policy->Apply().ok());
    ExpectAll(*policy, static_cast<float>(policy->version() - 1));
    if (HasFailure()) break;
  }
  training.join();
}

INSTANTIATE_TEST_SUITE_P(Consistencies, Publishing, testing::Values("bsp", "ssp:2", "asp"));

}  // namespace
}  // namespace leeway::tests
