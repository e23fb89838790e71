// `leeway model …`: published models of a running cluster.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "checkpoint/folder.h"
#include "checkpoint/safetensors_writer.h"
#include "leeway/model.h"
#include "leeway/worker.h"
#include "proto/tables/text.h"
#include "runtime/base/status_macros.h"
#include "runtime/files/file_system.h"
#include "tools/admin/admin_call.h"
#include "tools/format/format_units.h"
#include "tools/format/text_table.h"
#include "tools/options/commands.h"
#include "tools/options/role_config.h"

namespace leeway::tools {
namespace {

using ModelJson = nlohmann::json;

// The scheduler's answer to `model …`.
absl::StatusOr<ModelJson> AskAboutModels(const ModelCommand& command,
                                         std::vector<std::string> arguments) {
  LEEWAY_ASSIGN_OR_RETURN(const Config config,
                          ConfigFor(Role::kTool, {.scheduler = command.scheduler}));
  LEEWAY_ASSIGN_OR_RETURN(const std::string answer,
                          AskScheduler(config, "model", arguments, [](const std::string&) {}));
  ModelJson json = ModelJson::parse(answer, nullptr, /*allow_exceptions=*/false);
  if (json.is_object()) return json;
  return absl::InternalError("the scheduler's answer cannot be parsed");
}

std::string CleanName(const ModelJson& text) {
  return proto::Cleaned(text.get<std::string>(), proto::Lines::kOne);
}

absl::StatusOr<std::string> ListOfModels(const ModelCommand& command) {
  LEEWAY_ASSIGN_OR_RETURN(const ModelJson json, AskAboutModels(command, {}));
  std::vector<std::vector<std::string>> rows = {{"model", "version", "clock", "kept", "tables"}};
  for (const ModelJson& model : json.at("models")) {
    rows.push_back({CleanName(model.at("model")), model.at("version").dump(),
                    model.at("clock").dump(), model.at("versions_kept").dump(),
                    model.at("tables").dump()});
  }
  return rows.size() == 1 ? "no model has been published\n" : TextTable(rows);
}

absl::StatusOr<std::string> DescriptionOfModel(const ModelCommand& command) {
  LEEWAY_ASSIGN_OR_RETURN(const ModelJson json, AskAboutModels(command, {command.model}));
  std::vector<std::vector<std::string>> versions = {{"version", "clock"}};
  for (const ModelJson& one : json.at("versions")) {
    versions.push_back({one.at("version").dump(), one.at("clock").dump()});
  }
  std::string text = absl::StrCat(TextTable(versions), "\n");
  for (const ModelJson& table : json.at("tables")) absl::StrAppend(&text, CleanName(table), "\n");
  return text;
}

// Prints what a command has to say of the scheduler's answer.
int PrintText(absl::StatusOr<std::string> (*say)(const ModelCommand&),
              const ModelCommand& command) {
  try {
    const absl::StatusOr<std::string> text = say(command);
    if (!text.ok()) return Complain(text.status());
    std::fputs(text->c_str(), stdout);
    return 0;
  } catch (const ModelJson::exception& wrong) {
    return Complain(absl::DataLossError(
        absl::StrCat("the scheduler's answer cannot be parsed: ", wrong.what())));
  }
}

// The arrays in a file under the names of their tables, without the model's and a slash before
// them, as leeway.publish of Python calls them.
absl::StatusOr<checkpoint::WrittenFile> WriteArrays(const Subscription& model,
                                                    const std::string& path) {
  checkpoint::TensorHeader header;
  header.metadata = {{"model", model.model()},
                     {"version", absl::StrCat(model.version())},
                     {"clock", absl::StrCat(model.clock())}};
  std::map<std::string, std::string> names;  // to those of tables
  bool distinct = true;
  for (std::size_t i = 0; i < model.num_tables(); ++i) {
    const std::string& name = model.spec(i).name;
    const absl::string_view own = absl::StripPrefix(name, absl::StrCat(model.model(), "/"));
    distinct = names.emplace(own, name).second && distinct;
  }
  for (std::size_t i = 0; i < model.num_tables(); ++i) {
    const TableSpec& spec = model.spec(i);
    const absl::string_view own = absl::StripPrefix(spec.name, absl::StrCat(model.model(), "/"));
    header.tensors.push_back({.name = distinct ? std::string(own) : spec.name,
                              .type = checkpoint::TensorTypeOf(spec.dtype),
                              .shape = spec.shape});
  }
  LEEWAY_ASSIGN_OR_RETURN(
      const std::unique_ptr<checkpoint::SafetensorsWriter> writer,
      checkpoint::SafetensorsWriter::Create(runtime::RealFileSystem(), path, std::move(header)));
  for (std::size_t i = 0; i < model.num_tables(); ++i) {
    LEEWAY_RETURN_IF_ERROR(writer->Append(model.bytes(i)));
  }
  return writer->Finish();
}

// A file of that name is replaced only by a whole one.
absl::StatusOr<checkpoint::WrittenFile> ReplaceFile(const Subscription& model,
                                                    const std::string& path) {
  runtime::FileSystem* const files = runtime::RealFileSystem();
  const std::string unfinished = path + ".unfinished";
  absl::StatusOr<checkpoint::WrittenFile> written = WriteArrays(model, unfinished);
  absl::Status status = written.status();
  if (status.ok()) status = files->Rename(unfinished, path);
  if (status.ok()) status = files->SyncDirectory(checkpoint::SplitPath(path).first);
  if (status.ok()) return written;
  if (files->Exists(unfinished)) files->Remove(unfinished).IgnoreError();
  return status;
}

absl::StatusOr<std::string> FetchedModel(const ModelCommand& command) {
  LEEWAY_ASSIGN_OR_RETURN(Config config, ConfigFor(Role::kTool, {.scheduler = command.scheduler}));
  config.role = Role::kWorker;
  config.read_only = true;
  LEEWAY_ASSIGN_OR_RETURN(const std::unique_ptr<Worker> reader, Worker::Connect(config));
  LEEWAY_ASSIGN_OR_RETURN(Subscription model, reader->Subscribe(command.model));
  LEEWAY_RETURN_IF_ERROR(model.Fetch().status());
  LEEWAY_RETURN_IF_ERROR(model.Apply());
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < model.num_tables(); ++i) bytes += model.bytes(i).size();
  const std::string what =
      absl::StrCat("version ", model.version(), " of clock ", model.clock(), ", ",
                   model.num_tables(), model.num_tables() == 1 ? " table" : " tables");
  if (command.file.empty()) return absl::StrCat(what, ", ", FormatBytes(bytes), "\n");
  LEEWAY_ASSIGN_OR_RETURN(const checkpoint::WrittenFile written, ReplaceFile(model, command.file));
  return absl::StrCat(command.file, ": ", what, ", ", FormatBytes(written.bytes), "\n");
}

}  // namespace

int RunModelList(const ModelCommand& command) { return PrintText(ListOfModels, command); }
int RunModelShow(const ModelCommand& command) { return PrintText(DescriptionOfModel, command); }
int RunModelFetch(const ModelCommand& command) { return PrintText(FetchedModel, command); }

}  // namespace leeway::tools
