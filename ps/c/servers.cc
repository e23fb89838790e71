// Servers in C: run one, and register what it knows beside the built-in updaters, codecs, handlers.
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "leeway/codec.h"
#include "leeway/server.h"
#include "leeway/updater.h"
#include "runtime/base/status_macros.h"
#include "runtime/c/c_interface.h"

using leeway::Codec;
using leeway::CodecShape;
using leeway::DType;
using leeway::EncodeTerms;
using leeway::Updater;
using leeway::UpdateRun;
using leeway::c::CheckArrays;
using leeway::c::CheckNotNull;
using leeway::c::Guarded;
using leeway::c::Known;

struct leeway_answer {
  std::string bytes;
};

namespace {

// The status of an error that a caller's function has returned, which is freed.
absl::Status Taken(leeway_error* error) {
  if (error == nullptr) return absl::OkStatus();
  const absl::Status status(static_cast<absl::StatusCode>(error->code), error->message);
  delete error;
  return status;
}

bool Has(unsigned dtypes, DType dtype) { return (dtypes >> static_cast<unsigned>(dtype) & 1) != 0; }

absl::Status MissingFunction(absl::string_view of, absl::string_view name) {
  return absl::InvalidArgumentError(absl::StrCat(of, "::", name, " is a null pointer"));
}

// A description whose context is released with it.
template <class T>
class Owned {
 public:
  explicit Owned(const T& described) : described_(described) {}
  ~Owned() {
    if (described_.release != nullptr) described_.release(described_.context);
  }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;

  const T* operator->() const { return &described_; }

 private:
  const T described_;
};

class UpdaterInC final : public Updater {
 public:
  explicit UpdaterInC(const leeway_updater& described)
      : updater_(described), initial_state_(described.state_slots) {
    if (described.initial_state == nullptr) return;
    initial_state_.assign(described.initial_state, described.initial_state + described.state_slots);
  }

  int state_slots() const override { return static_cast<int>(initial_state_.size()); }
  double initial_state(int slot) const override { return initial_state_[slot]; }
  bool Supports(DType dtype) const override { return Has(updater_->dtypes, dtype); }
  Combine combine() const override {
    return updater_->last_counts != 0 ? Combine::kLast : Combine::kSum;
  }
  void Update(const UpdateRun<float>& run) const override { Run(run); }
  void Update(const UpdateRun<double>& run) const override { Run(run); }
  void Update(const UpdateRun<std::int32_t>& run) const override { Run(run); }
  void Update(const UpdateRun<std::int64_t>& run) const override { Run(run); }

 private:
  template <class T>
  void Run(const UpdateRun<T>& run) const {
    const std::vector<void*> state(run.state, run.state + initial_state_.size());
    const leeway_run in_c = {.struct_bytes = sizeof(in_c),
                             .dtype = static_cast<leeway_dtype>(leeway::DTypeOf<T>),
                             .value = run.value,
                             .gradient = run.gradient,
                             .state = state.data(),
                             .state_slots = state.size(),
                             .size = run.size,
                             .step = run.step,
                             .learning_rate = run.learning_rate};
    updater_->update(updater_->context, &in_c);
  }

  const Owned<leeway_updater> updater_;
  std::vector<double> initial_state_;
};

absl::StatusOr<std::unique_ptr<Updater>> NewUpdater(leeway_make_updater make, void* context,
                                                    const leeway::UpdaterParameters& parameters) {
  constexpr std::size_t kSlotsMax = 64;
  std::vector<leeway_parameter> given;
  for (const auto& [name, value] : parameters) given.push_back({name.c_str(), value});
  leeway_updater described = {};
  described.struct_bytes = sizeof(described);
  LEEWAY_RETURN_IF_ERROR(Taken(make(context, given.data(), given.size(), &described)));
  LEEWAY_ASSIGN_OR_RETURN(described, Known("leeway_updater", &described));
  if (described.update == nullptr) return MissingFunction("leeway_updater", "update");
  if (described.state_slots > kSlotsMax) {
    return absl::InvalidArgumentError(absl::StrCat("an updater has at most ", kSlotsMax,
                                                   " state slots; this one has ",
                                                   described.state_slots));
  }
  return std::make_unique<UpdaterInC>(described);
}

class CodecInC final : public Codec {
 public:
  explicit CodecInC(const leeway_codec& described) : codec_(described) {}

