// This process is one rank of an MPI job.
#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>

#include "conformance/harness.hpp"
#include "reshard/backends/mpi.hpp"

namespace reshard::conformance {
namespace {

// Arguments of the program: everything in messages, the ranks per node, and the way that unregistered memory moves.
bool messages_only() {
    const std::vector<std::string> arguments = testing::internal::GetArgvs();
    return std::ranges::find(arguments, "--messages-only") != arguments.end();
}

std::string value_of(const std::string& name) {
    for (const std::string& argument : testing::internal::GetArgvs()) {
        if (argument.starts_with(name + "=")) return argument.substr(name.size() + 1);
    }
    return {};
}

Index ranks_per_node() {
    const std::string value = value_of("--ranks-per-node");
    return value.empty() ? 0 : std::stoll(value);
}

mpi::UnregisteredBuffers unregistered_buffers() {
    const std::string value = value_of("--unregistered-buffers");
    if (value == "bounce_nontemporal") return mpi::UnregisteredBuffers::bounce_nontemporal;
    return value == "bounce" ? mpi::UnregisteredBuffers::bounce : mpi::UnregisteredBuffers::by_size;
}

class MpiHarness final : public Harness {
public:
    [[nodiscard]] Index ranks() const override {
        int size = 0;
        MPI_Comm_size(MPI_COMM_WORLD, &size);
        return size;
    }
    void on_every_rank(const std::function<void(Backend&)>& body) override {
        mpi::Options options;
        options.shared_memory = !messages_only();
        options.ranks_per_node = ranks_per_node();
        options.unregistered_buffers = unregistered_buffers();
        options.bounce_bytes = 4096;  // so that small arrays take several rounds
        options.piece_bytes = 256;    // and several messages
        auto backend = mpi::make_backend(MPI_COMM_WORLD, options);
        ASSERT_TRUE(backend) << backend.error().message;
        body(**backend);
        const int own = testing::Test::HasFailure() ? 1 : 0;
        int any = 0;
        MPI_Allreduce(&own, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        if (any != own) ADD_FAILURE() << "another rank failed";
    }
    std::string from_rank_0(const std::function<std::string()>& make) override {
        int rank = 0;
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        std::string text = rank == 0 ? make() : std::string();
        int size = static_cast<int>(text.size());
        MPI_Bcast(&size, 1, MPI_INT, 0, MPI_COMM_WORLD);
        text.resize(static_cast<std::size_t>(size));
        MPI_Bcast(text.data(), size, MPI_CHAR, 0, MPI_COMM_WORLD);
        return text;
    }
    Index count_true(Backend&, bool answer) override {
        const Index own = answer ? 1 : 0;
        Index all = 0;
        MPI_Allreduce(&own, &all, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
        return all;
    }
};

}  // namespace

Harness& harness() {
    static MpiHarness only;
    return only;
}

}  // namespace reshard::conformance
