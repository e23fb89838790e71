// The work of cluster/work.h through ps-lite's public API: a scheduler, one server that adds the
// pushed values, and one worker. build.sh builds it if PSLITE_DIR names a ps-lite.
//
// A dense tensor is one key with all its values; a sparse row is a key with 16. ps-lite leaves the
// storage of a server to its user. Here it is a std::unordered_map, as in the handler that comes
// with ps-lite; `pslite_bench flat` has rows in a table that is written for speed.
#include <arpa/inet.h>
#include <malloc.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "harness/serve_commands.h"
#include "harness/stopwatch.h"
#include "ps/ps.h"

namespace {

using leeway::bench::Command;
using leeway::bench::Measured;
using leeway::bench::Stopwatch;

constexpr std::size_t kBatches = 8;
constexpr std::size_t kBatchKeys = 100'000;
constexpr std::uint64_t kKeySpace = 10'000'000;
constexpr std::size_t kRowWidth = 16;
constexpr std::uint64_t kDenseKeys = 1ull << 32;  // dense keys begin here

int FreePort() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  bind(fd, generic, size);
  getsockname(fd, generic, &size);
  close(fd);
  return ntohs(address.sin_port);
}

// Keeps freed buffers instead of returning them to the system, as Leeway and raw/zmq.cc do.
void RecycleMemory() {
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
}

// ---- the server ----

// Uninitialised: SArray::resize would write all values once more.
float* MakeRoom(std::size_t size, ps::SArray<float>* values) {
  values->reset(new float[size], size, [](float* memory) { delete[] memory; });
  return values->data();
}

class MapStore {
 public:
  void Add(const ps::SArray<ps::Key>& keys, const float* values, std::size_t width) {
    for (std::size_t k = 0; k < keys.size(); ++k, values += width) {
      std::vector<float>& stored = rows_[keys[k]];
      if (stored.size() != width) stored.resize(width);
      float* const to = stored.data();
      for (std::size_t i = 0; i < width; ++i) to[i] += values[i];
    }
  }
  void Read(const ps::SArray<ps::Key>& keys, ps::SArray<float>* values) {
    std::size_t size = 0;
    for (const ps::Key key : keys) size += rows_[key].size();
    float* to = MakeRoom(size, values);
    for (const ps::Key key : keys) {
      const std::vector<float>& row = rows_[key];
      to = std::copy(row.begin(), row.end(), to);
    }
  }

 private:
  std::unordered_map<std::uint64_t, std::vector<float>> rows_;
};

// Rows of one width only, side by side, with an open-addressing table of their places. Several keys
// are looked up at a time, so that the processor waits for the memory of all of them at once.
class FlatStore {
 public:
  void Add(const ps::SArray<ps::Key>& keys, const float* values, std::size_t width) {
    if (width != kRowWidth) return;
    ForEachRow(keys, [&](std::size_t k, float* row) {
      for (std::size_t i = 0; i < kRowWidth; ++i) row[i] += values[k * kRowWidth + i];
    });
  }
  void Read(const ps::SArray<ps::Key>& keys, ps::SArray<float>* values) {
    float* const to = MakeRoom(keys.size() * kRowWidth, values);
    ForEachRow(keys, [&](std::size_t k, const float* row) {
      std::copy_n(row, kRowWidth, to + k * kRowWidth);
    });
  }

 private:
  struct Slot {
    std::uint64_t key = 0;
    std::uint64_t row = 0;  // 0: empty
  };
  struct alignas(64) Row {
    float values[kRowWidth] = {};
  };
  static constexpr std::size_t kAtOnce = 32;

