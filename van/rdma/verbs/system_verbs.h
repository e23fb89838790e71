// SystemVerbs is the Verbs of this machine: libibverbs and librdmacm.
#ifndef LEEWAY_VAN_RDMA_VERBS_SYSTEM_VERBS_H_
#define LEEWAY_VAN_RDMA_VERBS_SYSTEM_VERBS_H_

#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "runtime/base/fork.h"
#include "runtime/base/unique_fd.h"
#include "van/rdma/verbs/library.h"
#include "van/rdma/verbs/system_connection.h"
#include "van/rdma/verbs/system_device.h"
#include "van/rdma/verbs/verbs.h"

namespace leeway::van::verbs {

class SystemVerbs final : public Verbs {
 public:
  SystemVerbs(const Library& library, const Options& options, const Path& path);
  absl::Status Start();
  ~SystemVerbs() override;

  int fd() const override { return poll_.get(); }
  absl::StatusOr<std::uint16_t> Listen(const sockaddr_storage& address) override;
  absl::StatusOr<std::unique_ptr<Connection>> Dial(const sockaddr_storage& address) override;
  bool NextEvent(Event* event) override;
  std::span<Device* const> devices() const override { return devices_; }

  // For its connections.
  const Library& library() const { return library_; }
  const Options& options() const { return options_; }
  const Path& path() const { return path_; }
  // The device of `id`, opened if this is its first connection.
  absl::StatusOr<SystemDevice*> DeviceOf(const rdma_cm_id* id);
  // Adds an event for NextEvent, besides those that SystemConnection::OnEvent returns.
  void Report(Event event);
  // The connection is being destroyed: its events are not to be reported any more.
  void Forget(const SystemConnection* connection);

 private:
  absl::Status Watch(int fd, std::uint64_t source);
  void Look();
  void ReadCmEvents();
  bool TakeCmEvent(CmEvent* event);
  void OnCmEvent(const CmEvent& event);
  void OnRequest(const CmEvent& event);
  void ReadNews(SystemDevice* device);
  void Lose(SystemDevice* device, absl::Status why);
  void SetAwake(bool awake);

  const Library& library_;
  const Options options_;
  const Path path_;
  runtime::UniqueFd poll_;
  // Readable while pending_ has events.
  runtime::UniqueFd wake_;
  bool awake_ = false;
  Owned<rdma_event_channel> channel_;
  std::optional<runtime::ClosedInChildren> closed_in_children_;  // its descriptor
  std::vector<std::unique_ptr<SystemDevice>> owned_devices_;
  std::vector<Device*> devices_;  // owned_devices_ as an interface
  std::vector<Owned<rdma_cm_id>> listeners_;
  std::deque<Event> pending_;
};

}  // namespace leeway::van::verbs

#endif  // LEEWAY_VAN_RDMA_VERBS_SYSTEM_VERBS_H_
