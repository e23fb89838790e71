// ZmqApi holds the functions of libzmq, which is loaded when the first context is made.
//
// So a program that is linked with Leeway may use another version of ZeroMQ, and one that does not
// use ZeroMQ need not have it.
#ifndef LEEWAY_VAN_ZMQ_ZMQ_API_H_
#define LEEWAY_VAN_ZMQ_ZMQ_API_H_

#include <zmq.h>

#include "absl/status/status.h"

#define LEEWAY_ZMQ_FUNCTIONS(function)                                                           \
  function(zmq_bind) function(zmq_close) function(zmq_connect) function(zmq_ctx_get)             \
      function(zmq_ctx_new) function(zmq_ctx_set) function(zmq_ctx_term) function(zmq_errno)     \
          function(zmq_getsockopt) function(zmq_msg_close) function(zmq_msg_data)                \
              function(zmq_msg_get) function(zmq_msg_gets) function(zmq_msg_init)                \
                  function(zmq_msg_init_data) function(zmq_msg_init_size) function(zmq_msg_more) \
                      function(zmq_msg_move) function(zmq_msg_recv) function(zmq_msg_send)       \
                          function(zmq_msg_size) function(zmq_poll) function(zmq_recv)           \
                              function(zmq_send) function(zmq_setsockopt) function(zmq_socket)   \
                                  function(zmq_socket_monitor) function(zmq_strerror)            \
                                      function(zmq_unbind)

namespace leeway::van {

struct ZmqApi {
#define LEEWAY_ZMQ_POINTER(name) decltype(&::name) name = nullptr;
  LEEWAY_ZMQ_FUNCTIONS(LEEWAY_ZMQ_POINTER)
#undef LEEWAY_ZMQ_POINTER
};

// Loads the library, once a process. UNAVAILABLE says which package has it. Any thread.
absl::Status LoadZmq();

// The functions; LoadZmq has succeeded.
const ZmqApi& Zmq();

}  // namespace leeway::van

#endif  // LEEWAY_VAN_ZMQ_ZMQ_API_H_