  template <class Use>
  void ForEachRow(const ps::SArray<ps::Key>& keys, const Use& use) {
    for (std::size_t begin = 0; begin < keys.size(); begin += kAtOnce) {
      const std::size_t end = std::min(begin + kAtOnce, keys.size());
      MakeSlots(end - begin);
      for (std::size_t k = begin; k < end; ++k) __builtin_prefetch(&slots_[HomeOf(keys[k])]);
      std::size_t rows[kAtOnce];
      for (std::size_t k = begin; k < end; ++k) {
        rows[k - begin] = RowOf(keys[k]);
        __builtin_prefetch(&rows_[rows[k - begin]]);
      }
      for (std::size_t k = begin; k < end; ++k) use(k, rows_[rows[k - begin]].values);
    }
  }
  std::size_t HomeOf(std::uint64_t key) const { return (key * 0x9e3779b97f4a7c15) >> (64 - bits_); }
  std::size_t RowOf(std::uint64_t key) {
    for (std::size_t at = HomeOf(key);; at = (at + 1) & (slots_.size() - 1)) {
      Slot& slot = slots_[at];
      if (slot.row == 0) {
        slot = {key, rows_.size()};
        rows_.emplace_back();
      }
      if (slot.key == key) return slot.row;
    }
  }
  // Makes room for `more` further keys.
  void MakeSlots(std::size_t more) {
    if (2 * (rows_.size() + more) <= slots_.size()) return;
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    ++bits_;
    for (const Slot& slot : old) {
      if (slot.row == 0) continue;
      std::size_t at = HomeOf(slot.key);
      while (slots_[at].row != 0) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = slot;
    }
  }

  int bits_ = 10;
  std::vector<Slot> slots_ = std::vector<Slot>(1 << 10);
  std::vector<Row> rows_ = std::vector<Row>(1);  // the first is unused
};

template <class Store>
void Handle(const ps::KVMeta& meta, const ps::KVPairs<float>& data, ps::KVServer<float>* server,
            Store* store) {
  ps::KVPairs<float> reply;
  if (meta.push) {
    const std::size_t keys = data.keys.size();
    store->Add(data.keys, data.vals.data(), keys == 0 ? 0 : data.vals.size() / keys);
  } else {
    reply.keys = data.keys;
    store->Read(data.keys, &reply.vals);
  }
  server->Response(meta, reply);
}

template <class Store>
void RunServer() {
  auto* server = new ps::KVServer<float>(0);
  auto store = std::make_shared<Store>();
  server->set_request_handle(
      [store](const ps::KVMeta& meta, const ps::KVPairs<float>& data, ps::KVServer<float>* self) {
        Handle(meta, data, self, store.get());
      });
  ps::RegisterExitCallback([server] { delete server; });
}

// ---- the worker ----

struct Batch {
  ps::SArray<ps::Key> keys;
  ps::SArray<float> values, result;
};

Batch Dense(std::uint64_t size, std::size_t slot) {
  const std::size_t elements = std::max<std::size_t>(1, size / sizeof(float));
  Batch batch;
  batch.keys = ps::SArray<ps::Key>(1, kDenseKeys + (size << 8) + slot);
  batch.values = ps::SArray<float>(elements, 1e-3f);
  batch.result = ps::SArray<float>(elements, 0.0f);
  return batch;
}

std::vector<Batch> SparseBatches() {
  std::mt19937_64 random(1);
  std::vector<Batch> batches(kBatches);
  for (Batch& batch : batches) {
    std::vector<ps::Key> keys;
    while (keys.size() < kBatchKeys) {
      keys.push_back(random() % kKeySpace);
      if (keys.size() < kBatchKeys) continue;
      std::sort(keys.begin(), keys.end());
      keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    }
    batch.keys = ps::SArray<ps::Key>(keys);
    batch.values = ps::SArray<float>(kBatchKeys * kRowWidth, 1e-3f);
    batch.result = ps::SArray<float>(kBatchKeys * kRowWidth, 0.0f);
  }
  return batches;
}

class Client {
 public:
  explicit Client(pid_t server) : server_(server) {}

