// Embeds WordNet's relations on a cluster: a worker program, e.g.
//     leeway launch -s 2 -w 4 -- wordnet --codec onebit --json run.json
#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "examples/wordnet/graph.h"
#include "examples/wordnet/synsets.h"
#include "examples/wordnet/train_worker.h"
#include "leeway/worker.h"

namespace leeway::wordnet {
namespace {

const std::map<std::string, ErrorFeedback> kFeedback = {{"auto", ErrorFeedback::kAuto},
                                                        {"off", ErrorFeedback::kOff},
                                                        {"worker", ErrorFeedback::kWorker}};

struct Command {
  std::string data = kDefaultFolder;
  std::vector<std::string> parts = {"noun", "verb", "adj", "adv"};
  std::string mode = "bsp";
  std::string error_feedback = "auto";
  std::string json;
  GraphOptions graph;
  Settings settings;
};

void AddOptions(CLI::App* app, Command* command) {
  Settings* const settings = &command->settings;
  const auto add = [app](const char* name, auto& value, const char* help) {
    return app->add_option(name, value, help)->capture_default_str();
  };
  add("--data", command->data, "folder with data.noun and the other files");
  add("--parts", command->parts, "parts of speech to read")->delimiter(',');
  add("--core", command->graph.core, "least number of neighbours of an embedded synset");
  add("--held-out-every", command->graph.held_out_every, "one in so many pairs is held out");
  add("--mode", command->mode, "bsp, ssp:S or asp");
  add("--codec", settings->codec, "codec of the rows that are pushed, e.g. int8 or onebit");
  add("--error-feedback", command->error_feedback, "auto, off or worker")
      ->check(CLI::IsMember(kFeedback));
  add("--plain-epochs", settings->plain_epochs,
      "number of first epochs in which rows travel uncompressed")
      ->check(CLI::Range(0, 1000000));
  add("--updater", settings->updater, "adagrad, sgd, ...");
  add("--rate", settings->learning_rate, "learning rate");
  add("--decay", settings->decay, "weight of the regulariser");
  add("--deviation", settings->deviation, "standard deviation of initial values");
  app->add_flag("--constant-rate{false}", settings->rate_falls,
                "keep the learning rate instead of decreasing it to 0 over the run");
  add("--width", settings->width, "floats a row, an even number")->check(CLI::Range(2, 4096));
  add("--epochs", settings->epochs, "passes over the triples")->check(CLI::Range(1, 1000000));
  add("--batch", settings->batch, "triples a worker and step")->check(CLI::Range(1, 1000000));
  add("--negatives", settings->negatives, "negatives a worker and step")
      ->check(CLI::Range(1, 1000000));
  add("--seed", settings->seed, "seed of initial values, order and negatives");
  app->add_option("--json", command->json, "write the result to this file");
}

std::string JsonOf(const Command& command, const Outcome& outcome) {
  const nlohmann::ordered_json json = {{"codec", command.settings.codec},
                                       {"error_feedback", command.error_feedback},
                                       {"plain_epochs", command.settings.plain_epochs},
                                       {"mrr", outcome.mrr},
                                       {"hits_at_10", outcome.hits_at_10},
                                       {"mrr_untrained", outcome.mrr_untrained},
                                       {"bytes_pushed", outcome.bytes_pushed},
                                       {"bytes_pulled", outcome.bytes_pulled},
                                       {"seconds", outcome.seconds},
                                       {"mode", command.mode},
                                       {"seed", command.settings.seed}};
  return json.dump();
}

void PrintEpoch(const EpochPoint& point) {
  std::printf("epoch %zu/%zu  loss %.4f  %.1f s\n", point.epoch, point.epochs, point.loss,
              point.seconds);
  std::fflush(stdout);
}

absl::Status Run(Command command) {
  if (command.settings.width % 2 != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--width is ", command.settings.width, " but must be even"));
  }
  absl::StatusOr<Consistency> consistency = Consistency::Parse(command.mode);
  if (!consistency.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("--mode: ", consistency.status().message()));
  }
  command.settings.consistency = *consistency;
  command.settings.error_feedback = kFeedback.at(command.error_feedback);
  const absl::StatusOr<Synsets> synsets = LoadSynsets(command.data, command.parts);
  if (!synsets.ok()) return synsets.status();
  const absl::StatusOr<Graph> graph = MakeGraph(*synsets, command.graph);
  if (!graph.ok()) return graph.status();
  const absl::StatusOr<std::unique_ptr<Worker>> worker = Worker::Connect();
  if (!worker.ok()) return worker.status();
  if ((*worker)->rank() == 0) {
    std::printf("%u entities, %u relations, %zu triples, %zu held out\n", graph->entities,
                graph->relations, graph->train.size(), graph->held_out.size());
    std::fflush(stdout);
  }
  const absl::StatusOr<Outcome> outcome =
      TrainWorker(command.settings, *graph, PrintEpoch, worker->get());
  if (!outcome.ok()) return outcome.status();
  if (absl::Status status = (*worker)->Leave(); !status.ok()) return status;
  if ((*worker)->rank() != 0) return absl::OkStatus();
  const std::string json = JsonOf(command, *outcome);
  std::printf("%s\n", json.c_str());
  if (command.json.empty()) return absl::OkStatus();
  std::ofstream file(command.json);
  file << json << '\n';
  file.close();
  if (!file) return absl::UnknownError(absl::StrCat("--json: cannot write ", command.json));
  return absl::OkStatus();
}

}  // namespace
}  // namespace leeway::wordnet

int main(int argc, char** argv) {
  CLI::App app("Embeds WordNet's relations; a worker of a Leeway cluster (LEEWAY_SCHEDULER, ...)",
               "wordnet");
  leeway::wordnet::Command command;
  leeway::wordnet::AddOptions(&app, &command);
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = leeway::wordnet::Run(command);
  if (status.ok()) return EXIT_SUCCESS;
  std::fprintf(stderr, "wordnet: %s\n", std::string(status.message()).c_str());
  return EXIT_FAILURE;
}
