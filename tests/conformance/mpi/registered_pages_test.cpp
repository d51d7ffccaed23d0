// Memory of the caller's that is exchanged for pages of a file and back: contents, refusals, limits, forks, and what is
// left behind. One process; a Segment opened by name stands for the peer.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <linux/userfaultfd.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <numeric>
#include <thread>

#include "backends/mpi/shm/registry.hpp"
#include "conformance/mpi/children.hpp"

namespace reshard::mpi {
namespace {

using test::in_child;

constexpr std::size_t page = 4096;
constexpr std::size_t mebi = std::size_t{1} << 20;

std::byte value_at(std::size_t index, unsigned salt) {
    return std::byte(static_cast<unsigned char>(index * 7 + (index >> 12) * 13 + salt));
}

void fill(std::span<std::byte> memory, unsigned salt) {
    for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = value_at(i, salt);
}

bool holds(std::span<const std::byte> memory, unsigned salt) {
    for (std::size_t i = 0; i < memory.size(); ++i) {
        if (memory[i] != value_at(i, salt)) return false;
    }
    return true;
}

// Addresses of this process that the system gave; private pages where nothing else is asked for.
class Mapped {
public:
    explicit Mapped(std::size_t bytes, int protection = PROT_READ | PROT_WRITE, int flags = MAP_PRIVATE | MAP_ANONYMOUS,
                    int descriptor = -1)
        : bytes_(bytes), start_(static_cast<std::byte*>(mmap(nullptr, bytes, protection, flags, descriptor, 0))) {}
    Mapped(const Mapped&) = delete;
    Mapped& operator=(const Mapped&) = delete;
    ~Mapped() {
        if (made()) munmap(start_, bytes_);
    }
    [[nodiscard]] bool made() const { return start_ != MAP_FAILED; }
    [[nodiscard]] std::span<std::byte> bytes() const { return {start_, bytes_}; }

private:
    std::size_t bytes_;
    std::byte* start_;
};

Result<std::shared_ptr<RegisteredPages>> registered(std::span<std::byte> memory, OnFork on_fork = OnFork::share) {
    return RegisteredPages::make(memory, on_fork, [](Index) {});
}

std::string why_not(std::span<std::byte> memory) {
    const auto made = registered(memory);
    return made ? std::string("registered") : made.error().message;
}

int count_of_lines(const char* path, const std::string& word) {
    std::ifstream file(path);
    int found = 0;
    for (std::string line; std::getline(file, line);) found += line.find(word) != std::string::npos ? 1 : 0;
    return found;
}

int open_descriptors() {
    int open = 0;
    for (int descriptor = 0; descriptor < 256; ++descriptor) open += fcntl(descriptor, F_GETFD) >= 0 ? 1 : 0;
    return open;
}

// What a registration may not leave behind.
struct Traces {
    int descriptors = open_descriptors();
    int mappings = count_of_lines("/proc/self/maps", "memfd:reshard");
    friend bool operator==(const Traces&, const Traces&) = default;
};

// Where peers see the memory: whole pages in their places, of the others their shadows.
struct Peer {
    explicit Peer(const RegisteredPages& seen) : segment(Segment::open(seen.name()).value()), pages(seen) {}
    [[nodiscard]] std::span<std::byte> whole() const {
        const AddressRange range = pages.whole_pages();
        return {segment.data() + pages.offset_of(range.begin), static_cast<std::size_t>(range.bytes())};
    }
    Segment segment;
    const RegisteredPages& pages;
};

// Any offset and size, in memory of all kinds: contents stay, both sides see each other's writes, and neighbours stay.
TEST(RegisteredPages, AnyOffsetAndSize) {
    const Traces before;
    std::vector<std::byte> on_heap(5 * page);
    std::vector<std::byte> large(3 * mebi + 12345);
    const Mapped mapped(9 * mebi);
    for (const std::span<std::byte> whole : {std::span(on_heap), std::span(large), mapped.bytes()}) {
        for (const std::size_t offset : {0UL, 17UL, page - 1, page + 3}) {
            for (const std::size_t less : {0UL, 1UL, page + 1}) {
                fill(whole, 1);
                if (offset + less >= whole.size()) continue;
                const auto memory = whole.subspan(offset, whole.size() - offset - less);
                fill(memory, 2);
                auto pages = registered(memory);
                ASSERT_TRUE(pages) << pages.error().message;
                ASSERT_TRUE(holds(memory, 2));
                EXPECT_TRUE((*pages)->is_intact());
                {
                    const Peer peer(**pages);
                    const AddressRange range = (*pages)->whole_pages();
                    auto* const own = reinterpret_cast<std::byte*>(range.begin);
                    ASSERT_TRUE(std::ranges::equal(peer.whole(), std::span(own, peer.whole().size())));
                    fill(memory, 3);
                    ASSERT_TRUE(std::ranges::equal(peer.whole(), std::span(own, peer.whole().size())));
                    if (!range.empty()) {
                        peer.whole()[page / 3] = std::byte{99};
                        EXPECT_EQ(own[page / 3], std::byte{99});
                        own[page / 3] = value_at(static_cast<std::size_t>(own - memory.data()) + page / 3, 3);
                    }
                }
                const auto ended = (*pages)->end();
                ASSERT_TRUE(ended) << ended.error().message;
                ASSERT_TRUE(holds(memory, 3));
                for (std::size_t i = 0; i < offset; ++i) ASSERT_EQ(whole[i], value_at(i, 1));
                for (std::size_t i = offset + memory.size(); i < whole.size(); ++i) ASSERT_EQ(whole[i], value_at(i, 1));
            }
        }
    }
    EXPECT_EQ(Traces(), before);
}

TEST(RegisteredPages, TinyMemoryLiesInShadowsAlone) {
    const Mapped mapped(3 * page);
    for (const auto& [offset, bytes, shadows] :
         {std::tuple(5UL, 1UL, 1), {0UL, 4095UL, 1}, {1UL, 4095UL, 1}, {page - 8, 16UL, 2}}) {
        auto pages = registered(mapped.bytes().subspan(offset, bytes));
        ASSERT_TRUE(pages) << pages.error().message;
        EXPECT_TRUE((*pages)->whole_pages().empty());
        Index partial = 0;
        int count = 0;
        for (const AddressRange& one : (*pages)->partial()) {
            partial += one.empty() ? 0 : one.bytes();
            count += one.empty() ? 0 : 1;
        }
        EXPECT_EQ(partial, static_cast<Index>(bytes));
        EXPECT_EQ(count, shadows);
        const Peer peer(**pages);
        for (const AddressRange& one : (*pages)->partial()) {
            if (one.empty()) continue;
            *(*pages)->shadow_of(one.begin) = std::byte{42};
            EXPECT_EQ(peer.segment.data()[(*pages)->offset_of(one.begin)], std::byte{42});
        }
    }
}

void expect_refused(std::span<std::byte> memory, const std::string& reason, bool writable = true) {
    if (writable) fill(memory, 4);
    const Traces before;
    EXPECT_NE(why_not(memory).find(reason), std::string::npos) << why_not(memory);
    if (writable) {
        EXPECT_TRUE(holds(memory, 4)) << reason;
    }
    EXPECT_EQ(Traces(), before) << reason;
}

TEST(RegisteredPages, RefusedWithTheReason) {
    std::FILE* const file = std::tmpfile();
    ASSERT_NE(file, nullptr);
    ASSERT_EQ(ftruncate(fileno(file), 8 * page), 0);
    expect_refused(Mapped(8 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE, fileno(file)).bytes(), "it shows a file");
    expect_refused(Mapped(8 * page, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file)).bytes(), "it shows a file");
    std::fclose(file);
    expect_refused(Mapped(8 * page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS).bytes(), "/dev/zero");
    expect_refused(Mapped(8 * page, PROT_READ).bytes(), "'r--p'", false);
    expect_refused(Mapped(8 * page, PROT_NONE).bytes(), "'---p'", false);
    const Mapped holed(8 * page);
    fill(holed.bytes(), 5);
    munmap(holed.bytes().data() + 4 * page, page);
    expect_refused(holed.bytes(), "nothing is mapped", false);
    std::array<std::byte, 4 * page> on_stack;
    expect_refused(on_stack, "stack");
    std::thread([] {
        std::array<std::byte, 4 * page> on_another;
        expect_refused(on_another, "stack");
    }).join();
    const auto segment = Segment::make(4 * page).value();
    expect_refused({segment.data(), 4 * page}, "the backend's own");
    const Mapped huge(2 * mebi, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB);
    if (huge.made()) expect_refused(huge.bytes(), "hugetlbfs", false);  // reserved, not there
}

TEST(RegisteredPages, LockedPagesAreRefused) {
    const Mapped locked(8 * page);
    if (mlock(locked.bytes().data() + 2 * page, page) != 0) GTEST_SKIP() << "no page may be locked";
    expect_refused(locked.bytes(), "locked");
    munlock(locked.bytes().data() + 2 * page, page);
    EXPECT_EQ(why_not(locked.bytes()), "registered");
}

TEST(RegisteredPages, UserfaultPagesAreRefused) {
    const Mapped watched(8 * page);
    const int descriptor = static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK));
    uffdio_api api{};
    api.api = UFFD_API;
    if (descriptor < 0 || ioctl(descriptor, UFFDIO_API, &api) != 0) GTEST_SKIP() << "no userfaultfd here";
    uffdio_register area{};
    area.range = {reinterpret_cast<std::uintptr_t>(watched.bytes().data()), 8 * page};
    area.mode = UFFDIO_REGISTER_MODE_MISSING;
    fill(watched.bytes(), 4);
    ASSERT_EQ(ioctl(descriptor, UFFDIO_REGISTER, &area), 0);
    expect_refused(watched.bytes(), "userfaultfd");
    close(descriptor);
}

