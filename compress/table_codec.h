// A TableCodec says how the values of one table travel: the codec of its description, and which
// ends keep the residual. Workers and servers derive it alike from the description.
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

// The updater of tables whose value is the sum of the pushes of one clock.
inline constexpr absl::string_view kGradientUpdater = "gradient";

struct TableCodec {
  CodecId id = kNoCodec;  // kNoCodec: values travel as they are, and the fields below are unused
  std::shared_ptr<const Codec> codec;
  const OnePassFeedback* one_pass = nullptr;  // the codec, if it implements that
  DType dtype = DType::kFloat32;     // of the elements in messages: the table's, or float32
  std::optional<Momentum> momentum;  // of workers' pushes; not of replies
  // A worker keeps the residual of its pushes.
  bool worker_feedback = false;
  // Replies are encoded: as whole blocks (lossless codecs, gradient tables), or as the difference
  // to the version that a worker holds (`versions`).
  bool codes_replies = false;
  bool versions = false;
  // A server keeps what its replies lose, one value for each element: the residual of a gradient
  // table, or otherwise the values that workers hold.
  bool server_feedback = false;

  bool encodes() const { return id != kNoCodec; }
  // Floats that a worker keeps for a block beside its residual: the codec's state, and with
  // momentum one for each element of the block.
  std::size_t WorkerStateElements(const CodecShape& shape) const {
    return codec->StateElements(shape) + (momentum.has_value() ? shape.elements : 0);
  }
};

// INVALID_ARGUMENT or NOT_FOUND, in one line that names the option: no such codec, an option out of
// range, a codec that cannot carry the table's dtype or kind, error feedback that the codec cannot
// have. docs/compression.md has the table of combinations.
absl::StatusOr<TableCodec> TableCodecOf(const TableSpec& spec);

// The codecs that a table may be switched between while training: one unless TableSpec::codecs has
// more. A CodecSchedule says which of them encodes the messages of a clock.
struct TableCodecs {
  // The codec that the table begins with, then the others in the order of TableSpec::codecs.
  std::vector<TableCodec> choices;
  std::vector<std::string> texts;  // of each, as the description has it

  // False: there is one and it is `none`.
  bool encodes() const { return choices.size() > 1 || choices.front().encodes(); }
  bool AnyHas(bool TableCodec::*what) const;
  // The codec with that id; null: the table has no such codec. `id` is not kNoCodec.
  const TableCodec* Find(CodecId id) const;
};

// As TableCodecOf, for all codecs of the description. Of several, error feedback that the
// description asks for concerns the lossy ones.
absl::StatusOr<TableCodecs> TableCodecsOf(const TableSpec& spec);

// The texts of TableCodecs, without making the codecs; their names and options are not checked.
std::vector<std::string> CodecTextsOf(const TableSpec& spec);

// TableSpec::codec of tables whose codec is chosen by the speed of links and codecs.
inline constexpr absl::string_view kAutomaticCodec = "auto";

// The shape of a message of `elements` elements of a dense block.
CodecShape BlockShape(const TableSpec& spec, const TableCodec& codec, std::uint64_t elements);
// The shape of a message of `rows` rows of a sparse table.
CodecShape RowsShape(const TableSpec& spec, const TableCodec& codec, std::uint64_t rows);

}  // namespace leeway::compress

#endif  // LEEWAY_COMPRESS_TABLE_CODEC_H_
