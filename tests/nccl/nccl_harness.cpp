// Ranks of a Party, over NCCL. `--ranks=N` sets their number, and `--staging=BYTES` the staging of a plan. `--ordered`
// adds sums in order, and `--groups=N` keeps so many communicators of groups. With `--device` the tests get the backend
// itself, whose buffers lie on the device, instead of its mirror.
#include <gtest/gtest.h>

#include <charconv>

#include "conformance/harness.hpp"
#include "doubles/find.hpp"
#include "mirrored.hpp"
#include "party.hpp"

namespace reshard::conformance {
namespace {

class NcclHarness final : public Harness {
public:
    Index count = 4;
    bool mirrors = true;
    nccl::Options options;

    [[nodiscard]] Index ranks() const override { return count; }
    void on_every_rank(const std::function<void(Backend&)>& body) override {
        party_ = std::make_unique<nccl::test::Party>(count);
        party_->on_every_rank([&](ncclComm_t communicator, Index) {
            auto backend = nccl::make_backend(communicator, options);
            ASSERT_TRUE(backend) << backend.error().message;
            if (mirrors)
                body(*mirrored(**backend));
            else
                body(**backend);
            party_->count_true(true);
        });
    }
    std::string from_rank_0(const std::function<std::string()>& make) override { return make(); }
    Index count_true(Backend&, bool answer) override { return party_->count_true(answer); }

private:
    std::unique_ptr<nccl::test::Party> party_;
};

NcclHarness& nccl_harness() {
    static NcclHarness only;
    return only;
}

bool read_option(std::string_view argument, std::string_view name, Index& value) {
    if (!argument.starts_with(name)) return false;
    std::from_chars(argument.data() + name.size(), argument.data() + argument.size(), value);
    return true;
}

// On the doubles no test may make a mistake that a real device or the real NCCL would not accept.
class NoComplaints final : public testing::Environment {
public:
    void TearDown() override {
        nccl::test::Party::leave();
        if (!nccl::test::on_doubles()) return;
        EXPECT_EQ(nccl::test::found<int()>("gpu_double_complaints")(), 0) << "the doubles complained; see above";
        EXPECT_EQ(nccl::test::found<int()>("nccl_double_communicators")(), 0) << "communicators that nobody destroyed";
    }
};

}  // namespace

Harness& harness() { return nccl_harness(); }

}  // namespace reshard::conformance

int main(int argc, char** argv) {
    testing::InitGoogleTest(&argc, argv);
    auto& harness = reshard::conformance::nccl_harness();
    for (const std::string_view argument : std::span(argv, static_cast<std::size_t>(argc)).subspan(1)) {
        reshard::Index groups = -1;
        if (argument == "--device") harness.mirrors = false;
        if (argument == "--ordered") harness.options.ordered_sums = true;
        reshard::conformance::read_option(argument, "--ranks=", harness.count);
        reshard::conformance::read_option(argument, "--staging=", harness.options.staging_bytes_max);
        if (reshard::conformance::read_option(argument, "--groups=", groups)) {
            harness.options.communicators_max = static_cast<std::size_t>(groups);
        }
    }
    harness.options.timeout = std::chrono::seconds(60);
    testing::AddGlobalTestEnvironment(new reshard::conformance::NoComplaints);
    return RUN_ALL_TESTS();
}
