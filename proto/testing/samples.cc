#include "proto/testing/samples.h"

#include <memory>

#include "proto/messages/limits.h"

namespace leeway::proto {
namespace {

void AddMembership(std::vector<Sample>* all) {
  all->push_back({Hello{.protocol = kProtocolVersion + 1,
                        .protocol_min = 1,
                        .capabilities = 0x8000000000000001,
                        .role = Role::kTool,
                        .node = 0xfffffffe,
                        .incarnation = 0xfedcba9876543210,
                        .cluster = 77,
                        .build = "0.1.0 größer"}});
  all->push_back({Reject{absl::UnauthenticatedError("spoke out of turn")}});
  all->push_back({Goodbye{}});
  all->push_back({Join{.role = Role::kServer,
                       .host = "rack-3",
                       .pid = 4711,
                       .endpoints = {"tcp://10.0.0.7:40123", "ipc:///run/leeway/1"},
                       .rank_wanted = 2,
                       .num_servers = 5,
                       .num_workers = kWorkersMax,
                       .elastic = true,
                       .codecs = {{"mine", 0xffffffff}, {"onebit", 1}}}});
  all->push_back({Join{.role = Role::kWorker, .num_servers = 1, .num_workers = 1}});
  all->push_back({Welcome{.node = 2,
                          .rank = 3,
                          .cluster = 9,
                          .num_servers = 4,
                          .num_workers = 5,
                          .heartbeat_interval_ms = 6,
                          .failure_timeout_ms = 7,
                          .block_bytes = 1 << 20,
                          .replication = kReplicationMax,
                          .clock = kStartClockMax}});
  all->push_back({Refused{absl::ResourceExhaustedError("4 of 4 workers are here already")}});
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
                          .staleness = Consistency::kUnbounded,
                          .nonfinite = NonFinite::kRefuse},
                         {.table = 1, .number = 3, .since = 9},
                         {.table = 7, .number = 1, .since = 3, .decided = true}}}});
  all->push_back({ClusterMap{.version = 1,
                             .servers = {{.node = 2, .rank = 3, .endpoints = {"inproc://x"}}},
                             .workers = {{3, 1, 5, WorkerState::kAlive}}}});
  all->push_back({MapAck{.version = 8, .clock = 5, .oldest = 3}});
  all->push_back(
      {Heartbeat{.node = 3, .incarnation = 4, .number = 5, .uptime_ms = 6, .resident_bytes = 7}});
  all->push_back({HeartbeatAck{.number = 6}});
  all->push_back({NodeDown{.node = 5,
                           .role = Role::kWorker,
                           .rank = 2,
                           .incarnation = 8,
                           .left = true,
                           .reason = "done",
                           .epoch = 4}});
  all->push_back({Leave{.reason = "finished", .clock = 6}});
  all->push_back({LeaveAck{}});
  all->push_back({Shutdown{absl::AbortedError("server 1 is dead")}});
  all->push_back({Shutdown{}});
  all->push_back(
      {BarrierEnter{.name = "epoch", .group = Group::kAll, .number = 3, .timeout_ms = 1000}});
  all->push_back({BarrierEnter{.name = "", .group = Group::kServers, .number = 1}});
  all->push_back({BarrierRelease{.name = "epoch",
                                 .group = Group::kServers,
                                 .number = 3,
                                 .result = absl::DeadlineExceededError("worker 2 is missing")}});
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
  all->push_back({OpenTable{.request = 6, .name = "w"}});
  all->push_back({TableReply{
      .request = 5,
      .table = 3,
      .spec = FullSpec(),
      .combine = Updater::Combine::kLast,
      .table_settings = {{.table = 3, .number = 1, .since = 7, .decided = true, .staleness = 2}}}});
  const auto differs = std::make_unique<TableReply>();
  differs->request = 5;
  differs->result = absl::AlreadyExistsError("differs");
  all->push_back({*differs});
  all->push_back({InstallTable{.table = 9, .spec = uniform, .of = 3}});
  all->push_back({InstallTableReply{.table = 9,
                                    .result = absl::NotFoundError("updater \"x\""),
                                    .combine = Updater::Combine::kLast}});
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
  all->push_back({dense_pull});

  Request sparse = NewRequest(TableKind::kSparse, Op::kPush, DType::kInt32);
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

void AddReplies(std::vector<Sample>* all) {
  Reply dense = NewReply(TableKind::kDense, Op::kPull, DType::kFloat32);
  dense.elements = 2;
  dense.version = 12;
  dense.updates = 8;
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

  PushAcks acks{.incarnation = kId.incarnation, .worker = kId.worker};
  acks.acks = {{.sequence = 9, .shard = 31, .provisional = true},
               {.sequence = ~0ull, .shard = kShardsMax - 1}};
  all->push_back({acks});
}

void AddOthers(std::vector<Sample>* all) {
  all->push_back({ClockTick{.worker = 3,
                            .incarnation = 5,
                            .epoch = 2,
                            .clock = 8,
                            .watermarks = {{100, 0, true}, {200, kShardsMax - 1}},
                            .since = 7}});
  all->push_back({ClockAck{.clock = 8, .stable = 7, .epoch = 4}});
  all->push_back({Call{.request = 4, .handler = "echo"}, {runtime::Buffer::CopyOf("question")}});
  all->push_back({Call{.request = 4, .handler = "echo"}, {runtime::Buffer()}});
  all->push_back({CallReply{.request = 4}, {runtime::Buffer::CopyOf("answer")}});
  all->push_back({CallReply{.request = 4, .result = absl::Status(absl::StatusCode::kDataLoss, "")},
                  {runtime::Buffer()}});
  all->push_back(
      {CallReply{.request = 4, .result = absl::AbortedError("twice")}, {runtime::Buffer()}});
  all->push_back({StatusRequest{.request = 1}});
  all->push_back({StatusReply{.request = 1}, {runtime::Buffer::CopyOf("{}")}});
}

}  // namespace

std::vector<Sample> AllSamples() {
  std::vector<Sample> all;
  AddMembership(&all);
  AddTables(&all);
  AddRequests(&all);
  AddReplies(&all);
  AddBatches(&all);
  AddOthers(&all);
  AddClusterSamples(&all);
  return all;
}

}  // namespace leeway::proto
