// How fast a large model is saved while it is trained, and how long a worker waits because of it.
// One of a cluster's workers (run.sh starts the others): fills a model of dense and sparse tables
// with Adam's state, trains, saves a checkpoint meanwhile, and goes on until a certain clock, whose
// values it sums up. A cluster that starts from the checkpoint and is run with the same arguments
// comes to the same sum, if every value and every next update is the same.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "leeway/worker.h"

namespace {

using leeway::Table;
using leeway::TableSpec;
using leeway::Ticket;
using leeway::Worker;

constexpr std::uint64_t kTableElements = 1 << 20;  // 12 MiB with Adam's two values
constexpr std::uint64_t kWidth = 16;               // of a row: 208 bytes with state, key and steps
constexpr std::uint64_t kKeysAtOnce = 100'000;
constexpr std::uint64_t kKeysAStep = 1000;

struct Settings {
  std::string folder;
  double gigabytes = 4;
  bool restored = false;

  std::uint64_t bytes() const { return static_cast<std::uint64_t>(gigabytes * 1e9); }
  std::uint64_t dense_tables() const { return bytes() / 2 / (kTableElements * 12) + 1; }
  std::uint64_t rows() const { return bytes() / 2 / (kWidth * 12 + 16) + 1; }
  // Clocks: the model is filled, trained without a checkpoint and with one, and then to its end.
  std::uint64_t filled() const {
    return std::max(dense_tables(), (rows() + kKeysAtOnce - 1) / kKeysAtOnce);
  }
};

[[noreturn]] void Die(const absl::Status& why) {
  std::fprintf(stderr, "checkpoint_benchmark: %s\n", std::string(why.message()).c_str());
  std::exit(1);
}

std::uint64_t Mixed(std::uint64_t x) {
  x = (x ^ (x >> 31)) * 0x7fb5d329728ea185;
  return (x ^ (x >> 27)) * 0x81dadef4bc2dd44d;
}

float Value(std::uint64_t x) { return static_cast<float>(Mixed(x) >> 40) / (1 << 23) - 1.0f; }

class Model {
 public:
  Model(Worker* worker, const Settings& settings) : worker_(worker), settings_(settings) {
    for (std::uint64_t i = 0; i < settings.dense_tables(); ++i) {
      dense_.push_back(Open(TableSpec::Dense(absl::StrCat("dense", i), {kTableElements})));
    }
    sparse_ = Open(TableSpec::Sparse("sparse", kWidth));
    gradient_.resize(std::max(kTableElements, kKeysAtOnce * kWidth));
    for (std::size_t i = 0; i < gradient_.size(); ++i) gradient_[i] = Value(i);
  }

  // One clock: a dense table and some rows. Returns how long the servers took to take it.
  absl::Duration Step() {
    const std::uint64_t clock = worker_->clock(), rank = worker_->rank();
    const bool filling = clock < settings_.filled();
    // The same places each time, so that it depends on the clock alone.
    for (std::size_t i = 0; i < gradient_.size(); i += 97) {
      gradient_[i] = Value(clock * 3 + rank * 5 + i);
    }
    keys_.clear();
    for (std::uint64_t i = 0; i < (filling ? kKeysAtOnce : kKeysAStep); ++i) {
      const std::uint64_t row = filling ? clock * kKeysAtOnce + i : Mixed(clock * 7919 + i);
      keys_.push_back(row % settings_.rows());
    }
    const absl::Time start = absl::Now();
    const Table& table = dense_[clock % dense_.size()];
    const std::vector<Ticket> tickets = {
        table.Push(std::span<const float>(gradient_.data(), kTableElements)),
        sparse_.Push(std::span<const std::uint64_t>(keys_),
                     std::span<const float>(gradient_.data(), keys_.size() * kWidth))};
    Check(worker_->Wait(tickets));
    Check(worker_->Clock());
    // Answered when the clock has closed: keeps the workers together, and sees what holds them up.
    float some[kWidth];
    const std::uint64_t key = keys_[0];
    Check(worker_->Wait(
        sparse_.Pull(std::span<const std::uint64_t>(&key, 1), std::span<float>(some))));
    return absl::Now() - start;
  }

  // Of all values, as they are at the worker's clock.
  std::uint64_t Sum() {
    std::uint64_t sum = 0;
    const auto add = [&](std::uint64_t place, std::span<const float> values) {
      for (const float value : values) {
        std::uint32_t bits = 0;
        std::memcpy(&bits, &value, sizeof(bits));
        sum += Mixed(++place * 31 + bits);
      }
    };
    for (std::size_t i = 0; i < dense_.size(); ++i) {
      Check(worker_->Wait(dense_[i].Pull(std::span<float>(gradient_.data(), kTableElements))));
      add(i << 32, std::span<const float>(gradient_.data(), kTableElements));
    }
    for (std::uint64_t first = 0; first < settings_.rows(); first += kKeysAtOnce) {
      keys_.clear();
      const std::uint64_t end = std::min(first + kKeysAtOnce, settings_.rows());
      for (std::uint64_t key = first; key < end; ++key) keys_.push_back(key);
      const std::span<float> values(gradient_.data(), keys_.size() * kWidth);
      Check(worker_->Wait(sparse_.Pull(std::span<const std::uint64_t>(keys_), values)));
      add(first << 20 | 1, values);
    }
    return sum;
  }

