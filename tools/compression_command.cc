// `leeway compression`: the same training with one codec after another, each run on its own cluster
// of processes, as `leeway train` makes it.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "examples/fashion_mnist/idx_data.h"
#include "examples/fashion_mnist/model.h"
#include "leeway/config.h"
#include "runtime/base/status_macros.h"
#include "runtime/files/file_system.h"
#include "tools/compression/plan.h"
#include "tools/compression/plots.h"
#include "tools/compression/results.h"
#include "tools/format/progress_bar.h"
#include "tools/launch/guard.h"
#include "tools/launch/output.h"
#include "tools/launch/supervisor.h"
#include "tools/options/commands.h"
#include "tools/train/train_cluster.h"
#include "tools/train/train_json.h"
#include "tools/train/train_printer.h"
#include "tools/train/train_settings.h"

namespace leeway::tools {
namespace {

constexpr std::int64_t kSeedsMax = 1000;

// For plain SGD, unless the command gives a rate: runs are short.
constexpr double kSgdRate = 0.1;

absl::Status MakeFolder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  // Only access() tells: permissions say nothing of read-only and special file systems.
  if (!error && access(path.c_str(), W_OK) == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("--out: cannot write into ", path, ": ",
                   error ? error.message() : std::string("Permission denied")));
}

// "ssp-3_topk-0.01_both_1.json"
std::string FileName(const TrainCommand& run) {
  std::string name = absl::StrCat(run.mode, "_", run.codec, "_", run.error_feedback, "_", run.seed);
  std::replace_if(
      name.begin(), name.end(),
      [](char c) {
        return !absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '_';
      },
      '-');
  return name + ".json";
}

// BSP applies the mean of a step's pushes, SSP and ASP apply each by itself: with the rate divided
// by the number of workers, a step of all workers goes equally far in every mode.
std::optional<double> RateFor(const std::string& mode, const TrainCommand& train) {
  const absl::StatusOr<Consistency> consistency = Consistency::Parse(mode);
  const bool mean = consistency.ok() && consistency->is_bsp();
  if (mean || !train.rate || train.updater != "sgd") return train.rate;
  return *train.rate / static_cast<double>(train.workers);
}

class Comparison {
 public:
  Comparison(const CompressionCommand& command, std::vector<std::string> modes,
             std::vector<Variant> variants, std::string json)
      : command_(command),
        modes_(std::move(modes)),
        variants_(std::move(variants)),
        json_(std::move(json)),
        runs_(modes_.size() * variants_.size() * static_cast<std::size_t>(command.seeds)),
        bar_(/*wanted=*/true) {}

  absl::Status Run() {
    for (const std::string& mode : modes_) {
      const std::size_t none = results_.size();  // the index of its result
      for (const Variant& variant : variants_) {
        LEEWAY_ASSIGN_OR_RETURN(const std::vector<TrainFacts> runs, RunSeeds(mode, variant));
        const bool first = results_.size() == none;
        const CompressionResult result =
            Summarize(mode, variant, runs, first ? nullptr : &results_[none]);
        results_.push_back(result);
        bar_.Print(CompressionLine(result));
        // The file is written after each result, so that a later failure loses none.
        LEEWAY_RETURN_IF_ERROR(runtime::WriteFileAtomically(runtime::RealFileSystem(), json_,
                                                            CompressionJson(results_)));
      }
    }
    return absl::OkStatus();
  }

  const std::vector<CompressionResult>& results() const { return results_; }

 private:
  absl::StatusOr<std::vector<TrainFacts>> RunSeeds(const std::string& mode,
                                                   const Variant& variant) {
    std::vector<TrainFacts> runs;
    for (std::int64_t seed = 1; seed <= command_.seeds; ++seed) {
      TrainCommand run = command_.train;
      run.mode = mode;
      run.rate = RateFor(mode, command_.train);
      run.codec = variant.codec;
      run.error_feedback = std::string(Name(variant.error_feedback));
      run.seed = static_cast<std::uint64_t>(seed);
      run.json = absl::StrCat(command_.out, "/runs/", FileName(run));
      LEEWAY_ASSIGN_OR_RETURN(const TrainFacts facts, RunOne(run));
      runs.push_back(facts);
      ++runs_done_;
    }
    return runs;
  }

  absl::StatusOr<TrainFacts> RunOne(const TrainCommand& run) {
    const std::string what =
        absl::StrFormat("%s %s, error feedback %s, seed %d of %d", run.mode, run.codec,
                        run.error_feedback, run.seed, command_.seeds);
    LEEWAY_ASSIGN_OR_RETURN(const fashion_mnist::Settings settings, SettingsFrom(run));
    LEEWAY_ASSIGN_OR_RETURN(const std::vector<launch::ProcessSpec> processes,
                            launch::PlanCluster(ClusterFor(settings, TrainArguments(run))));
    launch::SupervisorOptions options;
    options.on_line = [&](std::size_t i, launch::Stream stream, absl::string_view line) {
      if (stream == launch::Stream::kErrors) {
        return launch::PrintPrefixed(processes[i].name, i, stream, line);
      }
      // Other lines are of worker 0: its curve, which is in its JSON too.
      if (const std::optional<StepLine> step = StepLine::Parse(line)) Show(*step, what);
      return true;
    };
    Show({.step = 0, .steps = 1}, what);
    const launch::SupervisorResult ended = launch::Supervise(processes, options);
    if (ended.exit_code != 0) return absl::AbortedError(absl::StrCat(what, ": ", ended.failure));
    LEEWAY_ASSIGN_OR_RETURN(const std::string text, runtime::RealFileSystem()->Read(run.json));
    return ParseTrainJson(text);
  }

