// The decoding of encoded pushes into what a plain store takes.
#ifndef LEEWAY_PS_STORE_DECODE_PUSHES_H_
#define LEEWAY_PS_STORE_DECODE_PUSHES_H_

#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compress/table_codec.h"
#include "ps/store/shard_store.h"

namespace leeway::ps {

// Whether a push was refused because no honest worker would have sent it: its codec cannot decode
// it.
bool IsMalformedEncoding(const absl::Status& status);

// Of one table in one shard. Pushes may be encoded or not, each by itself.
class PushDecoder {
 public:
  // `updater` and `codecs` outlive it.
  PushDecoder(const TableSpec& spec, const StoreContext& context, const Updater* updater,
              const compress::TableCodecs* codecs);

  // As ShardStore::UseSettings.
  void UseSettings(const TableSpec& spec, const Updater* updater) {
    spec_ = spec;
    updater_ = updater;
  }

  // Whether an encoded push fits the table and can be decoded (IsMalformedEncoding tells these
  // apart). `plain`: for what is wrong with its target.
  absl::Status Check(const PushView& push, const ShardStore& plain) const;

  // The codec of an encoded push that passed Check.
  const compress::TableCodec& CodecOf(const PushView& push) const {
    return *codecs_->Find(push.codec);
  }
  // Whether the push is decoded to another dtype than the table's: 16 bits widened to 32.
  bool Widens(const PushView& push) const {
    return push.codec != 0 && CodecOf(push).dtype != spec_.dtype;
  }

  // The push with its values as they are. It passed Check, and is not widened.
  absl::StatusOr<PushView> Plain(const PushView& push) const;
  absl::StatusOr<std::vector<PushView>> Plain(std::span<const PushView> pushes) const;

  // Dense, computed in float32: what the pushes of one clock to one block add up to, in their
  // order, divided by `contributors` where the table asks for the mean. Each is decoded into the
  // sum, except that messages which can be added up as they are (Codec::AddEncoded) are, and their
  // sum is decoded.
  absl::StatusOr<AggregatedPush> Sum(std::span<const PushView> pushes,
                                     std::uint32_t contributors) const;

 private:
  CodecShape ShapeOf(const PushView& push) const;
  std::uint64_t ElementsOf(const PushView& push) const;
  absl::Status Add(const PushView& push, std::uint64_t elements, bool first, float* sum) const;
  bool AddsEncoded(const PushView& push) const;
  std::vector<PushView> Joined(std::span<const PushView> pushes) const;

  TableSpec spec_;
  const StoreContext context_;
  const Updater* updater_;
  const compress::TableCodecs* const codecs_;
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_STORE_DECODE_PUSHES_H_
