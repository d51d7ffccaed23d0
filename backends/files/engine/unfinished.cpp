#include "backends/files/engine/unfinished.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <numeric>

#include <fmt/format.h>

#include "backends/files/base/parallel.hpp"
#include "backends/files/formats/json_text.hpp"
#include "src/base/try.hpp"

namespace reshard::files {

namespace {

constexpr const char* manifest_name = "reshard.json";
constexpr Index files_synced_max = 64;

Result<void> make_folder(const std::string& path) {
    if (::mkdir(path.c_str(), 0777) == 0 || errno == EEXIST) return {};
    return cannot("create folder", path);
}

Result<void> rename_to(const std::string& from, const std::string& to) {
    return std::rename(from.c_str(), to.c_str()) == 0 ? Result<void>() : cannot("create", to);
}

// A name is to last too. What cannot be flushed has nothing to wait for.
void sync_folder(const std::string& path) {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) return;
    ::fsync(descriptor);
    ::close(descriptor);
}

Result<void> sync_everything(const std::string& folder) {
    const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const bool done = descriptor >= 0 && ::syncfs(descriptor) == 0;
    auto failed = cannot("write", folder);
    if (descriptor >= 0) ::close(descriptor);
    return done ? Result<void>() : failed;
}

std::string parent_of(const std::string& path) {
    const std::string parent = std::filesystem::path(path).parent_path().string();
    return parent.empty() ? "." : parent;
}

bool there(const std::string& path) {
    struct stat status {};
    return ::lstat(path.c_str(), &status) == 0;
}

Result<void> write_whole(const std::string& path, const std::string& text) {
    ::unlink(path.c_str());
    RESHARD_TRY(auto& file, File::create(path, path));
    RESHARD_CHECK(file.write(std::as_bytes(std::span(text)), 0));
    return file.finish();
}

}  // namespace

std::string manifest_path(const std::string& to, bool single) {
    return single ? to + ".reshard.json" : to + "/" + manifest_name;
}

Result<bool> finished_before(const std::string& to, bool single, const std::string& job, bool resume) {
    if (!there(to)) return false;
    const auto taken = [&] { return fail(Code::io, fmt::format("'{}' is there already", to)); };
    if (!resume) return taken();
    const auto file = File::open_to_read(manifest_path(to, single));
    if (!file) return taken();
    RESHARD_TRY(const auto& bytes, file->size());
    std::string text(static_cast<std::size_t>(bytes), '\0');
    RESHARD_CHECK(file->read(std::as_writable_bytes(std::span(text)), 0));
    const auto json = parse_object(text, "the manifest");
    if (!json || !json->contains("job") || (*json)["job"] != job) return taken();
    std::error_code error;
    std::filesystem::remove_all(to + ".reshard-partial", error);
    return true;
}

Unfinished::Unfinished(std::string to, bool single, Journal journal, bool keep)
    : to_(std::move(to)),
      partial_(to_ + ".reshard-partial"),
      single_(single),
      keep_(keep),
      journal_(std::move(journal)) {}

Unfinished::Unfinished(Unfinished&& other) noexcept
    : to_(std::move(other.to_)),
      partial_(std::exchange(other.partial_, {})),
      single_(other.single_),
      keep_(other.keep_),
      journal_(std::move(other.journal_)) {}

Unfinished::~Unfinished() {
    if (partial_.empty() || keep_) return;
    std::error_code error;
    std::filesystem::remove_all(partial_, error);
}

Result<Unfinished> Unfinished::begin(const std::string& to, bool single, const std::string& job, const NewFiles& files,
                                     bool resume) {
    const std::string partial = to + ".reshard-partial";
    RESHARD_CHECK(make_folder(partial));
    RESHARD_TRY(auto& journal, Journal::open(partial + "/journal", job, files.summed.size(), !resume));
    Unfinished made(to, single, std::move(journal), resume);
    if (made.journal_.batches() == 0) {
        std::error_code error;
        std::filesystem::remove_all(made.folder(), error);
    }
    RESHARD_CHECK(make_folder(made.folder()));
    return made;
}

// The folders of a key such as c/0/1.
Result<void> Unfinished::make_parents(const std::string& path) const {
    for (std::size_t slash = path.find('/'); slash != std::string::npos; slash = path.find('/', slash + 1))
        RESHARD_CHECK(make_folder(folder() + "/" + path.substr(0, slash)));
    return {};
}

Result<void> Unfinished::reserve(const NewFiles& files) {
    for (const StoredFile& one : files.what.files) {
        const std::string path = folder() + "/" + one.path;
        RESHARD_CHECK(make_parents(one.path));
        RESHARD_TRY(const auto& file, File::open_to_update(path));
        RESHARD_CHECK(file.reserve(one.bytes));
    }
    for (const FixedBytes& fixed : files.fixed) {
        RESHARD_TRY(const auto& file,
                    File::open_to_update(folder() + "/" + files.what.files[static_cast<std::size_t>(fixed.file)].path));
        RESHARD_CHECK(file.write(std::as_bytes(std::span(fixed.bytes)), fixed.offset));
    }
    return {};
}

Result<void> sync_files(const std::string& folder, const NewFiles& files, std::span<const Index> numbers,
                        Index workers) {
    // Many files, and the folders that they are in, reach the disk by one call.
    if (std::ssize(numbers) > files_synced_max) return sync_everything(folder);
    return for_each_number(std::ssize(numbers), workers, [&](Index number, Index) -> Result<void> {
        const auto which = static_cast<std::size_t>(numbers[static_cast<std::size_t>(number)]);
        RESHARD_TRY(auto& file, File::open_to_update(folder + "/" + files.what.files[which].path));
        return file.finish();
    });
}

Result<void> Unfinished::flush(const NewFiles& files, const std::string& manifest, Index workers) {
    for (const auto& [name, text] : files.texts) RESHARD_CHECK(write_whole(folder() + "/" + name, text));
    RESHARD_CHECK(write_whole(folder() + "/" + manifest_name, manifest));
    std::vector<Index> all(files.what.files.size());
    std::iota(all.begin(), all.end(), Index{0});
    RESHARD_CHECK(sync_files(folder(), files, all, workers));
    sync_folder(folder());
    return {};
}

Result<void> Unfinished::finish(const NewFiles& files) {
    if (there(to_)) return fail(Code::io, fmt::format("'{}' is there by now", to_));
    if (single_) {
        RESHARD_CHECK(rename_to(folder() + "/" + manifest_name, manifest_path(to_, true)));
        RESHARD_CHECK(rename_to(folder() + "/" + files.what.files.front().path, to_));
    } else {
        RESHARD_CHECK(rename_to(folder(), to_));
    }
    sync_folder(parent_of(to_));
    std::error_code error;
    std::filesystem::remove_all(partial_, error);
    partial_.clear();
    return {};
}

}  // namespace reshard::files
