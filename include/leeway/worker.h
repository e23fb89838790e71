// Worker is the client library's class: connect, open tables, push, pull, wait, clock.
//
//     absl::StatusOr<std::unique_ptr<Worker>> worker = Worker::Connect();
//     absl::StatusOr<Table> table = (*worker)->CreateTable(TableSpec::Dense("w", {784, 10}));
//     absl::Status status = (*worker)->Wait(table->Pull(std::span<float>(w)));
//
// Threads. Every call of Worker and Table may be made from any thread. Operations of one worker
// on one element of a table take effect in the order in which they were submitted. Clock() ends the
// iteration for the whole worker, so threads that share a worker agree among themselves when to
// call it.
//
// Buffers. The library copies nothing on the way out: a span given to Push, Pull or PushPull, and
// the keys, must stay alive and (for a push) unchanged until the ticket has completed, unless
// Options::copy is set. A pull writes into the span before its ticket completes. A push from memory
// of Worker::Allocate is not copied to a server of the same machine either.
//
// Priorities. Of the operations that wait to be sent, in either direction, those with the highest
// Options::priority go first; equal ones go in the order in which they were submitted. The library
// gives the network only a few milliseconds' worth in advance, and sends large tensors block by
// block (LEEWAY_BLOCK_BYTES), so that an urgent operation overtakes a large one in its midst. Give
// a model's layers 0, -1, -2, … from the first one on, for Push and Pull alike: the next iteration
// begins with the first layer, while the last ones are still under way. Order on one element is
// kept: an operation raises earlier ones on the same block of a dense table, or on the same shard
// of another table, to its own priority. Clock() includes the operations that wait, as always.
//
// Failures. When a server dies whose shards have other replicas (Config::replication), operations
// wait for the next head and go on; nothing that was accepted is lost, and nothing is applied
// twice. The worker keeps pushes to a BSP table, too, until every worker has ended their iteration
// (up to Config::held_bytes_max): they are lost only if this worker dies before that together with
// the server. When the last replica of a shard dies, operations on it fail with UNAVAILABLE. While
// the scheduler is away operations go on; CreateTable, OpenTable, Barrier and Checkpoint wait for
// it.
//
// Readers. With Config::read_only (LEEWAY_READ_ONLY=1) this is a client that only pulls: it does
// not count as a worker, nothing waits for it, and it may come and go at any time, once the cluster
// is complete. It opens existing tables. Its pulls are answered at once with what has been applied,
// whatever the table's consistency (docs/consistency.md); Info() returns the clock of that. Calls
// that would change anything or wait for others (Push, PushPull, Clock, Barrier, …) fail at once
// with FAILED_PRECONDITION.
//
// Deadlines. Every operation has one (Options::timeout, else Config::request_timeout), counted
// from its submission. Past it the ticket fails with DEADLINE_EXCEEDED, or with UNKNOWN if it is a
// push that was under way, and names the servers or workers that did not answer. With a timeout of
// 0 or less no operation begins.
//
// Failed pushes. UNKNOWN, and no other code, says of a Push or PushPull that all or a part of it
// may have been applied, or may be yet: to push it again may double it. The text says how many of
// its parts (a block, or the rows of a shard) servers have taken. After any other error nothing of
// it has been applied or will be: it is safe to push it again (docs/consistency.md).
//
// Errors of every call, beside those at each call. INVALID_ARGUMENT: an argument is wrong (length,
// dtype, keys, NaN that the table refuses). RESOURCE_EXHAUSTED: a limit, or the memory of a server
// or of this process; the text names the setting to change. FAILED_PRECONDITION: the call cannot be
// made now (the worker has left, is a reader, or waits within Options::done). Once the cluster has
// ended, or this worker was declared dead (ABORTED), every call fails with the reason.
//
// fork(). A worker, its tables and its tickets belong to the process that connected. In a child
// every call fails with FAILED_PRECONDITION, and to destroy them, or to exit, touches nothing that
// the parent uses. A child closes its copies of the connections that stand, so that one that lives
// on does not hide the parent's end. It may connect a worker of its own. Memory of Worker::Allocate
// is shared with the parent, as all shared mappings are.
#ifndef LEEWAY_WORKER_H_
#define LEEWAY_WORKER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "leeway/array.h"
#include "leeway/call.h"
#include "leeway/config.h"
#include "leeway/dtype.h"
#include "leeway/model.h"
#include "leeway/table_spec.h"
#include "leeway/ticket.h"

