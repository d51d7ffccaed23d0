#include "bindings/scalapack/question.hpp"

#include <atomic>

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

// Whether the local array has room for the process's part of the whole matrix.
bool fits(const End& end) {
    if (!end.inside()) return true;
    const Cyclic cyclic = cyclic_of(end);
    if (!validate(cyclic, {0, 0}, "")) return true;  // another error, which all processes find
    return end.descriptor.leading >= 1 &&
           end.descriptor.leading >= own_before(cyclic, 0, cyclic.extent[0], end.shape.place[0]);
}

// Numbers that only some processes know. Finds the least and the largest over the processes that know them.
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
    // nullopt if no process knew it, or if two processes said different numbers.
    [[nodiscard]] std::optional<Index> agreed(std::size_t place) const {
        if (least_[2 * place] == index_max || least_[2 * place] != -least_[2 * place + 1]) return std::nullopt;
        return least_[2 * place];
    }

private:
    std::vector<Index> least_;
};

// One end as all processes know it.
struct AgreedEnd {
    Cyclic cyclic;
    std::vector<Index> ranks;  // of the communicator, row by row of the grid

    [[nodiscard]] std::optional<Storage> storage_for(const End& own) const {
        if (!own.inside()) return std::nullopt;
        return storage_of(cyclic, {own.shape.place[0], own.shape.place[1]}, own.descriptor.leading);
    }
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

int new_key() {
    int key = MPI_KEYVAL_INVALID;
    const int made = MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &key, nullptr);
    return made == MPI_SUCCESS ? key : MPI_KEYVAL_INVALID;
}

}  // namespace

Result<std::uint64_t> number_of_grid(MPI_Comm communicator) {
    static const int key = new_key();
    static std::atomic<std::uintptr_t> last = 0;
    void* known = nullptr;
    int found = 0;
    if (key == MPI_KEYVAL_INVALID ||
        MPI_Comm_get_attr(communicator, key, static_cast<void*>(&known), &found) != MPI_SUCCESS)
        return fail(Code::backend, "p?gemr2d: MPI cannot read an attribute of the context's communicator");
    if (found != 0) return reinterpret_cast<std::uintptr_t>(known);
    const std::uintptr_t number = ++last;
    if (MPI_Comm_set_attr(communicator, key, reinterpret_cast<void*>(number)) == MPI_SUCCESS)  // NOLINT: no address
        return number;
    return fail(Code::backend, "p?gemr2d: MPI cannot set an attribute of the context's communicator");
}

std::string name_of(const Question& question) {
    std::string name = std::to_string(static_cast<int>(question.dtype));
    const auto add = [&](auto... numbers) { ((name += ' ' + std::to_string(numbers)), ...); };
    add(question.shape[0], question.shape[1]);
    for (const End* end : {&question.source, &question.target}) {
        const Descriptor& given = end->descriptor;
        add(end->grid, end->begin[0], end->begin[1], given.rows, given.columns, given.row_block, given.column_block,
            given.first_row, given.first_column, given.leading);
    }
    return name;
}

Result<Redistribution> ask(MPI_Comm communicator, const Question& question) {
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
    RESHARD_TRY(const auto& source, read(poll, numbers[0], ranks[0], processes, "A"));
    RESHARD_TRY(const auto& target, read(poll, numbers[1], ranks[1], processes, "B"));
    const std::array<Index, 2> shape = {question.shape[0], question.shape[1]};
    RESHARD_CHECK(validate(source.cyclic, shape, "A"));
    RESHARD_CHECK(validate(target.cyclic, shape, "B"));
    RESHARD_TRY(auto& before, layout_of(source.cyclic, shape, question.dtype, source.ranks));
    RESHARD_TRY(auto& after, layout_of(target.cyclic, shape, question.dtype, target.ranks));
    return Redistribution{std::move(before),
                          std::move(after),
                          {source.storage_for(question.source), target.storage_for(question.target)}};
}

}  // namespace reshard::scalapack
