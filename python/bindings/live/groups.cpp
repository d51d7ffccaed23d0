#include "python/bindings/live/groups.hpp"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <exception>
#include <functional>

namespace reshard::python {
namespace {

using namespace nb::literals;
using Milliseconds = std::chrono::milliseconds;

std::shared_ptr<PythonGroup> join(const std::string& endpoint, Index rank, Index size, Index limit) {
    auto made = waiting([&] { return live::join_group(endpoint, rank, size, Milliseconds(limit)); });
    return std::make_shared<PythonGroup>(unwrap(std::move(made)));
}

// An exception of `broadcast` goes through the library, which sees an error.
std::shared_ptr<PythonGroup> join_through(const nb::object& broadcast, Index rank, Index size, Index limit) {
    std::exception_ptr raised;
    const auto pass_on = [&](const std::string& text) -> Result<std::string> {
        const Locked locked;
        try {
            return string_of(broadcast(text_of(text)));
        } catch (...) {
            raised = std::current_exception();
            return fail(Code::backend, "the broadcast failed");
        }
    };
    auto made = waiting([&] { return live::join_group(std::function(pass_on), rank, size, Milliseconds(limit)); });
    if (raised) std::rethrow_exception(raised);
    return std::make_shared<PythonGroup>(unwrap(std::move(made)));
}

}  // namespace

PythonGroup::~PythonGroup() {
    if (!home.here()) leave(group);
}

void PythonGroup::report(const std::string& reason, Milliseconds limit) {
    if (home.here()) static_cast<void>(waiting([&] { return live::report_failure(*group, reason, limit); }));
}

GroupCall::GroupCall(PythonGroup& group) : group_(group) {
    expect_home(group.home, "groups");
    if (group.is_used.exchange(true))
        raise({Code::usage, "another thread is in a call of this job; its calls are in one order"});
}

void add_groups(nb::module_& module) {
    nb::class_<PythonGroup>(module, "Group", "The processes of one job. join_group makes it.")
        .def_prop_ro(
            "rank", [](const PythonGroup& self) { return self.group->rank(); }, "Of this process, from 0.")
        .def_prop_ro(
            "size", [](const PythonGroup& self) { return self.group->size(); }, "Processes of the job.")
        .def(
            "report",
            [](PythonGroup& self, const std::string& reason, Index limit) {
                const GroupCall call(self);
                self.report(reason, Milliseconds(limit));
            },
            "reason"_a, "limit"_a,
            "Takes part in the next collective call with a failure, so that all other ranks fail at once. "
            "Milliseconds.");
    module.def("alone", [] { return std::make_shared<PythonGroup>(live::alone()); });
    module.def("join_group", join, "endpoint"_a, "rank"_a, "size"_a, "limit"_a);
    module.def("join_through", join_through, "broadcast"_a, "rank"_a, "size"_a, "limit"_a);
}

}  // namespace reshard::python
