// The C interface on a whole cluster: each function, and what it says of wrong arguments.
#include "leeway/c.h"

#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "leeway/shard_handler.h"
#include "nlohmann/json.hpp"
#include "runtime/testing/temp_folder.h"
#include "tests/support/local_cluster.h"

namespace leeway::tests {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// The code and message of an error, which is freed.
std::pair<leeway_code, std::string> Taken(leeway_error* error) {
  std::pair<leeway_code, std::string> result = {leeway_error_code(error),
                                                leeway_error_message(error)};
  leeway_error_free(error);
  return result;
}
MATCHER(IsOk, "no error") {
  const auto [code, message] = Taken(arg);
  *result_listener << message;
  return code == LEEWAY_OK;
}
#define EXPECT_C_OK(call) EXPECT_THAT(call, IsOk())
#define ASSERT_C_OK(call) ASSERT_THAT(call, IsOk())

std::string Text(char* text) {
  std::string result = text;
  leeway_free(text);
  return result;
}

class CTest : public testing::Test {
 protected:
  void SetUp() override {
    LocalCluster::Setup setup;
    setup.net = LocalCluster::Net::kTcp;
    auto cluster = LocalCluster::Start(setup);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    cluster_ = *std::move(cluster);
    address_ = cluster_->scheduler_address();
    const leeway_setting settings[] = {{"LEEWAY_ROLE", "worker"},
                                       {"LEEWAY_SCHEDULER", address_.c_str()},
                                       {"LEEWAY_VAN", "tcp"},
                                       {"LEEWAY_REQUEST_TIMEOUT_MS", "60000"}};
    ASSERT_C_OK(leeway_connect(settings, std::size(settings), &worker_));
  }
  void TearDown() override {
    leeway_worker_free(worker_);
    if (cluster_ == nullptr) return;
    EXPECT_TRUE(cluster_->Finish().ok());
  }

  leeway_table* Create(leeway_spec* spec) {
    leeway_table* table = nullptr;
    EXPECT_C_OK(leeway_create_table(worker_, spec, &table));
    leeway_spec_free(spec);
    return table;
  }
  leeway_table* Dense(const char* name, std::uint64_t elements) {
    leeway_spec* const spec = leeway_spec_dense(name, LEEWAY_FLOAT32, &elements, 1);
    EXPECT_C_OK(leeway_spec_set(spec, "consistency", "asp"));
    return Create(spec);
  }
  // Waits for the operation that was begun, and frees its ticket.
  std::pair<leeway_code, std::string> Ended(leeway_error* begun) {
    if (begun != nullptr) return Taken(begun);
    auto result = Taken(leeway_wait(worker_, ticket_));
    leeway_ticket_free(std::exchange(ticket_, nullptr));
    return result;
  }
  leeway_code CodeOf(leeway_error* error) { return Taken(error).first; }

