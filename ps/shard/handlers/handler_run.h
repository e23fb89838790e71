// One run of a shard handler, for one call: what it reads of the shard, and the updates that it
// asks for. It changes nothing itself.
//
// Used by the head alone, on the data thread's loop. An update is checked against its store when it
// is asked for. Updates of rows of one table are put together, and no row or block is there twice:
// so each target of the call has one update, and what holds of it now holds when all are applied.
#ifndef LEEWAY_PS_SHARD_HANDLERS_HANDLER_RUN_H_
#define LEEWAY_PS_SHARD_HANDLERS_HANDLER_RUN_H_

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "leeway/shard_handler.h"
#include "ps/shard/state/shard_state.h"
#include "ps/store/shard_store.h"
#include "ps/table/inbound.h"
#include "ps/table/table.h"

namespace leeway::ps {

class HandlerRun final : public ShardCall {
 public:
  // `called`: the table that the call names. All of them outlive this.
  HandlerRun(ShardState* state, const Table& called, const Inbound& call);

  // Runs the handler that the call names. Its answer, or the error that its worker is to be told.
  absl::StatusOr<runtime::Buffer> Run();
  // Its updates then, each as a push of the caller.
  const std::vector<Inbound>& pushes() const { return pushes_; }

  // ShardCall
  absl::StatusOr<TableSpec> Spec(absl::string_view table) override;
  bool HasKey(std::uint64_t key) const override;
  absl::StatusOr<std::vector<ShardBlock>> Blocks(absl::string_view table) override;

 private:
  struct Update {
    const Table* table = nullptr;
    std::uint64_t block = 0;
    std::optional<double> learning_rate;
    std::string keys = {}, widths = {}, values = {};  // bytes
  };

  absl::Status ReadBlock(absl::string_view table, std::uint64_t block, DType dtype, void* values,
                         std::size_t size) override;
  absl::Status PushBlock(absl::string_view table, std::uint64_t block, DType dtype,
                         const void* values, std::size_t size,
                         std::optional<double> learning_rate) override;
  absl::Status ReadRows(absl::string_view table, std::span<const std::uint64_t> keys, DType dtype,
                        void* values, std::size_t size) override;
  absl::Status ReadRagged(absl::string_view table, std::span<const std::uint64_t> keys, DType dtype,
                          std::vector<std::uint32_t>* widths, const Resize& resize) override;
  absl::Status PushRows(TableKind kind, absl::string_view table,
                        std::span<const std::uint64_t> keys, std::span<const std::uint32_t> widths,
                        DType dtype, const void* values, std::size_t size,
                        std::optional<double> learning_rate) override;

  absl::StatusOr<runtime::Buffer> Run(absl::string_view name, const ShardHandler& handler);
  absl::StatusOr<const Table*> Find(absl::string_view name);
  absl::StatusOr<const Table*> Find(absl::string_view name, TableKind kind, DType dtype);
  absl::StatusOr<PullResult> Pull(const Table& table, PullView view);
  absl::Status CheckUpdate(const Table& table, const PushView& push);
  absl::Status NoteTargets(const Table& table, std::span<const std::uint64_t> targets);
  Inbound AsPush(const Update& update) const;

  ShardState* const state_;
  const Table* found_;  // the last one
  const Inbound& call_;
  std::vector<Update> updates_;
  std::vector<Inbound> pushes_;
  std::set<std::pair<std::uint32_t, std::uint64_t>> targets_;  // tables, with keys or blocks
  std::uint64_t bytes_ = 0;                                    // of all updates
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_SHARD_HANDLERS_HANDLER_RUN_H_