  bool Supports(DType dtype) const override { return Has(codec_->dtypes, dtype); }
  bool lossless() const override { return codec_->lossless != 0; }
  bool contracts() const override { return codec_->contracts != 0; }
  std::size_t EncodedBytesMax(const CodecShape& shape) const override {
    const leeway_codec_shape in_c = InC(shape);
    return codec_->encoded_bytes_max(codec_->context, &in_c);
  }
  absl::StatusOr<std::size_t> Encode(const void* values, const EncodeTerms& terms,
                                     std::span<std::byte> out) const override {
    const leeway_codec_shape in_c = InC(terms.shape);
    std::uint64_t written = 0;
    LEEWAY_RETURN_IF_ERROR(Taken(codec_->encode(codec_->context, values, &in_c, terms.seed,
                                                terms.step, out.data(), &written)));
    if (written > out.size()) {
      return absl::InternalError(absl::StrCat("the codec says that it wrote ", written,
                                              " bytes, and has ", out.size(), " at most"));
    }
    return written;
  }
  absl::Status Decode(std::span<const std::byte> encoded, const CodecShape& shape,
                      void* values) const override {
    const leeway_codec_shape in_c = InC(shape);
    return Taken(codec_->decode(codec_->context, encoded.data(), encoded.size(), &in_c, values));
  }

 private:
  static leeway_codec_shape InC(const CodecShape& shape) {
    return {.struct_bytes = sizeof(leeway_codec_shape),
            .dtype = static_cast<leeway_dtype>(shape.dtype),
            .elements = shape.elements,
            .columns = shape.columns,
            .separate_rows = shape.separate_rows ? 1 : 0};
  }

  const Owned<leeway_codec> codec_;
};

absl::StatusOr<std::unique_ptr<Codec>> NewCodec(leeway_make_codec make, void* context,
                                                const leeway::CodecOptions& options) {
  std::vector<leeway_option> given;
  for (const auto& [name, value] : options) given.push_back({name.c_str(), value.c_str()});
  leeway_codec described = {};
  described.struct_bytes = sizeof(described);
  LEEWAY_RETURN_IF_ERROR(Taken(make(context, given.data(), given.size(), &described)));
  LEEWAY_ASSIGN_OR_RETURN(described, Known("leeway_codec", &described));
  if (described.encode == nullptr) return MissingFunction("leeway_codec", "encode");
  if (described.decode == nullptr) return MissingFunction("leeway_codec", "decode");
  if (described.encoded_bytes_max == nullptr) {
    return MissingFunction("leeway_codec", "encoded_bytes_max");
  }
  return std::make_unique<CodecInC>(described);
}

}  // namespace

extern "C" {

leeway_error* leeway_run_server(const leeway_setting* settings, size_t count) {
  return Guarded([&]() -> absl::Status {
    LEEWAY_ASSIGN_OR_RETURN(const leeway::Config config, leeway::c::ConfigOf(settings, count));
    return leeway::RunServer(config);
  });
}

leeway_error* leeway_register_updater(const char* name, leeway_make_updater make, void* context) {
  return Guarded([&]() -> absl::Status {
    LEEWAY_RETURN_IF_ERROR(CheckNotNull("name", name));
    if (make == nullptr) return MissingFunction("updater", "make");
    return leeway::RegisterUpdater(name, [=](const leeway::UpdaterParameters& parameters) {
      return NewUpdater(make, context, parameters);
    });
  });
}

leeway_error* leeway_register_handler(const char* name, leeway_handler handler, void* context) {
  return Guarded([&]() -> absl::Status {
    LEEWAY_RETURN_IF_ERROR(CheckNotNull("name", name));
    if (handler == nullptr) return MissingFunction("handler", name);
    return leeway::RegisterHandler(
        name,
        [=](const leeway::HandlerContext& where,
            absl::string_view request) -> absl::StatusOr<std::string> {
          const leeway_caller caller = {sizeof(caller), where.worker_rank, where.server_rank,
                                        where.thread};
          leeway_answer answer;
          LEEWAY_RETURN_IF_ERROR(
              Taken(handler(context, &caller, request.data(), request.size(), &answer)));
          return std::move(answer.bytes);
        });
  });
}
leeway_error* leeway_answer_set(leeway_answer* answer, const void* bytes, size_t size) {
  return Guarded([&]() -> absl::Status {
    LEEWAY_RETURN_IF_ERROR(CheckNotNull("answer", answer));
    LEEWAY_RETURN_IF_ERROR(CheckArrays("bytes", bytes, size));
    answer->bytes.assign(static_cast<const char*>(bytes), size);
    return absl::OkStatus();
  });
}

leeway_error* leeway_register_codec(const char* name, uint32_t version, leeway_make_codec make,
                                    void* context) {
  return Guarded([&]() -> absl::Status {
    LEEWAY_RETURN_IF_ERROR(CheckNotNull("name", name));
    if (make == nullptr) return MissingFunction("codec", "make");
    return leeway::RegisterCodec(
        name, [=](const leeway::CodecOptions& options) { return NewCodec(make, context, options); },
        version);
  });
}

}  // extern "C"
