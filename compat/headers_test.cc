// The parts of the headers that need no cluster.
#include <future>
#include <memory>
#include <sstream>
#include <thread>
#include <vector>

#include "compat/core/array_pool.h"
#include "compat/core/turns.h"
#include "compat/ps/ps.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/loop/real_loop.h"

namespace ps {
namespace {

using testing::ElementsAre;

TEST(SArray, CopiesSegmentsAndCastsShareMemory) {
  SArray<int> array = {1, 2, 3, 4};
  const SArray<int> copy = array;
  const SArray<int> part = array.segment(1, 3);
  const SArray<char> bytes(array);
  array[1] = 7;
  EXPECT_EQ(copy[1], 7);
  EXPECT_EQ(part[0], 7);
  EXPECT_EQ(part.size(), 2u);
  EXPECT_EQ(bytes.size(), 16u);
  EXPECT_EQ(bytes.data(), reinterpret_cast<char*>(array.data()));
  EXPECT_THROW(SArray<double>(array.segment(0, 3)), dmlc::Error);
  EXPECT_THROW(array.segment(3, 5), dmlc::Error);
}

TEST(SArray, GrowsWithoutMovingOthers) {
  SArray<int> array = {1, 2};
  const SArray<int> before = array;
  array.push_back(array[0]);
  array[0] = 9;
  EXPECT_EQ(before[0], 1);
  array.append(array);
  EXPECT_THAT(std::vector<int>(array.begin(), array.end()), ElementsAre(9, 2, 1, 9, 2, 1));
  array.resize(8, 5);
  EXPECT_EQ(array.back(), 5);
  array.resize(1);
  array.pop_back();
  EXPECT_TRUE(array.empty());
}

TEST(SArray, IsCopiedToWhereItIsIfThereIsRoom) {
  SArray<int> array = {1, 2, 3, 4};
  SArray<int> part = array.segment(1, 3);
  part.CopyFrom(std::vector<int>{8, 9}.data(), 2);
  EXPECT_THAT(std::vector<int>(array.begin(), array.end()), ElementsAre(1, 8, 9, 4));
  array.CopyFrom(array.data() + 1, 3);
  EXPECT_THAT(std::vector<int>(array.begin(), array.end()), ElementsAre(8, 9, 4));
  array.CopyFrom(array.begin() + 1, array.end());
  EXPECT_THAT(std::vector<int>(array.begin(), array.end()), ElementsAre(9, 4));
}

TEST(SArray, TakesMemoryOfVectorsAndOthers) {
  const auto vector = std::make_shared<std::vector<float>>(3, 2.0f);
  const SArray<float> shared(vector);
  EXPECT_EQ(shared.data(), vector->data());
  const SArray<float> copied(*vector);
  EXPECT_NE(copied.data(), vector->data());
  bool freed = false;
  float memory[2] = {1, 2};
  {
    SArray<float> given;
    given.reset(memory, 2, [&freed](float*) { freed = true; });
    const SArray<float> part = given.segment(1, 2);
    given.clear();
    EXPECT_FALSE(freed);
    EXPECT_EQ(part[0], 2);
  }
  EXPECT_TRUE(freed);
  std::ostringstream text;
  text << SArray<int>{1, 2};
  EXPECT_EQ(text.str(), "[2]: 1 2 ");
}

TEST(FindRange, FindsTheKeysOfARange) {
  const SArray<Key> keys = {1, 3, 5, 7};
  EXPECT_EQ(FindRange<Key>(keys, 2, 7).begin(), 1u);
  EXPECT_EQ(FindRange<Key>(keys, 2, 7).end(), 3u);
  EXPECT_EQ(FindRange<Key>(keys, 7, 2).size(), 0u);
}

TEST(Logging, ChecksThrow) {
  EXPECT_THROW(CHECK_EQ(1, 2) << "no", dmlc::Error);
  EXPECT_THROW(LOG(FATAL) << "no", dmlc::Error);
  EXPECT_THROW(CHECK_NOTNULL(static_cast<int*>(nullptr)), dmlc::Error);
  CHECK_LT(1, 2) << "never said";
}

TEST(ArrayPool, GivesMemoryAgain) {
  const auto pool = std::make_shared<leeway::compat::ArrayPool>();
  std::shared_ptr<std::byte> first = pool->Take(1000);
  const std::byte* const where = first.get();
  const std::shared_ptr<std::byte> second = pool->Take(1000);
  EXPECT_NE(second.get(), where);
  first.reset();
  EXPECT_NE(pool->Take(400).get(), where);  // far too large
  EXPECT_EQ(pool->Take(900).get(), where);
  EXPECT_EQ(pool->Take(1000).get(), where);
}

using leeway::compat::MessageKind;
using leeway::compat::Turns;

TEST(Turns, TakesMessagesInOrderAndWhenTheyMayCome) {
  const auto turns = std::make_shared<Turns>();
  std::vector<int> order;
  turns->Add(MessageKind::kKeyValues, [&] { order.push_back(1); });
  turns->Add(MessageKind::kSimple, [&] { order.push_back(2); });
  turns->Open(MessageKind::kSimple);
  EXPECT_THAT(order, ElementsAre(2));
  turns->Open(MessageKind::kKeyValues);
  turns->Add(MessageKind::kSimple, [&] {
    turns->Add(MessageKind::kSimple, [&] { order.push_back(4); });
    order.push_back(3);
  });
  turns->Close();
  turns->Add(MessageKind::kSimple, [&] { order.push_back(5); });
  EXPECT_THAT(order, ElementsAre(2, 1, 3, 4));
}

TEST(Turns, RunMessagesThatHaveAHomeThereAlone) {
  const std::unique_ptr<leeway::runtime::Host> host = leeway::runtime::NewRealHost();
  const std::unique_ptr<leeway::runtime::LoopRunner> runner = host->Spawn("home");
  leeway::runtime::Loop* const loop = runner->loop();
  const auto turns = std::make_shared<Turns>();
  std::promise<std::thread::id> ran[2];
  const auto bring = [&](int message) {  // from its home
    std::promise<std::thread::id> brought;
    loop->Post([&] {
      const std::thread::id home = std::this_thread::get_id();
      turns->Add(MessageKind::kKeyValues,
                 [&ran, message] { ran[message].set_value(std::this_thread::get_id()); },
                 {home, [loop](Turns::Task task) { loop->Post(std::move(task)); }});
      brought.set_value(home);
    });
    return brought.get_future().get();
  };
  const std::thread::id home = bring(0);
  turns->Open(MessageKind::kKeyValues);
  EXPECT_EQ(ran[0].get_future().get(), home) << "the thread that opens runs what has waited";
  std::promise<void> idle;  // the home has ended its turn
  loop->Post([&] { idle.set_value(); });
  idle.get_future().wait();
  turns->Open(MessageKind::kSimple);
  turns->Add(MessageKind::kSimple, [&] { bring(1); });
  EXPECT_EQ(ran[1].get_future().get(), home) << "a thread runs what has come meanwhile";
}

}  // namespace
}  // namespace ps
