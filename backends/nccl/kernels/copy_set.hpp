// Copies, casts, fills and folds of boxes that run at once, in one launch per kind of kernel. A set is made relative to
// buffers when a plan is prepared. Addresses, and so the width of accesses, are known when buffers are bound.
#pragma once

#include <array>

#include "backends/nccl/kernels/select_kernel.hpp"
#include "reshard/planner/storage.hpp"

namespace reshard::nccl {

/// Where each buffer begins on the device; null if the run has no such buffer.
using Bases = std::array<std::byte*, buffer_count>;

[[nodiscard]] inline std::byte* base_of(const Bases& bases, BufferId where) {
    return bases[static_cast<std::size_t>(where)];
}

/// One launch. Its boxes begin at `first_box` in the table of all placed boxes.
struct Launch {
    Kernel kernel;
    std::size_t first_box;
    std::uint32_t boxes;
    std::uint32_t blocks;
};

/// The launches of any number of sets, and their boxes. The table must lie on the device when they run.
struct Placed {
    std::vector<DeviceBox> table;
    std::vector<Launch> launches;
};

class CopySet {
public:
    /// pre: same extents and element size; nothing that a set writes overlaps anything else in the set.
    void copy(BufferId from, const Region& source, BufferId to, const Region& target);
    /// As copy, from elements of one type to elements of another or of the same. pre: same extents; each region has
    /// the element size of its type; the types are equal, or tables::can_cast.
    void cast(DType from_dtype, DType to_dtype, BufferId from, const Region& source, BufferId to, const Region& target);
    void fill(BufferId to, const Region& target, const Pattern& pattern);
    /// target = combine(target, source). pre: combine is not copy; dtype and combination fit each other (can_reduce).
    void combine(DType dtype, Combine combine, BufferId from, const Region& source, BufferId to, const Region& target);
    /// pre: a floating or complex dtype.
    void scale(DType dtype, Scale scale, BufferId to, const Region& target);

    [[nodiscard]] bool empty() const { return entries_.empty(); }

    /// Appends to `placed`. Errors: mismatch if an element that is combined or cast is not aligned to its size
    /// in memory.
    [[nodiscard]] Result<void> place(const Bases& bases, Placed& placed) const;

private:
    enum class Kind { copy, cast, fill, fold };
    struct Entry {
        Kind kind;
        DType dtype;
        BufferId from;
        BufferId to;
        LoopNest nest;
        Fold fold = Fold::sum;
        Scale scale = {};
        Pattern pattern = {};
        DType to_dtype = DType::u8;  // of a cast; `dtype` is the source's
    };
    void append(Entry entry);
    std::vector<Entry> entries_;
};

}  // namespace reshard::nccl
