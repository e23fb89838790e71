#include "leeway/worker.h"

#include <memory>
#include <optional>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "node/plugins.h"
#include "runtime/base/status_macros.h"
#include "runtime/log/log.h"
#include "runtime/loop/real_loop.h"
#include "van/mixed/mixed_van.h"
#include "worker/client/client.h"
#include "worker/slicing/slice.h"

namespace leeway {
namespace {

// The ticket of an operation on a table that was never opened.
Ticket NoTable(const Options& options) {
  auto operation = worker::Operation::New();
  const absl::Status status =
      absl::FailedPreconditionError("the table is not open: see Worker::CreateTable and OpenTable");
  if (options.done != nullptr) options.done(status);
  operation->MarkDone(status);
  return Ticket(std::move(operation));
}

// Keeps the state: a callback that runs within this call may destroy the table and the worker.
Ticket Submit(std::shared_ptr<worker::TableState> state, worker::Access access, Options options) {
  if (state == nullptr) return NoTable(options);
  access.table = state->info();
  access.copy = options.copy;
  return state->session().Submit(std::move(access), std::move(options));
}

// The answers of a call's shards, which go to the user once all are there.
class Answers final : public worker::PullSink {
 public:
  using Done = absl::AnyInvocable<void(std::vector<std::string>)>;

  explicit Answers(Done done) : done_(std::move(done)) {}
  absl::Status Take(std::size_t index, const proto::Reply&,
                    std::span<const runtime::Buffer> payload) override {
    if (answers_.size() <= index) answers_.resize(index + 1);
    answers_[index] = std::string(payload[0].text());
    return absl::OkStatus();
  }
  void Finish() override { done_(std::move(answers_)); }

