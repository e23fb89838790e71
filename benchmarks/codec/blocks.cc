#include "codec/blocks.h"

#include <cstring>

#include "compress/kernels/kernels.h"
#include "compress/registry.h"
#include "harness/normal_values.h"
#include "runtime/base/status_macros.h"

namespace leeway::bench {
namespace {

constexpr CodecShape kShape = {.elements = Blocks::kElements, .columns = 1024};

}  // namespace

absl::StatusOr<std::unique_ptr<Blocks>> Blocks::Make(const std::string& codec) {
  LEEWAY_ASSIGN_OR_RETURN(const compress::NamedCodec named, compress::MakeCodec(codec));
  std::unique_ptr<Blocks> blocks(new Blocks(named.codec));
  for (std::size_t i = 0; i < kCount; ++i) LEEWAY_RETURN_IF_ERROR(blocks->Encode(i));
  return blocks;
}

Blocks::Blocks(std::shared_ptr<const Codec> codec)
    : codec_(std::move(codec)),
      room_(codec_->EncodedBytesMax(kShape)),
      state_elements_(codec_->StateElements(kShape)),
      values_(NormalValues(kCount * kElements, 1)),
      to_(values_),
      state_(kCount * state_elements_),
      messages_(kCount * room_),
      sizes_(kCount) {}

EncodeTerms Blocks::TermsOf(std::size_t block) {
  return {.shape = kShape,
          .seed = block,
          .step = sizes_[block] > 0 ? std::uint64_t{1} : 0,
          .state = std::span(state_).subspan(block * state_elements_, state_elements_)};
}
std::span<std::byte> Blocks::RoomOf(std::size_t block) {
  return std::span(messages_).subspan(block * room_, room_);
}
std::span<const std::byte> Blocks::MessageOf(std::size_t block) const {
  return std::span(messages_).subspan(block * room_, sizes_[block]);
}
absl::Status Blocks::Keep(std::size_t block, const absl::StatusOr<std::size_t>& bytes) {
  LEEWAY_RETURN_IF_ERROR(bytes.status());
  sizes_[block] = *bytes;
  return absl::OkStatus();
}

void Blocks::Copy(std::size_t block) {
  std::memcpy(to_.data() + block * kElements, values_.data() + block * kElements, kBytes);
  asm volatile("" : : "r"(to_.data()) : "memory");  // keeps the compiler from dropping the writes
}
void Blocks::Add(std::size_t block) {
  compress::ChosenKernels().reduce.add(values_.data() + block * kElements, kElements, 1,
                                       to_.data() + block * kElements);
}
absl::Status Blocks::Encode(std::size_t block) {
  return Keep(block,
              codec_->Encode(values_.data() + block * kElements, TermsOf(block), RoomOf(block)));
}
absl::Status Blocks::Decode(std::size_t block) {
  return codec_->Decode(MessageOf(block), kShape, to_.data() + block * kElements);
}
absl::Status Blocks::DecodeAdd(std::size_t block) {
  return codec_->DecodeAdd(MessageOf(block), kShape, 1, to_.data() + block * kElements);
}
absl::Status Blocks::EncodeAndSubtract(std::size_t block) {
  return Keep(block, codec_->EncodeAndSubtract(to_.data() + block * kElements, TermsOf(block),
                                               RoomOf(block)));
}
void Blocks::Fill() { to_ = values_; }

}  // namespace leeway::bench
