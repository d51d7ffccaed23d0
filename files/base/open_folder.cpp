#include "files/base/open_folder.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fmt/format.h>

#include "src/base/try.hpp"

namespace reshard::files {
namespace {

// A link gives ELOOP if a file is wanted, and ENOTDIR if a folder is wanted.
tl::unexpected<Error> no_folder(const std::string& path, int folder, const std::string& name) {
    const int why = errno;
    struct stat status {};
    const bool link = ::fstatat(folder, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(status.st_mode);
    if (link) return fail(Code::io, fmt::format("'{}' is a symbolic link; a folder is wanted", path));
    if (why == ENOTDIR) return fail(Code::io, fmt::format("'{}' is no folder; a folder is wanted", path));
    errno = why;
    return cannot("open folder", path);
}

int open_folder(int folder, const char* name) {
    return ::openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

int flags_of(OpenFolder::Way way) {
    if (way == OpenFolder::Way::read) return O_RDONLY;
    if (way == OpenFolder::Way::update) return O_RDWR;
    return way == OpenFolder::Way::take ? O_RDWR | O_CREAT : O_WRONLY | O_CREAT | O_EXCL;
}

std::vector<std::string> names_at(DIR* stream) {
    std::vector<std::string> names;
    while (const dirent* const entry = ::readdir(stream)) {
        const std::string name = entry->d_name;
        if (name != "." && name != "..") names.push_back(name);
    }
    return names;
}

// The stream has a descriptor of its own, so closing the stream leaves the folder open.
DIR* stream_of(int folder, const char* name) {
    const int descriptor = open_folder(folder, name);
    DIR* const stream = descriptor < 0 ? nullptr : ::fdopendir(descriptor);
    if (stream == nullptr && descriptor >= 0) ::close(descriptor);
    return stream;
}

bool remove_at(int folder, const char* name) {
    if (::unlinkat(folder, name, 0) == 0 || errno == ENOENT) return true;
    if (errno != EISDIR && errno != EPERM) return false;
    DIR* const stream = stream_of(folder, name);
    if (stream == nullptr) return false;
    for (const std::string& inner : names_at(stream))
        if (!remove_at(::dirfd(stream), inner.c_str())) break;
    ::closedir(stream);
    return ::unlinkat(folder, name, AT_REMOVEDIR) == 0 || errno == ENOENT;
}

}  // namespace

OpenFolder::OpenFolder(int descriptor, std::string path) : path_(std::move(path)) {
    descriptor_ = std::shared_ptr<const int>(new int(descriptor), [](const int* held) {
        ::close(*held);
        delete held;
    });
}

std::string OpenFolder::path_of(const std::string& name) const {
    return path_.empty() || path_.ends_with('/') ? path_ + name : path_ + "/" + name;
}

Result<OpenFolder> OpenFolder::parent_of(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    const std::string shown = slash == std::string::npos ? "" : path.substr(0, slash + 1);
    const int descriptor = ::open(shown.empty() ? "." : shown.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) return cannot("create", path);
    return OpenFolder(descriptor, shown);
}

Result<OpenFolder> OpenFolder::folder(const std::string& name) const {
    const int descriptor = open_folder(*descriptor_, name.c_str());
    if (descriptor < 0) return no_folder(path_of(name), *descriptor_, name);
    return OpenFolder(descriptor, path_of(name));
}

Result<bool> OpenFolder::make_folder(const std::string& name, unsigned mode) const {
    if (::mkdirat(*descriptor_, name.c_str(), mode) == 0) return true;
    return errno == EEXIST ? Result<bool>(false) : cannot("create folder", path_of(name));
}

Result<OpenFolder> OpenFolder::parent(const std::string& name, bool make, std::string& last) const {
    OpenFolder at = *this;
    std::size_t begin = 0;
    for (std::size_t slash = name.find('/'); slash != std::string::npos; slash = name.find('/', begin)) {
        const std::string part = name.substr(begin, slash - begin);
        if (make) RESHARD_CHECK(at.make_folder(part, 0777));
        RESHARD_ASSIGN(at, at.folder(part));
        begin = slash + 1;
    }
    last = name.substr(begin);
    return at;
}

Result<void> OpenFolder::make_parents(const std::string& name) const {
    std::string last;
    RESHARD_CHECK(parent(name, true, last));
    return {};
}

Result<File> OpenFolder::file(const std::string& name, Way way) const {
    std::string last;
    RESHARD_TRY(const auto& in, parent(name, false, last));
    const int flags = flags_of(way) | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    const int descriptor = ::openat(*in.descriptor_, last.c_str(), flags, 0666);
    const std::string path = path_of(name);
    const char* const what = way == Way::read ? "read" : "write";
    if (descriptor < 0 && errno == ELOOP)
        return fail(Code::io, fmt::format("cannot {} '{}': it is a symbolic link", what, path));
    if (descriptor < 0) return cannot(way == Way::create ? "create" : what, path);
    File file(descriptor, path);
    struct stat status {};
    if (::fstat(descriptor, &status) != 0) return cannot(what, path);
    if (!S_ISREG(status.st_mode)) return not_regular(path, status.st_mode);
    if (status.st_nlink > 1)
        return fail(Code::io, fmt::format("cannot {} '{}': it is also a file of another name", what, path));
    return file;
}

Result<File> OpenFolder::locked(const std::string& name) const {
    RESHARD_TRY(auto& opened, file(name, Way::take));
    struct stat status {};
    // The process that held the lock may have ended and removed the file meanwhile.
    const bool taken = ::flock(opened.descriptor(), LOCK_EX | LOCK_NB) == 0 &&
                       ::fstat(opened.descriptor(), &status) == 0 && status.st_nlink > 0;
    if (taken) return std::move(opened);
    return fail(Code::io, fmt::format("another process is writing what '{}' belongs to", path_of(name)));
}

Result<std::vector<std::string>> OpenFolder::names() const {
    DIR* const stream = stream_of(*descriptor_, ".");
    if (stream == nullptr) return cannot("read", path_);
    std::vector<std::string> names = names_at(stream);
    ::closedir(stream);
    return names;
}

bool OpenFolder::has(const std::string& name) const {
    struct stat status {};
    return ::fstatat(*descriptor_, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
}

bool OpenFolder::is_own() const {
    struct stat status {};
    return ::fstat(*descriptor_, &status) == 0 && status.st_uid == ::geteuid();
}

bool OpenFolder::has_own_file(const std::string& name) const {
    struct stat status {};
    return ::fstatat(*descriptor_, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(status.st_mode) &&
           status.st_uid == ::geteuid();
}

Result<void> OpenFolder::remove(const std::string& name) const {
    return remove_at(*descriptor_, name.c_str()) ? Result<void>() : cannot("remove", path_of(name));
}

Result<void> OpenFolder::remove_empty(const std::string& name) const {
    return ::unlinkat(*descriptor_, name.c_str(), AT_REMOVEDIR) == 0 ? Result<void>() : cannot("remove", path_of(name));
}

Result<void> OpenFolder::rename(const std::string& name, const OpenFolder& to, const std::string& other,
                                bool replace) const {
    const char* const from = name.c_str();
    const auto done = [&](bool well) { return well ? Result<void>() : cannot("create", to.path_of(other)); };
    if (replace) return done(::renameat(*descriptor_, from, *to.descriptor_, other.c_str()) == 0);
    if (::renameat2(*descriptor_, from, *to.descriptor_, other.c_str(), RENAME_NOREPLACE) == 0) return {};
    if (errno != EINVAL && errno != ENOSYS && errno != ENOTSUP) return done(false);
    // The file system cannot do both at once. A file gets its name as a second one, which replaces nothing; a folder
    // replaces at most an empty one.
    if (::linkat(*descriptor_, from, *to.descriptor_, other.c_str(), 0) == 0)
        return done(::unlinkat(*descriptor_, from, 0) == 0);
    if (errno == EEXIST) return done(false);
    if (to.has(other)) return fail(Code::io, fmt::format("'{}' is there by now", to.path_of(other)));
    return done(::renameat(*descriptor_, from, *to.descriptor_, other.c_str()) == 0);
}

void OpenFolder::sync() const {
    const int descriptor = open_folder(*descriptor_, ".");
    if (descriptor < 0) return;
    ::fsync(descriptor);
    ::close(descriptor);
}

Result<void> OpenFolder::sync_everything() const {
    return ::syncfs(*descriptor_) == 0 ? Result<void>() : cannot("write", path_);
}

}  // namespace reshard::files
