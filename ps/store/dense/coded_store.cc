#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "compress/common/halves.h"
#include "compress/kernels/kernels.h"
#include "proto/messages/layout.h"
#include "ps/store/checks.h"
#include "ps/store/decode_pushes.h"
#include "ps/store/dense/dense_stores.h"
#include "ps/store/dense/versions.h"
#include "runtime/base/random.h"
#include "runtime/base/status_macros.h"

namespace leeway::ps {
namespace {

bool Encoded(std::span<const PushView> pushes) {
  return std::any_of(pushes.begin(), pushes.end(),
                     [](const PushView& push) { return push.codec != 0; });
}

runtime::Buffer Joined(const std::vector<runtime::Buffer>& parts) {
  if (parts.size() == 1) return parts.front();
  std::size_t bytes = 0;
  for (const runtime::Buffer& part : parts) bytes += part.size();
  if (bytes == 0) return {};
  std::byte* to = nullptr;
  runtime::Buffer joined = runtime::Buffer::Allocate(bytes, &to);
  for (const runtime::Buffer& part : parts) to = std::copy_n(part.data(), part.size(), to);
  return joined;
}

class CodedStore final : public ShardStore {
 public:
  CodedStore(const TableSpec& spec, const StoreContext& context, const Updater* updater,
             compress::TableCodecs codecs, std::unique_ptr<ShardStore> plain)
      : spec_(spec),
        context_(context),
        codecs_(std::move(codecs)),
        versioned_(codecs_.AnyHas(&compress::TableCodec::versions)),
        decoder_(spec, context, updater, &codecs_),
        plain_(std::move(plain)) {}

  // ---- pushes ----

  void UseSettings(const TableSpec& spec, const Updater* updater) override {
    spec_ = spec;
    decoder_.UseSettings(spec, updater);
    plain_->UseSettings(spec, updater);
  }

  absl::Status Check(const PushView& push) const override {
    return push.codec == 0 ? plain_->Check(push) : decoder_.Check(push, *plain_);
  }

  absl::Status CheckMemory(const PushView& push) const override {
    return plain_->CheckMemory(push);  // by its block alone
  }

  absl::Status Apply(const PushView& push) override {
    bool nonfinite = false;
    return Apply(push, &nonfinite);
  }
  absl::Status Apply(const PushView& push, bool* nonfinite) override {
    if (push.codec == 0) return plain_->Apply(push, nonfinite);
    LEEWAY_RETURN_IF_ERROR(decoder_.Check(push, *plain_));
    if (decoder_.Widens(push)) {
      LEEWAY_ASSIGN_OR_RETURN(const AggregatedPush sum, decoder_.Sum({&push, 1}, 1));
      *nonfinite = !AlwaysFinite(push) && HasNonFinite(DType::kFloat32, sum.values.bytes());
      return plain_->ApplyAggregate(sum);
    }
    LEEWAY_ASSIGN_OR_RETURN(const PushView plain, decoder_.Plain(push));
    if (!AlwaysFinite(push)) return plain_->Apply(plain, nonfinite);
    *nonfinite = false;
    return plain_->Apply(plain);
  }

  absl::StatusOr<bool> EncodedNonFinite(const PushView& push) const override {
    if (AlwaysFinite(push)) return false;
    if (decoder_.Widens(push)) {
      LEEWAY_ASSIGN_OR_RETURN(const AggregatedPush sum, decoder_.Sum({&push, 1}, 1));
      return HasNonFinite(DType::kFloat32, sum.values.bytes());
    }
    LEEWAY_ASSIGN_OR_RETURN(const PushView plain, decoder_.Plain(push));
    return HasNonFinite(spec_.dtype, plain.values.bytes());
  }

