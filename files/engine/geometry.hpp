// A batch as reads, copies and writes: the bytes of each file, and their places in memory.
#pragma once

#include "files/engine/job.hpp"
#include "files/formats/safetensors.hpp"
#include "src/copy/box_runs.hpp"

namespace reshard::files {

/// Elements of a source file that become elements in memory.
struct Overlap {
    Index file = 0;
    DType from = DType::f32;
    DType to = DType::f32;
    Region in_file;
    Region in_memory;
    Index begin = 0;  ///< bytes of the file between the first and the last element
    Index end = 0;
    bool swapped = false;  ///< the file has big-endian elements
};

/// Bytes of a source file that are read together, and the overlaps that begin in them. The bytes of a compressed file
/// are decoded bytes, in whole pieces.
struct ReadRange {
    Index file = 0;
    Index begin = 0;
    Index end = 0;
    std::size_t first = 0;  ///< of the overlaps
    std::size_t last = 0;
};

/// Bytes of a target file that lie one after another in memory.
struct WriteRange {
    Index file = 0;
    Index begin = 0;
    Index end = 0;
    Index memory = 0;
};

/// Elements that are dense in memory and in runs in a target file.
struct WriteRuns {
    Index file = 0;
    Region in_file;
    Index memory = 0;
};

/// Elements in memory that get the fill value, because perhaps no source file holds them.
struct FilledBox {
    Region in_memory;
    Pattern element;
};

struct Geometry {
    Index memory_bytes = 0;
    std::vector<Overlap> overlaps;   ///< by file and place
    std::vector<FilledBox> fills;    ///< before anything is read
    std::vector<ReadRange> reads;    ///< by file and place
    std::vector<WriteRange> writes;  ///< by file and place
    std::vector<WriteRuns> runs;
};

[[nodiscard]] Geometry make_geometry(const Job& job, const Batch& batch);

/// Calls visit(begin in the file, end in the file, begin in memory) for each run.
template <class Visit>
[[nodiscard]] Result<void> for_each_run(const WriteRuns& runs, const Visit& visit) {
    const Region& in_file = runs.in_file;
    const Region in_memory{runs.memory, in_file.element_bytes, in_file.extents,
                           dense_strides(in_file.extents, in_file.element_bytes)};
    return reshard::for_each_run(in_file, in_memory, [&](Index begin, Index memory, Index bytes) {
        return visit(begin, begin + bytes, memory);
    });
}

/// Counts the granules that ranges touch. Ranges must come by file and place. A granule that two neighbours share
/// counts once.
class GranuleCount {
public:
    explicit GranuleCount(Index granule) : granule_(granule) {}
    void add(Index file, Index begin, Index end) {
        if (begin >= end) return;
        const Index first = begin / granule_;
        const Index last = (end - 1) / granule_;
        const bool shared = file == file_ && first <= last_;
        count_ += last - first + 1 - (shared ? std::min(last_, last) - first + 1 : 0);
        last_ = file == file_ ? std::max(last_, last) : last;
        file_ = file;
    }
    [[nodiscard]] Index count() const { return count_; }

private:
    Index granule_;
    Index file_ = -1;
    Index last_ = -1;
    Index count_ = 0;
};

/// Granules that a batch reads and writes.
[[nodiscard]] Index granules_of(const Geometry& geometry, Index granule);

}  // namespace reshard::files