  std::unique_ptr<LocalCluster> cluster_;
  std::string address_;
  leeway_worker* worker_ = nullptr;
  leeway_ticket* ticket_ = nullptr;
};

TEST_F(CTest, WorkersKnowTheirPlaceAndEndClocks) {
  EXPECT_EQ(leeway_c_version(), std::uint32_t{LEEWAY_C_VERSION});
  EXPECT_THAT(leeway_version(), HasSubstr("."));
  EXPECT_EQ(leeway_rank(worker_), 0u);
  EXPECT_EQ(leeway_num_workers(worker_), 1u);
  EXPECT_EQ(leeway_num_servers(worker_), 1u);
  EXPECT_C_OK(leeway_clock(worker_));
  EXPECT_EQ(leeway_clocks_ended(worker_), 1u);
  EXPECT_C_OK(leeway_barrier(worker_, LEEWAY_WORKERS, "begin", 0));
  EXPECT_C_OK(leeway_barrier(worker_, LEEWAY_ALL, nullptr, 10));
  EXPECT_EQ(CodeOf(leeway_barrier(worker_, static_cast<leeway_group>(7), "", 0)),
            LEEWAY_INVALID_ARGUMENT);
}

TEST_F(CTest, ACallThatWaitsIsInterrupted) {
  const leeway_setting settings[] = {{"LEEWAY_ROLE", "worker"},
                                     {"LEEWAY_SCHEDULER", "127.0.0.1:1"}};
  int asked = 0;
  leeway_hooks hooks = {.struct_bytes = sizeof(hooks),
                        .interrupted = [](void* context) { return ++*static_cast<int*>(context); },
                        .context = &asked};
  leeway_worker* worker = nullptr;
  EXPECT_EQ(CodeOf(leeway_connect_with(settings, std::size(settings), &hooks, &worker)),
            LEEWAY_CANCELLED);
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(worker, nullptr);
  const leeway_setting misspelt[] = {{"LEEWAY_SCHEDULAR", "127.0.0.1:1"}};
  EXPECT_THAT(Taken(leeway_connect(misspelt, 1, &worker)).second, HasSubstr("LEEWAY_SCHEDULER"));
  hooks.struct_bytes = 1;
  EXPECT_EQ(CodeOf(leeway_connect_with(settings, std::size(settings), &hooks, &worker)),
            LEEWAY_INVALID_ARGUMENT);
}

TEST_F(CTest, OthersAreToldWhenATicketIsDone) {
  leeway_table* const table = Dense("told", 1);
  const float one = 1;
  std::atomic<int> told = -1;
  const auto tell = [](void* context, leeway_code code, const char* message) {
    EXPECT_STREQ(message, "");
    *static_cast<std::atomic<int>*>(context) = code;
  };
  ASSERT_C_OK(leeway_push(table, LEEWAY_FLOAT32, &one, 1, nullptr, &ticket_));
  EXPECT_C_OK(leeway_when_done(worker_, ticket_, tell, &told));
  while (told < 0) std::this_thread::yield();
  EXPECT_EQ(told, LEEWAY_OK);
  EXPECT_EQ(CodeOf(leeway_when_done(worker_, ticket_, nullptr, nullptr)), LEEWAY_INVALID_ARGUMENT);
  EXPECT_EQ(CodeOf(leeway_when_done(worker_, nullptr, tell, &told)), LEEWAY_INVALID_ARGUMENT);
  leeway_ticket_free(std::exchange(ticket_, nullptr));
  leeway_table_free(table);
}

TEST_F(CTest, DenseTablesArePushedAndPulled) {
  leeway_table* const table = Dense("w", 4);
  EXPECT_STREQ(leeway_table_name(table), "w");
  EXPECT_EQ(leeway_table_kind(table), LEEWAY_DENSE);
  EXPECT_EQ(leeway_table_dtype(table), LEEWAY_FLOAT32);
  EXPECT_EQ(leeway_table_dimensions(table), 1u);
  EXPECT_EQ(leeway_table_size(table, 0), 4u);
  EXPECT_EQ(leeway_table_size(table, 1), 0u);
  EXPECT_EQ(leeway_table_elements(table), 4u);
  char* text = nullptr;
  EXPECT_C_OK(leeway_table_text(table, &text));
  EXPECT_THAT(Text(text), HasSubstr("asp"));

  const std::vector<float> one = {1, 2, 3, 4};
  std::vector<float> all(4), both(4);
  EXPECT_EQ(Ended(leeway_push(table, LEEWAY_FLOAT32, one.data(), 4, nullptr, &ticket_)).first,
            LEEWAY_OK);
  ASSERT_C_OK(leeway_pull(table, LEEWAY_FLOAT32, all.data(), 4, nullptr, &ticket_));
  EXPECT_C_OK(leeway_wait_all(worker_, &ticket_, 1));
  EXPECT_EQ(leeway_done(worker_, ticket_), 1);
  leeway_info info = {.struct_bytes = sizeof(info), .clock = 7, .version = 0, .parts_dropped = 7};
  EXPECT_C_OK(leeway_get_info(worker_, ticket_, &info));
  EXPECT_EQ(info.clock, 0u);
  EXPECT_GT(info.version, 0u);
  EXPECT_EQ(info.parts_dropped, 0u);
  leeway_ticket_free(std::exchange(ticket_, nullptr));
  EXPECT_EQ(all, one);
  EXPECT_EQ(
      Ended(leeway_push_pull(table, LEEWAY_FLOAT32, one.data(), both.data(), 4, nullptr, &ticket_))
          .first,
      LEEWAY_OK);
  EXPECT_THAT(both, ElementsAre(2, 4, 6, 8));

  leeway_table* opened = nullptr;
  EXPECT_C_OK(leeway_open_table(worker_, "w", &opened));
  EXPECT_EQ(leeway_table_elements(opened), 4u);
  leeway_table_free(opened);
  leeway_table_free(table);
}

TEST_F(CTest, SparseTablesHaveRows) {
  leeway_table* const table = Create(leeway_spec_sparse("emb", LEEWAY_INT64, 2));
  EXPECT_EQ(leeway_table_row_width(table), 2u);
  EXPECT_EQ(leeway_table_kind(table), LEEWAY_SPARSE);
  const std::uint64_t keys[] = {5, ~std::uint64_t{0}};
  const std::int64_t rows[] = {1, 2, 3, 4};
  std::int64_t got[4] = {};
  EXPECT_EQ(Ended(leeway_push_rows(table, keys, 2, LEEWAY_INT64, rows, 4, nullptr, &ticket_)).first,
            LEEWAY_OK);
  EXPECT_C_OK(leeway_clock(worker_));
  EXPECT_EQ(Ended(leeway_pull_rows(table, keys, 2, LEEWAY_INT64, got, 4, nullptr, &ticket_)).first,
            LEEWAY_OK);
  EXPECT_THAT(got, ElementsAre(1, 2, 3, 4));
  EXPECT_C_OK(leeway_push_pull_rows(table, keys, 2, LEEWAY_INT64, rows, got, 4, nullptr, &ticket_));
  EXPECT_C_OK(leeway_clock(worker_));
  EXPECT_EQ(Ended(nullptr).first, LEEWAY_OK);
  EXPECT_THAT(got, ElementsAre(2, 4, 6, 8));
  leeway_table_free(table);
}

TEST_F(CTest, RaggedTablesHaveRowsOfTheirOwnWidths) {
  leeway_table* const table = Create(leeway_spec_ragged("lists", LEEWAY_FLOAT64));
  const std::uint64_t keys[] = {1, 2, 3};
  const std::uint32_t widths[] = {2, 1};
  const double values[] = {0.5, 1.5, 2.5};
  EXPECT_EQ(Ended(leeway_push_ragged(table, keys, 2, widths, LEEWAY_FLOAT64, values, 3, nullptr,
                                     &ticket_))
                .first,
            LEEWAY_OK);
  EXPECT_C_OK(leeway_clock(worker_));
  ASSERT_C_OK(leeway_pull_ragged(table, keys, 3, LEEWAY_FLOAT64, nullptr, &ticket_));
  EXPECT_C_OK(leeway_wait(worker_, ticket_));
  const std::uint32_t* got_widths = nullptr;
  const void* got = nullptr;
  std::uint64_t elements = 0;
  ASSERT_C_OK(leeway_pulled_rows(worker_, ticket_, &got_widths, &got, &elements));
  EXPECT_THAT(std::vector(got_widths, got_widths + 3), ElementsAre(2, 1, 0));
  ASSERT_EQ(elements, 3u);
  EXPECT_THAT(std::vector(static_cast<const double*>(got), static_cast<const double*>(got) + 3),
              ElementsAre(0.5, 1.5, 2.5));
  leeway_ticket_free(std::exchange(ticket_, nullptr));
  // The ticket is freed while the operation is under way.
  ASSERT_C_OK(leeway_pull_ragged(table, keys, 3, LEEWAY_FLOAT64, nullptr, &ticket_));
  leeway_ticket_free(std::exchange(ticket_, nullptr));
  EXPECT_EQ(Ended(leeway_push_ragged(table, keys, 2, widths, LEEWAY_FLOAT64, values, 3, nullptr,
                                     &ticket_))
                .first,
            LEEWAY_OK);
  leeway_table_free(table);
}

TEST_F(CTest, ShardHandlersAreCalled) {
  ASSERT_TRUE(RegisterShardHandler("echo", [](ShardCall& call) -> absl::StatusOr<std::string> {
                if (call.request().empty()) return absl::OutOfRangeError("nothing to say");
                return absl::StrCat(call.shard(), ":", std::string(call.request()));
              }).ok());
  leeway_table* const table = Dense("w", 4);
  leeway_ticket* ticket = nullptr;
  ASSERT_C_OK(leeway_call_shard(table, 3, "echo", "a\0b", 3, nullptr, &ticket));
  ASSERT_C_OK(leeway_wait(worker_, ticket));
  std::size_t count = 0, bytes = 0;
  const char* answer = nullptr;
  ASSERT_C_OK(leeway_num_answers(worker_, ticket, &count));
  EXPECT_EQ(count, 1u);
  ASSERT_C_OK(leeway_get_answer(worker_, ticket, 0, &answer, &bytes));
  EXPECT_THAT(std::string(answer, bytes), testing::EndsWith(std::string(":a\0b", 4)));
  EXPECT_EQ(CodeOf(leeway_get_answer(worker_, ticket, 1, &answer, &bytes)), LEEWAY_OUT_OF_RANGE);
  leeway_ticket_free(ticket);

  const std::uint64_t width = 1;
  leeway_table* const rows = Create(leeway_spec_sparse("rows", LEEWAY_FLOAT32, width));
  ASSERT_C_OK(leeway_call_shards(rows, "echo", "x", 1, nullptr, &ticket));
  ASSERT_C_OK(leeway_wait(worker_, ticket));
  ASSERT_C_OK(leeway_num_answers(worker_, ticket, &count));
  EXPECT_GT(count, 1u);
  for (std::size_t shard = 0; shard < count; ++shard) {
    ASSERT_C_OK(leeway_get_answer(worker_, ticket, shard, &answer, &bytes));
    EXPECT_EQ(std::string(answer), std::to_string(shard) + ":x");
  }
  leeway_ticket_free(ticket);

  EXPECT_EQ(Ended(leeway_call_shard(table, 4, "echo", "x", 1, nullptr, &ticket_)).first,
            LEEWAY_OUT_OF_RANGE);
  EXPECT_EQ(Ended(leeway_call_shard(table, 0, "", "x", 1, nullptr, &ticket_)).first,
            LEEWAY_INVALID_ARGUMENT);
  float pulled[4] = {};
  const auto [code, message] =
      Ended(leeway_call_shard(table, 0, "echo", nullptr, 0, nullptr, &ticket_));
  EXPECT_EQ(code, LEEWAY_OUT_OF_RANGE);
  EXPECT_THAT(message, HasSubstr("nothing to say"));
  ASSERT_C_OK(leeway_pull(table, LEEWAY_FLOAT32, pulled, 4, nullptr, &ticket));
  (void)Taken(leeway_wait(worker_, ticket));
  EXPECT_EQ(CodeOf(leeway_num_answers(worker_, ticket, &count)), LEEWAY_FAILED_PRECONDITION);
  leeway_ticket_free(ticket);
  leeway_table_free(rows);
  leeway_table_free(table);
}

TEST_F(CTest, OptionsAreThoseOfTheOperation) {
  const std::uint64_t elements = 1;
  leeway_spec* const spec = leeway_spec_dense("w", LEEWAY_FLOAT32, &elements, 1);
  EXPECT_C_OK(leeway_spec_set(spec, "consistency", "asp"));
  EXPECT_C_OK(leeway_spec_set(spec, "updater", "sgd:learning_rate=1"));
  leeway_table* const table = Create(spec);
  const double rate = 0.25;
  struct Told {
    int times = 0;
    leeway_code code = LEEWAY_INTERNAL;
  } told;
  leeway_options options = {};
  options.struct_bytes = sizeof(options);
  options.timeout_s = 30;
  options.learning_rate = &rate;
  options.priority = 3;
  options.copy = 1;
  options.context = &told;
  options.done = [](void* context, leeway_code code, const char*) {
    ++static_cast<Told*>(context)->times;
    static_cast<Told*>(context)->code = code;
  };
  float gradient = 1, value = 0;
  ASSERT_C_OK(leeway_push(table, LEEWAY_FLOAT32, &gradient, 1, &options, &ticket_));
  gradient = 100;  // the push has a copy
  EXPECT_EQ(Ended(nullptr).first, LEEWAY_OK);
  EXPECT_EQ(told.times, 1);
  EXPECT_EQ(told.code, LEEWAY_OK);
  EXPECT_EQ(Ended(leeway_pull(table, LEEWAY_FLOAT32, &value, 1, nullptr, &ticket_)).first,
            LEEWAY_OK);
  EXPECT_EQ(value, -0.25f);
  for (const double timeout_s : {-1.0, std::numeric_limits<double>::quiet_NaN()}) {
    options.timeout_s = timeout_s;
    EXPECT_EQ(Ended(leeway_pull(table, LEEWAY_FLOAT32, &value, 1, &options, &ticket_)).first,
              LEEWAY_DEADLINE_EXCEEDED);
  }
  EXPECT_EQ(told.times, 3);
  EXPECT_EQ(told.code, LEEWAY_DEADLINE_EXCEEDED);
  // A program of an older header gives fewer fields, one of a newer header more.
  told.times = 0;
  options.struct_bytes = offsetof(leeway_options, learning_rate);
  options.timeout_s = 30;
  EXPECT_EQ(Ended(leeway_pull(table, LEEWAY_FLOAT32, &value, 1, &options, &ticket_)).first,
            LEEWAY_OK);
  EXPECT_EQ(told.times, 0);
  struct Newer {
    leeway_options known;
    double unknown;
  } newer = {options, 1};
  newer.known.struct_bytes = sizeof(newer);
  EXPECT_EQ(Ended(leeway_pull(table, LEEWAY_FLOAT32, &value, 1, &newer.known, &ticket_)).first,
            LEEWAY_OK);
  EXPECT_EQ(told.times, 1);
  options.struct_bytes = 0;
  EXPECT_EQ(CodeOf(leeway_pull(table, LEEWAY_FLOAT32, &value, 1, &options, &ticket_)),
            LEEWAY_INVALID_ARGUMENT);
  leeway_table_free(table);
}

TEST_F(CTest, TablesAreChanged) {
  const std::uint64_t elements = 64;
  leeway_spec* const spec = leeway_spec_dense("w", LEEWAY_FLOAT32, &elements, 1);
  for (const auto& [field, text] : {std::pair{"updater", "momentum:learning_rate=0.1,momentum=0.9"},
                                    {"consistency", "ssp:3"},
                                    {"codecs", "none fp16"},
                                    {"initializer", "constant:2"}}) {
    EXPECT_C_OK(leeway_spec_set(spec, field, text));
  }
  const auto [code, message] = Taken(leeway_spec_set(spec, "codec", nullptr));
  EXPECT_EQ(code, LEEWAY_INVALID_ARGUMENT);
  EXPECT_THAT(message, HasSubstr("text is a null pointer"));
  leeway_table* const table = Create(spec);
  std::uint64_t clock = ~std::uint64_t{0};
  EXPECT_C_OK(leeway_set_codec(worker_, "w", "fp16", 0, &clock));
  EXPECT_NE(clock, ~std::uint64_t{0});
  const leeway_setting changes[] = {
      {"learning_rate", "0.5"}, {"momentum", ""}, {"consistency", "asp"}, {"nonfinite", "refuse"}};
  EXPECT_C_OK(leeway_change_table(worker_, "w", changes, 4, 0, nullptr));
  const leeway_setting wrong[] = {{"learning_rate", "fast"}};
  EXPECT_EQ(CodeOf(leeway_change_table(worker_, "w", wrong, 1, 0, nullptr)),
            LEEWAY_INVALID_ARGUMENT);
  leeway_table_free(table);
}

TEST_F(CTest, MemoryOfAWorkerIsPushed) {
  leeway_table* const table = Dense("w", 16384);
  leeway_array* array = nullptr;
  ASSERT_C_OK(leeway_allocate(worker_, 65536, &array));
  EXPECT_EQ(leeway_array_bytes(array), 65536u);
  float* const values = static_cast<float*>(leeway_array_data(array));
  values[16383] = 3;
  EXPECT_EQ(Ended(leeway_push(table, LEEWAY_FLOAT32, values, 16384, nullptr, &ticket_)).first,
            LEEWAY_OK);
  values[16383] = 0;
  EXPECT_EQ(Ended(leeway_pull(table, LEEWAY_FLOAT32, values, 16384, nullptr, &ticket_)).first,
            LEEWAY_OK);
  EXPECT_EQ(values[16383], 3);
  leeway_array_free(array);
  leeway_table_free(table);
}

TEST_F(CTest, CheckpointsAndResidualsAreWritten) {
  const runtime::TempFolder folder;
  leeway_table* const table = Dense("w", 4);
  char* saved = nullptr;
  ASSERT_C_OK(leeway_checkpoint(worker_, folder.path().c_str(), 30, &saved));
  EXPECT_THAT(Text(saved), HasSubstr(folder.path()));
  EXPECT_C_OK(leeway_save_residuals(worker_, folder.path().c_str()));
  EXPECT_C_OK(leeway_load_residuals(worker_, folder.path().c_str(), nullptr));
  const std::uint32_t other = 5;
  EXPECT_EQ(CodeOf(leeway_load_residuals(worker_, folder.path().c_str(), &other)),
            LEEWAY_NOT_FOUND);
  leeway_table_free(table);
}

// The table adds up what is pushed: θ ← θ + (θ − θ_w), so that training up by 1 goes down by 1.
TEST_F(CTest, LocalStepsAreExchanged) {
  leeway_table* const table = Dense("w", 2);
  float values[2] = {5, 5};
  const leeway_part part = {table, values, 2};
  leeway_local_sgd_options options = {};
  options.struct_bytes = sizeof(options);
  options.steps = 2;
  leeway_local_sgd* local = nullptr;
  ASSERT_C_OK(leeway_local_sgd_new(worker_, &part, 1, &options, &local));
  EXPECT_EQ(CodeOf(leeway_local_sgd_step(local)), LEEWAY_FAILED_PRECONDITION);
  EXPECT_C_OK(leeway_local_sgd_begin(local));
  EXPECT_EQ(values[1], 0);
  for (const float trained : {1.0f, 1.0f, 0.0f}) {
    EXPECT_EQ(leeway_local_sgd_due(local), leeway_local_sgd_steps(local) == 1);
    values[1] += trained;
    EXPECT_C_OK(leeway_local_sgd_step(local));
  }
  EXPECT_EQ(values[1], -2);
  EXPECT_C_OK(leeway_local_sgd_finish(local));
  EXPECT_EQ(leeway_local_sgd_exchanges(local), 2u);
  EXPECT_EQ(leeway_local_sgd_steps_between(local), 2u);
  leeway_local_sgd_free(local);
  leeway_table_free(table);
}

TEST_F(CTest, SubscriptionsFollowAModel) {
  leeway_table* const table = Dense("policy", 3);
  leeway_subscription* policy = nullptr;
  EXPECT_EQ(CodeOf(leeway_subscribe(worker_, "policy", &policy)), LEEWAY_NOT_FOUND);
  EXPECT_EQ(policy, nullptr);
  EXPECT_EQ(CodeOf(leeway_publish(worker_, "policy", nullptr, 0, 0, nullptr)),
            LEEWAY_INVALID_ARGUMENT);
  const auto push = [&](float value) {
    const float values[] = {value, value, value};
    EXPECT_EQ(Ended(leeway_push(table, LEEWAY_FLOAT32, values, 3, nullptr, &ticket_)).first,
              LEEWAY_OK);
  };
  std::uint64_t version = 0, bytes = 0;
  push(1);
  EXPECT_C_OK(leeway_clock(worker_));
  ASSERT_C_OK(leeway_publish(worker_, "policy", &table, 1, 30, &version));
  EXPECT_EQ(version, 1u);
  push(2);
  ASSERT_C_OK(leeway_subscribe(worker_, "policy", &policy));
  EXPECT_EQ(CodeOf(leeway_apply(policy)), LEEWAY_FAILED_PRECONDITION);
  ASSERT_C_OK(leeway_fetch(policy, 0, &version));
  EXPECT_EQ(version, 1u);
  EXPECT_EQ(leeway_subscription_version(policy), 0u);
  ASSERT_C_OK(leeway_apply(policy));
  EXPECT_EQ(leeway_subscription_version(policy), 1u);
  EXPECT_EQ(leeway_subscription_clock(policy), 1u);
  EXPECT_NE(leeway_subscription_digest(policy), 0u);
  ASSERT_EQ(leeway_subscription_tables(policy), 1u);
  EXPECT_STREQ(leeway_table_name(leeway_subscription_table(policy, 0)), "policy");
  EXPECT_EQ(leeway_table_elements(leeway_subscription_table(policy, 0)), 3u);
  const auto* const values =
      static_cast<const float*>(leeway_subscription_values(policy, 0, &bytes));
  ASSERT_EQ(bytes, 3 * sizeof(float));
  EXPECT_THAT(std::vector<float>(values, values + 3), ElementsAre(1, 1, 1));
  for (const double timeout_s : {-1.0, 0.05, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_EQ(CodeOf(leeway_fetch(policy, timeout_s, nullptr)), LEEWAY_DEADLINE_EXCEEDED);
  }
  char* json = nullptr;
  ASSERT_C_OK(leeway_subscription_stats(policy, &json));
  EXPECT_EQ(
      nlohmann::json::parse(Text(json)),
      nlohmann::json({{"versions_fetched", 1}, {"versions_skipped", 0}, {"bytes_received", 12}}));

  EXPECT_EQ(leeway_subscription_table(policy, 1), nullptr);
  EXPECT_EQ(leeway_subscription_values(policy, 1, &bytes), nullptr);
  EXPECT_EQ(bytes, 0u);
  // What was applied outlives the worker.
  leeway_worker_free(std::exchange(worker_, nullptr));
  EXPECT_EQ(CodeOf(leeway_fetch(policy, 0, nullptr)), LEEWAY_FAILED_PRECONDITION);
  EXPECT_EQ(values[2], 1);
  leeway_subscription_free(policy);
  leeway_table_free(table);
}

// A subscription waits in Fetch; a hook that says so ends that.
TEST_F(CTest, AWaitForAVersionIsInterrupted) {
  std::atomic<bool> stop = false;
  leeway_hooks hooks = {};
  hooks.struct_bytes = sizeof(hooks);
  hooks.interrupted = [](void* context) {
    return static_cast<std::atomic<bool>*>(context)->load() ? 1 : 0;
  };
  hooks.context = &stop;
  const leeway_setting settings[] = {{"LEEWAY_ROLE", "worker"},
                                     {"LEEWAY_SCHEDULER", address_.c_str()},
                                     {"LEEWAY_VAN", "tcp"},
                                     {"LEEWAY_READ_ONLY", "1"}};
  leeway_worker* reader = nullptr;
  ASSERT_C_OK(leeway_connect_with(settings, std::size(settings), &hooks, &reader));
  leeway_table* const table = Dense("policy", 3);
  ASSERT_C_OK(leeway_publish(worker_, "policy", &table, 1, 0, nullptr));
  leeway_subscription* policy = nullptr;
  ASSERT_C_OK(leeway_subscribe(reader, "policy", &policy));
  ASSERT_C_OK(leeway_fetch(policy, 0, nullptr));
  stop = true;
  EXPECT_EQ(CodeOf(leeway_fetch(policy, 600, nullptr)), LEEWAY_CANCELLED);
  stop = false;
  EXPECT_C_OK(leeway_apply(policy));
  leeway_subscription_free(policy);
  leeway_worker_free(reader);
  leeway_table_free(table);
}

TEST_F(CTest, StatisticsAreJson) {
  leeway_table* const table = Dense("w", 4);
  std::vector<float> values(4);
  EXPECT_EQ(Ended(leeway_pull(table, LEEWAY_FLOAT32, values.data(), 4, nullptr, &ticket_)).first,
            LEEWAY_OK);
  char* json = nullptr;
  ASSERT_C_OK(leeway_stats(worker_, &json));
  const auto stats = nlohmann::json::parse(Text(json));
  EXPECT_EQ(stats.at("staleness_histogram").at("0"), 1);
  EXPECT_EQ(stats.at("bytes_pulled"), 16);
  EXPECT_EQ(stats.at("staleness_violations"), 0);
  EXPECT_GE(stats.at("waited_s"), 0.0);
  leeway_table_free(table);
}

TEST_F(CTest, ErrorsHaveACodeAndTheMessageOfTheStatus) {
  leeway_table* table = nullptr;
  const auto [code, message] = Taken(leeway_open_table(worker_, "nothing", &table));
  EXPECT_EQ(code, LEEWAY_NOT_FOUND);
  EXPECT_THAT(message, HasSubstr("nothing"));
  EXPECT_EQ(table, nullptr);
  EXPECT_EQ(leeway_error_code(nullptr), LEEWAY_OK);
  EXPECT_STREQ(leeway_error_message(nullptr), "");

  table = Dense("w", 4);
  float values[5] = {};
  EXPECT_EQ(Ended(leeway_push(table, LEEWAY_FLOAT32, values, 5, nullptr, &ticket_)).first,
            LEEWAY_INVALID_ARGUMENT);
  double doubles[4] = {};
  EXPECT_THAT(Ended(leeway_push(table, LEEWAY_FLOAT64, doubles, 4, nullptr, &ticket_)).second,
              HasSubstr("float32"));
  EXPECT_THAT(
      Taken(leeway_push(table, static_cast<leeway_dtype>(99), values, 4, nullptr, &ticket_)).second,
      HasSubstr("dtype is 99"));
  char* answer = nullptr;
  EXPECT_EQ(CodeOf(leeway_call(worker_, 0, "greet", "x", 1, 10, &answer, nullptr)),
            LEEWAY_NOT_FOUND);
  const std::uint64_t shape[] = {0};
  leeway_spec* const empty = leeway_spec_dense(nullptr, LEEWAY_FLOAT32, shape, 1);
  EXPECT_EQ(CodeOf(leeway_create_table(worker_, empty, &table)), LEEWAY_INVALID_ARGUMENT);
  leeway_spec_free(empty);
  EXPECT_C_OK(leeway_leave(worker_, 0));
  EXPECT_EQ(CodeOf(leeway_clock(worker_)), LEEWAY_FAILED_PRECONDITION);
  EXPECT_EQ(Ended(leeway_push(table, LEEWAY_FLOAT32, values, 4, nullptr, &ticket_)).first,
            LEEWAY_FAILED_PRECONDITION);
  leeway_table_free(table);
}

TEST_F(CTest, HandlesMayOutliveTheirWorker) {
  leeway_table* const table = Dense("w", 4);
  float values[4] = {};
  ASSERT_C_OK(leeway_pull(table, LEEWAY_FLOAT32, values, 4, nullptr, &ticket_));
  leeway_worker_free(std::exchange(worker_, nullptr));
  leeway_ticket* after = nullptr;
  EXPECT_C_OK(leeway_push(table, LEEWAY_FLOAT32, values, 4, nullptr, &after));
  leeway_ticket_free(after);
  leeway_ticket_free(std::exchange(ticket_, nullptr));
  EXPECT_STREQ(leeway_table_name(table), "w");
  leeway_table_free(table);
}

// No function takes a null pointer for anything else.
TEST_F(CTest, NullPointersAreInvalidArguments) {
  leeway_table* table = nullptr;
  leeway_worker* worker = nullptr;
  leeway_array* array = nullptr;
  char* text = nullptr;
  leeway_subscription* subscription = nullptr;
  std::size_t answers = 0;
  float value = 0;
  const std::uint64_t key = 1;
  const auto f32 = LEEWAY_FLOAT32;
  const leeway_setting nameless = {nullptr, "1"}, valueless = {"LEEWAY_VAN", nullptr};
  leeway_table* const some = Dense("w", 1);
  const std::vector<leeway_error*> errors = {
      leeway_connect(nullptr, 1, &worker),
      leeway_connect(&nameless, 1, &worker),
      leeway_connect(&valueless, 1, &worker),
      leeway_connect(nullptr, 0, nullptr),
      leeway_leave(nullptr, 0),
      leeway_clock(nullptr),
      leeway_barrier(nullptr, LEEWAY_ALL, "", 0),
      leeway_stats(nullptr, &text),
      leeway_stats(worker_, nullptr),
      leeway_spec_set(nullptr, "codec", "none"),
      leeway_create_table(worker_, nullptr, &table),
      leeway_open_table(worker_, nullptr, &table),
      leeway_open_table(worker_, "w", nullptr),
      leeway_table_text(nullptr, &text),
      leeway_set_codec(worker_, nullptr, "none", 0, nullptr),
      leeway_change_table(worker_, "w", nullptr, 1, 0, nullptr),
      leeway_push(nullptr, f32, &value, 1, nullptr, &ticket_),
      leeway_push(some, f32, nullptr, 1, nullptr, &ticket_),
      leeway_push(some, f32, &value, 1, nullptr, nullptr),
      leeway_pull(some, f32, nullptr, 1, nullptr, &ticket_),
      leeway_push_pull(some, f32, &value, nullptr, 1, nullptr, &ticket_),
      leeway_push_rows(some, nullptr, 1, f32, &value, 1, nullptr, &ticket_),
      leeway_pull_rows(some, &key, 1, f32, nullptr, 1, nullptr, &ticket_),
      leeway_push_pull_rows(some, &key, 1, f32, &value, nullptr, 1, nullptr, &ticket_),
      leeway_push_ragged(some, &key, 1, nullptr, f32, &value, 1, nullptr, &ticket_),
      leeway_pull_ragged(some, nullptr, 1, f32, nullptr, &ticket_),
      leeway_pulled_rows(worker_, nullptr, nullptr, nullptr, nullptr),
      leeway_local_sgd_new(worker_, nullptr, 1, nullptr, nullptr),
      leeway_local_sgd_begin(nullptr),
      leeway_local_sgd_step(nullptr),
      leeway_local_sgd_finish(nullptr),
      leeway_publish(nullptr, "m", &some, 1, 0, nullptr),
      leeway_publish(worker_, nullptr, &some, 1, 0, nullptr),
      leeway_publish(worker_, "m", nullptr, 1, 0, nullptr),
      leeway_publish(worker_, "m", &table, 1, 0, nullptr),
      leeway_subscribe(nullptr, "m", &subscription),
      leeway_subscribe(worker_, nullptr, &subscription),
      leeway_subscribe(worker_, "m", nullptr),
      leeway_fetch(nullptr, 0, nullptr),
      leeway_apply(nullptr),
      leeway_subscription_stats(nullptr, &text),
      leeway_call_shard(nullptr, 0, "h", nullptr, 0, nullptr, &ticket_),
      leeway_call_shards(nullptr, "h", nullptr, 0, nullptr, &ticket_),
      leeway_num_answers(worker_, nullptr, &answers),
      leeway_get_answer(worker_, nullptr, 0, nullptr, nullptr),
      leeway_wait(worker_, nullptr),
      leeway_wait_all(worker_, nullptr, 1),
      leeway_get_info(worker_, nullptr, nullptr),
      leeway_allocate(worker_, 1, nullptr),
      leeway_allocate(nullptr, 1, &array),
      leeway_call(worker_, 0, nullptr, nullptr, 0, 0, &text, nullptr),
      leeway_checkpoint(nullptr, "", 0, &text),
      leeway_save_residuals(worker_, nullptr),
      leeway_load_residuals(worker_, nullptr, nullptr),
  };
  for (std::size_t i = 0; i < errors.size(); ++i) {
    const auto [code, message] = Taken(errors[i]);
    EXPECT_EQ(code, LEEWAY_INVALID_ARGUMENT) << i;
    EXPECT_THAT(message, HasSubstr("null pointer")) << i;
  }
  EXPECT_EQ(leeway_rank(nullptr) + leeway_num_workers(nullptr) + leeway_num_servers(nullptr), 0u);
  EXPECT_EQ(leeway_clocks_ended(nullptr) + leeway_table_elements(nullptr), 0u);
  EXPECT_EQ(leeway_table_row_width(nullptr) + leeway_table_size(nullptr, 0), 0u);
  EXPECT_STREQ(leeway_table_name(nullptr), "");
  EXPECT_EQ(leeway_array_data(nullptr), nullptr);
  EXPECT_EQ(leeway_array_bytes(nullptr), 0u);
  EXPECT_EQ(leeway_done(nullptr, nullptr), 1);
  EXPECT_EQ(leeway_subscription_version(nullptr) + leeway_subscription_clock(nullptr), 0u);
  EXPECT_EQ(leeway_subscription_tables(nullptr) + leeway_subscription_digest(nullptr), 0u);
  EXPECT_EQ(leeway_subscription_table(nullptr, 0), nullptr);
  EXPECT_EQ(leeway_subscription_values(nullptr, 0, nullptr), nullptr);
  leeway_subscription_free(nullptr);
  leeway_worker_free(nullptr);
  leeway_table_free(nullptr);
  leeway_ticket_free(nullptr);
  leeway_array_free(nullptr);
  leeway_spec_free(nullptr);
  leeway_error_free(nullptr);
  leeway_free(nullptr);
  leeway_table_free(some);
}

// ---- servers: what a C program registers, used by this process's own cluster ----

struct Halving {
  double factor;
};

leeway_error* MakeHalving(void* context, const leeway_parameter* parameters, size_t count,
                          leeway_updater* updater) {
  if (count != 1 || std::strcmp(parameters[0].name, "factor") != 0) {
    return leeway_error_new(LEEWAY_INVALID_ARGUMENT, "halving needs a factor");
  }
  ++*static_cast<int*>(context);
  static constexpr double kInitial = 2;
  updater->dtypes = 1u << LEEWAY_FLOAT32 | 1u << LEEWAY_INT64;
  updater->state_slots = 1;
  updater->initial_state = &kInitial;
  updater->context = new Halving{parameters[0].value};
  updater->update = [](void* halving, const leeway_run* run) {
    const double factor = static_cast<Halving*>(halving)->factor;
    for (uint64_t i = 0; i < run->size; ++i) {
      if (run->dtype == LEEWAY_INT64) {
        static_cast<int64_t*>(run->value)[i] += static_cast<const int64_t*>(run->gradient)[i];
      } else {
        float& state = static_cast<float*>(run->state[0])[i];
        static_cast<float*>(run->value)[i] +=
            static_cast<float>(factor) * state * static_cast<const float*>(run->gradient)[i];
        state /= 2;
      }
    }
  };
  updater->release = [](void* halving) { delete static_cast<Halving*>(halving); };
  return nullptr;
}

TEST_F(CTest, UpdatersAreRegistered) {
  static int made = 0;
  EXPECT_C_OK(leeway_register_updater("halving", MakeHalving, &made));
  EXPECT_EQ(CodeOf(leeway_register_updater("halving", MakeHalving, &made)), LEEWAY_ALREADY_EXISTS);
  EXPECT_EQ(CodeOf(leeway_register_updater("none", nullptr, &made)), LEEWAY_INVALID_ARGUMENT);
  const std::uint64_t size = 2;
  leeway_spec* const spec = leeway_spec_dense("halved", LEEWAY_FLOAT32, &size, 1);
  EXPECT_C_OK(leeway_spec_set(spec, "consistency", "asp"));
  EXPECT_C_OK(leeway_spec_set(spec, "updater", "halving"));
  leeway_table* table = nullptr;
  EXPECT_THAT(Taken(leeway_create_table(worker_, spec, &table)).second,
              HasSubstr("needs a factor"));
  EXPECT_C_OK(leeway_spec_set(spec, "updater", "halving:factor=3"));
  table = Create(spec);
  EXPECT_GT(made, 0);
  const std::vector<float> ones = {1, -1};
  std::vector<float> values(2);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(Ended(leeway_push(table, LEEWAY_FLOAT32, ones.data(), 2, nullptr, &ticket_)).first,
              LEEWAY_OK);
  }
  EXPECT_EQ(Ended(leeway_pull(table, LEEWAY_FLOAT32, values.data(), 2, nullptr, &ticket_)).first,
            LEEWAY_OK);
  EXPECT_THAT(values, ElementsAre(9, -9));  // 3 · 2 + 3 · 1
  leeway_table_free(table);
}

leeway_error* Reverse(void*, const leeway_caller* caller, const void* request, size_t bytes,
                      leeway_answer* answer) {
  if (bytes == 0) return leeway_error_new(LEEWAY_OUT_OF_RANGE, "nothing to reverse");
  EXPECT_EQ(caller->struct_bytes, sizeof(*caller));
  const char* const text = static_cast<const char*>(request);
  const std::string reversed(std::make_reverse_iterator(text + bytes),
                             std::make_reverse_iterator(text));
  return leeway_answer_set(answer, reversed.data(), reversed.size());
}

TEST_F(CTest, HandlersAreRegistered) {
  EXPECT_C_OK(leeway_register_handler("reverse", Reverse, nullptr));
  EXPECT_EQ(CodeOf(leeway_register_handler("reverse", Reverse, nullptr)), LEEWAY_ALREADY_EXISTS);
  EXPECT_EQ(CodeOf(leeway_register_handler("none", nullptr, nullptr)), LEEWAY_INVALID_ARGUMENT);
  char* answer = nullptr;
  size_t bytes = 0;
  ASSERT_C_OK(leeway_call(worker_, 0, "reverse", "abc", 3, 10, &answer, &bytes));
  EXPECT_EQ(bytes, 3u);
  EXPECT_EQ(Text(answer), "cba");
  EXPECT_EQ(Taken(leeway_call(worker_, 0, "reverse", nullptr, 0, 10, &answer, &bytes)),
            std::pair(LEEWAY_OUT_OF_RANGE, std::string("nothing to reverse")));
  EXPECT_EQ(CodeOf(leeway_answer_set(nullptr, "", 0)), LEEWAY_INVALID_ARGUMENT);
}

// Messages are the values' bytes, and one byte that says how many encodings there were.
leeway_error* MakeCopying(void* context, const leeway_option*, size_t count, leeway_codec* codec) {
  if (count > 0) return leeway_error_new(LEEWAY_INVALID_ARGUMENT, "copying has no options");
  codec->dtypes = 1u << LEEWAY_FLOAT32;
  codec->lossless = 1;
  codec->contracts = 1;
  codec->context = context;
  codec->encoded_bytes_max = [](void*, const leeway_codec_shape* shape) {
    return 4 * shape->elements + 1;
  };
  codec->encode = [](void* encodings, const void* values, const leeway_codec_shape* shape, uint64_t,
                     uint64_t, void* out, uint64_t* written) -> leeway_error* {
    ++*static_cast<std::atomic<int>*>(encodings);
    std::memcpy(out, values, 4 * shape->elements);
    static_cast<char*>(out)[4 * shape->elements] = 7;
    *written = 4 * shape->elements + 1;
    return nullptr;
  };
  codec->decode = [](void*, const void* encoded, uint64_t bytes, const leeway_codec_shape* shape,
                     void* values) -> leeway_error* {
    if (bytes != 4 * shape->elements + 1) {
      return leeway_error_new(LEEWAY_INVALID_ARGUMENT, "not a message of copying");
    }
    std::memcpy(values, encoded, 4 * shape->elements);
    return nullptr;
  };
  return nullptr;
}

TEST(CCodecTest, CodecsAreRegistered) {
  static std::atomic<int> encodings = 0;
  EXPECT_C_OK(leeway_register_codec("copying", 1, MakeCopying, &encodings));
  EXPECT_EQ(Taken(leeway_register_codec("copying", 1, MakeCopying, &encodings)).first,
            LEEWAY_ALREADY_EXISTS);
  EXPECT_EQ(Taken(leeway_register_codec("none", 1, nullptr, nullptr)).first,
            LEEWAY_INVALID_ARGUMENT);
  LocalCluster::Setup setup;
  setup.net = LocalCluster::Net::kTcp;
  auto cluster = LocalCluster::Start(setup);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  const std::string address = (*cluster)->scheduler_address();
  const leeway_setting settings[] = {
      {"LEEWAY_ROLE", "worker"}, {"LEEWAY_SCHEDULER", address.c_str()}, {"LEEWAY_VAN", "tcp"}};
  leeway_worker* worker = nullptr;
  ASSERT_C_OK(leeway_connect(settings, std::size(settings), &worker));
  const std::uint64_t size = 3;
  leeway_spec* const spec = leeway_spec_dense("copied", LEEWAY_FLOAT32, &size, 1);
  EXPECT_C_OK(leeway_spec_set(spec, "consistency", "asp"));
  EXPECT_C_OK(leeway_spec_set(spec, "codec", "copying"));
  leeway_table* table = nullptr;
  ASSERT_C_OK(leeway_create_table(worker, spec, &table));
  leeway_spec_free(spec);
  const std::vector<float> pushed = {1, 2, 3};
  std::vector<float> pulled(3);
  leeway_ticket* ticket = nullptr;
  ASSERT_C_OK(leeway_push(table, LEEWAY_FLOAT32, pushed.data(), 3, nullptr, &ticket));
  EXPECT_C_OK(leeway_wait(worker, ticket));
  leeway_ticket_free(ticket);
  ASSERT_C_OK(leeway_pull(table, LEEWAY_FLOAT32, pulled.data(), 3, nullptr, &ticket));
  EXPECT_C_OK(leeway_wait(worker, ticket));
  leeway_ticket_free(ticket);
  EXPECT_EQ(pulled, pushed);
  EXPECT_GT(encodings, 0);
  leeway_table_free(table);
  leeway_worker_free(worker);
  EXPECT_TRUE((*cluster)->Finish().ok());
}

}  // namespace
}  // namespace leeway::tests
