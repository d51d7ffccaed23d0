#include "reshard/live/status.hpp"

#include <nanobind/stl/string.h>

#include "python/bindings/live/groups.hpp"

namespace reshard::python {
namespace {

using namespace nb::literals;
using Milliseconds = std::chrono::milliseconds;

nb::dict offered(const std::string& endpoint, Index limit) {
    const auto tensors = unwrap(waiting([&] { return live::offered(endpoint, Milliseconds(limit)); }));
    nb::dict all;
    for (const live::OfferedTensor& one : tensors) all[text_of(one.name)] = one.layout;
    return all;
}

// Tuples, which the Python side names.
nb::list status(const std::string& endpoint, Index limit) {
    const auto ranks = unwrap(waiting([&] { return live::status(endpoint, Milliseconds(limit)); }));
    nb::list all;
    for (const live::RankStatus& rank : ranks) {
        nb::dict versions;
        for (const live::VersionStatus& one : rank.versions) versions[nb::int_(one.version)] = one.state;
        nb::list readers;
        for (const live::ReaderStatus& one : rank.readers)
            readers.append(
                nb::make_tuple(text_of(one.peer), one.reads, one.last, one.bytes, one.seconds, one.transport));
        all.append(nb::make_tuple(rank.newest, rank.tile_bytes, rank.reads, versions, readers));
    }
    return all;
}

}  // namespace

void add_status(nb::module_& module) {
    module.def("offered", offered, "endpoint"_a, "limit"_a);
    module.def("status", status, "endpoint"_a, "limit"_a);
}

}  // namespace reshard::python
