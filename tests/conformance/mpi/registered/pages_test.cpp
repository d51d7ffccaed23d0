// The caller's memory is exchanged for pages of a file and back: contents, refusals, limits, forks, and traces. One
// process; a Segment opened by name stands for the peer.
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
#include <fstream>
#include <numeric>
#include <thread>

#include "backends/mpi/shm/registry.hpp"
#include "conformance/mpi/children.hpp"
#include "conformance/mpi/registered/mapped.hpp"
#include "support/random_bytes.hpp"

namespace reshard::mpi {
namespace {

using namespace test;

std::string why_not(std::span<std::byte> memory) {
    const auto made = registered(memory);
    return made ? std::string("registered") : made.error().message;
}

// The memory as peers see it: whole pages in their places, other pages through their shadows.
struct Peer {
    explicit Peer(const RegisteredPages& seen) : segment(Segment::open(seen.name()).value()), pages(seen) {}
    [[nodiscard]] std::span<std::byte> whole() const {
        const AddressRange range = pages.whole_pages();
        return {segment.data() + pages.offset_of(range.begin), static_cast<std::size_t>(range.bytes())};
    }
    Segment segment;
    const RegisteredPages& pages;
};

// Any offset and size in memory of all kinds. Contents stay, both sides see each other's writes, and neighbours do not
// change.
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
                    ASSERT_TRUE(reshard::test::same_bytes(peer.whole(), std::span(own, peer.whole().size())));
                    fill(memory, 3);
                    ASSERT_TRUE(reshard::test::same_bytes(peer.whole(), std::span(own, peer.whole().size())));
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
    if (huge.made()) expect_refused(huge.bytes(), "hugetlbfs", false);  // reserved, but not present
}

TEST(RegisteredPages, LockedPagesAreRefused) {
    const Mapped locked(8 * page);
    // The sanitizers disable the C library's mlock.
    if (syscall(SYS_mlock, locked.bytes().data() + 2 * page, page) != 0) GTEST_SKIP() << "no page may be locked";
    expect_refused(locked.bytes(), "locked");
    ASSERT_EQ(syscall(SYS_munlock, locked.bytes().data() + 2 * page, page), 0);
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

// Counts the bytes held beside the memory at any moment.
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

// Checks with the kernel's own high-water mark, in a fresh process.
TEST(RegisteredPages, HoldsLittleMoreAtAnyMoment) {
#ifdef __SANITIZE_ADDRESS__
    GTEST_SKIP() << "the sanitizer has memory of its own";
#endif
    EXPECT_EQ(in_child([]() -> std::string {
                  const Mapped mapped(256 * mebi);
                  fill(mapped.bytes(), 7);
                  std::ofstream("/proc/self/clear_refs") << 5;  // resets the mark
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

}  // namespace
}  // namespace reshard::mpi
