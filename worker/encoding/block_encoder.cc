#include "worker/encoding/block_encoder.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compress/common/halves.h"
#include "proto/messages/layout.h"

namespace leeway::worker {

// A copy of the first bytes of `encoded_`, in memory of their size.
runtime::Buffer BlockEncoder::EncodedOf(std::size_t bytes) const {
  return runtime::Buffer::CopyOf(encoded_.data(), bytes);
}

const float* BlockEncoder::FloatsOf(const Pushed& pushed) {
  if (pushed.dtype == DType::kFloat32) return reinterpret_cast<const float*>(pushed.values);
  floats_.resize(pushed.elements);
  compress::Widen(pushed.dtype, pushed.values, floats_);
  return floats_.data();
}

// The values in the table's dtype, for a message that is not encoded.
EncodedValues BlockEncoder::StoredOf(std::span<const float> values) const {
  if (spec_.dtype == DType::kFloat32) {
    return {.codec = compress::kNoCodec,
            .bytes = runtime::Buffer::CopyOf(values.data(), values.size_bytes())};
  }
  std::byte* to = nullptr;
  runtime::Buffer bytes = runtime::Buffer::Allocate(values.size() * SizeOf(spec_.dtype), &to);
  compress::Narrow(spec_.dtype, values, to);
  return {.codec = compress::kNoCodec, .bytes = std::move(bytes)};
}

EncodedValues BlockEncoder::EncodeWithoutFeedback(const compress::TableCodec& codec,
                                                  const Pushed& pushed, const EncodeTerms& terms) {
  const void* from = pushed.values;
  if (codec.dtype != pushed.dtype) from = FloatsOf(pushed);
  const std::uint64_t stored_bytes = pushed.elements * SizeOf(spec_.dtype);
  encoded_.resize(codec.codec->EncodedBytesMax(terms.shape));
  const absl::StatusOr<std::size_t> bytes = codec.codec->Encode(from, terms, encoded_);
  if (!bytes.ok() || *bytes == 0 || *bytes >= stored_bytes) return {};
  return {.codec = codec.id, .bytes = EncodedOf(*bytes)};
}

BlockEncoder::Floats BlockEncoder::Make(std::uint64_t elements) {
  std::byte* to = nullptr;
  runtime::Buffer memory = runtime::Buffer::Allocate(elements * sizeof(float), &to);
  return {.memory = std::move(memory), .values = {reinterpret_cast<float*>(to), elements}};
}

BlockEncoder::Floats BlockEncoder::Zeros(std::uint64_t elements) {
  Floats zeros = Make(elements);
  std::ranges::fill(zeros.values, 0.0f);
  return zeros;
}

// Null: nothing is kept of the block, and this push leaves nothing to keep. A codec cannot use what
// another one has kept from message to message, so a change of codec clears that.
BlockEncoder::BlockState* BlockEncoder::StateOf(std::uint32_t choice, std::uint64_t block) {
  if (!codecs_->choices[choice].encodes() && blocks_.find(block) == blocks_.end()) return nullptr;
  BlockState& state = blocks_[block];
  if (state.choice.value_or(choice) != choice) {
    state.codec_state.clear();
    state.began = state.pushes;
  }
  state.choice = choice;
  return &state;
}

EncodeTerms BlockEncoder::TermsFor(const compress::TableCodec& codec, std::uint64_t block,
                                   std::uint64_t elements, BlockState* state) {
  EncodeTerms terms{.shape = compress::BlockShape(spec_, codec, elements)};
  terms.step = state->step;
  terms.seed = SeedOf(context_, block, state->step++);
  const std::size_t kept = codec.WorkerStateElements(terms.shape);
  if (state->codec_state.size() != kept) state->codec_state.assign(kept, 0.0f);
  terms.state = std::span(state->codec_state).first(codec.codec->StateElements(terms.shape));
  return terms;
}

// Subtracts the last message from the residual, where that was put off.
void BlockEncoder::SubtractSent(BlockState* state) const {
  if (state->sent.empty()) return;
  const std::span<float> residual = state->residual.values;
  const CodecShape shape = compress::BlockShape(spec_, *state->sent_by, residual.size());
  // Cannot fail: the codec made this message of this block.
  state->sent_by->codec->DecodeAdd(state->sent.bytes(), shape, -1, residual.data()).IgnoreError();
  state->sent = {};
}

// Carries and encodes in one pass over the block. Empty if that is not possible; then nothing has
// changed.
//
// The sum is made beside the residual and replaces it afterwards, as in Carry.
EncodedValues BlockEncoder::EncodeInOnePass(const compress::TableCodec& codec, const Pushed& pushed,
                                            double rate, const EncodeTerms& terms,
                                            BlockState* state) {
  const std::uint64_t elements = pushed.elements;
  const auto ratio = static_cast<float>(state->rate / rate);
  if (state->residual.values.size() != elements) return {};
  if (!state->sent.empty() && state->sent_by != &codec) return {};
  if (reused_.values.size() != elements) reused_ = Make(elements);
  encoded_.resize(codec.codec->EncodedBytesMax(terms.shape));
  const absl::StatusOr<std::size_t> bytes =
      codec.one_pass->CarryAndEncode({.values = FloatsOf(pushed),
                                      .kept = state->residual.values.data(),
                                      .sent = state->sent.bytes(),
                                      .factor = ratio,
                                      .carried = reused_.values.data()},
                                     terms, encoded_);
  if (!bytes.ok() || *bytes >= elements * SizeOf(spec_.dtype)) return {};
  std::swap(state->residual, reused_);
  state->sent = EncodedOf(*bytes);
  state->sent_by = &codec;
  state->rate = rate;
  state->carries = true;
  return {.codec = codec.id, .bytes = state->sent};
}

// The residual becomes g + r·e. False if g has NaN or infinity, which must not stay in the
// residual, or if the sum overflows, in which case the residual waits; then nothing has changed.
//
// Which of the two it is is known only when all of g has been read. To read g once, the sum is made
// beside the residual and replaces it afterwards. It is made in the memory that the previous block
// has left, which the cache still holds.
bool BlockEncoder::Carry(const Pushed& pushed, double rate, BlockState* state) {
  const std::uint64_t elements = pushed.elements;
  const float* const gradient = FloatsOf(pushed);
  if (state->residual.values.size() != elements) {
    if (!std::isfinite(Reduce().max_abs(gradient, elements))) return false;
    state->residual = Zeros(elements);
  }
  if (reused_.values.size() != elements) reused_ = Make(elements);
  const auto ratio = static_cast<float>(state->rate / rate);
  const float largest = Reduce().carry(gradient, state->residual.values.data(), elements, ratio,
                                       reused_.values.data());
  if (!std::isfinite(largest)) return false;
  std::swap(state->residual, reused_);
  state->rate = rate;
  state->carries = true;
  return true;
}

// Sends all that is carried unencoded. Only what a table of 16-bit values cannot hold stays: what
// is beyond their range is sent with the next push, the rounding error with the next push whose
// codec has feedback, because any other push would leave as much again.
EncodedValues BlockEncoder::SendCarried(BlockState* state) const {
  const std::span<float> carried = state->residual.values;
  EncodedValues plain = StoredOf(carried);
  if (spec_.dtype == DType::kFloat32) {
    std::ranges::fill(carried, 0.0f);
    state->carries = false;
    return plain;
  }
  std::vector<float> sent(carried.size());
  compress::Widen(spec_.dtype, plain.bytes.data(), sent);
  state->carries =
      Reduce().max_abs(carried.data(), carried.size()) > compress::Largest(spec_.dtype);
  Reduce().add(sent.data(), sent.size(), -1, carried.data());
  return plain;
}

EncodedValues BlockEncoder::Encode(std::uint32_t choice, std::uint64_t block,
                                   const std::byte* values, std::uint64_t elements,
                                   std::optional<double> learning_rate) {
  // It may be the one that sets the values.
  const bool begins = spec_.initializer.kind == Initializer::Kind::kPushed;
  if (begins && begun_.insert(block).second) return {};
  const compress::TableCodec& codec = codecs_->choices[choice];
  BlockState* const state = StateOf(choice, block);
  if (state == nullptr || (!codec.encodes() && !state->carries)) return {};
  const double rate = RateOf(spec_, learning_rate);
  const Pushed pushed{.values = values, .dtype = spec_.dtype, .elements = elements};
  const bool carried = state->carries;
  EncodedValues encoded = codec.momentum.has_value()
                              ? EncodeWithMomentum(codec, block, pushed, rate, state)
                              : EncodePushed(codec, block, pushed, rate, state);
  if (encoded.bytes.empty()) return encoded;
  const bool residual = codec.worker_feedback || carried;
  if (residual || codec.momentum.has_value() || codec.codec->keeps_residual()) {
    encoded.traces = {.choice = choice, .step = ++state->pushes, .residual = residual};
  }
  return encoded;
}

// Values that are not finite do not enter the velocity.
EncodedValues BlockEncoder::EncodeWithMomentum(const compress::TableCodec& codec,
                                               std::uint64_t block, const Pushed& gradient,
                                               double rate, BlockState* state) {
  const std::uint64_t elements = gradient.elements;
  const float* const values = FloatsOf(gradient);
  if (!std::isfinite(Reduce().max_abs(values, elements))) return {};
  const std::size_t kept = codec.WorkerStateElements(compress::BlockShape(spec_, codec, elements));
  if (state->codec_state.size() != kept) state->codec_state.assign(kept, 0.0f);
  moved_.resize(elements);
  codec.momentum->Step({values, elements}, std::span(state->codec_state).last(elements), moved_);
  EncodedValues encoded = EncodePushed(codec, block,
                                       {.values = reinterpret_cast<const std::byte*>(moved_.data()),
                                        .dtype = DType::kFloat32,
                                        .elements = elements},
                                       rate, state);
  return encoded.bytes.empty() ? StoredOf(moved_) : encoded;
}

// Empty: the values are sent unchanged.
EncodedValues BlockEncoder::EncodePushed(const compress::TableCodec& codec, std::uint64_t block,
                                         const Pushed& pushed, double rate, BlockState* state) {
  // Such a codec holds values back in its state; a push at a rate of 0 would release them without
  // effect.
  if (rate == 0 && codec.encodes() && codec.codec->keeps_residual()) return {};
  if (!codec.worker_feedback || rate == 0) {
    SubtractSent(state);
    if (state->carries && rate != 0) {
      return Carry(pushed, rate, state) ? SendCarried(state) : EncodedValues();
    }
    if (!codec.encodes()) return {};
    return EncodeWithoutFeedback(codec, pushed, TermsFor(codec, block, pushed.elements, state));
  }
  const EncodeTerms terms = TermsFor(codec, block, pushed.elements, state);
  if (codec.one_pass != nullptr) {
    EncodedValues encoded = EncodeInOnePass(codec, pushed, rate, terms, state);
    if (!encoded.bytes.empty()) return encoded;
  }
  SubtractSent(state);
  if (!Carry(pushed, rate, state)) return {};
  float* const carried = state->residual.values.data();
  encoded_.resize(codec.codec->EncodedBytesMax(terms.shape));
  const absl::StatusOr<std::size_t> bytes =
      codec.codec->EncodeAndSubtract(carried, terms, encoded_);
  if (bytes.ok() && *bytes > 0 && *bytes < pushed.elements * SizeOf(spec_.dtype)) {
    return {.codec = codec.id, .bytes = EncodedOf(*bytes)};
  }
  if (bytes.ok()) {
    // The message would be no smaller: sent unencoded, nothing is dropped.
    const auto message = std::span<const std::byte>(encoded_).first(*bytes);
    if (!codec.codec->DecodeAdd(message, terms.shape, 1, carried).ok()) return {};
  }
  return SendCarried(state);
}

double BlockEncoder::Kept(std::uint64_t block, std::uint64_t element) const {
  const auto found = blocks_.find(block);
  if (found == blocks_.end() || element >= found->second.residual.values.size()) return 0;
  SubtractSent(&found->second);
  return found->second.rate * static_cast<double>(found->second.residual.values[element]);
}

std::map<std::uint64_t, SavedBlock> BlockEncoder::Save() const {
  std::map<std::uint64_t, SavedBlock> saved;
  for (auto& [index, state] : blocks_) {
    SubtractSent(&state);
    saved[index] = {.residual = {state.residual.values.begin(), state.residual.values.end()},
                    .codec_state = state.codec_state,
                    .codec = state.choice.has_value() ? codecs_->texts[*state.choice] : "",
                    .step = state.step,
                    .rate = state.rate};
  }
  return saved;
}

// Whether one of the table's codecs has a state of that size.
bool BlockEncoder::FitsState(std::uint64_t elements, const SavedBlock& block) const {
  if (block.codec_state.empty()) return true;
  const auto fits = [&](const compress::TableCodec& codec) {
    const CodecShape shape = compress::BlockShape(spec_, codec, elements);
    return codec.encodes() && codec.WorkerStateElements(shape) == block.codec_state.size();
  };
  return std::ranges::any_of(codecs_->choices, fits);
}

// The size of the blocks is a setting of the cluster.
absl::Status BlockEncoder::Check(std::uint64_t index, const SavedBlock& block) const {
  const std::uint64_t blocks = proto::NumBlocks(spec_, context_.block_bytes);
  if (index >= blocks) {
    return absl::InvalidArgumentError(absl::StrCat(
        "table '", spec_.name, "': the residuals have a block ", index, " where there are ", blocks,
        "; they are of a cluster with another LEEWAY_BLOCK_BYTES than ", context_.block_bytes));
  }
  const std::uint64_t elements = proto::ElementsInBlock(spec_, context_.block_bytes, index);
  if (!block.residual.empty() && block.residual.size() != elements) {
    return absl::InvalidArgumentError(absl::StrCat(
        "table '", spec_.name, "': the residuals have ", block.residual.size(),
        " elements of block ", index, ", which has ", elements,
        "; they are of a cluster with another LEEWAY_BLOCK_BYTES than ", context_.block_bytes));
  }
  if (!FitsState(elements, block)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "table '", spec_.name, "': the residuals have ", block.codec_state.size(),
        " floats of a codec's state of block ", index, ", as many as none of its codecs keeps"));
  }
  return absl::OkStatus();
}

