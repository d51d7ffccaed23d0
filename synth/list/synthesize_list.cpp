// Many problems under one limit: the plan of each, then order and buckets, then the judge.
#include <algorithm>

#include <fmt/format.h>

#include "reshard/synthesize.hpp"
#include "reshard/text.hpp"
#include "src/base/try.hpp"
#include "src/judge/live_bytes.hpp"
#include "synth/list/list_order.hpp"
#include "synth/overlap/overlap_steps.hpp"

namespace reshard {

namespace {

Index ends_of(const Problem& problem) { return saturating_add(tile_bytes(problem.source), tile_bytes(problem.target)); }

// Limits are often missed by little.
std::string exactly(Index bytes) { return fmt::format("{} ({} bytes)", format_bytes(bytes), bytes); }

Result<Synthesis> synthesize_one(const Problem& problem, std::size_t array, const Options& options) {
    auto made = synthesize(problem, options);
    if (!made) return fail(made.error().code, fmt::format("array {}: {}", array, made.error().message));
    return made;
}

class ListSynthesizer {
public:
    ListSynthesizer(std::span<const Problem> problems, const Options& options, const MemoryPolicy& memory)
        : problems_(problems), options_(options), of_one_(options), memory_(memory) {
        options_.limits.memory.donate = memory.donate;
        // Pieces that overlap are of a plan by itself.
        if (problems.size() > 1) options_.capabilities.steps_overlap = false;
    }

    Result<ListSynthesis> answer() {
        for (std::size_t i = 0; i < problems_.size(); ++i) {
            RESHARD_TRY(auto& one, synthesize_one(problems_[i], i, options_));
            plans_.push_back(one.plan());
            arrays_.push_back(std::move(one));
        }
        RESHARD_CHECK(choose_buckets());
        const std::vector<Judged<Plan>> judged(arrays_.begin(), arrays_.end());
        auto together = run_together();
        RESHARD_TRY(const auto& list, judge(judged, std::move(buckets_), memory_, std::move(together)));
        ListSynthesis made{list, std::move(arrays_), floor_bytes_};
        made.picoseconds = list_picoseconds(list, options_.machine);
        made.cut_alone = cut_alone(made.arrays);
        return made;
    }

private:
    std::vector<Order> run_together() const {
        ListPlan list{plans_, buckets_};
        for (const Synthesis& one : arrays_) list.executions.push_back(one.execution());
        return choose_together(list, of_one_.capabilities, memory_);
    }

    // One bucket is best if the list has no limit.
    Result<void> choose_one_bucket() {
        buckets_ = in_one_bucket(plans_).buckets;
        for (const Index bytes : ends_held(plans_, buckets_, false)) floor_bytes_ = std::max(floor_bytes_, bytes);
        if (floor_bytes_ < index_max) return {};
        return fail(Code::overflow, "the arrays of the list leave 64 bits of bytes a device");
    }

    Result<void> choose_buckets() {
        if (!memory_.footprint_bytes_max && !memory_.donate) return choose_one_bucket();
        RESHARD_TRY(auto& bare, holdings_of(plans_, std::vector<Index>(problems_.size(), 0)));
        floor_bytes_ = least_held(bare, memory_.donate);
        if (!memory_.footprint_bytes_max) {
            buckets_ = in_one_bucket(plans_).buckets;
            return {};
        }
        if (take_fewest()) return {};
        const Index room = *memory_.footprint_bytes_max - memory_.staging_bytes;
        std::vector<Order> orders = orders_worth_trying(bare, room, memory_.donate);
        const auto most = [&](const Order& order) { return most_held(order, bare, memory_.donate); };
        const auto best =
            std::ranges::min_element(orders, [&](const Order& a, const Order& b) { return most(a) < most(b); });
        if (const Index needed = saturating_add(most(*best), memory_.staging_bytes);
            needed > *memory_.footprint_bytes_max)
            return fail(Code::infeasible,
                        fmt::format("the list needs {} a device in the best order found, limit is {}; no order needs "
                                    "less than {}",
                                    exactly(needed), exactly(*memory_.footprint_bytes_max),
                                    exactly(saturating_add(floor_bytes_, memory_.staging_bytes))));
        RESHARD_CHECK(plan_with_less(*best, bare));
        if (take_fewest(&*best)) return {};
        return fail(Code::infeasible, fmt::format("the list does not fit its limit of {} in any order tried",
                                                  format_bytes(*memory_.footprint_bytes_max)));
    }

    // Sets the fewest buckets that any order gives; the first order wins ties. False if no order fits.
    bool take_fewest(const Order* also = nullptr) {
        std::vector<Index> workspaces;
        for (std::size_t i = 0; i < problems_.size(); ++i)
            workspaces.push_back(arrays_[i].verdict().footprint_bytes - ends_of(problems_[i]));
        const auto holdings = holdings_of(plans_, std::move(workspaces));
        if (!holdings) return false;
        const Index room = *memory_.footprint_bytes_max - memory_.staging_bytes;
        std::vector<Order> orders = orders_worth_trying(*holdings, room, memory_.donate);
        if (also != nullptr) orders.push_back(*also);
        std::size_t fewest = 0;
        for (const Order& order : orders) {
            if (most_held(order, *holdings, memory_.donate) > room) continue;
            std::vector<Order> buckets = buckets_of(order, *holdings, room, memory_.donate);
            if (fewest != 0 && buckets.size() >= fewest) continue;
            fewest = buckets.size();
            buckets_ = std::move(buckets);
        }
        return fewest != 0 || problems_.empty();
    }

    // Plans whose workspaces fit beside what is held when each array runs by itself in this order.
    Result<void> plan_with_less(const Order& order, const Holdings& bare) {
        const Index limit = *memory_.footprint_bytes_max - memory_.staging_bytes;
        const std::vector<Index> held = held_one_by_one(order, bare, memory_.donate);
        for (std::size_t at = 0; at < order.size(); ++at) {
            const std::size_t array = order[at];
            const Index allowed = saturating_add(ends_of(problems_[array]), limit - held[at]);
            if (arrays_[array].verdict().footprint_bytes <= allowed) continue;
            Options options = options_;
            options.limits.memory.footprint_bytes_max =
                std::min(allowed, options.limits.memory.footprint_bytes_max.value_or(allowed));
            RESHARD_TRY(auto& one, synthesize_one(problems_[array], array, options));
            plans_[array] = one.plan();
            arrays_[array] = std::move(one);
        }
        return {};
    }

    // By the plans that the list has; others may be cut, too.
    [[nodiscard]] Index cut_alone(std::span<const Synthesis> arrays) const {
        if (arrays.size() < 2) return 0;
        return std::ranges::count_if(
            arrays, [&](const Synthesis& one) { return in_overlapped_pieces(one, of_one_).has_value(); });
    }

    std::span<const Problem> problems_;
    Options options_;        // of each array
    const Options& of_one_;  // of an array by itself
    const MemoryPolicy& memory_;
    std::vector<Synthesis> arrays_;
    std::vector<Plan> plans_;  // theirs
    std::vector<Order> buckets_;
    Index floor_bytes_ = 0;
};

}  // namespace

Result<ListSynthesis> synthesize(std::span<const Problem> problems, const Options& options,
                                 const MemoryPolicy& memory) {
    return ListSynthesizer(problems, options, memory).answer();
}

}  // namespace reshard
