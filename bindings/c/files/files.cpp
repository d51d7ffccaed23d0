// Files of the C interface: their headers, conversions, and tiles of ranks.
#include "reshard/c/files.h"

#include <algorithm>

#include "bindings/c/answer.hpp"
#include "reshard/files/load.hpp"

struct reshard_checkpoint final : reshard::c::HandleOf<reshard_checkpoint> {
    static constexpr const char* name = "a checkpoint";
    explicit reshard_checkpoint(reshard::files::Checkpoint of) : found(std::move(of)) {}
    const reshard::files::Checkpoint found;
    std::vector<std::string> dtypes;  // of each tensor
    // For each tensor, the begins of its boxes, one box after another, and their extents.
    std::vector<std::vector<int64_t>> begins;
    std::vector<std::vector<int64_t>> shapes;
};

struct reshard_loaded final : reshard::c::HandleOf<reshard_loaded> {
    static constexpr const char* name = "loaded tiles";
    reshard_loaded(reshard_backend* of, reshard::files::Loaded own) : backend(of), loaded(std::move(own)) {}
    const reshard::c::Ref<reshard_backend> backend;  // goes last
    const reshard::files::Loaded loaded;
    std::vector<std::string> dtypes;  // of each tile
    std::vector<std::vector<int64_t>> shapes;
};

namespace reshard::c {
namespace {

std::string_view text_or_none(const char* text) { return text == nullptr ? std::string_view() : text; }

// Calls visit for each line that is not empty.
template <class Visit>
Result<void> for_each_line(std::string_view text, const Visit& visit) {
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        const std::string_view line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
        RESHARD_CHECK(visit(line));
    }
    return {};
}

Result<std::vector<Index>> extents_of(const int64_t* extents, int64_t dims, const char* name) {
    RESHARD_TRY(const std::size_t count, need_count(dims, 0, "dims"));
    if (extents == nullptr) return std::vector<Index>();
    if (count == 0) return fail(Code::usage, std::string("`") + name + "` is given, and `dims` is 0");
    return std::vector<Index>(extents, extents + count);
}

// `path`: the output.
Result<files::ConvertOptions> files_options_of(const reshard_files_options* given, std::string_view path) {
    constexpr std::size_t of_version_0_2 = offsetof(reshard_files_options, codec);
    RESHARD_TRY(const auto& asked, structure<reshard_files_options>(given, RESHARD_FILES_OPTIONS_INITIALIZER,
                                                                    "reshard_files_options", of_version_0_2));
    files::ConvertOptions options;
    options.form = files::form_of_path(path);
    if (asked.form != nullptr) {
        RESHARD_ASSIGN(options.form, files::parse_form(asked.form));
    }
    options.rules = text_or_none(asked.rules);
    RESHARD_ASSIGN(options.list, parse_tensors(text_or_none(asked.list)));
    RESHARD_CHECK(for_each_line(text_or_none(asked.casts), [&](std::string_view line) -> Result<void> {
        RESHARD_TRY(auto& cast, files::parse_cast(line));
        options.casts.push_back(std::move(cast));
        return {};
    }));
    options.memory = asked.memory_bytes;
    options.granule = asked.granule_bytes;
    options.file_bytes_max = asked.file_bytes_max;
    RESHARD_ASSIGN(options.chunks, extents_of(asked.chunks, asked.dims, "chunks"));
    RESHARD_ASSIGN(options.shards, extents_of(asked.shards, asked.dims, "shards"));
    options.jobs = asked.jobs;
    options.verify = asked.verify != 0;
    options.resume = asked.resume != 0;
    options.dry_run = asked.dry_run != 0;
    options.codec = text_or_none(asked.codec);
    options.scratch = text_or_none(asked.scratch);
    if (asked.progress != nullptr) {
        options.progress = [call = asked.progress, context = asked.context](const files::ConvertProgress& now) {
            call(now.written_bytes, now.target_bytes, context);
        };
    }
    return options;
}

Result<std::size_t> need_number(int64_t number, std::size_t count, const char* what) {
    if (number >= 0 && static_cast<std::size_t>(number) < count) return static_cast<std::size_t>(number);
    return fail(Code::usage, "there is no " + std::string(what) + " " + std::to_string(number) + ", there are " +
                                 std::to_string(count));
}

std::unique_ptr<reshard_checkpoint> checkpoint_of(files::Checkpoint found) {
    auto made = std::make_unique<reshard_checkpoint>(std::move(found));
    for (const files::StoredTensor& tensor : made->found.tensors) {
        made->dtypes.emplace_back(name(tensor.dtype));
        auto& begins = made->begins.emplace_back();
        auto& shapes = made->shapes.emplace_back();
        for (const files::StoredBox& stored : tensor.boxes) {
            for (const Interval& side : stored.box) {
                begins.push_back(side.begin);
                shapes.push_back(side.size());
            }
        }
    }
    return made;
}

Result<files::SavedTile> saved_tile_of(const reshard_files_tile& given) {
    RESHARD_CHECK(known_size<reshard_files_tile>(given.size, "reshard_files_tile"));
    RESHARD_TRY(const auto& tensor, need_text(given.name, "name"));
    RESHARD_TRY(const auto& element, need_text(given.dtype, "dtype"));
    files::SavedTile tile;
    tile.name = tensor;
    RESHARD_ASSIGN(tile.dtype, parse_dtype(element));
    RESHARD_TRY(const std::size_t dims, need_count(given.dims, 0, "dims"));
    if (dims > 0 && given.shape == nullptr) return fail(Code::usage, "a shape is needed, NULL was given");
    tile.shape.assign(given.shape, given.shape + dims);
    RESHARD_ASSIGN(tile.bytes, need_bytes(static_cast<const void*>(given.address), given.bytes, "address"));
    return tile;
}

// The arguments of save.
struct Saving {
    std::string path;
    files::ConvertOptions options;
    std::vector<files::SavedTile> tiles;
};

Result<Saving> saving_of(const char* path, const reshard_files_options* options, const reshard_files_tile* tiles,
                         int64_t count) {
    RESHARD_TRY(const auto& to, need_text(path, "path"));
    RESHARD_TRY(auto& asked, files_options_of(options, to));
    Saving saving{std::string(to), std::move(asked), {}};
    RESHARD_TRY(const std::size_t given, need_count(count, 0, "count"));
    if (given > 0 && tiles == nullptr) return fail(Code::usage, "an array of tiles is needed, NULL was given");
    for (std::size_t i = 0; i < given; ++i) {
        RESHARD_TRY(auto& tile, saved_tile_of(tiles[i]));
        saving.tiles.push_back(std::move(tile));
    }
    return saving;
}

reshard_files_converted converted_of(const files::Converted& done) {
    reshard_files_converted made = RESHARD_FILES_CONVERTED_INITIALIZER;
    made.source_bytes = done.source_bytes;
    made.target_bytes = done.target_bytes;
    made.files = done.files;
    made.tensors = done.tensors;
    made.read_bytes = done.read_bytes;
    made.batches = done.batches;
    made.granules = done.granules;
    made.granules_bound = done.granules_bound;
    made.resumed = done.resumed;
    made.finished_before = done.finished_before ? 1 : 0;
    made.verified = done.verified ? 1 : 0;
    made.passes = done.passes;
    return made;
}

}  // namespace
}  // namespace reshard::c

