#include "live/wanted_moves.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>

#include "reshard/planner/view.hpp"
#include "reshard/text.hpp"
#include "src/base/try.hpp"
#include "src/tables/dtypes.hpp"

namespace reshard::live {
namespace {

// The same layout over higher device numbers, so that no rank of one job is a rank of the other.
Layout after(Layout layout, Index ranks) {
    std::vector<Index> devices;
    for (Index position = 0; position < device_count(layout.mesh); ++position)
        devices.push_back(device_at(layout.mesh, position) + ranks);
    layout.mesh.devices = DeviceList(std::move(devices));
    return layout;
}

Index elements_of(const Layout& layout) { return global_bytes(layout) / size_of(layout.dtype); }

std::string text_of(const std::vector<Index>& shape) { return fmt::format("[{}]", fmt::join(shape, ",")); }

// The publisher's layout of a tensor, in the shape that a part of it is named in.
Result<Layout> seen(const NamedTensor& tensor, const Layout& as) {
    const std::vector<Index> wanted = shape(as);
    if (elements_of(tensor.layout) != elements_of(as))
        return fail(Code::mismatch, fmt::format("tensor {} has the shape {} at the publisher; wanted {}", tensor.name,
                                                text_of(shape(tensor.layout)), text_of(wanted)));
    if (auto view = in_shape(tensor.layout, wanted)) return *std::move(view);
    return fail(Code::unsupported, fmt::format("tensor {} is {} at the publisher, which is no cut of the shape {}",
                                               tensor.name, format(tensor.layout), text_of(wanted)));
}

Box box_of(const TensorPart& part) {
    Box box;
    for (const Dim& dim : part.layout->dims) box.push_back({0, dim.extent});
    return part.box.value_or(box);
}

// How often parts have each element of their tensor. 0: not equally often, or they see it in several shapes.
Index times_taken(const std::vector<const TensorPart*>& parts) {
    std::vector<std::pair<Box, Index>> boxes;  // and how often each one stands there
    for (const TensorPart* part : parts) {
        if (shape(*part->layout) != shape(*parts.front()->layout)) return 0;
        Box box = box_of(*part);
        const auto same = std::ranges::find(boxes, box, &std::pair<Box, Index>::first);
        if (same == boxes.end())
            boxes.emplace_back(std::move(box), 1);
        else
            ++same->second;
    }
    Index elements = 0;
    for (std::size_t i = 0; i < boxes.size(); ++i) {
        if (boxes[i].second != boxes[0].second) return 0;
        for (std::size_t j = 0; j < i; ++j)
            if (count(intersect(boxes[i].first, boxes[j].first)) > 0) return 0;
        elements += count(boxes[i].first);
    }
    return elements == elements_of(*parts.front()->layout) ? boxes[0].second : 0;
}

}  // namespace

Result<std::size_t> WantedMoves::find(const std::string& name) const {
    const auto found = std::ranges::find(tensors_, name, &NamedTensor::name);
    if (found == tensors_.end()) return fail(Code::mismatch, fmt::format("the publisher has no tensor {}", name));
    return static_cast<std::size_t>(found - tensors_.begin());
}

Result<WantedMoves> WantedMoves::make(std::vector<NamedTensor> offered, Index publisher_ranks,
                                      std::span<const WantedTensor> wanted, bool checks_bytes) {
    WantedMoves made;
    made.tensors_ = std::move(offered);
    made.publisher_ranks_ = publisher_ranks;
    std::vector<PartProblem> problems;
    for (const WantedTensor& one : wanted)
        RESHARD_CHECK(one.parts.empty() ? made.add_whole(one, problems) : made.add_parts(one, problems));
    for (const Move& move : made.moves_) made.tensor_of_moves_.push_back(static_cast<Index>(move.tensor));
    RESHARD_ASSIGN(made.schedule_, RowSchedule::make(std::span<const PartProblem>(problems)));
    if (checks_bytes) RESHARD_CHECK(made.weigh(problems));
    return made;
}

Result<void> WantedMoves::check_cast(std::size_t tensor, const WantedTensor& wanted) const {
    const DType sent = tensors_[tensor].layout.dtype;
    const DType asked = wanted.layout.dtype;
    if (sent == asked || tables::can_cast(sent, asked)) return {};
    return fail(Code::unsupported, fmt::format("tensor {} is {} at the publisher and cannot be cast to {}",
                                               tensors_[tensor].name, name(sent), name(asked)));
}

Result<void> WantedMoves::add_whole(const WantedTensor& one, std::vector<PartProblem>& problems) {
    RESHARD_TRY(const std::size_t tensor, find(one.name));
    RESHARD_CHECK(check_cast(tensor, one));
    const Layout& source = tensors_[tensor].layout;
    Layout target = after(one.layout, publisher_ranks_);
    target.dtype = source.dtype;  // this job casts it when it is whole
    if (auto same = same_array(source, target); !same)
        return fail(Code::mismatch, fmt::format("tensor {}: {}", one.name, same.error().message));
    moves_.push_back({tensor, sent_.size(), 0});
    sent_.push_back(source.dtype);
    problems.push_back({{std::make_shared<Layout>(source)}, {std::make_shared<Layout>(std::move(target))}});
    return {};
}

Result<void> WantedMoves::add_parts(const WantedTensor& one, std::vector<PartProblem>& problems) {
    std::optional<DType> sent;
    for (const WantedPart& part : one.parts) {
        RESHARD_TRY(const std::size_t tensor, find(part.name));
        RESHARD_CHECK(check_cast(tensor, one));
        const DType its = tensors_[tensor].layout.dtype;
        if (sent.value_or(its) != its)
            return fail(Code::unsupported,
                        fmt::format("tensor {} has parts that are {} and {} at the publisher; wanted "
                                    "one type: the publisher may cast",
                                    one.name, name(*sent), name(its)));
        sent = its;
        RESHARD_TRY(Layout & source, seen(tensors_[tensor], *part.move.source.layout));
        Layout target = after(*part.move.target.layout, publisher_ranks_);
        target.dtype = its;
        PartProblem& problem = problems.emplace_back(part.move);
        problem.source.layout = std::make_shared<Layout>(std::move(source));
        problem.target.layout = std::make_shared<Layout>(std::move(target));
        moves_.push_back({tensor, sent_.size(), 0});
    }
    sent_.push_back(*sent);
    return {};
}

// An element that is taken by several moves, or by several ranks in one move, counts once in all.
Result<void> WantedMoves::weigh(std::span<const PartProblem> problems) {
    std::map<std::size_t, std::vector<std::size_t>> moves_of;  // of each tensor
    for (std::size_t i = 0; i < moves_.size(); ++i) moves_of[moves_[i].tensor].push_back(i);
    for (const auto& [tensor, moves] : moves_of) {
        std::vector<const TensorPart*> parts;
        for (const std::size_t i : moves) parts.push_back(&problems[i].source);
        const Index times = times_taken(parts);
        if (times == 0) continue;
        compared_.push_back(tensor);
        for (const std::size_t i : moves) {
            RESHARD_TRY(const Layout& part, layout_of(problems[i].target));
            moves_[i].weight = inverse(static_cast<std::uint64_t>(times * copies_of(part)));
        }
    }
    return {};
}

std::vector<Row> WantedMoves::rows(Index rank) const {
    return schedule_->rows(publisher_ranks_ + rank, RowSide::receive);
}

std::uint64_t WantedMoves::content_of(const std::byte* digests) const {
    std::uint64_t sum = 0;
    for (const std::size_t tensor : compared_) {
        std::uint64_t digest = 0;
        std::memcpy(&digest, digests + tensor * sizeof digest, sizeof digest);
        sum = added(sum, digest);
    }
    return sum;
}

}  // namespace reshard::live
