#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "proto/messages/layout.h"
#include "ps/store/checks.h"
#include "ps/store/dense/dense_stores.h"
#include "ps/store/feedback.h"
#include "ps/store/initial_values.h"
#include "ps/store/memory/block_pool.h"
#include "ps/store/memory/shared_bytes.h"
#include "ps/store/update_run.h"
#include "runtime/base/status_macros.h"

namespace leeway::ps {
namespace {

template <class Stored>
class DenseStore final : public ShardStore {
 public:
  DenseStore(const TableSpec& spec, const StoreContext& context, const Updater* updater)
      : spec_(spec),
        context_(context),
        updater_(updater),
        initial_(spec),
        slots_(StateSlots(spec, *updater)),
        feedback_(FeedbackSlots(spec) > 0),
        feedback_is_value_(FeedbackIsValue(spec)),
        num_blocks_(proto::NumBlocks(spec, context.block_bytes)),
        share_(context.memory) {}

  void UseSettings(const TableSpec& spec, const Updater* updater) override {
    spec_ = spec;
    updater_ = updater;
  }

  absl::Status Check(const PushView& push) const override {
    LEEWAY_RETURN_IF_ERROR(CheckBlock(push.block));
    if (!push.keys.empty() || !push.widths.empty()) {
      return Invalid(spec_, "it is dense, but the push has keys or widths");
    }
    const std::uint64_t bytes = ElementsIn(push.block) * sizeof(Stored);
    if (push.values.size() != bytes) {
      return Invalid(spec_, "a push of ", push.values.size(), " bytes to block ", push.block,
                     ", which has ", Count(ElementsIn(push.block), "element"), " of ",
                     sizeof(Stored), " bytes each");
    }
    return CheckRate(spec_, push.learning_rate);
  }

  absl::StatusOr<bool> WouldOverflow(const PushView& push) const override {
    LEEWAY_RETURN_IF_ERROR(Check(push));
    bool overflow = false;
    const Trial trial = TrialOf(push.block);
    const Stored* const values = push.values.template as<Stored>().data();
    ApplyToRun<Stored>(*updater_, trial.run, {&values, 1},
                       TermsOf(spec_, {&push, 1}, 1, &overflow));
    return overflow;
  }

  absl::StatusOr<bool> SumWouldOverflow(const AggregatedPush& sum) const override {
    LEEWAY_RETURN_IF_ERROR(CheckSum(sum));
    bool overflow = false;
    const Trial trial = TrialOf(sum.block);
    ApplyCombinedToRun<Stored>(*updater_, trial.run, sum.values.template as<Compute>().data(),
                               RateOrTables(spec_, sum.learning_rate), &overflow);
    return overflow;
  }

  absl::Status CheckMemory(const PushView& push) const override {
    return CheckMemoryOf(push.block, /*state=*/true);
  }

  absl::Status Apply(const PushView& push) override { return Update({&push, 1}, 1, nullptr); }

  absl::Status Apply(const PushView& push, bool* nonfinite) override {
    *nonfinite = false;
    return Update({&push, 1}, 1, nonfinite);
  }

  absl::Status ApplyCombined(std::span<const PushView> pushes,
                             std::uint32_t contributors) override {
    if (pushes.empty()) return absl::OkStatus();
    return Update(pushes, contributors, nullptr);
  }

  absl::StatusOr<AggregatedPush> Combine(std::span<const PushView> pushes,
                                         std::uint32_t contributors) const override {
    if (pushes.empty()) return Invalid(spec_, "there are no pushes to combine");
    LEEWAY_ASSIGN_OR_RETURN(const std::vector<const Stored*> values, CheckAll(pushes));
    AggregatedPush aggregate;
    aggregate.block = pushes.front().block;
    aggregate.learning_rate = LastRate(pushes);
    const std::uint64_t elements = ElementsIn(aggregate.block);
    std::byte* data = nullptr;
    aggregate.values = runtime::Buffer::Allocate(elements * sizeof(Compute), &data);
    CombineRun<Stored>(*updater_, values, elements,
                       TermsOf(spec_, pushes, contributors, &overflowed_),
                       reinterpret_cast<Compute*>(data));
    return aggregate;
  }