namespace leeway {

namespace worker {
class Client;
class TableState;
}  // namespace worker

// The options of one operation.
struct Options {
  // More than 0, or the operation fails at once; nullopt: Config::request_timeout.
  std::optional<absl::Duration> timeout;
  std::optional<double> learning_rate;  // push: overrides the table's for this push
  bool copy = false;                    // push: copy the data before returning
  int priority = 0;                     // higher goes first; see Priorities above
  // Called once when the operation completes, on the thread that turns the library's loop (possibly
  // the caller's own, within another call). It must not block or wait on tickets. A Worker that is
  // destroyed within it leaves the cluster a little later, on a thread of its own; the end of the
  // process (exit, or the return from main) waits for that, as briefly as ~Worker.
  std::function<void(const absl::Status&)> done;
};

// The state of the table that a pull returned.
struct PullInfo {
  // The values include all pushes of living workers in iterations below this one, from any worker;
  // of later iterations they may include some (with BSP none).
  std::uint64_t clock = 0;
  // Counts the changes that the pulled shards had taken. Of two pulls of the same elements the
  // later one's is never smaller, and equal only if the values are equal. It holds for one life of
  // a cluster: a cluster that starts from a checkpoint counts anew.
  std::uint64_t version = 0;
  // Of a push: requests (one a block or shard) that the table's policy dropped, since they came too
  // late or were too stale (Consistency). They count nowhere, and no error says so.
  std::uint64_t parts_dropped = 0;
  friend bool operator==(const PullInfo&, const PullInfo&) = default;
};

// The counters of a worker. Staleness is counted on every pull reply of every table.
struct WorkerStats {
  std::map<std::uint64_t, std::uint64_t> staleness_histogram;  // clocks → pull replies
  std::uint64_t max_staleness = 0;                             // clocks
  std::uint64_t staleness_violations = 0;  // replies staler than their table allows
  std::uint64_t bytes_pushed = 0;  // payload on the wire: encoded where the table has a codec
  std::uint64_t bytes_pulled = 0;  // payload on the wire, likewise
  std::uint64_t resends = 0;
  std::uint64_t parts_dropped = 0;  // PullInfo::parts_dropped of all pushes
  // By table with error feedback on workers: the Euclidean norm of this worker's residual, i.e. of
  // what its pushes have lost and still carry.
  std::map<std::string, double> residual_norms;
  absl::Duration waited;  // time threads spent in Wait, Clock and Barrier
};

// A table opened by a worker. A small value; copies stand for the same table.
//
// Errors that a call finds at once (a span of the wrong length or dtype) come back through the
// ticket as well, so that there is one place to look.
class Table {
 public:
  Table() = default;
  explicit Table(std::shared_ptr<worker::TableState> state) : state_(std::move(state)) {}

  const TableSpec& spec() const;

  // Dense: the whole tensor, row-major; values.size() == spec().NumElements().
  template <class T>
  Ticket Push(std::span<const T> values, Options options = {}) const {
    return PushDense(DTypeOf<T>, values.data(), values.size(), std::move(options));
  }
  // The content of `values` is undefined until the ticket is done, and if it fails.
  template <class T>
  Ticket Pull(std::span<T> values, Options options = {}) const {
    return PullDense(DTypeOf<T>, values.data(), values.size(), std::move(options));
  }
  // Pushes, then pulls the table's values after that push. In BSP that is after this iteration: the
  // pull is answered once every worker has called Clock(), so call Clock() before Wait(). Waiting
  // without it ends the operation at once: with UNKNOWN if the push was under way, otherwise with
  // FAILED_PRECONDITION. From then on nothing reads or writes the arrays.
  template <class T>
  Ticket PushPull(std::span<const T> values, std::span<T> result, Options options = {}) const {
    return PushPullDense(DTypeOf<T>, values.data(), values.size(), result.data(), result.size(),
                         std::move(options));
  }

  // Sparse: values is [keys.size()][row_width]. Keys in any order, fewer than 2^32. A repeated
  // key's rows are combined before they are sent (added up; the last one wins for `assign`); in a
  // pull every occurrence gets the row. A key that was never pushed pulls the initializer's value.
  template <class T>
  Ticket Push(std::span<const std::uint64_t> keys, std::span<const T> values,
              Options options = {}) const {
    return PushSparse(keys, DTypeOf<T>, values.data(), values.size(), std::move(options));
  }
  template <class T>
  Ticket Pull(std::span<const std::uint64_t> keys, std::span<T> values,
              Options options = {}) const {
    return PullSparse(keys, DTypeOf<T>, values.data(), values.size(), std::move(options));
  }
  template <class T>
  Ticket PushPull(std::span<const std::uint64_t> keys, std::span<const T> values,
                  std::span<T> result, Options options = {}) const {
    return PushPullSparse(keys, DTypeOf<T>, values.data(), values.size(), result.data(),
                          result.size(), std::move(options));
  }

