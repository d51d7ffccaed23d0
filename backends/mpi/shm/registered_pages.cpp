#include "backends/mpi/shm/registered_pages.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "backends/mpi/shm/pages.hpp"
#include "src/base/try.hpp"

namespace reshard::mpi {
namespace {

std::byte* at(std::uintptr_t address) { return reinterpret_cast<std::byte*>(address); }

// How often this process was forked, as far as the C library saw it.
std::atomic<std::uint64_t> forks_seen = 0;
std::uint64_t forks() {
    static const int watching = pthread_atfork(
        nullptr, [] { ++forks_seen; }, nullptr);
    static_cast<void>(watching);
    return forks_seen;
}

std::uint64_t next_number() {
    static std::atomic<std::uint64_t> numbers = 0;
    return ++numbers;
}

// The step that begins here: steps end at multiples of their size, so that no huge page is cut.
AddressRange step_at(std::uintptr_t begin, std::uintptr_t end) {
    constexpr auto unit = static_cast<std::uintptr_t>(RegisteredPages::step_bytes);
    return {begin, std::min(end, up_to(begin + 1, unit))};
}

// At once: other threads see the old pages or the new ones.
bool move_over(std::byte* window, const AddressRange& place) {
    const auto bytes = static_cast<std::size_t>(place.bytes());
    return mremap(window, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, at(place.begin)) != MAP_FAILED;
}

// A file beyond it would be answered with a signal.
bool may_have_file_of(Index bytes) {
    rlimit limit{};
    return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
           static_cast<rlim_t>(bytes) <= limit.rlim_cur;
}

}  // namespace

RegisteredPages::RegisteredPages(std::span<std::byte> memory, OnFork on_fork, Held held)
    : range_{reinterpret_cast<std::uintptr_t>(memory.data()),
             reinterpret_cast<std::uintptr_t>(memory.data()) + memory.size()},
      on_fork_(on_fork),
      held_(std::move(held)),
      forks_(forks()) {
    const std::uintptr_t page = page_bytes();
    pages_ = {up_to(range_.begin, page), down_to(range_.end, page)};
    if (pages_.empty()) pages_ = {range_.end, range_.end};
    if (range_.begin % page != 0) partial_[0] = {range_.begin, std::min(range_.end, up_to(range_.begin, page))};
    if (range_.end % page != 0)
        partial_[1] = {std::max({range_.begin, down_to(range_.end, page), partial_[0].end}), range_.end};
    const bool huge = pages_.bytes() >= huge_page_bytes;
    base_ = down_to(range_.begin, huge ? static_cast<std::uintptr_t>(huge_page_bytes) : page);
}

Result<std::shared_ptr<RegisteredPages>> RegisteredPages::make(std::span<std::byte> memory, OnFork on_fork, Held held) {
    std::shared_ptr<RegisteredPages> made(new RegisteredPages(memory, on_fork, std::move(held)));
    made->ended_ = true;  // until it is made
    RESHARD_CHECK(may_change_pages(made->range_));
    RESHARD_CHECK(made->open());
    auto taken = made->make_shadows().and_then([&] { return made->take_all(); });
    if (!taken) {
        made->close();
        return tl::unexpected(taken.error());
    }
    made->ended_ = false;
    return made;
}

Result<void> RegisteredPages::open() {
    const Index bytes = static_cast<Index>(up_to(range_.end, page_bytes()) - base_);
    if (!may_have_file_of(bytes))
        return fail(Code::backend, fmt::format("{} bytes cannot be registered: RLIMIT_FSIZE", bytes));
    const std::string name = fmt::format("reshard.{}.{}", getpid(), next_number());
    const int descriptor = memfd_create(name.c_str(), MFD_CLOEXEC);
    if (descriptor < 0) return system_failed("memfd_create", bytes);
    struct stat status {};
    if (ftruncate(descriptor, bytes) != 0 || fstat(descriptor, &status) != 0) {
        auto error = system_failed("allocation", bytes);
        ::close(descriptor);
        return error;
    }
    name_ = {getpid(), descriptor, status.st_ino, bytes};
    file_name_ = fmt::format("/memfd:{} (deleted)", name);
    return {};
}

Result<void> RegisteredPages::make_shadows() {
    const auto page = static_cast<Index>(page_bytes());
    for (std::size_t i = 0; i < partial_.size(); ++i) {
        if (partial_[i].empty()) continue;
        const std::uintptr_t begin = down_to(partial_[i].begin, page_bytes());
        const FilePart part{static_cast<int>(name_.descriptor), offset_of(begin), page};
        RESHARD_ASSIGN(shadows_[i], map_pages(part, begin));
        held_(page);
        if (!take_pages(part, shadows_[i]) || !populate(shadows_[i], page)) return system_failed("allocation", page);
    }
    return {};
}

Result<void> RegisteredPages::take_all() {
    Result<void> taken;
    std::uintptr_t reached = pages_.begin;
    while (taken && reached < pages_.end) {
        const AddressRange step = step_at(reached, pages_.end);
        held_(step.bytes());
        taken = share(step);
        held_(-step.bytes());
        if (taken) reached = step.end;
    }
    const auto bytes = static_cast<std::size_t>(pages_.bytes());
    if (taken && !pages_.empty() && on_fork_ == OnFork::withhold &&
        madvise(at(pages_.begin), bytes, MADV_DONTFORK) != 0)
        taken = system_failed("MADV_DONTFORK", pages_.bytes());
    if (taken) return {};
    const auto undone = put_back({pages_.begin, reached});
    if (undone) return taken;
    return fail(Code::backend, fmt::format("{}; and then {}", taken.error().message, undone.error().message));
}

// The old pages go when the file holds what is in them.
Result<void> RegisteredPages::share(const AddressRange& step) {
    const FilePart part{static_cast<int>(name_.descriptor), offset_of(step.begin), step.bytes()};
    RESHARD_TRY(std::byte* const& window, map_pages(part, step.begin));
    const auto bytes = static_cast<std::size_t>(part.bytes);
    if (!take_pages(part, window) || !populate(window, part.bytes)) {
        auto error = system_failed("allocation", part.bytes);
        munmap(window, bytes);
        drop_from_file(step);
        return error;
    }
    std::memcpy(window, at(step.begin), bytes);
    if (move_over(window, step)) return {};
    auto error = system_failed("mremap", part.bytes);
    const bool mapped = map_over(part, at(step.begin), true);
    munmap(window, bytes);
    return mapped ? Result<void>() : error;
}

// Uses smaller steps if large ones have no room. Pages that fit in no step stay in the file, which only this memory
// uses. A private view of it takes neither memory nor addresses.
Result<void> RegisteredPages::put_back(AddressRange pages) {
    auto most = static_cast<std::uintptr_t>(step_bytes);
    while (!pages.empty()) {
        AddressRange step = step_at(pages.begin, pages.end);
        step.end = std::min(step.end, step.begin + most);
        if (make_private(step)) {
            pages.begin = step.end;
        } else if (most > page_bytes()) {
            most = std::max(page_bytes(), most / 2);
        } else {
            break;
        }
    }
    if (pages.empty()) return {};
    const FilePart rest{static_cast<int>(name_.descriptor), offset_of(pages.begin), pages.bytes()};
    if (map_over(rest, at(pages.begin), false)) return {};
    static_cast<void>(map_over(rest, at(pages.begin), true));
    return fail(Code::backend, fmt::format("{} bytes stay shared memory, with their contents", rest.bytes));
}

bool RegisteredPages::make_private(const AddressRange& step) {
    const auto window = map_pages({-1, 0, step.bytes()}, step.begin);
    if (!window) return false;
    const auto bytes = static_cast<std::size_t>(step.bytes());
    if (step.bytes() >= huge_page_bytes) madvise(*window, bytes, MADV_HUGEPAGE);
    held_(step.bytes());
    bool moved = populate(*window, step.bytes());
    if (moved) {
        std::memcpy(*window, at(step.begin), bytes);
        moved = move_over(*window, step);
        if (!moved) {
            const FilePart part{static_cast<int>(name_.descriptor), offset_of(step.begin), step.bytes()};
            static_cast<void>(map_over(part, at(step.begin), true));
        }
    }
    if (!moved) munmap(*window, bytes);
    if (moved) drop_from_file(step);
    held_(-step.bytes());
    return moved;
}

// A process forked meanwhile shares the pages, and keeps what is in them. Peers that look at them no more would else
// hold them until they look at others.
bool RegisteredPages::seen_by_nobody() const {
    return getpid() == name_.process && (on_fork_ == OnFork::withhold || forks() == forks_);
}

void RegisteredPages::drop_from_file(const AddressRange& step) const {
    if (!seen_by_nobody()) return;
    static_cast<void>(fallocate(static_cast<int>(name_.descriptor), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                offset_of(step.begin), step.bytes()));
}

std::byte* RegisteredPages::shadow_of(std::uintptr_t address) const {
    const std::size_t which = address < partial_[0].end ? 0 : 1;
    return shadows_[which] + (address - down_to(partial_[which].begin, page_bytes()));
}

FileView RegisteredPages::view() const {
    return {pages_, static_cast<std::uint64_t>(offset_of(pages_.begin)), name_.inode, file_name_};
}

Result<std::vector<AddressRange>> RegisteredPages::still_shown() const {
    if (is_intact()) return std::vector<AddressRange>{pages_};
    RESHARD_TRY(const auto& found, mappings_of(pages_));
    std::vector<AddressRange> shown;
    for (const Mapping& mapping : found) {
        const AddressRange part{std::max(pages_.begin, mapping.range.begin), std::min(pages_.end, mapping.range.end)};
        FileView there = view();
        there.offset += part.begin - pages_.begin;
        there.range = part;
        if (shows(there, Asked::by_list)) shown.push_back(part);
    }
    return shown;
}

Result<void> RegisteredPages::end() {
    if (ended_) return {};
    if (uses_ > 0)
        return fail(Code::usage,
                    "a run is in flight that reads or writes this memory: wait for it, then end the registration");
    RESHARD_TRY(const auto& shown, still_shown());
    Index lost = pages_.bytes();
    for (const AddressRange& part : shown) {
        RESHARD_CHECK(put_back(part));
        lost -= part.bytes();
    }
    close();
    ended_ = true;
    const bool withheld = getpid() != name_.process && on_fork_ == OnFork::withhold;
    if (lost == 0 || withheld) return {};
    return fail(Code::backend, fmt::format("{} of {} bytes were freed or mapped anew while they were registered", lost,
                                           range_.bytes()));
}

void RegisteredPages::close() {
    const std::uintptr_t page = page_bytes();
    for (std::size_t i = 0; i < shadows_.size(); ++i) {
        if (shadows_[i] == nullptr) continue;
        munmap(shadows_[i], page);
        shadows_[i] = nullptr;
        const std::uintptr_t begin = down_to(partial_[i].begin, page);
        drop_from_file({begin, begin + page});
        held_(-static_cast<Index>(page));
    }
    ::close(static_cast<int>(name_.descriptor));
}

// Pages that cannot be put back stay shared, with their contents. No other process maps them any more.
RegisteredPages::~RegisteredPages() {
    if (ended_) return;
    static_cast<void>(end());
    if (!ended_) close();
}

}  // namespace reshard::mpi
