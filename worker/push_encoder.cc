#include "worker/push_encoder.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "compress/coded_rows.h"
#include "compress/halves.h"
#include "compress/kernels/kernels.h"
#include "proto/layout.h"
#include "runtime/random.h"

namespace leeway::worker {
namespace {

// Updaters whose effect does not depend on a learning rate.
bool HasNoRate(absl::string_view updater) { return updater == "add" || updater == "assign"; }

const compress::ReduceKernels& Reduce() { return compress::ChosenKernels().reduce; }

}  // namespace

PushEncoder::PushEncoder(const TableSpec& spec, compress::TableCodec codec, std::uint32_t table,
                         std::uint32_t rank, std::uint32_t num_shards,
                         std::uint64_t residual_bytes_max)
    : spec_(spec),
      codec_(std::move(codec)),
      table_(table),
      rank_(rank),
      num_shards_(num_shards),
      shard_bytes_max_(residual_bytes_max / std::max<std::uint32_t>(1, num_shards)) {}

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
  return runtime::RandomAt(std::uint64_t{table_} << 32 | rank_, place, step);
}

// What lies in `encoded_`, in memory of its size.
runtime::Buffer PushEncoder::EncodedOf(std::size_t bytes) {
  return runtime::Buffer::CopyOf(encoded_.data(), bytes);
}

EncodedValues PushEncoder::AsTheyAre(const std::byte* values, std::uint64_t bytes) const {
  return {.codec = compress::kNoCodec, .bytes = runtime::Buffer::CopyOf(values, bytes)};
}

const float* PushEncoder::Floats(const std::byte* values, std::uint64_t elements) {
  if (spec_.dtype == DType::kFloat32) return reinterpret_cast<const float*>(values);
  floats_.resize(elements);
  compress::Widen(spec_.dtype, values, floats_);
  return floats_.data();
}

// As they are in the table, for a message that is not encoded.
EncodedValues PushEncoder::StoredOf(std::span<const float> values) const {
  if (spec_.dtype == DType::kFloat32) {
    return AsTheyAre(reinterpret_cast<const std::byte*>(values.data()), values.size_bytes());
  }
  std::byte* to = nullptr;
  runtime::Buffer bytes = runtime::Buffer::Allocate(values.size() * SizeOf(spec_.dtype), &to);
  compress::Narrow(spec_.dtype, values, to);
  return {.codec = compress::kNoCodec, .bytes = std::move(bytes)};
}

EncodedValues PushEncoder::EncodeWithoutFeedback(const std::byte* values, std::uint64_t elements,
                                                 const EncodeTerms& terms) {
  const void* from = values;
  if (codec_.dtype != spec_.dtype) from = Floats(values, elements);
  const std::uint64_t stored_bytes = elements * SizeOf(spec_.dtype);
  encoded_.resize(codec_.codec->EncodedBytesMax(terms.shape));
  const absl::StatusOr<std::size_t> bytes = codec_.codec->Encode(from, terms, encoded_);
  if (!bytes.ok() || *bytes == 0 || *bytes >= stored_bytes) return AsTheyAre(values, stored_bytes);
  return {.codec = codec_.id, .bytes = EncodedOf(*bytes)};
}

void PushEncoder::MakeResidual(std::uint64_t elements, BlockState* state) {
  std::byte* to = nullptr;
  state->memory = runtime::Buffer::Allocate(elements * sizeof(float), &to);
  state->residual = {reinterpret_cast<float*>(to), elements};
  std::ranges::fill(state->residual, 0.0f);
}

EncodedValues PushEncoder::EncodeBlock(std::uint64_t block, const std::byte* values,
                                       std::uint64_t elements,
                                       std::optional<double> learning_rate) {
  BlockState& state = blocks_[block];
  EncodeTerms terms{.shape = compress::BlockShape(spec_, codec_, elements)};
  terms.step = state.step;
  terms.seed = Seed(block, state.step++);
  const std::size_t state_elements = codec_.codec->StateElements(terms.shape);
  if (state.codec_state.size() != state_elements) state.codec_state.assign(state_elements, 0.0f);
  terms.state = state.codec_state;
  const double rate = RateOf(learning_rate);
  if (!codec_.worker_feedback || rate == 0) {
    return EncodeWithoutFeedback(values, elements, terms);
  }
  const float* gradient = Floats(values, elements);
  const std::uint64_t stored_bytes = elements * SizeOf(spec_.dtype);
  // What the codec cannot carry goes by itself, so that it does not stay in the residual.
  if (!std::isfinite(Reduce().max_abs(gradient, elements))) return AsTheyAre(values, stored_bytes);
  if (state.residual.size() != elements) MakeResidual(elements, &state);
  float* const carried = state.residual.data();
  Reduce().carry(gradient, carried, elements, static_cast<float>(state.rate / rate), carried);
  state.rate = rate;
  encoded_.resize(codec_.codec->EncodedBytesMax(terms.shape));
  const absl::StatusOr<std::size_t> bytes =
      codec_.codec->EncodeAndSubtract(carried, terms, encoded_);
  if (bytes.ok() && *bytes > 0 && *bytes < stored_bytes) {
    return {.codec = codec_.id, .bytes = EncodedOf(*bytes)};
  }
  if (bytes.ok()) {
    // It would be no smaller: sent as it is nothing is dropped.
    if (!codec_.codec->DecodeAdd(std::span(encoded_).first(*bytes), terms.shape, 1, carried).ok()) {
      return AsTheyAre(values, stored_bytes);
    }
  }
  EncodedValues plain = StoredOf(state.residual);
  std::ranges::fill(state.residual, 0.0f);
  return plain;
}

