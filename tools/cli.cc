#include "tools/cli.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <functional>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "examples/fashion_mnist/idx_data.h"
#include "tools/compression/plan.h"
#include "tools/options/commands.h"

namespace leeway::tools {
namespace {

constexpr int kUsageError = 2;

// The parser itself turns negative and too large numbers into others.
std::string CheckCount(const std::string& text) {
  std::uint64_t number = 0;
  if (absl::SimpleAtoi(text, &number)) return "";
  return absl::StrCat("it is '", text, "' but must be a whole number from 0 to ",
                      std::numeric_limits<std::uint64_t>::max());
}

// An empty path is a mistake of the script that wrote it: nothing would be read or written there.
std::string CheckPath(const std::string& text) {
  return text.empty() ? "it is empty but must be a path" : "";
}

// The call of the chosen command.
using Action = std::function<int()>;

void AddRoleOptions(CLI::App* app, RoleCommand* command) {
  app->add_option("--scheduler", command->scheduler,
                  "the scheduler's address, host:port [LEEWAY_SCHEDULER]");
  app->add_option("-s,--servers", command->servers, "servers in the cluster [LEEWAY_NUM_SERVERS]");
  app->add_option("-w,--workers", command->workers, "workers in the cluster [LEEWAY_NUM_WORKERS]");
}

void AddRoles(CLI::App* app, RoleCommand* command, Action* action) {
  CLI::App* scheduler = app->add_subcommand("scheduler", "run a cluster's scheduler");
  AddRoleOptions(scheduler, command);
  scheduler->callback([=] { *action = [=] { return RunSchedulerCommand(*command); }; });

  CLI::App* server = app->add_subcommand("server", "run a server");
  AddRoleOptions(server, command);
  server->callback([=] { *action = [=] { return RunServerCommand(*command); }; });
}

constexpr char kSchedulerHelp[] = "the scheduler's address, host:port [LEEWAY_SCHEDULER]";

void AddStatus(CLI::App* app, StatusCommand* command, Action* action) {
  CLI::App* status = app->add_subcommand(
      "status", "show nodes, shards, tables, models, clocks and checkpoints of a running cluster");
  status->add_option("--scheduler", command->scheduler, kSchedulerHelp);
  status->add_flag("--json", command->json, "print JSON, for programs");
  status
      ->add_option("--watch", command->watch_s,
                   "show it again every so many seconds, until interrupted [2]")
      ->expected(0, 1)
      ->default_str("2")
      ->type_name("SECONDS");
  status->callback([=] { *action = [=] { return RunStatusCommand(*command); }; });
}

void AddMoves(CLI::App* app, DrainCommand* drained, RebalanceCommand* balanced, Action* action) {
  CLI::App* drain =
      app->add_subcommand("drain", "move everything away from a server and let it leave");
  drain->add_option("server", drained->server, "server:RANK")->required();
  drain->add_option("--node", drained->node,
                    "the number of its process (`node` in leeway status --json): no other one that "
                    "has the rank is drained");
  drain->add_option("--scheduler", drained->scheduler, kSchedulerHelp);
  drain->callback([=] { *action = [=] { return RunDrainCommand(*drained); }; });

  CLI::App* rebalance =
      app->add_subcommand("rebalance", "move shards until all servers carry the same load");
  rebalance
      ->add_option("--by", balanced->by, "measure of load: bytes, requests or count (of shards)")
      ->capture_default_str();
  rebalance->add_option("--scheduler", balanced->scheduler, kSchedulerHelp);
  rebalance->callback([=] { *action = [=] { return RunRebalanceCommand(*balanced); }; });
}

void AddCodec(CLI::App* app, CodecCommand* changed, Action* action) {
  CLI::App* codec = app->add_subcommand(
      "codec", "switch a table to another of its codecs (TableSpec::codecs) during training");
  codec->add_option("table", changed->table, "name of the table")->required();
  codec->add_option("codec", changed->codec, "one of the table's codecs, with its options")
      ->required();
  codec->add_option("--scheduler", changed->scheduler, kSchedulerHelp);
  codec->callback([=] { *action = [=] { return RunCodecCommand(*changed); }; });
}

void AddTable(CLI::App* app, TableCommand* changed, Action* action) {
  CLI::App* table = app->add_subcommand(
      "table", "show a table's description, and change settings that do not shape its data");
  table->add_option("table", changed->table, "name of the table")->required();
  table->add_option(
      "--set", changed->changes,
      "a change: updater.NAME=NUMBER (or =default), consistency=TEXT (the same with "
      "another bound on staleness: ssp:S, asp, dssp:LOW-HIGH, psp:S/SAMPLE; a table of "
      "a checkpoint that no worker has opened: any), nonfinite=count or refuse");
  table->add_option("--scheduler", changed->scheduler, kSchedulerHelp);
  table->callback([=] { *action = [=] { return RunTableCommand(*changed); }; });
}

void AddModels(CLI::App* app, ModelCommand* options, Action* action) {
  CLI::App* all = app->add_subcommand("model", "list, show and fetch published models");
  all->require_subcommand(1);
  const auto add = [=](const char* name, const char* help, int (*run)(const ModelCommand&)) {
    CLI::App* command = all->add_subcommand(name, help);
    command->add_option("--scheduler", options->scheduler, kSchedulerHelp);
    command->callback([=] { *action = [=] { return run(*options); }; });
    return command;
  };
  add("list", "list the models, each with its newest version", RunModelList);
  add("show", "show the tables of a model and the versions that are kept", RunModelShow)
      ->add_option("model", options->model, "name of the model")
      ->required();
  CLI::App* fetch = add("fetch", "fetch the newest version of a model, as a reader", RunModelFetch);
  fetch->add_option("model", options->model, "name of the model")->required();
  fetch->add_option("--out", options->file, "safetensors file to write it to")->check(CheckPath);
}

// The options of `leeway checkpoint …`.
struct CheckpointOptions {
  CheckpointSaveCommand save;
  std::string path;
  std::string file;
};

void AddCheckpoints(CLI::App* app, CheckpointOptions* options, RoleCommand* role, Action* action) {
  CLI::App* all = app->add_subcommand("checkpoint", "save, list, verify and use checkpoints");
  all->require_subcommand(1);
  const auto path_of = [options](CLI::App* command) {
    command->add_option("path", options->path, "a checkpoint, or a folder, for the newest in it")
        ->required()
        ->check(CheckPath);
  };
  CLI::App* save = all->add_subcommand("save", "save all tables of a running cluster");
  save->add_option("--dir", options->save.folder,
                   "folder for checkpoints, shared by all machines [the scheduler's "
                   "LEEWAY_CHECKPOINT_DIR]")
      ->check(CheckPath);
  save->add_flag("--incremental", options->save.incremental,
                 "save only changes since the newest checkpoint in the folder");
  save->add_option("--scheduler", options->save.scheduler,
                   "the scheduler's address, host:port [LEEWAY_SCHEDULER]");
  save->callback([=] { *action = [=] { return RunCheckpointSave(options->save); }; });

  CLI::App* list = all->add_subcommand("list", "show the checkpoints in a folder");
  list->add_option("folder", options->path, "folder of checkpoints")->required()->check(CheckPath);
  list->callback([=] { *action = [=] { return RunCheckpointList(options->path); }; });

  CLI::App* verify = all->add_subcommand("verify", "read all of a checkpoint and check every byte");
  path_of(verify);
  verify->callback([=] { *action = [=] { return RunCheckpointVerify(options->path); }; });

  CLI::App* restore =
      all->add_subcommand("restore", "run the scheduler of a new cluster, from a checkpoint");
  path_of(restore);
  AddRoleOptions(restore, role);
  restore->callback([=] { *action = [=] { return RunCheckpointRestore(options->path, *role); }; });

  CLI::App* exported =
      all->add_subcommand("export", "write a checkpoint's values into one safetensors file");
  path_of(exported);
  exported->add_option("file", options->file, "file to write")->required()->check(CheckPath);
  exported->callback(
      [=] { *action = [=] { return RunCheckpointExport(options->path, options->file); }; });
}

void AddLaunch(CLI::App* app, LaunchCommand* command, Action* action) {
  CLI::App* launch = app->add_subcommand(
      "launch", "run a whole cluster on this machine: leeway launch [OPTIONS] -- PROGRAM ARGS...");
  launch->add_option("-s,--servers", command->servers, "servers to start")->capture_default_str();
  launch->add_option("-w,--workers", command->workers, "workers to start")->capture_default_str();
  launch->add_option("--server-program", command->server_program,
                     "program to run as servers, one with updaters and handlers of your own "
                     "(leeway/server.h) [leeway server]");
  launch->add_option("--scheduler", command->scheduler,
                     "address that the scheduler listens at, host:port [a free port]");
  launch
      ->add_option("--restart", command->restart,
                   "on-failure: replace a failed server if other servers have its shards "
                   "(LEEWAY_REPLICATION); never: a failed server ends the cluster")
      ->check(CLI::IsMember({"never", "on-failure"}))
      ->capture_default_str();
  launch
      ->add_option("--restarts-max", command->restarts_max,
                   "servers to replace at most; one more failure ends the cluster")
      ->capture_default_str();
  launch->add_option("--log-dir", command->log_dir,
                     "folder for the output of each process, in NAME.log");
  launch->callback([=] { *action = [=] { return RunLaunchCommand(*command); }; });
}

void AddTrain(CLI::App* app, TrainCommand* command, Action* action) {
  CLI::App* train = app->add_subcommand("train", "train a classifier of Fashion-MNIST");
  train->add_option("--model", command->model, "softmax, mlp or cnn")->capture_default_str();
  train
      ->add_option("--mode", command->mode,
                   "bsp, ssp:S, asp, backup:K/N, dssp:LOW-HIGH, psp:S/SAMPLE, softsync:N or "
                   "fedbuff:K; with weights by staleness: docs/consistency.md")
      ->capture_default_str();
  train->add_option("-w,--workers", command->workers, "workers")->capture_default_str();
  train->add_option("-s,--servers", command->servers, "servers")->capture_default_str();
  train->add_option("--batch", command->batch, "samples a worker and step")
      ->check(CheckCount)
      ->capture_default_str();
  train->add_option("--updater", command->updater, "sgd, momentum, adam, ...")
      ->capture_default_str();
  train->add_option("--rate", command->rate, "learning rate [a default for each updater]");
  train->add_flag("--constant-rate", command->constant_rate,
                  "keep the learning rate instead of decreasing it to 0 over the run");
  train->add_option("--updater-parameter", command->updater_parameters,
                    "another parameter of the updater: NAME=VALUE");
  train
      ->add_option("--codec", command->codec,
                   "codec of gradients and parameters: none, onebit, topk:0.01, ..., or auto")
      ->capture_default_str();
  train->add_option("--codecs", command->codecs,
                    "codecs for auto and `leeway codec` to choose from, separated by ';'");
  train
      ->add_option("--error-feedback", command->error_feedback,
                   "ends that keep what the codec drops: auto, worker, server, both or off")
      ->capture_default_str();
  train->add_option("--epochs", command->epochs, "passes over the training images")
      ->capture_default_str();
  train->add_option("--steps", command->steps, "number of steps, instead of --epochs; 0: by epochs")
      ->capture_default_str();
  train->add_option("--seed", command->seed, "seed of initial values and order")
      ->check(CheckCount)
      ->capture_default_str();
  train->add_option("--slow", command->slow, "W:MS: worker W sleeps MS milliseconds in each step");
  train
      ->add_option("--data", command->data,
                   absl::StrCat("folder with the images [", fashion_mnist::kDefaultFolder, "]"))
      ->check(CheckPath);
  train->add_option("--json", command->json, "write settings, curve and totals to this file")
      ->check(CheckPath);
  train->add_option("--save", command->save, "write the parameters to this file (safetensors)")
      ->check(CheckPath);
  train
      ->add_option("--checkpoint", command->checkpoints,
                   "save checkpoints into this folder while training")
      ->check(CheckPath);
  train->add_option("--checkpoint-every", command->checkpoint_every, "seconds between checkpoints")
      ->check(CheckCount)
      ->capture_default_str();
  train->add_flag("--restore", command->restore, "go on from the newest checkpoint in that folder");
  train->add_flag("--reference", command->reference,
                  "train in one process without a cluster, with batches of workers x batch");
  train->add_flag("--quiet", command->quiet, "print errors only");
  train->add_flag("--steps-to-launcher", command->steps_to_launcher)->group("");
  train->callback([=] { *action = [=] { return RunTrainCommand(*command); }; });
}

void AddCompression(CLI::App* app, CompressionCommand* command, Action* action) {
  TrainCommand& train = command->train;
  // Many small steps, with the updater that error feedback suits best.
  command->codecs = kDefaultCodecs;
  train.updater = "sgd";
  train.batch = 16;
  train.epochs = 1;
  CLI::App* compression = app->add_subcommand(
      "compression", "compare codecs: test accuracy of Fashion-MNIST against bytes on the wire");
  compression->add_option("--codecs", command->codecs, "separated by ';'; none is always included")
      ->capture_default_str();
  compression->add_option("--modes,--mode", command->modes, "bsp, ssp:S, asp; separated by ','")
      ->capture_default_str();
  compression->add_option("--seeds", command->seeds, "runs of each codec, with seeds 1, 2, ...")
      ->capture_default_str();
  compression->add_option("--epochs", train.epochs, "passes over the training images of a run")
      ->capture_default_str();
  compression
      ->add_option("--steps", train.steps, "number of steps, instead of --epochs; 0: by epochs")
      ->capture_default_str();
  compression->add_option("--model", train.model, "softmax, mlp or cnn")->capture_default_str();
  compression->add_option("-w,--workers", train.workers, "workers")->capture_default_str();
  compression->add_option("-s,--servers", train.servers, "servers")->capture_default_str();
  compression->add_option("--batch", train.batch, "samples a worker and step")
      ->capture_default_str();
  compression->add_option("--updater", train.updater, "sgd, momentum, adam, ...")
      ->capture_default_str();
  compression->add_option("--rate", train.rate,
                          "learning rate, the same for all codecs; with sgd in SSP and ASP it is "
                          "divided by --workers [sgd: 0.1; others: a default for each]");
  compression
      ->add_option("--data", train.data,
                   absl::StrCat("folder with the images [", fashion_mnist::kDefaultFolder, "]"))
      ->check(CheckPath);
  compression
      ->add_option("--out", command->out, "folder for results.json, plots and the runs' JSON")
      ->check(CheckPath)
      ->capture_default_str();
  compression->callback([=] { *action = [=] { return RunCompressionCommand(*command); }; });
}

void AddDoctor(CLI::App* app, bool* json, Action* action) {
  CLI::App* doctor = app->add_subcommand(
      "doctor", "check whether a node can run on this machine, and say what to change");
  doctor->add_flag("--json", *json, "print all facts as JSON, for programs");
  doctor->callback([=] { *action = [=] { return RunDoctorCommand(*json); }; });
}

// For the list of commands alone: what follows `lab` is parsed by leeway-lab.
void AddLab(CLI::App* app) {
  app->add_subcommand("lab", "run experiments on consistency, compression and stragglers");
}

void AddRest(CLI::App* app, std::vector<std::string>* files, Action* action) {
  CLI::App* compare = app->add_subcommand("compare", "show several runs' JSON files as a table");
  compare->add_option("files", *files, "files that `leeway train --json` wrote")->required();
  compare->callback([=] { *action = [=] { return RunCompareCommand(*files); }; });

  CLI::App* version = app->add_subcommand("version", "print the version");
  version->callback([=] {
    *action = [] {
      std::printf("leeway %s\n", kVersion);
      return 0;
    };
  });
}

// Takes "-- PROGRAM ARGS…" off `arguments`: these belong to the program, not to `leeway`.
std::vector<std::string> TakeProgram(std::vector<std::string>* arguments) {
  const auto mark = std::find(arguments->begin(), arguments->end(), "--");
  if (mark == arguments->end()) return {};
  std::vector<std::string> program(mark + 1, arguments->end());
  arguments->erase(mark, arguments->end());
  return program;
}

// The parser reports a missing command even if an unknown one is given.
std::string MistakeText(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<std::string> unknown = app.remaining();
  if (!app.get_subcommands().empty() || unknown.empty()) return error.what();
  return absl::StrCat("there is no command '", unknown.front(), "'");
}

// The command that the parser has recognised, with its subcommand: "leeway checkpoint save".
std::string CommandOf(const CLI::App& app) {
  const std::vector<CLI::App*> below = app.get_subcommands();
  if (below.empty()) return app.get_name();
  return absl::StrCat(app.get_name(), " ", CommandOf(*below.front()));
}

// `leeway help`, `leeway help checkpoint save`: the same as that command with --help.
void TurnHelpIntoOption(std::vector<std::string>* arguments) {
  if (arguments->empty() || arguments->front() != "help") return;
  arguments->erase(arguments->begin());
  arguments->push_back("--help");
}

std::string OneLine(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

int UsageError(const CLI::App& app, const CLI::ParseError& error) {
  std::fprintf(stderr, "leeway: %s (see %s --help)\n", OneLine(MistakeText(app, error)).c_str(),
               CommandOf(app).c_str());
  return kUsageError;
}

}  // namespace

int Main(const std::vector<std::string>& arguments) {
  CLI::App app("Leeway, a parameter server", "leeway");
  app.require_subcommand(1);
  app.footer("leeway help COMMAND shows the options of a command.");
  app.set_version_flag("--version", absl::StrCat("leeway ", kVersion), "print the version");
  Action action;
  RoleCommand role;
  StatusCommand status;
  DrainCommand drain;
  RebalanceCommand rebalance;
  CodecCommand codec;
  TableCommand table;
  ModelCommand model;
  CheckpointOptions checkpoint;
  LaunchCommand launch;
  TrainCommand train;
  train.arguments = arguments;
  CompressionCommand compression;
  std::vector<std::string> files;
  bool doctor_json = false;
  AddRoles(&app, &role, &action);
  AddStatus(&app, &status, &action);
  AddMoves(&app, &drain, &rebalance, &action);
  AddCodec(&app, &codec, &action);
  AddTable(&app, &table, &action);
  AddModels(&app, &model, &action);
  AddCheckpoints(&app, &checkpoint, &role, &action);
  AddLaunch(&app, &launch, &action);
  AddTrain(&app, &train, &action);
  AddCompression(&app, &compression, &action);
  AddDoctor(&app, &doctor_json, &action);
  AddLab(&app);
  AddRest(&app, &files, &action);

  std::vector<std::string> own(arguments.begin() + (arguments.empty() ? 0 : 1), arguments.end());
  if (own.empty()) {
    std::fputs(app.help().c_str(), stderr);
    return kUsageError;
  }
  TurnHelpIntoOption(&own);
  if (own[0] == "lab") return RunLabCommand({own.begin() + 1, own.end()});
  const bool is_launch = own[0] == "launch";
  if (is_launch) launch.program = TakeProgram(&own);
  std::reverse(own.begin(), own.end());  // the parser takes them from the back
  try {
    app.parse(own);
  } catch (const CLI::Success& wanted) {  // --help, --version
    const bool known = !app.get_subcommands().empty() || app.remaining().empty();
    return known ? app.exit(wanted) : UsageError(app, wanted);
  } catch (const CLI::ParseError& error) {
    return UsageError(app, error);
  }
  if (is_launch && launch.program.empty()) {
    std::fprintf(stderr,
                 "leeway: launch needs a program: leeway launch -s S -w W -- PROGRAM "
                 "(see leeway launch --help)\n");
    return kUsageError;
  }
  return action();
}

}  // namespace leeway::tools
