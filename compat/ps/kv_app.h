// KVWorker pushes lists of keys and values to the servers and pulls them; KVServer takes the
// requests of one server.
//
// Where the servers' handler is KVServerDefaultHandle, tables of Leeway stand behind it, with
// everything that the environment says of them (LEEWAY_REPLICATION, LEEWAY_PS_CODEC, …). A handler
// of the user's own gets whole requests.
#ifndef PS_KV_APP_H_
#define PS_KV_APP_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ps/base.h"
#include "ps/sarray.h"
#include "ps/simple_app.h"

namespace ps {

// A list of keys with their values. The keys are unique, and sorted in ascending order. Without
// `lens` every key has vals.size() / keys.size() values; with it lens[i] is the number of those of
// keys[i].
template <typename Val>
struct KVPairs {
  SArray<Key> keys;
  SArray<Val> vals;
  SArray<int> lens;
  int priority = 0;
};

// The head of a request.
struct KVMeta {
  int cmd;
  bool push;
  bool pull;
  int sender;       // node
  int timestamp;    // of the request, at its sender
  int customer_id;  // the sender's
};

namespace internal {

// Ends the process.
[[noreturn]] void Fail(const std::string& why);

template <typename V>
Bytes BytesOf(const SArray<V>& array) {
  Bytes bytes;
  bytes.owner = std::shared_ptr<void>(array.ptr(), array.ptr().get());
  bytes.data = array.data();
  bytes.size = array.size() * sizeof(V);
  return bytes;
}
template <typename V>
SArray<V> ArrayOf(const Bytes& bytes) {
  if (bytes.size % sizeof(V) != 0) Fail("an array of keys, values or lens was received in part");
  SArray<V> array;
  array.reset(static_cast<V*>(bytes.data), bytes.size / sizeof(V), [](V*) {});
  array.ptr() = std::shared_ptr<V>(bytes.owner, static_cast<V*>(bytes.data));
  return array;
}
template <typename Val>
KVArrays ArraysOf(const KVPairs<Val>& pairs) {
  KVArrays arrays;
  arrays.keys = BytesOf(pairs.keys);
  arrays.vals = BytesOf(pairs.vals);
  arrays.lens = BytesOf(pairs.lens);
  arrays.has_lens = !pairs.lens.empty();
  return arrays;
}
template <typename Val>
KVPairs<Val> PairsOf(const KVArrays& arrays) {
  KVPairs<Val> pairs;
  pairs.keys = ArrayOf<Key>(arrays.keys);
  pairs.vals = ArrayOf<Val>(arrays.vals);
  if (arrays.has_lens) pairs.lens = ArrayOf<int>(arrays.lens);
  return pairs;
}

// The memory of a user's buffer for `size` elements, which it is given if it is empty.
template <typename Array>
auto RoomIn(Array* buffer, size_t size, const char* what) -> decltype(buffer->data()) {
  if (buffer->empty()) {
    buffer->resize(size);
  } else if (buffer->size() != size) {
    Fail("a pull has " + std::to_string(size) + " " + what + ", but its buffer has room for " +
         std::to_string(buffer->size()) + ": make it as long, or empty");
  }
  return buffer->data();
}

}  // namespace internal

// Any thread. Callbacks run one at a time for each KVWorker, on a thread that waits for it or one
// of the library; they may push and pull, and must not wait. A request that fails (a server is gone
// and had no replicas, a deadline) ends the process with the reason: no signature here could tell
// it.
template <typename Val>
class KVWorker : public SimpleApp {
 public:
  using SimpleApp::obj_;
  using Callback = std::function<void()>;

  // `app_id`: the KVServers'. `customer_id`: that of a Start, whose connections are used, or of the
  // first one where it has none of its own.
  explicit KVWorker(int app_id, int customer_id = 0) : SimpleApp() {
    obj_ = new Customer(app_id, customer_id,
                        [this](const internal::SimpleMessage& message) { Receive(message); });
  }
  ~KVWorker() override {
    delete obj_;
    obj_ = nullptr;
  }

