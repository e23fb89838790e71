// A model in stores, with a table of each kind, that tests push to, save and load.
#ifndef LEEWAY_PS_CHECKPOINT_TESTING_TEST_MODEL_H_
#define LEEWAY_PS_CHECKPOINT_TESTING_TEST_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/folder.h"
#include "ps/checkpoint/shard_file.h"
#include "ps/store/shard_store.h"
#include "runtime/base/random.h"

namespace leeway::ps {

inline constexpr std::uint64_t kTestBlockBytes = 4096;

// The folder that tests save it in.
inline constexpr char kSavedFolder[] = "saved";
inline std::string SavedPath(std::uint64_t number) {
  return checkpoint::JoinPath(kSavedFolder, checkpoint::CheckpointName(number));
}

// For tests that do not wait.
inline void NoProgress(std::uint64_t, std::uint64_t) {}

class TestModel {
 public:
  explicit TestModel(std::uint32_t num_shards);

  // The same pushes to every model that is given the same seed.
  void Push(std::uint64_t seed, int pushes);

  // Saves all that is there, or what is new since `base`, whose number is `base_number`.
  absl::StatusOr<checkpoint::Manifest> Save(runtime::FileSystem* files,
                                            const std::string& directory, std::uint64_t number,
                                            std::optional<checkpoint::Base> base = std::nullopt);
  // The newest of a chain, saved by a model with whatever number of shards.
  absl::Status Load(runtime::FileSystem* files, const std::string& path);

  std::uint64_t Digest();
  // The values of a pull of that row or block of a table (counted from 0).
  std::vector<std::byte> Pull(std::size_t table, std::uint64_t key);
  std::uint64_t Rows(std::size_t table);  // or blocks that were ever pushed to

  static std::vector<checkpoint::TableEntry> Tables();

 private:
  struct Table {
    checkpoint::TableEntry entry;
    std::unique_ptr<Updater> updater;
    std::vector<std::unique_ptr<ShardStore>> shards;
    std::vector<std::map<std::uint64_t, std::uint64_t>> generations;  // by checkpoint
  };

  ShardContent ContentOf(std::uint32_t shard, const std::string& name, std::uint64_t clock,
                         const std::optional<checkpoint::Base>& base);

  const std::uint32_t num_shards_;
  std::vector<Table> tables_;
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_CHECKPOINT_TESTING_TEST_MODEL_H_
