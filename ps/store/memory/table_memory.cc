#include "ps/store/memory/table_memory.h"

#include "absl/strings/str_cat.h"

namespace leeway::ps {

absl::Status TableMemory::Check(const TableSpec& spec, std::uint64_t more) const {
  if (HasRoom(more)) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "table '", spec.name, "' would take ", more, " bytes more; the tables of this server take ",
      bytes(), " bytes and may take LEEWAY_TABLE_BYTES_MAX=", bytes_max_,
      ": raise it where there is memory, or use more servers"));
}

}  // namespace leeway::ps
