// Functions with the names of those that Leeway's own libraries have, as a program brings them that
// uses other versions of spdlog, FlatBuffers and ZeroMQ. Linked with examples/outside/worker.cc;
// Leeway must call none of them.
#include <cstdio>
#include <cstdlib>

namespace {

[[noreturn]] void Called(const char* function) {
  std::fprintf(stderr, "other_versions: Leeway calls the program's %s\n", function);
  std::abort();
}

}  // namespace

namespace spdlog {

namespace details {
struct log_msg;
}

class logger {
 public:
  virtual ~logger();
  virtual void sink_it_(const details::log_msg& message);
  virtual void flush_();
};

logger::~logger() { Called("spdlog::logger::~logger"); }
void logger::sink_it_(const details::log_msg&) { Called("spdlog::logger::sink_it_"); }
void logger::flush_() { Called("spdlog::logger::flush_"); }

}  // namespace spdlog

namespace flatbuffers {

struct vector_downward {
  void reallocate(unsigned long bytes);
};

struct DefaultAllocator {
  unsigned char* allocate(unsigned long bytes);
};

void vector_downward::reallocate(unsigned long) { Called("flatbuffers' reallocate"); }
unsigned char* DefaultAllocator::allocate(unsigned long) { Called("flatbuffers' allocate"); }

}  // namespace flatbuffers

extern "C" {
void* zmq_ctx_new() { Called("zmq_ctx_new"); }
void* zmq_socket(void*, int) { Called("zmq_socket"); }
int zmq_msg_init_size(void*, unsigned long) { Called("zmq_msg_init_size"); }
int zmq_msg_recv(void*, void*, int) { Called("zmq_msg_recv"); }
}
