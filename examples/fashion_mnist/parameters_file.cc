#include "examples/fashion_mnist/parameters_file.h"

#include <cstdint>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace leeway::fashion_mnist {
namespace {

std::string Header(const std::vector<Parameter>& parameters) {
  std::string header = "{";
  std::size_t offset = 0;
  for (const Parameter& parameter : parameters) {
    const std::size_t end = offset + parameter.size() * sizeof(float);
    absl::StrAppend(&header, offset == 0 ? "" : ",", "\"", parameter.name,
                    "\":{\"dtype\":\"F32\",\"shape\":[", absl::StrJoin(parameter.shape, ","),
                    "],\"data_offsets\":[", offset, ",", end, "]}");
    offset = end;
  }
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');  // so that the numbers are aligned
  return header;
}

}  // namespace

absl::Status SaveParameters(const std::string& path, const std::vector<Parameter>& parameters,
                            const std::vector<Tensor>& values) {
  const std::string header = Header(parameters);
  char length[8];
  for (int i = 0; i < 8; ++i) length[i] = static_cast<char>(header.size() >> (8 * i));
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(length, sizeof(length)) << header;
  for (const Tensor& tensor : values) {
    file.write(reinterpret_cast<const char*>(tensor.data()),
               static_cast<std::streamsize>(tensor.size() * sizeof(float)));
  }
  file.close();
  if (!file) return absl::UnavailableError(absl::StrCat("cannot write ", path));
  return absl::OkStatus();
}

}  // namespace leeway::fashion_mnist
