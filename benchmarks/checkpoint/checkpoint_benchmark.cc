// How fast a large model is saved while it is trained, and how long a worker waits because of it.
// One of a cluster's workers (run.sh starts them): fills a model of dense and sparse tables with
// Adam's state, trains, and saves checkpoints meanwhile; then every value is pushed to once more,
// and all are summed up. A cluster that starts from the last checkpoint and is told that clock
// comes to the same sum, if every value and every next update is the same.
//
// Each round has a window of training in which a checkpoint is saved, and one as long in which
// nothing else happens, and one as long in which dd writes as many bytes as the checkpoint has.
// Before, between and after them dd has the disk for itself. Where all processors are busy with
// training, what a checkpoint needs of them is taken from it: PACE_MS leaves them time.
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
  std::uint64_t end = 0;  // of the run whose checkpoint this one starts from; 0: from none
};

// Trains while `work` is done on another thread.
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

void Measure(Worker* worker, Model* model, const Settings& settings) {
  const std::uint64_t bytes = settings.size.bytes;
  const auto dd = [&] { return RateOfDd(settings.folder, bytes); };
  Trainer trainer(model, settings.pace);
  Report report{.dd = {dd()}};
  trainer.For(kSettling);
  for (int round = 0; round < settings.rounds; ++round) {
    absl::Duration took;
    report.with.push_back(TrainDuring(&trainer, [&] {
      const absl::Time start = absl::Now();
      const auto saved = worker->Checkpoint(settings.folder, absl::Minutes(10));
      if (!saved.ok()) Die(saved.status());
      took = absl::Now() - start;
      std::printf("%s: %.1f s\n", saved->c_str(), absl::ToDoubleSeconds(took));
    }));
    report.checkpoint.push_back(static_cast<double>(bytes) / absl::ToDoubleSeconds(took) / 1e6);
    report.after.push_back(trainer.For(kSettling));
    report.without.push_back(trainer.For(took));
    report.with_dd.push_back(TrainDuring(&trainer, [&] { report.dd_training.push_back(dd()); }));
    report.dd.push_back(dd());
    trainer.For(kSettling);
  }
  report.pauses_known = trainer.pauses().possible();
  Print(report);
}

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
      Measure(worker, &model, settings);
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
