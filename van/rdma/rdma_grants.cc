#include "van/rdma/rdma_grants.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace leeway::van {

void RdmaGrantsGiven::Give(verbs::Device* device, std::uint64_t token, std::span<std::byte> into) {
  if (open_.size() >= kRdmaGrantsOpenMax) return;
  absl::StatusOr<std::unique_ptr<verbs::MemoryRegion>> region =
      device->Register(into.data(), into.size(), /*remote_write=*/true);
  if (!region.ok()) return;
  RdmaGrant grant;
  grant.token = token;
  grant.address = reinterpret_cast<std::uint64_t>(into.data());
  grant.bytes = into.size();
  grant.key = (*region)->remote_key();
  grant.number = next_number_++;
  open_[grant.number] = {token, into, *std::move(region)};
  untold_.push_back(grant);
}

void RdmaGrantsGiven::End(std::uint64_t token) {
  const auto found = std::find_if(open_.begin(), open_.end(),
                                  [token](const auto& one) { return one.second.token == token; });
  if (found == open_.end()) return;
  const std::uint32_t number = found->first;
  open_.erase(found);
  const auto unsaid = std::find_if(untold_.begin(), untold_.end(),
                                   [number](const RdmaGrant& one) { return one.number == number; });
  if (unsaid != untold_.end()) {
    untold_.erase(unsaid);
    return;
  }
  untold_.push_back({.token = token, .address = 0, .bytes = 0, .key = 0, .number = number});
  ++ends_untold_;
}

absl::StatusOr<runtime::Buffer> RdmaGrantsGiven::Take(std::uint32_t number, std::uint64_t token,
                                                      std::uint64_t bytes) {
  const auto found = open_.find(number);
  if (found == open_.end()) {
    return absl::UnavailableError("an answer was written to memory that is no longer posted");
  }
  if (token != found->second.token) {
    return absl::InvalidArgumentError("an answer written to where another one was posted");
  }
  const std::span<std::byte> into = found->second.into;
  if (bytes != into.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("an answer of ", bytes, " bytes written to a grant of ", into.size()));
  }
  open_.erase(found);  // ends the registration: the memory does not change any more
  return runtime::Buffer::Unowned(into.data(), into.size());
}

std::size_t RdmaGrantsGiven::Tell(std::span<RdmaGrant> grants) {
  const std::size_t count = std::min(grants.size(), untold_.size());
  for (std::size_t i = 0; i < count; ++i) {
    grants[i] = untold_.front();
    untold_.pop_front();
    if (grants[i].bytes == 0) --ends_untold_;
  }
  return count;
}

absl::Status RdmaGrantsGot::OnGrant(const RdmaGrant& grant) {
  if (grant.bytes == 0) {
    const auto found = by_token_.find(grant.token);
    if (found != by_token_.end() && found->second.number == grant.number) by_token_.erase(found);
    return absl::OkStatus();
  }
  by_token_[grant.token] = grant;
  if (by_token_.size() <= kRdmaGrantsOpenMax) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("more than ", kRdmaGrantsOpenMax, " grants are open"));
}

std::optional<RdmaGrant> RdmaGrantsGot::Use(std::uint64_t token, std::uint64_t bytes) {
  const auto found = by_token_.find(token);
  if (found == by_token_.end()) return std::nullopt;
  const RdmaGrant grant = found->second;
  by_token_.erase(found);
  return grant.bytes == bytes ? std::optional(grant) : std::nullopt;
}

}  // namespace leeway::van