  absl::Status ApplyAggregate(const AggregatedPush& aggregate) override {
    LEEWAY_RETURN_IF_ERROR(CheckSum(aggregate));
    const Writing writing = Write(aggregate.block);
    ApplyCombinedToRun<Stored>(*updater_, writing.run,
                               aggregate.values.template as<Compute>().data(),
                               RateOrTables(spec_, aggregate.learning_rate), &overflowed_);
    return absl::OkStatus();
  }

  absl::StatusOr<PullResult> Pull(const PullView& pull) override {
    LEEWAY_RETURN_IF_ERROR(CheckBlock(pull.block));
    if (!pull.keys.empty()) return Invalid(spec_, "it is dense, but the pull has keys");
    const std::uint64_t elements = ElementsIn(pull.block);
    if (pull.elements != elements) {
      return Invalid(spec_, "a pull of ", Count(pull.elements, "element"), " from block ",
                     pull.block, ", which has ", elements);
    }
    LEEWAY_RETURN_IF_ERROR(CheckMemoryOf(pull.block, /*state=*/false));
    PullResult result;
    result.payload.push_back(Touch(pull.block).values.View());
    result.elements = elements;
    return result;
  }

  StoreSnapshot FreezeSince(std::uint64_t generation) override {
    StoreSnapshot snapshot{.pieces = {}, .generation = generation_++};
    for (const auto& [index, block] : blocks_) {
      if (block.steps == 0 || block.generation <= generation) continue;
      FrozenPiece piece{.kind = TableKind::kDense, .dtype = spec_.dtype, .block = index};
      piece.elements = ElementsIn(index);
      piece.state_slots = slots_;
      piece.values = block.values.View();
      if (!block.state.empty()) piece.state = block.state.View();
      piece.steps = runtime::Buffer::CopyOf(&block.steps, sizeof(block.steps));
      snapshot.pieces.push_back(std::move(piece));
    }
    std::sort(snapshot.pieces.begin(), snapshot.pieces.end(),
              [](const FrozenPiece& a, const FrozenPiece& b) { return a.block < b.block; });
    return snapshot;
  }

  absl::Status Load(const FrozenPiece& piece) override {
    LEEWAY_RETURN_IF_ERROR(CheckPiece(spec_, *updater_, piece));
    LEEWAY_RETURN_IF_ERROR(CheckBlock(piece.block));
    if (piece.elements != ElementsIn(piece.block)) {
      return Invalid(spec_, "a piece of ", Count(piece.elements, "element"), " for block ",
                     piece.block, ", which has ", ElementsIn(piece.block));
    }
    ForEachRow(piece, [this](const FrozenRow& row) { Put(row); });
    return absl::OkStatus();
  }

  absl::StatusOr<std::uint64_t> LoadElsewhere(const FrozenPiece& piece,
                                              std::uint64_t block_bytes) override {
    if (proto::BlockElements(spec_.dtype, block_bytes) !=
        proto::BlockElements(spec_.dtype, context_.block_bytes)) {
      return Invalid(spec_, "its blocks have ", context_.block_bytes,
                     " bytes here, but what is loaded was made with blocks of ", block_bytes,
                     "; start the cluster with LEEWAY_BLOCK_BYTES=", block_bytes);
    }
    if (piece.block < num_blocks_ && ShardOf(piece.block) != context_.shard) return 0;
    LEEWAY_RETURN_IF_ERROR(Load(piece));
    return piece.steps.as<std::uint64_t>()[0] == 0 ? 0 : 1;
  }

