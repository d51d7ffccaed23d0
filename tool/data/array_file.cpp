#include "tool/data/array_file.hpp"

#include <algorithm>

#include "files/formats/arrays.hpp"
#include "src/base/try.hpp"

namespace reshard::cli {
namespace {

constexpr Index stretch_bytes = Index{1} << 20;  // read at once

// Short runs that lie close together are read at once. Runs further apart than this many times their own length are
// read one by one, because a common read would bring mostly tiles of other ranks.
constexpr Index sparse = 16;
constexpr Index page_bytes = 4096;

// The number of bytes between two runs that are read rather than left out.
Index gap_max(const Box& whole, const Box& box, Index element_bytes) {
    LoopNest nest =
        loop_nest(within(packed_region(whole, element_bytes), whole, box), packed_region(box, element_bytes));
    const Index run = take_run(nest);
    return run >= stretch_bytes / 4 ? 0 : std::max(page_bytes, run * (sparse - 1));
}

void swap_bytes(std::span<std::byte> elements, const files::Element& element) {
    if (element.kind == 'V') return;  // raw bytes have no order to swap
    const Index width = element.kind == 'c' ? element.bytes / 2 : element.bytes;
    for (auto at = elements.begin(); width > 1 && at != elements.end(); at += width) std::reverse(at, at + width);
}

}  // namespace

Result<ArrayFile> ArrayFile::open(const std::string& path, std::optional<DType> as) {
    RESHARD_TRY(auto& npy, files::open_npy_header(path));
    const auto dtype = files::dtype_of(npy.element, as);
    if (!dtype) return fail(dtype.error().code, fmt::format("'{}': {}", path, dtype.error().message));
    auto job = std::make_unique<files::Job>();
    std::vector<Index> shape = npy.header.shape;
    if (npy.header.fortran_order) std::reverse(shape.begin(), shape.end());
    const Box whole = files::whole_box(shape);
    job->source.files.push_back({path, npy.bytes});
    job->source.tensors.push_back({"", *dtype, shape, {}});
    job->target.what.tensors = job->source.tensors;
    job->source.tensors[0].boxes.push_back(
        {whole, 0, npy.header.data_offset, files::dense_strides(shape, npy.element.bytes)});
    job->moves.push_back({0, 0, whole, whole, *files::match_dims(whole, whole)});
    job->first_move = {0, 1};
    job->source_boxes.emplace_back(job->source.tensors[0]);
    job->target_boxes.emplace_back(job->target.what.tensors[0]);
    RESHARD_TRY(auto& reader, files::SourceReader::make(*job, stretch_bytes));
    return ArrayFile(std::move(npy.header), npy.element, std::move(job), std::move(reader));
}

ArrayFile::ArrayFile(files::NpyHeader header, files::Element element, std::unique_ptr<files::Job> job,
                     files::SourceReader reader)
    : header_(std::move(header)), element_(element), job_(std::move(job)), reader_(std::move(reader)) {}

Result<void> ArrayFile::read(const Box& box, std::span<std::byte> into) {
    files::StoredTensor& target = job_->target.what.tensors.front();
    target.boxes = {{box, 0, 0, files::dense_strides(extents(as_tile(box)), element_.bytes)}};
    job_->target_boxes.front() = files::BoxIndex(target);
    job_->granule = 8 * gap_max(job_->moves.front().from, box, element_.bytes);
    RESHARD_CHECK(reader_.read(files::make_geometry(*job_, {{0, box}}), into.data()));
    if (element_.big_endian) swap_bytes(into, element_);
    return {};
}

}  // namespace reshard::cli
