#include "backends/mpi/base/transport.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "backends/mpi/base/polled.hpp"
#include "src/base/try.hpp"

namespace reshard::mpi {
namespace {

constexpr Index header_bytes = 256;  // more than any header that Open MPI puts before a message

// MPI's tools interface, while this lives.
class Tools {
public:
    Tools() {
        int provided = 0;
        well_ = MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) == MPI_SUCCESS;
    }
    Tools(const Tools&) = delete;
    Tools& operator=(const Tools&) = delete;
    ~Tools() {
        if (well_) MPI_T_finalize();
    }

    // Reads a variable of a component in use. A component that is closed removes its variables.
    [[nodiscard]] std::optional<Index> value(const char* name) const {
        int index = 0;
        if (!well_ || MPI_T_cvar_get_index(name, &index) != MPI_SUCCESS) return std::nullopt;
        MPI_T_cvar_handle handle = nullptr;
        int count = 0;
        if (MPI_T_cvar_handle_alloc(index, nullptr, &handle, &count) != MPI_SUCCESS) return std::nullopt;
        std::array<Index, 2> read{};  // an int or a size_t, as little-endian machines have it
        const bool known = count == 1 && MPI_T_cvar_read(handle, read.data()) == MPI_SUCCESS;
        MPI_T_cvar_handle_free(&handle);
        return known ? std::optional(read.front()) : std::nullopt;
    }

private:
    bool well_ = false;
};

Index said_by_mpi() {
    const Tools tools;
    if (!tools.value("pml_ob1_priority")) return index_max;  // another layer carries messages
    const Index limit = tools.value("btl_tcp_eager_limit").value_or(index_max);
    return limit == index_max ? limit : std::max(limit - header_bytes, header_bytes);
}

}  // namespace

Result<Index> bytes_sent_at_once(MPI_Comm communicator) {
    MPI_Comm host = MPI_COMM_NULL;
    const auto rank = static_cast<int>(rank_of(communicator));
    const int split = MPI_Comm_split_type(communicator, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &host);
    RESHARD_CHECK(checked(split, "MPI_Comm_split_type"));
    const bool alone = size_of_communicator(host) == size_of_communicator(communicator);
    MPI_Comm_free(&host);
    const std::array<Index, 1> bytes = {alone ? index_max : said_by_mpi()};
    RESHARD_TRY(const auto& least, reduced(communicator, bytes, MPI_INT64_T, MPI_MIN));
    return least.front();
}

}  // namespace reshard::mpi
