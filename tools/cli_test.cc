#include "tools/cli.h"

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/train/train_printer.h"
#include "tools/train/train_settings.h"

namespace leeway::tools {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;

struct Said {
  int code;
  std::string output;
  std::string errors;
};

Said Leeway(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "leeway");
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const int code = Main(arguments);
  return {code, testing::internal::GetCapturedStdout(), testing::internal::GetCapturedStderr()};
}

// Expects that exit code, and one line on standard error that contains `text`.
void ExpectComplaint(std::vector<std::string> arguments, int code, const std::string& text) {
  const Said said = Leeway(std::move(arguments));
  EXPECT_EQ(said.code, code);
  EXPECT_EQ(said.output, "");
  EXPECT_THAT(said.errors, MatchesRegex("leeway: [^\n]+\n"));
  EXPECT_THAT(said.errors, HasSubstr(text));
}

TEST(CliTest, Version) {
  const std::string version = Leeway({"--version"}).output;
  EXPECT_THAT(
      version,
      MatchesRegex("leeway 0\\.1\\.0 \\((commit [0-9a-f]+(-changed)?, )?[A-Za-z]+ build\\)\n"));
  EXPECT_EQ(Leeway({"version"}).output, version);
}

TEST(CliTest, HelpNamesTheCommands) {
  const Said said = Leeway({"--help"});
  EXPECT_EQ(said.code, 0);
  for (const char* command :
       {"scheduler", "server", "launch", "train", "compare", "compression", "status", "drain",
        "rebalance", "codec", "table", "model", "checkpoint", "doctor", "version"}) {
    EXPECT_THAT(said.output, HasSubstr(command));
  }
}

TEST(CliTest, WithoutACommandItShowsItsUsage) {
  const Said said = Leeway({});
  EXPECT_EQ(said.code, 2);
  EXPECT_EQ(said.output, "");
  EXPECT_THAT(said.errors, HasSubstr("Subcommands:"));
}

TEST(CliTest, HelpIsACommandToo) {
  EXPECT_EQ(Leeway({"help"}).output, Leeway({"--help"}).output);
  EXPECT_EQ(Leeway({"help"}).code, 0);
  EXPECT_EQ(Leeway({"help", "checkpoint", "save"}).output,
            Leeway({"checkpoint", "save", "--help"}).output);
  EXPECT_THAT(Leeway({"help", "checkpoint", "save"}).output, HasSubstr("--incremental"));
  ExpectComplaint({"help", "dance"}, 2, "there is no command 'dance'");
}

TEST(CliTest, ErrorsPointToTheHelpOfTheirCommand) {
  ExpectComplaint({"dance"}, 2, "(see leeway --help)");
  ExpectComplaint({"train", "--no-such-option"}, 2, "(see leeway train --help)");
  ExpectComplaint({"checkpoint", "save", "--no-such-option"}, 2,
                  "(see leeway checkpoint save --help)");
  ExpectComplaint({"model", "show"}, 2, "(see leeway model show --help)");
  ExpectComplaint({"launch"}, 2, "(see leeway launch --help)");
}

TEST(CliTest, LinesThatMakeNoSense) {
  ExpectComplaint({"dance"}, 2, "there is no command 'dance'");
  ExpectComplaint({"--dance", "server"}, 2, "--dance");
  ExpectComplaint({"train", "--workers", "many"}, 2, "--workers");
  ExpectComplaint({"train", "--no-such-option"}, 2, "--no-such-option");
  ExpectComplaint({"launch", "-s", "1", "-w", "1"}, 2, "needs a program");
  ExpectComplaint({"launch", "-s", "1", "-w", "1", "--"}, 2, "needs a program");
  ExpectComplaint({"launch", "prog"}, 2, "prog");
  ExpectComplaint({"compare"}, 2, "files");
}

TEST(CliTest, StatusSaysWhatIsWrong) {
  ExpectComplaint({"status", "--watch", "soon"}, 2, "--watch");
  ExpectComplaint({"status", "--watch", "0"}, 1, "--watch 0: seconds from 0.1");
  ExpectComplaint({"status", "--watch", "nan"}, 1, "--watch nan");
  ExpectComplaint({"status", "--watch"}, 1, "LEEWAY_SCHEDULER is not set");
  ExpectComplaint({"status", "--jsn"}, 2, "--jsn");
}

TEST(CliTest, DrainAndRebalanceSayWhatIsWrong) {
  ExpectComplaint({"drain"}, 2, "server is required");
  ExpectComplaint({"drain", "worker:1"}, 1, "must be server:RANK");
  ExpectComplaint({"drain", "server:1"}, 1, "LEEWAY_SCHEDULER is not set");
  ExpectComplaint({"codec", "w"}, 2, "codec is required");
  ExpectComplaint({"codec", "w", "onebit"}, 1, "LEEWAY_SCHEDULER is not set");
  ExpectComplaint({"table"}, 2, "table is required");
  ExpectComplaint({"table", "w", "--set", "consistency=asp"}, 1, "LEEWAY_SCHEDULER is not set");
  ExpectComplaint({"rebalance"}, 1, "LEEWAY_SCHEDULER is not set");
}

