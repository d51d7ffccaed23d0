// Random and damaged plans to compare the two judges. Meshes are too large for the other generators, and the mistakes
// are of a kind that a generator of valid values does not make.
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

    /// Two layouts on up to `devices_max` devices. Some axes are cut, equally or differently on the two sides.
    [[nodiscard]] Problem problem(Index devices_max);

    /// Another layout of the same array, by one change. Now and then the result is not a valid layout.
    [[nodiscard]] Layout neighbour(const Layout& layout);

    /// Up to `length` steps, each of a kind that type_step accepts.
    [[nodiscard]] Plan walk(const Layout& source, std::size_t length);

    /// Options with a random vocabulary, objective and machine, and sometimes a limit near the least that works.
    [[nodiscard]] Options options(const Problem& problem);

    /// The plan with one or two changes.
    [[nodiscard]] Plan mutant(Plan plan);

    /// Changes one thing in the schedules of one step, on one rank or equally on both ends of a message. Some changes
    /// do no harm. False if the schedules have no place for the change.
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