  absl::StatusOr<bool> WouldOverflow(const PushView& push) const override {
    if (push.codec == 0) return plain_->WouldOverflow(push);
    LEEWAY_RETURN_IF_ERROR(decoder_.Check(push, *plain_));
    if (!decoder_.Widens(push)) {
      LEEWAY_ASSIGN_OR_RETURN(const PushView plain, decoder_.Plain(push));
      return plain_->WouldOverflow(plain);
    }
    LEEWAY_ASSIGN_OR_RETURN(const AggregatedPush sum, decoder_.Sum({&push, 1}, 1));
    return plain_->SumWouldOverflow(sum);
  }
  absl::StatusOr<bool> SumWouldOverflow(const AggregatedPush& sum) const override {
    return plain_->SumWouldOverflow(sum);
  }

  bool TakeOverflow() override { return plain_->TakeOverflow(); }

  absl::Status ApplyCombined(std::span<const PushView> pushes,
                             std::uint32_t contributors) override {
    if (!Encoded(pushes)) return plain_->ApplyCombined(pushes, contributors);
    if (!SumsUp(pushes)) {
      LEEWAY_ASSIGN_OR_RETURN(const std::vector<PushView> plain, decoder_.Plain(pushes));
      return plain_->ApplyCombined(plain, contributors);
    }
    LEEWAY_ASSIGN_OR_RETURN(const AggregatedPush sum, decoder_.Sum(pushes, contributors));
    return plain_->ApplyAggregate(sum);
  }

  absl::StatusOr<AggregatedPush> Combine(std::span<const PushView> pushes,
                                         std::uint32_t contributors) const override {
    if (!Encoded(pushes)) return plain_->Combine(pushes, contributors);
    if (SumsUp(pushes)) return decoder_.Sum(pushes, contributors);
    LEEWAY_ASSIGN_OR_RETURN(const std::vector<PushView> plain, decoder_.Plain(pushes));
    return plain_->Combine(plain, contributors);
  }

  absl::Status ApplyAggregate(const AggregatedPush& aggregate) override {
    return plain_->ApplyAggregate(aggregate);
  }

  // ---- pulls ----

  absl::StatusOr<PullResult> Pull(const PullView& pull) override {
    const compress::TableCodec& codec = codecs_.choices[pull.codec.choice];
    if (pull.plain || !codec.codes_replies) return plain_->Pull(pull);
    if (codec.versions) return PullVersion(pull);
    LEEWAY_ASSIGN_OR_RETURN(PullResult result, plain_->Pull(pull));
    if (codec.codec->lossless()) EncodeWhole(codec, pull.block, result);
    return WithMessage(pull.block, std::move(result));
  }

  bool WantsVersion(const PullView& pull, const ReaderTerms& terms) override {
    if (!codecs_.choices[pull.codec.choice].versions) return false;
    const std::uint64_t newest = plain_->StepsOf(pull.block) + 1;
    const Versions& versions = versions_[pull.block];
    if (versions.version() == newest) return false;
    if (BeginsAnew(versions, pull.codec)) return true;
    if (pull.own_push || versions.slowest() < terms.needed) return true;
    const bool holds = pull.have == versions.version();
    return versions.IsDue({.updates = newest - versions.version(),
                           .slowest = terms.slowest,
                           .workers = terms.workers,
                           .reader_holds = holds});
  }

  void ForgetSlowest() override {
    for (auto& [block, versions] : versions_) versions.ForgetSlowest();
  }

  VersionBy NextVersion(std::uint64_t block, const compress::CodecSchedule& codecs,
                        std::uint64_t slowest) override {
    if (Gradient()) {
      // Of the clock that has closed: its workers get the answer in it.
      const auto known = codecs.KnownAt(slowest == 0 ? 0 : slowest - 1);
      return {.codec = codecs_.choices[known.choice].id, .whole = false};
    }
    const compress::CodecSchedule::Known known = codecs.KnownAt(slowest);
    const compress::TableCodec& codec = codecs_.choices[known.choice];
    if (!codec.versions) return {};
    if (BeginsAnew(versions_[block], known)) return {.codec = 0, .whole = true};
    return {.codec = codec.id, .whole = false};
  }

