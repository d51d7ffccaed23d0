// Random plans and damaged ones for the comparison of the two judges: on meshes too large for the other generators, and
// with mistakes that a generator of valid values does not make.
#pragma once

#include <random>
#include <string>

#include "reshard/planner/schedule.hpp"
#include "reshard/synthesize.hpp"

namespace reshard::test {

class Draw {
public:
    explicit Draw(std::uint64_t seed) : engine_(seed) {}

    [[nodiscard]] Index below(Index count);  ///< uniform in [0, count)
    [[nodiscard]] bool once_in(Index times) { return below(times) == 0; }
    [[nodiscard]] std::uint64_t seed() { return engine_(); }

    /// Two layouts on up to `devices_max` devices; the axes are sometimes cut, on the two sides alike or differently.
    [[nodiscard]] Problem problem(Index devices_max);

    /// Another layout of the same array by one change; now and then one that is no layout.
    [[nodiscard]] Layout neighbour(const Layout& layout);

    /// Up to `length` steps, each of a kind that type_step accepts.
    [[nodiscard]] Plan walk(const Layout& source, std::size_t length);

    /// Vocabulary, objective, machine, and sometimes a limit near what the problem needs at least.
    [[nodiscard]] Options options(const Problem& problem);

    /// The plan with one or two things changed.
    [[nodiscard]] Plan mutant(Plan plan);

    /// One thing changed in the schedules of one step, on one rank or alike on both ends of a message; some changes do
    /// no harm. False when there was no place for it.
    [[nodiscard]] bool damage(std::vector<Schedule>& schedules);

private:
    template <class T>
    T& one_of(std::vector<T>& list) {
        return list[static_cast<std::size_t>(below(static_cast<Index>(list.size())))];
    }
    [[nodiscard]] bool damage_one_rank(std::vector<Schedule>& schedules);
    [[nodiscard]] bool damage_message(std::vector<Schedule>& schedules);
    [[nodiscard]] bool damage_fills(std::vector<Schedule>& schedules);
    void mutate(Plan& plan);
    void mutate_extent(Plan& plan);

    std::mt19937_64 engine_;
};

}  // namespace reshard::test
