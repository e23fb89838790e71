// The loops of sparse codecs: compare elements in vectors, and compress the places of the matches.
#ifndef LEEWAY_COMPRESS_KERNELS_LOOPS_SPARSE_H_
#define LEEWAY_COMPRESS_KERNELS_LOOPS_SPARSE_H_

#include <cstddef>
#include <cstdint>

#include "compress/kernels/sparse_kernels.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace leeway::compress {
namespace {

constexpr std::uint32_t kMagnitudeBits = 0x7fffffffu;

inline std::uint32_t MagnitudeOf(const float* value) {
  std::uint32_t bits;
  __builtin_memcpy(&bits, value, sizeof(bits));
  return bits & kMagnitudeBits;
}

// Returns the number of elements that it compared in vectors; *found is the number of places
// written. As it never writes more places than it compared, a whole vector may be stored behind the
// last one.
inline std::size_t SelectVectors([[maybe_unused]] const float* values,
                                 [[maybe_unused]] std::size_t size,
                                 [[maybe_unused]] std::uint32_t magnitude,
                                 [[maybe_unused]] std::uint32_t first,
                                 [[maybe_unused]] std::uint32_t* places,
                                 [[maybe_unused]] std::size_t* found) {
  std::size_t i = 0;
#if defined(__AVX512F__)
  const __m512i at_least = _mm512_set1_epi32(static_cast<int>(magnitude));
  const __m512i mask = _mm512_set1_epi32(static_cast<int>(kMagnitudeBits));
  __m512i place =
      _mm512_add_epi32(_mm512_set1_epi32(static_cast<int>(first)),
                       _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
  std::size_t count = 0;
  for (; i + 16 <= size; i += 16) {
    const __m512i bits = _mm512_and_si512(_mm512_loadu_si512(values + i), mask);
    const __mmask16 hits = _mm512_cmpge_epu32_mask(bits, at_least);
    // Through a register: to compress into memory takes many times as long on some processors.
    _mm512_storeu_si512(places + count, _mm512_maskz_compress_epi32(hits, place));
    count += static_cast<std::size_t>(__builtin_popcount(hits));
    place = _mm512_add_epi32(place, _mm512_set1_epi32(16));
  }
  *found = count;
#elif defined(__AVX2__)
  // As integers magnitudes are not negative, so that the signed comparison is right.
  const __m256i below = _mm256_set1_epi32(static_cast<int>(magnitude) - 1);
  const __m256i mask = _mm256_set1_epi32(static_cast<int>(kMagnitudeBits));
  std::size_t count = 0;
  for (; i + 32 <= size; i += 32) {
    std::uint32_t hits = 0;
    for (std::size_t j = 0; j < 4; ++j) {
      const __m256i bits = _mm256_and_si256(
          _mm256_loadu_si256(reinterpret_cast<const __m256i_u*>(values + i + 8 * j)), mask);
      const __m256i greater = _mm256_cmpgt_epi32(bits, below);
      hits |= static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(greater)))
              << (8 * j);
    }
    for (; hits != 0; hits &= hits - 1) {
      places[count++] =
          first + static_cast<std::uint32_t>(i) + static_cast<std::uint32_t>(__builtin_ctz(hits));
    }
  }
  *found = count;
#endif
  return i;
}

inline std::size_t Select(const float* values, std::size_t size, std::uint32_t magnitude,
                          std::uint32_t first, std::uint32_t* places) {
  if (magnitude > kMagnitudeBits) return 0;
  std::size_t found = 0;
  for (std::size_t i = SelectVectors(values, size, magnitude, first, places, &found); i < size;
       ++i) {
    places[found] = first + static_cast<std::uint32_t>(i);
    found += MagnitudeOf(values + i) >= magnitude ? 1 : 0;
  }
  return found;
}

