// Compression: chains of zstd, gzip, zlib, blosc and crc32c. Each library is optional when reshard is built.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reshard/planner/integer.hpp"
#include "reshard/result.hpp"

namespace reshard::files {

/// One codec of a chain. Its text is kind:level, or blosc:compressor:level:shuffle.
struct Codec {
    enum class Kind { zstd, gzip, zlib, blosc, crc32c };
    enum class Shuffle { none, bytes, bits };
    Kind kind = Kind::zstd;
    int level = 0;
    std::string compressor = {};      ///< inside blosc: blosclz, lz4, lz4hc, zlib or zstd
    Shuffle shuffle = Shuffle::none;  ///< of blosc
    bool checksum = false;            ///< of zstd, after each frame
    friend bool operator==(const Codec&, const Codec&) = default;
};

/// Codecs, in encoding order.
using Codecs = std::vector<Codec>;

/// Reads `zstd:3`, `gzip:5`, `zlib:1`, `blosc:lz4:5:shuffle`, `crc32c`, several with commas between, or `none`. Levels
/// and what follows them may be left out. Errors: usage (another text, a level that the codec lacks).
[[nodiscard]] Result<Codecs> parse_codecs(std::string_view text);
/// Returns the text that parse_codecs reads; "" for no codecs.
[[nodiscard]] std::string format(const Codecs& codecs);
/// Fails if this build has no library for a codec. Errors: unsupported (names the codec and the package).
[[nodiscard]] Result<void> available(const Codecs& codecs);

class Compressors;

/// Encodes and decodes on one thread.
class Coder {
public:
    /// `element_bytes` is the distance of bytes that blosc's shuffle puts together. Errors: as available.
    [[nodiscard]] static Result<Coder> make(Codecs codecs, Index element_bytes);
    Coder(Coder&&) noexcept;
    Coder& operator=(Coder&&) noexcept;
    ~Coder();

    /// Returns a bound of the encoded bytes of `bytes` bytes.
    [[nodiscard]] Index bound(Index bytes) const;
    /// Return bounds of the memory, beside both ends, that it takes for `bytes` decoded bytes.
    [[nodiscard]] Index decode_memory(Index bytes) const;
    [[nodiscard]] Index encode_memory(Index bytes) const;

    /// Decodes to exactly the bytes of `into`. Never writes past its end. Errors: io (damaged bytes, a false checksum,
    /// fewer or more decoded bytes).
    [[nodiscard]] Result<void> decode(std::span<const std::byte> encoded, std::span<std::byte> into);
    /// Encodes to the start of `into`, which has bound(bytes) bytes, and returns how many it wrote. Errors: io.
    [[nodiscard]] Result<Index> encode(std::span<const std::byte> bytes, std::span<std::byte> into);

private:
    Coder(Codecs codecs, Index element_bytes);

    Codecs codecs_;
    Index element_bytes_ = 1;
    std::unique_ptr<Compressors> compressors_;
    std::vector<std::byte> between_;  // two codecs that compress
};

}  // namespace reshard::files
