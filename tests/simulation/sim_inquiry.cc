#include "tests/simulation/sim_inquiry.h"

#include <variant>

#include "proto/encoding/encoding.h"

namespace leeway::simulation {
namespace {

constexpr absl::Duration kConnectWithin = absl::Seconds(2);

}  // namespace

SimInquiry::SimInquiry(SimCluster* cluster, const std::string& host)
    : host_(cluster->world().NewHost(host)),
      factory_(cluster->NewFactory(host)),
      runner_(host_->Spawn("main")),
      asked_(cluster->world().Now()) {
  van::Identity identity;
  identity.role = Role::kTool;
  identity.incarnation = host_->Random();
  van_ = factory_->New(runner_->loop(), identity, van::LimitsFrom(cluster->config()), this);
  runner_->loop()->Post([this, address = cluster->config().scheduler] {
    (void)van_->Connect(address, kConnectWithin);
  });
}

SimInquiry::~SimInquiry() { van_.reset(); }

void SimInquiry::OnPeerUp(van::PeerId peer, const van::Identity& identity) {
  (void)van_->Send(peer, {.header = proto::Encode(proto::StatusRequest{1}), .payload = {}});
}

void SimInquiry::OnMessage(van::PeerId peer, van::Message raw) {
  const auto message = proto::Decode(raw.header, {raw.payload.data(), raw.payload.size()});
  if (!message.ok() || !std::holds_alternative<proto::StatusReply>(*message)) return;
  Json said = Json::parse(raw.payload[0].text(), nullptr, /*allow_exceptions=*/false);
  if (!said.is_object()) said = Json::object();
  const auto thread = asked_threads_.find(peer);
  if (thread != asked_threads_.end()) {
    threads_[thread->second] = std::move(said);
  } else {
    scheduler_ = std::move(said);
    AskThreads();
  }
}

void SimInquiry::AskThreads() {
  for (const Json& server : scheduler_.value("servers", Json::array())) {
    if (server.value("state", "") != "alive") continue;
    std::size_t index = 0;
    for (const Json& endpoint : server.value("endpoints", Json::array())) {
      ++expected_;
      const auto peer = van_->Connect(endpoint.get<std::string>(), kConnectWithin);
      if (peer.ok()) asked_threads_[*peer] = {server.value("rank", std::uint64_t{0}), index++};
    }
  }
}

}  // namespace leeway::simulation
