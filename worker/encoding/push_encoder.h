// Encodes what a worker pushes to one table, and keeps what a lossy codec drops (error feedback).
//
// With feedback a push sends C(g + r·e), and e becomes what C has dropped of that, where r is the
// learning rate of the push before divided by this one's: dist-EF-SGD (Zheng et al., NeurIPS 2019,
// Algorithm 2), so that what was dropped counts as much as it would have when it was computed. A
// learning rate of 0 sends C(g) and leaves e alone, since nothing of it would be applied. Where the
// codec has momentum (compress/momentum.h), g is what that makes of the gradient, at every rate.
//
// Lives on the worker's loop: pieces are encoded when they are about to leave, in the order of
// their numbers. A resend carries the same bytes. A push that servers refuse for good is taken back
// (push_encoder_refused.cc): what is kept is then as after a push of zeros.
#ifndef LEEWAY_WORKER_ENCODING_PUSH_ENCODER_H_
#define LEEWAY_WORKER_ENCODING_PUSH_ENCODER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "compress/table_codec.h"
#include "leeway/table_spec.h"
#include "runtime/memory/buffer.h"
#include "worker/encoding/residual_file.h"
#include "worker/encoding/residual_rows.h"

namespace leeway::worker {

// Which state a push has changed, for TakeBack.
struct PushTraces {
  std::uint32_t choice = 0;  // of the table's codecs
  std::uint64_t step = 0;    // pushes of the block with traces up to this one
  bool residual = false;     // the residual went along with it, or has what it dropped
};

// A values frame: of `codec`, or values where that is 0. Empty: the values that were given, as they
// are.
struct EncodedValues {
  compress::CodecId codec = compress::kNoCodec;
  runtime::Buffer bytes = {};
  std::optional<PushTraces> traces = {};  // none: it has changed nothing that is kept
};

// The values frame of rows (compress/sparse/coded_rows.h), and the keys of the rows at its end that
// were not asked for: their residuals had to leave.
struct EncodedRows {
  EncodedValues values;
  std::vector<std::uint64_t> flushed;
  runtime::Buffer given;  // the rows that were given; empty where `values` has no traces
};

// A push that servers have refused for good: nothing of it was applied, or ever will be.
struct RefusedPush {
  PushTraces traces;
  compress::CodecId codec = compress::kNoCodec;
  std::span<const std::byte>
      message;  // its values frame: of `codec`, or values of the table's dtype
  // What the user pushed, of the table's dtype. Null: it is not there any more, and stays with what
  // is kept, to go along with a later push.
  const std::byte* given = nullptr;
  std::uint64_t elements = 0;
  std::optional<double> learning_rate;
};

// Of a table, in a cluster, on one worker.
struct PushPlace {
  std::uint32_t table = 0;
  std::uint32_t rank = 0;  // of the worker, by which random choices of workers differ
  std::uint32_t num_shards = 1;
  std::uint64_t block_bytes = 0;         // LEEWAY_BLOCK_BYTES
  std::uint64_t residual_bytes_max = 0;  // of the rows of a sparse table
};

class PushEncoder {
 public:
  // `codecs` outlive it.
  PushEncoder(const TableSpec& spec, const compress::TableCodecs* codecs, const PushPlace& place);

  // A dense block, by the table's codec number `choice`: `values` are [elements] of the table's
  // dtype. Values that the codec cannot carry (NaN, infinity) go as they are, without momentum, and
  // so does, with it, what the codec would not make smaller. With a codec that has no use for it
  // what was kept goes along at once.
  EncodedValues EncodeBlock(std::uint32_t choice, std::uint64_t block, const std::byte* values,
                            std::uint64_t elements, std::optional<double> learning_rate);

  // Rows of a sparse table, [keys] × row width, all of one shard; changes them. Where what is kept
  // is over its limit, as many rows again, of those that were not pushed for longest, go along.
  EncodedRows EncodeRows(std::uint32_t choice, std::uint32_t shard,
                         std::span<const std::uint64_t> keys, std::byte* rows,
                         std::optional<double> learning_rate);

  // Undo what a push of a block, or of rows, did to what is kept, as far as it is not a matter of
  // pushes made since, which went along with its momentum. `keys`: of all rows of the message.
  void TakeBackBlock(std::uint64_t block, const RefusedPush& push);
  void TakeBackRows(std::uint32_t shard, std::span<const std::uint64_t> keys,
                    const RefusedPush& push);

  // What is kept of an element of a dense block, times the learning rate of its last push.
  double Kept(std::uint64_t block, std::uint64_t element) const;
  // Everything that is kept, to be taken over by another worker later. Take replaces what is here
  // with what CheckSaved accepts.
  SavedTable Save() const;
  // INVALID_ARGUMENT: it is of another table, or of one with other blocks or rows.
  absl::Status CheckSaved(const SavedTable& saved) const;
  void Take(const SavedTable& saved);