  absl::Status MakeVersion(std::uint64_t block, std::uint64_t slowest, double learning_rate,
                           const VersionBy& by) override {
    const compress::TableCodec* const codec = codecs_.Find(by.codec);
    if (codec == nullptr && by.codec != 0) {
      return Invalid(spec_, "a version is to be made by a codec that is not the table's");
    }
    if (Gradient()) return MakeGradient(codec, block, RateOrTables(spec_, learning_rate));
    if (by.whole && versioned_) return GiveWhole(block, slowest);
    return codec != nullptr && codec->versions ? AdvanceWorkers(*codec, block, slowest)
                                               : absl::OkStatus();
  }

  absl::Status BeginReplies(std::uint64_t block) override {
    return versioned_ && !Gradient() ? GiveWhole(block, 0) : absl::OkStatus();
  }

  // ---- the content ----

  StoreSnapshot FreezeSince(std::uint64_t generation) override {
    StoreSnapshot snapshot = plain_->FreezeSince(generation);
    if (!versioned_) return snapshot;
    for (FrozenPiece& piece : snapshot.pieces) {
      const auto found = versions_.find(piece.block);
      piece.version = found == versions_.end() ? 1 : found->second.version();
    }
    return snapshot;
  }

  absl::Status Load(const FrozenPiece& piece) override {
    LEEWAY_RETURN_IF_ERROR(plain_->Load(piece));
    Loaded(piece);
    return absl::OkStatus();
  }

  absl::StatusOr<std::uint64_t> LoadElsewhere(const FrozenPiece& piece,
                                              std::uint64_t block_bytes) override {
    LEEWAY_ASSIGN_OR_RETURN(const std::uint64_t rows, plain_->LoadElsewhere(piece, block_bytes));
    if (rows > 0) Loaded(piece);
    return rows;
  }

  absl::StatusOr<FeedbackBlock> OpenFeedback(std::uint64_t block, bool write_values) override {
    return plain_->OpenFeedback(block, write_values);
  }
  absl::StatusOr<runtime::Buffer> FeedbackView(std::uint64_t block) override {
    return plain_->FeedbackView(block);
  }
  std::uint64_t StepsOf(std::uint64_t block) const override { return plain_->StepsOf(block); }
  StoreStats stats() const override {
    StoreStats stats = plain_->stats();
    for (const auto& [block, squares] : held_back_) stats.feedback_squares += squares;
    for (const auto& [block, versions] : versions_) stats.memory_bytes += versions.bytes();
    for (const auto& [block, whole] : whole_) stats.memory_bytes += whole.message.size();
    return stats;
  }

 private:
  // The encoded block of replies, as long as its version is that of the block.
  struct Whole {
    std::uint64_t version = 0;
    compress::CodecId codec = compress::kNoCodec;
    runtime::Buffer message;  // empty: it goes as it is
  };

  static const compress::ReduceKernels& Reduce() { return compress::ChosenKernels().reduce; }

  // Of what an encoded push says. One of rows may have some that are not encoded.
  bool AlwaysFinite(const PushView& push) const {
    return spec_.kind == TableKind::kDense && !decoder_.CodecOf(push).codec->may_give_non_finite();
  }

  // Whether pushes are decoded into their sum: lossless ones of 16-bit tables are not widened.
  bool SumsUp(std::span<const PushView> pushes) const {
    return spec_.kind == TableKind::kDense && ComputeType(spec_.dtype) == DType::kFloat32 &&
           std::any_of(pushes.begin(), pushes.end(), [this](const PushView& push) {
             return push.codec != 0 && decoder_.CodecOf(push).dtype == DType::kFloat32;
           });
  }

  bool Gradient() const { return spec_.updater.name == compress::kGradientUpdater; }

  // Whether what workers hold may be of a time before their replies, for a while, said nothing of
  // it: then they get the block, not all that has changed since in one message. A codec may hold
  // for so short a time that no version is made, so the one before this codec says nothing.
  static bool BeginsAnew(const Versions& versions, const compress::CodecSchedule::Known& known) {
    return known.since > 0 && versions.slowest() < known.since;
  }