inline std::uint32_t HashOfPlace(std::uint32_t place) {
  place ^= place >> 16;
  place *= 0x85ebca6bu;
  place ^= place >> 13;
  place *= 0xc2b2ae35u;
  return place ^ (place >> 16);
}
inline std::uint32_t StepOfHash(std::uint32_t hash) {
  return ((hash * 0x9e3779b9u) ^ (hash >> 15)) | 1u;
}
inline std::uint32_t BitOfHash(std::uint32_t hash, std::uint32_t bits) {
  return static_cast<std::uint32_t>((static_cast<std::uint64_t>(hash) * bits) >> 32);
}

// The step from the hash of one bit of a place to that of the next grows by this constant.
constexpr std::uint32_t kStepOfStep = 0x7feb352du;

struct BitHash {
  std::uint32_t hash;
  std::uint32_t step;
  void Next() {
    hash += step;
    step += kStepOfStep;
  }
};

// The part of the hash of bit number `from` beside `from` equal steps; the product is even.
inline std::uint32_t StepsOfStep(std::uint32_t from) { return from * (from - 1) / 2 * kStepOfStep; }

inline BitHash HashOfBit(std::uint32_t place, std::uint32_t from) {
  const std::uint32_t hash = HashOfPlace(place), step = StepOfHash(hash);
  return {hash + from * step + StepsOfStep(from), step + from * kStepOfStep};
}

inline void AddToFilter(const std::uint32_t* places, std::size_t size, std::uint32_t bits,
                        std::uint32_t hashes, std::uint32_t* words) {
  for (std::size_t i = 0; i < size; ++i) {
    BitHash hash = HashOfBit(places[i], 0);
    for (std::uint32_t j = 0; j < hashes; ++j, hash.Next()) {
      const std::uint32_t bit = BitOfHash(hash.hash, bits);
      words[bit >> 5] |= 1u << (bit & 31u);
    }
  }
}

// Tests a few bits at a time, only for the places that have passed so far: half of them fail at
// each bit of a filter that is filled as intended.
constexpr std::uint32_t kBitsAtOnce = 2;
constexpr std::size_t kFilterStretch = 2048;

#if defined(__AVX2__)
inline __m256i AllLanes(std::uint32_t value) { return _mm256_set1_epi32(static_cast<int>(value)); }

// Tests eight places: bit i of the result is set if the bits of lane i are all set.
inline std::uint32_t EightInFilter(const BloomFilter& filter, __m256i place, std::uint32_t from,
                                   std::uint32_t to) {
  const __m256i bits = AllLanes(filter.bits);
  __m256i hash = _mm256_xor_si256(place, _mm256_srli_epi32(place, 16));
  hash = _mm256_mullo_epi32(hash, AllLanes(0x85ebca6bu));
  hash = _mm256_xor_si256(hash, _mm256_srli_epi32(hash, 13));
  hash = _mm256_mullo_epi32(hash, AllLanes(0xc2b2ae35u));
  hash = _mm256_xor_si256(hash, _mm256_srli_epi32(hash, 16));
  __m256i step = _mm256_xor_si256(_mm256_mullo_epi32(hash, AllLanes(0x9e3779b9u)),
                                  _mm256_srli_epi32(hash, 15));
  step = _mm256_or_si256(step, AllLanes(1));
  hash = _mm256_add_epi32(hash, _mm256_mullo_epi32(step, AllLanes(from)));
  hash = _mm256_add_epi32(hash, AllLanes(StepsOfStep(from)));
  step = _mm256_add_epi32(step, AllLanes(from * kStepOfStep));
  __m256i in = AllLanes(1);
  for (std::uint32_t j = from; j < to; ++j) {
    // The upper halves of the products of the even lanes, and of the odd ones.
    const __m256i even = _mm256_srli_epi64(_mm256_mul_epu32(hash, bits), 32);
    const __m256i odd = _mm256_mul_epu32(_mm256_srli_epi64(hash, 32), bits);
    const __m256i bit = _mm256_blend_epi32(even, odd, 0xaa);
    const __m256i word = _mm256_i32gather_epi32(reinterpret_cast<const int*>(filter.words),
                                                _mm256_srli_epi32(bit, 5), 4);
    in = _mm256_and_si256(in, _mm256_srlv_epi32(word, _mm256_and_si256(bit, AllLanes(31))));
    hash = _mm256_add_epi32(hash, step);
    step = _mm256_add_epi32(step, AllLanes(kStepOfStep));
  }
  return static_cast<std::uint32_t>(
      _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_slli_epi32(in, 31))));
}
#endif

