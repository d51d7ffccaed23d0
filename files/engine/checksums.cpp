#include "files/engine/checksums.hpp"

#include <fcntl.h>

#include <algorithm>

#include <fmt/format.h>

#include "files/base/crc32c.hpp"
#include "files/base/parallel.hpp"
#include "files/engine/memory.hpp"
#include "files/formats/json_text.hpp"

namespace reshard::files {

namespace {

constexpr Index part_max = Index{64} << 20;  // bytes that one worker reads

// A part of summed bytes.
struct SummedPart {
    std::size_t number = 0;  // of the summed bytes
    Index begin = 0;         // in the file
    Index end = 0;
};

std::vector<SummedPart> parts_of(std::span<const SummedBytes> summed, Turn turn) {
    std::vector<SummedPart> parts;
    Index next = 0;  // part of all ranks
    for (std::size_t i = 0; i < summed.size(); ++i)
        for (Index begin = summed[i].begin; begin < summed[i].end; begin += part_max)
            if (next++ % turn.ranks == turn.rank)
                parts.push_back({i, begin, std::min(begin + part_max, summed[i].end)});
    return parts;
}

Result<std::uint32_t> read_part(const File& file, const SummedPart& part, std::span<std::byte> memory) {
    // Drops cached pages, so that pages that are on the disk are read from the disk.
    (void)::posix_fadvise(file.descriptor(), part.begin, part.end - part.begin, POSIX_FADV_DONTNEED);
    std::uint32_t raw = 0;
    for (Index begin = part.begin; begin < part.end;) {
        const Index size = std::min(part.end - begin, std::ssize(memory));
        const std::span<std::byte> bytes = memory.first(static_cast<std::size_t>(size));
        RESHARD_CHECK(file.read(bytes, begin));
        raw = crc32c_raw(bytes, raw);
        begin += size;
    }
    return raw;
}

}  // namespace

Result<std::vector<std::uint32_t>> read_sums(const SummedFiles& files, Turn turn, Index workers, Index stretch_bytes) {
    OpenFiles opened(files.files, files.open);
    RESHARD_TRY(const auto& pages, Pages::allocate(workers * stretch_bytes));
    const std::vector<SummedPart> parts = parts_of(files.summed, turn);
    std::vector<std::uint32_t> sums(files.summed.size(), 0);
    std::mutex mutex;  // of sums
    RESHARD_CHECK(for_each_number(std::ssize(parts), workers, [&](Index number, Index worker) -> Result<void> {
        const SummedPart& part = parts[static_cast<std::size_t>(number)];
        const SummedBytes& whole = files.summed[part.number];
        RESHARD_TRY(const auto& file, opened.at(whole.file));
        RESHARD_TRY(
            const std::uint32_t raw,
            read_part(*file, part, {pages.at() + worker * stretch_bytes, static_cast<std::size_t>(stretch_bytes)}));
        const std::lock_guard held(mutex);
        sums[part.number] ^= crc32c_shifted(raw, whole.end - part.end);
        return {};
    }));
    return sums;
}

Result<void> compare_sums(const SummedFiles& files, std::span<const std::uint32_t> wanted,
                          std::span<const std::uint32_t> found) {
    for (std::size_t i = 0; i < files.summed.size(); ++i)
        if (wanted[i] != found[i])
            return fail(Code::io, fmt::format("{} in '{}' is read as other bytes than were written",
                                              in_quotes(files.summed[i].tensor),
                                              files.files[static_cast<std::size_t>(files.summed[i].file)].path));
    return {};
}

}  // namespace reshard::files
