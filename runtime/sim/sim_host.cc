#include "runtime/sim/sim_host.h"

#include <string>
#include <utility>

#include "runtime/base/random.h"

namespace leeway::runtime {
namespace {

class SimLoop final : public Loop {
 public:
  SimLoop(std::shared_ptr<SimEvents> events, std::shared_ptr<const SimLife> life,
          std::shared_ptr<const SimClock> clock, std::uint64_t seed)
      : events_(std::move(events)),
        life_(std::move(life)),
        clock_(std::move(clock)),
        random_(seed) {}

  absl::Time Now() const override { return clock_->At(events_->Now()); }
  void Post(Task task) override { events_->Add(absl::ZeroDuration(), life_, std::move(task)); }
  TimerId After(absl::Duration delay, Task task) override {
    return events_->Add(clock_->InWorld(delay), life_, std::move(task));
  }
  bool Cancel(TimerId timer) override { return events_->Remove(timer); }
  std::uint64_t Random() override { return random_.Next(); }
  void AddSource(Source*) override {}
  void RemoveSource(Source*) override {}

 private:
  const std::shared_ptr<SimEvents> events_;
  const std::shared_ptr<const SimLife> life_;
  const std::shared_ptr<const SimClock> clock_;
  runtime::Random random_;
};

class SimRunner final : public LoopRunner {
 public:
  SimRunner(std::shared_ptr<SimEvents> events, std::shared_ptr<const SimLife> process,
            std::shared_ptr<const SimClock> clock, std::uint64_t seed)
      : events_(std::move(events)),
        life_(std::make_shared<SimLife>(SimLife{.ended = false, .parent = std::move(process)})),
        loop_(events_, life_, std::move(clock), seed) {}
  ~SimRunner() override { Stop(); }

  Loop* loop() override { return &loop_; }
  void Stop() override {
    if (life_->ended) return;
    life_->ended = true;
    events_->DropTheDead();
  }
  void Join() override {}

 private:
  const std::shared_ptr<SimEvents> events_;
  const std::shared_ptr<SimLife> life_;
  SimLoop loop_;
};

class SimHost final : public Host {
 public:
  SimHost(std::shared_ptr<SimEvents> events, std::shared_ptr<SimLife> life,
          std::shared_ptr<FileSystem> disk, std::shared_ptr<const SimClock> clock,
          std::uint64_t seed)
      : events_(std::move(events)),
        life_(std::move(life)),
        disk_(std::move(disk)),
        clock_(std::move(clock)),
        seed_(seed),
        random_(RandomAt(seed, StableHash("process"), 0)) {}

  std::unique_ptr<LoopRunner> Spawn(const std::string& name) override {
    const std::uint64_t loop_seed = RandomAt(seed_, StableHash(name), ++loops_spawned_);
    return std::make_unique<SimRunner>(events_, life_, clock_, loop_seed);
  }
  FileSystem* files() override { return disk_.get(); }
  std::uint64_t Random() override { return random_.Next(); }
  absl::Time WallTime() override { return clock_->At(events_->Now()); }

 private:
  const std::shared_ptr<SimEvents> events_;
  const std::shared_ptr<SimLife> life_;
  const std::shared_ptr<FileSystem> disk_;
  const std::shared_ptr<const SimClock> clock_;
  const std::uint64_t seed_;
  runtime::Random random_;
  std::uint64_t loops_spawned_ = 0;
};

}  // namespace

std::unique_ptr<Host> NewSimHost(std::shared_ptr<SimEvents> events, std::shared_ptr<SimLife> life,
                                 std::shared_ptr<FileSystem> disk,
                                 std::shared_ptr<const SimClock> clock, std::uint64_t seed) {
  return std::make_unique<SimHost>(std::move(events), std::move(life), std::move(disk),
                                   std::move(clock), seed);
}

}  // namespace leeway::runtime