  // All of these return a timestamp at once; the callback runs, and Wait returns, once the servers
  // have taken what was pushed and the values are in `vals` (and `lens`). Empty buffers are made as
  // long as needed. `cmd` is for the servers' handler. Those with vectors copy what they push; the
  // buffers that they fill, and all arrays of those with a Z, belong to the library meanwhile.
  // `priority`: higher goes first, where tables stand behind the servers.
  int Push(const std::vector<Key>& keys, const std::vector<Val>& vals,
           const std::vector<int>& lens = {}, int cmd = 0, const Callback& cb = nullptr,
           int priority = 0) {
    return ZPush(SArray<Key>(keys), SArray<Val>(vals), SArray<int>(lens), cmd, cb, priority);
  }
  int Pull(const std::vector<Key>& keys, std::vector<Val>* vals, std::vector<int>* lens = nullptr,
           int cmd = 0, const Callback& cb = nullptr, int priority = 0) {
    KVPairs<Val> pairs;
    pairs.keys = SArray<Key>(keys);
    pairs.priority = priority;
    return Submit(false, true, cmd, pairs, vals, lens, cb);
  }
  // `lens`, if it is not empty: of the values that are pushed, and then of those pulled.
  int PushPull(const std::vector<Key>& keys, const std::vector<Val>& vals, std::vector<Val>* outs,
               std::vector<int>* lens = nullptr, int cmd = 0, const Callback& cb = nullptr,
               int priority = 0) {
    KVPairs<Val> pairs;
    pairs.keys = SArray<Key>(keys);
    pairs.vals = SArray<Val>(vals);
    if (lens != nullptr) pairs.lens = SArray<int>(*lens);
    pairs.priority = priority;
    return Submit(true, true, cmd, pairs, outs, lens, cb);
  }

  int ZPush(const SArray<Key>& keys, const SArray<Val>& vals, const SArray<int>& lens = {},
            int cmd = 0, const Callback& cb = nullptr, int priority = 0) {
    KVPairs<Val> pairs;
    pairs.keys = keys;
    pairs.vals = vals;
    pairs.lens = lens;
    pairs.priority = priority;
    return Submit<SArray<Val>, SArray<int>>(true, false, cmd, pairs, nullptr, nullptr, cb);
  }
  int ZPull(const SArray<Key>& keys, SArray<Val>* vals, SArray<int>* lens = nullptr, int cmd = 0,
            const Callback& cb = nullptr, int priority = 0) {
    KVPairs<Val> pairs;
    pairs.keys = keys;
    pairs.priority = priority;
    return Submit(false, true, cmd, pairs, vals, lens, cb);
  }
  int ZPushPull(const SArray<Key>& keys, const SArray<Val>& vals, SArray<Val>* outs,
                SArray<int>* lens = nullptr, int cmd = 0, const Callback& cb = nullptr,
                int priority = 0) {
    KVPairs<Val> pairs;
    pairs.keys = keys;
    pairs.vals = vals;
    if (lens != nullptr) pairs.lens = *lens;
    pairs.priority = priority;
    return Submit(true, true, cmd, pairs, outs, lens, cb);
  }

  void Wait(int timestamp) override { obj_->WaitRequest(timestamp); }

  // By server: whether it gets a request, and which one.
  using SlicedKVs = std::vector<std::pair<bool, KVPairs<Val>>>;
  // Cuts a list by the servers' ranges of keys. Tables have their own way and are not cut by it.
  using Slicer = std::function<void(const KVPairs<Val>& send, const std::vector<Range>& ranges,
                                    SlicedKVs* sliced)>;
  // Before the first request.
  void set_slicer(const Slicer& slicer) {
    CHECK(slicer) << "the slicer is an empty function";
    slicer_ = slicer;
  }

 private:
  template <typename Vals, typename Lens>
  int Submit(bool push, bool pull, int cmd, const KVPairs<Val>& pairs, Vals* vals, Lens* lens,
             const Callback& cb) {
    CHECK(!pull || vals != nullptr) << "a pull needs a buffer for values";
    const bool table = internal::UsesTables(obj_, internal::ValueTypeOf<Val>::value);
    internal::KVHead head;
    head.cmd = cmd;
    head.push = push;
    head.pull = pull;
    head.timestamp = obj_->NewRequest(kServerGroup);
    table ? ToTable(head, pairs, vals, lens, cb) : ToServers(head, pairs, vals, lens, cb);
    return head.timestamp;
  }