 private:
  Done done_;
  std::vector<std::string> answers_;
};

Ticket SubmitCall(std::shared_ptr<worker::TableState> state, std::optional<std::uint64_t> key,
                  absl::string_view handler, absl::string_view request, Answers::Done done,
                  Options options) {
  if (state == nullptr) return NoTable(options);
  return state->session().Submit(
      [&](const auto&) {
        return worker::SliceCall(state->info(), key, handler, request,
                                 std::make_unique<Answers>(std::move(done)));
      },
      std::move(options));
}

}  // namespace

// ---- Table ----

const TableSpec& Table::spec() const {
  static const TableSpec* const none = new TableSpec();
  return state_ == nullptr ? *none : state_->info()->spec;
}

Ticket Table::PushDense(DType dtype, const void* values, std::size_t size, Options options) const {
  worker::Access access;
  access.kind = TableKind::kDense;
  access.op = proto::Op::kPush;
  access.dtype = dtype;
  access.values = values;
  access.size = size;
  return Submit(state_, std::move(access), std::move(options));
}

Ticket Table::PullDense(DType dtype, void* values, std::size_t size, Options options) const {
  worker::Access access;
  access.kind = TableKind::kDense;
  access.op = proto::Op::kPull;
  access.dtype = dtype;
  access.result = values;
  access.result_size = size;
  return Submit(state_, std::move(access), std::move(options));
}

Ticket Table::PushPullDense(DType dtype, const void* values, std::size_t size, void* result,
                            std::size_t result_size, Options options) const {
  worker::Access access;
  access.kind = TableKind::kDense;
  access.op = proto::Op::kPushPull;
  access.dtype = dtype;
  access.values = values;
  access.size = size;
  access.result = result;
  access.result_size = result_size;
  return Submit(state_, std::move(access), std::move(options));
}

Ticket Table::PushSparse(std::span<const std::uint64_t> keys, DType dtype, const void* values,
                         std::size_t size, Options options) const {
  worker::Access access;
  access.kind = TableKind::kSparse;
  access.op = proto::Op::kPush;
  access.dtype = dtype;
  access.keys = keys;
  access.values = values;
  access.size = size;
  return Submit(state_, std::move(access), std::move(options));
}

Ticket Table::PullSparse(std::span<const std::uint64_t> keys, DType dtype, void* values,
                         std::size_t size, Options options) const {
  worker::Access access;
  access.kind = TableKind::kSparse;
  access.op = proto::Op::kPull;
  access.dtype = dtype;
  access.keys = keys;
  access.result = values;
  access.result_size = size;
  return Submit(state_, std::move(access), std::move(options));
}

Ticket Table::PushPullSparse(std::span<const std::uint64_t> keys, DType dtype, const void* values,
                             std::size_t size, void* result, std::size_t result_size,
                             Options options) const {
  worker::Access access;
  access.kind = TableKind::kSparse;
  access.op = proto::Op::kPushPull;
  access.dtype = dtype;
  access.keys = keys;
  access.values = values;
  access.size = size;
  access.result = result;
  access.result_size = result_size;
  return Submit(state_, std::move(access), std::move(options));
}

Ticket Table::PushRows(std::span<const std::uint64_t> keys, std::span<const std::uint32_t> widths,
                       DType dtype, const void* values, std::size_t size, Options options) const {
  worker::Access access;
  access.kind = TableKind::kRagged;
  access.op = proto::Op::kPush;
  access.dtype = dtype;
  access.keys = keys;
  access.widths = widths;
  access.values = values;
  access.size = size;
  return Submit(state_, std::move(access), std::move(options));
}

Ticket Table::PullRows(std::span<const std::uint64_t> keys, std::vector<std::uint32_t>* widths,
                       DType dtype, Resize resize, Options options) const {
  worker::Access access;
  access.kind = TableKind::kRagged;
  access.op = proto::Op::kPull;
  access.dtype = dtype;
  access.keys = keys;
  access.result_widths = widths;
  access.resize = std::move(resize);
  return Submit(state_, std::move(access), std::move(options));
}

Ticket Table::Call(std::uint64_t key, absl::string_view handler, absl::string_view request,
                   std::string* answer, Options options) const {
  return SubmitCall(
      state_, key, handler, request,
      [answer](std::vector<std::string> answers) {
        if (answer != nullptr) *answer = std::move(answers[0]);
      },
      std::move(options));
}

Ticket Table::CallAll(absl::string_view handler, absl::string_view request,
                      std::vector<std::string>* answers, Options options) const {
  return SubmitCall(
      state_, std::nullopt, handler, request,
      [answers](std::vector<std::string> all) {
        if (answers != nullptr) *answers = std::move(all);
      },
      std::move(options));
}

// ---- Worker ----

absl::StatusOr<std::unique_ptr<Worker>> Worker::Connect() {
  absl::StatusOr<Config> config = Config::FromEnvironment();
  LEEWAY_RETURN_IF_ERROR(config.status());
  return Connect(*config);
}

absl::StatusOr<std::unique_ptr<Worker>> Worker::Connect(const Config& config) {
  if (auto level = runtime::ParseLogLevel(config.log_level)) runtime::SetLogLevel(*level);
  node::LoadCodecPlugins(config.plugins);
  worker::Session::World world;
  world.owned_host = runtime::NewRealHost(absl::Microseconds(config.busy_poll_us));
  world.owned_factory = van::NewFactory(config);
  world.host = world.owned_host.get();
  world.factory = world.owned_factory.get();
  return worker::Client::Connect(config, std::move(world));
}

Worker::Worker(std::unique_ptr<worker::Client> client) : client_(std::move(client)) {}
Worker::~Worker() = default;

std::uint32_t Worker::rank() const { return client_->session()->rank(); }
std::uint32_t Worker::num_workers() const { return client_->session()->num_workers(); }
std::uint32_t Worker::num_servers() const { return client_->session()->num_servers(); }

absl::StatusOr<Table> Worker::CreateTable(const TableSpec& spec) {
  LEEWAY_ASSIGN_OR_RETURN(std::shared_ptr<const worker::TableInfo> info,
                          client_->session()->CreateTable(spec));
  return Table(std::make_shared<worker::TableState>(std::move(info), client_->session()));
}

absl::StatusOr<Table> Worker::OpenTable(absl::string_view name) {
  LEEWAY_ASSIGN_OR_RETURN(std::shared_ptr<const worker::TableInfo> info,
                          client_->session()->OpenTable(name));
  return Table(std::make_shared<worker::TableState>(std::move(info), client_->session()));
}

absl::Status Worker::Wait(const Ticket& ticket) { return client_->session()->Wait({&ticket, 1}); }
absl::Status Worker::Wait(std::span<const Ticket> tickets) {
  return client_->session()->Wait(tickets);
}
bool Worker::Done(const Ticket& ticket) const { return client_->session()->Done(ticket); }
void Worker::WhenDone(const Ticket& ticket, std::function<void(const absl::Status&)> done) {
  client_->session()->WhenDone(ticket, std::move(done));
}

absl::StatusOr<PullInfo> Worker::Info(const Ticket& ticket) const {
  const worker::Operation* const operation = ticket.operation().get();
  if (operation == nullptr || !operation->done()) {
    return absl::FailedPreconditionError("the ticket has not completed: call Wait() before Info()");
  }
  LEEWAY_RETURN_IF_ERROR(operation->status());
  return operation->info;
}

absl::Status Worker::Clock() { return client_->session()->Clock(); }
std::uint64_t Worker::clock() const { return client_->session()->clock(); }

absl::Status Worker::Barrier(Group group, absl::string_view name,
                             std::optional<absl::Duration> timeout) {
  return client_->session()->Barrier(group, name, timeout);
}

absl::StatusOr<std::string> Worker::Call(std::uint32_t server_rank, absl::string_view handler,
                                         absl::string_view request, Options options) {
  return client_->session()->Call(server_rank, handler, request, options);
}

Ticket Worker::Call(std::uint32_t server_rank, absl::string_view handler, CallFrames request,
                    CallDone done, Options options) {
  return client_->session()->Call(server_rank, std::string(handler), std::move(request),
                                  std::move(done), std::move(options));
}

absl::StatusOr<std::string> Worker::Checkpoint(absl::string_view directory,
                                               std::optional<absl::Duration> timeout) {
  return client_->session()->Checkpoint(directory, timeout);
}

absl::StatusOr<std::uint64_t> Worker::SetCodec(absl::string_view table, absl::string_view codec,
                                               std::optional<absl::Duration> timeout) {
  return client_->session()->SetCodec(table, codec, timeout);
}

absl::StatusOr<std::uint64_t> Worker::ChangeTable(absl::string_view table,
                                                  const TableChange& change,
                                                  std::optional<absl::Duration> timeout) {
  return client_->session()->ChangeTable(table, change, timeout);
}

absl::Status Worker::SaveResiduals(absl::string_view directory) {
  return client_->session()->SaveResiduals(std::string(directory));
}

absl::Status Worker::LoadResiduals(absl::string_view directory, std::optional<std::uint32_t> rank) {
  return client_->session()->LoadResiduals(std::string(directory), rank);
}

absl::Status Worker::Leave(std::optional<absl::Duration> timeout) {
  return client_->session()->Leave(timeout.value_or(client_->session()->request_timeout()));
}

WorkerStats Worker::stats() const { return client_->session()->stats(); }

}  // namespace leeway
