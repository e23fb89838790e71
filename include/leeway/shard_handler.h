// A shard handler is code of yours that a server runs within one shard: it reads the shard's tables
// and updates them, all or nothing.
//
//     // Takes `cents` of an account, if there are as many.
//     absl::StatusOr<std::string> Withdraw(ShardCall& call) {
//       std::uint64_t account = …; std::int64_t cents = …;      // parsed from call.request()
//       std::int64_t balance = 0;
//       absl::Status status = call.Read("accounts", {&account, 1}, std::span(&balance, 1));
//       if (balance < cents) return absl::FailedPreconditionError("not enough");
//       const std::int64_t change = -cents;
//       status = call.Push("accounts", {&account, 1}, std::span(&change, 1));
//       …
//     }
//     RegisterShardHandler("withdraw", Withdraw);               // in the server, or its plugin
//     worker->Wait(accounts.Call(account, "withdraw", request, &answer));          // in a worker
//
// What a call is to its worker. It is a request of its shard, like a push (leeway/worker.h,
// Table::Call): it takes effect once, whatever is sent again and whichever server dies, and in
// order with this worker's other operations on the shard's tables that are not BSP. Its updates and
// its answer are on every replica of the shard before the worker has the answer.
//
// What is replicated are the updates and the answer, not the call: replicas, and programs that read
// the checkpoints, need no handler, and handlers may draw random numbers or look at the clock. When
// a server dies in the midst of a call, the next head runs the handler again, and the updates of
// the first run have never been: what a handler does outside the tables may happen twice.
//
// Visibility. A handler reads the tables as they are when it runs, whatever their consistency: all
// that has been applied, of however late or early clocks, and of BSP tables the clocks that have
// closed. No bound on staleness holds for it, and it waits for nobody. Its updates take effect
// together when it has returned; its own reads do not show them. No other call or push of the shard
// comes between its reads and its updates. Updates are made by the table's updater, with the rates
// of the caller's clock, at once: they are not collected, weighted or compensated for delay.
//
// BSP tables can be read and not updated: they change where their clocks close, and nowhere else
// (docs/consistency.md). Give a table that handlers update `ssp:S` or `asp`.
#ifndef LEEWAY_SHARD_HANDLER_H_
#define LEEWAY_SHARD_HANDLER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "leeway/dtype.h"
#include "leeway/table_spec.h"

namespace leeway {

// A block of a dense table: a range of its elements, row-major.
struct ShardBlock {
  std::uint64_t index = 0;
  std::uint64_t first = 0;     // element
  std::uint64_t elements = 0;  // LEEWAY_BLOCK_BYTES, and the last one as many as are left
};

// One call of a handler: what was asked, and the shard's tables. It lives on the data thread, until
// the handler returns.
//
// Errors of reads and updates name the table. NOT_FOUND: there is no such table. INVALID_ARGUMENT
// or OUT_OF_RANGE: another kind of table or dtype, a span of another length, a key or block that is
// not of this shard, or twice in one call's updates, values that the table refuses
// (TableSpec::nonfinite). FAILED_PRECONDITION: an update of a BSP table. RESOURCE_EXHAUSTED: a
// limit (docs/limits.md). An update that failed is none; the handler may go on without it.
class ShardCall {
 public:
  virtual ~ShardCall() = default;
  ShardCall(const ShardCall&) = delete;
  ShardCall& operator=(const ShardCall&) = delete;

  std::uint32_t worker_rank() const { return worker_rank_; }
  std::uint64_t clock() const { return clock_; }  // the worker's when it called
  std::uint32_t shard() const { return shard_; }
  const std::string& table() const { return table_; }  // that the worker has called
  absl::string_view request() const { return request_; }

  virtual absl::StatusOr<TableSpec> Spec(absl::string_view table) = 0;
  // Whether rows of that key, of all sparse and ragged tables, are in this shard.
  virtual bool HasKey(std::uint64_t key) const = 0;
  // Of a dense table: the blocks in this shard, in order. Small tables have none in most shards.
  virtual absl::StatusOr<std::vector<ShardBlock>> Blocks(absl::string_view table) = 0;