  const std::string& table_name() const { return spec_.name; }
  // ‖e‖₂ of everything that is kept.
  double ResidualNorm() const;

 private:
  // Floats, aligned for the widest loads and stores.
  struct Floats {
    runtime::Buffer memory;
    std::span<float> values;
  };
  struct BlockState {
    Floats residual;  // empty before the first push with feedback
    // The message that is still to be subtracted from the residual, and its codec; empty: none.
    // Settle does it, and the next push with a codec that can (compress::OnePassFeedback).
    runtime::Buffer sent;
    const compress::TableCodec* sent_by = nullptr;
    bool carries = false;                 // the residual is to go along with the next push
    std::optional<std::uint32_t> choice;  // of the push before
    std::vector<float> codec_state;       // [TableCodec::WorkerStateElements]
    std::uint64_t step = 0;
    std::uint64_t pushes = 0;  // that left traces, since the worker has begun
    std::uint64_t began = 0;   // how many of them there were when codec_state began anew
    double rate = 1;           // of the push before
  };
  // Residuals of rows are kept times the learning rate: each row was pushed at another time.
  struct ShardState {
    ResidualRows residuals;
    std::uint64_t step = 0;
  };

  static Floats Make(std::uint64_t elements);
  static Floats Zeros(std::uint64_t elements);
  bool FitsState(std::uint64_t elements, const SavedBlock& block) const;
  absl::Status CheckBlock(std::uint64_t index, const SavedBlock& block) const;
  double RateOf(std::optional<double> learning_rate) const;
  ShardState& StateOf(std::uint32_t shard);
  std::uint64_t Seed(std::uint64_t place, std::uint64_t step) const;
  runtime::Buffer EncodedOf(std::size_t bytes);
  // What is to be pushed of a block.
  struct Pushed {
    const std::byte* values;  // [elements] of dtype: the table's, or float32
    DType dtype;
    std::uint64_t elements;
  };
  BlockState* StateOfBlock(std::uint32_t choice, std::uint64_t block);
  EncodeTerms TermsFor(const compress::TableCodec& codec, std::uint64_t block,
                       std::uint64_t elements, BlockState* state);
  const float* FloatsOf(const Pushed& pushed);
  EncodedValues EncodeWithMomentum(const compress::TableCodec& codec, std::uint64_t block,
                                   const Pushed& gradient, double rate, BlockState* state);
  EncodedValues Encode(const compress::TableCodec& codec, std::uint64_t block, const Pushed& pushed,
                       double rate, BlockState* state);
  EncodedValues StoredOf(std::span<const float> values) const;
  // Subtracts what was sent last from the residual, where that has been put off.
  void Settle(BlockState* state) const;
  EncodedValues EncodeInOnePass(const compress::TableCodec& codec, const Pushed& pushed,
                                double rate, const EncodeTerms& terms, BlockState* state);
  bool Carry(const Pushed& pushed, double rate, BlockState* state);
  EncodedValues SendCarried(BlockState* state) const;
  EncodedValues EncodeWithoutFeedback(const compress::TableCodec& codec, const Pushed& pushed,
                                      const EncodeTerms& terms);
  bool AddResiduals(std::span<const std::uint64_t> keys, double rate, ShardState* state,
                    float* rows) const;
  // Refused pushes (push_encoder_refused.cc).
  const float* GivenOf(const RefusedPush& push);
  static bool IsIn(const BlockState& state, const RefusedPush& push);
  std::vector<float> FloatsOfBlock(const RefusedPush& push);
  std::vector<float> WithoutGiven(const compress::TableCodec& codec, const RefusedPush& push);
  std::vector<float> FloatsOfRows(const RefusedPush& push, std::uint64_t rows) const;
  void TakeBackResidual(const compress::TableCodec& codec, const RefusedPush& push,
                        BlockState* state);
  void TakeBackState(const compress::TableCodec& codec, const RefusedPush& push, BlockState* state);
  void TakeBackMomentum(const compress::TableCodec& codec, const RefusedPush& push,
                        BlockState* state);

  const TableSpec spec_;
  const compress::TableCodecs* const codecs_;
  const PushPlace place_;
  const std::uint64_t shard_bytes_max_;
  mutable std::map<std::uint64_t, BlockState> blocks_;  // settled before they are looked at
  std::map<std::uint32_t, ShardState> shards_;
  Floats spare_;  // what the residual of the block before was kept in before its last push
  std::vector<float> floats_;
  std::vector<float> moved_;  // what momentum makes of a gradient
  std::vector<std::byte> encoded_;
};

}  // namespace leeway::worker

#endif  // LEEWAY_WORKER_ENCODING_PUSH_ENCODER_H_
