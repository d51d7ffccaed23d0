// Runs of bytes that bypass the caches, by non-temporal stores of whole lines: a part of body.hpp, which explains how
// it is compiled.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "src/copy/kernels/rows.hpp"

namespace reshard::KERNELS_NAMESPACE {
namespace {

[[gnu::always_inline]] inline void stream_line(std::byte* target, const std::byte* line) {
#if defined(__AVX512F__)
    _mm512_stream_si512(reinterpret_cast<__m512i*>(target), _mm512_loadu_si512(line));
#elif defined(__AVX__)
    for (int i = 0; i < 2; ++i) {
        _mm256_stream_si256(reinterpret_cast<__m256i*>(target) + i,
                            _mm256_loadu_si256(reinterpret_cast<const __m256i*>(line) + i));
    }
#elif defined(__x86_64__)
    for (int i = 0; i < 4; ++i) {
        _mm_stream_si128(reinterpret_cast<__m128i*>(target) + i,
                         _mm_loadu_si128(reinterpret_cast<const __m128i*>(line) + i));
    }
#else
    std::memcpy(target, line, line_bytes);
#endif
}

[[gnu::always_inline]] inline Size to_line(const std::byte* address) {
    return static_cast<Size>(-reinterpret_cast<std::uintptr_t>(address) & (line_bytes - 1));
}

// Stores part of a line, by non-temporal stores of words if it consists of whole words. A plain store would first fetch
// the line, and all later stores would wait for that. If another rank owns the neighbours, the line would also move
// back and forth.
[[gnu::always_inline]] inline void stream_part(const std::byte* source, std::byte* target, Size bytes) {
#if defined(__x86_64__)
    constexpr Size word = sizeof(int);
    if (((reinterpret_cast<std::uintptr_t>(target) | static_cast<std::uintptr_t>(bytes)) & (word - 1)) == 0) {
        for (Size at = 0; at < bytes; at += word) {
            int one = 0;
            std::memcpy(&one, source + at, sizeof one);
            _mm_stream_si32(reinterpret_cast<int*>(target + at), one);
        }
        return;
    }
#endif
    copy_run(source, target, bytes);
}

// Copies to a target that begins with a line. Returns the bytes of a last line that is not whole and is not copied. The
// bytes after a run are prefetched too, because a copy to many memories reads them next.
[[gnu::always_inline]] inline Size stream_lines(const std::byte*& source, std::byte*& target, Size bytes) {
    constexpr Size ahead = 1024;
    for (; bytes >= 4 * line_bytes; bytes -= 4 * line_bytes) {
        for (Size i = 0; i < 4; ++i) __builtin_prefetch(source + ahead + i * line_bytes);
        for (Size i = 0; i < 4; ++i) stream_line(target + i * line_bytes, source + i * line_bytes);
        source += 4 * line_bytes;
        target += 4 * line_bytes;
    }
    for (; bytes >= line_bytes; bytes -= line_bytes) {
        stream_line(target, source);
        source += line_bytes;
        target += line_bytes;
    }
    return bytes;
}

[[gnu::always_inline]] inline void stream_run(const std::byte* source, std::byte* target, Size bytes) {
    const bool in_words = bytes >= 4 * line_bytes;  // the parts of shorter ones are too many
    const auto store_part = [&](Size part) {
        in_words ? stream_part(source, target, part) : copy_run(source, target, part);
    };
    const Size head = to_line(target);
    if (head >= bytes) return store_part(bytes);
    store_part(head);
    source += head;
    target += head;
    store_part(stream_lines(source, target, bytes - head));
}

// Copies a row whose target begins where the target of the row before ended. The line that both rows share is assembled
// in `edge`, which already holds `held` bytes, and stored whole like any other line.
[[gnu::always_inline]] inline void stream_on(std::byte* edge, Size& held, const std::byte* source, std::byte* target,
                                             Size bytes) {
    if (held > 0) {
        const Size rest = line_bytes - held;
        copy_run(source, edge + held, bytes < rest ? bytes : rest);
        if (bytes < rest) {
            held += bytes;
            return;
        }
        stream_line(target - held, edge);
        source += rest;
        target += rest;
        bytes -= rest;
    } else if (const Size head = to_line(target); head > 0) {  // of the first row: the line is not this copy's alone
        stream_part(source, target, head < bytes ? head : bytes);
        if (bytes <= head) return;
        source += head;
        target += head;
        bytes -= head;
    }
    held = stream_lines(source, target, bytes);
    copy_run(source, edge, held);
}

void stream_lanes(std::span<Lane> lanes, Size rows) {
    for (Size row = 0; row < rows; ++row) {
        for (Lane& lane : lanes) {
            if (lane.target_stride == lane.bytes) {
                stream_on(lane.edge, lane.held, lane.source, lane.target, lane.bytes);
            } else {
                stream_run(lane.source, lane.target, lane.bytes);
            }
            lane.source += lane.source_stride;
            lane.target += lane.target_stride;
        }
    }
    for (Lane& lane : lanes) {
        stream_part(lane.edge, lane.target - lane.held, lane.held);
        lane.held = 0;
    }
}

void stream_rows(const Rows& rows, const std::byte* source, std::byte* target) {
    if (rows.bytes < line_bytes) return copy_rows(rows, source, target);
    Lane lane{source, target, rows.source_stride, rows.target_stride, rows.bytes};
    stream_lanes({&lane, 1}, rows.count);
}

}  // namespace
}  // namespace reshard::KERNELS_NAMESPACE
