// Plans prepared once on a backend, for loops.
#pragma once

#include <memory>

#include "python/bindings/arrays.hpp"
#include "reshard/execute.hpp"

namespace reshard::python {

/// One array of an executor on this rank.
struct Place {
    DType dtype;
    std::vector<Index> shape;
    std::vector<Index> strides;  ///< in elements
};

/// A run in flight. Dropping it waits; in a process that was forked off it does nothing, and calls raise.
class PythonRun : NonCopyable {
public:
    /// `owner` keeps the backend and all that is prepared alive. `arrivals`: the final value of arrived().
    PythonRun(std::unique_ptr<Ticket> ticket, std::shared_ptr<const void> owner, const Backend& backend,
              std::size_t arrivals, std::shared_ptr<Bound> bound, std::vector<Array> arrays)
        : owner_(std::move(owner)),
          backend_(backend),
          arrivals_(arrivals),
          bound_(std::move(bound)),
          arrays_(std::move(arrays)),
          ticket_(std::move(ticket)) {}
    ~PythonRun();
    [[nodiscard]] bool test();
    void wait();
    [[nodiscard]] std::size_t arrived();
    void offer(std::size_t piece);

private:
    // Calls `call` on the ticket without the GIL. pre: the caller has the turn. A run that failed is over.
    template <class Call>
    auto asked(const Call& call);
    void end();

    std::shared_ptr<const void> owner_;
    const Backend& backend_;
    std::size_t arrivals_;
    std::shared_ptr<Bound> bound_;
    std::vector<Array> arrays_;  // kept alive while they are read and written
    std::unique_ptr<Ticket> ticket_;
    Home home_;
};

/// An executor, and what it is bound to.
class PythonExecutor : public std::enable_shared_from_this<PythonExecutor> {
public:
    /// Collective, within a Call. `plan`: a Plan or a ListPlan. `sources`, `targets`: arrays whose strides the tiles
    /// will have, lists of arrays for a ListPlan, or None. `split`: the pieces of a Plan, or None.
    static std::shared_ptr<PythonExecutor> make(std::shared_ptr<Backend> backend, nb::handle plan, nb::handle sources,
                                                nb::handle targets, nb::handle split);
    ~PythonExecutor();
    std::unique_ptr<PythonRun> start(nb::handle sources, nb::handle targets, bool offers_withheld);
    /// Tells the ranks that wait for this one in a run why it does not start.
    void report_failure(nb::handle exception);
    [[nodiscard]] const Executor& executor() const { return executor_; }
    [[nodiscard]] const Backend& backend() const { return *backend_; }

private:
    PythonExecutor(std::shared_ptr<Backend> backend, Executor executor)
        : backend_(std::move(backend)), executor_(std::move(executor)) {}
    void bind(const std::vector<Array>& sources, const std::vector<Array>& targets);

    std::shared_ptr<Backend> backend_;
    Executor executor_;
    bool list_ = false;
    bool donate_ = false;
    std::vector<Place> sources_;
    std::vector<Place> targets_;
    std::unique_ptr<Memory> workspace_;
    std::vector<std::byte*> addresses_;  // that are bound
    std::shared_ptr<Bound> bound_;
    Home home_;
};

void add_executors(nb::module_& module);
void add_halos(nb::module_& module);  ///< after the executors
void add_boxes(nb::module_& module);  ///< after the executors

}  // namespace reshard::python
