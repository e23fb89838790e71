// Pushes that servers have refused for good. A message M = C(g + r·e), of which e′ = g + r·e − M
// was kept, is taken back by e′ ← e′ + M − g: what e′ has then is r·e, as after a push of zeros of
// which nothing was sent. It is a sum, so that it is right as well where other pushes were encoded
// meanwhile. To push g again counts g once.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "compress/coded_rows.h"
#include "compress/halves.h"
#include "compress/kernels/kernels.h"
#include "worker/push_encoder.h"

namespace leeway::worker {
namespace {

const compress::ReduceKernels& Reduce() { return compress::ChosenKernels().reduce; }

}  // namespace

// The message's values. What it holds was encoded here, so decoding it cannot fail.
std::vector<float> PushEncoder::FloatsOfMessage(const RefusedPush& push) const {
  std::vector<float> values(push.elements, 0.0f);
  if (push.codec == compress::kNoCodec && spec_.dtype == DType::kFloat32) {
    std::memcpy(values.data(), push.message.data(), values.size() * sizeof(float));
  } else if (push.codec == compress::kNoCodec) {
    compress::Widen(spec_.dtype, push.message.data(), values);
  } else {
    const compress::TableCodec& codec = *codecs_->Find(push.codec);
    const CodecShape shape = compress::BlockShape(spec_, codec, push.elements);
    codec.codec->DecodeAdd(push.message, shape, 1, values.data()).IgnoreError();
  }
  return values;
}

// m ← m − μᵏ·g, k the pushes since.
void PushEncoder::TakeBackMomentum(const compress::TableCodec& codec, const RefusedPush& push,
                                   BlockState* state) {
  const bool same_codec = state->choice == push.traces.choice;
  if (push.given == nullptr || !same_codec || state->codec_state.size() < push.elements) return;
  const Pushed given{.values = push.given, .dtype = spec_.dtype, .elements = push.elements};
  const auto since = static_cast<double>(state->pushes - push.traces.step);
  const auto left = static_cast<float>(std::pow(codec.momentum->factor(), since));
  float* const velocity = state->codec_state.data() + state->codec_state.size() - push.elements;
  Reduce().add(FloatsOf(given), push.elements, -left, velocity);
}

void PushEncoder::TakeBackBlock(std::uint64_t block, const RefusedPush& push) {
  BlockState& state = blocks_[block];
  const compress::TableCodec& codec = codecs_->choices[push.traces.choice];
  const double rate = RateOf(push.learning_rate);
  const Pushed given{.values = push.given, .dtype = spec_.dtype, .elements = push.elements};
  if (codec.encodes() && codec.codec->keeps_residual()) {
    // The only codec of its table (docs/compression.md), so that the state is its own.
    const CodecShape shape = compress::BlockShape(spec_, codec, push.elements);
    if (state.codec_state.size() < codec.codec->StateElements(shape)) return;
    EncodeTerms terms{.shape = shape, .step = state.step};
    terms.state = std::span(state.codec_state).first(codec.codec->StateElements(shape));
    codec.codec->TakeBack(push.message, push.given == nullptr ? nullptr : FloatsOf(given),
                          state.pushes - push.traces.step, terms);
    return;
  }
  if (push.traces.residual) {
    Settle(&state);
    if (state.residual.values.size() != push.elements) {
      state.residual = Zeros(push.elements);
      state.rate = rate;
    }
    std::vector<float> taken = FloatsOfMessage(push);
    if (push.given != nullptr) {
      const bool nesterov = codec.momentum.has_value() && codec.momentum->nesterov();
      const float gain = nesterov ? 1 + codec.momentum->factor() : 1;
      Reduce().add(FloatsOf(given), push.elements, -gain, taken.data());
    }
    // The residual is in units of the last push's learning rate.
    const auto scale = static_cast<float>(rate / state.rate);
    std::vector<float> sum(state.residual.values.begin(), state.residual.values.end());
    Reduce().add(taken.data(), push.elements, scale, sum.data());
    // More than floats hold: it stays without.
    if (std::isfinite(Reduce().max_abs(sum.data(), sum.size()))) {
      std::ranges::copy(sum, state.residual.values.begin());
      state.carries = true;
    }
  }
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
