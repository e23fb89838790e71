#include "compress/common/zstd_frames.h"

#define ZSTD_STATIC_LINKING_ONLY  // for the mode of literals: an older library without it ignores
                                  // it
#include <zstd.h>

#include <new>

#include "compress/common/float_codec.h"
#include "runtime/memory/thread_object.h"

namespace leeway::compress {
namespace {

// A context of the library. std::bad_alloc without memory.
template <class Context, Context* (*kCreate)(), std::size_t (*kFree)(Context*)>
class Owned {
 public:
  Owned() : context_(kCreate()) {
    if (context_ == nullptr) throw std::bad_alloc();
  }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() { kFree(context_); }
  Context* get() const { return context_; }

 private:
  Context* const context_;
};
using Compressor = runtime::ThreadObject<Owned<ZSTD_CCtx, ZSTD_createCCtx, ZSTD_freeCCtx>>;
using Decompressor = runtime::ThreadObject<Owned<ZSTD_DCtx, ZSTD_createDCtx, ZSTD_freeDCtx>>;

// Steps so long between the places where it looks for repetitions that it finds few.
constexpr int kSearchStep = 4096;

std::size_t BytesOr0(std::size_t result) { return ZSTD_isError(result) != 0 ? 0 : result; }

}  // namespace

std::size_t WriteZstdFrame(std::span<const std::byte> content, int level, std::span<std::byte> to) {
  return BytesOr0(ZSTD_compressCCtx(Compressor()->get(), to.data(), to.size(), content.data(),
                                    content.size(), level));
}

std::size_t WriteHuffmanFrame(std::span<const std::byte> content, std::span<std::byte> to) {
  const Compressor compressor;
  ZSTD_CCtx* const context = compressor->get();
  // What is refused costs bytes, and no more. WriteZstdFrame ignores all of it.
  ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, 1);
  ZSTD_CCtx_setParameter(context, ZSTD_c_targetLength, kSearchStep);
  ZSTD_CCtx_setParameter(context, ZSTD_c_literalCompressionMode, 1);
  return BytesOr0(ZSTD_compress2(context, to.data(), to.size(), content.data(), content.size()));
}

absl::Status ReadZstdFrame(absl::string_view message, std::span<const std::byte> frame,
                           std::span<std::byte> to) {
  // Zstandard itself would accept several frames, and empty ones.
  if (ZSTD_getFrameContentSize(frame.data(), frame.size()) != to.size() ||
      ZSTD_findFrameCompressedSize(frame.data(), frame.size()) != frame.size()) {
    return Malformed(message, "no frame of ", to.size(), " bytes");
  }
  const std::size_t bytes =
      ZSTD_decompressDCtx(Decompressor()->get(), to.data(), to.size(), frame.data(), frame.size());
  if (ZSTD_isError(bytes) != 0) return Malformed(message, ZSTD_getErrorName(bytes));
  if (bytes != to.size()) return Malformed(message, "a frame of ", bytes, " bytes");
  return absl::OkStatus();
}

}  // namespace leeway::compress
