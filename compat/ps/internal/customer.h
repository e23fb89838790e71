// A Customer is one end of an application's communication in a process: it numbers its requests
// (timestamps) and knows which of them have been answered.
//
// Any thread. KVWorker, KVServer and SimpleApp have one each.
#ifndef PS_INTERNAL_CUSTOMER_H_
#define PS_INTERNAL_CUSTOMER_H_

#include <functional>
#include <memory>

#include "ps/internal/transfer.h"
#include "ps/internal/utils.h"

namespace ps {

namespace internal {
class CustomerState;
}

class Customer {
 public:
  // Gets requests and responses of SimpleApp.
  using OnMessage = std::function<void(const internal::SimpleMessage&)>;

  // Ends the process if there is one with these ids already.
  Customer(int app_id, int customer_id, OnMessage on_message);
  // Waits for handlers that are running.
  ~Customer();

  int app_id() const;
  int customer_id() const;

  // The timestamp of a new request to a node or group.
  int NewRequest(int recver);
  // Waits until it is answered and its callback has run. Not within a callback.
  void WaitRequest(int timestamp);
  // The responses so far; of a finished request, as many as there are servers.
  int NumResponse(int timestamp);
  void AddResponse(int timestamp, int num = 1);

  internal::CustomerState* state() const { return state_.get(); }

 private:
  std::shared_ptr<internal::CustomerState> state_;

  DISALLOW_COPY_AND_ASSIGN(Customer);
};

}  // namespace ps

#endif  // PS_INTERNAL_CUSTOMER_H_
