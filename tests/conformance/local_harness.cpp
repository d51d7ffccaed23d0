// Ranks as threads of this process. `--ranks=N` sets their number.
#include <gtest/gtest.h>

#include <charconv>
#include <thread>

#include "harness.hpp"
#include "reshard/backends/local.hpp"
#include "support/ballot.hpp"

namespace reshard::conformance {
namespace {

class LocalHarness final : public Harness {
public:
    Index count = 4;

    [[nodiscard]] Index ranks() const override { return count; }
    void on_every_rank(const std::function<void(Backend&)>& body) override {
        local::World world(count, {.timeout = std::chrono::seconds(20)});
        std::vector<std::thread> threads;
        for (Index rank = 0; rank < count; ++rank) {
            threads.emplace_back([&world, &body, rank] { body(world.rank(rank)); });
        }
        for (std::thread& thread : threads) thread.join();
    }
    std::string from_rank_0(const std::function<std::string()>& make) override { return make(); }

    Index count_true(Backend&, bool answer) override { return ballot_.count_true(count, answer); }

private:
    test::Ballot ballot_;
};

LocalHarness& local_harness() {
    static LocalHarness only;
    return only;
}

}  // namespace

Harness& harness() { return local_harness(); }

}  // namespace reshard::conformance

int main(int argc, char** argv) {
    testing::InitGoogleTest(&argc, argv);
    constexpr std::string_view option = "--ranks=";
    for (const std::string_view argument : std::span(argv, static_cast<std::size_t>(argc)).subspan(1)) {
        if (!argument.starts_with(option)) continue;
        std::from_chars(argument.data() + option.size(), argument.data() + argument.size(),
                        reshard::conformance::local_harness().count);
    }
    return RUN_ALL_TESTS();
}
