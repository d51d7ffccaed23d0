#include "tally.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "law.hpp"
#include "support/property.hpp"

namespace reshard::runs {
namespace {

template <class T>
bool read(std::string_view text, T& value) {
    const auto end = text.data() + text.size();
    const auto [last, error] = std::from_chars(text.data(), end, value);
    return error == std::errc() && last == end;
}

int usual_count() {
    if (test::long_run()) return 10'000;
#ifdef __SANITIZE_ADDRESS__
    return 125;
#else
    return 300;
#endif
}

// The most runs that a rank has in flight at a time.
int most_in_flight(const Schedule& schedule) {
    int most = 0;
    for (const std::vector<Op>& ops : schedule.ops) {
        int in_flight = 0;
        for (const Op& op : ops) {
            if (op.call == Call::start) most = std::max(most, ++in_flight);
            if (op.call == Call::wait) --in_flight;
        }
    }
    return most;
}

// True if two ranks wait for the same runs in different orders.
bool waits_differ(const Schedule& schedule) {
    const auto waits_of = [](const std::vector<Op>& ops) {
        std::vector<std::pair<std::size_t, int>> waits;
        for (const Op& op : ops)
            if (op.call == Call::wait) waits.emplace_back(op.executor, op.run);
        return waits;
    };
    return std::ranges::any_of(schedule.ops,
                               [&](const auto& ops) { return waits_of(ops) != waits_of(schedule.ops.front()); });
}

}  // namespace

Result<Request> read_arguments(std::span<char*> arguments, const std::function<std::uint64_t()>& draw_seed) {
    Request asked;
    asked.count = usual_count();
#ifdef __SANITIZE_ADDRESS__
    asked.slack = 2;
    asked.usual = false;  // fewer schedules do not show all faults
#endif
    bool seeded = false;
    for (std::size_t i = 1; i + 1 < arguments.size(); i += 2) {
        const std::string_view name = arguments[i];
        const std::string_view value = arguments[i + 1];
        bool good = false;
        if (name == "--count") good = read(value, asked.count);
        if (name == "--slack") good = read(value, asked.slack);
        if (name == "--hang") good = read(value, asked.seconds_max);
        if (name == "--seed" || name == "--schedule") good = seeded = read(value, asked.seed);
        if (name == "--schedule") asked.one = true;
        if (name != "--slack" && name != "--hang") asked.usual = false;
        if (!good) return fail(Code::usage, fmt::format("cannot read {} {}", name, value));
    }
    if (arguments.size() % 2 == 0) return fail(Code::usage, "every option has a value");
    if (asked.one) asked.count = 1;
    if (!seeded && test::long_run()) asked.seed = draw_seed();
    return asked;
}

Bounds bounds_of(const Request& asked) {
    Bounds bounds;
    bounds.call *= asked.slack;
    bounds.with_timeout *= asked.slack;
    return bounds;
}

void Tally::add(const Schedule& schedule, const Report& all_ranks, const std::string& repeat) {
    OfFault& of = of_[static_cast<std::size_t>(schedule.fault)];
    ++of.schedules;
    of.right += all_ranks.right;
    of.errors += all_ranks.errors;
    ++of_ranks_[schedule.ranks];
    ++in_all_;
    if (most_in_flight(schedule) > 1) ++side_by_side_;
    if (waits_differ(schedule)) ++in_other_orders_;
    longest_call_ = std::max(longest_call_, all_ranks.longest_call);
    // If ranks differ in plan or execution, no one knows which rank is wrong.
    const bool differs = schedule.fault == Fault::other_plan ||
                         (schedule.fault == Fault::limit && of_prepare(schedule, schedule.faulty_executor,
                                                                       schedule.faulty_rank, true) == Verdict::either);
    const bool nobody_named = all_ranks.told > 0 && all_ranks.named == 0 && !differs;
    if (all_ranks.wrong.empty() && !nobody_named) return;
    ++failed_;
    fmt::print("schedule {} ({}) breaks its promises:\n", schedule.seed, name(schedule.fault));
    if (nobody_named) fmt::print("  no error names rank {}\n", schedule.faulty_rank);
    for (const std::string& line : all_ranks.wrong) fmt::print("  {}\n", line);
    fmt::print("repeat it: {} --schedule {}\n", repeat, schedule.seed);
    std::fflush(stdout);
}

int Tally::finish(const Request& asked, const std::string& what) const {
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count();
    bool seen = true;
    for (std::size_t i = 0; i < fault_count; ++i) {
        const auto fault = static_cast<Fault>(i);
        const OfFault& of = of_[i];
        fmt::print("{:>18}: {} schedules, {} runs right, {} errors\n", name(fault), of.schedules, of.right, of.errors);
        const bool met = of.schedules > 0 && (fault == Fault::none ? of.right > 0 : of.errors > 0);
        if (met || !asked.usual) continue;
        fmt::print("nothing was seen of the fault: {}\n", name(fault));
        seen = false;
    }
    fmt::print("{} with several runs in flight, {} waited for in different orders\n", side_by_side_, in_other_orders_);
    if (2 * std::min(side_by_side_, in_other_orders_) < in_all_ && asked.usual) seen = false;
    std::string ranks;
    for (const auto& [count, schedules] : of_ranks_) ranks += fmt::format(" {} over {},", schedules, count);
    ranks.pop_back();
    fmt::print("{}: {} schedules from seed {},{} ranks: {} failed; the longest call {:.2f} s, all {:.1f} s\n", what,
               in_all_, asked.seed, ranks, failed_, longest_call_, seconds);
    return failed_ == 0 && seen ? 0 : 1;
}

}  // namespace reshard::runs
