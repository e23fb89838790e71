// The C interface of the client library, for programs and languages that cannot use C++.
//
//     leeway_worker* worker;
//     leeway_error* error = leeway_connect(NULL, 0, &worker);  // settings: the environment
//     leeway_table* table;
//     uint64_t shape[] = {784, 10};
//     leeway_spec* spec = leeway_spec_dense("w", LEEWAY_FLOAT32, shape, 2);
//     if (!error) error = leeway_spec_set(spec, "consistency", "ssp:3");
//     if (!error) error = leeway_create_table(worker, spec, &table);
//     leeway_ticket* ticket;
//     if (!error) error = leeway_pull(table, LEEWAY_FLOAT32, values, 7840, NULL, &ticket);
//     if (!error) error = leeway_wait(worker, ticket);
//
// Each function does what the member of the same name of Worker or Table does: leeway/worker.h says
// when it waits, which errors it has, which threads may call it, how long arrays have to live, and
// what holds after fork(). This header says only what differs.
//
// Errors. A function that can fail returns NULL, or an error that the caller frees. Its results are
// written only where it returns NULL. A null pointer in place of a handle, a name or an array of
// more than 0 elements is LEEWAY_INVALID_ARGUMENT. No C++ exception leaves a function.
//
// Handles belong to the caller, which frees each by its own function (NULL: nothing to free).
// Tables and tickets may be freed before or after their worker, and a ticket while its operation is
// under way. Texts are UTF-8 and end with a zero byte; those that functions return as `char**` are
// freed by leeway_free.
//
// Times are in seconds. Where a timeout is 0 it is Config::request_timeout; below 0, or NaN, the
// operation fails at once.
//
// Stability. A program that was built with this header runs with every later libleeway of the same
// LEEWAY_C_VERSION: functions are added, in a new version of symbols, and never changed. Structures
// begin with their size as the caller knows it, and grow at their end. Set unused fields to 0.
#ifndef LEEWAY_C_H_
#define LEEWAY_C_H_

#include <stddef.h>
#include <stdint.h>

#define LEEWAY_C_VERSION 1