TEST(RegisteredPages, NothingIsRegisteredTwice) {
    const Mapped mapped(16 * page);
    fill(mapped.bytes(), 6);
    Registry& registry = Registry::of_process();
    const auto add = [&](std::size_t from, std::size_t bytes) {
        return registry.add(mapped.bytes().subspan(from, bytes), OnFork::share, [](Index) {});
    };
    auto first = add(100, 5 * page);
    ASSERT_TRUE(first) << first.error().message;
    for (const auto& [from, bytes] :
         {std::pair(0UL, 101UL), {100UL, 1UL}, {3 * page, page}, {5 * page + 99, 2 * page}, {0UL, 16 * page}}) {
        const auto again = add(from, bytes);
        ASSERT_FALSE(again) << from;
        EXPECT_NE(again.error().message.find("lies in what was registered"), std::string::npos);
    }
    auto before = add(0, 100);
    auto after = add(5 * page + 100, page);
    ASSERT_TRUE(before && after) << "neighbours of the same page";
    EXPECT_TRUE(holds(mapped.bytes(), 6));
    const std::byte* const start = mapped.bytes().data();
    EXPECT_EQ(registry.find(start + 100, 5 * page), *first);
    EXPECT_EQ(registry.find(start + 99, 10), nullptr);
    EXPECT_EQ(registry.find(start + 5 * page, 200), nullptr) << "in two of them";
    for (const auto& one : {*first, *before, *after}) EXPECT_TRUE(registry.end(*one));
    EXPECT_EQ(registry.find(start + 100, 1), nullptr);
    EXPECT_TRUE(holds(mapped.bytes(), 6));
}

