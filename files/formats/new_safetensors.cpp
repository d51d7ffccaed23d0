// The files of new checkpoints of safetensors.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "files/formats/folder.hpp"
#include "files/formats/json_text.hpp"
#include "files/formats/tile_boxes.hpp"
#include "src/base/try.hpp"

namespace reshard::files {

namespace {

constexpr Index ranks_max = Index{1} << 16;  // that have files of their own

bool is_empty(const NewTensor& tensor) { return std::ranges::find(tensor.shape, 0) != tensor.shape.end(); }

// The part of a tensor that one file will hold.
struct Held {
    std::size_t tensor = 0;
    Tile tile;
};

class Writer {
public:
    explicit Writer(const NewContents& contents)
        : tensors_(contents.tensors), options_(contents.options), boxes_max_(contents.boxes_max) {
        for (const NewTensor& tensor : tensors_)
            made_.what.tensors.push_back(
                {tensor.name, tensor.dtype, real_shape(*tensor.layout, tensor.shape), {}, "", tensor.type});
    }

    Result<NewFiles> single(const std::string& file) {
        std::vector<Held> all;
        for (std::size_t i = 0; i < tensors_.size(); ++i) {
            RESHARD_TRY(auto& held, whole(i));
            all.push_back(std::move(held));
        }
        RESHARD_CHECK(add(file, std::move(all), {{"format", "pt"}}));
        return std::move(made_);
    }

    Result<NewFiles> index() {
        std::vector<std::vector<Held>> files(1);
        Index bytes = 0;
        Index all = 0;
        for (std::size_t i = 0; i < tensors_.size(); ++i) {
            RESHARD_TRY(auto& held, whole(i));
            RESHARD_TRY(const auto& own, dense_bytes(tensors_[i].dtype, tensors_[i].shape));
            if (!files.back().empty() && saturating_add(bytes, own) > options_.file_bytes_max) {
                files.emplace_back();
                bytes = 0;
            }
            files.back().push_back(std::move(held));
            bytes = saturating_add(bytes, own);
            all = saturating_add(all, own);
        }
        Json map = Json::object();
        for (std::size_t i = 0; i < files.size(); ++i) {
            const std::string name = fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, files.size());
            for (const Held& held : files[i]) append(map, tensors_[held.tensor].name, name);
            RESHARD_CHECK(add(name, std::move(files[i]), {{"format", "pt"}}));
        }
        const Json json = {{"metadata", {{"total_size", all}}}, {"weight_map", map}};
        made_.texts.emplace_back(index_name, json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
        return std::move(made_);
    }

    Result<NewFiles> ranks() {
        RESHARD_TRY(const auto& count_of_ranks, rank_count());
        for (Index rank = 0; rank < count_of_ranks; ++rank) {
            std::vector<Held> own;
            for (std::size_t i = 0; i < tensors_.size(); ++i) {
                Tile tile = real_tile(*tensors_[i].layout, tensors_[i].shape, rank);
                if (empty(i)) tile = as_tile(whole_box(made_.what.tensors[i].shape));
                if (!empty(i) && count(tile) == 0) continue;
                RESHARD_CHECK(counted(boxes_of(tile)));
                own.push_back({i, std::move(tile)});
            }
            RESHARD_CHECK(
                add(fmt::format("model-rank-{}-part-0.safetensors", rank), std::move(own), {{"format", "pt"}}));
        }
        return std::move(made_);
    }

    Result<NewFiles> dcp() {
        RESHARD_TRY(const auto& count_of_ranks, rank_count());
        std::vector<std::vector<Held>> files(static_cast<std::size_t>(count_of_ranks));
        std::vector<Index> bytes(files.size(), 0);
        for (std::size_t i = 0; i < tensors_.size(); ++i) {
            if (empty(i)) files.front().push_back({i, as_tile(whole_box(tensors_[i].shape))});
            if (!empty(i)) RESHARD_CHECK(deal(i, files, bytes));
        }
        for (std::size_t rank = 0; rank < files.size(); ++rank) {
            if (files[rank].empty()) continue;
            SavedOffsets offsets;
            for (const Held& held : files[rank]) {
                std::vector<Index>& begin = offsets[tensors_[held.tensor].name];
                for (const Side& side : held.tile)
                    begin.push_back(side.intervals.empty() ? 0 : side.intervals[0].begin);
            }
            RESHARD_CHECK(add(fmt::format("shard-{:05}-model-00001-of-00001.safetensors", rank + 1),
                              std::move(files[rank]), dcp_metadata(offsets)));
        }
        return std::move(made_);
    }

private:
    Result<Held> whole(std::size_t i) const {
        RESHARD_CHECK(is_whole(tensors_[i], options_));
        return Held{i, as_tile(whole_box(tensors_[i].shape))};
    }

    bool empty(std::size_t i) const { return is_empty(tensors_[i]); }

    Result<Index> rank_count() const {
        if (tensors_.empty()) return 1;
        const Mesh& mesh = tensors_.front().layout->mesh;
        if (world_size(mesh) != device_count(mesh))
            return fail(Code::mismatch,
                        "files of ranks are numbered from 0, and the target's mesh lists other devices");
        const Index ranks = device_count(mesh);
        if (ranks > ranks_max)
            return fail(Code::unsupported,
                        fmt::format("the target's mesh has {} devices; files of at most {} ranks are written", ranks,
                                    ranks_max));
        return ranks;
    }

