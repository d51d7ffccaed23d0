// Sums of products of keys and words, for digests: a part of body.hpp, which says how it is compiled.
#pragma once

#include "src/copy/kernels/transpose.hpp"

namespace reshard::KERNELS_NAMESPACE {
namespace {

using Words = typename Register<std::uint64_t, KERNELS_REGISTER / 8>::type;

// Multiplies the lower halves of 64 bits. Compilers find the instruction by themselves only on AArch64.
[[gnu::always_inline]] inline Words multiply(Words a, Words b) {
#if defined(__AVX512F__)
    // The mask is full. GCC 12 warns of an undefined register if it is absent.
    return reinterpret_cast<Words>(
        _mm512_maskz_mul_epu32(0xff, reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)));
#elif defined(__AVX2__)
    return reinterpret_cast<Words>(_mm256_mul_epu32(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)));
#elif defined(__x86_64__)
    return reinterpret_cast<Words>(_mm_mul_epu32(reinterpret_cast<__m128i>(a), reinterpret_cast<__m128i>(b)));
#else
    return (a & 0xffffffffU) * (b & 0xffffffffU);
#endif
}

[[gnu::always_inline]] inline Words load_words(const void* from) {
    Words words;
    std::memcpy(&words, from, sizeof words);
    return words;
}

// A sum of 64-bit products that wraps, and the sum of their upper halves, which does not.
struct Products {
    Words all = {};
    Words uppers = {};
    [[gnu::always_inline]] void take(Words words, Words keys) {
        add(multiply(words, keys));
        add(multiply(words >> 32, keys >> 32));
    }

private:
    [[gnu::always_inline]] void add(Words product) {
        all += product;
        uppers += product >> 32;
    }
};

enum class Pass { read, copy, stream };

template <Pass pass, int lines>
[[gnu::always_inline]] inline void take_lines(const std::uint32_t* keys, const std::byte* source, std::byte* target,
                                              Products& even, Products& odd) {
    constexpr Size width = sizeof(Words);
    constexpr Size ahead = 1024;
#pragma GCC unroll 4
    for (Size line = 0; line < lines; ++line) __builtin_prefetch(source + ahead + line * line_bytes);
        // All lines are written before any is multiplied: lines that leave together leave faster.
#pragma GCC unroll 4
    for (Size at = 0; at < lines * line_bytes; at += line_bytes) {
        if constexpr (pass == Pass::stream) stream_line(target + at, source + at);
        if constexpr (pass == Pass::copy) std::memcpy(target + at, source + at, line_bytes);
    }
#pragma GCC unroll 16
    for (Size at = 0; at < lines * line_bytes; at += width)
        (at / width % 2 == 0 ? even : odd).take(load_words(source + at), load_words(keys + at / 4));
}

template <Pass pass>
ProductSum sum_products(const std::uint32_t* keys, const std::byte* source, std::byte* target, Size lines) {
    constexpr Size width = sizeof(Words);
    constexpr int together = 4;
    Products even, odd;  // two chains of additions
    Size line = 0;
    for (; line + together <= lines; line += together)
        take_lines<pass, together>(keys + line * 16, source + line * line_bytes, target + line * line_bytes, even, odd);
    for (; line < lines; ++line)
        take_lines<pass, 1>(keys + line * 16, source + line * line_bytes, target + line * line_bytes, even, odd);
    std::uint64_t all[width / 8];
    std::uint64_t uppers[width / 8];
    const Words both = even.all + odd.all;
    const Words both_uppers = even.uppers + odd.uppers;
    std::memcpy(all, &both, sizeof all);
    std::memcpy(uppers, &both_uppers, sizeof uppers);
    ProductSum sum;
    for (Size i = 0; i < width / 8; ++i) {
        sum.low += all[i];
        sum.high += uppers[i];
    }
    sum.low -= sum.high << 32;  // the lower halves alone, whose sum fits
    return sum;
}

}  // namespace
}  // namespace reshard::KERNELS_NAMESPACE