TEST(RegisteredPages, NotEndedWhileUsed) {
    const Mapped mapped(4 * page);
    const auto pages = registered(mapped.bytes()).value();
    {
        const RegisteredPages::Use use(pages);
        const auto ended = pages->end();
        ASSERT_FALSE(ended);
        EXPECT_EQ(ended.error().code, Code::usage);
    }
    EXPECT_TRUE(pages->end());
    EXPECT_TRUE(pages->end()) << "nothing is left to end";
}

// By count: what is held beside the memory at any moment.
TEST(RegisteredPages, InStepsOfAStatedSize) {
    const Mapped mapped(40 * mebi);
    Index held = 0;
    Index most = 0;
    const auto count = [&](Index change) {
        held += change;
        most = std::max(most, held);
    };
    const auto memory = mapped.bytes().subspan(1000, 40 * mebi - 2000);
    auto pages = RegisteredPages::make(memory, OnFork::share, count).value();
    EXPECT_EQ(held, static_cast<Index>(2 * page)) << "the shadows";
    ASSERT_TRUE(pages->end());
    EXPECT_EQ(held, 0);
    EXPECT_LE(most, RegisteredPages::step_bytes + static_cast<Index>(2 * page));
    EXPECT_GE(most, RegisteredPages::step_bytes);
}

