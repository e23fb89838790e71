// A program written as programs of ps-lite are: `program WAY` is a scheduler, a server or a worker,
// as DMLC_ROLE says. Each way uses another part of the interface and checks what comes back; a
// check that fails ends the process.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "ps/ps.h"

namespace {

using ps::Key;

// Keys of all servers' ranges; `first` tells workers apart.
std::vector<Key> SpreadKeys(int count, int first) {
  std::vector<Key> keys;
  for (int i = 0; i < count; ++i) keys.push_back(ps::kMaxKey / count * i + first);
  return keys;
}

// What a worker has got, for a comparison with ps-lite.
void Say(const char* what, int number, const std::vector<float>& values) {
  std::string line = std::string(what) + " " + std::to_string(number) + ":";
  for (size_t i = 0; i < values.size() && i < 10; ++i) line += " " + std::to_string(values[i]);
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

template <typename Val>
void ServeDefault(int app_id) {
  if (!ps::IsServer()) return;
  ps::KVServer<Val>* const server = new ps::KVServer<Val>(app_id);
  server->set_request_handle(ps::KVServerDefaultHandle<Val>());
  static std::vector<std::function<void()>> all;
  all.push_back([server] { delete server; });
  ps::RegisterExitCallback([] {
    for (const std::function<void()>& one : all) one();
  });
}

// ---- default: sums by push, pull and push-pull ----

void CheckSums(ps::KVWorker<float>* kv, int rank) {
  const int kKeys = 500, kRepeat = 5;
  const std::vector<Key> keys = SpreadKeys(kKeys, rank);
  std::vector<float> values(kKeys), pulled, outs;
  for (int i = 0; i < kKeys; ++i) values[i] = static_cast<float>(i % 100);
  std::vector<int> timestamps;
  for (int i = 0; i < kRepeat; ++i) timestamps.push_back(kv->Push(keys, values));
  for (const int timestamp : timestamps) kv->Wait(timestamp);
  kv->Wait(kv->Pull(keys, &pulled));
  CHECK_EQ(pulled.size(), keys.size());
  for (int i = 0; i < kKeys; ++i) CHECK_EQ(pulled[i], kRepeat * values[i]);
  kv->Wait(kv->PushPull(keys, values, &outs));
  for (int i = 0; i < kKeys; ++i) CHECK_EQ(outs[i], (kRepeat + 1) * values[i]);
  // Without copies.
  ps::SArray<float> zeros(kKeys);
  kv->Wait(kv->ZPull(ps::SArray<Key>(keys), &zeros));
  CHECK_EQ(zeros[kKeys - 1], outs[kKeys - 1]);
}

void CheckKeysNeverPushed(ps::KVWorker<float>* kv, int rank) {
  const std::vector<Key> keys = {Key(rank) + 1000, Key(rank) + 1010, ps::kMaxKey - 100 - rank};
  std::vector<float> values;
  kv->Wait(kv->Pull(keys, &values));
  CHECK_EQ(values.size(), 3u);
  for (const float value : values) CHECK_EQ(value, 0);
  kv->Wait(kv->Push({keys[1]}, {7}));
  values.assign(3, -1);
  kv->Wait(kv->Pull(keys, &values));
  CHECK_EQ(values[0], 0);
  CHECK_EQ(values[1], 7);
  CHECK_EQ(values[2], 0);
}

void CheckLens(ps::KVWorker<double>* kv, int rank) {
  const std::vector<Key> keys = {Key(rank) * 4 + 1, Key(rank) * 4 + 2, ps::kMaxKey / 2 + rank};
  const std::vector<int> lens = {1, 3, 2};
  const std::vector<double> values = {1, 2, 3, 4, 5, 6};
  kv->Wait(kv->Push(keys, values, lens));
  kv->Wait(kv->Push(keys, values, lens));
  std::vector<double> pulled;
  std::vector<int> pulled_lens;
  kv->Wait(kv->Pull(keys, &pulled, &pulled_lens));
  CHECK(pulled_lens == lens);
  CHECK_EQ(pulled.size(), values.size());
  for (size_t i = 0; i < values.size(); ++i) CHECK_EQ(pulled[i], 2 * values[i]);
  std::vector<double> outs;
  std::vector<int> out_lens = lens;
  kv->Wait(kv->PushPull(keys, values, &outs, &out_lens));
  CHECK(out_lens == lens);
  CHECK_EQ(outs.back(), 18);
}

// A request of no keys is done within its call: its callback runs there, within another one too.
void CheckCallbacksOfNoKeys(ps::KVWorker<float>* kv, const std::vector<Key>& keys) {
  int runs = 0;
  kv->Wait(kv->Push(keys, {0}, {}, 0, [&] { kv->Push({}, {}, {}, 0, [&] { ++runs; }); }));
  CHECK_EQ(runs, 1);
}

void CheckCallbacks(ps::KVWorker<float>* kv, int rank) {
  const std::vector<Key> keys = {Key(rank) + 5000};
  std::mutex mutex;
  std::condition_variable changed;
  int runs = 0;
  // A callback may push, and the last of them is what is waited for.
  std::function<void()> again = [&] {
    const std::lock_guard<std::mutex> lock(mutex);
    if (++runs < 4) {
      kv->Push(keys, {1}, {}, 0, again);
    }
    changed.notify_all();
  };
  kv->Push(keys, {1}, {}, 0, again);
  std::unique_lock<std::mutex> lock(mutex);
  changed.wait(lock, [&] { return runs == 4; });
  lock.unlock();
  bool ran = false;
  std::vector<float> values;
  kv->Wait(kv->Pull(
      keys, &values, nullptr, 0, [&] { ran = true; }, 5));
  CHECK(ran) << "Wait returned before the callback";
  CHECK_EQ(values[0], 4);
  CheckCallbacksOfNoKeys(kv, keys);
}

void CheckThreads(int rank) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([t, rank] {
      ps::KVWorker<float> kv(0, 10 + t);  // on the connections of customer 0
      const std::vector<Key> keys = {Key(100000 + 10 * rank + t)};
      std::vector<float> values;
      for (int i = 0; i < 20; ++i) kv.Wait(kv.Push(keys, {1}));
      kv.Wait(kv.Pull(keys, &values));
      CHECK_EQ(values[0], 20);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

void Default() {
  ServeDefault<float>(0);
  ServeDefault<double>(1);
  ps::Start(0);
  if (ps::IsWorker()) {
    ps::KVWorker<float> kv(0, 0);
    ps::KVWorker<double> other(1, 0);
    const int rank = ps::MyRank();
    CheckSums(&kv, rank);
    CheckKeysNeverPushed(&kv, rank);
    CheckLens(&other, rank);
    CheckCallbacks(&kv, rank);
    CheckThreads(rank);
    // Of all workers.
    kv.Wait(kv.Push({42}, {1}));
    ps::Postoffice::Get()->Barrier(0, ps::kWorkerGroup);
    std::vector<float> all;
    kv.Wait(kv.Pull({42}, &all));
    CHECK_EQ(all[0], ps::NumWorkers());
  }
  ps::Finalize(0, true);
}

// ---- table: rows of two values, behind the same calls (LEEWAY_PS_ROW_WIDTH=2) ----

void Rows() {
  ServeDefault<float>(0);
  ps::Start(0);
  if (ps::IsWorker()) {
    ps::KVWorker<float> kv(0, 0);
    const std::vector<Key> keys = SpreadKeys(50, ps::MyRank());
    const std::vector<float> values(100, 1.5f);
    std::vector<float> outs;
    for (int i = 0; i < 4; ++i) kv.Wait(kv.PushPull(keys, values, &outs));
    CHECK_EQ(outs.size(), values.size());
    for (const float value : outs) CHECK_EQ(value, 6);
    std::vector<int> lens;
    outs.clear();
    kv.Wait(kv.Pull({keys[0], keys[1], ps::kMaxKey}, &outs, &lens));
    CHECK(lens == std::vector<int>(3, 2));
    CHECK_EQ(outs[0], 6);
    CHECK_EQ(outs[5], 0);
  }
  ps::Finalize(0, true);
}

// ---- handler: a handler of the program's own ----

enum Command { kNow = 0, kLater = 1, kCountKeys = 2 };

class Store {
 public:
  explicit Store(ps::KVServer<float>* server)
      : server_(server), answerer_([this] { AnswerLater(); }) {}
  ~Store() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    answerer_.join();
  }

  void Handle(const ps::KVMeta& meta, const ps::KVPairs<float>& data) {
    if (threads_.empty()) threads_[std::this_thread::get_id()] = 1;
    CHECK_EQ(threads_.count(std::this_thread::get_id()), 1u) << "two threads run the handler";
    ps::KVPairs<float> answer;
    if (meta.push) Add(data);
    if (meta.pull && meta.cmd == kCountKeys) {
      answer.keys = data.keys;
      answer.vals = ps::SArray<float>(data.keys.size(), static_cast<float>(data.keys.size()));
    } else if (meta.pull) {
      Read(data, &answer);
    }
    if (meta.cmd != kLater) return server_->Response(meta, answer);
    const std::lock_guard<std::mutex> lock(mutex_);
    later_.emplace_back(meta, answer);
    wake_.notify_all();
  }

 private:
  void Add(const ps::KVPairs<float>& data) {
    size_t from = 0;
    for (size_t i = 0; i < data.keys.size(); ++i) {
      const size_t length =
          data.lens.empty() ? data.vals.size() / data.keys.size() : size_t(data.lens[i]);
      std::vector<float>& value = values_[data.keys[i]];
      if (value.size() < length) value.resize(length);
      for (size_t k = 0; k < length; ++k) value[k] += data.vals[from++];
    }
  }
  void Read(const ps::KVPairs<float>& data, ps::KVPairs<float>* answer) {
    answer->keys = data.keys;
    for (const Key key : data.keys) {
      const std::vector<float>& value = values_[key];
      answer->lens.push_back(static_cast<int>(value.size()));
      for (const float one : value) answer->vals.push_back(one);
    }
  }
  void AnswerLater() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      wake_.wait(lock, [this] { return stop_ || !later_.empty(); });
      if (later_.empty()) return;
      const std::pair<ps::KVMeta, ps::KVPairs<float>> last = later_.back();  // in another order
      later_.pop_back();
      lock.unlock();
      server_->Response(last.first, last.second);
      lock.lock();
    }
  }

  ps::KVServer<float>* const server_;
  std::map<Key, std::vector<float>> values_;
  std::map<std::thread::id, int> threads_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stop_ = false;
  std::vector<std::pair<ps::KVMeta, ps::KVPairs<float>>> later_;
  std::thread answerer_;
};

void CheckHandler(ps::KVWorker<float>* kv, int rank, int cmd) {
  const std::vector<Key> keys = {Key(rank) + 10 * Key(cmd), ps::kMaxKey / 2 + rank + 10 * Key(cmd)};
  std::vector<int> timestamps;
  for (int i = 0; i < 20; ++i) timestamps.push_back(kv->Push(keys, {1, 2, 3}, {1, 2}, cmd));
  for (const int timestamp : timestamps) kv->Wait(timestamp);
  std::vector<float> values;
  std::vector<int> lens;
  kv->Wait(kv->Pull(keys, &values, &lens, cmd));
  CHECK(lens == std::vector<int>({1, 2}));
  CHECK(values == std::vector<float>({20, 40, 60}));
  std::vector<float> outs(3);
  kv->Wait(kv->PushPull(keys, {1, 2, 3}, &outs, &lens, cmd));
  CHECK(outs == std::vector<float>({21, 42, 63}));
  Say("handler", rank, outs);
}

// All keys to the last server.
void CheckSlicer() {
  ps::KVWorker<float> kv(0, 1);
  kv.set_slicer([](const ps::KVPairs<float>& pairs, const std::vector<ps::Range>& ranges,
                   ps::KVWorker<float>::SlicedKVs* sliced) {
    sliced->resize(ranges.size());
    sliced->back().first = true;
    sliced->back().second = pairs;
  });
  const std::vector<Key> keys = SpreadKeys(8, 3);
  std::vector<float> counts;
  kv.Wait(kv.Pull(keys, &counts, nullptr, kCountKeys));
  CHECK(counts == std::vector<float>(8, 8)) << "a server has not got the whole request";
  Say("slicer", 0, counts);
}

void CheckLargeArrays(ps::KVWorker<float>* kv, int rank) {
  const size_t kValues = 1 << 20;
  const ps::SArray<Key> keys = {Key(500 + rank)};
  ps::SArray<float> values(kValues, 2), pulled(kValues);
  const ps::SArray<int> lens = {static_cast<int>(kValues)};
  for (int i = 0; i < 3; ++i) kv->Wait(kv->ZPush(keys, values, lens));
  kv->Wait(kv->ZPull(keys, &pulled));
  CHECK_EQ(pulled[0], 6);
  CHECK_EQ(pulled[kValues - 1], 6);
  Say("large", rank, {pulled[0], pulled[kValues / 2]});
}

void Handler() {
  ps::Start(0);
  Store* store = nullptr;
  if (ps::IsServer()) {
    ps::KVServer<float>* const server = new ps::KVServer<float>(0);
    store = new Store(server);
    server->set_request_handle([store](const ps::KVMeta& meta, const ps::KVPairs<float>& data,
                                       ps::KVServer<float>*) { store->Handle(meta, data); });
    ps::RegisterExitCallback([server, store] {
      delete store;
      delete server;
    });
  }
  if (ps::IsWorker()) {
    ps::KVWorker<float> kv(0, 0);
    CheckHandler(&kv, ps::MyRank(), kNow);
    CheckHandler(&kv, ps::MyRank(), kLater);
    CheckCallbacksOfNoKeys(&kv, {ps::Key(900 + ps::MyRank())});
    CheckSlicer();
    CheckLargeArrays(&kv, ps::MyRank());
    std::vector<float> nothing;
    kv.Wait(kv.Pull({}, &nothing));
    kv.Wait(kv.Push({}, {}));
  }
  if (ps::IsScheduler()) {
    // Messages, which other threads of a server bring, come between the requests.
    ps::SimpleApp app(0, 0);
    for (int i = 0; i < 200; ++i) app.Wait(app.Request(i, "", ps::kServerGroup));
  }
  ps::Finalize(0, true);
}

// ---- simple: messages from every node to every other; messages: to those of other roles, which
// is what ps-lite can ----

int OtherRoles() {
  const int all = ps::kScheduler + ps::kServerGroup + ps::kWorkerGroup;
  if (ps::IsScheduler()) return all;
  return ps::IsServer() ? all - ps::kServerGroup : all - ps::kWorkerGroup;
}

void Exchange(int group) {
  ps::SimpleApp app(3, 3);
  int requests = 0, responses = 0;
  app.set_request_handle([&](const ps::SimpleData& request, ps::SimpleApp* self) {
    CHECK_EQ(request.head, 17);
    ++requests;
    self->Response(request, request.body + "!");
  });
  app.set_response_handle([&](const ps::SimpleData& response, ps::SimpleApp*) {
    CHECK_EQ(response.body.substr(response.body.size() - 1), "!");
    ++responses;
  });
  ps::Postoffice::Get()->Barrier(0, ps::kScheduler + ps::kServerGroup + ps::kWorkerGroup);
  const int nodes = static_cast<int>(ps::Postoffice::Get()->GetNodeIDs(group).size());
  std::string body(70000, 'x');
  body[1] = '\0';
  std::vector<int> timestamps;
  for (int i = 0; i < 3; ++i) timestamps.push_back(app.Request(17, body, group));
  for (const int timestamp : timestamps) app.Wait(timestamp);
  ps::Finalize(0, true);
  Say("messages", group, {float(requests), float(responses)});
  CHECK_EQ(responses, 3 * nodes);
  CHECK_EQ(requests, 3 * nodes);
}

void Simple() {
  ps::Start(0);
  Exchange(ps::kScheduler + ps::kServerGroup + ps::kWorkerGroup);
}

void Messages() {
  ps::Start(0);
  Exchange(OtherRoles());
}

// ---- groups: barriers of every group, many times ----

void Groups() {
  ps::StartAsync(0);
  ps::Postoffice* const office = ps::Postoffice::Get();
  CHECK_EQ(office->GetNodeIDs(ps::kServerGroup).size(), size_t(ps::NumServers()));
  CHECK_EQ(office->GetNodeIDs(ps::Postoffice::WorkerRankToID(0))[0], 9);
  CHECK_EQ(office->GetServerKeyRanges().size(), size_t(ps::NumServers()));
  CHECK_EQ(ps::Postoffice::IDtoRank(ps::Postoffice::ServerRankToID(3)), 3);
  const int self = ps::IsScheduler() ? ps::kScheduler
                   : ps::IsServer()  ? ps::kServerGroup
                                     : ps::kWorkerGroup;
  for (int round = 0; round < 5; ++round) {
    for (int group = 1; group <= 7; ++group) {
      if ((group & self) != 0) office->Barrier(0, group);
    }
  }
  ps::Finalize(0, true);
}

// ---- customers: two workers in one process ----

void RunCustomer(int customer_id) {
  ps::Start(customer_id);
  ps::KVWorker<float> kv(0, customer_id);
  const std::vector<Key> keys = SpreadKeys(100, customer_id);
  const std::vector<float> values(100, 1);
  std::vector<float> outs;
  for (int i = 0; i < 10; ++i) kv.Wait(kv.Push(keys, values));
  kv.Wait(kv.Pull(keys, &outs));
  for (const float value : outs) CHECK_EQ(value, 10);
  Say("customer", customer_id, outs);
  ps::Finalize(customer_id, true);
}

void Customers() {
  if (std::string(std::getenv("DMLC_ROLE")) == "worker") {  // ps-lite knows it after Start alone
    std::thread other(RunCustomer, 1);
    RunCustomer(0);
    other.join();
    return;
  }
  ps::Start(0);
  ServeDefault<float>(0);
  ps::Finalize(0, true);
}

// ---- survive: pushes while a server dies ----

void Survive() {
  ServeDefault<float>(0);
  ps::Start(0);
  if (ps::IsServer()) std::printf("server %d runs\n", ps::MyRank());
  std::fflush(stdout);
  if (ps::IsWorker()) {
    ps::KVWorker<float> kv(0, 0);
    const std::vector<Key> keys = SpreadKeys(200, 0);
    const std::vector<float> values(200, 1);
    for (int i = 0; i < 300; ++i) {
      kv.Wait(kv.Push(keys, values));
      if (i == 50) {
        std::printf("worker %d is on its way\n", ps::MyRank());
        std::fflush(stdout);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    ps::Postoffice::Get()->Barrier(0, ps::kWorkerGroup);
    std::vector<float> pulled;
    kv.Wait(kv.Pull(keys, &pulled));
    for (const float value : pulled) CHECK_EQ(value, 300 * ps::NumWorkers());
    std::printf("all is there\n");
  }
  ps::Finalize(0, true);
}

// ---- refused: what cannot go on ends the process ----

void Refused() {
  ServeDefault<float>(0);
  ps::Start(0);
  if (ps::IsWorker()) {
    ps::KVWorker<float> kv(0, 0);
    kv.Wait(kv.Push({1}, {1, 2}));
    kv.Wait(kv.Push({1}, {1, 2, 3}));
  }
  ps::Finalize(0, true);
}

// ---- types: a worker whose values are not the servers' ----

void Types() {
  if (ps::IsServer()) {
    ps::KVServer<float>* const server = new ps::KVServer<float>(0);
    server->set_request_handle([](const ps::KVMeta& meta, const ps::KVPairs<float>&,
                                  ps::KVServer<float>* self) { self->Response(meta); });
    ps::RegisterExitCallback([server] { delete server; });
  }
  ps::Start(0);
  if (ps::IsWorker()) {
    ps::KVWorker<char> kv(0, 0);
    kv.Wait(kv.Push({1}, {'a', 'b', 'c'}));
  }
  ps::Finalize(0, true);
}

// ---- gone: a server dies that has taken messages and has not responded ----

void Gone() {
  ps::Start(0);
  ps::SimpleApp app(3, 3);
  std::atomic<int> responses(0);
  app.set_request_handle([](const ps::SimpleData& request, ps::SimpleApp* self) {
    if (ps::IsServer() && ps::MyRank() == 1) raise(SIGKILL);
    self->Response(request);
  });
  app.set_response_handle([&](const ps::SimpleData&, ps::SimpleApp*) { ++responses; });
  ps::Postoffice::Get()->Barrier(0, ps::kScheduler + ps::kServerGroup + ps::kWorkerGroup);
  if (ps::IsScheduler()) {
    app.Wait(app.Request(1, "to all servers", ps::kServerGroup));
    CHECK_EQ(responses.load(), 1);
    std::printf("all have responded or died\n");
  }
  ps::Finalize(0, true);
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, void (*)()> ways = {
      {"customers", Customers}, {"default", Default},   {"gone", Gone},       {"groups", Groups},
      {"handler", Handler},     {"messages", Messages}, {"refused", Refused}, {"rows", Rows},
      {"simple", Simple},       {"survive", Survive},   {"types", Types}};
  CHECK_EQ(argc, 2);
  ways.at(argv[1])();
  return 0;
}