// Keeps the places whose bits from `from` to `to` are all set, and returns their number.
inline std::size_t SelectByBits(const BloomFilter& filter, std::uint32_t from, std::uint32_t to,
                                std::uint32_t* places, std::size_t size) {
  std::size_t found = 0, i = 0;
#if defined(__AVX2__)
  for (; i + 8 <= size; i += 8) {
    const __m256i place = _mm256_loadu_si256(reinterpret_cast<const __m256i_u*>(places + i));
    std::uint32_t hits = EightInFilter(filter, place, from, to);
#if defined(__AVX512VL__)
    _mm256_storeu_si256(reinterpret_cast<__m256i_u*>(places + found),
                        _mm256_maskz_compress_epi32(static_cast<__mmask8>(hits), place));
    found += static_cast<std::size_t>(__builtin_popcount(hits));
#else
    for (; hits != 0; hits &= hits - 1) places[found++] = places[i + __builtin_ctz(hits)];
#endif
  }
#endif
  for (; i < size; ++i) {
    const std::uint32_t place = places[i];
    BitHash hash = HashOfBit(place, from);
    std::uint32_t in = 1;
    for (std::uint32_t j = from; j < to; ++j, hash.Next()) {
      const std::uint32_t bit = BitOfHash(hash.hash, filter.bits);
      in &= filter.words[bit >> 5] >> (bit & 31u);
    }
    places[found] = place;
    found += in;
  }
  return found;
}

inline std::size_t SelectInFilter(const BloomFilter& filter, std::uint32_t first, std::size_t size,
                                  std::uint32_t* places) {
  std::size_t found = 0;
  for (std::size_t begin = 0; begin < size; begin += kFilterStretch) {
    std::size_t passed = size - begin < kFilterStretch ? size - begin : kFilterStretch;
    std::uint32_t* const stretch = places + found;
    for (std::size_t i = 0; i < passed; ++i) {
      stretch[i] = first + static_cast<std::uint32_t>(begin + i);
    }
    for (std::uint32_t j = 0; j < filter.hashes; j += kBitsAtOnce) {
      const std::uint32_t to = filter.hashes - j < kBitsAtOnce ? filter.hashes : j + kBitsAtOnce;
      passed = SelectByBits(filter, j, to, stretch, passed);
    }
    found += passed;
  }
  return found;
}

#if defined(__AVX2__) && !defined(__AVX512F__)
// For each byte of a bitmap, the index of each of its eight elements among the next values.
struct ExpandTable {
  std::uint8_t lanes[256][8];
};
constexpr ExpandTable MakeExpandTable() {
  ExpandTable table = {};
  for (unsigned bits = 0; bits < 256; ++bits) {
    std::uint8_t next = 0;
    for (unsigned lane = 0; lane < 8; ++lane) {
      table.lanes[bits][lane] = next & 7u;
      if (bits >> lane & 1) ++next;
    }
  }
  return table;
}
constexpr ExpandTable kExpandTable = MakeExpandTable();
#endif

