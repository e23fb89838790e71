// The handles of the C interface for workers.
#ifndef LEEWAY_WORKER_C_HANDLES_H_
#define LEEWAY_WORKER_C_HANDLES_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "leeway/worker.h"
#include "runtime/c/c_interface.h"

namespace leeway::c {

// What a ragged pull writes. It lives until the operation has completed, and as long as a ticket.
struct PulledRows {
  virtual ~PulledRows() = default;
  virtual const void* data() const = 0;
  virtual std::uint64_t elements() const = 0;

  std::vector<std::uint32_t> widths;
};

template <class T>
struct PulledRowsOf final : PulledRows {
  const void* data() const override { return values.data(); }
  std::uint64_t elements() const override { return values.size(); }

  std::vector<T> values;
};

}  // namespace leeway::c

struct leeway_worker {
  std::unique_ptr<leeway::Worker> worker;
};
struct leeway_spec {
  leeway::TableSpec spec;
};
struct leeway_table {
  leeway::Table table;
};
struct leeway_array {
  leeway::Array array;
};

struct leeway_ticket {
  leeway::Ticket ticket;
  std::shared_ptr<leeway::c::PulledRows> rows;  // of a ragged pull
  // Of a call of a shard handler. It lives until the operation has completed, too.
  std::shared_ptr<std::vector<std::string>> answers = nullptr;
};

#endif  // LEEWAY_WORKER_C_HANDLES_H_
