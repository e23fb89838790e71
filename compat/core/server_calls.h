// The calls that workers make to the KVServers and SimpleApps of this server.
#ifndef LEEWAY_COMPAT_CORE_SERVER_CALLS_H_
#define LEEWAY_COMPAT_CORE_SERVER_CALLS_H_

#include <string>

#include "compat/ps/internal/customer.h"
#include "compat/ps/internal/transfer.h"

namespace leeway::compat {

// Registers the handler of these calls, once a process. Any thread.
void RegisterServerHandler();

}  // namespace leeway::compat

namespace ps::internal {

// Responds to a request of SimpleApp that a call has brought. False: none has.
bool RespondByCall(Customer* customer, const SimpleMessage& to, const std::string& body);

}  // namespace ps::internal

#endif  // LEEWAY_COMPAT_CORE_SERVER_CALLS_H_
