// MPI's handles with owners, and its return codes as errors.
#pragma once

#include <mpi.h>

#include <optional>
#include <span>
#include <utility>

#include "reshard/planner/integer.hpp"
#include "reshard/result.hpp"

namespace reshard::mpi {

/// Between MPI_Init and MPI_Finalize.
[[nodiscard]] bool usable();

/// MPI's text for a return code.
[[nodiscard]] std::string text_of(int code);

/// Code::backend with the call's name when the code is not success.
[[nodiscard]] Result<void> checked(int code, std::string_view call);

/// Frees its handle, unless MPI was finalized before: then MPI has done so, and any call would abort.
template <class Handle, int (*release)(Handle*)>
class Owned {
public:
    Owned() = default;
    explicit Owned(Handle handle) : handle_(handle) {}
    ~Owned() { reset(); }
    Owned(Owned&& other) noexcept : handle_(std::exchange(other.handle_, std::nullopt)) {}
    Owned& operator=(Owned&& other) noexcept {
        reset();
        handle_ = std::exchange(other.handle_, std::nullopt);
        return *this;
    }
    [[nodiscard]] Handle get() const { return *handle_; }  ///< pre: not empty
    [[nodiscard]] bool empty() const { return !handle_.has_value(); }

private:
    void reset() {
        if (handle_ && usable()) release(&*handle_);
        handle_.reset();
    }
    std::optional<Handle> handle_;
};

using Communicator = Owned<MPI_Comm, MPI_Comm_free>;
using Datatype = Owned<MPI_Datatype, MPI_Type_free>;
using Operation = Owned<MPI_Op, MPI_Op_free>;

/// Owns a communicator of the library's own, whose errors return codes from here on.
[[nodiscard]] Result<Communicator> returning_errors(MPI_Comm communicator);

/// Collective. Errors on the duplicate return codes; the original keeps its handler.
[[nodiscard]] Result<Communicator> duplicate(MPI_Comm original);

/// Collective over `ranks` of `parent` only; rank i of the new communicator is ranks[i].
[[nodiscard]] Result<Communicator> communicator_of(MPI_Comm parent, std::span<const Index> ranks);

[[nodiscard]] Index rank_of(MPI_Comm communicator);
[[nodiscard]] Index size_of_communicator(MPI_Comm communicator);

}  // namespace reshard::mpi
