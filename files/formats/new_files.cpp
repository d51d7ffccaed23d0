#include "files/formats/new_files.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include <fmt/format.h>

#include "files/formats/arrays.hpp"
#include "files/formats/folder.hpp"
#include "files/formats/json_text.hpp"
#include "files/formats/tile_boxes.hpp"
#include "src/base/try.hpp"

namespace reshard::files {

namespace {

constexpr Index ranks_max = Index{1} << 16;  // that have files of their own

constexpr std::array<std::pair<Form, std::string_view>, 6> forms = {{{Form::single, "single"},
                                                                     {Form::index, "index"},
                                                                     {Form::ranks, "ranks"},
                                                                     {Form::dcp, "dcp"},
                                                                     {Form::npy, "npy"},
                                                                     {Form::zarr, "zarr"}}};

// What one file is to hold of a tensor.
struct Held {
    std::size_t tensor = 0;
    Tile tile;
};

class Writer {
public:
    Writer(std::span<const NewTensor> tensors, const ConvertOptions& options, Index boxes_max)
        : tensors_(tensors), options_(options), boxes_max_(boxes_max) {
        for (const NewTensor& tensor : tensors)
            made_.what.tensors.push_back({tensor.name, tensor.dtype, tensor.shape, {}});
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
                if (empty(i)) tile = as_tile(whole_box(tensors_[i].shape));
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

    Result<Held> whole(std::size_t i) const {
        const NewTensor& tensor = tensors_[i];
        const Tile all = as_tile(whole_box(tensor.shape));
        const Index first = device_at(tensor.layout->mesh, 0);
        if (!empty(i) && real_tile(*tensor.layout, tensor.shape, first) != all)
            return fail(Code::mismatch,
                        fmt::format("{} is cut, and the form {} holds whole tensors: its layout must be -",
                                    in_quotes(tensor.name), name(options_.form)));
        return Held{i, all};
    }

private:
    bool empty(std::size_t i) const { return std::ranges::find(tensors_[i].shape, 0) != tensors_[i].shape.end(); }

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

    // Each tile of the tensor to that of its holders which has least so far.
    Result<void> deal(std::size_t i, std::vector<std::vector<Held>>& files, std::vector<Index>& bytes) {
        const Layout& layout = *tensors_[i].layout;
        std::vector<std::pair<Tile, std::size_t>> tiles;  // and who writes it
        std::map<std::vector<Index>, std::size_t> known;  // of those, by their shards
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

    // Larger elements first, so that all are aligned; else in the order asked for.
    Result<void> add(const std::string& name, std::vector<Held> held, const std::map<std::string, std::string>& extra) {
        std::ranges::stable_sort(held, std::greater(),
                                 [&](const Held& one) { return size_of(tensors_[one.tensor].dtype); });
        std::vector<SafetensorsEntry> entries;
        for (const Held& one : held)
            entries.push_back({tensors_[one.tensor].name, tensors_[one.tensor].dtype, extents(one.tile)});
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

std::string_view name(Form form) {
    return std::ranges::find(forms, form, &std::pair<Form, std::string_view>::first)->second;
}

Result<Form> parse_form(std::string_view text) {
    for (const auto& [form, word] : forms)
        if (word == text) return form;
    return fail(Code::usage,
                fmt::format("there is no form {}; single, index, ranks, dcp, npy and zarr are", in_quotes(text)));
}

Form form_of_path(std::string_view path) {
    if (path.ends_with(".safetensors")) return Form::single;
    if (path.ends_with(".npy")) return Form::npy;
    return path.ends_with(".zarr") ? Form::zarr : Form::index;
}

Result<Cast> parse_cast(std::string_view text) {
    const std::size_t equals = text.rfind('=');
    const bool all = equals == std::string_view::npos;
    RESHARD_TRY(const auto& dtype, parse_dtype(all ? text : text.substr(equals + 1)));
    return Cast{all ? "*" : std::string(text.substr(0, equals)), dtype};
}

Result<NewFiles> new_files(std::span<const NewTensor> tensors, const ConvertOptions& options, const std::string& file,
                           const std::string& rest, Index boxes_max) {
    std::set<std::string_view> names;
    for (const NewTensor& tensor : tensors)
        if (!names.insert(tensor.name).second || tensor.name == "__metadata__")
            return fail(Code::io, fmt::format("{} cannot be the name of {}", in_quotes(tensor.name),
                                              tensor.name == "__metadata__" ? "a tensor" : "two tensors"));
    Writer writer(tensors, options, boxes_max);
    switch (options.form) {
        case Form::single:
            return writer.single(file);
        case Form::index:
            return writer.index();
        case Form::ranks:
            return writer.ranks();
        case Form::dcp:
            return writer.dcp();
        case Form::npy:
        case Form::zarr:
            break;
    }
    if (tensors.size() != 1)
        return fail(Code::mismatch,
                    fmt::format("{} holds one array, and there are {}", name(options.form), tensors.size()));
    RESHARD_CHECK(writer.whole(0));
    return options.form == Form::npy ? new_npy(tensors[0], file) : new_zarr(tensors[0], options, rest);
}

}  // namespace reshard::files