  // Ragged: widths[i] elements for keys[i], one after the other in values. A pull sizes both
  // vectors itself; a key that was never pushed has width 0. Fewer than 2^32 keys, none twice. An
  // `assign` sets a row's width, and so does the row's first push; with any other updater a push of
  // another width is refused.
  template <class T>
  Ticket PushRagged(std::span<const std::uint64_t> keys, std::span<const std::uint32_t> widths,
                    std::span<const T> values, Options options = {}) const {
    return PushRows(keys, widths, DTypeOf<T>, values.data(), values.size(), std::move(options));
  }
  template <class T>
  Ticket PullRagged(std::span<const std::uint64_t> keys, std::vector<std::uint32_t>* widths,
                    std::vector<T>* values, Options options = {}) const {
    auto resize = [values](std::size_t size) -> void* {
      values->resize(size);
      return values->data();
    };
    return PullRows(keys, widths, DTypeOf<T>, resize, std::move(options));
  }

  // Calls the shard handler of that name (leeway/shard_handler.h) on the shard that owns `key`: a
  // key of a sparse or ragged table, an element of a dense one. It may read and update all tables
  // of that shard. Like a push it takes effect once, and in the order of this worker's operations
  // there; UNKNOWN is the only error after which it may have taken effect. `request` is copied.
  // `answer` (may be null) has to live until the ticket is done, and is written only where that is
  // without an error. Errors are those of a push, and the handler's own. NOT_FOUND: the server has
  // no such handler. OUT_OF_RANGE: no such element. RESOURCE_EXHAUSTED also where more than 1024
  // calls of one shard are under way, or have answers of more than 16 MiB. Options::copy and
  // Options::learning_rate have no meaning.
  Ticket Call(std::uint64_t key, absl::string_view handler, absl::string_view request,
              std::string* answer, Options options = {}) const;
  // Likewise, on each shard that has a part of the table: of a sparse or ragged table all shards.
  // The answers are in the order of shards. Each call takes effect by itself: where some fail the
  // ticket ends with UNKNOWN, as a push does.
  Ticket CallAll(absl::string_view handler, absl::string_view request,
                 std::vector<std::string>* answers, Options options = {}) const;

 private:
  using Resize = std::function<void*(std::size_t elements)>;

  Ticket PushDense(DType dtype, const void* values, std::size_t size, Options options) const;
  Ticket PullDense(DType dtype, void* values, std::size_t size, Options options) const;
  Ticket PushPullDense(DType dtype, const void* values, std::size_t size, void* result,
                       std::size_t result_size, Options options) const;
  Ticket PushSparse(std::span<const std::uint64_t> keys, DType dtype, const void* values,
                    std::size_t size, Options options) const;
  Ticket PullSparse(std::span<const std::uint64_t> keys, DType dtype, void* values,
                    std::size_t size, Options options) const;
  Ticket PushPullSparse(std::span<const std::uint64_t> keys, DType dtype, const void* values,
                        std::size_t size, void* result, std::size_t result_size,
                        Options options) const;
  Ticket PushRows(std::span<const std::uint64_t> keys, std::span<const std::uint32_t> widths,
                  DType dtype, const void* values, std::size_t size, Options options) const;
  Ticket PullRows(std::span<const std::uint64_t> keys, std::vector<std::uint32_t>* widths,
                  DType dtype, Resize resize, Options options) const;

  friend class Worker;
  std::shared_ptr<worker::TableState> state_;
};

class Worker {
 public:
  // Joins the cluster and returns when it is complete: every announced server and worker is there.
  // DEADLINE_EXCEEDED after Config::connect_timeout names the missing ones.
  //
  // A worker may also join a running cluster: under the rank of one that is gone (Config::rank), or
  // beyond the announced number (Config::elastic). From then on the others wait for it; it begins
  // at the clock of the fastest of the others or later, not at 0: see clock().
  static absl::StatusOr<std::unique_ptr<Worker>> Connect();  // from the environment
  static absl::StatusOr<std::unique_ptr<Worker>> Connect(const Config& config);

