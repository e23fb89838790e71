// The functions of the compiled library that the templates of kv_app.h and simple_app.h stand on:
// they send arrays of bytes and know no types. Programs do not call them.
#ifndef PS_INTERNAL_TRANSFER_H_
#define PS_INTERNAL_TRANSFER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace ps {

class Customer;

namespace internal {

// Bytes, and what keeps them alive.
struct Bytes {
  std::shared_ptr<void> owner;
  void* data = nullptr;
  size_t size = 0;
};

// The arrays of KVPairs. `has_lens` says whether `lens` was given.
struct KVArrays {
  Bytes keys, vals, lens;
  bool has_lens = false;
};

// The head of a request to a server, as its handler gets it (KVMeta).
struct KVHead {
  int cmd = 0;
  bool push = false;
  bool pull = false;
  int sender = 0;
  int timestamp = 0;
  int customer_id = 0;
};

struct SimpleMessage {
  bool request = false;
  int head = 0;
  std::string body;
  int sender = 0;
  int timestamp = 0;
  int customer_id = 0;
};

// The types of values that a table may have; kNoTable: another type, or a user's own handler.
enum ValueType : int32_t { kNoTable = -1, kFloat = 0, kDouble = 1, kInt32 = 4, kInt64 = 5 };
template <typename V>
struct ValueTypeOf {
  static const ValueType value = kNoTable;
};
template <>
struct ValueTypeOf<float> {
  static const ValueType value = kFloat;
};
template <>
struct ValueTypeOf<double> {
  static const ValueType value = kDouble;
};
template <>
struct ValueTypeOf<int32_t> {
  static const ValueType value = kInt32;
};
template <>
struct ValueTypeOf<int64_t> {
  static const ValueType value = kInt64;
};

// ---- of a worker ----

// Whether tables stand behind the servers' application: all of its servers have the default
// handler. Asks them once, and waits until they have set their handlers.
bool UsesTables(Customer* customer, ValueType type);

// One request for each server that is not skipped. `done` is called once with all answers, in the
// order of the servers; then the request of that timestamp is finished.
struct ServerRequest {
  int server = 0;  // rank
  KVArrays arrays;
};
void SendToServers(Customer* customer, const KVHead& head, std::vector<ServerRequest> requests,
                   std::function<void(std::vector<KVArrays>)> done);

// A push, pull or both of the customer's table. `widths`: elements of each value, for a push.
// `room` is called with the widths of a pull and their sum, and returns where the values go.
// `arrays` and what `room` returns stay alive until `done`.
struct TableRequest {
  KVHead head;
  ValueType type = kNoTable;
  int priority = 0;
  KVArrays arrays;
  std::vector<uint32_t> widths;
  std::function<void*(const std::vector<uint32_t>& widths, size_t elements)> room;
  std::function<void()> done;
};
void SendToTable(Customer* customer, TableRequest request);

// ---- of a server ----

using KVHandler = std::function<void(const KVHead&, const KVArrays&)>;
// `table`: the type of values of tables that stand in for the handler, which is the default one;
// kNoTable: the handler gets the requests. `value_bytes`: of one value; requests with values in
// part fail at their worker.
void SetKVHandler(Customer* customer, KVHandler handler, ValueType table, size_t value_bytes);
void Respond(Customer* customer, const KVHead& to, KVArrays arrays);

// ---- of any node ----

void SendSimple(Customer* customer, int timestamp, int head, const std::string& body, int to);
void RespondSimple(Customer* customer, const SimpleMessage& to, const std::string& body);
// The program has set its handles: messages that have waited for it come now.
void BeReady(Customer* customer);

}  // namespace internal
}  // namespace ps

#endif  // PS_INTERNAL_TRANSFER_H_