  std::vector<float> ValuesOf(const FeedbackBlock& block) const {
    std::vector<float> values(block.elements);
    if (spec_.dtype == DType::kFloat32) {
      std::memcpy(values.data(), block.values, values.size() * sizeof(float));
    } else {
      compress::Widen(spec_.dtype, block.values, values);
    }
    return values;
  }

  // The values become what the table's dtype holds of them.
  void StoreValues(std::span<float> values, std::byte* to) const {
    if (spec_.dtype == DType::kFloat32) {
      std::memcpy(to, values.data(), values.size_bytes());
    } else {
      compress::Narrow(spec_.dtype, values, to);
      compress::Widen(spec_.dtype, to, values);
    }
  }

  // The same on all replicas: place and number of updates decide what is random. State is not kept
  // from message to message.
  EncodeTerms TermsFor(const compress::TableCodec& codec, std::uint64_t block,
                       const FeedbackBlock& open) {
    EncodeTerms terms{.shape = compress::BlockShape(spec_, codec, open.elements)};
    terms.seed = runtime::RandomAt(context_.table, block, open.steps);
    codec_state_.assign(codec.codec->StateElements(terms.shape), 0.0f);
    terms.state = codec_state_;
    encoded_.resize(codec.codec->EncodedBytesMax(terms.shape));
    return terms;
  }

  // A block's first version after it was loaded. It follows from none that is known here, except
  // the one that came with it.
  void Loaded(const FrozenPiece& piece) {
    const std::uint64_t steps = piece.steps.as<std::uint64_t>()[0];
    whole_.erase(piece.block);
    if (codecs_.AnyHas(&compress::TableCodec::server_feedback)) {
      held_back_[piece.block] = SquaresHeldBack(piece);
    }
    if (versioned_) {
      versions_[piece.block].StartAt(piece.version == 0 ? steps : piece.version, 0);
    }
  }

  // Of a dense block with a feedback slot, the last one of its state: ‖slot‖², or, where the slot
  // has what workers hold, ‖values − slot‖².
  double SquaresHeldBack(const FrozenPiece& piece) const {
    const std::size_t bytes = piece.elements * sizeof(float);
    if (piece.state.size() < bytes) return 0;
    std::vector<float> slot(piece.elements);
    std::memcpy(slot.data(), piece.state.data() + (piece.state.size() - bytes), bytes);
    if (!Gradient()) {
      const std::vector<float> values =
          ValuesOf({.values = piece.values.data(), .elements = piece.elements});
      Reduce().add(values.data(), values.size(), -1, slot.data());
    }
    return Reduce().sum_squares(slot.data(), slot.size());
  }

  // Workers hold the block itself from now on.
  absl::Status GiveWhole(std::uint64_t block, std::uint64_t slowest) {
    LEEWAY_ASSIGN_OR_RETURN(const FeedbackBlock open, plain_->OpenFeedback(block, false));
    const std::vector<float> values = ValuesOf(open);
    std::copy(values.begin(), values.end(), open.slot);
    versions_[block].StartAt(open.steps + 1, slowest);
    held_back_[block] = 0;
    return absl::OkStatus();
  }

  // EF21-P. What the codec cannot carry, or make smaller, all workers get as it is.
  absl::Status AdvanceWorkers(const compress::TableCodec& codec, std::uint64_t block,
                              std::uint64_t slowest) {
    LEEWAY_ASSIGN_OR_RETURN(const FeedbackBlock open, plain_->OpenFeedback(block, false));
    Versions& versions = versions_[block];
    const std::uint64_t version = open.steps + 1;
    if (versions.version() == version) return absl::OkStatus();
    std::vector<float> difference = ValuesOf(open);
    Reduce().add(open.slot, open.elements, -1, difference.data());
    const EncodeTerms terms = TermsFor(codec, block, open);
    const absl::StatusOr<std::size_t> bytes =
        codec.codec->EncodeAndSubtract(difference.data(), terms, encoded_);
    if (!bytes.ok() || *bytes >= open.elements * sizeof(float)) return GiveWhole(block, slowest);
    held_back_[block] = Reduce().sum_squares(difference.data(), difference.size());
    const auto message = std::span<const std::byte>(encoded_).first(*bytes);
    LEEWAY_RETURN_IF_ERROR(codec.codec->DecodeAdd(message, terms.shape, 1, open.slot));
    versions.Append(version, slowest, codec.id,
                    runtime::Buffer::CopyOf(message.data(), message.size()),
                    open.elements * sizeof(float));
    return absl::OkStatus();
  }