// Refused in one line, before anything connects: nothing listens at the address.
TEST(CliTest, ValuesThatNoSchedulerUnderstandsAreNotSent) {
  const std::string nowhere = "127.0.0.1:1";
  ExpectComplaint({"table", "a\nb", "--scheduler", nowhere}, 1, "argument 1 of table is \"a\\nb\"");
  ExpectComplaint({"table", "w", "--scheduler", nowhere, "--set", "consistency=\xff"}, 1,
                  "argument 2 of table is \"consistency=\\377\"");
  ExpectComplaint({"table", std::string(5000, 'x'), "--scheduler", nowhere}, 1,
                  "argument 1 of table is 5000 bytes long, may be 0 to 4095");
  ExpectComplaint({"codec", "a\nb", "int8", "--scheduler", nowhere}, 1,
                  "argument 1 of codec is \"a\\nb\"");
  std::vector<std::string> many = {"table", "w", "--scheduler", nowhere, "--set"};
  for (int i = 0; i < 64; ++i) many.push_back(absl::StrCat("updater.p", i, "=1"));
  ExpectComplaint(many, 1, "table is given 65 arguments, may be 64");
}

TEST(CliTest, LaunchRefusesNoWorkers) {
  ExpectComplaint({"launch", "-w", "0", "--", "true"}, 1, "1 to 4096 workers, not 0");
}

TEST(CliTest, TrainRefusesWhatItCannotDo) {
  ExpectComplaint({"train", "--mode", "sometimes"}, 1, "--mode");
  ExpectComplaint({"train", "--mode", "ssp:x"}, 1, "--mode");
  ExpectComplaint({"train", "--model", "resnet"}, 1, "there are softmax, mlp and cnn");
  ExpectComplaint({"train", "--workers", "0"}, 1, "--workers is 0");
  ExpectComplaint({"train", "--workers", "-3"}, 1, "--workers is -3");
  ExpectComplaint({"train", "--servers", "0"}, 1, "--servers is 0");
  ExpectComplaint({"train", "--batch", "0"}, 1, "--batch is 0");
  ExpectComplaint({"train", "--epochs", "0"}, 1, "--epochs is 0");
  ExpectComplaint({"train", "--steps", "-1"}, 1, "--steps is -1");
  ExpectComplaint({"train", "--slow", "fast"}, 1, "W:MS");
  ExpectComplaint({"train", "--slow", "1:2:3"}, 1, "W:MS");
  ExpectComplaint({"train", "--slow", "4:50"}, 1, "workers go from 0 to 3");
  ExpectComplaint({"train", "--slow", "0:-1"}, 1, "--slow is -1");
  ExpectComplaint({"train", "--updater", "magic"}, 1, "magic");
  ExpectComplaint({"train", "--codec", "zip"}, 1, "--codec: there is no codec named 'zip'");
  ExpectComplaint({"train", "--codec", "topk:2"}, 1, "--codec: codec topk: ");
  ExpectComplaint({"train", "--codec", "onebit", "--error-feedback", "some"}, 1,
                  "--error-feedback is 'some'");
  ExpectComplaint({"train", "--error-feedback", "both"}, 1, "--error-feedback: table");
  ExpectComplaint({"train", "--codec", "dgc", "--error-feedback", "server"}, 1,
                  "--error-feedback: table");
  ExpectComplaint({"train", "--codec", "onebit", "--updater", "assign"}, 1, "--codec: table");
  ExpectComplaint({"train", "--codec", "onebit", "--reference"}, 1, "--reference");
  ExpectComplaint({"train", "--rate", "-1"}, 1, "learning_rate");
  ExpectComplaint({"train", "--updater-parameter", "speed=3"}, 1, "speed");
  ExpectComplaint({"train", "--updater-parameter", "beta1"}, 1, "NAME=VALUE");
  ExpectComplaint({"train", "--updater-parameter", "beta1=x"}, 1, "NAME=VALUE");
  ExpectComplaint({"train", "--json", "/no/such/folder/x.json"}, 1, "/no/such/folder/x.json");
  ExpectComplaint({"train", "--save", "/"}, 1, "--save: cannot write /: Is a directory");
  ExpectComplaint({"train", "--data", "/no/such/folder"}, 1, "dataset-fashion-mnist");
  ExpectComplaint({"train", "--reference", "--data", "/no/such/folder"}, 1,
                  "dataset-fashion-mnist");
}

