// ReadPlainly reads a safetensors file by its published format, without any of the library's code:
// other programs have to be able to read the library's files.
#ifndef LEEWAY_TESTS_CHECKPOINTS_PLAIN_READER_H_
#define LEEWAY_TESTS_CHECKPOINTS_PLAIN_READER_H_

#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace leeway::tests {

struct PlainTensor {
  std::string type;  // "F32"
  std::vector<std::uint64_t> shape;
  std::string bytes;

  template <class T>
  std::vector<T> As() const {
    std::vector<T> values(bytes.size() / sizeof(T));
    std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
    return values;
  }
};

struct PlainFile {
  std::map<std::string, PlainTensor> tensors;
  std::map<std::string, std::string> metadata;
};

// Fails the test with the reason, unless the header is right and the tensors fill the bytes behind
// it, one after another.
PlainFile ReadPlainly(const std::string& contents);

}  // namespace leeway::tests

#endif  // LEEWAY_TESTS_CHECKPOINTS_PLAIN_READER_H_