  // The slot has a residual times a learning rate. False, and nothing is changed: at so small a
  // rate it would be no number any more, and stays where it is.
  static bool AddSlot(const FeedbackBlock& open, double rate, std::vector<float>* values) {
    std::vector<float> sum = *values;
    Reduce().add(open.slot, open.elements, static_cast<float>(1 / rate), sum.data());
    if (!std::isfinite(Reduce().max_abs(sum.data(), sum.size()))) return false;
    *values = std::move(sum);
    return true;
  }

  // The sum of a clock, with what was held back. `rate`: NaN where nothing depends on it.
  absl::Status MakeGradient(const compress::TableCodec* codec, std::uint64_t block, double rate) {
    if (std::isnan(rate)) rate = 1;
    const bool encodes = codec != nullptr && codec->codes_replies && !codec->codec->lossless();
    if (!encodes || !codec->server_feedback) {
      LEEWAY_ASSIGN_OR_RETURN(const bool flushed, FlushGradient(block, rate));
      if (flushed) return absl::OkStatus();
    }
    return encodes ? EncodeGradient(*codec, block, rate) : absl::OkStatus();
  }

  // Sends the residual of an earlier codec uncoded, where this codec would lose part of it for
  // good. False, and nothing has changed: there is none, or it stays where it is at this rate.
  absl::StatusOr<bool> FlushGradient(std::uint64_t block, double rate) {
    const auto kept = held_back_.find(block);
    if (kept == held_back_.end() || kept->second == 0 || rate == 0) return false;
    LEEWAY_ASSIGN_OR_RETURN(const FeedbackBlock open, plain_->OpenFeedback(block, true));
    std::vector<float> carried = ValuesOf(open);
    if (!AddSlot(open, rate, &carried)) return false;
    std::vector<float> sent = carried;
    StoreValues(sent, open.writable);
    std::fill_n(open.slot, open.elements, 0.0f);
    HoldBack(block, open, rate, carried, sent);
    return true;
  }

  // slot += rate × (carried − sent), where that is a number.
  void HoldBack(std::uint64_t block, const FeedbackBlock& open, double rate,
                std::span<const float> carried, std::span<const float> sent) {
    for (std::uint64_t i = 0; i < open.elements; ++i) {
      const float kept = open.slot[i] + static_cast<float>(rate) * (carried[i] - sent[i]);
      if (std::isfinite(kept)) open.slot[i] = kept;
    }
    held_back_[block] = Reduce().sum_squares(open.slot, open.elements);
  }

  // dist-EF-SGD. The slot has the residual times the learning rate; at a rate of 0, where what is
  // sent has no effect, nothing is added to it.
  absl::Status EncodeGradient(const compress::TableCodec& codec, std::uint64_t block, double rate) {
    LEEWAY_ASSIGN_OR_RETURN(const FeedbackBlock open, plain_->OpenFeedback(block, true));
    Whole& whole = whole_[block];
    whole = {.version = open.steps + 1, .codec = codec.id, .message = {}};
    const bool carries = codec.server_feedback && rate != 0;
    std::vector<float> carried = ValuesOf(open);
    if (!std::isfinite(Reduce().max_abs(carried.data(), carried.size()))) return absl::OkStatus();
    const bool added = carries && AddSlot(open, rate, &carried);
    const EncodeTerms terms = TermsFor(codec, block, open);
    const absl::StatusOr<std::size_t> bytes = codec.codec->Encode(carried.data(), terms, encoded_);
    const bool encoded = bytes.ok() && *bytes < open.elements * SizeOf(spec_.dtype);
    std::vector<float> sent = carried;
    if (encoded) {
      const auto message = std::span<const std::byte>(encoded_).first(*bytes);
      LEEWAY_RETURN_IF_ERROR(codec.codec->Decode(message, terms.shape, sent.data()));
      whole.message = runtime::Buffer::CopyOf(message.data(), message.size());
    }
    StoreValues(sent, open.writable);
    if (!carries) return absl::OkStatus();
    if (added) std::fill_n(open.slot, open.elements, 0.0f);
    HoldBack(block, open, rate, carried, sent);
    return absl::OkStatus();
  }

