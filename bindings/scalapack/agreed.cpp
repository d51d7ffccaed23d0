#include "bindings/scalapack/agreed.hpp"

#include <string>

#include "src/base/try.hpp"

namespace reshard::scalapack {
namespace {

constexpr std::size_t numbers_of_end = 10;

Cyclic cyclic_of(const End& end) {
    const Descriptor& given = end.descriptor;
    return {{end.shape.extents[0], end.shape.extents[1]},
            {given.rows, given.columns},
            {given.row_block, given.column_block},
            {given.first_row, given.first_column},
            {end.begin[0], end.begin[1]}};
}

// The local array has room for what the process holds of the whole matrix.
bool fits(const End& end) {
    if (!end.inside()) return true;
    const Cyclic cyclic = cyclic_of(end);
    if (!validate(cyclic, {0, 0}, "")) return true;  // another error, which all processes find
    return end.descriptor.leading >= 1 &&
           end.descriptor.leading >= own_before(cyclic, 0, cyclic.extent[0], end.shape.place[0]);
}

// Numbers of which each process knows some: the least and the largest over all that know them.
class Poll {
public:
    explicit Poll(std::size_t count) : least_(2 * count, index_max) {}
    void say(std::size_t place, Index number) {
        least_[2 * place] = number;
        least_[2 * place + 1] = -number;
    }
    void say(std::size_t place, const Cyclic& cyclic) {
        for (const auto& pair : {cyclic.grid, cyclic.extent, cyclic.block, cyclic.first, cyclic.begin})
            for (const Index number : pair) say(place++, number);
    }
    // Collective. Errors: backend.
    Result<void> hold(MPI_Comm communicator) {
        const int code = MPI_Allreduce(MPI_IN_PLACE, least_.data(), static_cast<int>(least_.size()), MPI_INT64_T,
                                       MPI_MIN, communicator);
        if (code == MPI_SUCCESS) return {};
        return fail(Code::backend, "p?gemr2d: MPI_Allreduce failed");
    }
    // nullopt: nobody knew it, or two said something else.
    [[nodiscard]] std::optional<Index> agreed(std::size_t place) const {
        if (least_[2 * place] == index_max || least_[2 * place] != -least_[2 * place + 1]) return std::nullopt;
        return least_[2 * place];
    }

private:
    std::vector<Index> least_;
};

Result<AgreedEnd> read(const Poll& poll, std::size_t numbers, std::size_t ranks, Index processes, const char* name) {
    AgreedEnd end;
    std::size_t place = numbers;
    for (auto* pair : {&end.cyclic.grid, &end.cyclic.extent, &end.cyclic.block, &end.cyclic.first, &end.cyclic.begin}) {
        for (Index& number : *pair) {
            const auto known = poll.agreed(place++);
            if (!known) {
                return fail(Code::mismatch, std::string("p?gemr2d: no process has ") + name +
                                                ", or processes disagree on its descriptor or submatrix");
            }
            number = *known;
        }
    }
    const Index count = saturating_multiply(end.cyclic.grid[0], end.cyclic.grid[1]);
    for (Index i = 0; i < count; ++i) {
        const auto rank = i < processes ? poll.agreed(ranks + static_cast<std::size_t>(i)) : std::nullopt;
        if (!rank) {
            return fail(Code::mismatch,
                        std::string("p?gemr2d: a process of the grid of ") + name + " is not in the last context");
        }
        end.ranks.push_back(*rank);
    }
    return end;
}

}  // namespace

Result<Agreed> agree(MPI_Comm communicator, const Question& question) {
    int rank = 0;
    int processes = 0;
    MPI_Comm_rank(communicator, &rank);
    MPI_Comm_size(communicator, &processes);
    constexpr std::size_t common = 4;
    const std::size_t numbers[] = {common, common + numbers_of_end};
    const auto all = static_cast<std::size_t>(processes);
    const std::size_t ranks[] = {common + 2 * numbers_of_end, common + 2 * numbers_of_end + all};
    Poll poll(ranks[1] + all);
    poll.say(0, question.shape[0]);
    poll.say(1, question.shape[1]);
    poll.say(2, static_cast<Index>(question.dtype));
    poll.say(3, fits(question.source) && fits(question.target) ? 1 : 0);
    const End* const ends[] = {&question.source, &question.target};
    for (std::size_t i = 0; i < 2; ++i) {
        if (!ends[i]->inside()) continue;
        const Grid& grid = ends[i]->shape;
        poll.say(numbers[i], cyclic_of(*ends[i]));
        poll.say(ranks[i] + static_cast<std::size_t>(grid.place[0] * grid.extents[1] + grid.place[1]), rank);
    }
    RESHARD_CHECK(poll.hold(communicator));
    if (!poll.agreed(0) || !poll.agreed(1) || !poll.agreed(2)) {
        return fail(Code::mismatch, "p?gemr2d: processes call with different shapes or types");
    }
    if (poll.agreed(3) != 1) {
        return fail(Code::mismatch, "p?gemr2d: the leading dimension of some process is less than its rows");
    }
    Agreed agreed;
    RESHARD_ASSIGN(agreed.source, read(poll, numbers[0], ranks[0], processes, "A"));
    RESHARD_ASSIGN(agreed.target, read(poll, numbers[1], ranks[1], processes, "B"));
    const std::array<Index, 2> shape = {question.shape[0], question.shape[1]};
    RESHARD_CHECK(validate(agreed.source.cyclic, shape, "A"));
    RESHARD_CHECK(validate(agreed.target.cyclic, shape, "B"));
    return agreed;
}

}  // namespace reshard::scalapack
