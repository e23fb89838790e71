// A SimpleApp sends pairs of a number and a text between nodes: requests, and their responses.
#ifndef PS_SIMPLE_APP_H_
#define PS_SIMPLE_APP_H_

#include <functional>
#include <string>

#include "ps/internal/customer.h"
#include "ps/internal/postoffice.h"
#include "ps/internal/transfer.h"

namespace ps {

// A request or response that was received.
struct SimpleData {
  int head;
  std::string body;
  int sender;       // node
  int timestamp;    // of the request, at its sender
  int customer_id;  // the sender's
};

// Any thread. Handles run one at a time for each application of a process, on a thread of the
// library; they may send, and must not wait. Requests that come before a handle is set wait until
// one is, or until the program calls the library again.
class SimpleApp {
 public:
  using Handle = std::function<void(const SimpleData& received, SimpleApp* app)>;

  // Applications of one `app_id` reach each other. `customer_id` tells those of a process apart.
  explicit SimpleApp(int app_id, int customer_id = 0) : SimpleApp() {
    obj_ = new Customer(app_id, customer_id,
                        [this](const internal::SimpleMessage& message) { Receive(message); });
  }
  virtual ~SimpleApp() {
    delete obj_;
    obj_ = nullptr;
  }
  SimpleApp(const SimpleApp&) = delete;
  SimpleApp& operator=(const SimpleApp&) = delete;

  // To a node or all nodes of a group. A worker's requests to servers go to them directly, others
  // by way of the scheduler. Returns the request's timestamp.
  virtual int Request(int req_head, const std::string& req_body, int recv_id) {
    internal::BeReady(obj_);
    const int timestamp = obj_->NewRequest(recv_id);
    internal::SendSimple(obj_, timestamp, req_head, req_body, recv_id);
    return timestamp;
  }
  // Waits until all of its receivers have responded, died or left.
  virtual void Wait(int timestamp) { obj_->WaitRequest(timestamp); }
  virtual void Response(const SimpleData& recv_req, const std::string& res_body = "") {
    internal::SimpleMessage to;
    to.request = true;
    to.head = recv_req.head;
    to.sender = recv_req.sender;
    to.timestamp = recv_req.timestamp;
    to.customer_id = recv_req.customer_id;
    internal::RespondSimple(obj_, to, res_body);
  }

  // The default responds at once, with an empty body.
  virtual void set_request_handle(const Handle& request_handle) {
    CHECK(request_handle) << "the request handle is an empty function";
    request_handle_ = request_handle;
    internal::BeReady(obj_);
  }
  virtual void set_response_handle(const Handle& response_handle) {
    CHECK(response_handle) << "the response handle is an empty function";
    response_handle_ = response_handle;
  }
  virtual Customer* get_customer() { return obj_; }

 protected:
  // For a class that makes its own Customer, which calls Receive.
  SimpleApp()
      : obj_(nullptr),
        request_handle_([](const SimpleData& request, SimpleApp* app) { app->Response(request); }),
        response_handle_([](const SimpleData&, SimpleApp*) {}) {}

  void Receive(const internal::SimpleMessage& message) {
    SimpleData data;
    data.head = message.head;
    data.body = message.body;
    data.sender = message.sender;
    data.timestamp = message.timestamp;
    data.customer_id = message.customer_id;
    (message.request ? request_handle_ : response_handle_)(data, this);
  }

  Customer* obj_;

 private:
  Handle request_handle_;
  Handle response_handle_;
};

}  // namespace ps

#endif  // PS_SIMPLE_APP_H_