#ifdef __cplusplus
extern "C" {
#endif

// ---- errors ----

typedef struct leeway_error leeway_error;

// The numbers are those of absl::StatusCode. The last one of each enumeration is no value: with it
// a program may give any number, and a wrong one is an error.
typedef enum leeway_code {
  LEEWAY_OK = 0,
  LEEWAY_CANCELLED = 1,
  LEEWAY_UNKNOWN = 2,  // a push may have been applied all the same
  LEEWAY_INVALID_ARGUMENT = 3,
  LEEWAY_DEADLINE_EXCEEDED = 4,
  LEEWAY_NOT_FOUND = 5,
  LEEWAY_ALREADY_EXISTS = 6,
  LEEWAY_PERMISSION_DENIED = 7,
  LEEWAY_RESOURCE_EXHAUSTED = 8,
  LEEWAY_FAILED_PRECONDITION = 9,
  LEEWAY_ABORTED = 10,
  LEEWAY_OUT_OF_RANGE = 11,
  LEEWAY_UNIMPLEMENTED = 12,
  LEEWAY_INTERNAL = 13,
  LEEWAY_UNAVAILABLE = 14,
  LEEWAY_DATA_LOSS = 15,
  LEEWAY_CODE_ANY = 0x7fffffff
} leeway_code;

leeway_code leeway_error_code(const leeway_error* error);     // NULL: LEEWAY_OK
const char* leeway_error_message(const leeway_error* error);  // lives as long as the error
void leeway_error_free(leeway_error* error);
// For functions of the caller's own that the library calls. LEEWAY_OK: NULL.
leeway_error* leeway_error_new(leeway_code code, const char* message);

void leeway_free(void* text);
uint32_t leeway_c_version(void);   // LEEWAY_C_VERSION of the library
const char* leeway_version(void);  // of Leeway, "0.1.0"; static

// ---- workers ----

typedef struct leeway_worker leeway_worker;

// A variable of docs/operations.md, e.g. {"LEEWAY_SCHEDULER", "10.0.0.1:9000"}.
typedef struct leeway_setting {
  const char* name;
  const char* value;
} leeway_setting;

// The settings come before those of the environment. With LEEWAY_READ_ONLY=1 it is a reader.
leeway_error* leeway_connect(const leeway_setting* settings, size_t count, leeway_worker** worker);

// What a program in another language needs to know while a call waits. NULL: nothing.
typedef struct leeway_hooks {
  size_t struct_bytes;  // sizeof(leeway_hooks)
  // Config::interrupted: not 0 ends the wait with LEEWAY_CANCELLED.
  int (*interrupted)(void* context);
  void* context;
} leeway_hooks;
leeway_error* leeway_connect_with(const leeway_setting* settings, size_t count,
                                  const leeway_hooks* hooks, leeway_worker** worker);

void leeway_worker_free(leeway_worker* worker);  // leaves the cluster in order
leeway_error* leeway_leave(leeway_worker* worker, double timeout_s);

uint32_t leeway_rank(const leeway_worker* worker);
uint32_t leeway_num_workers(const leeway_worker* worker);
uint32_t leeway_num_servers(const leeway_worker* worker);

leeway_error* leeway_clock(leeway_worker* worker);          // ends an iteration
uint64_t leeway_clocks_ended(const leeway_worker* worker);  // Worker::clock()

typedef enum leeway_group {
  LEEWAY_WORKERS = 1,
  LEEWAY_ALL = 3,
  LEEWAY_GROUP_ANY = 0x7fffffff
} leeway_group;
leeway_error* leeway_barrier(leeway_worker* worker, leeway_group group, const char* name,
                             double timeout_s);

// WorkerStats as JSON: an object with "staleness_histogram" (an object from clocks to replies),
// "max_staleness", "staleness_violations", "bytes_pushed", "bytes_pulled", "resends",
// "parts_dropped", "residual_norms" (an object from tables to norms) and "waited_s".
leeway_error* leeway_stats(const leeway_worker* worker, char** json);

// ---- tables ----

typedef struct leeway_spec leeway_spec;
typedef struct leeway_table leeway_table;

typedef enum leeway_kind {
  LEEWAY_DENSE = 0,
  LEEWAY_SPARSE = 1,
  LEEWAY_RAGGED = 2,
  LEEWAY_KIND_ANY = 0x7fffffff
} leeway_kind;
typedef enum leeway_dtype {
  LEEWAY_FLOAT32 = 0,
  LEEWAY_FLOAT64 = 1,
  LEEWAY_FLOAT16 = 2,
  LEEWAY_BFLOAT16 = 3,
  LEEWAY_INT32 = 4,
  LEEWAY_INT64 = 5,
  LEEWAY_DTYPE_ANY = 0x7fffffff
} leeway_dtype;

// Never NULL: leeway_create_table says what is wrong with them.
leeway_spec* leeway_spec_dense(const char* name, leeway_dtype dtype, const uint64_t* shape,
                               size_t dimensions);
leeway_spec* leeway_spec_sparse(const char* name, leeway_dtype dtype, uint64_t row_width);
leeway_spec* leeway_spec_ragged(const char* name, leeway_dtype dtype);
void leeway_spec_free(leeway_spec* spec);

// Sets a field of TableSpec from its text:
//   updater         "sgd:learning_rate=0.1", "adam"
//   initializer     "zeros", "constant:0.5", "uniform:-0.1,0.1,seed=1", "normal:0,0.01,seed=7",
//   "pushed" consistency     "bsp", "ssp:3", "asp", "backup:14/16,drop", … (leeway/consistency.h)
//   aggregate       "sum", "mean"
//   nonfinite       "count", "refuse"
//   codec           "none", "topk:0.01", "auto", … (docs/compression.md)
//   codecs          codecs that the table may be switched to, separated by blanks
//   error_feedback  "auto", "off", "worker", "server", "both"
leeway_error* leeway_spec_set(leeway_spec* spec, const char* field, const char* text);

leeway_error* leeway_create_table(leeway_worker* worker, const leeway_spec* spec,
                                  leeway_table** table);
leeway_error* leeway_open_table(leeway_worker* worker, const char* name, leeway_table** table);
void leeway_table_free(leeway_table* table);  // the table itself stays

const char* leeway_table_name(const leeway_table* table);  // lives as long as the handle
leeway_kind leeway_table_kind(const leeway_table* table);
leeway_dtype leeway_table_dtype(const leeway_table* table);
size_t leeway_table_dimensions(const leeway_table* table);                // dense; otherwise 0
uint64_t leeway_table_size(const leeway_table* table, size_t dimension);  // 0: there is none
uint64_t leeway_table_elements(const leeway_table* table);                // dense; otherwise 0
uint64_t leeway_table_row_width(const leeway_table* table);               // sparse; otherwise 0
leeway_error* leeway_table_text(const leeway_table* table, char** text);  // TableSpec::ToString

leeway_error* leeway_set_codec(leeway_worker* worker, const char* table, const char* codec,
                               double timeout_s, uint64_t* clock);
// Worker::ChangeTable: each setting is a hyper-parameter of the updater with a number, or with ""
// for its default, or "consistency" or "nonfinite" with a text as above.
leeway_error* leeway_change_table(leeway_worker* worker, const char* table,
                                  const leeway_setting* settings, size_t count, double timeout_s,
                                  uint64_t* clock);

// ---- operations ----

typedef struct leeway_ticket leeway_ticket;

// NULL in its place, or all fields but the first 0: the defaults.
typedef struct leeway_options {
  size_t struct_bytes;          // sizeof(leeway_options)
  double timeout_s;             // of the operation
  const double* learning_rate;  // of a push; NULL: the table's. Read within the call
  int priority;                 // higher goes first
  int copy;                     // of a push: not 0: copy the data before returning
  // Options::done. `message` lives for the call.
  void (*done)(void* context, leeway_code code, const char* message);
  void* context;
} leeway_options;

// Dense tables: all elements, row-major.
leeway_error* leeway_push(const leeway_table* table, leeway_dtype dtype, const void* values,
                          uint64_t elements, const leeway_options* options, leeway_ticket** ticket);
leeway_error* leeway_pull(const leeway_table* table, leeway_dtype dtype, void* values,
                          uint64_t elements, const leeway_options* options, leeway_ticket** ticket);
leeway_error* leeway_push_pull(const leeway_table* table, leeway_dtype dtype, const void* values,
                               void* result, uint64_t elements, const leeway_options* options,
                               leeway_ticket** ticket);

// Sparse tables: `values` and `result` are [num_keys][row width].
leeway_error* leeway_push_rows(const leeway_table* table, const uint64_t* keys, uint64_t num_keys,
                               leeway_dtype dtype, const void* values, uint64_t elements,
                               const leeway_options* options, leeway_ticket** ticket);
leeway_error* leeway_pull_rows(const leeway_table* table, const uint64_t* keys, uint64_t num_keys,
                               leeway_dtype dtype, void* values, uint64_t elements,
                               const leeway_options* options, leeway_ticket** ticket);
leeway_error* leeway_push_pull_rows(const leeway_table* table, const uint64_t* keys,
                                    uint64_t num_keys, leeway_dtype dtype, const void* values,
                                    void* result, uint64_t elements, const leeway_options* options,
                                    leeway_ticket** ticket);

// Ragged tables: widths[i] elements for keys[i], one after the other.
leeway_error* leeway_push_ragged(const leeway_table* table, const uint64_t* keys, uint64_t num_keys,
                                 const uint32_t* widths, leeway_dtype dtype, const void* values,
                                 uint64_t elements, const leeway_options* options,
                                 leeway_ticket** ticket);
leeway_error* leeway_pull_ragged(const leeway_table* table, const uint64_t* keys, uint64_t num_keys,
                                 leeway_dtype dtype, const leeway_options* options,
                                 leeway_ticket** ticket);
// Of a ragged pull that has completed without an error: num_keys widths, and the elements. Both
// live as long as the ticket. LEEWAY_FAILED_PRECONDITION: it has not, or is another operation.
leeway_error* leeway_pulled_rows(leeway_worker* worker, const leeway_ticket* ticket,
                                 const uint32_t** widths, const void** values, uint64_t* elements);

// Calls a shard handler (leeway/shard_handler.h): on the shard that owns a key or element, or on
// all shards that have a part of the table. The ticket keeps the answers.
leeway_error* leeway_call_shard(const leeway_table* table, uint64_t key, const char* handler,
                                const void* request, size_t request_bytes,
                                const leeway_options* options, leeway_ticket** ticket);
leeway_error* leeway_call_shards(const leeway_table* table, const char* handler,
                                 const void* request, size_t request_bytes,
                                 const leeway_options* options, leeway_ticket** ticket);
// Of a call that has completed without an error: the number of its answers, and one of them, which
// lives as long as the ticket and has a zero byte behind its last. LEEWAY_FAILED_PRECONDITION: it
// has not, or is another operation. LEEWAY_OUT_OF_RANGE: there are not so many.
leeway_error* leeway_num_answers(leeway_worker* worker, const leeway_ticket* ticket, size_t* count);
leeway_error* leeway_get_answer(leeway_worker* worker, const leeway_ticket* ticket, size_t index,
                                const char** answer, size_t* answer_bytes);

leeway_error* leeway_wait(leeway_worker* worker, const leeway_ticket* ticket);
leeway_error* leeway_wait_all(leeway_worker* worker, const leeway_ticket* const* tickets,
                              size_t count);
int leeway_done(const leeway_worker* worker, const leeway_ticket* ticket);  // not 0: completed
// Worker::WhenDone. `message` lives for the call.
leeway_error* leeway_when_done(leeway_worker* worker, const leeway_ticket* ticket,
                               void (*done)(void* context, leeway_code code, const char* message),
                               void* context);
// Frees the handle; the operation goes on. The arrays of a ragged pull go on, too.
void leeway_ticket_free(leeway_ticket* ticket);

// PullInfo. Set struct_bytes before the call.
typedef struct leeway_info {
  size_t struct_bytes;  // sizeof(leeway_info)
  uint64_t clock;
  uint64_t version;
  uint64_t parts_dropped;
} leeway_info;
leeway_error* leeway_get_info(const leeway_worker* worker, const leeway_ticket* ticket,
                              leeway_info* info);

// ---- memory that servers of this machine read where it lies ----

typedef struct leeway_array leeway_array;

leeway_error* leeway_allocate(const leeway_worker* worker, uint64_t bytes, leeway_array** array);
void* leeway_array_data(const leeway_array* array);
uint64_t leeway_array_bytes(const leeway_array* array);
void leeway_array_free(leeway_array* array);

// ---- calls to servers, checkpoints ----

// `answer` is freed by leeway_free, and has a zero byte behind its last.
leeway_error* leeway_call(leeway_worker* worker, uint32_t server_rank, const char* handler,
                          const void* request, size_t request_bytes, double timeout_s,
                          char** answer, size_t* answer_bytes);

// `directory`: NULL or "": the scheduler's.
leeway_error* leeway_checkpoint(leeway_worker* worker, const char* directory, double timeout_s,
                                char** folder);
leeway_error* leeway_save_residuals(leeway_worker* worker, const char* directory);
// `rank`: NULL: this worker's.
leeway_error* leeway_load_residuals(leeway_worker* worker, const char* directory,
                                    const uint32_t* rank);

// ---- local SGD and DiLoCo: leeway/local_sgd.h ----

typedef struct leeway_local_sgd leeway_local_sgd;

// LocalSgd::Part. `values` outlives the leeway_local_sgd.
typedef struct leeway_part {
  const leeway_table* table;
  float* values;
  uint64_t elements;
} leeway_part;

typedef struct leeway_local_sgd_options {
  size_t struct_bytes;  // sizeof(leeway_local_sgd_options)
  uint32_t steps;
  uint32_t overlap_steps;
  float mixing;
  int by_speed;
} leeway_local_sgd_options;

// It is freed before its worker.
leeway_error* leeway_local_sgd_new(leeway_worker* worker, const leeway_part* parts, size_t count,
                                   const leeway_local_sgd_options* options,
                                   leeway_local_sgd** local);
void leeway_local_sgd_free(leeway_local_sgd* local);
leeway_error* leeway_local_sgd_begin(leeway_local_sgd* local);
leeway_error* leeway_local_sgd_step(leeway_local_sgd* local);
leeway_error* leeway_local_sgd_finish(leeway_local_sgd* local);
int leeway_local_sgd_due(const leeway_local_sgd* local);
uint64_t leeway_local_sgd_steps(const leeway_local_sgd* local);  // LocalSgd::step()
uint64_t leeway_local_sgd_exchanges(const leeway_local_sgd* local);
uint32_t leeway_local_sgd_steps_between(const leeway_local_sgd* local);

// ---- published models: leeway/model.h ----

// Worker::Publish.
leeway_error* leeway_publish(leeway_worker* worker, const char* model,
                             const leeway_table* const* tables, size_t count, double timeout_s,
                             uint64_t* version);

typedef struct leeway_subscription leeway_subscription;

// Worker::Subscribe. It may be freed before or after its worker.
leeway_error* leeway_subscribe(leeway_worker* worker, const char* model,
                               leeway_subscription** subscription);
void leeway_subscription_free(leeway_subscription* subscription);
// Subscription::Fetch. `timeout_s` below 0: does not wait.
leeway_error* leeway_fetch(leeway_subscription* subscription, double timeout_s, uint64_t* version);
leeway_error* leeway_apply(leeway_subscription* subscription);

uint64_t leeway_subscription_version(const leeway_subscription* subscription);
uint64_t leeway_subscription_clock(const leeway_subscription* subscription);
uint64_t leeway_subscription_digest(const leeway_subscription* subscription);
size_t leeway_subscription_tables(const leeway_subscription* subscription);
// A table by its place, which says its name, dtype and shape. It is the subscription's. NULL: there
// are not so many.
const leeway_table* leeway_subscription_table(const leeway_subscription* subscription,
                                              size_t place);
// The values of that table, row-major, all of leeway_subscription_version. They live as long as the
// subscription, and leeway_apply alone changes them. NULL, and 0 bytes: there is no such table.
const void* leeway_subscription_values(const leeway_subscription* subscription, size_t place,
                                       uint64_t* bytes);
// SubscriptionStats as JSON: an object with "versions_fetched", "versions_skipped" and
// "bytes_received".
leeway_error* leeway_subscription_stats(const leeway_subscription* subscription, char** json);

// ---- servers: leeway/server.h, leeway/updater.h and leeway/codec.h ----
//
// The library calls functions of the caller's from threads of its own. A `release` is called once
// when nothing needs its context any more; NULL: there is nothing to do.

// Runs a server until the cluster ends or a signal ends it (RunServer).
leeway_error* leeway_run_server(const leeway_setting* settings, size_t count);

// One run of elements to update in place (UpdateRun).
typedef struct leeway_run {
  size_t struct_bytes;
  leeway_dtype dtype;  // float32, float64, int32 or int64
  void* value;
  const void* gradient;
  void* const* state;  // [state_slots], each [size]
  size_t state_slots;
  uint64_t size;
  uint64_t step;
  double learning_rate;
} leeway_run;

typedef struct leeway_updater {
  size_t struct_bytes;          // sizeof(leeway_updater)
  unsigned dtypes;              // 1 << LEEWAY_FLOAT32 | …: the tables that it can update
  size_t state_slots;           // values kept for each element
  const double* initial_state;  // [state_slots]; NULL: zeros. Read when `make` has returned
  int last_counts;              // not 0: of several pushes the last counts; 0: they add up
  void (*update)(void* context, const leeway_run* run);
  void (*release)(void* context);
  void* context;
} leeway_updater;

typedef struct leeway_parameter {
  const char* name;
  double value;
} leeway_parameter;

// RegisterUpdater. `make` describes an updater for a table with these parameters, or returns what
// is wrong with them; it may be called on any thread.
typedef leeway_error* (*leeway_make_updater)(void* context, const leeway_parameter* parameters,
                                             size_t count, leeway_updater* updater);
leeway_error* leeway_register_updater(const char* name, leeway_make_updater make, void* context);

typedef struct leeway_caller {
  size_t struct_bytes;
  uint32_t worker_rank;
  uint32_t server_rank;
  uint32_t thread;
} leeway_caller;
typedef struct leeway_answer leeway_answer;

// RegisterHandler. The handler says its answer by leeway_answer_set (nothing: an empty one), or
// returns an error, which travels to the caller.
typedef leeway_error* (*leeway_handler)(void* context, const leeway_caller* caller,
                                        const void* request, size_t request_bytes,
                                        leeway_answer* answer);
leeway_error* leeway_register_handler(const char* name, leeway_handler handler, void* context);
leeway_error* leeway_answer_set(leeway_answer* answer, const void* bytes, size_t size);

// CodecShape.
typedef struct leeway_codec_shape {
  size_t struct_bytes;
  leeway_dtype dtype;
  uint64_t elements;
  uint64_t columns;
  int separate_rows;
} leeway_codec_shape;

typedef struct leeway_codec {
  size_t struct_bytes;  // sizeof(leeway_codec)
  unsigned dtypes;      // 1 << LEEWAY_FLOAT32 | …: of the tables that it can encode
  int lossless;
  int contracts;  // Codec::contracts, without which there is no error feedback
  uint64_t (*encoded_bytes_max)(void* context, const leeway_codec_shape* shape);
  // Writes to `out`, which has encoded_bytes_max bytes, and sets `written`.
  leeway_error* (*encode)(void* context, const void* values, const leeway_codec_shape* shape,
                          uint64_t seed, uint64_t step, void* out, uint64_t* written);
  // `encoded` may hold anything.
  leeway_error* (*decode)(void* context, const void* encoded, uint64_t bytes,
                          const leeway_codec_shape* shape, void* values);
  void (*release)(void* context);
  void* context;
} leeway_codec;

typedef struct leeway_option {
  const char* name;
  const char* value;
} leeway_option;

// RegisterCodec, on workers and servers alike. `make` describes a codec with these options.
typedef leeway_error* (*leeway_make_codec)(void* context, const leeway_option* options,
                                           size_t count, leeway_codec* codec);
leeway_error* leeway_register_codec(const char* name, uint32_t version, leeway_make_codec make,
                                    void* context);

#ifdef __cplusplus
}
#endif

#endif  // LEEWAY_C_H_