void BlockEncoder::Take(const std::map<std::uint64_t, SavedBlock>& saved) {
  blocks_.clear();
  for (const auto& [index, block] : saved) {
    BlockState& state = blocks_[index];
    if (!block.residual.empty()) state.residual = Make(block.residual.size());
    std::ranges::copy(block.residual, state.residual.values.begin());
    state.carries = !block.residual.empty();
    // With another codec it begins anew (StateOf).
    if (const auto codec = std::ranges::find(codecs_->texts, block.codec);
        codec != codecs_->texts.end()) {
      state.codec_state = block.codec_state;
      state.choice = static_cast<std::uint32_t>(codec - codecs_->texts.begin());
    }
    state.step = block.step;
    state.rate = block.rate;
  }
}

double BlockEncoder::SumOfSquares() const {
  double sum = 0;
  for (auto& [block, state] : blocks_) {
    SubtractSent(&state);
    sum += Reduce().sum_squares(state.residual.values.data(), state.residual.values.size());
  }
  return sum;
}

// ---- refused pushes ----

// The values of a message.
std::vector<float> BlockEncoder::FloatsOfMessage(const RefusedPush& push) {
  std::vector<float> values(push.elements, 0.0f);
  if (push.codec == compress::kNoCodec) {
    const Pushed message{
        .values = push.message.data(), .dtype = spec_.dtype, .elements = push.elements};
    std::copy_n(FloatsOf(message), push.elements, values.begin());
  } else {
    // Cannot fail: the message was encoded here.
    const compress::TableCodec& sender = *codecs_->Find(push.codec);
    const CodecShape shape = compress::BlockShape(spec_, sender, push.elements);
    sender.codec->DecodeAdd(push.message, shape, 1, values.data()).IgnoreError();
  }
  return values;
}

