// The tests write the files that state the available memory. A claim above it fails.
#include "src/base/memory.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include <unistd.h>

#include "reshard/backends/local.hpp"
#include "src/copy/page_memory.hpp"

namespace reshard {
namespace {

constexpr Index mebibyte = Index{1} << 20;

/// The files that describe a machine.
class Root {
public:
    Root() : path_(std::filesystem::temp_directory_path() / ("reshard_memory_" + std::to_string(::getpid()))) {
        std::filesystem::remove_all(path_);
    }
    ~Root() { std::filesystem::remove_all(path_); }
    void write(const std::string& name, const std::string& text) const {
        const std::filesystem::path file = path_ / name.substr(1);
        std::filesystem::create_directories(file.parent_path());
        std::ofstream(file.string() + ".new") << text;
        std::filesystem::rename(file.string() + ".new", file);  // no reader sees half a file
    }
    void machine(Index available) const {
        write("/proc/meminfo", "MemTotal:       99999999 kB\nMemFree:               1 kB\nMemAvailable:   " +
                                   std::to_string(available / 1024) + " kB\n");
    }
    [[nodiscard]] std::string path() const { return path_.string(); }
    [[nodiscard]] AvailableMemory available() const { return available_memory(path()); }

private:
    std::filesystem::path path_;
};

TEST(MemoryUnit, TheMachineSaysWhatIsAvailable) {
    const Root root;
    EXPECT_EQ(root.available().bytes, index_max);  // no file says anything
    root.machine(700 * mebibyte);
    EXPECT_EQ(root.available().bytes, 700 * mebibyte);
    EXPECT_EQ(root.available().holder, "the machine");
}

TEST(MemoryUnit, TheTightestControlGroupUpTheHierarchyBounds) {
    const Root root;
    root.machine(700 * mebibyte);
    root.write("/proc/self/cgroup", "0::/job/step\n");
    root.write("/sys/fs/cgroup/job/step/memory.max", "max\n");
    root.write("/sys/fs/cgroup/job/step/memory.current", "1048576\n");
    EXPECT_EQ(root.available().bytes, 700 * mebibyte);
    root.write("/sys/fs/cgroup/job/memory.max", std::to_string(300 * mebibyte) + "\n");
    root.write("/sys/fs/cgroup/job/memory.current", std::to_string(100 * mebibyte) + "\n");
    EXPECT_EQ(root.available().bytes, 200 * mebibyte);
    EXPECT_EQ(root.available().holder, "control group /job of this process");
    // The kernel drops unused pages of files when memory is wanted.
    root.write("/sys/fs/cgroup/job/memory.stat",
               "anon 5\ninactive_file " + std::to_string(60 * mebibyte) + "\nactive_file 7\n");
    EXPECT_EQ(root.available().bytes, 260 * mebibyte);
    root.write("/sys/fs/cgroup/job/step/memory.max", std::to_string(3 * mebibyte));
    EXPECT_EQ(root.available().bytes, 2 * mebibyte);
    root.write("/sys/fs/cgroup/job/step/memory.current", std::to_string(9 * mebibyte));
    EXPECT_EQ(root.available().bytes, 0);  // already over its limit
}

TEST(MemoryUnit, TheFirstControlGroupsBoundAsWell) {
    const Root root;
    root.machine(700 * mebibyte);
    root.write("/proc/self/cgroup", "5:cpu,cpuacct:/elsewhere\n4:memory:/job\n0::/\n");
    root.write("/sys/fs/cgroup/memory/elsewhere/memory.limit_in_bytes", "1");
    root.write("/sys/fs/cgroup/memory/elsewhere/memory.usage_in_bytes", "1");
    root.write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
    root.write("/sys/fs/cgroup/memory/memory.usage_in_bytes", "4096");
    EXPECT_EQ(root.available().bytes, 700 * mebibyte);
    root.write("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", std::to_string(90 * mebibyte));
    root.write("/sys/fs/cgroup/memory/job/memory.usage_in_bytes", std::to_string(40 * mebibyte));
    EXPECT_EQ(root.available().bytes, 50 * mebibyte);
    // A container sees its own group as the root, whatever its path.
    root.write("/proc/self/cgroup", "4:memory:/not/mounted/here\n");
    root.write("/sys/fs/cgroup/memory/memory.limit_in_bytes", std::to_string(20 * mebibyte));
    root.write("/sys/fs/cgroup/memory/memory.usage_in_bytes", std::to_string(8 * mebibyte));
    EXPECT_EQ(root.available().bytes, 12 * mebibyte);
}

TEST(MemoryUnit, AClaimSaysWhatIsWantedAndWhatIsThere) {
    const Root root;
    root.machine(640 * mebibyte);
    EXPECT_TRUE(MemoryClaim::make(600 * mebibyte, root.path()));
    const auto refused = MemoryClaim::make(641 * mebibyte, root.path());
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::backend);
    EXPECT_NE(refused.error().message.find(std::to_string(641 * mebibyte)), std::string::npos);
    EXPECT_NE(refused.error().message.find("the machine has " + std::to_string(640 * mebibyte)), std::string::npos);
}

// The second claim reads the available memory after the first claim has taken its bytes.
TEST(MemoryUnit, ClaimsStandInLine) {
    const Root root;
    root.machine(640 * mebibyte);
    auto first = std::make_unique<Result<MemoryClaim>>(MemoryClaim::make(400 * mebibyte, root.path()));
    ASSERT_TRUE(*first);
    bool second = true;
    std::thread other([&] { second = MemoryClaim::make(400 * mebibyte, root.path()).has_value(); });
    root.machine(240 * mebibyte);
    first.reset();
    other.join();
    EXPECT_FALSE(second);
}

TEST(MemoryUnit, WhatTheMachineDoesNotHaveIsNotTaken) {
    const Index all = available_memory().bytes;
    if (all == index_max) GTEST_SKIP() << "this system does not say what is available";
    const Index more = saturating_multiply(all, 4);  // other processes may free much meanwhile
    const auto pages = allocate_pages(more);
    ASSERT_FALSE(pages);
    EXPECT_NE(pages.error().message.find("available"), std::string::npos) << pages.error().message;
    local::World world(2);
    EXPECT_FALSE(world.rank(1).allocate(more));
}

}  // namespace
}  // namespace reshard
