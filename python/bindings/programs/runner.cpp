#include "python/bindings/programs/runner.hpp"

#include <fmt/format.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <cstring>
#include <optional>

#include "python/bindings/waiting.hpp"
#include "src/base/try.hpp"

namespace reshard::python {
namespace {

using Keeper = std::shared_ptr<const void>;

nb::capsule capsule_of(const Keeper& keeper) {
    return nb::capsule(new Keeper(keeper), [](void* one) noexcept { delete static_cast<Keeper*>(one); });
}

template <class Byte>
nb::object bytes_of(std::span<Byte> bytes, const Keeper& keeper) {
    using Shown = std::conditional_t<std::is_const_v<Byte>, const std::uint8_t, std::uint8_t>;
    auto* const data = reinterpret_cast<Shown*>(bytes.data());
    return nb::cast(nb::ndarray<nb::numpy, Shown>(data, {bytes.size()}, capsule_of(keeper)));
}

// The array, the dimension, pairs of indices of its tile, the place and the number of calls. A task in one call gets
// None.
nb::object piece_of(const TaskRun& run) {
    if (!run.piece) return nb::none();
    nb::list part;
    for (const Interval& one : run.piece->part) part.append(nb::make_tuple(one.begin, one.end));
    return nb::make_tuple(run.task.uses[run.piece->use].array, run.piece->dim, part, run.piece->place,
                          run.piece->count);
}

// One look at each run after another, so that one thread runs all ranks. Waits in the only run under MPI.
Result<void> run_all(std::vector<std::unique_ptr<Ticket>>& runs) {
    if (runs.size() == 1) return runs.front()->wait();
    std::vector<bool> over(runs.size());
    for (std::size_t left = runs.size(); left > 0;) {
        for (std::size_t k = 0; k < runs.size(); ++k) {
            if (over[k]) continue;
            RESHARD_TRY(const bool done, runs[k]->test());
            if (done) over[k] = true, --left;
        }
        if (Interrupt::raised()) return fail(Code::backend, Interrupt::words);
    }
    return {};
}

}  // namespace

PythonRunner::PythonRunner(const Scheduled& scheduled, std::shared_ptr<void> keeper, const std::vector<Backend*>& ranks)
    : program_(scheduled.made.program()), keeper_(std::move(keeper)) {
    std::optional<Error> failed;
    for (Backend* const backend : ranks) {  // after an error too, so that all ranks make the same calls
        ranks_.push_back(backend->rank());
        auto runner = waiting([&] { return ProgramRunner::prepare(scheduled.made, scheduled.machine, *backend); });
        if (runner) runners_.push_back(std::move(*runner));
        if (!runner && !failed) failed = runner.error();
    }
    if (failed) raise(*failed);
}

PythonRunner::~PythonRunner() {
    if (home_.here()) return;
    for (ProgramRunner& one : runners_) static_cast<void>(new ProgramRunner(std::move(one)));  // the parent's
    static_cast<void>(new std::shared_ptr<void>(std::move(keeper_)));
}

void PythonRunner::run(const nb::callable& fill, const nb::callable& compute) {
    expect_home(home_, "runners");
    if (std::exchange(running_, true)) {
        raise({Code::usage, "a run of this runner is in flight"});
    }
    struct Over {
        bool& running;
        ~Over() { running = false; }
    } const over{running_};
    for (ProgramRunner& one : runners_) one.free_kept();  // the caller has copies
    for (std::size_t place = 0; place < ranks_.size(); ++place)
        for (const ProgramArray& array : program_.arrays) {
            const Elements tile = unwrap(runners_[place].tile(array.name));
            if (tile.bytes.empty()) continue;
            using Given = nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
            const auto given = nb::cast<Given>(fill(ranks_[place], array.name, array.layout));
            if (given.size() != tile.bytes.size())
                raise({Code::mismatch, fmt::format("array {} has {} bytes on rank {}, {} were given", array.name,
                                                   tile.bytes.size(), ranks_[place], given.size())});
            std::memcpy(tile.bytes.data(), given.data(), given.size());
        }
    raised_ = nullptr;
    auto done = waiting([&]() -> Result<void> {
        std::vector<std::unique_ptr<Ticket>> runs;
        for (std::size_t place = 0; place < ranks_.size(); ++place) {
            RESHARD_TRY(auto& run, runners_[place].start([this, place, &compute](const TaskRun& task) {
                return call(place, compute, task);
            }));
            runs.push_back(std::move(run));
        }
        return run_all(runs);
    });
    if (raised_) std::rethrow_exception(std::exchange(raised_, nullptr));
    unwrap(std::move(done));
}

// An exception of Python's is kept, and its words end the run.
Result<void> PythonRunner::call(std::size_t place, const nb::callable& compute, const TaskRun& run) {
    if (raised_) return fail(Code::usage, "a task of another rank failed");
    const Locked locked;
    const auto own = std::make_shared<const TaskRun*>(&run);  // null once the task is over
    try {
        nb::list uses;
        nb::list makes;
        for (std::size_t u = 0; u < run.uses.size(); ++u)
            uses.append(nb::make_tuple(run.task.uses[u].array, run.task.uses[u].layout,
                                       bytes_of(run.uses[u].bytes, run.keeper)));
        for (std::size_t m = 0; m < run.makes.size(); ++m)
            makes.append(nb::make_tuple(run.task.makes[m].name, run.task.makes[m].layout,
                                        bytes_of(run.makes[m].bytes, run.keeper)));
        const nb::object progress = nb::cpp_function([own] {
            if (*own == nullptr) raise({Code::usage, "progress belongs to a task that has ended"});
            unwrap(without_gil([&] { return (*own)->progress(); }));
        });
        compute(ranks_[place], run.task.name, uses, makes, progress, piece_of(run));
        *own = nullptr;
        return {};
    } catch (nb::python_error& error) {
        *own = nullptr;
        const nb::object exception = nb::borrow(error.value());
        const std::string words = fmt::format("{}: {}", nb::cast<std::string>(error.type().attr("__name__")),
                                              nb::cast<std::string>(nb::str(exception)));
        raised_ = std::make_exception_ptr(std::move(error));
        return fail(Code::usage, words);
    }
}

nb::dict PythonRunner::kept() {
    nb::dict all;
    for (const Task& task : program_.tasks) {
        for (const ProgramArray& array : task.makes) {
            if (!array.kept) continue;
            nb::list tiles;
            for (ProgramRunner& one : runners_) {
                const Elements tile = unwrap(one.tile(array.name));
                auto copy = std::make_shared<std::vector<std::byte>>(tile.bytes.begin(), tile.bytes.end());
                tiles.append(bytes_of(std::span<std::byte>(*copy), copy));
            }
            all[array.name.c_str()] = nb::make_tuple(array.layout, tiles);
        }
    }
    return all;
}

Program PythonRunner::measured() const { return unwrap(runners_.front().measured()); }

std::vector<Index> PythonRunner::most_bytes() const {
    std::vector<Index> all;
    for (const ProgramRunner& one : runners_) all.push_back(one.most_bytes());
    return all;
}

}  // namespace reshard::python
