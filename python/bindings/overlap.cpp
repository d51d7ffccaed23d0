// A run beside computation: its cut, and the number of its pieces.
#include "reshard/overlap/choose_pieces.hpp"

#include <fmt/format.h>
#include <nanobind/operators.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include "python/bindings/core.hpp"
#include "python/bindings/plans.hpp"
#include "reshard/overlap/measure_work.hpp"

namespace reshard::python {
namespace {

using namespace nb::literals;

void expect_piece(const Split& split, std::size_t piece) {
    if (piece >= split.ends.size())
        raise({Code::usage, fmt::format("there is no piece {}: the split has {}", piece, split.ends.size())});
}

std::vector<std::size_t> order_of(const Split& split) {
    std::vector<std::size_t> order;
    for (std::size_t place = 0; place < split.ends.size(); ++place) order.push_back(piece_at(split, place));
    return order;
}

// The slices of a tile with `side` that hold the indices `some`. The tile holds its intervals one behind the other.
nb::list slices_of(const Side& side, const Side& some) {
    nb::list slices;
    Index before = 0;
    std::size_t at = 0;
    for (const Interval& interval : some.intervals) {
        while (side.intervals[at].end <= interval.begin) before += side.intervals[at++].size();
        const Index begin = before + interval.begin - side.intervals[at].begin;
        slices.append(nb::slice(nb::int_(begin), nb::int_(begin + interval.size()), nb::none()));
    }
    return slices;
}

nb::list slices(const Split& split, const Layout& layout, Index rank, std::size_t piece) {
    expect_piece(split, piece);
    if (split.dim >= layout.dims.size())
        raise({Code::usage,
               fmt::format("the split cuts dimension {}, the layout has {}", split.dim, layout.dims.size())});
    const Tile whole = tile(layout, rank);
    return slices_of(whole[split.dim], piece_of(whole, split, piece)[split.dim]);
}

void add_split(nb::module_& module) {
    nb::class_<Split>(
        module, "Split",
        R"doc(The pieces of a run that travel one after the other, for mpi.Executor(comm, plan, split=...).

Dimension `dim` is seen as blocks of ends[-1] indices; piece k has of every block those from ends[k - 1] to ends[k]. With
blocks as long as a shard it is the k-th part of every shard. order: the numbers of the pieces as they travel, the same on
all ranks; as they are numbered when None. overlapped: two pieces are on their way at once, and a run says which have
arrived; else they go one by one in the workspace of one. Errors: InputError (ends that do not ascend, an order that
leaves out a piece). Whether a plan can be cut so is found when it is prepared.)doc")
        .def(
            "__init__",
            [](Split* self, std::size_t dim, std::vector<Index> ends, std::optional<std::vector<std::size_t>> order,
               bool overlapped) {
                Split split{dim, ends.empty() ? 0 : ends.back(), std::move(ends), {}, overlapped};
                if (order) split.order = std::move(*order);
                unwrap(check_pieces(split));
                new (self) Split(std::move(split));
            },
            "dim"_a, "ends"_a, "order"_a.none() = nb::none(), "overlapped"_a = true,
            nb::sig("def __init__(self, dim: int, ends: collections.abc.Sequence[int], order: "
                    "collections.abc.Sequence[int] | None = None, overlapped: bool = True) -> None"))
        .def_static(
            "even",
            [](std::size_t dim, Index block, Index count) {
                if (count < 1 || count > block)
                    raise({Code::usage, fmt::format("a block of {} indices is not cut into {}", block, count)});
                if (count > split_pieces_max)
                    raise({Code::usage, fmt::format("{} pieces; a split has at most {}", count, split_pieces_max)});
                return even_pieces(dim, block, count);
            },
            "dim"_a, "block"_a, "count"_a,
            "So many pieces of a block, at most 1048576, as even as can be. Errors: InputError.")
        .def_ro("dim", &Split::dim, "The dimension that is cut.")
        .def_ro("block", &Split::block, "Indices of a block.")
        .def_ro("ends", &Split::ends, "The ends of the pieces in a block, ascending.")
        .def_prop_ro("order", order_of, nb::sig("def order(self, /) -> list[int]"), "Pieces as they travel.")
        .def_ro("overlapped", &Split::overlapped, "Two pieces are on their way at once.")
        .def_prop_ro(
            "text", [](const Split& split) { return format(Execution(split)); }, "As C++ and plans' texts have it.")
        .def("slices", slices, "layout"_a, "rank"_a, "piece"_a,
             nb::sig("def slices(self, layout: Layout, rank: int, piece: int) -> list[slice]"),
             R"doc(What a piece has of the rank's tile of `layout`: slices of the tile's dimension `dim`, ascending.

One slice if blocks are as long as the tile's side, and no slice if the tile has nothing of the piece. Errors: InputError.)doc")
        .def("__len__", [](const Split& split) { return split.ends.size(); })
        .def(
            "__eq__", [](const Split& split, const Split& other) { return split == other; }, nb::is_operator(),
            nb::sig("def __eq__(self, other: object, /) -> bool"))
        .def("__hash__", [](const Split& split) { return hash_of(format(Execution(split))); })
        .def("__repr__", [](const Split& split) { return fmt::format("<Split {}>", format(Execution(split))); });
}

// The search takes a time that grows with the square of the places, and with the pieces.
constexpr Index places_max = 512;
constexpr Index pieces_limit = 64;
constexpr int rounds_max = 1000;

double seconds_of_piece(const nb::callable& seconds, Index begin, Index end) {
    const nb::object taken = seconds(begin, end);
    double number = 0;
    if (!nb::try_cast(taken, number))
        raise({Code::usage,
               fmt::format("`seconds` returns a number of seconds, not {}", nb::type_name(taken.type()).c_str())});
    return number;
}

PieceChoice chosen(const Planned& plan, const nb::callable& seconds, std::size_t dim, Index block, bool makes_source,
                   double seconds_before, Index pieces_max, Index places, nb::handle machine) {
    if (places > places_max || pieces_max > pieces_limit)
        raise({Code::usage,
               fmt::format("choose_pieces: places are at most {} and pieces_max at most {}; they are {} and {}",
                           places_max, pieces_limit, places, pieces_max)});
    PieceWork work{.dim = dim,
                   .block = block,
                   .makes_source = makes_source,
                   .steps_overlap = plan.options.capabilities.steps_overlap,
                   .seconds = [&](Index begin, Index end) { return seconds_of_piece(seconds, begin, end); },
                   .seconds_before = seconds_before,
                   .pieces_max = pieces_max,
                   .places = places};
    return unwrap(choose_pieces(plan.made, machine.is_none() ? plan.options.machine : machine_of(machine), work));
}

void add_choice(nb::module_& module) {
    nb::class_<PieceChoice>(module, "PieceChoice",
                            "Into which pieces a run is cut beside work. choose_pieces makes it.")
        .def_prop_ro(
            "split", [](const PieceChoice& choice) { return choice.split; },
            "For mpi.Executor; None: in one piece, as the plan runs by itself.")
        .def_prop_ro(
            "seconds", [](const PieceChoice& choice) { return seconds_of(choice.picoseconds); },
            "Until run and work are done, so cut; estimated.")
        .def_prop_ro(
            "serial_seconds", [](const PieceChoice& choice) { return seconds_of(choice.serial_picoseconds); },
            "The work before or after the whole run; estimated.")
        .def("__repr__", [](const PieceChoice& choice) {
            return fmt::format("<PieceChoice of {} pieces>", choice.split ? choice.split->ends.size() : 1);
        });
    module.def(
        "choose_pieces", chosen, "plan"_a, "seconds"_a, nb::kw_only(), "dim"_a, "block"_a, "makes_source"_a = false,
        "seconds_before"_a = 0.0, "pieces_max"_a = 32, "places"_a = 64, "machine"_a.none() = nb::none(),
        nb::sig("def choose_pieces(plan: Plan, seconds: collections.abc.Callable[[int, int], float], *, dim: int, "
                "block: int, makes_source: bool = False, seconds_before: float = 0.0, pieces_max: int = 32, "
                "places: int = 64, machine: Machine | str | None = None) -> PieceChoice"),
        R"doc(The pieces with which a run and the work beside it end soonest, by the price of the plan.

seconds(begin, end): of the work on those indices of all blocks, in seconds; measure_work makes one. All ranks have to
be told the same: take the largest of theirs. dim, block: as of Split. makes_source: the work makes the source, and
pieces are offered; else it uses the target as it arrives. seconds_before: of work that waits for no piece. machine: a
Machine or its text; the plan's when None. places: at which pieces may end, 512 at most; pieces_max: 64 at most.
docs/overlap.md has the whole.
Errors: InputError (seconds that are negative or no number, a plan that cannot be cut there).)doc");
}

void expect_times(const WorkTimes& times) {
    if (times.lengths.empty()) raise({Code::usage, "WorkTimes has no lengths; one or more are wanted"});
    if (times.lengths.size() != times.seconds.size())
        raise({Code::usage, fmt::format("WorkTimes has {} lengths and {} seconds; one of each is wanted",
                                        times.lengths.size(), times.seconds.size())});
    Index before = 0;
    for (const Index length : times.lengths) {
        if (length <= before)
            raise({Code::usage,
                   fmt::format("WorkTimes has the length {} after {}; they ascend from at least 1", length, before)});
        before = length;
    }
}

void add_work(nb::module_& module) {
    nb::class_<WorkTimes>(module, "WorkTimes", R"doc(What work takes by its length, for choose_pieces.

Between the lengths that were measured a straight line. `seconds` may be set: to the largest of all ranks.
Errors: InputError (no length, lengths that do not ascend from at least 1, another number of seconds).)doc")
        .def(
            "__init__",
            [](WorkTimes* self, std::vector<Index> lengths, std::vector<double> seconds) {
                WorkTimes times{std::move(lengths), std::move(seconds)};
                expect_times(times);
                new (self) WorkTimes(std::move(times));
            },
            "lengths"_a, "seconds"_a)
        .def_rw("lengths", &WorkTimes::lengths, "Ascending, in indices of a block.")
        .def_rw("seconds", &WorkTimes::seconds, "Seconds of each.")
        .def(
            "__call__",
            [](const WorkTimes& times, Index begin, Index end) {
                if (begin < 0 || end < begin)
                    raise({Code::usage, fmt::format("indices from {} to {} are no piece of a block", begin, end)});
                expect_times(times);
                return times(begin, end);
            },
            "begin"_a, "end"_a,
            "The times of as many indices. Errors: InputError (lengths and seconds that do not fit).");
    module.def(
        "measure_work",
        [](Index block, const std::function<void(Index, Index)>& work, Index places, int rounds) {
            if (block < 1 || places < 1 || rounds < 1 || rounds > rounds_max)
                raise({Code::usage, fmt::format("measure_work: block, places and rounds are at least 1, rounds at most "
                                                "{}; they are {}, {} and {}",
                                                rounds_max, block, places, rounds)});
            return measure_work(block, work, places, rounds);
        },
        "block"_a, "work"_a, "places"_a = 64, "rounds"_a = 3,
        nb::sig("def measure_work(block: int, work: collections.abc.Callable[[int, int], object], places: int = 64, "
                "rounds: int = 3) -> WorkTimes"),
        R"doc(Times work(begin, end) on indices of a block: on block / places of them, on twice as many, and so on.

Of each length the median of `rounds` turns of two milliseconds, 1000 at most. Errors: InputError; whatever `work`
raises.)doc");
}

}  // namespace

void add_overlap(nb::module_& module) {
    add_split(module);
    add_choice(module);
    add_work(module);
}

}  // namespace reshard::python