  // Leaves the cluster in order (see Leave), and waits briefly for operations under way.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  std::uint32_t rank() const;  // 0 … num_workers() − 1; of a reader: 0
  std::uint32_t num_workers() const;
  std::uint32_t num_servers() const;

  // Creates the table, or opens it if an equal one exists, also one that was created equal and
  // changed since. ALREADY_EXISTS shows where the descriptions differ. A table that the cluster has
  // from a checkpoint (Config::restore) takes the description of the first worker that creates it,
  // as far as that does not shape its data: rates, NaN policy, and the consistency, which may be
  // any that such a table can have (docs/consistency.md). A reader only opens.
  // INVALID_ARGUMENT: TableSpec::Validate or a server refuses the description.
  absl::StatusOr<Table> CreateTable(const TableSpec& spec);
  // NOT_FOUND lists the tables that exist.
  absl::StatusOr<Table> OpenTable(absl::string_view name);

  // `bytes` bytes of zeroed memory for tensors, at the start of a page, that servers of this
  // machine read where it lies (leeway/array.h); where it cannot be shared, that is no error. At
  // most 256 arrays of a process can be shared at a time, each of at least 16 KiB: put a model's
  // many tensors into few arrays. The system provides memory as it is first written. 0 bytes: an
  // empty array. RESOURCE_EXHAUSTED: the system has too little memory.
  absl::StatusOr<Array> Allocate(std::uint64_t bytes) const;

  // OK once the operation has completed: servers have accepted a push, a pull has written its span.
  // Otherwise the reason; UNKNOWN of a push: it may have been applied all the same.
  absl::Status Wait(const Ticket& ticket);
  absl::Status Wait(std::span<const Ticket> tickets);  // all of them; the first error
  // True if it has completed; does not wait.
  bool Done(const Ticket& ticket) const;
  // Calls `done` once the operation has completed: at once on this thread, or later as
  // Options::done is called. For futures of other libraries; of several the order is open.
  void WhenDone(const Ticket& ticket, std::function<void(const absl::Status&)> done);
  // Of an operation that has completed without an error, also of a push: parts_dropped.
  // FAILED_PRECONDITION: the ticket has not completed.
  absl::StatusOr<PullInfo> Info(const Ticket& ticket) const;

  // Ends this worker's iteration, to which everything pushed so far belongs. Never waits for other
  // workers; the next pull does. DATA_LOSS: the server that took over a shard refused a push that
  // had been accepted; the clock counts all the same.
  absl::Status Clock();
  // Iterations ended so far. A worker that joins late, or comes back, starts where the others are:
  // write a training loop as `for (std::uint64_t i = worker->clock(); i < iterations; ++i)`.
  std::uint64_t clock() const;

  // Waits until every living member of the group has entered a barrier of this name. Workers may
  // enter `kWorkers` and `kAll`; `kAll` includes the servers (they enter by themselves).
  // `timeout`: nullopt: Config::request_timeout. DEADLINE_EXCEEDED, for all who have entered, when
  // the first of their timeouts has passed, and at once for those who enter after that; it names
  // the workers that were missing. A scheduler that is silent is waited for a tenth longer.
  absl::Status Barrier(Group group = Group::kWorkers, absl::string_view name = "",
                       std::optional<absl::Duration> timeout = std::nullopt);

  // Calls the request handler registered under that name on a server (leeway/server.h), and returns
  // its answer or its error. NOT_FOUND: there is no such handler. UNAVAILABLE: the server is gone,
  // or the connection broke before the answer; DEADLINE_EXCEEDED: no answer within
  // Options::timeout; in both cases the handler may have run. OUT_OF_RANGE: the answer exceeds
  // LEEWAY_MESSAGE_BYTES_MAX.
  absl::StatusOr<std::string> Call(std::uint32_t server_rank, absl::string_view handler,
                                   absl::string_view request, Options options = {});

  // The same without waiting and without copies, with 1 to 8 frames each way (leeway/call.h).
  // `done` gets the answer or the error, as Options::done does; the ticket completes after it.
  // Calls of one server are handled there in the order in which they were submitted.
  Ticket Call(std::uint32_t server_rank, absl::string_view handler, CallFrames request,
              CallDone done, Options options = {});

