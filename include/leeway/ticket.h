// A Ticket is the user's handle of an operation under way; Worker::Wait returns how it ended.
#ifndef LEEWAY_TICKET_H_
#define LEEWAY_TICKET_H_

#include <cstdint>
#include <memory>

namespace leeway {

namespace worker {
class Operation;
}

// A small value; copies stand for the same operation, which goes on when all copies are gone.
class Ticket {
 public:
  Ticket() = default;  // of no operation; waiting for it is OK at once
  explicit Ticket(std::shared_ptr<worker::Operation> operation)
      : operation_(std::move(operation)) {}
  const std::shared_ptr<worker::Operation>& operation() const { return operation_; }

 private:
  std::shared_ptr<worker::Operation> operation_;
};

}  // namespace leeway

#endif  // LEEWAY_TICKET_H_
