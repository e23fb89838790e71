// Tables in C: descriptions, handles, changes.
#include <string>
#include <utility>
#include <vector>

#include "proto/tables/table_fields.h"
#include "runtime/base/status_macros.h"
#include "worker/c/handles.h"

using leeway::c::CheckNotNull;
using leeway::c::CheckSettings;
using leeway::c::CopyOut;
using leeway::c::Guarded;
using leeway::c::TextOrNone;
using leeway::c::TimeoutOf;

extern "C" {

leeway_spec* leeway_spec_dense(const char* name, leeway_dtype dtype, const uint64_t* shape,
                               size_t dimensions) {
  std::vector<std::uint64_t> sizes;
  if (shape != nullptr) sizes.assign(shape, shape + dimensions);
  return new leeway_spec{leeway::TableSpec::Dense(TextOrNone(name), std::move(sizes),
                                                  static_cast<leeway::DType>(dtype))};
}
leeway_spec* leeway_spec_sparse(const char* name, leeway_dtype dtype, uint64_t row_width) {
  return new leeway_spec{
      leeway::TableSpec::Sparse(TextOrNone(name), row_width, static_cast<leeway::DType>(dtype))};
}
leeway_spec* leeway_spec_ragged(const char* name, leeway_dtype dtype) {
  return new leeway_spec{
      leeway::TableSpec::Ragged(TextOrNone(name), static_cast<leeway::DType>(dtype))};
}
void leeway_spec_free(leeway_spec* spec) { delete spec; }
leeway_error* leeway_spec_set(leeway_spec* spec, const char* field, const char* text) {
  return Guarded([&]() -> absl::Status {
    LEEWAY_RETURN_IF_ERROR(CheckNotNull("spec", spec, "field", field, "text", text));
    return leeway::proto::SetField(&spec->spec, field, text);
  });
}
leeway_error* leeway_create_table(leeway_worker* worker, const leeway_spec* spec,
                                  leeway_table** table) {
  return Guarded([&]() -> absl::Status {
    LEEWAY_RETURN_IF_ERROR(CheckNotNull("worker", worker, "spec", spec, "table", table));
    LEEWAY_ASSIGN_OR_RETURN(leeway::Table created, worker->worker->CreateTable(spec->spec));
    *table = new leeway_table{std::move(created)};
    return absl::OkStatus();
  });
}
leeway_error* leeway_open_table(leeway_worker* worker, const char* name, leeway_table** table) {
  return Guarded([&]() -> absl::Status {
    LEEWAY_RETURN_IF_ERROR(CheckNotNull("worker", worker, "name", name, "table", table));
    LEEWAY_ASSIGN_OR_RETURN(leeway::Table opened, worker->worker->OpenTable(name));
    *table = new leeway_table{std::move(opened)};
    return absl::OkStatus();
  });
}
void leeway_table_free(leeway_table* table) { delete table; }
const char* leeway_table_name(const leeway_table* table) {
  return table == nullptr ? "" : table->table.spec().name.c_str();
}
leeway_kind leeway_table_kind(const leeway_table* table) {
  return table == nullptr ? LEEWAY_DENSE : static_cast<leeway_kind>(table->table.spec().kind);
}
leeway_dtype leeway_table_dtype(const leeway_table* table) {
  return table == nullptr ? LEEWAY_FLOAT32 : static_cast<leeway_dtype>(table->table.spec().dtype);
}
size_t leeway_table_dimensions(const leeway_table* table) {
  return table == nullptr ? 0 : table->table.spec().shape.size();
}
uint64_t leeway_table_size(const leeway_table* table, size_t dimension) {
  if (dimension >= leeway_table_dimensions(table)) return 0;
  return table->table.spec().shape[dimension];
}
uint64_t leeway_table_elements(const leeway_table* table) {
  return table == nullptr ? 0 : table->table.spec().NumElements();
}
uint64_t leeway_table_row_width(const leeway_table* table) {
  return table == nullptr ? 0 : table->table.spec().row_width;
}
leeway_error* leeway_table_text(const leeway_table* table, char** text) {
  return Guarded([&]() -> absl::Status {
    LEEWAY_RETURN_IF_ERROR(CheckNotNull("table", table, "text", text));
    return CopyOut(table->table.spec().ToString(), text);
  });
}
leeway_error* leeway_set_codec(leeway_worker* worker, const char* table, const char* codec,
                               double timeout_s, uint64_t* clock) {
  return Guarded([&]() -> absl::Status {
    LEEWAY_RETURN_IF_ERROR(CheckNotNull("worker", worker, "table", table, "codec", codec));
    LEEWAY_ASSIGN_OR_RETURN(const std::uint64_t from,
                            worker->worker->SetCodec(table, codec, TimeoutOf(timeout_s)));
    if (clock != nullptr) *clock = from;
    return absl::OkStatus();
  });
}
leeway_error* leeway_change_table(leeway_worker* worker, const char* table,
                                  const leeway_setting* settings, size_t count, double timeout_s,
                                  uint64_t* clock) {
  return Guarded([&]() -> absl::Status {
    LEEWAY_RETURN_IF_ERROR(CheckNotNull("worker", worker, "table", table));
    LEEWAY_RETURN_IF_ERROR(CheckSettings(settings, count));
    leeway::TableChange change;
    for (size_t i = 0; i < count; ++i) {
      LEEWAY_RETURN_IF_ERROR(
          leeway::proto::AddChange(&change, settings[i].name, settings[i].value));
    }
    LEEWAY_ASSIGN_OR_RETURN(const std::uint64_t from,
                            worker->worker->ChangeTable(table, change, TimeoutOf(timeout_s)));
    if (clock != nullptr) *clock = from;
    return absl::OkStatus();
  });
}

}  // extern "C"
