#include "worker/encoding/row_encoder.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "compress/sparse/coded_rows.h"
#include "proto/messages/layout.h"

namespace leeway::worker {
namespace {

// At smaller rates a residual that is sent unscaled may overflow.
constexpr double kFlushRateMin = 1e-20;

}  // namespace

RowEncoder::RowEncoder(const TableSpec& spec, const compress::TableCodecs* codecs,
                       const PushContext& context)
    : spec_(spec),
      codecs_(codecs),
      context_(context),
      shard_bytes_max_(context.residual_bytes_max /
                       std::max<std::uint32_t>(1, context.num_shards)) {}

RowEncoder::ShardState& RowEncoder::StateOf(std::uint32_t shard) {
  const auto found = shards_.find(shard);
  if (found != shards_.end()) return found->second;
  return shards_
      .emplace(shard, ShardState{.residuals = ResidualRows(spec_.row_width, shard_bytes_max_)})
      .first->second;
}

// Moves the residuals of these rows into the rows. False: there were none.
bool RowEncoder::AddResiduals(std::span<const std::uint64_t> keys, double rate, ShardState* state,
                              float* rows) const {
  const std::uint64_t width = spec_.row_width;
  bool any = false;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::span<float> residual = state->residuals.Find(keys[i]);
    if (residual.empty()) continue;
    // At so small a rate that the sum would overflow, the residual stays.
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

EncodedRows RowEncoder::Encode(std::uint32_t choice, std::uint32_t shard,
                               std::span<const std::uint64_t> keys, std::byte* rows,
                               std::optional<double> learning_rate) {
  const compress::TableCodec& codec = codecs_->choices[choice];
  ShardState& state = StateOf(shard);
  const std::uint64_t width = spec_.row_width;
  const std::uint64_t row_bytes = width * SizeOf(spec_.dtype);
  const std::uint64_t elements = keys.size() * width;
  const double rate = RateOf(spec_, learning_rate);
  const bool may_carry = state.residuals.size() > 0 && rate != 0;
  const bool feedback = codec.worker_feedback && rate != 0 && !keys.empty();
  auto* const values = reinterpret_cast<float*>(rows);
  // If the codec cannot carry one of the rows, all rows are sent unchanged.
  if ((feedback || may_carry) && !std::isfinite(Reduce().max_abs(values, elements))) return {};
  EncodedRows encoded;
  if (feedback || may_carry) encoded.given = runtime::Buffer::CopyOf(rows, keys.size() * row_bytes);
  const bool carries = may_carry && AddResiduals(keys, rate, &state, values);
  if (feedback || carries) {
    encoded.values.traces = {.choice = choice, .step = 0, .residual = true};
  } else {
    encoded.given = {};
  }
  // A lossy codec without feedback would drop a part of the residuals, too.
  const bool drops = carries && !feedback && codec.encodes() && !codec.codec->lossless();
  if (!codec.encodes() || drops) return encoded;
  EncodeTerms terms{.shape = compress::RowsShape(spec_, codec, keys.size())};
  terms.step = state.step;
  terms.seed = SeedOf(context_, shard, state.step++);
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
    // No more rows than this push may have added: that keeps the limit, and the message short.
    while (rate >= kFlushRateMin && state.residuals.excess() > 0 &&
           encoded.flushed.size() < keys.size()) {
      encoded.flushed.push_back(state.residuals.TakeColdest(&flushed));
    }
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

void RowEncoder::Save(SavedTable* saved) const {
  for (const auto& [shard, state] : shards_) {
    saved->steps.resize(shard + 1);
    saved->steps[shard] = state.step;
    state.residuals.ForEach([&](std::uint64_t key, std::span<const float> row) {
      saved->keys.push_back(key);
      saved->rows.insert(saved->rows.end(), row.begin(), row.end());
    });
  }
}

void RowEncoder::Take(const SavedTable& saved) {
  const std::uint64_t width = spec_.row_width;
  shards_.clear();
  for (std::size_t i = 0; i < saved.keys.size(); ++i) {
    const std::span<float> row =
        StateOf(proto::ShardOfKey(saved.keys[i], context_.num_shards)).residuals.Use(saved.keys[i]);
    std::copy_n(saved.rows.begin() + static_cast<std::ptrdiff_t>(i * width), width, row.begin());
  }
  // The counts of a cluster with another number of shards cannot be continued.
  if (saved.steps.size() > context_.num_shards) return;
  for (std::uint32_t shard = 0; shard < saved.steps.size(); ++shard) {
    StateOf(shard).step = saved.steps[shard];
  }
}

double RowEncoder::SumOfSquares() const {
  double sum = 0;
  for (const auto& [shard, state] : shards_) sum += state.residuals.SumOfSquares();
  return sum;
}

// ---- refused pushes ----

// The rows of a message: the encoded ones, then the plain ones.
std::vector<float> RowEncoder::FloatsOfMessage(const RefusedPush& push, std::uint64_t rows) const {
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

// Residuals of rows are kept times the learning rate. Rows that were sent because the memory was
// full return to it; the next pushes send them again.
void RowEncoder::TakeBack(std::uint32_t shard, std::span<const std::uint64_t> keys,
                          const RefusedPush& push) {
  if (!push.traces.residual) return;
  ShardState& state = StateOf(shard);
  const std::uint64_t width = spec_.row_width;
  const auto rate = static_cast<float>(RateOf(spec_, push.learning_rate));
  std::vector<float> taken = FloatsOfMessage(push, keys.size());
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
