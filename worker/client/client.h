// The implementations of leeway::Worker and leeway::Table: handles of a Session.
//
// Client is owned by its Worker and closes the session with it; TableState is shared by the copies
// of a Table.
#ifndef LEEWAY_WORKER_CLIENT_CLIENT_H_
#define LEEWAY_WORKER_CLIENT_CLIENT_H_

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "leeway/config.h"
#include "leeway/worker.h"
#include "runtime/loop/loop.h"
#include "van/van.h"
#include "worker/client/session.h"
#include "worker/slicing/table_info.h"

namespace leeway::worker {

class Client {
 public:
  explicit Client(std::shared_ptr<Session> session) : session_(std::move(session)) {}
  ~Client() { session_->Close(); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // A copy, so that the session outlives a call of it within which this is destroyed (by a
  // callback).
  std::shared_ptr<Session> session() const { return session_; }

  // As Worker::Connect, over a network that is shared with others, for whole clusters in one
  // process. `host` and `factory` outlive the worker; the factory's loops must be real ones.
  static absl::StatusOr<std::unique_ptr<Worker>> ConnectWith(const Config& config,
                                                             runtime::Host* host,
                                                             van::Factory* factory);
  static absl::StatusOr<std::unique_ptr<Worker>> Connect(Config config, Session::World world);

 private:
  std::shared_ptr<Session> session_;
};

class TableState {
 public:
  TableState(std::shared_ptr<const TableInfo> info, std::shared_ptr<Session> session)
      : info_(std::move(info)), session_(std::move(session)) {}
  const std::shared_ptr<const TableInfo>& info() const { return info_; }
  Session& session() const { return *session_; }

 private:
  const std::shared_ptr<const TableInfo> info_;
  const std::shared_ptr<Session> session_;
};

}  // namespace leeway::worker

#endif  // LEEWAY_WORKER_CLIENT_CLIENT_H_
