// Environment is the environment of the process, and what the program has set on top of it.
#ifndef PS_INTERNAL_ENV_H_
#define PS_INTERNAL_ENV_H_

#include <string>
#include <unordered_map>

namespace ps {

class Environment {
 public:
  static Environment* Get();
  // Variables that go before those of the process, from now on. Before Start.
  static Environment* Init(const std::unordered_map<std::string, std::string>& variables);

  // Null: it is not set. The text is valid until the next Init.
  const char* find(const char* name);

 private:
  Environment() = default;

  std::unordered_map<std::string, std::string> variables_;
};

}  // namespace ps

#endif  // PS_INTERNAL_ENV_H_