  absl::StatusOr<FeedbackBlock> OpenFeedback(std::uint64_t index, bool write_values) override {
    LEEWAY_RETURN_IF_ERROR(CheckBlock(index));
    Block& block = Touch(index);
    FeedbackBlock open{.elements = ElementsIn(index), .steps = block.steps};
    if (feedback_ && block.state.empty()) MakeState(block, open.elements);
    const auto own = [&](SharedBytes& bytes) {
      const SharedBytes before = Renew(bytes);
      if (!before.empty()) std::memcpy(bytes.data(), before.data(), bytes.size());
    };
    if (feedback_) own(block.state);
    if (write_values) own(block.values);
    if (block.steps > 0) block.generation = generation_;
    open.values = block.values.data();
    if (write_values) open.writable = block.values.data();
    if constexpr (std::is_same_v<Compute, float>) {
      if (feedback_) open.slot = SlotOf(block, open.elements);
    }
    return open;
  }

  absl::StatusOr<runtime::Buffer> FeedbackView(std::uint64_t index) override {
    LEEWAY_RETURN_IF_ERROR(CheckBlock(index));
    Block& block = Touch(index);
    const std::uint64_t elements = ElementsIn(index);
    if (block.state.empty()) MakeState(block, elements);
    const std::size_t bytes = elements * sizeof(Compute);
    return block.state.View((slots_ - 1) * bytes, bytes);
  }

  std::uint64_t StepsOf(std::uint64_t index) const override {
    const auto found = blocks_.find(index);
    return found == blocks_.end() ? 0 : found->second.steps;
  }

  StoreStats stats() const override {
    StoreStats stats = stats_;
    stats.memory_bytes = stats.value_bytes;
    return stats;
  }

 private:
  using Compute = ComputeOf<Stored>;

  struct Block {
    SharedBytes values;
    SharedBytes state;  // slot after slot; empty before the first push
    std::uint64_t steps = 0;
    std::uint64_t generation = 0;  // of the newest write
  };

  // A block that is being updated, and what readers still have of it as it was.
  struct Writing {
    SharedBytes values_before;
    SharedBytes state_before;
    StoredRun<Stored> run;
  };

  absl::Status CheckSum(const AggregatedPush& sum) const {
    LEEWAY_RETURN_IF_ERROR(CheckBlock(sum.block));
    if (!sum.keys.empty() || !sum.widths.empty()) {
      return Invalid(spec_, "it is dense, but the aggregate has keys or widths");
    }
    return CheckAggregate<Compute>(spec_, sum, ElementsIn(sum.block));
  }

  // An update of a copy of a block.
  struct Trial {
    std::vector<Stored> values;
    std::vector<Compute> state;
    StoredRun<Stored> run;
  };

  Trial TrialOf(std::uint64_t index) const {
    const std::uint64_t elements = ElementsIn(index);
    const auto found = blocks_.find(index);
    const bool has_values = found != blocks_.end() && !found->second.values.empty();
    const bool has_state = found != blocks_.end() && !found->second.state.empty();
    Trial trial;
    trial.values.resize(elements);
    trial.state.resize(slots_ * elements);
    if (has_values) {
      std::copy_n(reinterpret_cast<const Stored*>(found->second.values.data()), elements,
                  trial.values.data());
    } else {
      FillValues(index, elements, trial.values.data());
    }
    if (has_state) {
      std::copy_n(reinterpret_cast<const Compute*>(found->second.state.data()), trial.state.size(),
                  trial.state.data());
    } else {
      FillState(elements, trial.state.data());
    }
    trial.run = {trial.values.data(),
                 trial.values.data(),
                 trial.state.data(),
                 trial.state.data(),
                 elements,
                 1 + (found == blocks_.end() ? 0 : found->second.steps)};
    return trial;
  }

  absl::Status Update(std::span<const PushView> pushes, std::uint32_t contributors,
                      bool* nonfinite) {
    LEEWAY_ASSIGN_OR_RETURN(const std::vector<const Stored*> values, CheckAll(pushes));
    const Writing writing = Write(pushes.front().block);
    UpdateTerms terms = TermsOf(spec_, pushes, contributors, &overflowed_);
    terms.nonfinite = nonfinite;
    ApplyToRun<Stored>(*updater_, writing.run, values, terms);
    return absl::OkStatus();
  }

