#include "tests/simulation/sim_tool.h"

#include <utility>
#include <variant>

#include "proto/encoding/encoding.h"

namespace leeway::simulation {
namespace {

constexpr absl::Duration kSayAgain = absl::Milliseconds(500);

}  // namespace

SimTool::SimTool(SimCluster* cluster, const std::string& host, std::string command,
                 std::vector<std::string> arguments, std::function<void(const absl::Status&)> done)
    : cluster_(cluster),
      host_(cluster->world().NewHost(host)),
      factory_(cluster->NewFactory(host)),
      runner_(host_->Spawn("main")),
      admin_{.request = 1, .command = std::move(command), .arguments = std::move(arguments)},
      done_(std::move(done)) {
  van::Identity identity;
  identity.role = Role::kTool;
  identity.incarnation = host_->Random();
  van_ = factory_->New(runner_->loop(), identity, van::LimitsFrom(cluster->config()), this);
  runner_->loop()->Post([this] {
    Connect();
    Say();
  });
}

SimTool::~SimTool() { van_.reset(); }

void SimTool::Connect() {
  const absl::StatusOr<van::PeerId> peer =
      van_->Connect(cluster_->config().scheduler, absl::Seconds(2));
  peer_ = peer.ok() ? *peer : 0;
}

void SimTool::OnPeerUp(van::PeerId peer, const van::Identity&) { up_ = peer == peer_; }

void SimTool::OnPeerDown(van::PeerId peer, const absl::Status&) {
  if (peer == peer_) peer_ = 0;
}

void SimTool::OnMessage(van::PeerId, van::Message raw) {
  const absl::StatusOr<proto::AnyMessage> message =
      proto::Decode(raw.header, {raw.payload.data(), raw.payload.size()});
  const auto* reply = message.ok() ? std::get_if<proto::AdminReply>(&*message) : nullptr;
  if (reply != nullptr && done_ != nullptr) std::exchange(done_, nullptr)(reply->result);
}

void SimTool::Say() {
  if (done_ == nullptr) return;
  if (peer_ == 0) {
    up_ = false;
    Connect();
  } else if (up_) {
    // A command that cannot be sent is repeated like a lost one.
    (void)van_->Send(peer_, {.header = proto::Encode(admin_), .payload = {}});
  }
  runner_->loop()->After(kSayAgain, [this] { Say(); });
}

}  // namespace leeway::simulation
