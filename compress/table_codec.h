// How the values of one table travel: the codec that its description names, and which ends keep
// what it drops. Workers and servers both derive it, so that they agree.
#ifndef LEEWAY_COMPRESS_TABLE_CODEC_H_
#define LEEWAY_COMPRESS_TABLE_CODEC_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "compress/registry.h"
#include "leeway/codec.h"
#include "leeway/table_spec.h"

namespace leeway::compress {

// The updater of tables whose value is what the pushes of one clock add up to.
inline constexpr absl::string_view kGradientUpdater = "gradient";

struct TableCodec {
  CodecId id = kNoCodec;  // kNoCodec: values travel as they are, and nothing below holds
  std::shared_ptr<const Codec> codec;
  DType dtype = DType::kFloat32;  // of the elements in messages: the table's, or float32
  // A worker keeps what its pushes lose.
  bool worker_feedback = false;
  // Replies are encoded: blocks as they are (lossless codecs, gradient tables), or what has changed
  // since the version that a worker holds (`versions`).
  bool codes_replies = false;
  bool versions = false;
  // A server keeps what its replies lose, one value for each element: the residual of a gradient
  // table, or otherwise what workers hold.
  bool server_feedback = false;

  bool encodes() const { return id != kNoCodec; }
};

// INVALID_ARGUMENT or NOT_FOUND, in one line that names the option: no such codec, an option out of
// range, a codec that cannot carry the table's dtype or kind, error feedback where there is
// none to give. docs/compression.md has the table of what composes.
absl::StatusOr<TableCodec> TableCodecOf(const TableSpec& spec);

// What a message about `elements` elements of a dense block describes.
CodecShape BlockShape(const TableSpec& spec, const TableCodec& codec, std::uint64_t elements);
// … about so many rows of a sparse table.
CodecShape RowsShape(const TableSpec& spec, const TableCodec& codec, std::uint64_t rows);

}  // namespace leeway::compress

#endif  // LEEWAY_COMPRESS_TABLE_CODEC_H_
