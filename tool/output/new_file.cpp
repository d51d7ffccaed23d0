#include "tool/output/new_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "src/base/try.hpp"

namespace reshard::cli {
namespace {

std::string folder_of(const std::string& path) {
    const std::string folder = std::filesystem::path(path).parent_path().string();
    return folder.empty() ? "." : folder;
}

// Brings the names in a folder to the disk. Ignores folders that cannot be flushed.
void sync_folder(const std::string& folder) {
    const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) return;
    ::fsync(descriptor);
    ::close(descriptor);
}

// Keeps owner, group and permissions of the replaced file, as editors do, as far as the user may give files away.
void take_over(int descriptor, const Destination& destination) {
    if (destination.kind != Destination::Kind::old) return;
    const bool given = ::fchown(descriptor, destination.user, destination.group) == 0;
    [[maybe_unused]] const bool shared = given || ::fchown(descriptor, static_cast<uid_t>(-1), destination.group) == 0;
    [[maybe_unused]] const int kept = ::fchmod(descriptor, destination.mode & 0777U);
}

// Moves the folder `from` to its destination. Returns true if the old folder is now at `from`.
Result<bool> rename_folder(const std::string& from, const Destination& destination) {
    const char* const to = destination.path.c_str();
    if (std::rename(from.c_str(), to) == 0) return false;  // nothing was there, or an empty folder
    const bool full = errno == ENOTEMPTY || errno == EEXIST;
    if (!full) return cannot("create folder", destination.path);
    if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to, RENAME_EXCHANGE) == 0) return true;
    if (errno != EINVAL && errno != ENOSYS && errno != ENOTSUP) return cannot("replace folder", destination.path);
    // If two folders cannot be exchanged at once, the name does not exist for a moment.
    const std::string aside = temporary_name(folder_of(destination.path));
    if (std::rename(to, aside.c_str()) != 0) return cannot("replace folder", destination.path);
    if (std::rename(from.c_str(), to) != 0) {
        auto failed = cannot("replace folder", destination.path);
        [[maybe_unused]] const int back = std::rename(aside.c_str(), to);
        return failed;
    }
    [[maybe_unused]] const int old = std::rename(aside.c_str(), from.c_str());
    return true;
}

void remove_file(const std::string& path) { ::unlink(path.c_str()); }

// Removes the files that belong there, and the folder if nothing else is in it.
void remove_contents(const std::string& folder) {
    // Other ranks may still be making tiles. Soon they find no folder.
    for (int times = 0; times < 100; ++times) {
        std::error_code error;
        for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
            const std::string name = entry.path().filename().string();
            if (belongs(Contents::tiles, name) || belongs(Contents::rows, name)) ::unlink(entry.path().c_str());
        }
        if (::rmdir(folder.c_str()) == 0 || errno != ENOTEMPTY) return;
    }
}

}  // namespace

NewFile::NewFile(Destination destination, File file, TemporaryPath partial)
    : destination_(std::move(destination)), file_(std::move(file)), partial_(std::move(partial)) {}

Result<NewFile> NewFile::begin(Destination destination, bool other_processes) {
    const std::string folder = folder_of(destination.path);
    if (!other_processes && ::access("/proc/self/fd", X_OK) == 0) {
        auto file = File::unnamed(folder, destination.path);
        if (file) {
            take_over(file->descriptor(), destination);
            return NewFile(std::move(destination), std::move(*file), {});
        }
    }
    const auto held = hold_signals();
    const std::string partial = temporary_name(folder);
    RESHARD_TRY(auto& file, File::create(partial, destination.path));
    take_over(file.descriptor(), destination);
    return NewFile(std::move(destination), std::move(file), TemporaryPath(partial, remove_file));
}

std::string NewFile::way() const { return partial_.path().empty() ? file_.in_this_process() : partial_.path(); }

Result<void> NewFile::commit() {
    RESHARD_CHECK(file_.sync());
    auto held = hold_signals();
    const char* const path = destination_.path.c_str();
    if (partial_.path().empty()) {
        const std::string unnamed = file_.in_this_process();
        const auto name = [&](const char* to) {
            return ::linkat(AT_FDCWD, unnamed.c_str(), AT_FDCWD, to, AT_SYMLINK_FOLLOW) == 0;
        };
        // Only a rename replaces a name that is taken.
        const bool named = destination_.kind == Destination::Kind::fresh && name(path);
        const std::string partial = temporary_name(folder_of(destination_.path));
        if (!named && !name(partial.c_str())) return cannot("create", destination_.path);
        if (!named) partial_ = TemporaryPath(partial, remove_file);
    }
    if (!partial_.path().empty()) {
        if (std::rename(partial_.path().c_str(), path) != 0) return cannot("create", destination_.path);
        partial_.release();
    }
    held.unlock();  // a signal need not wait for a disk
    sync_folder(folder_of(destination_.path));
    return {};
}

NewFolder::NewFolder(Destination destination, TemporaryPath partial)
    : destination_(std::move(destination)), partial_(std::move(partial)) {}

Result<NewFolder> NewFolder::begin(Destination destination) {
    const auto held = hold_signals();
    const std::string partial = temporary_name(folder_of(destination.path));
    if (::mkdir(partial.c_str(), 0777) != 0) return cannot("create folder", destination.path);
    NewFolder folder(std::move(destination), TemporaryPath(partial, remove_contents));
    const int descriptor = ::open(partial.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (descriptor < 0) return cannot("create folder", folder.destination_.path);
    take_over(descriptor, folder.destination_);
    ::close(descriptor);
    return folder;
}

Result<void> NewFolder::commit() {
    sync_folder(partial_.path());
    auto held = hold_signals();
    // Somebody may have put something there meanwhile.
    RESHARD_TRY(const auto& now, destination_of_folder(destination_.path, destination_.contents));
    RESHARD_TRY(const auto& exchanged, rename_folder(partial_.path(), now));
    held.unlock();  // a signal that comes while the disk is waited for removes the old tiles
    sync_folder(folder_of(destination_.path));
    held.lock();
    if (exchanged) remove_contents(partial_.path());
    partial_.release();
    return {};
}

Result<void> write_file(const PartialFolder& folder, const std::string& name, const std::string& head,
                        std::span<const std::byte> body) {
    RESHARD_TRY(auto& file, File::create(folder.path + "/" + name, folder.shown + "/" + name));
    RESHARD_CHECK(file.write(std::as_bytes(std::span(head)), 0));
    RESHARD_CHECK(file.write(body, static_cast<Index>(head.size())));
    return file.finish();
}

Result<void> write_text(const Destination& destination, const std::string& text) {
    const auto bytes = std::as_bytes(std::span(text));
    if (destination.kind == Destination::Kind::stream) {
        RESHARD_TRY(auto& stream, File::open_stream(destination.path));
        RESHARD_CHECK(stream.append(bytes));
        return stream.finish();
    }
    RESHARD_TRY(auto& file, NewFile::begin(destination, false));
    RESHARD_CHECK(file.file().write(bytes, 0));
    return file.commit();
}

}  // namespace reshard::cli
