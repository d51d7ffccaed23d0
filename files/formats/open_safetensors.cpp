// Checkpoints of safetensors: one file, a folder with an index, of ranks, or of whole or cut tensors.
#include <algorithm>
#include <set>
#include <span>
#include <unordered_map>

#include <fmt/format.h>

#include "files/base/file.hpp"
#include "files/formats/folder.hpp"
#include "files/formats/json_text.hpp"
#include "files/formats/other_formats.hpp"
#include "src/base/try.hpp"

namespace reshard::files {
namespace {

StoredBox stored(const SafetensorsEntry& entry, Index file, std::span<const Index> begin) {
    StoredBox box{whole_box(entry.shape), file, entry.begin, dense_strides(entry.shape, size_of(entry.dtype))};
    for (std::size_t k = 0; k < begin.size(); ++k) {
        box.box[k].begin += begin[k];
        box.box[k].end += begin[k];
    }
    return box;
}

// Puts files together, tensor by tensor.
class Reader {
public:
    Reader(std::string folder, std::string format, std::size_t expected = 0) : folder_(std::move(folder)) {
        made_.format = std::move(format);
        made_.tensors.reserve(expected);
        by_name_.reserve(expected);
    }

    // Adds a file of whole tensors, or of boxes with offsets. If `wanted` is given, the file must have exactly those
    // tensors.
    Result<void> add(const std::string& name, const std::set<std::string_view>* wanted = nullptr) {
        const std::string path = folder_.empty() ? name : folder_ + "/" + name;
        RESHARD_TRY(const auto& opened, open_safetensors(path));
        const auto wrong = [&](Code code, const std::string& what) {
            return fail(code, fmt::format("'{}': {}", path, what));
        };
        const auto file = static_cast<Index>(made_.files.size());
        made_.files.push_back({path, opened.bytes});
        const auto offsets = saved_offsets(opened.header);
        if (!offsets) return wrong(offsets.error().code, offsets.error().message);
        if (*offsets) made_.format = "safetensors with the offsets of torch DCP";
        std::size_t met = 0;
        for (const SafetensorsEntry& entry : opened.header.tensors) {
            if (wanted != nullptr && !wanted->contains(entry.name))
                return wrong(Code::io,
                             fmt::format("{} is in it, and the index does not say so", in_quotes(entry.name)));
            ++met;
            const auto [known, fresh] = by_name_.emplace(entry.name, made_.tensors.size());
            if (fresh) made_.tensors.push_back({entry.name, entry.dtype, entry.shape, {}, "", entry.type});
            StoredTensor& tensor = made_.tensors[known->second];
            if (!fresh && !*offsets)
                return wrong(Code::io, fmt::format("{} is in another file, too", in_quotes(entry.name)));
            if (*offsets && !entry.type.name.empty() && entry.type.bits != 8 * size_of(entry.dtype))
                return wrong(Code::unsupported, fmt::format("{} has elements of {} bits, and torch DCP cuts bytes",
                                                            in_quotes(entry.name), entry.type.bits));
            if (tensor.dtype != entry.dtype || tensor.type != entry.type || tensor.shape.size() != entry.shape.size())
                return wrong(Code::io,
                             fmt::format("{} has another type or rank than in the file before", in_quotes(entry.name)));
            StoredBox box = stored(entry, file, *offsets ? (*offsets)->at(entry.name) : std::vector<Index>());
            for (std::size_t k = 0; k < box.box.size(); ++k)
                tensor.shape[k] = std::max(tensor.shape[k], box.box[k].end);
            if (entry.end > entry.begin) tensor.boxes.push_back(std::move(box));
        }
        if (wanted != nullptr && met != wanted->size())
            for (const std::string_view one : *wanted)
                if (!by_name_.contains(std::string(one)))
                    return wrong(Code::io, fmt::format("{} should be in it, by the index", in_quotes(one)));
        return {};
    }