using namespace reshard;
using namespace reshard::c;

extern "C" {

int reshard_files_convert(const char* from, const char* to, const reshard_files_options* options,
                          reshard_files_converted* converted, reshard_error** error) {
    return answer(error, [&]() -> Result<void> {
        RESHARD_CHECK(same_version());
        RESHARD_TRY(const auto& source, need_text(from, "from"));
        RESHARD_TRY(const auto& target, need_text(to, "to"));
        RESHARD_TRY(const auto& asked, files_options_of(options, target));
        constexpr std::size_t of_version_0_2 = offsetof(reshard_files_converted, passes);
        if (converted != nullptr && converted->size != of_version_0_2) {
            RESHARD_CHECK(known_size<reshard_files_converted>(converted->size, "reshard_files_converted"));
        }
        RESHARD_TRY(const auto& done, files::convert(std::string(source), std::string(target), asked));
        return converted == nullptr ? Result<void>()
                                    : fill(converted, converted_of(done), "reshard_files_converted", of_version_0_2);
    });
}

int reshard_checkpoint_open(const char* path, reshard_checkpoint** checkpoint, reshard_error** error) {
    return make(checkpoint, error, [&]() -> Result<std::unique_ptr<reshard_checkpoint>> {
        RESHARD_CHECK(same_version());
        RESHARD_TRY(const auto& place, need_text(path, "path"));
        RESHARD_TRY(auto& found, files::open_checkpoint(std::string(place)));
        return checkpoint_of(std::move(found));
    });
}

const char* reshard_checkpoint_format(const reshard_checkpoint* checkpoint) {
    return checkpoint == nullptr ? nullptr : checkpoint->found.format.c_str();
}

int64_t reshard_checkpoint_files(const reshard_checkpoint* checkpoint) {
    return checkpoint == nullptr ? -1 : std::ssize(checkpoint->found.files);
}

int64_t reshard_checkpoint_tensors(const reshard_checkpoint* checkpoint) {
    return checkpoint == nullptr ? -1 : std::ssize(checkpoint->found.tensors);
}

int64_t reshard_checkpoint_ranks(const reshard_checkpoint* checkpoint) {
    return checkpoint == nullptr ? -1 : checkpoint->found.ranks;
}

int reshard_checkpoint_tensor_at(const reshard_checkpoint* checkpoint, int64_t number,
                                 reshard_checkpoint_tensor* tensor, reshard_error** error) {
    return answer(checkpoint, error, [&](auto& given) -> Result<void> {
        RESHARD_TRY(const std::size_t i, need_number(number, given.found.tensors.size(), "tensor"));
        const files::StoredTensor& stored = given.found.tensors[i];
        const files::Coverage covered = given.found.ranks > 0 ? files::Coverage{} : files::coverage(stored);
        return fill(tensor,
                    {0, stored.name.c_str(), given.dtypes[i].c_str(), stored.shape.data(), std::ssize(stored.shape),
                     std::ssize(stored.boxes), covered.missing, covered.twice ? 1 : 0, 0},
                    "reshard_checkpoint_tensor");
    });
}

int reshard_checkpoint_box_at(const reshard_checkpoint* checkpoint, int64_t tensor, int64_t number,
                              reshard_checkpoint_box* box, reshard_error** error) {
    return answer(checkpoint, error, [&](auto& given) -> Result<void> {
        RESHARD_TRY(const std::size_t i, need_number(tensor, given.found.tensors.size(), "tensor"));
        const files::StoredTensor& stored = given.found.tensors[i];
        RESHARD_TRY(const std::size_t k, need_number(number, stored.boxes.size(), "box"));
        const files::StoredBox& one = stored.boxes[k];
        const std::size_t first = k * one.box.size();
        return fill(
            box,
            {0, given.found.files[static_cast<std::size_t>(one.file)].path.c_str(), one.offset,
             given.begins[i].data() + first, given.shapes[i].data() + first, one.strides.data(), std::ssize(one.box)},
            "reshard_checkpoint_box");
    });
}

int reshard_files_load(reshard_backend* backend, const char* path, const reshard_files_options* options,
                       reshard_loaded** loaded, reshard_error** error) {
    return make_together(loaded, error, [&](const Result<void>& placed) -> Result<std::unique_ptr<reshard_loaded>> {
        RESHARD_CHECK(same_version());
        RESHARD_TRY(auto* const rank, need(backend));
        const auto read = [&]() -> Result<files::ConvertOptions> {
            RESHARD_CHECK(placed);
            RESHARD_TRY(const auto& from, need_text(path, "path"));
            return files_options_of(options, from);
        };
        RESHARD_TRY(const auto& asked, or_tell(rank->backend, read()));
        RESHARD_TRY(auto& done, files::load(rank->backend, path, asked));
        auto made = std::make_unique<reshard_loaded>(rank, std::move(done));
        for (const files::LoadedTile& tile : made->loaded.tiles) {
            made->dtypes.emplace_back(name(tile.layout->dtype));
            made->shapes.push_back(shape(*tile.layout));
        }
        return made;
    });
}

int64_t reshard_loaded_count(const reshard_loaded* loaded) {
    return loaded == nullptr ? -1 : std::ssize(loaded->loaded.tiles);
}

int64_t reshard_loaded_read_bytes(const reshard_loaded* loaded) {
    return loaded == nullptr ? -1 : loaded->loaded.read_bytes;
}

int reshard_loaded_tile(const reshard_loaded* loaded, int64_t number, reshard_files_tile* tile, reshard_error** error) {
    return answer(loaded, error, [&](auto& given) -> Result<void> {
        RESHARD_TRY(const std::size_t i, need_number(number, given.loaded.tiles.size(), "tile"));
        const files::LoadedTile& one = given.loaded.tiles[i];
        return fill(tile,
                    {0, one.name.c_str(), given.dtypes[i].c_str(), given.shapes[i].data(), one.shape.data(),
                     std::ssize(one.shape), one.bytes.data(), std::ssize(one.bytes)},
                    "reshard_files_tile");
    });
}

int reshard_files_save(reshard_backend* backend, const char* path, const reshard_files_options* options,
                       const reshard_files_tile* tiles, int64_t count, reshard_error** error) {
    return answer(error, [&]() -> Result<void> {
        RESHARD_CHECK(same_version());
        RESHARD_TRY(auto* const rank, need(backend));
        RESHARD_TRY(const auto& saving, or_tell(rank->backend, saving_of(path, options, tiles, count)));
        RESHARD_CHECK(files::save(rank->backend, saving.path, saving.tiles, saving.options));
        return {};
    });
}

}  // extern "C"