  // Publishes a version of a model: what its tables (dense; the same set each time, none twice)
  // hold at one moment, for subscriptions (leeway/model.h). Returns its number, which counts from
  // 1, once all servers keep it. It has every push that had completed when this was called; of
  // others whole blocks. Tables of BSP are taken with all pushes of the clocks below this worker's,
  // and of no later one, so that the call waits for slower workers to end those. Training goes on
  // meanwhile. `timeout`: nullopt: Config::request_timeout. DEADLINE_EXCEEDED: it may be published
  // all the same. RESOURCE_EXHAUSTED: too many models, or publications under way.
  absl::StatusOr<std::uint64_t> Publish(absl::string_view model, std::span<const Table> tables,
                                        std::optional<absl::Duration> timeout = std::nullopt);
  // Follows a model. NOT_FOUND lists those that were published.
  absl::StatusOr<Subscription> Subscribe(absl::string_view model);

  // Saves all tables, as of one clock, in a new folder under `directory` (empty: the scheduler's
  // LEEWAY_CHECKPOINT_DIR), a path that means the same to the scheduler and all servers. Returns
  // that folder once it is complete. Only the caller waits; training goes on. With BSP and ASP
  // tables the clock is the caller's. With SSP tables it is one that no worker has reached, this
  // one included: then call it on another thread than the one that calls Clock(). `timeout`, here
  // and below: nullopt: Config::request_timeout. DEADLINE_EXCEEDED: it took longer than that or
  // than LEEWAY_CHECKPOINT_TIMEOUT_MS of the scheduler. Other errors are those of the disks.
  absl::StatusOr<std::string> Checkpoint(absl::string_view directory,
                                         std::optional<absl::Duration> timeout = std::nullopt);

  // Gives a table another of the codecs that its description allows (TableSpec::codecs) while
  // training goes on. All workers push with it from one clock on, and replies follow; the call
  // returns that clock once it is decided. Operations under way keep their codec.
  // INVALID_ARGUMENT names the codecs that the table may have; NOT_FOUND: there is no such table.
  absl::StatusOr<std::uint64_t> SetCodec(absl::string_view table, absl::string_view codec,
                                         std::optional<absl::Duration> timeout = std::nullopt);

  // Changes settings that do not shape a table's data while training goes on: the updater's
  // rates, the staleness bound, whether NaN is refused. The change holds for all pushes and pulls
  // of all workers in the returned clock and later ones. (Priorities belong to operations:
  // Options::priority.) INVALID_ARGUMENT: the updater refuses the values. FAILED_PRECONDITION: the
  // change shapes the data after all (state of the updater), or is one of the consistency in more
  // than its bound, for which the table has to be created again after a start from a checkpoint.
  // ABORTED: another
  // change is under way. NOT_FOUND: there is no such table.
  absl::StatusOr<std::uint64_t> ChangeTable(absl::string_view table, const TableChange& change,
                                            std::optional<absl::Duration> timeout = std::nullopt);

  // Error feedback: the residual of this worker's pushes to tables with lossy codecs
  // (docs/compression.md). SaveResiduals writes it to the file residuals-worker-RANK.safetensors in
  // the existing folder `directory`, in place of an older one; Checkpoint does so in the folder
  // that it returns, as of its call, after the pushes before it. LoadResiduals takes over the
  // residual that a worker of rank `rank` (nullopt: this worker's rank) has written, for the tables
  // that are open: call it after they were opened, and before the first push. NOT_FOUND: there is
  // no such file. DATA_LOSS: it is damaged; INVALID_ARGUMENT: it is of other tables.
  absl::Status SaveResiduals(absl::string_view directory);
  absl::Status LoadResiduals(absl::string_view directory,
                             std::optional<std::uint32_t> rank = std::nullopt);

  // Leaves the cluster: the others no longer wait for this worker. Its pushes are answered first.
  // With replicas, an iteration in which it has pushed to a BSP table ends as by Clock(), and Leave
  // waits until the others have ended it, too, for at most `timeout`. After that DEADLINE_EXCEEDED
  // says that the worker has left, and that a server's death may still lose these
  // pushes. Later calls fail with FAILED_PRECONDITION. Idempotent.
  absl::Status Leave(std::optional<absl::Duration> timeout = std::nullopt);

  WorkerStats stats() const;

 private:
  friend class worker::Client;
  explicit Worker(std::unique_ptr<worker::Client> client);
  std::unique_ptr<worker::Client> client_;
};

}  // namespace leeway

#endif  // LEEWAY_WORKER_H_