 private:
  Table Open(TableSpec spec) {
    spec.updater.name = "adam";
    auto table = worker_->CreateTable(spec);
    if (!table.ok()) Die(table.status());
    return *table;
  }
  static void Check(const absl::Status& status) {
    if (!status.ok()) Die(status);
  }

  Worker* const worker_;
  const Settings settings_;
  std::vector<Table> dense_;
  Table sparse_;
  std::vector<float> gradient_;
  std::vector<std::uint64_t> keys_;
};

// What the disk can do: as `dd bs=1M conv=fsync`.
double WriteRate(const std::string& path, std::uint64_t bytes) {
  const std::string block(1 << 20, 'x');
  const absl::Time start = absl::Now();
  const int file = open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600);
  for (std::uint64_t written = 0; written < bytes; written += block.size()) {
    if (write(file, block.data(), block.size()) != static_cast<ssize_t>(block.size())) {
      Die(absl::ErrnoToStatus(errno, "cannot write to " + path));
    }
  }
  if (fsync(file) != 0) Die(absl::ErrnoToStatus(errno, "cannot sync " + path));
  close(file);
  const double seconds = absl::ToDoubleSeconds(absl::Now() - start);
  unlink(path.c_str());
  return static_cast<double>(bytes) / seconds / 1e6;
}

struct Steps {
  std::vector<absl::Duration> times;
  void Print(const char* when) {
    std::sort(times.begin(), times.end());
    const auto at = [&](double part) {
      const auto last = static_cast<double>(times.size() - 1);
      return absl::ToDoubleMilliseconds(times[static_cast<std::size_t>(part * last)]);
    };
    std::printf("steps %s a checkpoint: %zu, median %.1f ms, 99%% %.1f ms, longest %.1f ms\n", when,
                times.size(), at(0.5), at(0.99), at(1));
  }
};

// Trains until the checkpoint is there; all workers have to end with the same clock.
void Save(Worker* worker, Model* model, const Settings& settings) {
  const double before = WriteRate(settings.folder + "/dd", settings.bytes());
  Steps without, with;
  std::atomic<bool> saved = false;
  std::string path;
  absl::Duration took;
  const std::uint64_t begin = worker->clock();
  while (worker->clock() < begin + 300) without.times.push_back(model->Step());
  std::thread saver([&] {
    const absl::Time start = absl::Now();
    const auto result = worker->Checkpoint(settings.folder, absl::Minutes(10));
    took = absl::Now() - start;
    if (!result.ok()) Die(result.status());
    path = *result;
    saved = true;
  });
  const absl::Time start = absl::Now();
  std::vector<std::pair<absl::Duration, absl::Duration>> slow;  // how long, and when
  while (!saved) {
    const absl::Duration when = absl::Now() - start;
    with.times.push_back(model->Step());
    slow.emplace_back(with.times.back(), when);
  }
  saver.join();
  const double after = WriteRate(settings.folder + "/dd", settings.bytes());
  const double rate = static_cast<double>(settings.bytes()) / absl::ToDoubleSeconds(took) / 1e6;
  std::printf("%s: %.1f s\n", path.c_str(), absl::ToDoubleSeconds(took));
  std::printf(
      "checkpoint %.0f MB/s; write and fsync of as many bytes %.0f MB/s before, %.0f after "
      "(%.0f %% of the better)\n",
      rate, before, after, 100 * rate / std::max(before, after));
  without.Print("without");
  with.Print("with");
  std::sort(slow.rbegin(), slow.rend());
  slow.resize(std::min<std::size_t>(slow.size(), 5));
  for (const auto& [step, when] : slow) {
    std::printf("  %.1f ms, %.2f s after it was asked for\n", absl::ToDoubleMilliseconds(step),
                absl::ToDoubleSeconds(when));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: checkpoint_benchmark FOLDER GIGABYTES [restored END]\n");
    return 2;
  }
  Settings settings{.folder = argv[1], .gigabytes = std::atof(argv[2]), .restored = argc > 4};
  auto worker = Worker::Connect();
  if (!worker.ok()) Die(worker.status());
  Model model(worker->get(), settings);
  const std::uint64_t begin = (*worker)->clock();
  if (settings.restored) {
    const auto end = static_cast<std::uint64_t>(std::atoll(argv[4]));
    while ((*worker)->clock() < end) model.Step();
    std::printf("from clock %llu, at clock %llu: sum %016llx\n",
                static_cast<unsigned long long>(begin), static_cast<unsigned long long>(end),
                static_cast<unsigned long long>(model.Sum()));
    return 0;
  }
  while ((*worker)->clock() < settings.filled()) model.Step();
  Save(worker->get(), &model, settings);
  for (int i = 0; i < 100; ++i) model.Step();
  std::printf("at clock %llu: sum %016llx\n", static_cast<unsigned long long>((*worker)->clock()),
              static_cast<unsigned long long>(model.Sum()));
  return 0;
}