EncodedRows PushEncoder::EncodeRows(std::uint32_t shard, std::span<const std::uint64_t> keys,
                                    std::byte* rows, std::optional<double> learning_rate,
                                    bool may_flush) {
  ShardState& state = StateOf(shard);
  const std::uint64_t width = spec_.row_width;
  const std::uint64_t row_bytes = width * SizeOf(spec_.dtype);
  const std::uint64_t elements = keys.size() * width;
  EncodeTerms terms{.shape = compress::RowsShape(spec_, codec_, keys.size())};
  terms.step = state.step;
  terms.seed = Seed(shard, state.step++);
  const double rate = RateOf(learning_rate);
  const bool feedback = codec_.worker_feedback && rate != 0 && !keys.empty();
  auto* const values = reinterpret_cast<float*>(rows);
  // Rows that the codec cannot carry, and all beside them, go as they are.
  if (feedback && !std::isfinite(Reduce().max_abs(values, elements))) {
    return {.values = AsTheyAre(rows, keys.size() * row_bytes), .flushed = {}};
  }
  if (feedback) {
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const std::span<float> residual = state.residuals.Use(keys[i]);
      Reduce().add(residual.data(), width, static_cast<float>(1 / rate), values + i * width);
      std::fill(residual.begin(), residual.end(), 0.0f);
    }
  }
  std::vector<std::byte> carried(rows, rows + (feedback ? keys.size() * row_bytes : 0));
  encoded_.resize(compress::kCodedRowsPrefix + codec_.codec->EncodedBytesMax(terms.shape));
  const std::span<std::byte> message = std::span(encoded_).subspan(compress::kCodedRowsPrefix);
  const absl::StatusOr<std::size_t> bytes =
      feedback ? codec_.codec->EncodeAndSubtract(reinterpret_cast<float*>(carried.data()), terms,
                                                 message)
               : codec_.codec->Encode(rows, terms, message);
  if (!bytes.ok() || compress::kCodedRowsPrefix + *bytes >= keys.size() * row_bytes) {
    return {.values = AsTheyAre(rows, keys.size() * row_bytes), .flushed = {}};
  }
  EncodedRows encoded;
  std::vector<float> flushed;
  if (feedback) {
    const auto* left = reinterpret_cast<const float*>(carried.data());
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const std::span<float> residual = state.residuals.Use(keys[i]);
      for (std::size_t j = 0; j < width; ++j) {
        residual[j] = static_cast<float>(rate) * left[i * width + j];
      }
    }
    if (may_flush) {
      while (state.residuals.surplus() > 0) {
        encoded.flushed.push_back(state.residuals.TakeColdest(&flushed));
      }
    }
    for (float& value : flushed) value = static_cast<float>(static_cast<double>(value) / rate);
  }
  const auto plain = static_cast<std::uint32_t>(encoded.flushed.size());
  std::memcpy(encoded_.data(), &plain, sizeof(plain));
  std::byte* to = nullptr;
  const std::size_t front = compress::kCodedRowsPrefix + *bytes;
  encoded.values.codec = codec_.id;
  encoded.values.bytes = runtime::Buffer::Allocate(front + flushed.size() * sizeof(float), &to);
  std::memcpy(to, encoded_.data(), front);
  if (!flushed.empty()) std::memcpy(to + front, flushed.data(), flushed.size() * sizeof(float));
  return encoded;
}

double PushEncoder::Kept(std::uint64_t block, std::uint64_t element) const {
  const auto found = blocks_.find(block);
  if (found == blocks_.end() || element >= found->second.residual.size()) return 0;
  return found->second.rate * static_cast<double>(found->second.residual[element]);
}

SavedTable PushEncoder::Save() const {
  SavedTable saved;
  for (const auto& [index, state] : blocks_) {
    saved.blocks[index] = {.residual = {state.residual.begin(), state.residual.end()},
                           .codec_state = state.codec_state,
                           .step = state.step,
                           .rate = state.rate};
  }
  for (const auto& [shard, state] : shards_) {
    state.residuals.ForEach([&](std::uint64_t key, std::span<const float> row) {
      saved.keys.push_back(key);
      saved.rows.insert(saved.rows.end(), row.begin(), row.end());
    });
  }
  return saved;
}

absl::Status PushEncoder::Take(const SavedTable& saved) {
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
  for (const auto& [index, block] : saved.blocks) {
    const CodecShape shape = compress::BlockShape(spec_, codec_, block.residual.size());
    const bool fits = block.codec_state.empty() || block.residual.empty() ||
                      block.codec_state.size() == codec_.codec->StateElements(shape);
    if (fits && block.residual.size() <= spec_.NumElements()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("table '", spec_.name, "': the residuals have a block of another size"));
  }
  blocks_.clear();
  shards_.clear();
  for (const auto& [index, block] : saved.blocks) {
    BlockState& state = blocks_[index];
    if (!block.residual.empty()) MakeResidual(block.residual.size(), &state);
    std::ranges::copy(block.residual, state.residual.begin());
    state.codec_state = block.codec_state;
    state.step = block.step;
    state.rate = block.rate;
  }
  for (std::size_t i = 0; i < saved.keys.size(); ++i) {
    const std::span<float> row =
        StateOf(proto::ShardOfKey(saved.keys[i], num_shards_)).residuals.Use(saved.keys[i]);
    std::copy_n(saved.rows.begin() + static_cast<std::ptrdiff_t>(i * width), width, row.begin());
  }
  return absl::OkStatus();
}

double PushEncoder::ResidualNorm() const {
  double sum = 0;
  for (const auto& [block, state] : blocks_) {
    sum += Reduce().sum_squares(state.residual.data(), state.residual.size());
  }
  for (const auto& [shard, state] : shards_) sum += state.residuals.SumOfSquares();
  return std::sqrt(sum);
}

}  // namespace leeway::worker