  // Of a lossless codec: the block as it is.
  void EncodeWhole(const compress::TableCodec& codec, std::uint64_t block,
                   const PullResult& plain) {
    Whole& whole = whole_[block];
    const std::uint64_t version = plain_->StepsOf(block) + 1;
    if (whole.version == version && whole.codec == codec.id) return;
    const runtime::Buffer& values = plain.payload[0];
    const FeedbackBlock open{.elements = plain.elements, .steps = version - 1};
    const EncodeTerms terms = TermsFor(codec, block, open);
    const absl::StatusOr<std::size_t> bytes = codec.codec->Encode(values.data(), terms, encoded_);
    whole = {.version = version, .codec = codec.id, .message = {}};
    if (bytes.ok() && *bytes > 0 && *bytes < values.size()) {
      whole.message = runtime::Buffer::CopyOf(encoded_.data(), *bytes);
    }
  }

  PullResult WithMessage(std::uint64_t block, PullResult result) const {
    const auto found = whole_.find(block);
    if (found == whole_.end() || found->second.message.empty() ||
        found->second.version != plain_->StepsOf(block) + 1) {
      return result;
    }
    const Whole& whole = found->second;
    result.coded = true;
    result.parts = {{.version = whole.version,
                     .bytes = whole.message.size(),
                     .codec = whole.codec,
                     .whole = true}};
    result.payload[0] = whole.message;
    return result;
  }

  absl::StatusOr<PullResult> PullVersion(const PullView& pull) {
    LEEWAY_ASSIGN_OR_RETURN(PullResult result, plain_->Pull(pull));  // it checks what is asked for
    Versions& versions = versions_[pull.block];
    const std::uint64_t block_bytes = result.elements * sizeof(float);
    result.coded = true;
    if (versions.version() != plain_->StepsOf(pull.block) + 1) {
      result.slowest = versions.slowest();
      if (pull.have == versions.version()) versions.NoteInVain();
    }
    std::vector<runtime::Buffer> messages;
    if (pull.have != 0 &&
        versions.MessagesSince(pull.have, block_bytes, &result.parts, &messages)) {
      result.payload[0] = Joined(messages);
      return result;
    }
    LEEWAY_ASSIGN_OR_RETURN(result.payload[0], plain_->FeedbackView(pull.block));
    result.parts = {{.version = versions.version(), .bytes = block_bytes, .whole = true}};
    return result;
  }

  TableSpec spec_;
  const StoreContext context_;
  const compress::TableCodecs codecs_;
  const bool versioned_;  // replies are differences under one of the codecs
  PushDecoder decoder_;
  const std::unique_ptr<ShardStore> plain_;
  absl::flat_hash_map<std::uint64_t, Versions> versions_;  // by block
  absl::flat_hash_map<std::uint64_t, Whole> whole_;        // by block
  std::map<std::uint64_t, double> held_back_;              // by block: StoreStats::feedback_squares
  std::vector<std::byte> encoded_;
  std::vector<float> codec_state_;
};

}  // namespace

std::unique_ptr<ShardStore> NewCodedStore(const TableSpec& spec, const StoreContext& context,
                                          const Updater* updater, compress::TableCodecs codecs,
                                          std::unique_ptr<ShardStore> plain) {
  return std::make_unique<CodedStore>(spec, context, updater, std::move(codecs), std::move(plain));
}

}  // namespace leeway::ps