// M − c·g, where c is the share of g that a codec with momentum sends at once.
std::vector<float> BlockEncoder::WithoutGiven(const compress::TableCodec& codec,
                                              const RefusedPush& push) {
  std::vector<float> values = FloatsOfMessage(push);
  if (push.given == nullptr) return values;
  const bool nesterov = codec.momentum.has_value() && codec.momentum->nesterov();
  const float share = nesterov ? 1 + codec.momentum->factor() : 1;
  Reduce().add(GivenOf(push), push.elements, -share, values.data());
  return values;
}

const float* BlockEncoder::GivenOf(const RefusedPush& push) {
  return FloatsOf({.values = push.given, .dtype = spec_.dtype, .elements = push.elements});
}

void BlockEncoder::TakeBackResidual(const compress::TableCodec& codec, const RefusedPush& push,
                                    BlockState* state) {
  const double rate = RateOf(spec_, push.learning_rate);
  if (rate == 0) return;  // the push did not change the residual
  SubtractSent(state);
  if (state->residual.values.size() != push.elements) {
    state->residual = Zeros(push.elements);
    state->rate = rate;
  }
  // The residual is in units of the last push's learning rate.
  const auto scale = static_cast<float>(rate / state->rate);
  std::vector<float> sum(state->residual.values.begin(), state->residual.values.end());
  Reduce().add(WithoutGiven(codec, push).data(), push.elements, scale, sum.data());
  // The sum overflows: the residual stays without it.
  if (!std::isfinite(Reduce().max_abs(sum.data(), sum.size()))) return;
  std::ranges::copy(sum, state->residual.values.begin());
  state->carries = true;
}

