// ZmqListener is one address that is listened on: a ROUTER socket and the connections that it has
// accepted. Lives on the transport's loop.
//
// ZeroMQ identifies a connection twice: its monitor by file descriptor, its messages by a routing
// id and, as a property, by descriptor as well. Descriptors are reused, so the events of the
// monitor are read before a new routing id is matched to a descriptor.
#ifndef LEEWAY_VAN_ZMQ_ZMQ_LISTENER_H_
#define LEEWAY_VAN_ZMQ_ZMQ_LISTENER_H_

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "van/zmq/zmq_address.h"
#include "van/zmq/zmq_link.h"
#include "van/zmq/zmq_monitor.h"
#include "van/zmq/zmq_socket_source.h"

namespace leeway::van {

class ZmqListener {
 public:
  explicit ZmqListener(ZmqShared* shared) : shared_(shared) {}
  ~ZmqListener() { Shut(); }

  // Listens, and returns the address that others connect to.
  absl::StatusOr<std::string> Open(absl::string_view address);
  bool Has(ConnId conn) const { return conns_.contains(conn); }
  ZmqSent Send(ConnId conn, const Prefix& prefix, const Message& message,
               ZmqExports::Ticket* ticket);
  // Closes a connection; no event about it follows. ZeroMQ cannot close one connection of a ROUTER,
  // so the other side gets a moment to do so, and then its descriptor is shut down.
  void Close(ConnId conn);
  std::string AddressOf(ConnId conn) const;
  // Stops listening. The address is free when this returns.
  void Shut();

 private:
  struct Conn {
    int fd = -1;             // -1 within the process
    std::string peer;        // the address at the other end of fd
    std::string routing_id;  // known when it has sent a message
    bool closed = false;     // closed by this side: its messages are ignored
    bool lost = false;       // reported when everything received before has been delivered
    runtime::TimerId cut_off = runtime::TimerId::kNone;
  };

  absl::Status Bind(const std::string& endpoint, absl::string_view address);
  absl::StatusOr<std::string> BindTcp(const ZmqAddress& parsed, absl::string_view address);
  absl::StatusOr<std::string> BindIpc(const ZmqAddress& parsed, absl::string_view address);
  absl::StatusOr<std::string> BindInproc(const ZmqAddress& parsed, absl::string_view address);

  bool ReadMonitor();
  bool PollData();
  bool TellLost();
  // The connection of a message; 0: the message is to be ignored.
  ConnId Match(ZmqReceived& received);
  ConnId MatchNew(const std::string& routing_id, int fd);
  ConnId Add(int fd);
  void Bound(ConnId conn, const std::string& routing_id);
  // Names a connection whose descriptor had no address any more.
  void NameAfter(ConnId conn, const std::string& source_address);
  void Lose(ConnId conn);
  void Forget(ConnId conn);
  void CutOff(ConnId conn);

  ZmqShared* shared_;
  ZmqSocket socket_;
  ZmqMonitor monitor_;
  std::unique_ptr<ZmqSocketSource> monitor_source_, data_source_;
  bool over_tcp_ = false;
  std::string inproc_name_;
  absl::flat_hash_map<ConnId, Conn> conns_;
  absl::flat_hash_map<std::string, ConnId> by_routing_id_;
  absl::flat_hash_map<int, ConnId> by_fd_;  // the newest connection on it, while it is open
  std::vector<ConnId> lost_;
  std::deque<ConnId> closed_inproc_;  // their messages are ignored; bounded
};

}  // namespace leeway::van

#endif  // LEEWAY_VAN_ZMQ_ZMQ_LISTENER_H_
