#include "ps/shard/handlers/handler_run.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>

#include "absl/strings/str_cat.h"
#include "proto/messages/layout.h"
#include "proto/messages/limits.h"
#include "ps/shard/handlers/shard_handlers.h"
#include "ps/store/checks.h"
#include "runtime/base/status_macros.h"

namespace leeway::ps {
namespace {

template <class T>
runtime::Buffer View(std::span<const T> values) {
  return runtime::Buffer::Unowned(values.data(), values.size_bytes());
}

template <class T>
void Append(std::span<const T> values, std::string* bytes) {
  bytes->append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
}

// Of other codes the worker's library knows what they say of a request: to ask again, that it is
// not known what became of it.
bool SaysSomethingOfRequests(absl::StatusCode code) {
  return code == absl::StatusCode::kAborted || code == absl::StatusCode::kCancelled ||
         code == absl::StatusCode::kDeadlineExceeded || code == absl::StatusCode::kUnavailable ||
         code == absl::StatusCode::kUnknown;
}

absl::Status AsItTravels(const absl::Status& error) {
  if (!SaysSomethingOfRequests(error.code())) return error;
  return absl::FailedPreconditionError(
      absl::StrCat(error.message(), " (", absl::StatusCodeToString(error.code()), ")"));
}

}  // namespace

HandlerRun::HandlerRun(ShardState* state, const Table& called, const Inbound& call)
    : state_(state), found_(&called), call_(call) {
  worker_rank_ = call.request.id.worker;
  shard_ = state->id;
  clock_ = call.request.clock;
  table_ = called.spec().name;
  request_ = call.payload[1].text();
}

absl::StatusOr<runtime::Buffer> HandlerRun::Run() {
  const absl::string_view name = call_.payload[0].text();
  LEEWAY_ASSIGN_OR_RETURN(const ShardHandler handler, FindShardHandler(name));
  try {
    return Run(name, handler);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        absl::StrCat("there is no memory left on this server for shard handler \"", name, "\""));
  } catch (const std::exception& error) {
    return absl::InternalError(
        absl::StrCat("shard handler \"", name, "\" has thrown: ", error.what()));
  } catch (...) {
    return absl::InternalError(absl::StrCat("shard handler \"", name, "\" has thrown"));
  }
}

absl::StatusOr<runtime::Buffer> HandlerRun::Run(absl::string_view name,
                                                const ShardHandler& handler) {
  const absl::StatusOr<std::string> answer = handler(*this);
  if (!answer.ok()) return AsItTravels(answer.status());
  const std::uint64_t most =
      std::min<std::uint64_t>(proto::kAnswerBytesMax, state_->context->message_bytes_max);
  if (answer->size() > most) {
    return absl::ResourceExhaustedError(absl::StrCat("the answer of shard handler \"", name,
                                                     "\" has ", answer->size(), " bytes, at most ",
                                                     most, " may be"));
  }
  for (const Update& update : updates_) pushes_.push_back(AsPush(update));
  return runtime::Buffer::CopyOf(*answer);
}

// ---- tables ----

absl::StatusOr<const Table*> HandlerRun::Find(absl::string_view name) {
  if (found_->spec().name == name) return found_;
  for (const auto& [id, table] : state_->context->tables.all()) {
    if (table.spec().name != name) continue;
    state_->context->tables.Find(id)->NoteAskedFor();
    return found_ = &table;
  }
  return absl::NotFoundError(absl::StrCat("table '", name, "' is not installed on this server"));
}

absl::StatusOr<const Table*> HandlerRun::Find(absl::string_view name, TableKind kind, DType dtype) {
  LEEWAY_ASSIGN_OR_RETURN(const Table* const table, Find(name));
  const TableSpec& spec = table->spec();
  if (spec.kind != kind) {
    return Invalid(spec, "a handler reads and updates it by ",
                   spec.kind == TableKind::kDense    ? "ReadBlock and PushBlock"
                   : spec.kind == TableKind::kSparse ? "Read and Push"
                                                     : "ReadRagged and PushRagged");
  }
  if (spec.dtype == dtype) return table;
  return Invalid(spec, "holds ", Name(spec.dtype), ", not ", Name(dtype));
}

absl::StatusOr<TableSpec> HandlerRun::Spec(absl::string_view table) {
  LEEWAY_ASSIGN_OR_RETURN(const Table* const found, Find(table));
  return found->SettingsAt(clock_).spec;
}

