#include "worker/slicing/pulled_blocks.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "compress/common/halves.h"
#include "runtime/base/status_macros.h"
#include "runtime/memory/copy_ahead.h"

namespace leeway::worker {
namespace {

template <class... Args>
absl::Status Wrong(const Args&... args) {
  return absl::InvalidArgumentError(absl::StrCat("the reply ", args...));
}

}  // namespace

std::uint64_t PulledBlocks::have(std::uint64_t block) const {
  const auto found = held_.find(block);
  return found == held_.end() ? 0 : found->second.version;
}

absl::Status PulledBlocks::Take(std::uint64_t block, std::uint64_t elements,
                                std::span<const proto::ReplyPart> parts,
                                std::span<const std::byte> bytes, std::byte* to) {
  if (const compress::TableCodec* const codec = ByItself(parts); codec != nullptr) {
    return DecodeWhole(*codec, elements, bytes, to);
  }
  Held& held = held_[block];
  std::size_t begin = 0;
  for (const proto::ReplyPart& part : parts) {
    const auto its = bytes.subspan(begin, part.bytes);
    begin += part.bytes;
    // The answer to an earlier pull may come later: its first parts are in the copy already.
    const bool older = part.version <= held.version;
    if (older) continue;
    if (absl::Status changed = Change(&held, part, its, elements); !changed.ok()) {
      held_.erase(block);
      return changed;
    }
    held.version = part.version;
  }
  if (held.values.size() != elements) {
    held_.erase(block);
    return Wrong("says nothing of a block that this worker does not hold");
  }
  Store(held.values, to);
  return absl::OkStatus();
}

// The codec of a reply that is one message of a whole block and needs no copy; null: it is not such
// a reply.
const compress::TableCodec* PulledBlocks::ByItself(std::span<const proto::ReplyPart> parts) const {
  if (parts.size() != 1 || !parts[0].whole) return nullptr;
  const compress::TableCodec* const codec = codecs_->Find(parts[0].codec);
  return codec == nullptr || codec->versions ? nullptr : codec;
}

absl::Status PulledBlocks::Change(Held* held, const proto::ReplyPart& part,
                                  std::span<const std::byte> bytes, std::uint64_t elements) const {
  if (part.codec == compress::kNoCodec && part.whole) {
    if (bytes.size() != elements * sizeof(float)) {
      return Wrong("has a block of ", bytes.size(), " bytes for ", elements, " elements");
    }
    held->values.resize(elements);
    std::memcpy(held->values.data(), bytes.data(), bytes.size());
    return absl::OkStatus();
  }
  const compress::TableCodec* const codec = codecs_->Find(part.codec);
  if (codec == nullptr || !codec->versions || part.whole) {
    return Wrong("is encoded by a codec that does not encode the table's replies so");
  }
  const CodecShape shape = compress::BlockShape(spec_, *codec, elements);
  if (held->values.size() != elements) {
    return Wrong("has what changed in a block that this worker does not hold");
  }
  LEEWAY_RETURN_IF_ERROR(codec->codec->Check(bytes, shape));
  return codec->codec->DecodeAdd(bytes, shape, 1, held->values.data());
}

// Decodes a block from one message of the codec.
absl::Status PulledBlocks::DecodeWhole(const compress::TableCodec& codec, std::uint64_t elements,
                                       std::span<const std::byte> bytes, std::byte* to) {
  const CodecShape shape = compress::BlockShape(spec_, codec, elements);
  if (codec.dtype == spec_.dtype) return codec.codec->Decode(bytes, shape, to);
  decoded_.resize(elements);
  LEEWAY_RETURN_IF_ERROR(codec.codec->Decode(bytes, shape, decoded_.data()));
  Store(decoded_, to);
  return absl::OkStatus();
}

void PulledBlocks::Store(std::span<const float> values, std::byte* to) const {
  if (spec_.dtype == DType::kFloat32) {
    runtime::CopyAhead(values.data(), values.size_bytes(), to);
  } else {
    compress::Narrow(spec_.dtype, values, to);
  }
}

}  // namespace leeway::worker
