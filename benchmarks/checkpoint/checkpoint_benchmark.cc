// Measures how fast a large model is saved while it is trained, and how long a worker waits because
// of that. It is one of a cluster's workers (run.sh starts them): fills a model of dense and sparse
// tables with Adam's state, trains, and saves checkpoints meanwhile; then pushes to every value
// once more, and sums up all values. A cluster that starts from the last checkpoint, and gets that
// clock, comes to the same sum if every value and every next update is the same.
//
// Each of the first rounds has a window of training in which a checkpoint is saved, and one as long
// without. In each of the others dd writes as many bytes as the checkpoint has, alone and beside
// training, and one more checkpoint is saved. They come after the others since dd fills the page
// cache, which is freed as its file is removed: if a virtual machine's host takes such memory back,
// memory that is new to a program is slow for a while, and the checkpoint would be blamed for that.
// If training keeps all processors busy, a checkpoint takes its share from it: PACE_MS leaves idle
// time.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "checkpoint/dd.h"
#include "checkpoint/model.h"
#include "checkpoint/windows.h"

namespace leeway::bench {
namespace {

constexpr absl::Duration kSettling = absl::Seconds(2);

struct Settings {
  std::string folder;
  ModelSize size;
  int rounds = 3;
  absl::Duration pace;
  std::uint64_t end = 0;  // clock of the run whose checkpoint this one starts from; 0: none
};

// Trains while `work` runs on another thread.
Window TrainDuring(Trainer* trainer, const std::function<void()>& work) {
  std::atomic<bool> over = false;
  std::thread thread([&] {
    work();
    over = true;
  });
  const Window window = trainer->While([&](absl::Duration) { return !over; });
  thread.join();
  return window;
}

class Measurement {
 public:
  Measurement(Worker* worker, Model* model, const Settings& settings)
      : worker_(worker), settings_(settings), trainer_(model, settings.pace) {}

  void Run() {
    trainer_.For(kSettling);
    for (int round = 0; round < settings_.rounds; ++round) Compare();
    report_.dd.push_back(Dd());
    for (int round = 0; round < settings_.rounds; ++round) {
      trainer_.For(kSettling);
      report_.saved_after_dd.push_back(Save());
      report_.with_dd.push_back(
          TrainDuring(&trainer_, [&] { report_.dd_training.push_back(Dd()); }));
      report_.dd.push_back(Dd());
    }
    report_.pauses_known = trainer_.pauses().possible();
    Print(report_);
  }

 private:
  double Dd() { return RateOfDd(settings_.folder, settings_.size.bytes); }

  void Compare() {
    const absl::Time start = absl::Now();
    report_.with.push_back(Save());
    const absl::Duration took = absl::Now() - start;
    report_.after.push_back(trainer_.For(kSettling));
    report_.without.push_back(trainer_.For(took));
    trainer_.For(kSettling);
  }

  Window Save() {
    return TrainDuring(&trainer_, [&] {
      const absl::Time start = absl::Now();
      const auto saved = worker_->Checkpoint(settings_.folder, absl::Minutes(10));
      if (!saved.ok()) Die(saved.status());
      const double seconds = absl::ToDoubleSeconds(absl::Now() - start);
      std::printf("%s: %.1f s\n", saved->c_str(), seconds);
      report_.checkpoint.push_back(static_cast<double>(settings_.size.bytes) / seconds / 1e6);
    });
  }

  Worker* const worker_;
  const Settings& settings_;
  Trainer trainer_;
  Report report_;
};

int Run(const Settings& settings) {
  auto connected = Worker::Connect();
  if (!connected.ok()) Die(connected.status());
  Worker* const worker = connected->get();
  Model model(worker, settings.size);
  const std::uint64_t begin = worker->clock();
  std::uint64_t end = settings.end;
  if (end == 0) {
    while (worker->clock() < settings.size.round()) model.Step();
    if (worker->rank() == 0) {
      Measurement(worker, &model, settings).Run();
      model.AskForEnd();
    }
    while (!model.end_seen()) model.Step();
    end = worker->clock() + settings.size.round();
  }
  model.BeginLastRound(end - settings.size.round());
  while (worker->clock() < end) model.Step();
  if (worker->rank() != 0) return 0;
  std::printf("from clock %llu, at clock %llu: sum %016llx\n",
              static_cast<unsigned long long>(begin), static_cast<unsigned long long>(end),
              static_cast<unsigned long long>(model.Sum()));
  return 0;
}

}  // namespace
}  // namespace leeway::bench

int main(int argc, char** argv) {
  if (argc < 5) {
    std::fprintf(stderr, "usage: checkpoint_benchmark FOLDER GIGABYTES ROUNDS PACE_MS [END]\n");
    return 2;
  }
  return leeway::bench::Run(
      {.folder = argv[1],
       .size = {.bytes = static_cast<std::uint64_t>(std::atof(argv[2]) * 1e9)},
       .rounds = std::atoi(argv[3]),
       .pace = absl::Milliseconds(std::atoi(argv[4])),
       .end = argc > 5 ? static_cast<std::uint64_t>(std::atoll(argv[5])) : 0});
}
