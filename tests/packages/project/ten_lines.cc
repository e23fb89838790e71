// Adds to a table until there is a file of the name that it is given.
#include <leeway/worker.h>

#include <cstdio>
#include <filesystem>
#include <vector>

int main(int, char** argv) {
  auto worker = leeway::Worker::Connect();
  auto table = (*worker)->CreateTable(leeway::TableSpec::Dense("sum", {3}));
  std::vector<float> ones(3, 1), sum(3);
  do {
    if (!(*worker)->Wait(table->Push(std::span<const float>(ones))).ok()) return 1;
    if (!(*worker)->Clock().ok() || !(*worker)->Wait(table->Pull(std::span<float>(sum))).ok())
      return 1;
    std::puts("trained"), std::fflush(stdout);
  } while (argv[1] != nullptr && !std::filesystem::exists(argv[1]));
}
