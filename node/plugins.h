// The loading of plugins: shared libraries with users' updaters, request handlers and codecs
// (leeway/server.h and leeway/codec.h describe them).
#ifndef LEEWAY_NODE_PLUGINS_H_
#define LEEWAY_NODE_PLUGINS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace leeway::node {

// For a server: loads each and calls its LeewayRegister and LeewayRegisterCodecs, of which it has
// one at least, in order; they stay loaded. The first that fails stops it: NOT_FOUND or
// FAILED_PRECONDITION with the loader's reason and LEEWAY_PLUGINS.
absl::Status LoadPlugins(const std::vector<std::string>& paths);

// For a worker: loads each, once in a process, and calls its LeewayRegisterCodecs. One that cannot
// be loaded here, or that has no codecs, is for servers: the log says so, and a table whose codec
// is then missing cannot be opened.
void LoadCodecPlugins(const std::vector<std::string>& paths);

}  // namespace leeway::node

#endif  // LEEWAY_NODE_PLUGINS_H_