  void Show(const StepLine& step, const std::string& what) {
    const double part = static_cast<double>(step.step) / static_cast<double>(step.steps);
    bar_.ShowText((static_cast<double>(runs_done_) + part) / static_cast<double>(runs_), what);
  }

  const CompressionCommand& command_;
  const std::vector<std::string> modes_;
  const std::vector<Variant> variants_;
  const std::string json_;
  const std::size_t runs_;
  std::size_t runs_done_ = 0;
  ProgressBar bar_;
  std::vector<CompressionResult> results_;
};

// Checks the options with the modes and the first codec, before anything starts.
absl::StatusOr<std::vector<Variant>> Check(const CompressionCommand& command,
                                           const std::vector<std::string>& modes) {
  LEEWAY_ASSIGN_OR_RETURN(const Config config, Config::FromEnvironment());
  if (config.role != Role::kUnknown) {
    return absl::InvalidArgumentError(
        absl::StrCat("LEEWAY_ROLE is ", leeway::Name(config.role),
                     " but `leeway compression` starts clusters of its own: unset it"));
  }
  if (command.seeds < 1 || command.seeds > kSeedsMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("--seeds is ", command.seeds, ": it must be from 1 to ", kSeedsMax));
  }
  if (modes.empty()) return absl::InvalidArgumentError("--modes has none: bsp, ssp:S or asp");
  fashion_mnist::Settings settings;
  for (const std::string& mode : modes) {
    if (std::count(modes.begin(), modes.end(), mode) > 1) {
      return absl::InvalidArgumentError(absl::StrCat("--modes: '", mode, "' is listed twice"));
    }
    if (const auto parsed = Consistency::Parse(mode); !parsed.ok()) {
      return absl::Status(parsed.status().code(),
                          absl::StrCat("--modes: ", parsed.status().message()));
    }
    TrainCommand run = command.train;
    run.mode = mode;
    LEEWAY_ASSIGN_OR_RETURN(settings, SettingsFrom(run));
  }
  if (config.plugins.empty()) LEEWAY_RETURN_IF_ERROR(CheckUpdater(settings));
  LEEWAY_ASSIGN_OR_RETURN(const std::unique_ptr<fashion_mnist::Model> model,
                          fashion_mnist::MakeModel(settings.model, settings.seed));
  LEEWAY_ASSIGN_OR_RETURN(
      std::vector<Variant> variants,
      PlanVariants(command.codecs, fashion_mnist::TableFor(model->parameters().front(), settings)));
  if (const auto data = fashion_mnist::LoadDataset(settings.data); !data.ok()) {
    return absl::Status(data.status().code(), absl::StrCat("--data: ", data.status().message()));
  }
  LEEWAY_RETURN_IF_ERROR(MakeFolder(command.out + "/runs"));
  return variants;
}

void Draw(const std::string& json, const std::string& folder) {
  const absl::StatusOr<std::vector<std::string>> plots = DrawPlots(json, folder);
  if (plots.ok()) {
    std::printf("plots: %s\n", absl::StrJoin(*plots, ", ").c_str());
  } else {
    std::printf("plots are left out: %s\n", std::string(plots.status().message()).c_str());
  }
}

absl::Status Compare(const CompressionCommand& command, const std::vector<std::string>& modes,
                     const std::vector<Variant>& variants) {
  std::vector<CompressionResult> results;
  const std::string json = command.out + "/results.json";
  {
    Comparison comparison(command, modes, variants, json);
    LEEWAY_RETURN_IF_ERROR(comparison.Run());
    results = comparison.results();
  }
  std::printf("\n%s\n", CompressionTable(results).c_str());
  std::printf("results: %s\n", json.c_str());
  Draw(json, command.out);
  return absl::OkStatus();
}

}  // namespace

int RunCompressionCommand(const CompressionCommand& told) {
  CompressionCommand command = told;
  if (command.train.updater == "sgd" && !command.train.rate) command.train.rate = kSgdRate;
  const std::vector<std::string> modes =
      absl::StrSplit(command.modes, absl::ByAnyChar(",;"), absl::SkipWhitespace());
  const absl::StatusOr<std::vector<Variant>> variants = Check(command, modes);
  if (!variants.ok()) return Complain(variants.status());
  return launch::RunGuarded([&] {
    const absl::Status status = Compare(command, modes, *variants);
    return status.ok() ? 0 : Complain(status);
  });
}

}  // namespace leeway::tools