    // Fails once the files hold more boxes than may be listed.
    Result<void> counted(const std::vector<Box>& boxes) {
        listed_ += std::ssize(boxes);
        if (listed_ <= boxes_max_) return {};
        return fail(
            Code::infeasible,
            fmt::format("the files hold more than {} boxes of tensors, the most that the memory has room to list",
                        boxes_max_));
    }

    // Fails if a tile cuts through an element that is no whole number of bytes.
    static Result<void> whole_elements(const NewTensor& tensor, const Tile& tile) {
        if (tensor.type.name.empty() || tile.empty()) return {};
        for (const Interval& interval : tile.back().intervals)
            for (const Index at : {interval.begin, interval.end})
                if (auto cut = shape_in_elements(tensor.type, tensor.dtype, {at}); !cut)
                    return fail(cut.error().code, fmt::format("{} is cut through an element: {}",
                                                              in_quotes(tensor.name), cut.error().message));
        return {};
    }

    // Gives each tile of the tensor to the holder with the fewest bytes so far.
    Result<void> deal(std::size_t i, std::vector<std::vector<Held>>& files, std::vector<Index>& bytes) {
        const Layout& layout = *tensors_[i].layout;
        const FileType& type = tensors_[i].type;
        if (layout.dims.size() < tensors_[i].shape.size())
            return fail(Code::unsupported,
                        fmt::format("{} is flattened, and torch DCP writes boxes; choose another form "
                                    "for it",
                                    in_quotes(tensors_[i].name)));
        if (!type.name.empty() && type.bits != 8 * size_of(tensors_[i].dtype))
            return fail(Code::unsupported, fmt::format("{} has elements of {} bits, and torch DCP cuts bytes; choose "
                                                       "another form for it",
                                                       in_quotes(tensors_[i].name), type.bits));
        std::vector<std::pair<Tile, std::size_t>> tiles;  // and the rank that writes it
        std::map<std::vector<Index>, std::size_t> known;  // the tiles by their shards
        for (std::size_t rank = 0; rank < files.size(); ++rank) {
            Tile tile = real_tile(layout, tensors_[i].shape, static_cast<Index>(rank));
            if (count(tile) == 0) continue;
            const auto position = position_of(layout.mesh, static_cast<Index>(rank));
            std::vector<Index> shards;
            for (const Dim& dim : layout.dims) shards.push_back(value_of(dim.atoms, *position));
            const auto [same, fresh] = known.emplace(std::move(shards), tiles.size());
            if (!fresh) {
                std::size_t& writer = tiles[same->second].second;
                if (bytes[rank] < bytes[writer]) writer = rank;
                continue;
            }
            const std::vector<Box> boxes = boxes_of(tile);
            if (boxes.size() > 1)
                return fail(Code::unsupported, fmt::format("{} has several boxes on rank {}, and torch DCP writes one",
                                                           in_quotes(tensors_[i].name), rank));
            RESHARD_CHECK(counted(boxes));
            tiles.emplace_back(std::move(tile), rank);
        }
        for (auto& [tile, rank] : tiles) {
            bytes[rank] += count(tile) * size_of(tensors_[i].dtype);
            files[rank].push_back({i, std::move(tile)});
        }
        return {};
    }

    // Adds a file. Larger elements come first, so that all are aligned. Tensors with elements of one size keep their
    // order.
    Result<void> add(const std::string& name, std::vector<Held> held, const std::map<std::string, std::string>& extra) {
        std::ranges::stable_sort(held, std::greater(),
                                 [&](const Held& one) { return size_of(tensors_[one.tensor].dtype); });
        std::vector<SafetensorsEntry> entries;
        for (const Held& one : held) {
            const NewTensor& tensor = tensors_[one.tensor];
            RESHARD_CHECK(whole_elements(tensor, one.tile));
            entries.push_back({tensor.name, tensor.dtype, extents(one.tile), 0, 0, tensor.type});
        }
        RESHARD_TRY(auto& head, write_safetensors(entries, extra));
        const auto file = static_cast<Index>(made_.what.files.size());
        made_.what.files.push_back({name, entries.empty() ? static_cast<Index>(head.size()) : entries.back().end});
        made_.fixed.push_back({file, 0, std::move(head)});
        for (std::size_t i = 0; i < held.size(); ++i) {
            StoredTensor& tensor = made_.what.tensors[held[i].tensor];
            for (StoredBox& box : boxes_in_file(held[i].tile, file, entries[i].begin, size_of(tensor.dtype)))
                tensor.boxes.push_back(std::move(box));
            made_.summed.push_back({file, entries[i].begin, entries[i].end, tensor.name});
        }
        return {};
    }

    std::span<const NewTensor> tensors_;
    const ConvertOptions& options_;
    Index boxes_max_;
    Index listed_ = 0;
    NewFiles made_;
};

}  // namespace

Result<void> is_whole(const NewTensor& tensor, const ConvertOptions& options) {
    const Index first = device_at(tensor.layout->mesh, 0);
    if (is_empty(tensor) || real_tile(*tensor.layout, tensor.shape, first) == as_tile(whole_box(tensor.shape)))
        return {};
    return fail(Code::mismatch, fmt::format("{} is cut, and the form {} holds whole tensors: its layout must be -",
                                            in_quotes(tensor.name), name(options.form)));
}

Result<NewFiles> new_single(const NewContents& contents) { return Writer(contents).single(contents.file); }
Result<NewFiles> new_index(const NewContents& contents) { return Writer(contents).index(); }
Result<NewFiles> new_ranks(const NewContents& contents) { return Writer(contents).ranks(); }
Result<NewFiles> new_dcp(const NewContents& contents) { return Writer(contents).dcp(); }

}  // namespace reshard::files