// Whether the codec's state began before that push, and has it.
bool BlockEncoder::IsIn(const BlockState& state, const RefusedPush& push) {
  return push.traces.step > state.began && push.traces.step <= state.pushes;
}

// For a codec that is its own error feedback, and the only one of its table (docs/compression.md).
void BlockEncoder::TakeBackState(const compress::TableCodec& codec, const RefusedPush& push,
                                 BlockState* state) {
  EncodeTerms terms{.shape = compress::BlockShape(spec_, codec, push.elements),
                    .step = state->step};
  const std::size_t kept = codec.codec->StateElements(terms.shape);
  if (!IsIn(*state, push) || state->codec_state.size() < kept) return;
  terms.state = std::span(state->codec_state).first(kept);
  const std::vector<float> sent = FloatsOfMessage(push);
  codec.codec->TakeBack(sent.data(), push.given == nullptr ? nullptr : GivenOf(push),
                        state->pushes - push.traces.step, terms);
}

// m ← m − μᵏ·g, where k is the number of pushes since.
void BlockEncoder::TakeBackMomentum(const compress::TableCodec& codec, const RefusedPush& push,
                                    BlockState* state) {
  if (push.given == nullptr || !IsIn(*state, push)) return;
  if (state->codec_state.size() < push.elements) return;
  const auto since = static_cast<double>(state->pushes - push.traces.step);
  const auto left = static_cast<float>(std::pow(codec.momentum->factor(), since));
  float* const velocity = state->codec_state.data() + state->codec_state.size() - push.elements;
  Reduce().add(GivenOf(push), push.elements, -left, velocity);
}

void BlockEncoder::TakeBack(std::uint64_t block, const RefusedPush& push) {
  BlockState& state = blocks_[block];
  const compress::TableCodec& codec = codecs_->choices[push.traces.choice];
  if (codec.encodes() && codec.codec->keeps_residual()) return TakeBackState(codec, push, &state);
  if (push.traces.residual) TakeBackResidual(codec, push, &state);
  if (codec.momentum.has_value()) TakeBackMomentum(codec, push, &state);
}

}  // namespace leeway::worker
