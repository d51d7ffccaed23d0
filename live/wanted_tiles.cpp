#include "live/wanted_tiles.hpp"

#include "src/copy/cast.hpp"

namespace reshard::live {

void WantedTiles::make_room(std::span<const NamedTensor> tensors, std::span<const DType> sent, Index rank,
                            bool in_place) {
    wanted_.clear();
    bytes_.clear();
    for (const NamedTensor& tensor : tensors) {
        wanted_.push_back(tensor.layout.dtype);
        bytes_.push_back(tile_bytes_of(tensor.layout, rank));
    }
    sent_.assign(sent.begin(), sent.end());
    offsets_ = tile_offsets(tensors, rank);
    const auto lines = [](Index bytes) { return static_cast<std::size_t>(bytes / line_bytes); };
    buffers_[0].resize(lines(offsets_.back()));
    buffers_[1].resize(in_place ? 0 : buffers_[0].size());

    std::vector<NamedTensor> cast;  // as they come
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        if (sent_[i] == wanted_[i]) continue;
        cast.push_back(tensors[i]);
        cast.back().layout.dtype = sent_[i];
    }
    cast_offsets_ = tile_offsets(cast, rank);
    uncast_.assign(lines(cast_offsets_.back()), Line{});
    place();
}

std::span<std::byte> WantedTiles::bytes_of(Lines& lines, Index begin, Index bytes) {
    return {reinterpret_cast<std::byte*>(lines.data()) + begin, static_cast<std::size_t>(bytes)};
}

std::span<std::byte> WantedTiles::tile(std::size_t buffer, std::size_t tensor) const {
    return bytes_of(buffers_[buffer], offsets_[tensor], bytes_[tensor]);
}

void WantedTiles::place() {
    landing_.clear();
    std::size_t casts = 0;
    for (std::size_t i = 0; i < wanted_.size(); ++i) {
        if (sent_[i] == wanted_[i]) {
            landing_.push_back(tile(filled(), i));
        } else {
            const Index elements = bytes_[i] / size_of(wanted_[i]);
            landing_.push_back(bytes_of(uncast_, cast_offsets_[casts++], elements * size_of(sent_[i])));
        }
    }
}

std::span<const std::byte> WantedTiles::take(std::size_t tensor) {
    const std::span<std::byte> to = tile(filled(), tensor);
    const ElementCast cast = cast_of(sent_[tensor], wanted_[tensor]);
    if (!cast) return to;
    const Store store = store_for(std::ssize(to));
    cast.lines[static_cast<std::size_t>(store)](std::ssize(to) / cast.to_bytes, cast.from_bytes, cast.to_bytes,
                                                landing_[tensor].data(), to.data());
    if (store == Store::streaming) store_fence();
    return to;
}

void WantedTiles::turn() {
    shown_ = filled();
    place();
}

}  // namespace reshard::live
