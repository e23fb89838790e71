// The commands of `leeway`, each in a file of its own; cli.cc calls them. All return an exit code
// and report errors in one line on standard error.
#ifndef LEEWAY_TOOLS_OPTIONS_COMMANDS_H_
#define LEEWAY_TOOLS_OPTIONS_COMMANDS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace leeway::tools {

// "0.1.0 (commit 0123456789ab, Release build)": of WriteVersion.cmake.
extern const char kVersion[];

// "leeway: reason" on standard error; returns 1.
int Complain(const absl::Status& why);

// The options of `scheduler` and `server` that override the environment.
struct RoleCommand {
  std::string scheduler = {};
  std::optional<std::uint32_t> servers = {};
  std::optional<std::uint32_t> workers = {};
  std::string restore = {};  // a scheduler's
};
int RunSchedulerCommand(const RoleCommand& command);
int RunServerCommand(const RoleCommand& command);

struct StatusCommand {
  std::string scheduler;
  bool json = false;
  std::optional<double> watch_s;  // shown again every so many seconds, until interrupted
};
int RunStatusCommand(const StatusCommand& command);

// Becomes leeway-lab, with these arguments.
int RunLabCommand(const std::vector<std::string>& arguments);

// Checks this machine for a node, and says what to change. Not 0 only if something does not work.
int RunDoctorCommand(bool json);

struct DrainCommand {
  std::string scheduler;
  std::string server;                 // "server:RANK"
  std::optional<std::uint32_t> node;  // the process of that rank, as status shows it
};
int RunDrainCommand(const DrainCommand& command);

struct RebalanceCommand {
  std::string scheduler;
  std::string by = "bytes";
};
int RunRebalanceCommand(const RebalanceCommand& command);

struct TableCommand {
  std::string table;
  std::vector<std::string> changes;  // "field=value"
  std::string scheduler;             // empty: LEEWAY_SCHEDULER
};
int RunTableCommand(const TableCommand& command);

// Of `leeway model …`.
struct ModelCommand {
  std::string scheduler;
  std::string model;
  std::string file;  // a safetensors file to write; empty: none
};
int RunModelList(const ModelCommand& command);
int RunModelShow(const ModelCommand& command);
int RunModelFetch(const ModelCommand& command);

struct CodecCommand {
  std::string scheduler;
  std::string table;
  std::string codec;
};
int RunCodecCommand(const CodecCommand& command);

struct CheckpointSaveCommand {
  std::string scheduler;
  std::string folder;  // empty: the scheduler's
  bool incremental = false;
};
int RunCheckpointSave(const CheckpointSaveCommand& command);
int RunCheckpointList(const std::string& path);
// These take a checkpoint, or a folder of checkpoints, of which they take the newest.
int RunCheckpointVerify(const std::string& path);
int RunCheckpointExport(const std::string& path, const std::string& file);
int RunCheckpointRestore(const std::string& path, const RoleCommand& scheduler);

struct LaunchCommand {
  std::uint32_t servers = 1;
  std::uint32_t workers = 1;
  std::string scheduler;
  std::string server_program;
  std::string restart = "on-failure";  // or "never": of failed servers
  std::uint32_t restarts_max = 20;
  std::string log_dir;  // empty: the terminal only
  std::vector<std::string> program;
};
int RunLaunchCommand(const LaunchCommand& command);

struct TrainCommand {
  std::string model = "mlp";
  std::string mode = "bsp";
  std::int64_t workers = 4;
  std::int64_t servers = 2;
  std::int64_t batch = 64;
  std::string updater = "adam";
  std::string codec = "none";
  std::string codecs;  // separated by ';': codec auto chooses from them
  std::string error_feedback = "auto";
  std::optional<double> rate;
  bool constant_rate = false;
  std::vector<std::string> updater_parameters;  // "NAME=VALUE"
  std::int64_t epochs = 8;
  std::int64_t steps = 0;
  std::uint64_t seed = 1;
  std::vector<std::string> slow;  // "W:MS"
  std::string data;
  std::string json;
  std::string save;
  std::string checkpoints;              // folder; empty: none are saved
  std::uint64_t checkpoint_every = 10;  // seconds
  bool restore = false;
  bool reference = false;
  bool quiet = false;
  bool steps_to_launcher = false;      // print every step on standard output, for a progress bar
  std::vector<std::string> arguments;  // argv, to run the same command as a worker
};
int RunTrainCommand(const TrainCommand& command);

struct CompressionCommand {
  std::string codecs;         // separated by ';'
  std::string modes = "bsp";  // separated by ','
  std::int64_t seeds = 5;     // from 1 on
  std::string out = "out/compression";
  TrainCommand train;  // the options of all runs
};
int RunCompressionCommand(const CompressionCommand& command);

int RunCompareCommand(const std::vector<std::string>& files);

}  // namespace leeway::tools

#endif  // LEEWAY_TOOLS_OPTIONS_COMMANDS_H_
