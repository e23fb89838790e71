#include "proto/testing/samples.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/messages/fields.h"
#include "proto/messages/limits.h"

namespace leeway::proto {
namespace {

// The visitor that sets each field to something that no other field has, as far as it may be that;
// or, unless it is to be full, to the least that it may be.
class SampleMaker {
 public:
  explicit SampleMaker(bool full) : full_(full) {}

  bool At(int) { return true; }
  bool InOrder() { return true; }
  template <Number T, class Check = Range>
  bool operator()(const char*, T& value, const Check& check = {}) {
    const std::uint64_t n = ++n_, least = check.least(), most = check.most();
    const std::uint64_t made = n >= least ? std::min(n, most) : std::min(least + n, most);
    value = full_               ? static_cast<T>(made)
            : check.unsaid == 0 ? static_cast<T>(least)
                                : static_cast<T>(check.unsaid);
    return true;
  }
  bool operator()(const char*, double& value, const Fraction& = {}) {
    value = static_cast<double>(++n_) + 0.5;
    return true;
  }
  bool operator()(const char*, std::string& text, const Utf8& check) {
    text = full_ ? absl::StrCat("größe ", ++n_) : std::string(check.min, 'x');
    return true;
  }
  bool operator()(const char*, std::string& text, const Reason&) {
    if (full_) text = absl::StrCat("because of ", ++n_, "\n\tor so");
    return true;
  }
  bool operator()(absl::Status& status, const Result& check = {}) {
    if (!full_ && !check.error) return true;
    const auto code = static_cast<absl::StatusCode>(1 + ++n_ % 16);
    status = absl::Status(code, full_ ? absl::StrCat("it is ", n_) : "");
    return true;
  }
  bool operator()(const char*, std::map<std::string, double>& all, const Fraction& = {}) {
    if (full_) all = {{absl::StrCat("p", ++n_), 0.1}};
    return true;
  }
  template <class T, class... Each>
  bool operator()(const char* name, std::vector<T>& all, const Count& check, const Each&... each) {
    all.resize(full_ ? std::min<std::uint64_t>(2, check.range().most()) : check.range().least());
    for (T& one : all) {
      if constexpr (Fixed<T>) {
        T::FixedFields(*this, one);
      } else if constexpr (sizeof...(each) > 0) {
        (*this)(name, one, each...);
      } else {
        FieldsOf(*this, one);
      }
    }
    return true;
  }

