#include "worker/encoding/push_encoder.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compress/common/halves.h"
#include "compress/kernels/kernels.h"
#include "compress/sparse/coded_rows.h"
#include "proto/messages/layout.h"
#include "runtime/base/mutants.h"
#include "runtime/base/random.h"
#include "runtime/base/status_macros.h"
#include "worker/encoding/reduce.h"

namespace leeway::worker {
namespace {

// At smaller rates a residual that leaves as it is might be no number any more.
constexpr double kFlushRateMin = 1e-20;

// Updaters whose effect does not depend on a learning rate.
bool HasNoRate(absl::string_view updater) { return updater == "add" || updater == "assign"; }

}  // namespace

PushEncoder::PushEncoder(const TableSpec& spec, const compress::TableCodecs* codecs,
                         const PushPlace& place)
    : spec_(spec),
      codecs_(codecs),
      place_(place),
      shard_bytes_max_(place.residual_bytes_max / std::max<std::uint32_t>(1, place.num_shards)) {}

// 1 where there is none: then all are alike.
double PushEncoder::RateOf(std::optional<double> learning_rate) const {
  if (HasNoRate(spec_.updater.name)) return 1;
  if (learning_rate.has_value()) return *learning_rate;
  const auto found = spec_.updater.parameters.find("learning_rate");
  return found == spec_.updater.parameters.end() ? 1 : found->second;
}

PushEncoder::ShardState& PushEncoder::StateOf(std::uint32_t shard) {
  const auto found = shards_.find(shard);
  if (found != shards_.end()) return found->second;
  return shards_
      .emplace(shard, ShardState{.residuals = ResidualRows(spec_.row_width, shard_bytes_max_)})
      .first->second;
}

std::uint64_t PushEncoder::Seed(std::uint64_t place, std::uint64_t step) const {
  return runtime::RandomAt(std::uint64_t{place_.table} << 32 | place_.rank, place, step);
}

// What lies in `encoded_`, in memory of its size.
runtime::Buffer PushEncoder::EncodedOf(std::size_t bytes) {
  return runtime::Buffer::CopyOf(encoded_.data(), bytes);
}

const float* PushEncoder::FloatsOf(const Pushed& pushed) {
  if (pushed.dtype == DType::kFloat32) return reinterpret_cast<const float*>(pushed.values);
  floats_.resize(pushed.elements);
  compress::Widen(pushed.dtype, pushed.values, floats_);
  return floats_.data();
}

// As they are in the table, for a message that is not encoded.
EncodedValues PushEncoder::StoredOf(std::span<const float> values) const {
  if (spec_.dtype == DType::kFloat32) {
    return {.codec = compress::kNoCodec,
            .bytes = runtime::Buffer::CopyOf(values.data(), values.size_bytes())};
  }
  std::byte* to = nullptr;
  runtime::Buffer bytes = runtime::Buffer::Allocate(values.size() * SizeOf(spec_.dtype), &to);
  compress::Narrow(spec_.dtype, values, to);
  return {.codec = compress::kNoCodec, .bytes = std::move(bytes)};
}

EncodedValues PushEncoder::EncodeWithoutFeedback(const compress::TableCodec& codec,
                                                 const Pushed& pushed, const EncodeTerms& terms) {
  const void* from = pushed.values;
  if (codec.dtype != pushed.dtype) from = FloatsOf(pushed);
  const std::uint64_t stored_bytes = pushed.elements * SizeOf(spec_.dtype);
  encoded_.resize(codec.codec->EncodedBytesMax(terms.shape));
  const absl::StatusOr<std::size_t> bytes = codec.codec->Encode(from, terms, encoded_);
  if (!bytes.ok() || *bytes == 0 || *bytes >= stored_bytes) return {};
  return {.codec = codec.id, .bytes = EncodedOf(*bytes)};
}

PushEncoder::Floats PushEncoder::Make(std::uint64_t elements) {
  std::byte* to = nullptr;
  runtime::Buffer memory = runtime::Buffer::Allocate(elements * sizeof(float), &to);
  return {.memory = std::move(memory), .values = {reinterpret_cast<float*>(to), elements}};
}

PushEncoder::Floats PushEncoder::Zeros(std::uint64_t elements) {
  Floats zeros = Make(elements);
  std::ranges::fill(zeros.values, 0.0f);
  return zeros;
}

// Null: nothing is kept of the block, and there is nothing to keep. What one codec keeps from
// message to message is of no use to another one.
PushEncoder::BlockState* PushEncoder::StateOfBlock(std::uint32_t choice, std::uint64_t block) {
  if (!codecs_->choices[choice].encodes() && blocks_.find(block) == blocks_.end()) return nullptr;
  BlockState& state = blocks_[block];
  if (state.choice.value_or(choice) != choice) {
    if (!runtime::Planted<"state-of-another-codec">()) state.codec_state.clear();
    state.began = state.pushes;
  }
  state.choice = choice;
  return &state;
}

EncodeTerms PushEncoder::TermsFor(const compress::TableCodec& codec, std::uint64_t block,
                                  std::uint64_t elements, BlockState* state) {
  EncodeTerms terms{.shape = compress::BlockShape(spec_, codec, elements)};
  terms.step = state->step;
  terms.seed = Seed(block, runtime::Planted<"draws-again">() ? state->step : state->step++);
  const std::size_t kept = codec.WorkerStateElements(terms.shape);
  if (state->codec_state.size() != kept) state->codec_state.assign(kept, 0.0f);
  terms.state = std::span(state->codec_state).first(codec.codec->StateElements(terms.shape));
  return terms;
}

void PushEncoder::Settle(BlockState* state) const {
  if (state->sent.empty() || runtime::Planted<"sent-stays-in-residual">()) return;
  const std::span<float> residual = state->residual.values;
  const CodecShape shape = compress::BlockShape(spec_, *state->sent_by, residual.size());
  // It cannot fail: the message is one that the codec has made of this very block.
  state->sent_by->codec->DecodeAdd(state->sent.bytes(), shape, -1, residual.data()).IgnoreError();
  state->sent = {};
}

// Empty, and nothing has changed: it has to go the long way.
//
// The sum is made beside the residual and takes its place afterwards, as in Carry.
EncodedValues PushEncoder::EncodeInOnePass(const compress::TableCodec& codec, const Pushed& pushed,
                                           double rate, const EncodeTerms& terms,
                                           BlockState* state) {
  const std::uint64_t elements = pushed.elements;
  const auto ratio = static_cast<float>(state->rate / rate);
  if (state->residual.values.size() != elements) return {};
  if (!state->sent.empty() && state->sent_by != &codec) return {};
  if (spare_.values.size() != elements) spare_ = Make(elements);
  encoded_.resize(codec.codec->EncodedBytesMax(terms.shape));
  const absl::StatusOr<std::size_t> bytes =
      codec.one_pass->CarryAndEncode({.values = FloatsOf(pushed),
                                      .kept = state->residual.values.data(),
                                      .sent = state->sent.bytes(),
                                      .factor = ratio,
                                      .carried = spare_.values.data()},
                                     terms, encoded_);
  if (!bytes.ok() || *bytes >= elements * SizeOf(spec_.dtype)) return {};
  std::swap(state->residual, spare_);
  state->sent = EncodedOf(*bytes);
  state->sent_by = &codec;
  state->rate = rate;
  state->carries = true;
  return {.codec = codec.id, .bytes = state->sent};
}

// The residual becomes g + r·e. False, and nothing has changed: g has what no codec carries (NaN,
// infinity), which is not to stay in the residual, or the sum is beyond what floats have, and what
// is kept waits.
//
// Whether it is so is known when all of g has been read. So that it is read once, the sum is
// made beside the residual and takes its place afterwards; what it is made in are the floats that
// the block before had left, which the cache still has.
bool PushEncoder::Carry(const Pushed& pushed, double rate, BlockState* state) {
  if (runtime::Planted<"rate-not-carried">()) state->rate = rate;
  const std::uint64_t elements = pushed.elements;
  const float* const gradient = FloatsOf(pushed);
  if (state->residual.values.size() != elements) {
    if (!std::isfinite(Reduce().max_abs(gradient, elements))) return false;
    state->residual = Zeros(elements);
  }
  if (spare_.values.size() != elements) spare_ = Make(elements);
  const auto ratio = static_cast<float>(state->rate / rate);
  const float largest = Reduce().carry(gradient, state->residual.values.data(), elements, ratio,
                                       spare_.values.data());
  if (!std::isfinite(largest) && !runtime::Planted<"infinite-carried">()) return false;
  std::swap(state->residual, spare_);
  state->rate = rate;
  state->carries = true;
  return true;
}

// All that is carried, as it is: nothing is dropped but what the table's 16 bits do not hold, which
// stays. What is beyond their range goes with the next push, the rounding with the next one whose
// codec has feedback: each push that takes it along would leave as much again.
EncodedValues PushEncoder::SendCarried(BlockState* state) const {
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

EncodedValues PushEncoder::EncodeBlock(std::uint32_t choice, std::uint64_t block,
                                       const std::byte* values, std::uint64_t elements,
                                       std::optional<double> learning_rate) {
  const compress::TableCodec& codec = codecs_->choices[choice];
  BlockState* const state = StateOfBlock(choice, block);
  if (state == nullptr || (!codec.encodes() && !state->carries)) return {};
  const double rate = RateOf(learning_rate);
  const Pushed pushed{.values = values, .dtype = spec_.dtype, .elements = elements};
  const bool carried = state->carries;
  EncodedValues encoded = codec.momentum.has_value()
                              ? EncodeWithMomentum(codec, block, pushed, rate, state)
                              : Encode(codec, block, pushed, rate, state);
  if (encoded.bytes.empty()) return encoded;
  const bool residual = codec.worker_feedback || carried;
  if (residual || codec.momentum.has_value() || codec.codec->keeps_residual()) {
    encoded.traces = {.choice = choice, .step = ++state->pushes, .residual = residual};
  }
  return encoded;
}

// What is not finite does not enter the velocity.
EncodedValues PushEncoder::EncodeWithMomentum(const compress::TableCodec& codec,
                                              std::uint64_t block, const Pushed& gradient,
                                              double rate, BlockState* state) {
  const std::uint64_t elements = gradient.elements;
  const float* const values = FloatsOf(gradient);
  if (!std::isfinite(Reduce().max_abs(values, elements))) return {};
  const std::size_t kept = codec.WorkerStateElements(compress::BlockShape(spec_, codec, elements));
  if (state->codec_state.size() != kept) state->codec_state.assign(kept, 0.0f);
  moved_.resize(elements);
  codec.momentum->Step({values, elements}, std::span(state->codec_state).last(elements), moved_);
  EncodedValues encoded = Encode(codec, block,
                                 {.values = reinterpret_cast<const std::byte*>(moved_.data()),
                                  .dtype = DType::kFloat32,
                                  .elements = elements},
                                 rate, state);
  return encoded.bytes.empty() ? StoredOf(moved_) : encoded;
}

// Empty: as they are.
EncodedValues PushEncoder::Encode(const compress::TableCodec& codec, std::uint64_t block,
                                  const Pushed& pushed, double rate, BlockState* state) {
  // What such a codec holds back is in its state, and what is sent at a rate of 0 has no effect.
  if (rate == 0 && codec.encodes() && codec.codec->keeps_residual()) return {};
  if (!codec.worker_feedback || rate == 0) {
    Settle(state);
    if (runtime::Planted<"residual-dropped">()) std::ranges::fill(state->residual.values, 0.0f);
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
  Settle(state);
  if (!Carry(pushed, rate, state)) return {};
  float* const carried = state->residual.values.data();
  encoded_.resize(codec.codec->EncodedBytesMax(terms.shape));
  const absl::StatusOr<std::size_t> bytes =
      codec.codec->EncodeAndSubtract(carried, terms, encoded_);
  if (bytes.ok() && *bytes > 0 && *bytes < pushed.elements * SizeOf(spec_.dtype)) {
    return {.codec = codec.id, .bytes = EncodedOf(*bytes)};
  }
  if (bytes.ok()) {
    // It would be no smaller: sent as it is nothing is dropped.
    const auto message = std::span<const std::byte>(encoded_).first(*bytes);
    if (!codec.codec->DecodeAdd(message, terms.shape, 1, carried).ok()) return {};
  }
  return SendCarried(state);
}

// What is kept of these rows goes along; they have no residuals then. False: there was nothing.
bool PushEncoder::AddResiduals(std::span<const std::uint64_t> keys, double rate, ShardState* state,
                               float* rows) const {
  const std::uint64_t width = spec_.row_width;
  bool any = false;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::span<float> residual = state->residuals.Find(keys[i]);
    if (residual.empty()) continue;
    // At so small a rate that it would not be a number any more, it stays where it is.
    const float scale = static_cast<float>(1 / rate);
    const float kept = Reduce().max_abs(residual.data(), width);
    if (kept == 0) continue;
    const float most = scale * kept;
    if (!std::isfinite(most + Reduce().max_abs(rows + i * width, width))) continue;
    Reduce().add(residual.data(), width, scale, rows + i * width);
    std::fill(residual.begin(), residual.end(), 0.0f);
    any = true;
  }
  return any;
}

EncodedRows PushEncoder::EncodeRows(std::uint32_t choice, std::uint32_t shard,
                                    std::span<const std::uint64_t> keys, std::byte* rows,
                                    std::optional<double> learning_rate) {
  const compress::TableCodec& codec = codecs_->choices[choice];
  ShardState& state = StateOf(shard);
  const std::uint64_t width = spec_.row_width;
  const std::uint64_t row_bytes = width * SizeOf(spec_.dtype);
  const std::uint64_t elements = keys.size() * width;
  const double rate = RateOf(learning_rate);
  const bool may_carry = state.residuals.size() > 0 && rate != 0;
  const bool feedback = codec.worker_feedback && rate != 0 && !keys.empty();
  auto* const values = reinterpret_cast<float*>(rows);
  // Rows that the codec cannot carry, and all beside them, go as they are.
  if ((feedback || may_carry) && !std::isfinite(Reduce().max_abs(values, elements))) return {};
  EncodedRows encoded;
  if (feedback || may_carry) encoded.given = runtime::Buffer::CopyOf(rows, keys.size() * row_bytes);
  const bool carries = may_carry && AddResiduals(keys, rate, &state, values);
  if (feedback || carries) {
    encoded.values.traces = {.choice = choice, .step = 0, .residual = true};
  } else {
    encoded.given = {};
  }
  // A codec that loses something and keeps nothing would lose what was kept as well.
  const bool drops = carries && !feedback && codec.encodes() && !codec.codec->lossless();
  if (!codec.encodes() || drops) return encoded;
  EncodeTerms terms{.shape = compress::RowsShape(spec_, codec, keys.size())};
  terms.step = state.step;
  terms.seed = Seed(shard, state.step++);
  std::vector<std::byte> carried(rows, rows + (feedback ? keys.size() * row_bytes : 0));
  encoded_.resize(compress::kCodedRowsPrefix + codec.codec->EncodedBytesMax(terms.shape));
  const std::span<std::byte> message = std::span(encoded_).subspan(compress::kCodedRowsPrefix);
  const absl::StatusOr<std::size_t> bytes =
      feedback
          ? codec.codec->EncodeAndSubtract(reinterpret_cast<float*>(carried.data()), terms, message)
          : codec.codec->Encode(rows, terms, message);
  if (!bytes.ok() || compress::kCodedRowsPrefix + *bytes >= keys.size() * row_bytes) {
    return encoded;
  }
  std::vector<float> flushed;
  if (feedback) {
    const auto* left = reinterpret_cast<const float*>(carried.data());
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const std::span<float> residual = state.residuals.Use(keys[i]);
      for (std::size_t j = 0; j < width; ++j) {
        const float kept = residual[j] + static_cast<float>(rate) * left[i * width + j];
        if (std::isfinite(kept)) residual[j] = kept;
      }
    }
    // No more than may have come: that keeps the limit, and the message short.
    while (rate >= kFlushRateMin && state.residuals.surplus() > 0 &&
           !runtime::Planted<"rows-kept-without-limit">() && encoded.flushed.size() < keys.size()) {
      encoded.flushed.push_back(state.residuals.TakeColdest(&flushed));
    }
    if (!runtime::Planted<"flushed-at-no-rate">())
      for (float& value : flushed) value = static_cast<float>(static_cast<double>(value) / rate);
  }
  const auto plain = static_cast<std::uint32_t>(encoded.flushed.size());
  std::memcpy(encoded_.data(), &plain, sizeof(plain));
  std::byte* to = nullptr;
  const std::size_t front = compress::kCodedRowsPrefix + *bytes;
  encoded.values.codec = codec.id;
  encoded.values.bytes = runtime::Buffer::Allocate(front + flushed.size() * sizeof(float), &to);
  std::memcpy(to, encoded_.data(), front);
  if (!flushed.empty()) std::memcpy(to + front, flushed.data(), flushed.size() * sizeof(float));
  return encoded;
}

double PushEncoder::Kept(std::uint64_t block, std::uint64_t element) const {
  const auto found = blocks_.find(block);
  if (found == blocks_.end() || element >= found->second.residual.values.size()) return 0;
  Settle(&found->second);
  return found->second.rate * static_cast<double>(found->second.residual.values[element]);
}

SavedTable PushEncoder::Save() const {
  SavedTable saved;
  for (auto& [index, state] : blocks_) {
    Settle(&state);
    saved.blocks[index] = {.residual = {state.residual.values.begin(), state.residual.values.end()},
                           .codec_state = state.codec_state,
                           .step = runtime::Planted<"saved-without-step">() ? 0 : state.step,
                           .rate = state.rate};
  }
  for (const auto& [shard, state] : shards_) {
    saved.steps.resize(shard + 1);
    saved.steps[shard] = state.step;
    state.residuals.ForEach([&](std::uint64_t key, std::span<const float> row) {
      saved.keys.push_back(key);
      saved.rows.insert(saved.rows.end(), row.begin(), row.end());
    });
  }
  return saved;
}

// Whether one of the table's codecs keeps so much from message to message.
bool PushEncoder::FitsState(std::uint64_t elements, const SavedBlock& block) const {
  if (block.codec_state.empty()) return true;
  const auto fits = [&](const compress::TableCodec& codec) {
    const CodecShape shape = compress::BlockShape(spec_, codec, elements);
    return codec.encodes() && codec.WorkerStateElements(shape) == block.codec_state.size();
  };
  return std::ranges::any_of(codecs_->choices, fits);
}

// The blocks of a table are cut by the cluster's setting.
absl::Status PushEncoder::CheckBlock(std::uint64_t index, const SavedBlock& block) const {
  const std::uint64_t blocks = proto::NumBlocks(spec_, place_.block_bytes);
  if (index >= blocks) {
    return absl::InvalidArgumentError(absl::StrCat(
        "table '", spec_.name, "': the residuals have a block ", index, " where there are ", blocks,
        "; they are of a cluster with another LEEWAY_BLOCK_BYTES than ", place_.block_bytes));
  }
  const std::uint64_t elements = proto::ElementsInBlock(spec_, place_.block_bytes, index);
  if (!block.residual.empty() && block.residual.size() != elements) {
    return absl::InvalidArgumentError(absl::StrCat(
        "table '", spec_.name, "': the residuals have ", block.residual.size(),
        " elements of block ", index, ", which has ", elements,
        "; they are of a cluster with another LEEWAY_BLOCK_BYTES than ", place_.block_bytes));
  }
  if (!FitsState(elements, block)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "table '", spec_.name, "': the residuals have ", block.codec_state.size(),
        " floats of a codec's state of block ", index, ", as many as none of its codecs keeps"));
  }
  return absl::OkStatus();
}