inline std::uint32_t AddWhereSet(const std::byte* bitmap, std::size_t size, const std::byte* values,
                                 std::size_t num_values, float factor, float* sum) {
  [[maybe_unused]] const std::byte* const end = values + num_values * sizeof(float);
  std::uint32_t largest = 0;
  std::size_t i = 0;
#if defined(__AVX512F__)
  const __m512 scale = _mm512_set1_ps(factor);
  const __m512i mask = _mm512_set1_epi32(static_cast<int>(kMagnitudeBits));
  __m512i most = _mm512_setzero_si512();
  for (; i + 16 <= size && end - values >= 64; i += 16) {
    std::uint16_t bits;
    __builtin_memcpy(&bits, bitmap + i / 8, sizeof(bits));
    const __m512i next = _mm512_maskz_expand_epi32(bits, _mm512_loadu_si512(values));
    most = _mm512_mask_max_epu32(most, bits, most, _mm512_and_si512(next, mask));
    const __m512 old = _mm512_loadu_ps(sum + i);
    const __m512 product = _mm512_mul_ps(scale, _mm512_castsi512_ps(next));
    _mm512_storeu_ps(sum + i, _mm512_mask_add_ps(old, bits, old, product));
    values += sizeof(float) * static_cast<std::size_t>(__builtin_popcount(bits));
  }
  std::uint32_t lanes[16];
  _mm512_storeu_si512(lanes, most);
  for (const std::uint32_t one : lanes) largest = one > largest ? one : largest;
#elif defined(__AVX2__)
  const __m256 scale = _mm256_set1_ps(factor);
  const __m256i mask = AllLanes(kMagnitudeBits);
  const __m256i bit_of_lane = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
  __m256i most = _mm256_setzero_si256();
  for (; i + 8 <= size && end - values >= 32; i += 8) {
    const auto bits = static_cast<std::uint8_t>(bitmap[i / 8]);
    const __m256i order = _mm256_cvtepu8_epi32(
        _mm_loadl_epi64(reinterpret_cast<const __m128i_u*>(kExpandTable.lanes[bits])));
    const __m256i set =
        _mm256_cmpeq_epi32(_mm256_and_si256(AllLanes(bits), bit_of_lane), bit_of_lane);
    const __m256i loaded = _mm256_loadu_si256(reinterpret_cast<const __m256i_u*>(values));
    const __m256i next = _mm256_and_si256(set, _mm256_permutevar8x32_epi32(loaded, order));
    most = _mm256_max_epu32(most, _mm256_and_si256(next, mask));
    const __m256 old = _mm256_loadu_ps(sum + i);
    const __m256 added = _mm256_add_ps(old, _mm256_mul_ps(scale, _mm256_castsi256_ps(next)));
    _mm256_storeu_ps(sum + i, _mm256_blendv_ps(old, added, _mm256_castsi256_ps(set)));
    values += sizeof(float) * static_cast<std::size_t>(__builtin_popcount(bits));
  }
  std::uint32_t lanes[8];
  _mm256_storeu_si256(reinterpret_cast<__m256i_u*>(lanes), most);
  for (const std::uint32_t one : lanes) largest = one > largest ? one : largest;
#endif
  for (; i < size; i += 8) {
    for (auto bits = static_cast<std::uint32_t>(bitmap[i / 8]); bits != 0; bits &= bits - 1) {
      float value;
      __builtin_memcpy(&value, values, sizeof(value));
      values += sizeof(value);
      const std::uint32_t magnitude = MagnitudeOf(&value);
      largest = magnitude > largest ? magnitude : largest;
      sum[i + static_cast<std::size_t>(__builtin_ctz(bits))] += factor * value;
    }
  }
  return largest;
}

inline float Bounded(float value) {
  constexpr float kLargest = __FLT_MAX__;
  value = value > kLargest ? kLargest : value;
  return value < -kLargest ? -kLargest : value;
}

inline void Accumulate(const float* __restrict gradient, std::size_t size, float factor,
                       float momentum, float* __restrict velocity, float* __restrict sum) {
  for (std::size_t i = 0; i < size; ++i) {
    velocity[i] = Bounded(momentum * velocity[i] + factor * gradient[i]);
    sum[i] = Bounded(sum[i] + velocity[i]);
  }
}

constexpr SparseKernels kSparseLoops = {.select = Select,
                                        .add_to_filter = AddToFilter,
                                        .select_in_filter = SelectInFilter,
                                        .add_where_set = AddWhereSet,
                                        .accumulate = Accumulate};

}  // namespace
}  // namespace leeway::compress

#endif  // LEEWAY_COMPRESS_KERNELS_LOOPS_SPARSE_H_