TEST(CliTest, CompressionRefusesWhatItCannotDo) {
  ExpectComplaint({"compression", "--codecs", "topk:2"}, 1, "--codecs: ");
  ExpectComplaint({"train", "--codec", "auto", "--codecs", "auto"}, 1, "--codecs: ");
  ExpectComplaint({"compression", "--codecs", "fp16;fp16"}, 1, "'fp16' is listed twice");
  ExpectComplaint({"compression", "--modes", "bsp,sometimes"}, 1, "--modes: ");
  ExpectComplaint({"compression", "--modes", ","}, 1, "--modes");
  ExpectComplaint({"compression", "--modes", "asp,asp"}, 1, "--modes");
  ExpectComplaint({"compression", "--seeds", "0"}, 1, "--seeds is 0");
  ExpectComplaint({"compression", "--workers", "0"}, 1, "--workers is 0");
  ExpectComplaint({"compression", "--updater", "magic"}, 1, "magic");
  ExpectComplaint({"compression", "--data", "/no/such/folder"}, 1, "--data: ");
  ExpectComplaint({"compression", "--out", "/proc/x"}, 1, "--out: cannot write into /proc/x");
}

TEST(CliTest, AnEnvironmentForAnotherRoleIsAnError) {
  setenv("LEEWAY_ROLE", "server", 1);
  ExpectComplaint({"train"}, 1, "LEEWAY_ROLE is server");
  ExpectComplaint({"scheduler", "--scheduler", "127.0.0.1:1"}, 1, "LEEWAY_ROLE is server");
  setenv("LEEWAY_ROLE", "worker", 1);
  ExpectComplaint({"server", "--scheduler", "127.0.0.1:1"}, 1, "LEEWAY_ROLE is worker");
  setenv("LEEWAY_ROLE", "king", 1);
  ExpectComplaint({"server"}, 1, "king");
  unsetenv("LEEWAY_ROLE");
  ExpectComplaint({"server"}, 1, "LEEWAY_SCHEDULER is not set");
  ExpectComplaint({"status"}, 1, "LEEWAY_SCHEDULER is not set");
}

TEST(TrainSettingsTest, FillsInWhatSuitsTheUpdater) {
  TrainCommand command;
  command.updater = "sgd";
  EXPECT_EQ(SettingsFrom(command)->updater.parameters.at("learning_rate"), 0.03);
  command.rate = 0.5;
  command.updater_parameters = {"weight_decay=0.25"};
  EXPECT_EQ(SettingsFrom(command)->updater.parameters.at("learning_rate"), 0.5);
  EXPECT_EQ(SettingsFrom(command)->updater.parameters.at("weight_decay"), 0.25);
}

TEST(TrainSettingsTest, EveryTableGetsTheCodec) {
  TrainCommand command;
  command.codec = "topk:0.01";
  command.error_feedback = "worker";
  const auto settings = SettingsFrom(command);
  ASSERT_TRUE(settings.ok()) << settings.status();
  fashion_mnist::Parameter parameter;
  parameter.name = "weight";
  parameter.shape = {3};
  const TableSpec table = fashion_mnist::TableFor(parameter, *settings);
  EXPECT_EQ(table.codec, "topk:0.01");
  EXPECT_EQ(table.error_feedback, ErrorFeedback::kWorker);
}

TEST(TrainSettingsTest, ErrorFeedbackHasTheNamesOfItsValues) {
  for (const auto& [name, feedback] :
       {std::pair("auto", ErrorFeedback::kAuto), std::pair("off", ErrorFeedback::kOff),
        std::pair("worker", ErrorFeedback::kWorker), std::pair("server", ErrorFeedback::kServer),
        std::pair("both", ErrorFeedback::kBoth)}) {
    TrainCommand command;
    command.codec = "onebit";
    command.error_feedback = name;
    const auto settings = SettingsFrom(command);
    ASSERT_TRUE(settings.ok()) << settings.status();
    EXPECT_EQ(settings->error_feedback, feedback);
    EXPECT_EQ(Name(feedback), name);
  }
}

TEST(TrainSettingsTest, ReadsSlowWorkers) {
  TrainCommand command;
  command.slow = {"0:50", "3:7"};
  const auto settings = SettingsFrom(command);
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_EQ(settings->slow.size(), 2u);
  EXPECT_EQ(settings->slow.at(3), absl::Milliseconds(7));
}

TEST(StepLineTest, SurvivesTheWayThroughAPipe) {
  const std::optional<StepLine> step = StepLine::Parse(StepLine{5, 100, 0.25}.ToString());
  ASSERT_TRUE(step.has_value());
  EXPECT_EQ(step->step, 5u);
  EXPECT_EQ(step->steps, 100u);
  EXPECT_EQ(step->loss, 0.25);
  for (const char* line : {"", "epoch 1", "@step 1 2", "@step 1 2 x", "@step 1 2 3 4"}) {
    EXPECT_FALSE(StepLine::Parse(line).has_value()) << line;
  }
}

}  // namespace
}  // namespace leeway::tools