  // ---- requests to handlers ----

  template <typename Vals, typename Lens>
  void ToServers(const internal::KVHead& head, const KVPairs<Val>& pairs, Vals* vals, Lens* lens,
                 const Callback& cb) {
    SlicedKVs sliced;
    const std::vector<Range>& ranges = Postoffice::Get()->GetServerKeyRanges();
    slicer_ ? slicer_(pairs, ranges, &sliced) : SliceByRange(pairs, ranges, &sliced);
    std::vector<internal::ServerRequest> requests;
    for (size_t i = 0; i < sliced.size(); ++i) {
      if (!sliced[i].first) continue;
      requests.emplace_back();
      requests.back().server = static_cast<int>(i);
      requests.back().arrays = internal::ArraysOf(sliced[i].second);
    }
    const SArray<Key> keys = pairs.keys;
    const bool pull = head.pull;
    internal::SendToServers(obj_, head, std::move(requests),
                            [keys, pull, vals, lens, cb](std::vector<internal::KVArrays> answers) {
                              if (pull) Merge(keys, answers, vals, lens);
                              if (cb) cb();
                            });
  }

  static void SliceByRange(const KVPairs<Val>& pairs, const std::vector<Range>& ranges,
                           SlicedKVs* sliced) {
    sliced->resize(ranges.size());
    const size_t size = pairs.keys.size();
    const bool has_lens = !pairs.lens.empty();
    if (size == 0) return;
    const size_t width = pairs.vals.size() / size;
    if (has_lens) {
      CHECK_EQ(pairs.lens.size(), size) << "there is to be a length for each key";
    } else {
      CHECK_EQ(width * size, pairs.vals.size()) << "every key is to have as many values";
    }
    const Key* const keys = pairs.keys.data();
    size_t begin = 0, value = 0;
    for (size_t i = 0; i < ranges.size(); ++i) {
      const size_t end =
          i + 1 == ranges.size()
              ? size
              : static_cast<size_t>(std::lower_bound(keys + begin, keys + size, ranges[i].end()) -
                                    keys);
      if (end > begin) {
        size_t values = width * (end - begin);
        KVPairs<Val>& part = (*sliced)[i].second;
        if (has_lens) {
          values = 0;
          for (size_t k = begin; k < end; ++k) values += static_cast<size_t>(pairs.lens[k]);
          part.lens = pairs.lens.segment(begin, end);
        }
        (*sliced)[i].first = true;
        part.keys = pairs.keys.segment(begin, end);
        part.vals = pairs.vals.empty() ? SArray<Val>() : pairs.vals.segment(value, value + values);
        value += values;
      }
      begin = end;
    }
  }

  // The values of all servers, in the order of the keys.
  template <typename Vals, typename Lens>
  static void Merge(const SArray<Key>& keys, const std::vector<internal::KVArrays>& answers,
                    Vals* vals, Lens* lens) {
    std::vector<KVPairs<Val>> parts;
    size_t total_keys = 0, total_values = 0;
    for (const internal::KVArrays& answer : answers) {
      parts.push_back(internal::PairsOf<Val>(answer));
      const KVPairs<Val>& part = parts.back();
      if (part.keys.empty()) internal::Fail("a server has answered a pull without keys");
      const Range range = FindRange(keys, part.keys.front(), part.keys.back() + 1);
      const bool to_the_end = part.keys.back() == kMaxKey;
      if (!to_the_end && range.size() != part.keys.size()) {
        internal::Fail("a server has answered a pull of " + std::to_string(range.size()) +
                       " keys with " + std::to_string(part.keys.size()));
      }
      if (lens != nullptr && part.lens.size() != part.keys.size()) {
        internal::Fail("a pull asks for lens, but a server's handler has answered without");
      }
      total_keys += part.keys.size();
      total_values += part.vals.size();
    }
    if (total_keys != keys.size()) {
      internal::Fail("the servers have answered a pull of " + std::to_string(keys.size()) +
                     " keys with " + std::to_string(total_keys));
    }
    std::sort(parts.begin(), parts.end(), [](const KVPairs<Val>& a, const KVPairs<Val>& b) {
      return a.keys.front() < b.keys.front();
    });
    Val* to = internal::RoomIn(vals, total_values, "values");
    int* len = lens == nullptr ? nullptr : internal::RoomIn(lens, keys.size(), "lens");
    for (const KVPairs<Val>& part : parts) {
      if (!part.vals.empty()) std::memcpy(to, part.vals.data(), part.vals.size() * sizeof(Val));
      to += part.vals.size();
      if (len != nullptr) len = std::copy(part.lens.begin(), part.lens.end(), len);
    }
  }

