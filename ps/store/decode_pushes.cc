#include "ps/store/decode_pushes.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_join.h"
#include "compress/common/halves.h"
#include "compress/kernels/kernels.h"
#include "compress/sparse/coded_rows.h"
#include "proto/messages/layout.h"
#include "ps/store/checks.h"
#include "runtime/base/status_macros.h"

namespace leeway::ps {

namespace {

constexpr absl::string_view kMalformed = "leeway.malformed_encoding";

absl::Status Marked(absl::Status status) {
  if (!status.ok()) status.SetPayload(kMalformed, absl::Cord());
  return status;
}

}  // namespace

bool IsMalformedEncoding(const absl::Status& status) {
  return status.GetPayload(kMalformed).has_value();
}

PushDecoder::PushDecoder(const TableSpec& spec, const StoreContext& context, const Updater* updater,
                         const compress::TableCodecs* codecs)
    : spec_(spec), context_(context), updater_(updater), codecs_(codecs) {}

std::uint64_t PushDecoder::ElementsOf(const PushView& push) const {
  if (spec_.kind == TableKind::kDense) {
    return proto::ElementsInBlock(spec_, context_.block_bytes, push.block);
  }
  return push.keys.size() / sizeof(std::uint64_t) * spec_.row_width;
}

CodecShape PushDecoder::ShapeOf(const PushView& push) const {
  if (spec_.kind == TableKind::kDense) {
    return compress::BlockShape(spec_, CodecOf(push), ElementsOf(push));
  }
  return compress::RowsShape(spec_, CodecOf(push), push.keys.size() / sizeof(std::uint64_t));
}

absl::Status PushDecoder::Check(const PushView& push, const ShardStore& plain) const {
  if (codecs_->Find(push.codec) == nullptr) {
    return Invalid(spec_, "a push is encoded by another codec than the table's, ",
                   absl::StrJoin(codecs_->texts, "; "));
  }
  const Codec& codec = *CodecOf(push).codec;
  if (spec_.kind == TableKind::kDense) {
    const bool here =
        push.block < proto::NumBlocks(spec_, context_.block_bytes) &&
        proto::ShardOfBlock(context_.table, push.block, context_.num_shards) == context_.shard;
    if (!here || !push.keys.empty() || !push.widths.empty()) return plain.Check(push);
    LEEWAY_RETURN_IF_ERROR(CheckRate(spec_, push.learning_rate));
    return Marked(codec.Check(push.values.bytes(), ShapeOf(push)));
  }
  LEEWAY_RETURN_IF_ERROR(CheckKeys(spec_, context_, push.keys));
  LEEWAY_RETURN_IF_ERROR(CheckRate(spec_, push.learning_rate));
  const absl::StatusOr<compress::CodedRows> rows =
      compress::ParseCodedRows(push.values.bytes(), push.keys.size() / sizeof(std::uint64_t),
                               spec_.row_width * SizeOf(spec_.dtype));
  if (!rows.ok()) return Marked(rows.status());
  return Marked(
      codec.Check(rows->encoded, compress::RowsShape(spec_, CodecOf(push), rows->encoded_rows)));
}

absl::StatusOr<PushView> PushDecoder::Plain(const PushView& push) const {
  if (push.codec == 0) return push;
  PushView plain = push;
  plain.codec = 0;
  std::byte* to = nullptr;
  plain.values = runtime::Buffer::Allocate(ElementsOf(push) * SizeOf(spec_.dtype), &to);
  if (spec_.kind == TableKind::kDense) {
    LEEWAY_RETURN_IF_ERROR(CodecOf(push).codec->Decode(push.values.bytes(), ShapeOf(push), to));
    return plain;
  }
  const std::uint64_t row_bytes = spec_.row_width * SizeOf(spec_.dtype);
  LEEWAY_ASSIGN_OR_RETURN(
      const compress::CodedRows rows,
      compress::ParseCodedRows(push.values.bytes(), push.keys.size() / sizeof(std::uint64_t),
                               row_bytes));
  LEEWAY_RETURN_IF_ERROR(CodecOf(push).codec->Decode(
      rows.encoded, compress::RowsShape(spec_, CodecOf(push), rows.encoded_rows), to));
  std::copy(rows.plain.begin(), rows.plain.end(), to + rows.encoded_rows * row_bytes);
  return plain;
}

absl::StatusOr<std::vector<PushView>> PushDecoder::Plain(std::span<const PushView> pushes) const {
  std::vector<PushView> plain;
  plain.reserve(pushes.size());
  for (const PushView& push : pushes) {
    LEEWAY_ASSIGN_OR_RETURN(PushView one, Plain(push));
    plain.push_back(std::move(one));
  }
  return plain;
}

absl::Status PushDecoder::Add(const PushView& push, std::uint64_t elements, bool first,
                              float* sum) const {
  if (push.codec != 0 && CodecOf(push).dtype == DType::kFloat32) {
    const CodecShape shape = compress::BlockShape(spec_, CodecOf(push), elements);
    const Codec& codec = *CodecOf(push).codec;
    return first ? codec.Decode(push.values.bytes(), shape, sum)
                 : codec.DecodeAdd(push.values.bytes(), shape, 1, sum);
  }
  LEEWAY_ASSIGN_OR_RETURN(const PushView plain, Plain(push));
  if (plain.values.size() != elements * SizeOf(spec_.dtype)) {
    return Invalid(spec_, "a push of ", plain.values.size(), " bytes to a block of ", elements,
                   " elements");
  }
  if (spec_.dtype == DType::kFloat32 && first) {
    std::memcpy(sum, plain.values.data(), plain.values.size());
  } else if (spec_.dtype == DType::kFloat32) {
    compress::ChosenKernels().reduce.add(reinterpret_cast<const float*>(plain.values.data()),
                                         elements, 1, sum);
  } else if (first) {
    compress::Widen(spec_.dtype, plain.values.data(), {sum, elements});
  } else {
    std::vector<float> widened(elements);
    compress::Widen(spec_.dtype, plain.values.data(), widened);
    compress::ChosenKernels().reduce.add(widened.data(), elements, 1, sum);
  }
  return absl::OkStatus();
}

// A worker that keeps what its own message lost has accounted for that message decoded alone.
bool PushDecoder::AddsEncoded(const PushView& push) const {
  const compress::TableCodec* const codec = codecs_->Find(push.codec);
  return codec != nullptr && codec->codec->adds_encoded() && !codec->worker_feedback;
}

// One push in the place of those of one codec whose messages add up.
std::vector<PushView> PushDecoder::Joined(std::span<const PushView> pushes) const {
  std::vector<PushView> apart;
  for (const PushView& push : pushes) {
    const auto first = std::ranges::find(apart, push.codec, &PushView::codec);
    if (first == apart.end() || !AddsEncoded(push)) {
      apart.push_back(push);
      continue;
    }
    std::byte* to = nullptr;
    runtime::Buffer sum = runtime::Buffer::Allocate(first->values.size(), &to);
    std::memcpy(to, first->values.data(), sum.size());
    if (CodecOf(push)
            .codec->AddEncoded(push.values.bytes(), ShapeOf(push), {to, sum.size()})
            .ok()) {
      first->values = std::move(sum);
    } else {
      apart.push_back(push);
    }
  }
  return apart;
}

absl::StatusOr<AggregatedPush> PushDecoder::Sum(std::span<const PushView> pushes,
                                                std::uint32_t contributors) const {
  AggregatedPush aggregate;
  aggregate.block = pushes.front().block;
  aggregate.learning_rate = LastRate(pushes);
  const std::uint64_t elements = ElementsOf(pushes.front());
  std::byte* data = nullptr;
  aggregate.values = runtime::Buffer::Allocate(elements * sizeof(float), &data);
  auto* const sum = reinterpret_cast<float*>(data);
  const bool last_wins = updater_->combine() == Updater::Combine::kLast;
  std::span<const PushView> added = last_wins ? pushes.last(1) : pushes;
  std::vector<PushView> joined;
  if (std::ranges::any_of(added, [this](const PushView& push) { return AddsEncoded(push); })) {
    added = joined = Joined(added);
  }
  bool first = true;
  for (const PushView& push : added) {
    LEEWAY_RETURN_IF_ERROR(Add(push, elements, std::exchange(first, false), sum));
  }
  const std::uint32_t mean_of = TermsOf(spec_, pushes, contributors, nullptr).mean_of;
  if (!last_wins && mean_of > 1) {
    const float scale = 1.0f / static_cast<float>(mean_of);
    for (std::uint64_t i = 0; i < elements; ++i) sum[i] *= scale;
  }
  return aggregate;
}

}  // namespace leeway::ps
