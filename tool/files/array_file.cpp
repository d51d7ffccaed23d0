#include "tool/files/array_file.hpp"

#include <algorithm>
#include <cstring>

#include "src/base/try.hpp"
#include "tool/console/exit.hpp"
#include "tool/files/box_runs.hpp"

namespace reshard::cli {
namespace {

constexpr Index ahead_bytes = Index{1} << 20;

// Short runs that lie close together are read at once and picked out. Runs further apart than this many times their own
// length are read one by one, because most of a common read would be other ranks' tiles.
constexpr Index sparse = 16;

std::size_t unsigned_of(Index bytes) { return static_cast<std::size_t>(bytes); }

}  // namespace

Result<ArrayFile> ArrayFile::open(const std::string& path, std::optional<DType> as) {
    RESHARD_TRY(auto& file, File::open_to_read(path));
    RESHARD_TRY(const auto& bytes, file.size());
    std::string start(unsigned_of(std::min(bytes, npy_start_max)), '\0');
    RESHARD_CHECK(file.read(std::as_writable_bytes(std::span(start)), 0));
    RESHARD_TRY(auto& header, in(path, parse_npy(start, bytes)));
    RESHARD_TRY(const auto& element, in(path, parse_descr(header.descr)));
    RESHARD_TRY(const auto& dtype, in(path, dtype_of(element, as)));
    ArrayFile array(std::move(file), std::move(header), element, dtype);
    array.data_end_ = bytes;
    return array;
}

ArrayFile::ArrayFile(File file, NpyHeader header, Element element, DType dtype)
    : file_(std::move(file)), header_(std::move(header)), element_(element), dtype_(dtype), shape_(header_.shape) {
    if (header_.fortran_order) std::reverse(shape_.begin(), shape_.end());
}

Result<void> ArrayFile::read(const Box& box, std::span<std::byte> into) {
    const Index size = element_.bytes;
    const Index stride = run_stride(shape_, box);
    auto read = for_each_run(shape_, box, [&](const Run& run) {
        const auto part = into.subspan(unsigned_of(run.in_tile * size), unsigned_of(run.elements * size));
        const bool ahead = run.elements * size < ahead_bytes / 4 && stride / run.elements < sparse;
        return read_run(header_.data_offset + run.in_array * size, part, ahead);
    });
    if (read && element_.big_endian) swap(into);
    return read;
}

Result<void> ArrayFile::read_run(Index offset, std::span<std::byte> into, bool ahead) {
    if (!ahead) return file_.read(into, offset);
    const Index end = offset + static_cast<Index>(into.size());
    if (offset < ahead_begin_ || end > ahead_end_) {
        ahead_begin_ = ahead_end_ = offset;
        const Index bytes = std::min(ahead_bytes, data_end_ - offset);
        ahead_.resize(unsigned_of(bytes));
        RESHARD_CHECK(file_.read(ahead_, offset));
        ahead_end_ = offset + bytes;
    }
    std::memcpy(into.data(), ahead_.data() + (offset - ahead_begin_), into.size());
    return {};
}

void ArrayFile::swap(std::span<std::byte> elements) const {
    if (element_.kind == 'V') return;  // raw bytes have no order to swap
    const std::size_t width = unsigned_of(element_.kind == 'c' ? element_.bytes / 2 : element_.bytes);
    for (std::size_t at = 0; width > 1 && at < elements.size(); at += width) {
        std::reverse(elements.begin() + static_cast<std::ptrdiff_t>(at),
                     elements.begin() + static_cast<std::ptrdiff_t>(at + width));
    }
}

Result<void> write_box(const File& file, Index data_offset, const std::vector<Index>& shape, const Box& box,
                       Index element_bytes, std::span<const std::byte> from) {
    return for_each_run(shape, box, [&](const Run& run) {
        const auto part =
            from.subspan(unsigned_of(run.in_tile * element_bytes), unsigned_of(run.elements * element_bytes));
        return file.write(part, data_offset + run.in_array * element_bytes);
    });
}

}  // namespace reshard::cli