bool HandlerRun::HasKey(std::uint64_t key) const {
  return proto::ShardOfKey(key, state_->context->num_shards) == shard_;
}

absl::StatusOr<std::vector<ShardBlock>> HandlerRun::Blocks(absl::string_view table) {
  LEEWAY_ASSIGN_OR_RETURN(const Table* const found, Find(table));
  const TableSpec& spec = found->spec();
  const ShardContext& context = *state_->context;
  std::vector<ShardBlock> blocks;
  if (spec.kind != TableKind::kDense) return blocks;
  const std::uint64_t size = proto::BlockElements(spec.dtype, context.block_bytes);
  const std::uint64_t end = proto::NumBlocks(spec, context.block_bytes);
  const std::uint32_t first_shard = proto::ShardOfBlock(found->id(), 0, context.num_shards);
  for (std::uint64_t block = (shard_ + context.num_shards - first_shard) % context.num_shards;
       block < end; block += context.num_shards) {
    blocks.push_back({.index = block,
                      .first = block * size,
                      .elements = proto::ElementsInBlock(spec, context.block_bytes, block)});
  }
  return blocks;
}

// ---- reads ----

absl::StatusOr<PullResult> HandlerRun::Pull(const Table& table, PullView view) {
  view.plain = true;
  return state_->stores.Of(table)->Pull(view);
}

absl::Status HandlerRun::ReadBlock(absl::string_view table, std::uint64_t block, DType dtype,
                                   void* values, std::size_t size) {
  LEEWAY_ASSIGN_OR_RETURN(const Table* const found, Find(table, TableKind::kDense, dtype));
  PullView view;
  view.block = block;
  view.elements = size;
  LEEWAY_ASSIGN_OR_RETURN(const PullResult pulled, Pull(*found, view));
  std::memcpy(values, pulled.payload[0].data(), pulled.payload[0].size());
  return absl::OkStatus();
}

absl::Status HandlerRun::ReadRows(absl::string_view table, std::span<const std::uint64_t> keys,
                                  DType dtype, void* values, std::size_t size) {
  LEEWAY_ASSIGN_OR_RETURN(const Table* const found, Find(table, TableKind::kSparse, dtype));
  const std::uint64_t wanted = keys.size() * found->spec().row_width;
  if (size != wanted) {
    return Invalid(found->spec(), "the span to read into has ", Count(size, "element"), " where ",
                   wanted, " are needed");
  }
  if (keys.empty()) return absl::OkStatus();
  PullView view;
  view.keys = View(keys);
  LEEWAY_ASSIGN_OR_RETURN(const PullResult pulled, Pull(*found, view));
  std::memcpy(values, pulled.payload[0].data(), pulled.payload[0].size());
  return absl::OkStatus();
}

absl::Status HandlerRun::ReadRagged(absl::string_view table, std::span<const std::uint64_t> keys,
                                    DType dtype, std::vector<std::uint32_t>* widths,
                                    const Resize& resize) {
  LEEWAY_ASSIGN_OR_RETURN(const Table* const found, Find(table, TableKind::kRagged, dtype));
  PullView view;
  view.keys = View(keys);
  LEEWAY_ASSIGN_OR_RETURN(const PullResult pulled, Pull(*found, view));
  const auto each = pulled.payload[0].as<std::uint32_t>();
  widths->assign(each.begin(), each.end());
  void* const values = resize(pulled.elements);
  if (pulled.elements != 0) {
    std::memcpy(values, pulled.payload[1].data(), pulled.payload[1].size());
  }
  return absl::OkStatus();
}

// ---- updates ----

absl::Status HandlerRun::CheckUpdate(const Table& table, const PushView& push) {
  if (table.is_bsp()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "table '", table.spec().name,
        "' is bsp: it changes where its clocks close, and no handler may update it in between; a "
        "table that handlers update is ssp:S or asp"));
  }
  LEEWAY_RETURN_IF_ERROR(state_->stores.Of(table)->Check(push));
  const std::uint64_t bytes = bytes_ + push.keys.size() + push.widths.size() + push.values.size();
  if (bytes > state_->context->message_bytes_max || updates_.size() >= proto::kCallUpdatesMax) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the updates of one call of a handler may have ", state_->context->message_bytes_max,
        " bytes (LEEWAY_MESSAGE_BYTES_MAX) and change ", proto::kCallUpdatesMax,
        " blocks or tables of rows"));
  }
  bytes_ = bytes;
  return absl::OkStatus();
}