Index status_bytes(const std::string& name) {
    std::ifstream file("/proc/self/status");
    Index kibibytes = -1;
    for (std::string word; file >> word;) {
        if (word == name + ":" && file >> kibibytes) return kibibytes * 1024;
    }
    return -1;
}

// By the kernel's own high-water mark, which a fresh process has to itself.
TEST(RegisteredPages, HoldsLittleMoreAtAnyMoment) {
#ifdef __SANITIZE_ADDRESS__
    GTEST_SKIP() << "the sanitizer has memory of its own";
#endif
    EXPECT_EQ(in_child([]() -> std::string {
                  const Mapped mapped(256 * mebi);
                  fill(mapped.bytes(), 7);
                  std::ofstream("/proc/self/clear_refs") << 5;  // the mark begins anew
                  const Index before = status_bytes("VmRSS");
                  if (before < 0 || status_bytes("VmHWM") - before > Index{4} << 20) return "skipped";
                  auto pages = registered(mapped.bytes().subspan(8));
                  if (!pages) return pages.error().message;
                  const Index there = status_bytes("VmHWM") - before;
                  if (!(*pages)->end()) return "not ended";
                  const Index back = status_bytes("VmHWM") - before;
                  if (!holds(mapped.bytes(), 7)) return "contents are wrong";
                  const Index most = Index{16} << 20;
                  return there <= most && back <= most ? "" : fmt::format("{} and {} bytes more", there, back);
              }),
              "");
}

