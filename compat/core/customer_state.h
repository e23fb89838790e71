// CustomerState is what the library keeps of a Customer: its requests that are not finished, and
// the handlers that its messages go to.
//
// Any thread. Shared by the Customer and by requests under way.
#ifndef LEEWAY_COMPAT_CORE_CUSTOMER_STATE_H_
#define LEEWAY_COMPAT_CORE_CUSTOMER_STATE_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <tuple>
#include <vector>

#include "compat/core/turns.h"
#include "compat/ps/internal/customer.h"
#include "compat/ps/internal/transfer.h"
#include "leeway/server.h"
#include "leeway/ticket.h"
#include "worker/client/session.h"

namespace ps::internal {

class CustomerState : public std::enable_shared_from_this<CustomerState> {
 public:
  CustomerState(int app, int customer, Customer::OnMessage handler)
      : app_id(app), customer_id(customer), on_message(std::move(handler)) {}

  const int app_id, customer_id;
  const Customer::OnMessage on_message;
  const std::shared_ptr<leeway::compat::Turns> turns = std::make_shared<leeway::compat::Turns>();

  // ---- requests of this customer ----

  // `answers`: how many finish it. The number of the request.
  int Begin(int answers);
  // One answer has come and has been dealt with. The last finishes the request.
  void CountAnswer(int timestamp, int count = 1);
  int Answers(int timestamp);
  // Waits by these tickets of that session; a thread that waits turns its loop.
  void WaitBy(int timestamp, std::shared_ptr<leeway::worker::Session> session,
              std::vector<leeway::Ticket> tickets);
  void Wait(int timestamp);

  // Callbacks of a KVWorker run one at a time. That of a request of no keys runs within the
  // request, which a callback may make.
  std::recursive_mutex callbacks;

  // ---- of a worker: what stands behind the servers ----

  std::atomic<int> behind{kNotKnown};  // or ValueType
  static constexpr int kNotKnown = -2;
  std::mutex asking;
  std::shared_ptr<leeway::worker::Session> session;        // set with `behind`
  std::shared_ptr<const leeway::worker::TableInfo> table;  // likewise, where it is a table
  std::uint64_t pushes_per_clock = 0;                      // 0: its table needs no clocks
  std::atomic<std::uint64_t> pushes{0};

  // ---- of a server ----

  KVHandler kv_handler;  // set before `turns` is open for it
  ValueType table_type = kNoTable;
  std::size_t value_bytes = 1;  // of one value of that handler
  // The calls that its handlers have not answered, by sender, customer, timestamp and whether they
  // are SimpleApp's.
  using CallId = std::tuple<int, int, int, bool>;
  void Keep(const CallId& id, leeway::Responder responder);
  std::optional<leeway::Responder> Take(const CallId& id);

 private:
  struct Request {
    int needed = 0, answers = 0;
    std::shared_ptr<leeway::worker::Session> session;
    std::vector<leeway::Ticket> tickets;
  };

  std::mutex mutex_;
  std::condition_variable finished_;
  int next_ = 0;
  std::map<int, Request> requests_;  // not finished, by timestamp
  std::map<CallId, leeway::Responder> open_calls_;
};

}  // namespace ps::internal

#endif  // LEEWAY_COMPAT_CORE_CUSTOMER_STATE_H_
