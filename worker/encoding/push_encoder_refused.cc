// Pushes that servers have refused for good. A message M = C(g + r·e), of which e′ = g + r·e − M
// was kept, is taken back by e′ ← e′ + M − g: what e′ has then is r·e, as after a push of zeros of
// which nothing was sent. It is a sum, so that it is right as well where other pushes were encoded
// meanwhile. To push g again counts g once.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "compress/kernels/kernels.h"
#include "compress/sparse/coded_rows.h"
#include "worker/encoding/push_encoder.h"
#include "worker/encoding/reduce.h"

namespace leeway::worker {
namespace {}  // namespace

// What a message of a block says.
std::vector<float> PushEncoder::FloatsOfBlock(const RefusedPush& push) {
  std::vector<float> values(push.elements, 0.0f);
  if (push.codec == compress::kNoCodec) {
    const Pushed message{
        .values = push.message.data(), .dtype = spec_.dtype, .elements = push.elements};
    std::copy_n(FloatsOf(message), push.elements, values.begin());
  } else {
    // It cannot fail: the message was encoded here.
    const compress::TableCodec& sender = *codecs_->Find(push.codec);
    const CodecShape shape = compress::BlockShape(spec_, sender, push.elements);
    sender.codec->DecodeAdd(push.message, shape, 1, values.data()).IgnoreError();
  }
  return values;
}

// M − c·g, c the share of g that a codec with momentum sends at once.
std::vector<float> PushEncoder::WithoutGiven(const compress::TableCodec& codec,
                                             const RefusedPush& push) {
  std::vector<float> values = FloatsOfBlock(push);
  if (push.given == nullptr) return values;
  const bool nesterov = codec.momentum.has_value() && codec.momentum->nesterov();
  const float share = nesterov ? 1 + codec.momentum->factor() : 1;
  Reduce().add(GivenOf(push), push.elements, -share, values.data());
  return values;
}

const float* PushEncoder::GivenOf(const RefusedPush& push) {
  return FloatsOf({.values = push.given, .dtype = spec_.dtype, .elements = push.elements});
}

void PushEncoder::TakeBackResidual(const compress::TableCodec& codec, const RefusedPush& push,
                                   BlockState* state) {
  const double rate = RateOf(push.learning_rate);
  if (rate == 0) return;  // it left the residual as it was
  Settle(state);
  if (state->residual.values.size() != push.elements) {
    state->residual = Zeros(push.elements);
    state->rate = rate;
  }
  // The residual is in units of the last push's learning rate.
  const auto scale = static_cast<float>(rate / state->rate);
  std::vector<float> sum(state->residual.values.begin(), state->residual.values.end());
  Reduce().add(WithoutGiven(codec, push).data(), push.elements, scale, sum.data());
  // More than floats hold: it stays without.
  if (!std::isfinite(Reduce().max_abs(sum.data(), sum.size()))) return;
  std::ranges::copy(sum, state->residual.values.begin());
  state->carries = true;
}

// Whether what the codec keeps began before that push.
bool PushEncoder::IsIn(const BlockState& state, const RefusedPush& push) {
  return push.traces.step > state.began && push.traces.step <= state.pushes;
}

// Of a codec that is its own error feedback, and the only one of its table (docs/compression.md).
void PushEncoder::TakeBackState(const compress::TableCodec& codec, const RefusedPush& push,
                                BlockState* state) {
  EncodeTerms terms{.shape = compress::BlockShape(spec_, codec, push.elements),
                    .step = state->step};
  const std::size_t kept = codec.codec->StateElements(terms.shape);
  if (!IsIn(*state, push) || state->codec_state.size() < kept) return;
  terms.state = std::span(state->codec_state).first(kept);
  const std::vector<float> sent = FloatsOfBlock(push);
  codec.codec->TakeBack(sent.data(), push.given == nullptr ? nullptr : GivenOf(push),
                        state->pushes - push.traces.step, terms);
}

// m ← m − μᵏ·g, k the pushes since.
void PushEncoder::TakeBackMomentum(const compress::TableCodec& codec, const RefusedPush& push,
                                   BlockState* state) {
  if (push.given == nullptr || !IsIn(*state, push)) return;
  if (state->codec_state.size() < push.elements) return;
  const auto since = static_cast<double>(state->pushes - push.traces.step);
  const auto left = static_cast<float>(std::pow(codec.momentum->factor(), since));
  float* const velocity = state->codec_state.data() + state->codec_state.size() - push.elements;
  Reduce().add(GivenOf(push), push.elements, -left, velocity);
}

void PushEncoder::TakeBackBlock(std::uint64_t block, const RefusedPush& push) {
  BlockState& state = blocks_[block];
  const compress::TableCodec& codec = codecs_->choices[push.traces.choice];
  if (codec.encodes() && codec.codec->keeps_residual()) return TakeBackState(codec, push, &state);
  if (push.traces.residual) TakeBackResidual(codec, push, &state);
  if (codec.momentum.has_value()) TakeBackMomentum(codec, push, &state);
}

// The rows of a message, the plain ones last.
std::vector<float> PushEncoder::FloatsOfRows(const RefusedPush& push, std::uint64_t rows) const {
  const std::uint64_t width = spec_.row_width;
  std::vector<float> values(rows * width, 0.0f);
  if (push.codec == compress::kNoCodec) {
    std::memcpy(values.data(), push.message.data(), values.size() * sizeof(float));
    return values;
  }
  const absl::StatusOr<compress::CodedRows> frame =
      compress::ParseCodedRows(push.message, rows, width * sizeof(float));
  if (!frame.ok()) return values;
  const compress::TableCodec& codec = *codecs_->Find(push.codec);
  const CodecShape shape = compress::RowsShape(spec_, codec, frame->encoded_rows);
  codec.codec->DecodeAdd(frame->encoded, shape, 1, values.data()).IgnoreError();
  if (!frame->plain.empty()) {
    std::memcpy(values.data() + frame->encoded_rows * width, frame->plain.data(),
                frame->plain.size());
  }
  return values;
}

// Residuals of rows are kept times the learning rate. Rows that left because their memory was full
// come back into it; the next pushes make them leave again.
void PushEncoder::TakeBackRows(std::uint32_t shard, std::span<const std::uint64_t> keys,
                               const RefusedPush& push) {
  if (!push.traces.residual) return;
  ShardState& state = StateOf(shard);
  const std::uint64_t width = spec_.row_width;
  const auto rate = static_cast<float>(RateOf(push.learning_rate));
  std::vector<float> taken = FloatsOfRows(push, keys.size());
  if (push.given != nullptr) {
    Reduce().add(reinterpret_cast<const float*>(push.given), push.elements, -1, taken.data());
  }
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::span<float> residual = state.residuals.Use(keys[i]);
    for (std::size_t j = 0; j < width; ++j) {
      const float kept = residual[j] + rate * taken[i * width + j];
      if (std::isfinite(kept)) residual[j] = kept;
    }
  }
}

}  // namespace leeway::worker
