// Registration under exhausted system limits: an error, unchanged memory, nothing left behind. Each case runs in its
// own process.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <sched.h>
#include <algorithm>
#include <filesystem>
#include <fstream>

#include "backends/mpi/shm/registered_pages.hpp"
#include "conformance/mpi/children.hpp"

namespace reshard::mpi {
namespace {

using test::in_child;

constexpr std::size_t mebi = std::size_t{1} << 20;
constexpr std::size_t bytes = 40 * mebi;

std::byte value_at(std::size_t index) { return std::byte(static_cast<unsigned char>(index * 11 + (index >> 12))); }

std::span<std::byte> filled() {
    void* const start = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const std::span memory(static_cast<std::byte*>(start), bytes);
    for (std::size_t i = 0; i < bytes; ++i) memory[i] = value_at(i);
    return memory;
}

bool unchanged(std::span<const std::byte> memory) {
    for (std::size_t i = 0; i < memory.size(); ++i) {
        if (memory[i] != value_at(i)) return false;
    }
    return true;
}

// The number of shared memory files that this process has mapped or open. Their names have no folder, since the folder
// of another file may contain the same word.
int traces() {
    int found = 0;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) found += line.find("memfd:reshard") != std::string::npos ? 1 : 0;
    for (int descriptor = 3; descriptor < 64; ++descriptor) {
        std::array<char, 64> target{};
        const std::string path = fmt::format("/proc/self/fd/{}", descriptor);
        const ssize_t length = readlink(path.c_str(), target.data(), target.size());
        found += length > 0 &&
                 std::string_view(target.data(), static_cast<std::size_t>(length)).starts_with("/memfd:reshard");
    }
    return found;
}

Result<std::shared_ptr<RegisteredPages>> registered(std::span<std::byte> memory) {
    return RegisteredPages::make(memory, OnFork::share, [](Index) {});
}

// The folder of the tests may have the name of the project, and so may a log that the test runner has open.
TEST(RegisteredLimits, AFileInAFolderOfThatNameIsNoTrace) {
    std::string folder = std::filesystem::temp_directory_path() / "reshard.XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    const int file = open((folder + "/LastTest.log").c_str(), O_CREAT | O_WRONLY, 0600);
    ASSERT_GE(file, 0);
    EXPECT_EQ(traces(), 0);
    const int memory = memfd_create("reshard", 0);
    EXPECT_EQ(traces(), 1);
    close(memory);
    close(file);
    std::filesystem::remove_all(folder);
}

// Empty if registration fails for that reason, and the memory is still private, writable and unchanged.
std::string refused(std::span<std::byte> memory, const std::string& reason) {
    const auto made = registered(memory.subspan(7));
    if (made) return "registered";
    if (made.error().message.find(reason) == std::string::npos) return made.error().message;
    if (!unchanged(memory)) return "the contents are not what they were";
    memory[5 * mebi] = std::byte{0};  // a private page
    return "";
}

void set_limit(int resource, std::size_t most) {
    const rlimit limit{most, most};
    setrlimit(static_cast<__rlimit_resource>(resource), &limit);
}

std::size_t address_space() {
    std::ifstream file("/proc/self/statm");
    std::size_t pages = 0;
    file >> pages;
    return pages * 4096;
}

void drop_capability(int capability) {
    __user_cap_header_struct head{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct sets[2] = {};
    if (syscall(SYS_capget, &head, sets) != 0) return;
    const auto word = static_cast<std::size_t>(capability / 32);
    const std::uint32_t bit = 1U << (capability % 32);
    sets[word].effective &= ~bit;
    sets[word].permitted &= ~bit;
    syscall(SYS_capset, &head, sets);
}

#ifdef __SANITIZE_ADDRESS__
constexpr bool sanitized = true;
#else
constexpr bool sanitized = false;
#endif

TEST(RegisteredLimits, AddressSpace) {
    if (sanitized) GTEST_SKIP() << "the sanitizer has terabytes of addresses";
    EXPECT_EQ(in_child([]() -> std::string {
                  const auto memory = filled();
                  set_limit(RLIMIT_AS, address_space() + mebi);
                  if (auto wrong = refused(memory, "mmap"); !wrong.empty()) return wrong;
                  return traces() == 0 ? "" : "something is left";
              }),
              "");
}

// A registration can end with little free address space: in small steps, or in place.
TEST(RegisteredLimits, EndsWithoutAddressSpace) {
    if (sanitized) GTEST_SKIP() << "the sanitizer has terabytes of addresses";
    for (const std::size_t left : {mebi, std::size_t{0}}) {
        EXPECT_EQ(in_child([&]() -> std::string {
                      const auto memory = filled();
                      auto pages = registered(memory);
                      if (!pages) return pages.error().message;
                      set_limit(RLIMIT_AS, address_space() + left);
                      if (const auto ended = (*pages)->end(); !ended) return ended.error().message;
                      if (!unchanged(memory)) return "the contents are not what they were";
                      memory[5 * mebi] = std::byte{0};
                      const auto child = fork();
                      if (child == 0) {
                          memory[6 * mebi] = std::byte{1};
                          _exit(0);
                      }
                      int status = 0;
                      waitpid(child, &status, 0);
                      return memory[6 * mebi] == value_at(6 * mebi) ? "" : "it is not private";
                  }),
                  "")
            << left;
    }
}

// New pages are locked, and the limit allows two steps of five: two steps are undone.
TEST(RegisteredLimits, LockedMemoryRunsOutInTheMiddle) {
    if (sanitized) GTEST_SKIP() << "the sanitizer's memory would be locked too";
    EXPECT_EQ(in_child([]() -> std::string {
                  const auto memory = filled();
                  drop_capability(CAP_IPC_LOCK);
                  set_limit(RLIMIT_MEMLOCK, 20 * mebi);
                  if (mlockall(MCL_FUTURE) != 0) return "mlockall";
                  if (auto wrong = refused(memory, "Resource temporarily unavailable"); !wrong.empty()) return wrong;
                  return traces() == 0 ? "" : "something is left";
              }),
              "");
}

TEST(RegisteredLimits, FileSize) {
    EXPECT_EQ(in_child([]() -> std::string {
                  const auto memory = filled();
                  set_limit(RLIMIT_FSIZE, mebi);
                  if (auto wrong = refused(memory, "RLIMIT_FSIZE"); !wrong.empty()) return wrong;
                  return traces() == 0 ? "" : "something is left";
              }),
              "");
}

TEST(RegisteredLimits, Descriptors) {
    if (sanitized) GTEST_SKIP() << "the sanitizer looks at memory through descriptors";
    EXPECT_EQ(in_child([]() -> std::string {
                  const auto memory = filled();
                  std::vector<int> taken;
                  set_limit(RLIMIT_NOFILE, 32);
                  while (taken.empty() || taken.back() >= 0) taken.push_back(dup(1));
                  return refused(memory, "");
              }),
              "");
}

TEST(RegisteredLimits, NoProc) {
    const std::string found = in_child([]() -> std::string {
        const auto memory = filled();
        if (unshare(CLONE_NEWNS) != 0 || mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
            mount("none", "/proc", "tmpfs", 0, nullptr) != 0)
            return "skipped";
        return refused(memory, "/proc/self/maps cannot be read");
    });
    if (found == "skipped") GTEST_SKIP() << "only root may cover /proc";
    EXPECT_EQ(found, "");
}

// If /proc is missing, the owner of the addresses is unknown, so nothing is written over them.
TEST(RegisteredLimits, NoProcAtTheEnd) {
    const std::string found = in_child([]() -> std::string {
        const auto memory = filled();
        auto pages = registered(memory);
        if (!pages) return pages.error().message;
        if (unshare(CLONE_NEWNS) != 0 || mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
            mount("none", "/proc", "tmpfs", 0, nullptr) != 0)
            return "skipped";
        if ((*pages)->end()) return "ended";
        if (!unchanged(memory)) return "the contents are not what they were";
        if (umount("/proc") != 0) return "umount";
        if (const auto ended = (*pages)->end(); !ended) return ended.error().message;
        return unchanged(memory) && traces() == 0 ? "" : "not as it was";
    });
    if (found == "skipped") GTEST_SKIP() << "only root may cover /proc";
    EXPECT_EQ(found, "");
}

}  // namespace
}  // namespace reshard::mpi
