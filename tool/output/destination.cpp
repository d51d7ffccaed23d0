// Checks the destinations of outputs.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <filesystem>

#include "src/base/try.hpp"
#include "tool/output/new_file.hpp"

namespace reshard::cli {
namespace {

tl::unexpected<Error> because(const char* what, const std::string& path, const std::string& why) {
    return fail(Code::io, fmt::format("cannot {} '{}': {}", what, path, why));
}

/// The target of a path, as the kernel finds it.
struct Found {
    bool there = false;
    struct stat status {};
    std::string path;  // its own, links followed
};

// Leaves links to the kernel, which refuses links that others planted in folders like /tmp.
Result<Found> find(const std::string& given, const char* what) {
    Found found;
    struct stat link {};
    const bool any = ::lstat(given.c_str(), &link) == 0;
    const int descriptor = ::open(given.c_str(), O_PATH | O_CLOEXEC);
    if (descriptor < 0 && errno == ENOENT && any) return because(what, given, "a symbolic link to nothing");
    if (descriptor < 0) return errno == ENOENT ? Result<Found>(found) : cannot(what, given);
    found.there = true;
    std::array<char, PATH_MAX> text{};
    const std::string self = fmt::format("/proc/self/fd/{}", descriptor);
    const bool seen = ::fstat(descriptor, &found.status) == 0;
    const ssize_t length = ::readlink(self.c_str(), text.data(), text.size());
    ::close(descriptor);
    if (!seen) return cannot(what, given);
    if (length > 0) found.path.assign(text.data(), static_cast<std::size_t>(length));
    if (any && !S_ISLNK(link.st_mode) && S_ISREG(link.st_mode)) found.path = given;
    if (found.path.empty()) return because(what, given, "/proc is needed to follow it");
    return found;
}

bool is_stdout(const struct stat& status) {
    struct stat out {};
    if (::fstat(STDOUT_FILENO, &out) != 0 || out.st_dev != status.st_dev || out.st_ino != status.st_ino) return false;
    return !S_ISCHR(status.st_mode) || ::isatty(STDOUT_FILENO) != 0;  // /dev/null takes both
}

Destination old_destination(const Found& found, Destination::Kind kind) {
    return {kind, found.path, found.status.st_mode, found.status.st_uid, found.status.st_gid};
}

// Returns the text after the number in `rank7...`, empty for other names.
std::string_view after_rank(std::string_view name) {
    if (!name.starts_with("rank")) return {};
    name.remove_prefix(4);
    const std::size_t digits = name.find_first_not_of("0123456789");
    return digits == 0 || digits == std::string_view::npos ? std::string_view() : name.substr(digits);
}

}  // namespace

bool belongs(Contents contents, std::string_view name) {
    const std::string_view rest = after_rank(name);
    if (contents == Contents::rows) return rest == ".rows.npy" || name == "arrays.tsv";
    return rest == ".source.npy" || rest == ".target.npy" || rest == ".json";
}

Result<Destination> destination_of_file(const std::string& given) {
    RESHARD_TRY(const auto& found, find(given, "create"));
    if (!found.there) return Destination{Destination::Kind::fresh, given};
    const mode_t mode = found.status.st_mode;
    if (S_ISDIR(mode)) return because("create", given, "it is a folder");
    if (S_ISSOCK(mode) || S_ISBLK(mode))
        return because("create", given, S_ISBLK(mode) ? "it is a disk" : "it is a socket");
    if (is_stdout(found.status)) return because("write", given, "it is stdout, which has the report");
    if (::faccessat(AT_FDCWD, given.c_str(), W_OK, AT_EACCESS) != 0) return cannot("write", given);
    if (!S_ISREG(mode)) return Destination{Destination::Kind::stream, given};
    if (found.status.st_nlink == 0) return because("create", given, "it has no name any more");
    return old_destination(found, Destination::Kind::old);
}

Result<Destination> destination_of_folder(const std::string& given, Contents contents) {
    RESHARD_TRY(const auto& found, find(given, "create folder"));
    if (!found.there) {
        std::string path = given;
        while (path.size() > 1 && path.back() == '/') path.pop_back();
        return Destination{Destination::Kind::fresh, path, 0, 0, 0, contents};
    }
    const char* const replace = "replace folder";
    if (!S_ISDIR(found.status.st_mode)) return because("create folder", given, "a file is there");
    struct stat other {};
    const auto same = [&](const std::string& path) {
        return ::stat(path.c_str(), &other) == 0 && other.st_dev == found.status.st_dev &&
               other.st_ino == found.status.st_ino;
    };
    if (same(".")) return because(replace, given, "it is the current one; name a folder in it");
    if (same(given + "/..") || other.st_dev != found.status.st_dev)
        return because(replace, given, "another file system begins there; name a folder in it");
    if (::faccessat(AT_FDCWD, given.c_str(), W_OK | X_OK, AT_EACCESS) != 0) return cannot(replace, given);
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(found.path, error)) {
        const std::string name = entry.path().filename().string();
        if (belongs(contents, name) && !entry.is_directory(error)) continue;
        const char* const wanted = contents == Contents::tiles ? "tile" : "file of rows";
        return because(replace, given, fmt::format("'{}' in it is no {}; name a folder of its own", name, wanted));
    }
    if (error) return because(replace, given, error.message());
    Destination old = old_destination(found, Destination::Kind::old);
    old.contents = contents;
    return old;
}

}  // namespace reshard::cli
