// The processes of one job, as the module reshard._live holds them.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string>

#include "python/bindings/waiting.hpp"
#include "reshard/live/group.hpp"

namespace reshard::python {

/// A group, which one thread at a time may use. A forked process never frees it.
struct PythonGroup : NonCopyable {
    explicit PythonGroup(std::unique_ptr<live::Group> made) : group(std::move(made)) {}
    ~PythonGroup();
    /// Tells the ranks of the next collective call that this rank cannot make it.
    void report(const std::string& reason, std::chrono::milliseconds limit);

    std::unique_ptr<live::Group> group;
    std::atomic<bool> is_used = false;
    Home home;
};

/// The right to use a group for the time of a call. Raises InputError in a forked process, and if another thread has
/// it.
class GroupCall : NonCopyable {
public:
    explicit GroupCall(PythonGroup& group);
    ~GroupCall() { group_.is_used = false; }

private:
    PythonGroup& group_;
};

/// Calls `body`, which checks the arguments of a collective call. If it raises, the other ranks get its words at once.
template <class Body>
auto checked(PythonGroup& group, std::chrono::milliseconds limit, const Body& body) {
    try {
        return body();
    } catch (nb::python_error& error) {
        group.report(string_of(nb::str(error.value())), limit);
        throw;
    } catch (const nb::builtin_exception& error) {
        group.report(error.what(), limit);
        throw;
    }
}

void add_groups(nb::module_& module);       ///< Group, alone, join_group, join_through
void add_publishers(nb::module_& module);   ///< Publisher. After the groups
void add_subscribers(nb::module_& module);  ///< Subscriber. After the groups
void add_status(nb::module_& module);       ///< offered, status

}  // namespace reshard::python
