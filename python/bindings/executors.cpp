#include "python/bindings/executors.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/unique_ptr.h>

#include "python/bindings/door.hpp"
#include "python/bindings/lists.hpp"

namespace reshard::python {
namespace {

using namespace nb::literals;

std::vector<Index> row_major_strides(const std::vector<Index>& shape) {
    std::vector<Index> strides(shape.size(), 1);
    for (std::size_t k = shape.size(); k-- > 1;) strides[k - 1] = strides[k] * std::max<Index>(shape[k], 1);
    return strides;
}

// One array, or the arrays of a list.
std::vector<nb::object> given(nb::handle arrays, bool list, std::size_t count, const char* what) {
    std::vector<nb::object> all;
    if (!list) {
        all.push_back(nb::borrow(arrays));
    } else {
        for (nb::handle one : arrays) all.push_back(nb::borrow(one));
    }
    if (all.size() != count)
        raise({Code::mismatch, fmt::format("`{}` are {} arrays, the plan has {}", what, all.size(), count)});
    return all;
}

std::string named(const char* what, bool list, std::size_t number) {
    return list ? fmt::format("{}[{}]", what, number) : std::string(what);
}

// The strides of a dimension of extent 1, and of an empty tile, mean nothing.
bool same_strides(const Array& array, const Place& place) {
    if (array.empty()) return true;
    for (std::size_t k = 0; k < array.shape.size(); ++k)
        if (array.shape[k] > 1 && array.strides[k] != place.strides[k]) return false;
    return true;
}

// `reshaped`: the arrays that are planned in another shape than their own; their tiles are row-major.
std::vector<Place> places_of(const std::vector<const Layout*>& layouts, const std::vector<char>& reshaped, Index rank,
                             nb::handle like, bool list, const char* what) {
    std::vector<Place> places;
    for (const Layout* layout : layouts) {
        Place place{layout->dtype, tile_shape(*layout, rank), {}};
        place.strides = row_major_strides(place.shape);
        places.push_back(std::move(place));
    }
    if (like.is_none()) return places;
    const std::vector<nb::object> arrays = given(like, list, layouts.size(), what);
    for (std::size_t i = 0; i < arrays.size(); ++i) {
        const std::string name = named(what, list, i);
        const Array array = array_of(arrays[i], name.c_str(), Access::read);
        expect_host(array, name.c_str());
        expect_tile(array, name.c_str(), places[i].dtype, places[i].shape, rank);
        if (array.empty()) continue;  // strides mean nothing then
        if (reshaped[i] != 0 && !array.row_major())
            raise({Code::unsupported, fmt::format("`{}` is reshaped, so its tile must lie row-major", name)});
        for (std::size_t k = 0; k < array.shape.size(); ++k)
            if (array.shape[k] > 1 && array.strides[k] < 0)
                raise({Code::unsupported, fmt::format("`{}` runs backwards in dimension {}: copy it first", name, k)});
        places[i].strides = array.strides;
        for (std::size_t k = 0; k < array.shape.size(); ++k)
            places[i].strides[k] = std::max<Index>(array.strides[k], 0);
    }
    return places;
}

std::vector<Array> arrays_of(nb::handle arrays, const std::vector<Place>& places, bool list, const char* what,
                             Access access, Index rank) {
    const std::vector<nb::object> all = given(arrays, list, places.size(), what);
    std::vector<Array> found;
    for (std::size_t i = 0; i < all.size(); ++i) {
        const std::string named_so = named(what, list, i);
        Array array = array_of(all[i], named_so.c_str(), access);
        expect_host(array, named_so.c_str());
        expect_tile(array, named_so.c_str(), places[i].dtype, places[i].shape, rank);
        if (!same_strides(array, places[i]))
            raise({Code::mismatch, fmt::format("`{}` has strides of ({}) elements, it was prepared for ({})", named_so,
                                               fmt::join(array.strides, ", "), fmt::join(places[i].strides, ", "))});
        found.push_back(std::move(array));
    }
    return found;
}

template <class Bytes>
Bytes first(std::byte* bytes, Index count) {
    return Bytes(bytes, static_cast<std::size_t>(count));
}

}  // namespace

std::shared_ptr<PythonExecutor> PythonExecutor::make(std::shared_ptr<Backend> backend, nb::handle plan,
                                                     nb::handle sources, nb::handle targets, nb::handle split) {
    const bool list = is_instance<PlannedList>(plan);
    const PlannedList* const many = list ? nb::inst_ptr<PlannedList>(plan) : nullptr;
    const Planned* const one = list ? nullptr : &instance_of<Planned>(plan, "a plan is a Plan or a ListPlan");
    std::vector<const Layout*> from;
    std::vector<const Layout*> to;
    std::vector<char> reshaped;
    for (std::size_t i = 0; i < (list ? many->asked.size() : 1); ++i) {
        const Problem& asked = list ? many->asked[i] : one->asked;
        from.push_back(&asked.source);
        to.push_back(&asked.target);
        reshaped.push_back(shape(asked.source) == shape(asked.target) ? 0 : 1);
    }
    if (!split.is_none() && list) raise({Code::usage, "a list of plans is not cut into pieces: its buckets are"});
    if (!split.is_none() && reshaped.front() != 0)
        raise({Code::unsupported, "an array that is reshaped on the way is not cut into pieces"});
    const Index rank = backend->rank();
    auto source_places = places_of(from, reshaped, rank, sources, list, "source");
    auto target_places = places_of(to, reshaped, rank, targets, list, "target");
    std::vector<Storages> storages;
    for (std::size_t i = 0; i < source_places.size(); ++i) {
        storages.emplace_back();
        if (reshaped[i] == 0)
            storages[i] = {Storage{0, source_places[i].strides}, Storage{0, target_places[i].strides}};
    }
    const Split* const pieces = split.is_none() ? nullptr : &instance_of<Split>(split, "a split is a Split or None");
    Call::vote(*backend);
    auto prepared = waiting([&] {
        if (list) return Executor::prepare(many->made, *backend, storages);
        if (pieces == nullptr) return Executor::prepare(one->made, *backend, storages.front());
        return Executor::prepare(judge(one->made.plan(), *pieces, {.memory = one->made.limits().memory}), *backend,
                                 storages.front());
    });
    std::shared_ptr<PythonExecutor> made(new PythonExecutor(std::move(backend), unwrap(std::move(prepared))));
    made->list_ = list;
    made->donate_ = list ? many->made.memory().donate : one->options.limits.memory.donate;
    made->sources_ = std::move(source_places);
    made->targets_ = std::move(target_places);
    if (made->executor_.workspace_bytes() > 0)
        made->workspace_ = unwrap(made->backend_->allocate(made->executor_.workspace_bytes()));
    return made;
}

PythonExecutor::~PythonExecutor() {
    if (!home_.here()) {  // the parent's locks may be held for ever
        leave(bound_);
        leave(executor_);
        leave(workspace_);
        leave(backend_);
        return;
    }
    Turn::drop(*backend_, [&] {
        bound_.reset();
        const Executor dropped = std::move(executor_);
    });
}

void PythonExecutor::bind(const std::vector<Array>& sources, const std::vector<Array>& targets) {
    std::vector<std::byte*> addresses;
    std::vector<Buffers> buffers;
    const auto workspace = workspace_ ? workspace_->bytes() : std::span<std::byte>();
    for (std::size_t i = 0; i < sources.size(); ++i) {
        const RankPlan& plan = executor_.plans()[i];
        addresses.push_back(sources[i].bytes);
        addresses.push_back(targets[i].bytes);
        Buffers pair{first<std::span<const std::byte>>(sources[i].bytes, plan.source_bytes),
                     first<std::span<std::byte>>(targets[i].bytes, plan.target_bytes), workspace};
        if (donate_) pair.donated = first<std::span<std::byte>>(sources[i].bytes, plan.source_bytes);
        buffers.push_back(pair);
    }
    if (bound_ && addresses == addresses_) return;
    bound_.reset();
    bound_ = unwrap(executor_.bind(buffers));
    addresses_ = std::move(addresses);
}

std::unique_ptr<PythonRun> PythonExecutor::start(nb::handle sources, nb::handle targets, bool offers_withheld) {
    expect_home(home_, "executors");
    const Turn turn(*backend_);
    const Index rank = backend_->rank();
    auto from = arrays_of(sources, sources_, list_, "source", donate_ ? Access::write : Access::read, rank);
    auto to = arrays_of(targets, targets_, list_, "target", Access::write, rank);
    bind(from, to);
    std::move(to.begin(), to.end(), std::back_inserter(from));
    return std::make_unique<PythonRun>(
        unwrap(without_gil([&] { return bound_->start({.offers_withheld = offers_withheld}); })), shared_from_this(),
        *backend_, executor_.arrival_count(), bound_, std::move(from));
}

void PythonExecutor::report_failure(nb::handle exception) {
    if (home_.here()) executor_.report_failure(error_of(exception));
}

PythonRun::~PythonRun() {
    if (!ticket_) return;
    if (home_.here()) {
        Turn::drop(backend_, [&] { end(); });
    } else {  // the parent's locks may be held for ever
        leave(ticket_);
        leave(bound_);
    }
}

void PythonRun::end() {
    ticket_.reset();
    bound_.reset();
}

template <class Call>
auto PythonRun::asked(const Call& call) {
    auto answer = waiting([&] {
        auto said = call(*ticket_);
        // A call that was wrong leaves the run as it was.
        if (!said && said.error().code != Code::usage) end();
        return said;
    });
    return unwrap(std::move(answer));
}

bool PythonRun::test() {
    expect_home(home_, "runs");
    const Turn turn(backend_);
    if (!ticket_) return true;
    return asked([&](Ticket& ticket) {
        auto done = ticket.test();
        if (done && *done) end();
        return done;
    });
}

void PythonRun::wait() {
    expect_home(home_, "runs");
    const Turn turn(backend_);
    if (!ticket_) return;
    asked([&](Ticket& ticket) {
        auto done = ticket.wait();
        if (done) end();
        return done;
    });
}

std::size_t PythonRun::arrived() {
    expect_home(home_, "runs");
    const Turn turn(backend_);
    if (!ticket_) return arrivals_;
    return asked([](Ticket& ticket) { return ticket.arrived(); });
}

void PythonRun::offer(std::size_t piece) {
    expect_home(home_, "runs");
    const Turn turn(backend_);
    if (!ticket_) raise({Code::usage, fmt::format("offer: piece {} of a run that is over", piece)});
    asked([&](Ticket& ticket) { return ticket.offer(piece); });
}

void add_executors(nb::module_& module) {
    nb::class_<PythonRun>(module, "Run", "A run in flight. Dropping it waits.")
        .def("test", &PythonRun::test, "True once the target is complete here; makes progress, never blocks.")
        .def("wait", &PythonRun::wait, R"doc(Returns when the target is complete here. The GIL is not held meanwhile.

Errors: BackendError; InputError where nothing is left to wait for but offers: the run goes on then.)doc")
        .def("arrived", &PythonRun::arrived,
             R"doc(How many pieces (of a list: buckets) are complete here and may be read.

They are the first of Split.order. Takes all that is there and never blocks; over a network call it about every half
millisecond while you compute. Errors: BackendError.)doc")
        .def("offer", &PythonRun::offer, "piece"_a,
             R"doc(This rank's source of a piece is made, in a run that was started with offers_withheld.

A piece sets out when it, and all that travel before it, are offered on every rank. Never blocks.
Errors: InputError (no such piece, offered before, nothing is withheld); the run goes on.)doc");
    nb::class_<PythonExecutor>(module, "Prepared", "A plan that is ready to run. reshard.mpi.Executor makes them.")
        .def("start", &PythonExecutor::start, "source"_a, "target"_a, "offers_withheld"_a = false)
        .def("report_failure", &PythonExecutor::report_failure, "exception"_a)
        .def_prop_ro("arrival_count", [](const PythonExecutor& self) { return self.executor().arrival_count(); })
        .def_prop_ro("workspace_bytes", [](const PythonExecutor& self) { return self.executor().workspace_bytes(); })
        .def_prop_ro("staging_bytes", [](const PythonExecutor& self) { return self.executor().staging_bytes(); })
        .def_prop_ro("footprint_bytes", [](const PythonExecutor& self) { return self.executor().footprint_bytes(); })
        .def("describe", [](const PythonExecutor& self) { return self.executor().describe(); });
}

}  // namespace reshard::python
