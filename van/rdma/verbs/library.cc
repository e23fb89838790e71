#include "van/rdma/verbs/library.h"

#include <arpa/inet.h>
#include <dlfcn.h>

#include <cstring>

#include "absl/strings/str_cat.h"
#include "runtime/base/fork.h"
#include "runtime/base/status_macros.h"
#include "runtime/log/log.h"

namespace leeway::van::verbs {
namespace {

constexpr char kVerbsFile[] = "libibverbs.so.1";
constexpr char kCmFile[] = "librdmacm.so.1";

// Looks up functions of one library, which stays open for good: what it has allocated and
// registered stays in use. Remembers the first error.
class Symbols {
 public:
  explicit Symbols(const char* file)
      : file_(file), handle_(::dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)) {
    if (handle_ != nullptr) return;
    const char* const why = ::dlerror();
    status_ = absl::NotFoundError(
        absl::StrCat(file,
                     " is not installed (Debian: apt install libibverbs1 librdmacm1 "
                     "ibverbs-providers): ",
                     why == nullptr ? "" : why));
  }

  template <class Function>
  void Take(const char* name, const char* version, Function* function) {
    if (!status_.ok()) return;
    void* const symbol = ::dlvsym(handle_, name, version);
    if (symbol == nullptr) {
      status_ = absl::NotFoundError(
          absl::StrCat(file_, " has no ", name, "@", version, ": rdma-core 35 or newer is needed"));
    }
    static_assert(sizeof(*function) == sizeof(symbol));
    std::memcpy(function, &symbol, sizeof(symbol));
  }
  const absl::Status& status() const { return status_; }

 private:
  const char* const file_;
  void* const handle_;
  absl::Status status_;
};

// Without fork safety, on kernels before 5.12, a forked child may take pages away from the device.
// It has to be enabled before any memory is registered.
void AskForForkSafety(const Library& library) {
  if (library.is_fork_initialized() != IBV_FORK_DISABLED) return;
  if (const int error = library.fork_init(); error != 0) {
    runtime::LogWarning("rdma: this process must not fork: ibv_fork_init fails (",
                        std::strerror(error), ")");
  }
}

}  // namespace

// The library exports this function with an older structure, of which the headers' structure is an
// extension; its further fields stay zero.
int QueryPort(const Library& library, ibv_context* context, std::uint8_t port, ibv_port_attr* out) {
  *out = {};
  return library.query_port(context, port, reinterpret_cast<_compat_ibv_port_attr*>(out));
}

absl::StatusOr<Library> LoadLibrary(const char* verbs_file, const char* cm_file) {
  Library library{};
#define LEEWAY_TAKE(PREFIX, NAME, VERSION) symbols.Take(#PREFIX #NAME, VERSION, &library.NAME);
  {
    Symbols symbols(verbs_file);
    LEEWAY_IBVERBS_FUNCTIONS(LEEWAY_TAKE)
    LEEWAY_RETURN_IF_ERROR(symbols.status());
  }
  Symbols symbols(cm_file);
  LEEWAY_RDMACM_FUNCTIONS(LEEWAY_TAKE)
#undef LEEWAY_TAKE
  LEEWAY_RETURN_IF_ERROR(symbols.status());
  return library;
}

// What the libraries have opened belongs to the parent, also in their own memory, and the device's
// pages are not in the child: so a child has none, neither to use nor to destroy anything with.
const absl::StatusOr<Library>& SystemLibrary() {
  // Never destroyed: objects with static lifetime may use it.
  static const auto* const library = [] {
    auto* const loaded = new absl::StatusOr<Library>(LoadLibrary(kVerbsFile, kCmFile));
    if (loaded->ok()) AskForForkSafety(**loaded);
    return loaded;
  }();
  static const std::uint64_t forks = runtime::ForkCount();
  static const auto* const of_the_parent = new absl::StatusOr<
      Library>(absl::FailedPreconditionError(
      "this process was forked by one that has loaded the libraries of rdma, which its children "
      "cannot use"));
  return library->ok() && forks != runtime::ForkCount() ? *of_the_parent : *library;
}

std::string GidText(const ibv_gid& gid) {
  char text[INET6_ADDRSTRLEN] = {};
  return ::inet_ntop(AF_INET6, gid.raw, text, sizeof(text)) == nullptr ? "" : text;
}

std::string GidTypeText(std::uint32_t type) {
  switch (type) {
    case IBV_GID_TYPE_ROCE_V1:
      return "RoCE v1";
    case IBV_GID_TYPE_ROCE_V2:
      return "RoCE v2";
    default:
      return "InfiniBand";
  }
}

std::string LinkText(std::uint8_t link_layer) {
  return link_layer == IBV_LINK_LAYER_ETHERNET ? "Ethernet" : "InfiniBand";
}

std::string PortStateText(ibv_port_state state) {
  switch (state) {
    case IBV_PORT_DOWN:
      return "DOWN";
    case IBV_PORT_INIT:
      return "INIT";
    case IBV_PORT_ARMED:
      return "ARMED";
    case IBV_PORT_ACTIVE:
      return "ACTIVE";
    case IBV_PORT_ACTIVE_DEFER:
      return "ACTIVE_DEFER";
    default:
      return "NOP";
  }
}

std::uint32_t MtuBytes(ibv_mtu mtu) { return 128u << static_cast<unsigned>(mtu); }

}  // namespace leeway::van::verbs
