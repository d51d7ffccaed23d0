#include "tool/console/text_file.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "files/base/file.hpp"
#include "src/base/try.hpp"
#include "tool/console/terminal.hpp"

namespace reshard::cli {

bool is_text_file(const std::string& path) {
    struct stat status {};
    return ::stat(path.c_str(), &status) == 0 && !S_ISDIR(status.st_mode);
}

Result<std::string> read_text(const std::string& path, Index bytes_max) {
    RESHARD_TRY(const auto& mode, files::mode_of(path));
    const bool pipe = S_ISFIFO(mode);
    if (!pipe && !S_ISREG(mode)) return files::not_regular(path, mode);
    if (pipe && launched_ranks() > 1)
        return fail(Code::io, fmt::format("cannot read '{}': every rank reads it, and a pipe is read once", path));
    RESHARD_TRY(const auto& file, files::File::open_now(path));
    const int descriptor = file.descriptor();
    std::string text;
    std::array<char, 1 << 16> buffer{};
    bool written = false;  // a pipe ends at once when nobody has it open to write
    for (;;) {
        const ssize_t got = ::read(descriptor, buffer.data(), buffer.size());
        if (got == 0) break;
        pollfd ready{descriptor, POLLIN, 0};
        const bool wait = got < 0 && errno == EAGAIN;
        if (wait && (::poll(&ready, 1, -1) >= 0 || errno == EINTR)) {
            written = true;
            continue;
        }
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return files::cannot("read", path);
        text.append(buffer.data(), static_cast<std::size_t>(got));
        if (static_cast<Index>(text.size()) > bytes_max)
            return fail(Code::io, fmt::format("cannot read '{}': it is longer than {} bytes", path, bytes_max));
    }
    if (pipe && text.empty() && !written)
        return fail(Code::io, fmt::format("cannot read '{}': a pipe that nobody writes", path));
    return text;
}

}  // namespace reshard::cli