  // Whether all pushes fit, and are of one block; their values.
  absl::StatusOr<std::vector<const Stored*>> CheckAll(std::span<const PushView> pushes) const {
    std::vector<const Stored*> values;
    for (const PushView& push : pushes) {
      LEEWAY_RETURN_IF_ERROR(Check(push));
      if (push.block != pushes.front().block) {
        return Invalid(spec_, "pushes to blocks ", pushes.front().block, " and ", push.block,
                       " cannot be combined");
      }
      values.push_back(push.values.template as<Stored>().data());
    }
    return values;
  }

  std::uint32_t ShardOf(std::uint64_t block) const {
    return proto::ShardOfBlock(context_.table, block, context_.num_shards);
  }

  std::uint64_t StateBytes(std::uint64_t elements) const {
    return std::uint64_t{slots_} * elements * sizeof(Compute);
  }

  std::uint64_t ElementsIn(std::uint64_t block) const {
    return proto::ElementsInBlock(spec_, context_.block_bytes, block);
  }

  absl::Status CheckBlock(std::uint64_t block) const {
    if (block >= num_blocks_) {
      return absl::OutOfRangeError(absl::StrCat("table '", spec_.name, "': block ", block,
                                                " was asked for, but it has ",
                                                Count(num_blocks_, "block")));
    }
    const std::uint32_t shard = ShardOf(block);
    if (shard == context_.shard) return absl::OkStatus();
    return Invalid(spec_, "block ", block, " was asked for in shard ", context_.shard, " of ",
                   context_.num_shards, ", but belongs to shard ", shard);
  }

  // Before the block comes into being, or its state.
  absl::Status CheckMemoryOf(std::uint64_t index, bool state) const {
    const auto found = blocks_.find(index);
    const bool has_values = found != blocks_.end() && !found->second.values.empty();
    const bool has_state = found != blocks_.end() && !found->second.state.empty();
    if (has_values && (has_state || !state)) return absl::OkStatus();
    if (!CheckBlock(index).ok()) return absl::OkStatus();  // a pull of it fails with the reason
    const std::uint64_t elements = ElementsIn(index);
    return share_.Check(spec_, (has_values ? 0 : elements * sizeof(Stored)) +
                                   (has_state || !state ? 0 : StateBytes(elements)));
  }

  Block& Touch(std::uint64_t index) {
    Block& block = blocks_[index];
    if (block.values.empty()) {
      const std::uint64_t elements = ElementsIn(index);
      MakeValues(block, elements);
      FillValues(index, elements, reinterpret_cast<Stored*>(block.values.data()));
    }
    return block;
  }

  void FillValues(std::uint64_t index, std::uint64_t elements, Stored* to) const {
    initial_.Fill(index * proto::BlockElements(spec_.dtype, context_.block_bytes), elements, to);
  }
  // All of the state but the feedback.
  void FillState(std::uint64_t elements, Compute* state) const {
    for (int slot = 0; slot < updater_->state_slots(); ++slot) {
      std::fill_n(state + static_cast<std::size_t>(slot) * elements, elements,
                  static_cast<Compute>(updater_->initial_state(slot)));
    }
  }

  SharedBytes NewBytes(std::size_t bytes) const { return BlockPool::New(context_.pool, bytes); }

  // To be written by the caller.
  void MakeValues(Block& block, std::uint64_t elements) {
    block.values = NewBytes(elements * sizeof(Stored));
    ++stats_.blocks;
    stats_.value_bytes += block.values.size();
    share_.Set(stats_.value_bytes);
  }

  void MakeState(Block& block, std::uint64_t elements) {
    block.state = NewBytes(StateBytes(elements));
    FillState(elements, reinterpret_cast<Compute*>(block.state.data()));
    if (feedback_) FillFeedback(block, elements);
    stats_.value_bytes += block.state.size();
    share_.Set(stats_.value_bytes);
  }

