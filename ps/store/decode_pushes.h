// Encoded pushes made into what a plain store takes.
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
  // `updater` outlives it.
  PushDecoder(const TableSpec& spec, const StorePlace& place, const Updater* updater,
              compress::TableCodec codec);

  // Whether an encoded push fits the table and can be decoded (IsMalformedEncoding tells these
  // apart). `plain`: for what is wrong with its target.
  absl::Status Check(const PushView& push, const ShardStore& plain) const;

  // Whether single pushes are decoded to aggregates: those of 16-bit tables, which are widened.
  bool widens() const { return codec_.dtype != spec_.dtype; }

  // The push with its values as they are. It passed Check, and the codec has the table's dtype.
  absl::StatusOr<PushView> Plain(const PushView& push) const;
  absl::StatusOr<std::vector<PushView>> Plain(std::span<const PushView> pushes) const;

  // Dense, of float32 messages: what the pushes of one clock to one block add up to, in their
  // order, divided by `contributors` where the table asks for the mean. Each is decoded into the
  // sum.
  absl::StatusOr<AggregatedPush> Sum(std::span<const PushView> pushes,
                                     std::uint32_t contributors) const;

 private:
  CodecShape ShapeOf(const PushView& push) const;
  std::uint64_t ElementsOf(const PushView& push) const;
  absl::Status Add(const PushView& push, std::uint64_t elements, bool first, float* sum) const;

  const TableSpec spec_;
  const StorePlace place_;
  const Updater* const updater_;
  const compress::TableCodec codec_;
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_STORE_DECODE_PUSHES_H_