  // ---- dense: whole blocks ----
  template <class T>
  absl::Status ReadBlock(absl::string_view table, std::uint64_t block, std::span<T> values) {
    return ReadBlock(table, block, DTypeOf<T>, values.data(), values.size());
  }
  template <class T>
  absl::Status PushBlock(absl::string_view table, std::uint64_t block, std::span<const T> values,
                         std::optional<double> learning_rate = std::nullopt) {
    return PushBlock(table, block, DTypeOf<T>, values.data(), values.size(), learning_rate);
  }

  // ---- sparse: values is [keys.size()][row_width] ----
  // A key that was never pushed reads the initializer's value, and gets no row.
  template <class T>
  absl::Status Read(absl::string_view table, std::span<const std::uint64_t> keys,
                    std::span<T> values) {
    return ReadRows(table, keys, DTypeOf<T>, values.data(), values.size());
  }
  template <class T>
  absl::Status Push(absl::string_view table, std::span<const std::uint64_t> keys,
                    std::span<const T> values, std::optional<double> learning_rate = std::nullopt) {
    return PushRows(TableKind::kSparse, table, keys, {}, DTypeOf<T>, values.data(), values.size(),
                    learning_rate);
  }

  // ---- ragged: widths[i] elements for keys[i], one after the other; see Table ----
  template <class T>
  absl::Status ReadRagged(absl::string_view table, std::span<const std::uint64_t> keys,
                          std::vector<std::uint32_t>* widths, std::vector<T>* values) {
    return ReadRagged(table, keys, DTypeOf<T>, widths, [values](std::size_t size) -> void* {
      values->resize(size);
      return values->data();
    });
  }
  template <class T>
  absl::Status PushRagged(absl::string_view table, std::span<const std::uint64_t> keys,
                          std::span<const std::uint32_t> widths, std::span<const T> values,
                          std::optional<double> learning_rate = std::nullopt) {
    return PushRows(TableKind::kRagged, table, keys, widths, DTypeOf<T>, values.data(),
                    values.size(), learning_rate);
  }

 protected:
  using Resize = std::function<void*(std::size_t elements)>;

  ShardCall() = default;
  virtual absl::Status ReadBlock(absl::string_view table, std::uint64_t block, DType dtype,
                                 void* values, std::size_t size) = 0;
  virtual absl::Status PushBlock(absl::string_view table, std::uint64_t block, DType dtype,
                                 const void* values, std::size_t size,
                                 std::optional<double> learning_rate) = 0;
  virtual absl::Status ReadRows(absl::string_view table, std::span<const std::uint64_t> keys,
                                DType dtype, void* values, std::size_t size) = 0;
  virtual absl::Status ReadRagged(absl::string_view table, std::span<const std::uint64_t> keys,
                                  DType dtype, std::vector<std::uint32_t>* widths,
                                  const Resize& resize) = 0;
  virtual absl::Status PushRows(TableKind kind, absl::string_view table,
                                std::span<const std::uint64_t> keys,
                                std::span<const std::uint32_t> widths, DType dtype,
                                const void* values, std::size_t size,
                                std::optional<double> learning_rate) = 0;

  std::uint32_t worker_rank_ = 0, shard_ = 0;
  std::uint64_t clock_ = 0;
  std::string table_;
  absl::string_view request_;
};

// Returns the answer, of at most 1 MiB, or an error: then the call changes nothing. An error
// travels to the worker with its code and the first 512 bytes of its text, but for the codes that
// say something of a request itself (ABORTED, CANCELLED, DEADLINE_EXCEEDED, UNAVAILABLE, UNKNOWN):
// these arrive as FAILED_PRECONDITION, and the text names them. What it throws is an error, too:
// INTERNAL, and RESOURCE_EXHAUSTED for want of memory. Runs on the data thread that owns the shard,
// on several threads at a time for several shards, so it must not block.
using ShardHandler = std::function<absl::StatusOr<std::string>(ShardCall&)>;

// ALREADY_EXISTS if the name is taken by another shard handler. Any thread. Every server of the
// cluster has to register the same handlers: a worker's call goes to whichever leads the shard.
absl::Status RegisterShardHandler(absl::string_view name, ShardHandler handler);

}  // namespace leeway

#endif  // LEEWAY_SHARD_HANDLER_H_
