// The digest of many runs of one array, for passes that look at each byte once.
#pragma once

#include <cstddef>

#include "reshard/model/digest.hpp"
#include "src/copy/kernels/dispatch.hpp"

namespace reshard {

/// How to store so many bytes, summed over all ranks that copy at once, while they are added.
[[nodiscard]] Store summed_store_for(Index bytes);

/// Adds runs of bytes. Keeps the sum of the current block, since runs in one block are frequent.
class DigestSum {
public:
    DigestSum(const DigestKeys& keys, Index array);  ///< the keys must outlive the sum

    void add(const std::byte* from, Index position, Index bytes);  ///< bytes at positions from `position` on

    /// Copies the bytes and adds them in one pass over memory. pre: a streaming store is fenced later.
    void copy(const std::byte* from, std::byte* to, Index position, Index bytes, Store store);

    [[nodiscard]] Digest total();  ///< of all runs

private:
    __extension__ using Wide = unsigned __int128;
    template <class Part>
    void each_part(Index position, Index bytes, const Part& part);
    template <bool copies>
    void add_part(const std::byte* from, std::byte* to, Index position, Index bytes);
    template <bool copies>
    void add_words(const std::byte* from, std::byte* to, Index position, Index bytes);
    template <bool copies>
    void add_bytes(const std::byte* from, std::byte* to, Index position, Index bytes);
    void add_places(std::size_t first, std::size_t words);
    void enter(Index block);
    void close_block();

    const DigestKeys::Tables& tables_;
    std::uint64_t array_;
    Index block_ = -1;
    Wide inner_ = 0;  // the sum of the current block, without its key
    Store store_ = Store::cached;
    Digest total_;
};

}  // namespace reshard
