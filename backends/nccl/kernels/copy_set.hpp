// Copies, fills and folds of boxes that run at once, in one launch per kind of kernel. A set is built relative to
// buffers, when a plan is prepared. Addresses, and with them the width of accesses, follow when buffers are bound.
#pragma once

#include <array>

#include "backends/nccl/kernels/select_kernel.hpp"
#include "reshard/planner/storage.hpp"

namespace reshard::nccl {

/// The start of each buffer on the device; null if there is no such buffer.
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

/// Launches and their boxes, for any number of sets. The table must be on the device before they run.
struct Placed {
    std::vector<DeviceBox> table;
    std::vector<Launch> launches;
};

class CopySet {
public:
    /// pre: same extents and element size. In one set, no written region overlaps another region.
    void copy(BufferId from, const Region& source, BufferId to, const Region& target);
    void fill(BufferId to, const Region& target, const Pattern& pattern);
    /// target = combine(target, source). pre: combine is not copy; dtype and combination go together (can_reduce).
    void combine(DType dtype, Combine combine, BufferId from, const Region& source, BufferId to, const Region& target);
    /// pre: a floating or complex dtype.
    void scale(DType dtype, Scale scale, BufferId to, const Region& target);

    [[nodiscard]] bool empty() const { return entries_.empty(); }

    /// Appends to `placed`. Errors: mismatch if a combined element is not aligned to its size.
    [[nodiscard]] Result<void> place(const Bases& bases, Placed& placed) const;

private:
    enum class Kind { copy, fill, fold };
    struct Entry {
        Kind kind;
        DType dtype;
        BufferId from;
        BufferId to;
        LoopNest nest;
        Fold fold;
        Scale scale;
        Pattern pattern;
    };
    void append(Entry entry);
    std::vector<Entry> entries_;
};

}  // namespace reshard::nccl
