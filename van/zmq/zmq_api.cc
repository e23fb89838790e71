#include "van/zmq/zmq_api.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"

namespace leeway::van {
namespace {

constexpr char kLibrary[] = "libzmq.so.5";

absl::Status Unusable(const char* why) {
  return absl::UnavailableError(absl::StrCat(
      "ZeroMQ (LEEWAY_VAN=zmq) cannot be used: ", why == nullptr ? "no reason is given" : why,
      "; install the package libzmq5, or choose another van"));
}

struct Loaded {
  Loaded() {
    // Never closed: ZeroMQ's threads may run until the process ends.
    void* const library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      status = Unusable(dlerror());
      return;
    }
    const auto find = [&](const char* name, auto* pointer) {
      *pointer = reinterpret_cast<std::remove_pointer_t<decltype(pointer)>>(dlsym(library, name));
      if (*pointer == nullptr && status.ok()) status = Unusable(dlerror());
    };
#define LEEWAY_ZMQ_FIND(name) find(#name, &api.name);
    LEEWAY_ZMQ_FUNCTIONS(LEEWAY_ZMQ_FIND)
#undef LEEWAY_ZMQ_FIND
  }

  absl::Status status;
  ZmqApi api;
};

const Loaded& TheLibrary() {
  static const Loaded* const loaded = new Loaded;
  return *loaded;
}

}  // namespace

absl::Status LoadZmq() { return TheLibrary().status; }

const ZmqApi& Zmq() { return TheLibrary().api; }

}  // namespace leeway::van