// What was freed, shrunk or mapped anew is found, and what took its place is not touched.
TEST(RegisteredPages, LostAddressesAreFound) {
    const Traces before;
    for (const Asked way : {Asked::by_address, Asked::by_link, Asked::by_list}) {
        SCOPED_TRACE(static_cast<int>(way));
        const Mapped mapped(16 * page);
        fill(mapped.bytes(), 8);
        auto pages = registered(mapped.bytes().subspan(page, 12 * page)).value();
        const AddressRange range = pages->whole_pages();
        const FileView view{range, static_cast<std::uint64_t>(pages->offset_of(range.begin)), pages->name().inode, [&] {
                                const auto found = mappings_of(range).value();
                                EXPECT_EQ(found.size(), 1U);
                                return found.front().name;
                            }()};
        EXPECT_TRUE(shows(view, way));
        FileView shifted = view;
        shifted.offset += page;
        if (way != Asked::by_link) {
            EXPECT_FALSE(shows(shifted, way)) << "another part of the file";
        }
        // A stranger in the middle.
        auto* const place = reinterpret_cast<std::byte*>(range.begin) + 4 * page;
        ASSERT_NE(mmap(place, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
                  MAP_FAILED);
        *place = std::byte{77};
        EXPECT_FALSE(shows(view, way));
        EXPECT_FALSE(pages->is_intact());
        const auto ended = pages->end();
        ASSERT_FALSE(ended);
        EXPECT_NE(ended.error().message.find("4096 of 49152 bytes were freed or mapped anew"), std::string::npos)
            << ended.error().message;
        EXPECT_EQ(*place, std::byte{77});
        EXPECT_TRUE(pages->ended());
        for (std::size_t i = 0; i < 16 * page; ++i) {
            if (i < 5 * page || i >= 6 * page) {
                ASSERT_EQ(mapped.bytes()[i], value_at(i, 8));
            }
        }
    }
    EXPECT_EQ(Traces(), before);
}

TEST(RegisteredPages, AllThatWasFreedIsLost) {
    auto mapped = std::make_unique<Mapped>(16 * page);
    auto pages = registered(mapped->bytes()).value();
    mapped.reset();
    EXPECT_FALSE(pages->is_intact());
    EXPECT_FALSE(pages->end());
    EXPECT_TRUE(pages->end());
}

// Part of the mapping advised or protected by itself: still ours.
TEST(RegisteredPages, MappingsCutInPartsAreTheSame) {
    const Mapped mapped(16 * page);
    fill(mapped.bytes(), 9);
    auto pages = registered(mapped.bytes()).value();
    ASSERT_EQ(mprotect(mapped.bytes().data() + 4 * page, page, PROT_READ), 0);
    EXPECT_TRUE(pages->is_intact());
    ASSERT_EQ(mprotect(mapped.bytes().data() + 4 * page, page, PROT_READ | PROT_WRITE), 0);
    EXPECT_TRUE(pages->end());
    EXPECT_TRUE(holds(mapped.bytes(), 9));
}

// A child shares what is registered, keeps its contents when the parent has ended, and may end it for itself.
TEST(RegisteredPages, AForkShares) {
    const Mapped mapped(9 * mebi);
    fill(mapped.bytes(), 10);
    auto pages = registered(mapped.bytes().subspan(3)).value();
    test::Child child([&](const std::function<void()>& wait) -> std::string {
        if (!holds(mapped.bytes(), 10)) return "the child sees other contents";
        mapped.bytes()[5 * page] = std::byte{1};  // which the parent sees
        wait();
        mapped.bytes()[5 * page] = value_at(5 * page, 10);
        if (!holds(mapped.bytes(), 10)) return "what the parent ended is gone";
        if (const auto ended = pages->end(); !ended) return ended.error().message;
        return holds(mapped.bytes(), 10) ? "" : "contents are lost";
    });
    child.reached();
    EXPECT_EQ(mapped.bytes()[5 * page], std::byte{1});
    mapped.bytes()[5 * page] = value_at(5 * page, 10);
    ASSERT_TRUE(pages->end());
    fill(mapped.bytes(), 11);  // which the child does not see any more
    EXPECT_EQ(child.end(), "");
    EXPECT_TRUE(holds(mapped.bytes(), 11));
}

TEST(RegisteredPages, AChildMayEndItFirst) {
    const Mapped mapped(mebi);
    fill(mapped.bytes(), 12);
    auto pages = registered(mapped.bytes()).value();
    EXPECT_EQ(in_child([&]() -> std::string {
                  if (!pages->end()) return "not ended";
                  fill(mapped.bytes(), 13);
                  return "";
              }),
              "");
    EXPECT_TRUE(pages->is_intact());
    EXPECT_TRUE(holds(mapped.bytes(), 12));
    EXPECT_TRUE(pages->end());
    EXPECT_TRUE(holds(mapped.bytes(), 12));
}

TEST(RegisteredPages, AForkMayBeWithheld) {
    const Mapped mapped(mebi);
    fill(mapped.bytes(), 14);
    auto pages = registered(mapped.bytes(), OnFork::withhold).value();
    EXPECT_EQ(in_child([&]() -> std::string {
                  if (mappings_of(pages->whole_pages()).value().size() != 0) return "the child has them";
                  const auto ended = pages->end();
                  return ended ? "" : ended.error().message;
              }),
              "");
    EXPECT_TRUE(pages->end());
    EXPECT_TRUE(holds(mapped.bytes(), 14));
    EXPECT_EQ(in_child([&]() -> std::string { return holds(mapped.bytes(), 14) ? "" : "not a child's again"; }), "");
}

}  // namespace
}  // namespace reshard::mpi