  // Feedback begins as a residual of zeros, or as the block itself.
  void FillFeedback(Block& block, std::uint64_t elements) {
    Compute* const slot = SlotOf(block, elements);
    if (!feedback_is_value_) {
      std::fill_n(slot, elements, Compute{});
    } else if constexpr (std::is_same_v<Compute, float>) {
      ps::Load(reinterpret_cast<const Stored*>(block.values.data()), elements, slot);
    }
  }

  // Behind the updater's.
  Compute* SlotOf(Block& block, std::uint64_t elements) const {
    return reinterpret_cast<Compute*>(block.state.data()) + (slots_ - 1) * elements;
  }

  // New bytes in the place of those that a snapshot or reader still has.
  SharedBytes Fresh(const SharedBytes& bytes) const {
    return bytes.Writable() ? SharedBytes() : NewBytes(bytes.size());
  }
  // The same, put into their place; what was there is returned.
  SharedBytes Renew(SharedBytes& bytes) const {
    if (bytes.Writable()) return {};
    return std::exchange(bytes, NewBytes(bytes.size()));
  }

  Writing Write(std::uint64_t index) {
    Block& block = Touch(index);
    const std::uint64_t elements = ElementsIn(index);
    if (block.state.empty()) MakeState(block, elements);
    block.generation = generation_;
    const auto* values = reinterpret_cast<const Stored*>(block.values.data());
    const auto* state = reinterpret_cast<const Compute*>(block.state.data());
    Writing writing;
    // Both, before either takes the place of what is there: there may be no memory for them.
    SharedBytes new_values = Fresh(block.values);
    SharedBytes new_state = Fresh(block.state);
    if (!new_values.empty())
      writing.values_before = std::exchange(block.values, std::move(new_values));
    if (!new_state.empty()) writing.state_before = std::exchange(block.state, std::move(new_state));
    if (feedback_ && !writing.state_before.empty()) {  // no update writes it
      const std::size_t before = (slots_ - 1) * elements * sizeof(Compute);
      std::memcpy(block.state.data() + before, writing.state_before.data() + before,
                  elements * sizeof(Compute));
    }
    if (!writing.values_before.empty() || !writing.state_before.empty()) ++stats_.copies_on_write;
    writing.run = {values,   reinterpret_cast<Stored*>(block.values.data()),
                   state,    reinterpret_cast<Compute*>(block.state.data()),
                   elements, ++block.steps};
    return writing;
  }

  void Put(const FrozenRow& row) {
    Block& block = blocks_[row.key];
    if (block.values.empty()) MakeValues(block, row.width);
    if (block.state.empty()) MakeState(block, row.width);
    Renew(block.values);
    Renew(block.state);
    std::copy(row.values.begin(), row.values.end(), block.values.data());
    std::copy(row.state.begin(), row.state.end(), block.state.data());
    block.steps = row.steps;
    block.generation = generation_;
  }

  TableSpec spec_;
  const StoreContext context_;
  const Updater* updater_;
  const InitialValues initial_;
  const std::uint32_t slots_;     // of state, the feedback's included
  const bool feedback_;           // whether the last of them is that
  const bool feedback_is_value_;  // ps/store/feedback.h
  const std::uint64_t num_blocks_;
  absl::flat_hash_map<std::uint64_t, Block> blocks_;
  std::uint64_t generation_ = 1;  // of what is written now
  StoreStats stats_;
  TableMemoryShare share_;
};

}  // namespace

std::unique_ptr<ShardStore> NewDenseStore(const TableSpec& spec, const StoreContext& context,
                                          const Updater* updater) {
  return VisitStored(spec.dtype, [&]<class Stored>(Stored*) -> std::unique_ptr<ShardStore> {
    return std::make_unique<DenseStore<Stored>>(spec, context, updater);
  });
}

}  // namespace leeway::ps