absl::Status HandlerRun::NoteTargets(const Table& table, std::span<const std::uint64_t> targets) {
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (targets_.emplace(table.id(), targets[i]).second) continue;
    for (std::size_t j = 0; j < i; ++j) targets_.erase({table.id(), targets[j]});
    return Invalid(table.spec(),
                   table.spec().kind == TableKind::kDense ? "block " : "the row of key ",
                   targets[i], " is there twice in the updates of one call of a handler");
  }
  return absl::OkStatus();
}

absl::Status HandlerRun::PushBlock(absl::string_view table, std::uint64_t block, DType dtype,
                                   const void* values, std::size_t size,
                                   std::optional<double> learning_rate) {
  LEEWAY_ASSIGN_OR_RETURN(const Table* const found, Find(table, TableKind::kDense, dtype));
  const std::span bytes(static_cast<const std::byte*>(values), size * SizeOf(dtype));
  PushView push;
  push.block = block;
  push.values = View(bytes);
  push.learning_rate = learning_rate.value_or(push.learning_rate);
  LEEWAY_RETURN_IF_ERROR(CheckUpdate(*found, push));
  LEEWAY_RETURN_IF_ERROR(NoteTargets(*found, {&block, 1}));
  updates_.push_back({.table = found, .block = block, .learning_rate = learning_rate});
  Append(bytes, &updates_.back().values);
  return absl::OkStatus();
}

absl::Status HandlerRun::PushRows(TableKind kind, absl::string_view table,
                                  std::span<const std::uint64_t> keys,
                                  std::span<const std::uint32_t> widths, DType dtype,
                                  const void* values, std::size_t size,
                                  std::optional<double> learning_rate) {
  LEEWAY_ASSIGN_OR_RETURN(const Table* const found, Find(table, kind, dtype));
  const std::span bytes(static_cast<const std::byte*>(values), size * SizeOf(dtype));
  PushView push;
  push.keys = View(keys);
  push.widths = View(widths);
  push.values = View(bytes);
  push.learning_rate = learning_rate.value_or(push.learning_rate);
  auto update = std::ranges::find(updates_, found, &Update::table);
  if (update != updates_.end() && update->learning_rate != learning_rate) {
    return Invalid(found->spec(), "the updates of one call of a handler have two learning rates");
  }
  if (widths.size() != (kind == TableKind::kRagged ? keys.size() : 0)) {
    return Invalid(found->spec(), Count(keys.size(), "key"), " were given with ",
                   Count(widths.size(), "width"));
  }
  LEEWAY_RETURN_IF_ERROR(CheckUpdate(*found, push));
  LEEWAY_RETURN_IF_ERROR(NoteTargets(*found, keys));
  if (keys.empty()) return absl::OkStatus();
  if (update == updates_.end()) {
    update = updates_.insert(update, Update{.table = found, .learning_rate = learning_rate});
  }
  Append(keys, &update->keys);
  Append(widths, &update->widths);
  Append(bytes, &update->values);
  return absl::OkStatus();
}

Inbound HandlerRun::AsPush(const Update& update) const {
  const TableSpec& spec = update.table->spec();
  Inbound push{.peer = call_.peer, .request = {}, .payload = {}};
  proto::Request& request = push.request;
  request.id = call_.request.id;
  request.table = update.table->id();
  request.kind = spec.kind;
  request.dtype = spec.dtype;
  request.clock = clock_;
  request.block = update.block;
  request.keys = update.keys.size() / sizeof(std::uint64_t);
  request.elements = update.values.size() / SizeOf(spec.dtype);
  request.has_learning_rate = update.learning_rate.has_value();
  request.learning_rate = update.learning_rate.value_or(0);
  if (spec.kind != TableKind::kDense) push.payload.push_back(runtime::Buffer::CopyOf(update.keys));
  if (spec.kind == TableKind::kRagged) {
    push.payload.push_back(runtime::Buffer::CopyOf(update.widths));
  }
  push.payload.push_back(runtime::Buffer::CopyOf(update.values));
  return push;
}

}  // namespace leeway::ps