    Result<Checkpoint> made() {
        for (const StoredTensor& tensor : made_.tensors) RESHARD_CHECK(dense_bytes(tensor.dtype, tensor.shape));
        return std::move(made_);
    }

private:
    std::string folder_;
    Checkpoint made_;
    std::unordered_map<std::string, std::size_t> by_name_;
};

}  // namespace

std::vector<std::string> safetensors_in(const Found& found) {
    std::vector<std::string> names = found.names;
    std::erase_if(names, [](const std::string& name) { return !name.ends_with(".safetensors"); });
    return names;
}

Result<Checkpoint> open_single(const Found& found) {
    Reader reader("", "one safetensors file");
    RESHARD_CHECK(reader.add(found.path));
    return reader.made();
}

Result<Checkpoint> open_index(const Found& found) {
    const std::string& folder = found.path;
    const std::string path = folder + "/" + index_name;
    RESHARD_TRY(const auto& text, json_of(path));
    const auto index = parse_index(text);
    if (!index) return in_file(path, index.error());
    std::map<std::string_view, std::set<std::string_view>> by_file;
    for (const auto& [name, where] : *index) {
        std::set<std::string_view>& names = by_file[where];
        names.insert(names.end(), name);
    }
    Reader reader(folder, "safetensors with an index", index->size());
    for (const auto& [name, wanted] : by_file) RESHARD_CHECK(reader.add(std::string(name), &wanted));
    return reader.made();
}

// Each rank's files are a checkpoint of their own. Tensors of one name follow each other, by rank.
Result<Checkpoint> open_ranks(const Found& found) {
    const std::string& folder = found.path;
    std::map<Index, std::vector<std::string>> by_rank;
    for (const std::string& name : safetensors_in(found)) by_rank[*rank_in(name)].push_back(name);
    const auto ranks = static_cast<Index>(by_rank.size());
    if (by_rank.rbegin()->first != ranks - 1)
        return fail(Code::io, fmt::format("'{}' has files of {} ranks, the last of them {}", folder, ranks,
                                          by_rank.rbegin()->first));
    Checkpoint made{"safetensors of ranks", {}, {}, ranks};
    std::unordered_map<std::string, std::size_t> by_name;
    for (const auto& [rank, files] : by_rank) {
        Reader reader(folder, "");
        for (const std::string& name : files) RESHARD_CHECK(reader.add(name));
        RESHARD_TRY(auto& own, reader.made());
        const auto before = static_cast<Index>(made.files.size());
        made.files.insert(made.files.end(), own.files.begin(), own.files.end());
        for (StoredTensor& tensor : own.tensors) {
            const auto [known, fresh] = by_name.emplace(tensor.name, made.tensors.size());
            for (Index other = 0; fresh && other < ranks; ++other)
                made.tensors.push_back({tensor.name, tensor.dtype, {}, {}, "", tensor.type});
            StoredTensor& place = made.tensors[known->second + static_cast<std::size_t>(rank)];
            if (place.dtype != tensor.dtype || place.type != tensor.type)
                return fail(Code::io, fmt::format("{} has another type on rank {}", in_quotes(tensor.name), rank));
            for (StoredBox& box : tensor.boxes) box.file += before;
            place.shape = std::move(tensor.shape);
            place.boxes = std::move(tensor.boxes);
        }
    }
    return made;
}

// Why a folder without .safetensors files is not read. Checkpoints often lie one folder below.
tl::unexpected<Error> not_read(const Found& found) {
    if (const auto other = other_folder(found.names))
        return fail(Code::unsupported, fmt::format("{} is {}", in_quotes(found.path), *other));
    constexpr std::size_t looked_at = 64;
    for (const std::string& name : std::span(found.names).first(std::min(found.names.size(), looked_at))) {
        const std::string below = fmt::format("{}/{}", found.path, name);
        const auto names = names_in(below);
        if (const auto other = names ? other_folder(*names) : std::nullopt)
            return fail(Code::unsupported, fmt::format("{} is {}", in_quotes(below), *other));
    }
    return fail(Code::io, fmt::format("{} has no .safetensors file and no zarr.json{}", in_quotes(found.path),
                                      found.names.empty() ? ": it is empty" : ""));
}

Result<Checkpoint> open_folder(const Found& found) {
    const std::vector<std::string> names = safetensors_in(found);
    if (names.empty()) return not_read(found);
    Reader reader(found.path, "safetensors files");
    for (const std::string& name : names) RESHARD_CHECK(reader.add(name));
    return reader.made();
}

}  // namespace reshard::files