absl::Status PushEncoder::CheckSaved(const SavedTable& saved) const {
  const std::uint64_t width = spec_.row_width;
  const bool dense = spec_.kind == TableKind::kDense;
  if (dense ? !saved.keys.empty() : !saved.blocks.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("table '", spec_.name, "': the residuals are of another kind of table"));
  }
  if (!dense && saved.rows.size() != saved.keys.size() * width) {
    return absl::InvalidArgumentError(
        absl::StrCat("table '", spec_.name, "': the residuals have rows of another width"));
  }
  const auto finite = [](const std::vector<float>& values) {
    return std::isfinite(Reduce().max_abs(values.data(), values.size()));
  };
  bool all_finite = finite(saved.rows);
  for (const auto& [index, block] : saved.blocks) {
    LEEWAY_RETURN_IF_ERROR(CheckBlock(index, block));
    all_finite = all_finite && finite(block.residual) && finite(block.codec_state);
  }
  if (all_finite) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("table '", spec_.name, "': the residuals have NaN or infinity"));
}

void PushEncoder::Take(const SavedTable& saved) {
  const std::uint64_t width = spec_.row_width;
  blocks_.clear();
  shards_.clear();
  for (const auto& [index, block] : saved.blocks) {
    BlockState& state = blocks_[index];
    if (!block.residual.empty()) state.residual = Make(block.residual.size());
    std::ranges::copy(block.residual, state.residual.values.begin());
    state.carries = !block.residual.empty();
    state.codec_state = block.codec_state;
    state.step = block.step;
    state.rate = block.rate;
  }
  for (std::size_t i = 0; i < saved.keys.size(); ++i) {
    const std::span<float> row =
        StateOf(proto::ShardOfKey(saved.keys[i], place_.num_shards)).residuals.Use(saved.keys[i]);
    std::copy_n(saved.rows.begin() + static_cast<std::ptrdiff_t>(i * width), width, row.begin());
  }
  // Of a cluster with another number of shards there is no count to go on with.
  if (saved.steps.size() > place_.num_shards) return;
  for (std::uint32_t shard = 0; shard < saved.steps.size(); ++shard) {
    StateOf(shard).step = saved.steps[shard];
  }
}

double PushEncoder::ResidualNorm() const {
  double sum = 0;
  for (auto& [block, state] : blocks_) {
    Settle(&state);
    sum += Reduce().sum_squares(state.residual.values.data(), state.residual.values.size());
  }
  for (const auto& [shard, state] : shards_) sum += state.residuals.SumOfSquares();
  return std::sqrt(sum);
}

}  // namespace leeway::worker