 private:
  const bool full_;
  std::uint64_t n_ = 100;
};

// Types that have to agree with themselves in more than each field, with a description of a table
// or with their payload.
template <class M>
constexpr bool kByHand =
    std::is_same_v<M, ClusterMap> || std::is_same_v<M, CreateTable> ||
    std::is_same_v<M, TableReply> || std::is_same_v<M, InstallTable> ||
    std::is_same_v<M, CodecReport> || std::is_same_v<M, PushBatch> || std::is_same_v<M, Request> ||
    std::is_same_v<M, Reply> || std::is_same_v<M, Replicate>;
// Types with a payload of any bytes.
template <class M>
constexpr bool kHasBytes = std::is_same_v<M, Call> || std::is_same_v<M, CallReply> ||
                           std::is_same_v<M, StatusReply> || std::is_same_v<M, AdminReply>;

template <class M>
void AddMade(std::vector<Sample>* all) {
  if constexpr (!kByHand<M>) {
    for (const bool full : {true, false}) {
      M m;
      SampleMaker maker(full);
      M::Fields(maker, m);
      all->push_back({m});
      if (kHasBytes<M>) all->back().payload = {runtime::Buffer::CopyOf(full ? "{}" : "")};
    }
  }
}

template <std::size_t... i>
void AddEachMade(std::vector<Sample>* all, std::index_sequence<i...>) {
  (AddMade<MessageOf<i + 1>>(all), ...);
}

void AddCluster(std::vector<Sample>* all) {
  all->push_back({Join{.role = Role::kServer,
                       .host = "rack-3",
                       .pid = 4711,
                       .endpoints = {"tcp://10.0.0.7:40123", "ipc:///run/leeway/1"},
                       .rank_wanted = 2,
                       .num_servers = 5,
                       .num_workers = kWorkersMax,
                       .elastic = true,
                       .codecs = {{"mine", 0xffffffff}, {"onebit", 1}}}});
  all->push_back({ClusterMap{
      .version = 12,
      .epoch = 3,
      .owners = {{1, 0}, {0, 1}, {1, 0}, {kNoServer, 0}},
      .servers =
          {{.node = 2, .rank = 0, .alive = true, .endpoints = {"tcp://a:1", "tcp://a:2"}},
           {.node = 7, .rank = 1, .alive = false, .endpoints = {"tcp://b:1"}},
           {.node = 9, .rank = 2, .endpoints = {"tcp://c:1"}, .incarnation = 0xfffffffffffffffe}},
      .workers = {{3, 0, 0xffffffffffffffff, WorkerState::kAlive, true},
                  {4, 1, 6, WorkerState::kLeft},
                  {5, 2, 7, WorkerState::kDead}},
      .replicas = {{0, {0, 1}, false}, {0, {2, 0}, true}, {2, {2, 0}, false}},
      .codecs = {{.table = 1, .number = 2, .before = 0, .choice = 16, .clock = 9, .decided = true},
                 {.table = 1, .number = 3, .before = 16, .choice = 1, .clock = 12},
                 {.table = 7, .number = 1, .before = 2, .choice = 0, .clock = 3}},
      .table_settings = {{.table = 1,
                          .number = 2,
                          .since = 9,
                          .decided = true,
                          .parameters = {{"learning_rate", 0.1}, {"momentum", 0.9}},
                          .consistency = Consistency::Asp(),
                          .nonfinite = NonFinite::kRefuse},
                         {.table = 1, .number = 3, .since = 9},
                         {.table = 7, .number = 1, .since = 3, .decided = true}}}});
  all->push_back({ClusterMap{.version = 1,
                             .servers = {{.node = 2, .rank = 3, .endpoints = {"inproc://x"}}},
                             .workers = {{3, 1, 5, WorkerState::kAlive}}}});
  all->push_back({CodecReport{.table = 3,
                              .lossy = 6,
                              .costs = {80.5, 3.25, 1e-9},
                              .link_bytes_per_s = 12.5e6,
                              .clock = 9}});
}

TableSpec FullSpec() {
  TableSpec spec = TableSpec::Dense("Gewichte/\xc3\xb6", {784, 10}, DType::kFloat16);
  spec.updater = {"sgd", {{"learning_rate", 0.1}, {"decay", 1e-9}}};
  spec.initializer = Initializer::Normal(-0.5, 0.25, 42);
  spec.aggregate = Aggregate::kMean;
  spec.nonfinite = NonFinite::kRefuse;
  spec.codec = "topk:0.01";
  spec.codecs = {"none", "topk:0.01"};
  spec.error_feedback = ErrorFeedback::kBoth;
  return spec;
}

void AddTables(std::vector<Sample>* all) {
  TableSpec sparse = TableSpec::Sparse("embedding", 64, DType::kInt32);
  sparse.updater.name = "assign";
  sparse.initializer = Initializer::Constant(-1);
  sparse.consistency = Consistency::Ssp(3);
  TableSpec ragged = TableSpec::Ragged("lists", DType::kFloat64);
  ragged.consistency = Consistency::Asp();
  TableSpec uniform = TableSpec::Dense("u", {2, 3, 4, 5, 6, 7, 8, 9}, DType::kBFloat16);
  uniform.initializer = Initializer::Uniform(-1, 1, 7);

  all->push_back({CreateTable{.request = 5, .spec = FullSpec()}});
  all->push_back({CreateTable{.request = 6, .spec = sparse}});
  all->push_back({CreateTable{.request = 7, .spec = ragged}});
  all->push_back({TableReply{.request = 5,
                             .table = 3,
                             .spec = FullSpec(),
                             .combine = Updater::Combine::kLast,
                             .table_settings = {{.table = 3,
                                                 .number = 1,
                                                 .since = 7,
                                                 .decided = true,
                                                 .consistency = Consistency::Ssp(2)}}}});
  const auto differs = std::make_unique<TableReply>();
  differs->request = 5;
  differs->result = absl::AlreadyExistsError("differs");
  all->push_back({*differs});
  all->push_back({InstallTable{.table = 9, .spec = uniform, .of = 3}});
}

constexpr RequestId kId{.incarnation = 0x1122334455667788, .sequence = 9, .worker = 3, .shard = 31};

Request NewRequest(TableKind kind, Op op, DType dtype) {
  return {.id = kId, .epoch = 2, .table = 4, .kind = kind, .op = op, .dtype = dtype, .clock = 6};
}

void AddRequests(std::vector<Sample>* all) {
  Request dense = NewRequest(TableKind::kDense, Op::kPushPull, DType::kFloat64);
  dense.block = 11;
  dense.elements = 3;
  dense.read_updates = 77;
  dense.timeout_ms = 1500;
  dense.learning_rate = 0.125;
  dense.has_learning_rate = true;
  dense.after = kId.sequence - 1;
  dense.priority = -49;
  all->push_back({dense, {FrameOf<double>({1, 2, 3})}});

  Request coded = NewRequest(TableKind::kDense, Op::kPushPull, DType::kFloat32);
  coded.elements = 3;
  coded.codec = ~0u;
  coded.have = ~0ull;
  all->push_back({coded, {FrameOf<char>(std::vector<char>(11, 'x'))}});

  Request coded_rows = NewRequest(TableKind::kSparse, Op::kPush, DType::kFloat64);
  coded_rows.keys = 2;
  coded_rows.elements = 4;
  coded_rows.codec = 1;
  all->push_back({coded_rows, {FrameOf<std::uint64_t>({1, 2}), FrameOf<char>({'x'})}});

  Request dense_pull = NewRequest(TableKind::kDense, Op::kPull, DType::kFloat16);
  dense_pull.elements = 16;
  dense_pull.publication = 1ull << 33;
  all->push_back({dense_pull});

  Request sparse = NewRequest(TableKind::kSparse, Op::kPush, DType::kInt32);
  sparse.rows_wrapped = true;
  sparse.keys = 2;
  sparse.elements = 6;
  all->push_back(
      {sparse, {FrameOf<std::uint64_t>({1, ~0ull}), FrameOf<std::int32_t>({1, -2, 3, 4, 5, 6})}});

  Request sparse_pull = NewRequest(TableKind::kSparse, Op::kPull, DType::kBFloat16);
  sparse_pull.keys = 3;
  all->push_back({sparse_pull, {FrameOf<std::uint64_t>({7, 8, 9})}});

  Request nothing = NewRequest(TableKind::kSparse, Op::kPush, DType::kInt64);
  all->push_back({nothing, {runtime::Buffer(), runtime::Buffer()}});

  Request ragged = NewRequest(TableKind::kRagged, Op::kPush, DType::kFloat32);
  ragged.keys = 3;
  ragged.elements = 5;
  all->push_back({ragged,
                  {FrameOf<std::uint64_t>({5, 6, 7}), FrameOf<std::uint32_t>({2, 0, 3}),
                   FrameOf<float>({1, 2, 3, 4, 5})}});

  Request ragged_pull = NewRequest(TableKind::kRagged, Op::kPull, DType::kFloat32);
  ragged_pull.keys = 1;
  all->push_back({ragged_pull, {FrameOf<std::uint64_t>({5})}});

  Request call = NewRequest(TableKind::kSparse, Op::kCall, DType::kInt64);
  call.settled = kId.sequence - 2;
  all->push_back({call, {FrameOf<char>({'f'}), FrameOf<char>({'x', 'y'})}});
}

Reply NewReply(TableKind kind, Op op, DType dtype) {
  return {.id = kId,
          .op = op,
          .kind = kind,
          .clock = 9,
          .slowest_clock = 7,
          .staleness = 2,
          .dtype = dtype};
}

void AddCalls(std::vector<Sample>* all) {
  const runtime::Buffer frame = runtime::Buffer::CopyOf("12345678");
  all->push_back({Call{.request = 8, .handler = "mine"}, {frame, frame, runtime::Buffer()}});
  all->push_back({CallReply{.request = 8}, std::vector(kCallFramesMax, frame)});
}

void AddReplies(std::vector<Sample>* all) {
  Reply dense = NewReply(TableKind::kDense, Op::kPull, DType::kFloat32);
  dense.elements = 2;
  dense.version = 12;
  dense.updates = 8;
  dense.digest = ~0ull;
  all->push_back({dense, {FrameOf<float>({1, 2})}});

  Reply coded = NewReply(TableKind::kDense, Op::kPull, DType::kFloat32);
  coded.elements = 2;
  coded.coded = true;
  all->push_back({coded, {runtime::Buffer()}});
  coded.parts = {{.version = 3, .bytes = 8, .whole = true},
                 {.version = ~0ull, .bytes = 3, .codec = ~0u}};
  all->push_back({coded, {FrameOf<char>(std::vector<char>(11, 'x'))}});

  Reply sparse = NewReply(TableKind::kSparse, Op::kPushPull, DType::kFloat64);
  sparse.keys = 2;
  sparse.elements = 4;
  all->push_back({sparse, {FrameOf<double>({1, 2, 3, 4})}});

  Reply ragged = NewReply(TableKind::kRagged, Op::kPull, DType::kInt64);
  ragged.keys = 2;
  ragged.elements = 3;
  all->push_back({ragged, {FrameOf<std::uint32_t>({1, 2}), FrameOf<std::int64_t>({1, 2, 3})}});

  Reply pushed = NewReply(TableKind::kDense, Op::kPush, DType::kFloat32);
  pushed.provisional = true;
  all->push_back({pushed});
  Reply failed = NewReply(TableKind::kDense, Op::kPull, DType::kFloat32);
  failed.result = absl::DeadlineExceededError("waited for worker 2\n\tat clock 3");
  all->push_back({failed});
  all->push_back({NewReply(TableKind::kSparse, Op::kCall, DType::kInt64), {FrameOf<char>({'z'})}});
}

void AddBatches(std::vector<Sample>* all) {
  PushBatch batch{.incarnation = kId.incarnation,
                  .worker = kId.worker,
                  .epoch = 2,
                  .dtype = DType::kInt32,
                  .clock = 6,
                  .timeout_ms = 1500,
                  .learning_rate = -0.125,
                  .has_learning_rate = true,
                  .priority = -7};
  batch.pushes = {{.sequence = 9, .after = 8, .elements = 3, .shard = 31, .table = 4},
                  {.sequence = ~0ull,
                   .block = kTableElementsMax - 1,
                   .elements = 1,
                   .shard = kShardsMax - 1,
                   .table = ~0u}};
  all->push_back({batch, {FrameOf<std::int32_t>({1, -2, 3, 4})}});
  batch.pushes.resize(1);
  batch.pushes.resize(kPushesPerBatchMax, batch.pushes[0]);
  batch.dtype = DType::kFloat16;
  all->push_back({batch, {FrameOf<char>(std::vector<char>(2 * 3 * kPushesPerBatchMax))}});
}

}  // namespace

std::vector<Sample> AllSamples() {
  std::vector<Sample> all;
  AddCluster(&all);
  AddTables(&all);
  AddRequests(&all);
  AddCalls(&all);
  AddReplies(&all);
  AddBatches(&all);
  AddReplication(&all);
  AddEachMade(&all, std::make_index_sequence<kMessageTypes - 1>());
  return all;
}

}  // namespace leeway::proto
