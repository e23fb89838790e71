#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "leeway/model.h"
#include "leeway/worker.h"
#include "runtime/base/status_macros.h"
#include "worker/client/client.h"
#include "worker/control/cluster_status.h"
#include "worker/models/model_copy.h"

namespace leeway {
namespace worker {

// ---- what a session asks the scheduler about models ----

absl::StatusOr<std::uint64_t> Session::Publish(const std::string& model,
                                               const std::vector<std::uint32_t>& tables,
                                               std::optional<absl::Duration> timeout) {
  LEEWAY_ASSIGN_OR_RETURN(const std::string json, AskText([&](Core& core, auto done) {
                            core.Publish(model, tables, TimeoutOf(timeout), std::move(done));
                          }));
  return VersionOfModel(json);
}

absl::StatusOr<std::string> Session::DescribeModel(const std::string& model) {
  return AskText([&](Core& core, auto done) {
    core.DescribeModel(model, config_.request_timeout, std::move(done));
  });
}

// ---- subscriptions ----

class SubscriptionState {
 public:
  SubscriptionState(std::shared_ptr<Session> session, std::string model,
                    std::vector<std::shared_ptr<const TableInfo>> tables)
      : session_(std::move(session)), model_(std::move(model)), copy_(std::move(tables)) {
    for (std::size_t i = 0; i < copy_.size(); ++i) ids_.push_back({copy_.table(i).id});
  }

  absl::StatusOr<std::uint64_t> Fetch(std::optional<absl::Duration> timeout);
  absl::Status Apply();

  const std::string& model() const { return model_; }
  const ModelCopy& copy() const { return copy_; }
  SubscriptionStats stats() const {
    SubscriptionStats stats = stats_;
    stats.bytes_received = copy_.bytes_received();
    return stats;
  }

 private:
  absl::Status FetchVersion(const proto::PublishedVersion& version, absl::Duration timeout);

  const std::shared_ptr<Session> session_;
  const std::string model_;
  ModelCopy copy_;
  std::vector<proto::ModelTable> ids_;
  std::uint64_t fetched_ = 0;  // version; 0: none
  SubscriptionStats stats_;
};

absl::Status SubscriptionState::FetchVersion(const proto::PublishedVersion& version,
                                             absl::Duration timeout) {
  std::vector<Sliced> pulls = copy_.Fetch(version);
  std::vector<Ticket> tickets;
  Options options;
  options.timeout = timeout;
  for (Sliced& pull : pulls) {
    tickets.push_back(session_->Submit(
        [&pull](const auto&) -> absl::StatusOr<Sliced> { return std::move(pull); }, options));
  }
  return session_->Wait(tickets);
}

// A version that is dropped while it is fetched gives way to a newer one.
absl::StatusOr<std::uint64_t> SubscriptionState::Fetch(std::optional<absl::Duration> timeout) {
  LEEWAY_RETURN_IF_ERROR(copy_.Verify());
  const absl::Duration patience = timeout.value_or(session_->request_timeout());
  std::uint64_t above = std::max(copy_.version().version, fetched_);
  for (;;) {
    LEEWAY_ASSIGN_OR_RETURN(const proto::Published newest,
                            session_->WhenNewer(model_, above, patience));
    const proto::PublishedVersion& version = newest.versions.back();
    if (newest.tables != ids_) {
      return absl::FailedPreconditionError(
          absl::StrCat("version ", version.version, " of model '", model_,
                       "' has other tables than this subscription: subscribe anew"));
    }
    const absl::Status fetched = FetchVersion(version, session_->request_timeout());
    if (fetched.ok()) {
      stats_.versions_skipped += version.version - above - 1;
      ++stats_.versions_fetched;
      fetched_ = version.version;
      return fetched_;
    }
    fetched_ = 0;
    const absl::StatusOr<proto::Published> newer =
        session_->WhenNewer(model_, version.version, absl::ZeroDuration());
    if (!absl::IsNotFound(fetched) || !newer.ok()) return fetched;
  }
}

absl::Status SubscriptionState::Apply() {
  if (fetched_ == 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("model '", model_, "': no version is fetched: call Fetch first"));
  }
  fetched_ = 0;
  copy_.Apply();
  return absl::OkStatus();
}

namespace {

absl::Status CheckDense(const std::string& model, const TableInfo& table) {
  if (table.spec.kind == TableKind::kDense) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat("model '", model, "': table '", table.spec.name,
                                               "' is not dense: only dense tables are "
                                               "published"));
}

}  // namespace
}  // namespace worker

Subscription::Subscription(std::unique_ptr<worker::SubscriptionState> state)
    : state_(std::move(state)) {}
Subscription::~Subscription() = default;
Subscription::Subscription(Subscription&&) noexcept = default;
Subscription& Subscription::operator=(Subscription&&) noexcept = default;

const std::string& Subscription::model() const { return state_->model(); }
std::size_t Subscription::num_tables() const { return state_->copy().size(); }
const TableSpec& Subscription::spec(std::size_t table) const {
  return state_->copy().table(table).spec;
}
absl::StatusOr<std::uint64_t> Subscription::Fetch(std::optional<absl::Duration> timeout) {
  return state_->Fetch(timeout);
}
absl::Status Subscription::Apply() { return state_->Apply(); }
std::uint64_t Subscription::version() const { return state_->copy().version().version; }
std::uint64_t Subscription::digest() const { return state_->copy().digest(); }
std::uint64_t Subscription::clock() const { return state_->copy().version().clock; }
std::span<const std::byte> Subscription::bytes(std::size_t table) const {
  return state_->copy().values(table);
}
SubscriptionStats Subscription::stats() const { return state_->stats(); }

absl::StatusOr<Subscription> Worker::Subscribe(absl::string_view model) {
  const std::shared_ptr<worker::Session> session = client_->session();
  const std::string name(model);
  LEEWAY_ASSIGN_OR_RETURN(const std::string json, session->DescribeModel(name));
  LEEWAY_ASSIGN_OR_RETURN(const std::vector<std::string> names, worker::TablesOfModel(json));
  std::vector<std::shared_ptr<const worker::TableInfo>> tables;
  for (const std::string& table : names) {
    LEEWAY_ASSIGN_OR_RETURN(tables.emplace_back(), session->OpenTable(table));
    LEEWAY_RETURN_IF_ERROR(worker::CheckDense(name, *tables.back()));
  }
  return Subscription(
      std::make_unique<worker::SubscriptionState>(session, name, std::move(tables)));
}

absl::StatusOr<std::uint64_t> Worker::Publish(absl::string_view model,
                                              std::span<const Table> tables,
                                              std::optional<absl::Duration> timeout) {
  std::vector<std::uint32_t> ids;
  for (const Table& table : tables) {
    if (table.state_ == nullptr) {
      return absl::FailedPreconditionError(
          "a table of the model is not open: see Worker::CreateTable and OpenTable");
    }
    ids.push_back(table.state_->info()->id);
  }
  return client_->session()->Publish(std::string(model), ids, timeout);
}

}  // namespace leeway