  Measured Measure(const Command& command) {
    const bool sparse = command.op.rfind("sparse_", 0) == 0;
    std::vector<Batch>& batches = BatchesFor(command, sparse);
    Command work = command;
    if (sparse) work.bytes = kBatchKeys * (sizeof(ps::Key) + kRowWidth * sizeof(float));
    Command warm_up = work;
    warm_up.seconds = std::min(0.05, command.seconds / 4);
    Measured ignored, measured;
    Run(warm_up, batches, Stopwatch(), &ignored);
    const Stopwatch watch({server_});
    Run(work, batches, watch, &measured);
    measured.seconds = watch.Seconds();
    measured.cpu_seconds = watch.Cpu();
    measured.bytes = measured.operations * work.bytes;
    return measured;
  }

 private:
  std::vector<Batch>& BatchesFor(const Command& command, bool sparse) {
    const auto key = sparse ? std::make_pair(std::uint64_t{0}, 0)
                            : std::make_pair(command.bytes, command.in_flight);
    std::vector<Batch>& batches = batches_[key];
    if (!batches.empty()) return batches;
    if (sparse) {
      batches = SparseBatches();
    } else {
      for (int i = 0; i < command.in_flight; ++i) batches.push_back(Dense(command.bytes, i));
    }
    for (Batch& batch : batches) worker_.Wait(worker_.ZPush(batch.keys, batch.values));
    return batches;
  }

  void Run(const Command& command, std::vector<Batch>& batches, const Stopwatch& watch,
           Measured* measured) {
    const auto slots = static_cast<std::size_t>(command.in_flight);
    const std::size_t look = command.bytes < 4096 ? slots : 1;
    std::vector<int> tickets(slots, -1);
    double begun = watch.Seconds();
    std::size_t operation = 0;
    for (; operation == 0 || operation % look != 0 || watch.Seconds() < command.seconds;
         ++operation) {
      int& ticket = tickets[operation % slots];
      if (ticket >= 0) worker_.Wait(ticket);
      ticket = Start(command.op, operation, batches[operation % batches.size()]);
      if (slots > 1) continue;
      worker_.Wait(std::exchange(ticket, -1));
      const double ended = watch.Seconds();
      measured->latencies_us.push_back(1e6 * (ended - begun));
      begun = ended;
    }
    for (const int ticket : tickets) {
      if (ticket >= 0) worker_.Wait(ticket);
    }
    measured->operations = operation;
  }

  int Start(const std::string& op, std::size_t operation, Batch& batch) {
    const bool push = op == "push" || op == "sparse_push" || (op == "rtt" && operation % 2 == 0);
    return push ? worker_.ZPush(batch.keys, batch.values)
                : worker_.ZPull(batch.keys, &batch.result);
  }

  const pid_t server_;
  ps::KVWorker<float> worker_{0, 0};
  std::map<std::pair<std::uint64_t, int>, std::vector<Batch>> batches_;
};

void Become(const char* role) {
  setenv("DMLC_ROLE", role, 1);
  ps::Start(0);
}

// Runs it in a process of its own; called before this one has threads.
template <class F>
pid_t Fork(F&& run) {
  const pid_t pid = fork();
  if (pid != 0) return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  dup2(STDERR_FILENO, STDOUT_FILENO);
  run();
  _exit(0);
}

}  // namespace

int main(int argc, char** argv) {
  const bool flat = argc > 1 && std::string(argv[1]) == "flat";
  RecycleMemory();
  setenv("DMLC_NUM_SERVER", "1", 1);
  setenv("DMLC_NUM_WORKER", "1", 1);
  setenv("DMLC_PS_ROOT_URI", "127.0.0.1", 1);
  setenv("DMLC_NODE_HOST", "127.0.0.1", 1);
  setenv("DMLC_PS_ROOT_PORT", std::to_string(FreePort()).c_str(), 1);
  Fork([] {
    Become("scheduler");
    ps::Finalize(0, true);
  });
  const pid_t server = Fork([flat] {
    Become("server");
    flat ? RunServer<FlatStore>() : RunServer<MapStore>();
    ps::Finalize(0, true);
  });
  Become("worker");
  Client client(server);
  leeway::bench::ServeCommands([&](const Command& command) { return client.Measure(command); });
  _exit(0);  // the other processes end with this one
}