  // ---- requests to a table ----

  // A pull under way. Keys that were never pushed have no values in the table; without `lens` they
  // are to have as many as the others, of 0.
  struct TablePull {
    std::vector<uint32_t> widths;  // where there are such keys
    size_t width = 0;
    SArray<Val> found;
  };

  template <typename Vals, typename Lens>
  void ToTable(const internal::KVHead& head, const KVPairs<Val>& pairs, Vals* vals, Lens* lens,
               const Callback& cb) {
    internal::TableRequest request;
    request.head = head;
    request.type = internal::ValueTypeOf<Val>::value;
    request.priority = pairs.priority;
    request.arrays = internal::ArraysOf(pairs);
    const size_t size = pairs.keys.size();
    if (head.push && size > 0) request.widths = WidthsOf(pairs);
    if (!head.pull) {
      const KVPairs<Val> kept = pairs;
      request.done = [kept, cb] {
        if (cb) cb();
      };
      return internal::SendToTable(obj_, std::move(request));
    }
    const std::shared_ptr<TablePull> pull = std::make_shared<TablePull>();
    request.room = [pull, vals, lens](const std::vector<uint32_t>& widths,
                                      size_t elements) -> void* {
      return RoomFor(widths, elements, vals, lens, pull.get());
    };
    const KVPairs<Val> kept = pairs;
    request.done = [kept, pull, vals, cb] {
      if (!pull->widths.empty()) FillGaps(*pull, vals);
      if (cb) cb();
    };
    internal::SendToTable(obj_, std::move(request));
  }

  static std::vector<uint32_t> WidthsOf(const KVPairs<Val>& pairs) {
    const size_t size = pairs.keys.size();
    if (!pairs.lens.empty()) {
      CHECK_EQ(pairs.lens.size(), size) << "there is to be a length for each key";
      return std::vector<uint32_t>(pairs.lens.begin(), pairs.lens.end());
    }
    CHECK_EQ(pairs.vals.size() % size, 0u) << "every key is to have as many values";
    return std::vector<uint32_t>(size, static_cast<uint32_t>(pairs.vals.size() / size));
  }

  template <typename Vals, typename Lens>
  static void* RoomFor(const std::vector<uint32_t>& widths, size_t elements, Vals* vals, Lens* lens,
                       TablePull* pull) {
    if (lens != nullptr) {
      std::copy(widths.begin(), widths.end(), internal::RoomIn(lens, widths.size(), "lens"));
      return internal::RoomIn(vals, elements, "values");
    }
    const size_t gaps = static_cast<size_t>(std::count(widths.begin(), widths.end(), 0u));
    pull->width = gaps == 0 ? 0 : WidthOfGaps(widths, vals->size());
    if (pull->width == 0) return internal::RoomIn(vals, elements, "values");
    pull->widths = widths;
    pull->found = SArray<Val>(elements);
    return pull->found.data();
  }
  // 0: the keys with values have different numbers of them.
  static size_t WidthOfGaps(const std::vector<uint32_t>& widths, size_t room) {
    if (room > 0) return room / widths.size();
    size_t width = 0;
    for (const uint32_t one : widths) {
      if (one == 0 || one == width) continue;
      if (width != 0) return 0;
      width = one;
    }
    return width == 0 ? 1 : width;
  }
  template <typename Vals>
  static void FillGaps(const TablePull& pull, Vals* vals) {
    size_t total = 0;
    for (const uint32_t width : pull.widths) total += width == 0 ? pull.width : width;
    Val* to = internal::RoomIn(vals, total, "values");
    const Val* from = pull.found.data();
    for (const uint32_t width : pull.widths) {
      if (width == 0) {
        std::fill(to, to + pull.width, Val(0));
        to += pull.width;
      } else {
        to = std::copy(from, from + width, to);
        from += width;
      }
    }
  }

