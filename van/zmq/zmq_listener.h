// One address that is listened on: a ROUTER socket and the connections it has accepted.
//
// ZeroMQ names a connection twice: its monitor by file descriptor, its messages by a routing id
// and, as a property, by descriptor as well. Descriptors are reused, so the monitor's news is read
// before a routing id that has not been seen is matched to a descriptor.
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

  // The address others connect to.
  absl::StatusOr<std::string> Open(absl::string_view address);
  bool Has(ConnId conn) const { return conns_.contains(conn); }
  ZmqSent Send(ConnId conn, const Prefix& prefix, const Message& message,
               ZmqExports::Ticket* ticket);
  // No event about it follows. ZeroMQ cannot close one connection of a ROUTER: the other side is
  // given a moment to do it, and then its descriptor is shut down.
  void Close(ConnId conn);
  std::string AddressOf(ConnId conn) const;
  // The address is free again when this returns.
  void Shut();

 private:
  struct Conn {
    int fd = -1;             // none within the process
    std::string peer;        // who is at the other end of fd
    std::string routing_id;  // once it has sent something
    bool closed = false;     // by us: what it still says is not heard
    bool lost = false;       // told once everything received before has been
    runtime::TimerId cut_off = runtime::TimerId::kNone;
  };

  absl::Status Bind(const std::string& endpoint, absl::string_view address);
  absl::StatusOr<std::string> BindTcp(const ZmqAddress& parsed, absl::string_view address);
  absl::StatusOr<std::string> BindIpc(const ZmqAddress& parsed, absl::string_view address);
  absl::StatusOr<std::string> BindInproc(const ZmqAddress& parsed, absl::string_view address);

  bool ReadMonitor();
  bool PollData();
  bool TellLost();
  // The connection a message belongs to; 0 if it is not to be heard.
  ConnId Match(ZmqReceived& received);
  ConnId MatchNew(const std::string& routing_id, int fd);
  ConnId Add(int fd);
  void Bound(ConnId conn, const std::string& routing_id);
  // A name for one whose descriptor had none any more.
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
  absl::flat_hash_map<int, ConnId> by_fd_;  // the newest on it, while it stands
  std::vector<ConnId> lost_;
  std::deque<ConnId> closed_inproc_;  // kept to be ignored; bounded
};

}  // namespace leeway::van

#endif  // LEEWAY_VAN_ZMQ_ZMQ_LISTENER_H_
