#include "files/manifest.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>

#include <fmt/format.h>

#include "files/base/crc32c.hpp"
#include "files/base/file.hpp"
#include "files/formats/json_text.hpp"
#include "src/base/try.hpp"

namespace reshard::files {

std::string manifest_of(const Job& job, const std::string& made_by, const std::string& fingerprint,
                        std::span<const std::uint32_t> sums) {
    std::vector<Json> tensors(job.target.what.files.size(), Json::object());
    for (std::size_t i = 0; i < sums.size(); ++i) {
        const SummedBytes& one = job.target.summed[i];
        const std::uint32_t sum = crc32c_of(sums[i], one.end - one.begin);
        // No file has bytes of one tensor in two places.
        append(tensors[static_cast<std::size_t>(one.file)], one.tensor,
               {{"bytes", one.end - one.begin}, {"crc32c", fmt::format("{:08x}", sum)}});
    }
    Json files = Json::object();
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        const StoredFile& file = job.target.what.files[i];
        append(files, file.path, {{"bytes", file.bytes}, {"tensors", std::move(tensors[i])}});
    }
    const Json json = {{"schema", 1}, {"made_by", made_by}, {"job", fingerprint}, {"files", files}};
    return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

namespace {

// The place of a tensor's first byte, by file and name.
using Places = std::map<std::pair<Index, std::string>, Index>;

Places places_of(const Checkpoint& checkpoint) {
    Places places;
    for (const StoredTensor& tensor : checkpoint.tensors)
        for (const StoredBox& stored : tensor.boxes) {
            const auto [at, added] = places.emplace(std::pair(stored.file, tensor.name), stored.offset);
            if (!added) at->second = std::min(at->second, stored.offset);
        }
    return places;
}

std::optional<std::uint32_t> hexadecimal(const Json& json) {
    if (!json.is_string()) return std::nullopt;
    const auto& text = json.get_ref<const std::string&>();
    std::uint32_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, 16);
    const bool whole = text.size() == 8 && error == std::errc() && end == text.data() + text.size();
    return whole ? std::optional(number) : std::nullopt;
}

// Reads the members of a manifest. `lies` returns the error of one that does not describe the checkpoint.
class ManifestReader {
public:
    ManifestReader(const Checkpoint& checkpoint, std::string path)
        : checkpoint_(checkpoint), path_(std::move(path)), places_(places_of(checkpoint)) {
        listed_.files = checkpoint.files;
    }

    // `name_of` returns the name of a file of the checkpoint in the manifest.
    template <class NameOf>
    Result<ListedSums> read(const Json& json, const NameOf& name_of) {
        const auto files = json.find("files");
        if (files == json.end() || !files->is_object()) return lies("has no list of files");
        std::map<std::string, Index> numbers;
        for (std::size_t i = 0; i < checkpoint_.files.size(); ++i)
            numbers.emplace(name_of(checkpoint_.files[i].path), static_cast<Index>(i));
        for (const auto& [name, number] : numbers)
            if (!files->contains(name)) return lies(fmt::format("has no checksum of '{}'", name));
        for (const auto& [name, file] : files->items()) {
            const auto number = numbers.find(name);
            if (number == numbers.end()) return lies(fmt::format("has a file '{}', which is missing", name));
            RESHARD_CHECK(add_file(number->second, name, file));
        }
        return std::move(listed_);
    }

private:
    tl::unexpected<Error> lies(const std::string& how) const {
        return fail(Code::io, fmt::format("'{}' {}", path_, how));
    }

    Result<void> add_file(Index number, const std::string& name, const Json& file) {
        const auto bytes = file.is_object() && file.contains("bytes") ? whole_number(file["bytes"]) : std::nullopt;
        const Index found = checkpoint_.files[static_cast<std::size_t>(number)].bytes;
        if (bytes && *bytes != found)
            return lies(fmt::format("says that '{}' has {} bytes, and it has {}", name, *bytes, found));
        if (!bytes || !file.contains("tensors") || !file["tensors"].is_object())
            return lies(fmt::format("does not describe '{}'", name));
        for (const auto& [tensor, one] : file["tensors"].items()) RESHARD_CHECK(add_tensor(number, tensor, one));
        return {};
    }

    // A single array has the name of its file or folder, which may have been renamed.
    Result<void> add_tensor(Index file, const std::string& name, const Json& one) {
        const bool object = one.is_object() && one.contains("bytes") && one.contains("crc32c");
        const auto bytes = object ? whole_number(one["bytes"]) : std::nullopt;
        const auto sum = object ? hexadecimal(one["crc32c"]) : std::nullopt;
        if (!bytes || !sum) return lies(fmt::format("has no checksum of {}", in_quotes(name)));
        if (*bytes == 0) return {};
        const bool single = checkpoint_.tensors.size() == 1;
        const auto place = places_.find({file, single ? checkpoint_.tensors.front().name : name});
        const Index all = checkpoint_.files[static_cast<std::size_t>(file)].bytes;
        if (place == places_.end() || place->second > all || *bytes > all - place->second)
            return lies(fmt::format("has a checksum of {}, which is not in its file", in_quotes(name)));
        listed_.summed.push_back({file, place->second, place->second + *bytes, name});
        listed_.sums.push_back(*sum ^ crc32c_of(0, *bytes));
        return {};
    }

    const Checkpoint& checkpoint_;
    std::string path_;
    Places places_;
    ListedSums listed_;
};

}  // namespace

Result<ListedSums> listed_sums(const std::string& path) {
    RESHARD_TRY(const auto& checkpoint, open_checkpoint(path));
    std::string whole = path;
    while (whole.size() > 1 && whole.ends_with('/')) whole.pop_back();
    std::error_code unknown;  // a path that cannot be looked at is no folder and has no manifest
    const bool folder = std::filesystem::is_directory(whole, unknown);
    const std::string manifest = folder ? whole + "/reshard.json" : whole + ".reshard.json";
    if (!std::filesystem::exists(manifest, unknown))
        return fail(Code::io, fmt::format("'{}' is missing, which has the checksums of a checkpoint that reshard "
                                          "wrote; read this one without verify",
                                          manifest));
    RESHARD_TRY(const auto& file, File::open_to_read(manifest));
    RESHARD_TRY(const auto& text, file.start());
    RESHARD_TRY(const auto& json, parse_object(text, fmt::format("'{}'", manifest)));
    return ManifestReader(checkpoint, manifest).read(json, [&](const std::string& one) {
        if (!folder) return std::filesystem::path(one).filename().string();
        const std::size_t begin = one.find_first_not_of('/', std::min(one.size(), whole.size()));
        return one.substr(std::min(one.size(), begin));
    });
}

}  // namespace reshard::files