  Slicer slicer_;  // empty: SliceByRange
};

// A server's end. Its handler runs on the server's data thread, one request at a time, with all the
// keys and values of a request that are in the server's range. It answers each request once, by
// Response: within the call, or later, in any order, from any thread.
template <typename Val>
class KVServer : public SimpleApp {
 public:
  using SimpleApp::obj_;
  using ReqHandle =
      std::function<void(const KVMeta& req_meta, const KVPairs<Val>& req_data, KVServer* server)>;

  explicit KVServer(int app_id) : SimpleApp() {
    obj_ = new Customer(app_id, app_id,
                        [this](const internal::SimpleMessage& message) { Receive(message); });
  }
  ~KVServer() override {
    delete obj_;
    obj_ = nullptr;
  }

  // Once, before or after Start; requests wait for it.
  void set_request_handle(const ReqHandle& request_handle);
  using SimpleApp::set_request_handle;

  void Response(const KVMeta& req, const KVPairs<Val>& res = KVPairs<Val>()) {
    internal::KVHead to;
    to.cmd = req.cmd;
    to.push = req.push;
    to.pull = req.pull;
    to.sender = req.sender;
    to.timestamp = req.timestamp;
    to.customer_id = req.customer_id;
    internal::Respond(obj_, to, internal::ArraysOf(res));
  }
  using SimpleApp::Response;
};

// The handler that adds what is pushed, and answers pulls with the sums. KVServer has tables in its
// place, and `store` stays empty, unless the type of values has no tables (it is not float, double,
// int32_t or int64_t), `store` has values when the handler is set, or LEEWAY_PS_TABLES is 0.
template <typename Val>
struct KVServerDefaultHandle {
  void operator()(const KVMeta& req_meta, const KVPairs<Val>& req_data, KVServer<Val>* server) {
    const size_t size = req_data.keys.size();
    if (req_meta.push && req_data.vals.size() != size) {
      LOG(FATAL) << "a push has " << req_data.vals.size() << " values for " << size
                 << " keys: every key is to have one";
    }
    KVPairs<Val> res;
    if (req_meta.pull) {
      res.keys = req_data.keys;
      res.vals.resize(size);
    }
    for (size_t i = 0; i < size; ++i) {
      Val& value = store[req_data.keys[i]];
      if (req_meta.push) value += req_data.vals[i];
      if (req_meta.pull) res.vals[i] = value;
    }
    server->Response(req_meta, res);
  }

  std::unordered_map<Key, Val> store;
};

template <typename Val>
void KVServer<Val>::set_request_handle(const ReqHandle& request_handle) {
  CHECK(request_handle) << "the request handle is an empty function";
  using Default = KVServerDefaultHandle<Val>;
  const Default* const standard = request_handle.template target<Default>();
  const bool tables = standard != nullptr && standard->store.empty();
  internal::SetKVHandler(
      obj_,
      [this, request_handle](const internal::KVHead& head, const internal::KVArrays& arrays) {
        KVMeta meta;
        meta.cmd = head.cmd;
        meta.push = head.push;
        meta.pull = head.pull;
        meta.sender = head.sender;
        meta.timestamp = head.timestamp;
        meta.customer_id = head.customer_id;
        request_handle(meta, internal::PairsOf<Val>(arrays), this);
      },
      tables ? internal::ValueTypeOf<Val>::value : internal::kNoTable, sizeof(Val));
}

}  // namespace ps

#endif  // PS_KV_APP_H_
