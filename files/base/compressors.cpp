#include "files/base/compressors.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>

#include <fmt/format.h>

#include "src/base/try.hpp"

#if RESHARD_HAS_ZSTD
#include <zstd.h>
#endif
#if RESHARD_HAS_ZLIB
#include <zlib.h>
#endif
#if RESHARD_HAS_BLOSC
#include <blosc.h>
#endif

namespace reshard::files {

namespace {

using Kind = Codec::Kind;

constexpr Index kibi = 1024;
constexpr Index mebi = 1024 * kibi;
constexpr std::string_view more = "decodes to more bytes than it may";

// Deflate may make incompressible bytes a little longer, and the others do so less.
Index loose_bound(Index bytes) { return saturating_add(bytes, bytes / 128 + 4096); }

}  // namespace

Index compressed_bound(const Codec&, Index bytes) { return loose_bound(bytes); }

Index decompress_memory(const Codec& codec, Index bytes) {
    // Blosc holds three of its blocks, and a block is at most the whole. The rest is for the decoder inside.
    return codec.kind == Kind::blosc ? saturating_add(saturating_multiply(3, bytes), 256 * kibi) : 256 * kibi;
}

namespace {

// The tables of zstd grow with the next power of two up to a window, which grows with the level.
Index zstd_memory(int level, Index bytes) {
    constexpr Index window_max = 1 << 27;
    const auto window =
        static_cast<Index>(std::bit_ceil(static_cast<std::uint64_t>(std::clamp<Index>(bytes, kibi, window_max))));
    if (level <= 9) return std::min(13 * window + 512 * kibi, (level <= 3 ? 2 : 13) * mebi);
    const Index most = level <= 18 ? 66 * mebi : level == 19 ? 82 * mebi : 18 * window_max;
    return std::min(18 * window, most) + mebi;
}

// The level of the zstd inside blosc.
int inner_level(int level) { return level < 9 ? 2 * level - 1 : 22; }

}  // namespace

Index compress_memory(const Codec& codec, Index bytes) {
    if (codec.kind == Kind::zstd) return zstd_memory(codec.level, bytes);
    if (codec.kind != Kind::blosc) return 512 * kibi;
    // Blosc cuts chunks into blocks of at most 1 MiB.
    const Index block = std::min(bytes, mebi);
    return 3 * block + (codec.compressor == "zstd" ? zstd_memory(inner_level(codec.level), block) : 512 * kibi);
}

Result<void> available(const Codecs& codecs) {
    const auto missing = [](std::string_view codec, std::string_view library, std::string_view package) {
        return fail(Code::unsupported,
                    fmt::format("the codec {} needs {}, and this build has none: install {} and build "
                                "reshard again",
                                codec, library, package));
    };
    for (const Codec& codec : codecs) {
        if (!RESHARD_HAS_ZSTD && codec.kind == Kind::zstd) return missing("zstd", "libzstd", "libzstd-dev");
        if (!RESHARD_HAS_ZLIB && (codec.kind == Kind::gzip || codec.kind == Kind::zlib))
            return missing(format(Codecs{codec}), "zlib", "zlib1g-dev");
        if (!RESHARD_HAS_BLOSC && codec.kind == Kind::blosc) return missing("blosc", "c-blosc", "libblosc-dev");
#if RESHARD_HAS_BLOSC
        if (codec.kind == Kind::blosc && ::blosc_compname_to_compcode(codec.compressor.c_str()) < 0)
            return fail(Code::unsupported, fmt::format("this c-blosc has no {}", codec.compressor));
#endif
    }
    return {};
}

struct Compressors::Libraries {
#if RESHARD_HAS_ZSTD
    ZSTD_DCtx* zstd_decoder = nullptr;
    ZSTD_CCtx* zstd_encoder = nullptr;
    Libraries() = default;
    Libraries(const Libraries&) = delete;
    Libraries& operator=(const Libraries&) = delete;
    ~Libraries() {
        (void)::ZSTD_freeDCtx(zstd_decoder);
        (void)::ZSTD_freeCCtx(zstd_encoder);
    }
#endif
};

Compressors::Compressors() : libraries_(std::make_unique<Libraries>()) {}
Compressors::~Compressors() = default;

namespace {

#if RESHARD_HAS_ZLIB

// zlib counts bytes in 32 bits, so it gets long spans in parts.
uInt take_part(std::size_t& left) {
    const std::size_t part = std::min<std::size_t>(left, std::numeric_limits<uInt>::max());
    left -= part;
    return static_cast<uInt>(part);
}

Bytef* zlib_bytes(const std::byte* bytes) { return const_cast<Bytef*>(reinterpret_cast<const Bytef*>(bytes)); }

// A gzip file may be several streams, one behind the other.
Result<Index> inflate_all(std::span<const std::byte> from, std::span<std::byte> into) {
    constexpr int any_header = 15 + 32;
    z_stream stream{};
    if (::inflateInit2(&stream, any_header) != Z_OK) return fail(Code::io, "zlib has no memory");
    stream.next_in = zlib_bytes(from.data());
    stream.next_out = zlib_bytes(into.data());
    std::size_t in = from.size();
    std::size_t out = into.size();
    std::string_view wrong;
    std::byte beyond{};
    bool over = false;  // into `beyond`, which tells that the bytes did not end in time
    while (wrong.empty()) {
        if (stream.avail_in == 0) stream.avail_in = take_part(in);
        if (stream.avail_out == 0) stream.avail_out = take_part(out);
        if (stream.avail_out == 0) {
            if (over) break;
            over = true;
            stream.next_out = zlib_bytes(&beyond);
            stream.avail_out = 1;
        }
        const int state = ::inflate(&stream, Z_NO_FLUSH);
        if (over && stream.avail_out == 0) wrong = more;
        if (state == Z_STREAM_END) {
            if (stream.avail_in == 0 && in == 0) break;
            if (::inflateReset(&stream) != Z_OK) wrong = "is damaged";
        } else if (state != Z_OK && state != Z_BUF_ERROR) {
            wrong = "is damaged";
        } else if (stream.avail_in == 0 && in == 0 && stream.avail_out > 0) {
            wrong = "ends too early";
        }
    }
    const std::size_t left = over ? 0 : out + stream.avail_out;
    (void)::inflateEnd(&stream);
    if (!wrong.empty()) return fail(Code::io, std::string(wrong));
    return static_cast<Index>(into.size() - left);
}

Result<Index> deflate_all(int level, bool gzip, std::span<const std::byte> from, std::span<std::byte> into) {
    z_stream stream{};
    if (::deflateInit2(&stream, level, Z_DEFLATED, gzip ? 15 + 16 : 15, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return fail(Code::io, "zlib has no memory");
    stream.next_in = zlib_bytes(from.data());
    stream.next_out = zlib_bytes(into.data());
    std::size_t in = from.size();
    std::size_t out = into.size();
    int state = Z_OK;
    while (state == Z_OK) {
        if (stream.avail_in == 0) stream.avail_in = take_part(in);
        if (stream.avail_out == 0) stream.avail_out = take_part(out);
        state = ::deflate(&stream, in == 0 ? Z_FINISH : Z_NO_FLUSH);
    }
    const std::size_t left = out + stream.avail_out;
    (void)::deflateEnd(&stream);
    if (state != Z_STREAM_END) return fail(Code::io, "zlib could not compress a chunk");
    return static_cast<Index>(into.size() - left);
}

#endif

#if RESHARD_HAS_BLOSC

Result<Index> blosc_decompress_all(std::span<const std::byte> from, std::span<std::byte> into) {
    std::size_t bytes = 0;
    if (::blosc_cbuffer_validate(from.data(), from.size(), &bytes) != 0) return fail(Code::io, "is damaged");
    if (bytes > into.size()) return fail(Code::io, std::string(more));
    const int done = ::blosc_decompress_ctx(from.data(), into.data(), into.size(), 1);
    if (done < 0 || static_cast<std::size_t>(done) != bytes) return fail(Code::io, "is damaged");
    return done;
}

Result<Index> blosc_compress_all(const Codec& codec, Index element_bytes, std::span<const std::byte> from,
                                 std::span<std::byte> into) {
    if (from.size() > BLOSC_MAX_BUFFERSIZE)
        return fail(Code::unsupported, fmt::format("a chunk has {} bytes, and blosc holds at most {}", from.size(),
                                                   static_cast<Index>(BLOSC_MAX_BUFFERSIZE)));
    const int done =
        ::blosc_compress_ctx(codec.level, static_cast<int>(codec.shuffle), static_cast<std::size_t>(element_bytes),
                             from.size(), from.data(), into.data(), into.size(), codec.compressor.c_str(), 0, 1);
    if (done <= 0) return fail(Code::io, "blosc could not compress a chunk");
    return done;
}

#endif

}  // namespace

Result<Index> Compressors::decompress(const Codec& codec, std::span<const std::byte> from, std::span<std::byte> into) {
    switch (codec.kind) {
#if RESHARD_HAS_ZSTD
        case Kind::zstd: {
            ZSTD_DCtx*& context = libraries_->zstd_decoder;
            if (context == nullptr) context = ::ZSTD_createDCtx();
            if (context == nullptr) return fail(Code::io, "zstd has no memory");
            const std::size_t done = ::ZSTD_decompressDCtx(context, into.data(), into.size(), from.data(), from.size());
            if (::ZSTD_isError(done) == 0) return static_cast<Index>(done);
            const auto said = ::ZSTD_findFrameCompressedSize(from.data(), from.size());
            const bool whole = ::ZSTD_isError(said) == 0;
            return fail(Code::io, whole ? fmt::format("is damaged, or {} ({})", more, ::ZSTD_getErrorName(done))
                                        : fmt::format("is damaged ({})", ::ZSTD_getErrorName(done)));
        }
#endif
#if RESHARD_HAS_ZLIB
        case Kind::gzip:
        case Kind::zlib:
            return inflate_all(from, into);
#endif
#if RESHARD_HAS_BLOSC
        case Kind::blosc:
            return blosc_decompress_all(from, into);
#endif
        default:
            return fail(Code::unsupported, "a codec without its library");
    }
}

Result<Index> Compressors::compress(const Codec& codec, Index element_bytes, std::span<const std::byte> from,
                                    std::span<std::byte> into) {
    switch (codec.kind) {
#if RESHARD_HAS_ZSTD
        case Kind::zstd: {
            ZSTD_CCtx*& context = libraries_->zstd_encoder;
            if (context == nullptr) context = ::ZSTD_createCCtx();
            if (context == nullptr) return fail(Code::io, "zstd has no memory");
            (void)::ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, codec.level);
            (void)::ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, codec.checksum ? 1 : 0);
            const std::size_t done = ::ZSTD_compress2(context, into.data(), into.size(), from.data(), from.size());
            if (::ZSTD_isError(done) == 0) return static_cast<Index>(done);
            return fail(Code::io, fmt::format("zstd could not compress a chunk ({})", ::ZSTD_getErrorName(done)));
        }
#endif
#if RESHARD_HAS_ZLIB
        case Kind::gzip:
        case Kind::zlib:
            return deflate_all(codec.level, codec.kind == Kind::gzip, from, into);
#endif
#if RESHARD_HAS_BLOSC
        case Kind::blosc:
            return blosc_compress_all(codec, element_bytes, from, into);
#endif
        default:
            break;
    }
    static_cast<void>(element_bytes);
    return fail(Code::unsupported, "a codec without its library");
}

}  // namespace reshard::files
