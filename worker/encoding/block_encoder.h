// The encoder of pushes to a dense table, and the keeper of what a lossy codec drops of each block
// (error feedback).
//
// With feedback a push sends C(g + r·e), and e becomes what C has dropped of that, where r is the
// learning rate of the previous push divided by this one's: dist-EF-SGD (Zheng et al., NeurIPS
// 2019, Algorithm 2). What was dropped thus counts as much as it would have when it was computed. A
// learning rate of 0 sends C(g) and leaves e alone, since nothing of it would be applied. Where the
// codec has momentum (compress/momentum.h), g is the result of the momentum step at every rate.
//
// A push that servers refuse for good is taken back. A message M = C(g + r·e), of which
// e′ = g + r·e − M was kept, is taken back by e′ ← e′ + M − g. This leaves r·e, as after a push of
// zeros of which nothing was sent. It is a sum, so it is right even where other pushes were encoded
// in between. Pushing g again then counts g once.
//
// Owned by PushEncoder; lives on the worker's loop.
#ifndef LEEWAY_WORKER_ENCODING_BLOCK_ENCODER_H_
#define LEEWAY_WORKER_ENCODING_BLOCK_ENCODER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "compress/table_codec.h"
#include "leeway/table_spec.h"
#include "runtime/memory/buffer.h"
#include "worker/encoding/encoded_push.h"
#include "worker/encoding/residual_file.h"

namespace leeway::worker {

class BlockEncoder {
 public:
  // `codecs` outlive this.
  BlockEncoder(const TableSpec& spec, const compress::TableCodecs* codecs,
               const PushContext& context)
      : spec_(spec), codecs_(codecs), context_(context) {}

  // As PushEncoder::EncodeBlock, TakeBackBlock and Kept.
  EncodedValues Encode(std::uint32_t choice, std::uint64_t block, const std::byte* values,
                       std::uint64_t elements, std::optional<double> learning_rate);
  void TakeBack(std::uint64_t block, const RefusedPush& push);
  double Kept(std::uint64_t block, std::uint64_t element) const;

  std::map<std::uint64_t, SavedBlock> Save() const;
  // INVALID_ARGUMENT: the block cannot be of this table.
  absl::Status Check(std::uint64_t index, const SavedBlock& block) const;
  // Replaces everything that is kept.
  void Take(const std::map<std::uint64_t, SavedBlock>& saved);
  // ‖e‖₂² of all blocks.
  double SumOfSquares() const;

 private:
  // Floats, aligned for the widest loads and stores.
  struct Floats {
    runtime::Buffer memory;
    std::span<float> values;
  };
  struct BlockState {
    Floats residual;  // empty before the first push with feedback
    // The message that is still to be subtracted from the residual, and its codec; empty: none.
    // SubtractSent does it, and the next push with a codec that can (compress::OnePassFeedback).
    runtime::Buffer sent;
    const compress::TableCodec* sent_by = nullptr;
    bool carries = false;                 // the residual is to be sent with the next push
    std::optional<std::uint32_t> choice;  // of the push before
    std::vector<float> codec_state;       // [TableCodec::WorkerStateElements]
    std::uint64_t step = 0;
    std::uint64_t pushes = 0;  // that left traces, since the worker has begun
    std::uint64_t began = 0;   // how many of them there were when codec_state began anew
    double rate = 1;           // of the push before
  };
  // The values to push of a block.
  struct Pushed {
    const std::byte* values;  // [elements] of dtype: the table's, or float32
    DType dtype;
    std::uint64_t elements;
  };

  static Floats Make(std::uint64_t elements);
  static Floats Zeros(std::uint64_t elements);
  bool FitsState(std::uint64_t elements, const SavedBlock& block) const;
  runtime::Buffer EncodedOf(std::size_t bytes) const;
  BlockState* StateOf(std::uint32_t choice, std::uint64_t block);
  EncodeTerms TermsFor(const compress::TableCodec& codec, std::uint64_t block,
                       std::uint64_t elements, BlockState* state);
  const float* FloatsOf(const Pushed& pushed);
  EncodedValues EncodeWithMomentum(const compress::TableCodec& codec, std::uint64_t block,
                                   const Pushed& gradient, double rate, BlockState* state);
  EncodedValues EncodePushed(const compress::TableCodec& codec, std::uint64_t block,
                             const Pushed& pushed, double rate, BlockState* state);
  EncodedValues StoredOf(std::span<const float> values) const;
  void SubtractSent(BlockState* state) const;
  EncodedValues EncodeInOnePass(const compress::TableCodec& codec, const Pushed& pushed,
                                double rate, const EncodeTerms& terms, BlockState* state);
  bool Carry(const Pushed& pushed, double rate, BlockState* state);
  EncodedValues SendCarried(BlockState* state) const;
  EncodedValues EncodeWithoutFeedback(const compress::TableCodec& codec, const Pushed& pushed,
                                      const EncodeTerms& terms);
  // Refused pushes.
  const float* GivenOf(const RefusedPush& push);
  static bool IsIn(const BlockState& state, const RefusedPush& push);
  std::vector<float> FloatsOfMessage(const RefusedPush& push);
  std::vector<float> WithoutGiven(const compress::TableCodec& codec, const RefusedPush& push);
  void TakeBackResidual(const compress::TableCodec& codec, const RefusedPush& push,
                        BlockState* state);
  void TakeBackState(const compress::TableCodec& codec, const RefusedPush& push, BlockState* state);
  void TakeBackMomentum(const compress::TableCodec& codec, const RefusedPush& push,
                        BlockState* state);

  const TableSpec spec_;
  const compress::TableCodecs* const codecs_;
  const PushContext context_;
  mutable std::map<std::uint64_t, BlockState>
      blocks_;                     // the last message is subtracted before they are read
  std::set<std::uint64_t> begun_;  // blocks that were pushed, where the first push sets values
  Floats reused_;                  // the former memory of the residual that was carried last
  std::vector<float> floats_;
  std::vector<float> moved_;  // a gradient after its momentum step
  std::vector<std::byte> encoded_;
};

}  // namespace leeway::worker

#endif  // LEEWAY_WORKER_ENCODING_BLOCK_ENCODER_H_
