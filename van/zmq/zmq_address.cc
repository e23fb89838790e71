#include "van/zmq/zmq_address.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "runtime/base/status_macros.h"

namespace leeway::van {
namespace {

absl::Status SenselessZmqAddress(absl::string_view address, absl::string_view why) {
  return SenselessAddress(address, why, "tcp://HOST:PORT, ipc://PATH or inproc://NAME");
}

}  // namespace

absl::StatusOr<ZmqAddress> ParseZmqAddress(absl::string_view address) {
  ZmqAddress parsed;
  absl::string_view rest = address;
  if (absl::StrContains(address, '\0')) return SenselessZmqAddress(address, "it holds a zero byte");
  if (absl::StartsWith(address, "tcp://")) {
    LEEWAY_ASSIGN_OR_RETURN(TcpAddress tcp, ParseTcpAddress(address));
    parsed.host = std::move(tcp.host);
    parsed.port = tcp.port;
    return parsed;
  }
  if (absl::ConsumePrefix(&rest, "ipc://")) {
    parsed.scheme = ZmqScheme::kIpc;
    if (rest.size() >= sizeof(sockaddr_un::sun_path)) {
      return SenselessZmqAddress(
          address,
          absl::StrCat("a path has at most ", sizeof(sockaddr_un::sun_path) - 1, " bytes"));
    }
  } else if (absl::ConsumePrefix(&rest, "inproc://")) {
    parsed.scheme = ZmqScheme::kInproc;
    if (rest.size() > 200) return SenselessZmqAddress(address, "a name has at most 200 bytes");
  } else {
    return SenselessZmqAddress(address, "it does not begin with tcp://, ipc:// or inproc://");
  }
  if (rest.empty()) return SenselessZmqAddress(address, "it ends too early");
  parsed.name = std::string(rest);
  return parsed;
}

absl::Status MakeRoomForIpc(const std::string& address, const std::string& path) {
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0) return absl::OkStatus();
  if (!S_ISSOCK(info.st_mode)) {
    return absl::AlreadyExistsError(absl::StrCat("cannot listen on ", address,
                                                 ": there is a file of that name; choose another "
                                                 "path"));
  }
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::memcpy(name.sun_path, path.data(), path.size());
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return absl::OkStatus();  // binding will report it
  const int rc = connect(fd, reinterpret_cast<const sockaddr*>(&name), sizeof(name));
  const int error = errno;
  close(fd);
  if (rc == 0 || error != ECONNREFUSED) {
    return absl::AlreadyExistsError(
        absl::StrCat("cannot listen on ", address,
                     ": it is in use; choose another path or stop the process that holds it"));
  }
  unlink(path.c_str());
  return absl::OkStatus();
}

}  // namespace leeway::van
