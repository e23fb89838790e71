// How the values of one table travel: the codec that its description names, and which ends keep
// what it drops. Workers and servers both derive it, so that they agree.
#ifndef LEEWAY_COMPRESS_TABLE_CODEC_H_
#define LEEWAY_COMPRESS_TABLE_CODEC_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compress/common/one_pass_feedback.h"
#include "compress/registry.h"
#include "leeway/codec.h"
#include "leeway/table_spec.h"

namespace leeway::compress {

// The updater of tables whose value is what the pushes of one clock add up to.
inline constexpr absl::string_view kGradientUpdater = "gradient";

struct TableCodec {
  CodecId id = kNoCodec;  // kNoCodec: values travel as they are, and nothing below holds
  std::shared_ptr<const Codec> codec;
  const OnePassFeedback* one_pass = nullptr;  // the codec, where it is one
  DType dtype = DType::kFloat32;     // of the elements in messages: the table's, or float32
  std::optional<Momentum> momentum;  // of what workers push; not of replies
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
  // Floats that a worker keeps for a block beside its residual: the codec's state, then as many as
  // the block has elements where there is momentum.
  std::size_t WorkerStateElements(const CodecShape& shape) const {
    return codec->StateElements(shape) + (momentum.has_value() ? shape.elements : 0);
  }
};

// INVALID_ARGUMENT or NOT_FOUND, in one line that names the option: no such codec, an option out of
// range, a codec that cannot carry the table's dtype or kind, error feedback where there is
// none to give. docs/compression.md has the table of what composes.
absl::StatusOr<TableCodec> TableCodecOf(const TableSpec& spec);

// The codecs that a table may be switched between while training: one unless TableSpec::codecs has
// more. Which of them encodes what is said of a clock a CodecSchedule tells.
struct TableCodecs {
  // What the table begins with, then the others in the order of TableSpec::codecs.
  std::vector<TableCodec> choices;
  std::vector<std::string> texts;  // of each, as the description has it

  // False: there is one and it is `none`.
  bool encodes() const { return choices.size() > 1 || choices.front().encodes(); }
  bool AnyHas(bool TableCodec::*what) const;
  // The one that a message names; null: none of the table's. Not of kNoCodec.
  const TableCodec* Find(CodecId id) const;
};

// As TableCodecOf, for all that the description allows. Asking for error feedback concerns the
// lossy ones among several.
absl::StatusOr<TableCodecs> TableCodecsOf(const TableSpec& spec);

// The texts of TableCodecs, without making the codecs: whether they are known is not looked at.
std::vector<std::string> CodecTextsOf(const TableSpec& spec);

// TableSpec::codec of tables whose codec is chosen by how fast links and codecs are.
inline constexpr absl::string_view kAutomaticCodec = "auto";

// What a message about `elements` elements of a dense block describes.
CodecShape BlockShape(const TableSpec& spec, const TableCodec& codec, std::uint64_t elements);
// … about so many rows of a sparse table.
CodecShape RowsShape(const TableSpec& spec, const TableCodec& codec, std::uint64_t rows);

}  // namespace leeway::compress

#endif  // LEEWAY_COMPRESS_TABLE_CODEC_H_
