// Blocks holds blocks of floats as a worker pushes them, and runs a codec over them: 64 MiB in all,
// so that they come from memory, as gradients do.
#ifndef LEEWAY_BENCHMARKS_CODEC_BLOCKS_H_
#define LEEWAY_BENCHMARKS_CODEC_BLOCKS_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "leeway/codec.h"

namespace leeway::bench {

class Blocks {
 public:
  static constexpr std::size_t kElements = 131072;  // of a block
  static constexpr std::size_t kCount = 128;
  static constexpr std::size_t kBytes = kElements * sizeof(float);

  // Encodes every block once. NOT_FOUND: there is no codec of that name.
  static absl::StatusOr<std::unique_ptr<Blocks>> Make(const std::string& codec);

  // Each processes one block, `block` < kCount. Values are added to, and written to, a second array
  // of as many floats.
  void Copy(std::size_t block);
  void Add(std::size_t block);
  absl::Status Encode(std::size_t block);
  absl::Status Decode(std::size_t block);
  absl::Status DecodeAdd(std::size_t block);
  // Encodes from the second array, which holds the values after Fill, and the dropped part
  // afterwards.
  absl::Status EncodeAndSubtract(std::size_t block);
  void Fill();

 private:
  explicit Blocks(std::shared_ptr<const Codec> codec);

  EncodeTerms TermsOf(std::size_t block);
  std::span<std::byte> RoomOf(std::size_t block);
  std::span<const std::byte> MessageOf(std::size_t block) const;
  absl::Status Keep(std::size_t block, const absl::StatusOr<std::size_t>& bytes);

  const std::shared_ptr<const Codec> codec_;
  const std::size_t room_, state_elements_;
  std::vector<float> values_, to_, state_;
  std::vector<std::byte> messages_;
  std::vector<std::size_t> sizes_;
};

}  // namespace leeway::bench

#endif  // LEEWAY_BENCHMARKS_CODEC_BLOCKS_H_
