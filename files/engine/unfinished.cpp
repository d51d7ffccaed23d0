#include "files/engine/unfinished.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "files/base/parallel.hpp"
#include "files/engine/pieces.hpp"
#include "files/formats/json_text.hpp"
#include "src/base/try.hpp"

namespace reshard::files {

namespace {

constexpr const char* manifest_name = "reshard.json";
constexpr const char* files_name = "files";
constexpr const char* mark_name = "made-by-reshard";
constexpr Index files_synced_max = 64;

std::string name_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::string partial_name(const std::string& to) { return name_of(to) + ".reshard-partial"; }

Result<void> write_whole(const OpenFolder& folder, const std::string& name, const std::string& text) {
    RESHARD_CHECK(folder.remove(name));
    RESHARD_TRY(auto& file, folder.file(name, OpenFolder::Way::create));
    RESHARD_CHECK(file.write(std::as_bytes(std::span(text)), 0));
    return file.finish();
}

// Fails unless a run of this library left the folder. Anybody can guess its name, so any other contents belong to
// somebody. Before a run marks the folder, it makes no more than an empty journal.
Result<void> made_here(const OpenFolder& folder, const std::string& path) {
    const auto refuse = [&](const std::string& why) {
        return fail(Code::io, fmt::format("'{}' {}; remove it, or name another target", path, why));
    };
    if (!folder.is_own()) return refuse("belongs to another user");
    // Another run may mark or remove it at this moment.
    const bool before = folder.has_own_file(mark_name);
    RESHARD_TRY(const auto& names, folder.names());
    const bool marked = before || folder.has_own_file(mark_name);
    for (const std::string& name : names) {
        const bool known = name == Journal::name || (marked && (name == mark_name || name == files_name));
        if (!known) return refuse(fmt::format("was not made by reshard: {} is in it", in_quotes(name)));
    }
    if (marked || names.empty()) return {};
    RESHARD_TRY(const auto& journal, folder.file(Journal::name, OpenFolder::Way::read));
    RESHARD_TRY(const auto& bytes, journal.size());
    if (bytes > 0) return refuse("was not made by reshard: a journal is in it, and no " + std::string(mark_name));
    return {};
}

// Opens the folder and its journal. If `make`, makes the folder. A folder that exists already must come from this
// library.
Result<std::pair<OpenFolder, Journal>> take_partial(const OpenFolder& beside, const std::string& name, bool make) {
    bool made = false;
    if (make) {
        RESHARD_ASSIGN(made, beside.make_folder(name, 0700));
    }
    RESHARD_TRY(const auto& partial, beside.folder(name));
    if (!made) RESHARD_CHECK(made_here(partial, beside.path_of(name)));
    RESHARD_TRY(auto& journal, Journal::take(partial));
    return std::pair(partial, std::move(journal));
}

// Reads the manifest of a target. Fails unless it is a manifest that the user of this process wrote.
Result<Json> own_manifest(const OpenFolder& folder, const std::string& name) {
    if (!folder.has_own_file(name)) return fail(Code::io, "no file of this user");
    RESHARD_TRY(const auto& file, folder.file(name, OpenFolder::Way::read));
    RESHARD_TRY(const auto& text, file.start());
    return parse_object(text, "the manifest");
}

bool is_manifest_of(const Json& json, const std::string& file) {
    const auto made_by = json.find("made_by");
    const auto files = json.find("files");
    return made_by != json.end() && (*made_by == "reshard convert" || *made_by == "reshard save") &&
           files != json.end() && files->is_object() && files->size() == 1 && files->contains(file);
}

Result<void> may_name_manifest(const OpenFolder& beside, const std::string& file) {
    const std::string name = file + ".reshard.json";
    if (!beside.has(name)) return {};
    const auto json = own_manifest(beside, name);
    if (json && is_manifest_of(*json, file)) return {};
    return fail(Code::io, fmt::format("'{}' is there already, and reshard did not write it for '{}': move it away, or "
                                      "name another target",
                                      beside.path_of(name), beside.path_of(file)));
}

}  // namespace

Result<void> may_name(const std::string& to, bool single) {
    RESHARD_TRY(const auto& beside, OpenFolder::parent_of(to));
    if (beside.has(name_of(to))) return fail(Code::io, fmt::format("'{}' is there already", to));
    return single ? may_name_manifest(beside, name_of(to)) : Result<void>();
}

Result<bool> finished_before(const std::string& to, bool single, const std::string& job,
                             const ConvertOptions& options) {
    auto may = may_name(to, single);
    if (may) return false;
    const bool resumed = options.resume || options.dry_run;
    RESHARD_TRY(const auto& beside, OpenFolder::parent_of(to));
    if (!resumed || !beside.has(name_of(to))) return tl::unexpected(std::move(may.error()));
    const auto folder = single ? Result<OpenFolder>(beside) : beside.folder(name_of(to));
    const auto json = folder.and_then([&](const OpenFolder& in) {
        return own_manifest(in, single ? name_of(to) + ".reshard.json" : std::string(manifest_name));
    });
    if (!json || !json->contains("job") || (*json)["job"] != job) return tl::unexpected(std::move(may.error()));
    if (!options.dry_run) Unfinished::remove_rest(to);
    return true;
}

Unfinished::Unfinished(std::string to, OpenFolder beside, OpenFolder partial, Journal journal)
    : to_(std::move(to)), beside_(std::move(beside)), partial_(std::move(partial)), journal_(std::move(journal)) {}

Unfinished::Unfinished(Unfinished&& other) noexcept
    : to_(std::exchange(other.to_, {})),
      beside_(other.beside_),
      partial_(other.partial_),
      single_(other.single_),
      keep_(std::exchange(other.keep_, true)),
      journal_(std::move(other.journal_)) {}

Unfinished::~Unfinished() {
    if (!keep_) remove();
}

// The order matters: if the process ends meanwhile, the rest is still recognized as made by this library.
void Unfinished::remove() {
    const bool gone =
        partial_.remove(files_name) && journal_.empty() && partial_.remove(mark_name) && partial_.remove(Journal::name);
    if (gone) (void)beside_.remove_empty(partial_name(to_));
}

Result<Unfinished> Unfinished::take(const std::string& to, bool make) {
    RESHARD_TRY(const auto& beside, OpenFolder::parent_of(to));
    auto taken = take_partial(beside, partial_name(to), make);
    // Another run may have ended in between, and removed the folder.
    if (!taken && make && !beside.has(partial_name(to))) taken = take_partial(beside, partial_name(to), make);
    if (!taken) return tl::unexpected(std::move(taken.error()));
    return Unfinished(to, beside, std::move(taken->first), std::move(taken->second));
}

void Unfinished::remove_rest(const std::string& to) {
    auto rest = take(to, false);
    if (rest) rest->remove();
}

Result<Unfinished> Unfinished::begin(const std::string& to, bool single, const std::string& job, const NewFiles& files,
                                     bool resume) {
    RESHARD_TRY(auto& made, take(to, true));
    made.single_ = single;
    made.keep_ = resume;
    RESHARD_CHECK(may_name(to, single));  // another run may have ended since
    if (!made.partial_.has(mark_name)) RESHARD_CHECK(write_whole(made.partial_, mark_name, ""));
    RESHARD_CHECK(made.journal_.begin(job, journal_numbers(files), !resume));
    if (made.journal_.batches() == 0) RESHARD_CHECK(made.partial_.remove(files_name));
    RESHARD_CHECK(made.partial_.make_folder(files_name, 0777));
    return std::move(made);
}

Result<OpenFolder> Unfinished::folder() const { return partial_.folder(files_name); }

Result<OpenFolder> Unfinished::folder_of(const std::string& to) {
    RESHARD_TRY(const auto& beside, OpenFolder::parent_of(to));
    RESHARD_TRY(const auto& partial, beside.folder(partial_name(to)));
    return partial.folder(files_name);
}

Result<void> Unfinished::reserve(const NewFiles& files) {
    RESHARD_TRY(const auto& in, folder());
    for (const StoredFile& one : files.what.files) {
        RESHARD_CHECK(in.make_parents(one.path));
        RESHARD_TRY(const auto& file, in.file(one.path, OpenFolder::Way::take));
        RESHARD_CHECK(file.reserve(files.compressed() ? 0 : one.bytes));  // nobody knows compressed sizes yet
    }
    for (const FixedBytes& fixed : files.fixed) {
        const StoredFile& one = files.what.files[static_cast<std::size_t>(fixed.file)];
        RESHARD_TRY(const auto& file, in.file(one.path, OpenFolder::Way::update));
        RESHARD_CHECK(file.write(std::as_bytes(std::span(fixed.bytes)), fixed.offset));
    }
    return {};
}

Result<void> sync_files(const OpenFolder& folder, const NewFiles& files, std::span<const Index> numbers,
                        Index workers) {
    // One call brings many files and their folders to the disk.
    if (std::ssize(numbers) > files_synced_max) return folder.sync_everything();
    return for_each_number(std::ssize(numbers), workers, [&](Index number, Index) -> Result<void> {
        const auto which = static_cast<std::size_t>(numbers[static_cast<std::size_t>(number)]);
        RESHARD_TRY(auto& file, folder.file(files.what.files[which].path, OpenFolder::Way::update));
        return file.finish();
    });
}

Result<void> Unfinished::flush(const NewFiles& files, const std::string& manifest, Index workers, bool durable) {
    RESHARD_TRY(const auto& in, folder());
    for (const auto& [name, text] : files.texts) RESHARD_CHECK(write_whole(in, name, text));
    RESHARD_CHECK(write_whole(in, manifest_name, manifest));
    if (!durable) return {};
    std::vector<Index> all(files.what.files.size());
    std::iota(all.begin(), all.end(), Index{0});
    RESHARD_CHECK(sync_files(in, files, all, workers));
    in.sync();
    return {};
}

Result<void> Unfinished::finish(const NewFiles& files) {
    const std::string name = name_of(to_);
    if (beside_.has(name)) return fail(Code::io, fmt::format("'{}' is there by now", to_));
    if (single_) {
        RESHARD_TRY(const auto& in, folder());
        RESHARD_CHECK(may_name_manifest(beside_, name));
        RESHARD_CHECK(in.rename(manifest_name, beside_, name + ".reshard.json", true));
        RESHARD_CHECK(in.rename(files.what.files.front().path, beside_, name, false));
    } else {
        RESHARD_CHECK(partial_.rename(files_name, beside_, name, false));
    }
    beside_.sync();
    remove();
    keep_ = true;
    return {};
}

}  // namespace reshard::files
