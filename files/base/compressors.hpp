// The compression libraries, as far as this build has them: libzstd, zlib and c-blosc.
#pragma once

#include <memory>

#include "files/base/codecs.hpp"

namespace reshard::files {

/// Returns a bound of the compressed bytes of `bytes` bytes.
[[nodiscard]] Index compressed_bound(const Codec& codec, Index bytes);
/// Return bounds of the memory that the library takes for itself.
[[nodiscard]] Index decompress_memory(const Codec& codec, Index bytes);
[[nodiscard]] Index compress_memory(const Codec& codec, Index bytes);

/// The libraries' contexts for one thread.
class Compressors {
public:
    Compressors();
    Compressors(const Compressors&) = delete;
    Compressors& operator=(const Compressors&) = delete;
    ~Compressors();

    /// Decompresses to the start of `into`, and returns how many bytes it wrote. Errors: io (damaged bytes, more bytes
    /// than fit).
    [[nodiscard]] Result<Index> decompress(const Codec& codec, std::span<const std::byte> from,
                                           std::span<std::byte> into);
    /// Compresses to the start of `into`, which has compressed_bound bytes. Errors: io (no memory, more bytes than
    /// blosc can hold).
    [[nodiscard]] Result<Index> compress(const Codec& codec, Index element_bytes, std::span<const std::byte> from,
                                         std::span<std::byte> into);

private:
    struct Libraries;
    std::unique_ptr<Libraries> libraries_;
};

}  // namespace reshard::files
