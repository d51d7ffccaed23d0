#include "files/engine/journal.hpp"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>

#include <fmt/format.h>

#include "files/base/crc32c.hpp"
#include "src/base/try.hpp"

namespace reshard::files {

namespace {

// Written bytes stay readable until the machine restarts, even if they are not on the disk.
std::string boot() {
    const auto file = File::open_now("/proc/sys/kernel/random/boot_id");
    std::array<char, 36> text{};
    if (!file || ::read(file->descriptor(), text.data(), text.size()) != std::ssize(text)) return "-";
    return {text.data(), text.size()};
}

std::string with_sum(const std::string& line) {
    const std::uint32_t raw = crc32c_raw(std::as_bytes(std::span(line)));
    return fmt::format("{} {:08x}\n", line, raw);
}

// Takes the next field off a line.
std::string_view next_field(std::string_view& line) {
    const std::size_t end = std::min(line.find(' '), line.size());
    const std::string_view word = line.substr(0, end);
    line.remove_prefix(std::min(end + 1, line.size()));
    return word;
}

template <class Number>
bool read_number(std::string_view text, Number& number, int base) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
    return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

Result<Journal> Journal::take(const OpenFolder& folder) {
    RESHARD_TRY(auto& file, folder.locked(name));
    return Journal(std::move(file));
}

Result<void> Journal::empty() {
    return ::ftruncate(file_.descriptor(), 0) == 0 ? Result<void>() : cannot("write", "the journal");
}

Result<void> Journal::begin(const std::string& job, std::size_t sums, bool anew) {
    const std::string head = with_sum(fmt::format("reshard 1 {} {}", job, boot()));
    sums_.assign(sums, 0);
    RESHARD_TRY(const auto& bytes, file_.size());
    std::string text(static_cast<std::size_t>(bytes), '\0');
    RESHARD_CHECK(file_.read(std::as_writable_bytes(std::span(text)), 0));
    if (anew || !text.starts_with(head)) {
        RESHARD_CHECK(empty());
        RESHARD_CHECK(file_.write(std::as_bytes(std::span(head)), 0));
        end_ = std::ssize(head);
        return {};
    }
    std::size_t at = head.size();
    while (true) {
        const std::size_t end = text.find('\n', at);
        if (end == std::string::npos || end - at < 9) break;
        std::string_view line = std::string_view(text).substr(at, end - at);
        if (with_sum(std::string(line.substr(0, line.size() - 9))) != std::string(line) + "\n") break;
        line.remove_suffix(9);
        Index number = 0;
        if (next_field(line) != "batch" || !read_number(next_field(line), number, 10) || number != batches_) break;
        std::vector<std::uint32_t> changed = sums_;
        bool whole = true;
        while (!line.empty()) {
            const std::string_view field = next_field(line);
            const std::size_t colon = std::min(field.find(':'), field.size());
            std::size_t which = 0;
            std::uint32_t sum = 0;
            whole = whole && read_number(field.substr(0, colon), which, 10) && which < changed.size() &&
                    colon < field.size() && read_number(field.substr(colon + 1), sum, 16);
            if (whole) changed[which] = sum;
        }
        if (!whole) break;
        sums_ = std::move(changed);
        ++batches_;
        at = end + 1;
    }
    end_ = static_cast<Index>(at);
    return ::ftruncate(file_.descriptor(), end_) == 0 ? Result<void>() : cannot("write", "the journal");
}

Result<void> Journal::add(std::span<const std::uint32_t> sums) {
    std::string line = fmt::format("batch {}", batches_);
    for (std::size_t i = 0; i < sums.size(); ++i)
        if (sums[i] != sums_[i]) line += fmt::format(" {}:{:x}", i, sums[i]);
    line = with_sum(line);
    RESHARD_CHECK(file_.write(std::as_bytes(std::span(line)), end_));
    end_ += std::ssize(line);
    sums_.assign(sums.begin(), sums.end());
    ++batches_;
    return {};
}

}  // namespace reshard::files
