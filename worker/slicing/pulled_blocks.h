// The decoder of a table's encoded replies, which keeps a copy of each block where replies are
// differences to the previous one (EF21-P: Gruntkowska et al., ICML 2023, Algorithm 1; the server's
// half is ps/store/dense/versions.h).
//
// The copy is needed because the user may change the pulled array; all copies are as large as the
// table. Lives on the worker's loop, in TableCoding.
#ifndef LEEWAY_WORKER_SLICING_PULLED_BLOCKS_H_
#define LEEWAY_WORKER_SLICING_PULLED_BLOCKS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "compress/table_codec.h"
#include "leeway/table_spec.h"
#include "proto/messages/messages.h"

namespace leeway::worker {

class PulledBlocks {
 public:
  // `codecs` outlive it.
  PulledBlocks(const TableSpec& spec, const compress::TableCodecs* codecs)
      : spec_(spec), codecs_(codecs) {}

  // The version of the copy of a block, which pulls tell the server; 0: there is none.
  std::uint64_t have(std::uint64_t block) const;

  // Decodes a reply and writes the block, [elements] of the table's dtype, to `to`. `bytes` are its
  // parts, one after the other. INVALID_ARGUMENT if they are malformed or do not follow the copy:
  // then the copy is forgotten, and the next pull gets the whole block.
  absl::Status Take(std::uint64_t block, std::uint64_t elements,
                    std::span<const proto::ReplyPart> parts, std::span<const std::byte> bytes,
                    std::byte* to);

 private:
  struct Held {
    std::vector<float> values;
    std::uint64_t version = 0;
  };

  absl::Status Change(Held* held, const proto::ReplyPart& part, std::span<const std::byte> bytes,
                      std::uint64_t elements) const;
  const compress::TableCodec* ByItself(std::span<const proto::ReplyPart> parts) const;
  absl::Status DecodeWhole(const compress::TableCodec& codec, std::uint64_t elements,
                           std::span<const std::byte> bytes, std::byte* to);
  void Store(std::span<const float> values, std::byte* to) const;

  const TableSpec spec_;
  const compress::TableCodecs* const codecs_;
  std::map<std::uint64_t, Held> held_;
  std::vector<float> decoded_;
};

}  // namespace leeway::worker

#endif  // LEEWAY_WORKER_SLICING_PULLED_BLOCKS_H_
