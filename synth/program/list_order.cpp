#include "synth/program/list_order.hpp"

#include <algorithm>
#include <memory>
#include <set>

#include "synth/program/times.hpp"

namespace reshard::program {
namespace {

constexpr int tries = 8;  // of a queue at each event: thousands of activities without inputs are ready at once

// The activities that have started or are ready, and the bytes that are held.
class Progress {
public:
    explicit Progress(const Activities& program)
        : program_(program), needs_(program.all.size()), left_(program.buffers.size()), held_(program.held_first) {
        for (std::size_t j = 0; j < needs_.size(); ++j) needs_[j] = program.all[j].before.size();
        for (std::size_t b = 0; b < left_.size(); ++b) left_[b] = program.waits_for[b].size();
    }

    [[nodiscard]] bool ready(int j) const { return needs_[j] == 0; }
    [[nodiscard]] bool has_room(int j) const {
        return std::ranges::all_of(program_.opens[j], [&](const Opening& opening) {
            return held_[opening.place] + opening.bytes <= program_.limits[opening.place];
        });
    }
    // By how many bytes the activity changes what is held, all places together.
    [[nodiscard]] Index change(int j) const {
        Index bytes = 0;
        for (const Opening& opening : program_.opens[j]) bytes += opening.bytes;
        for (const int b : program_.releases[j])
            if (left_[b] == 1) bytes -= program_.buffers[b].bytes;
        return bytes;
    }
    void start(int j) {
        for (const auto& [place, bytes] : program_.opens[j]) held_[place] += bytes;
    }
    // Frees the memory that waits for its end.
    void release(int j) {
        for (const int b : program_.releases[j])
            if (--left_[b] == 0) held_[program_.buffers[b].place] -= program_.buffers[b].bytes;
    }
    // Calls `ready` for each activity that is ready by it.
    template <class Ready>
    void pass(int j, const Ready& ready) {
        for (const int later : program_.after[j])
            if (--needs_[later] == 0) ready(later);
    }

private:
    const Activities& program_;
    std::vector<std::size_t> needs_;
    std::vector<std::size_t> left_;
    std::vector<Index> held_;
};

// One run of list scheduling.
class List {
public:
    List(const Activities& program, std::span<const Index> priority, const Order& fallback, Margin margin)
        : program_(program),
          priority_(priority),
          fallback_(fallback),
          progress_(program),
          waiting_(program.resources),
          busy_(program.resources),
          started_(program.all.size()) {
        if (program.limited) banker_ = std::make_unique<Banker>(program, fallback, margin);
        for (int j = 0; j < program.count(); ++j)
            if (progress_.ready(j)) ready_.push(item(j));
    }

    Order run() {
        while (true) {
            start_ready(tries);
            if (events_.empty()) start_next_of_fallback();
            if (events_.empty()) return std::move(order_);
            end_next();
            for (const Item& one : held_back_) ready_.push(one);
            held_back_.clear();
        }
    }

private:
    using Item = std::pair<Index, int>;  // the priority with its sign changed, and the activity
    [[nodiscard]] Item item(int j) const { return {-priority_[j], j}; }

    void start_ready(int most) {
        for (int r = 0; r < program_.resources; ++r) {
            for (int k = 0; busy_[r] == 0 && !waiting_[r].empty() && k < most; ++k) {
                ready_.push(waiting_[r].top());
                waiting_[r].pop();
            }
        }
        for (int failed = 0; !ready_.empty() && failed < most;) {
            const Item one = ready_.top();
            ready_.pop();
            if (started_[one.second] == 0 && !try_start(one)) ++failed;
        }
    }

    // False if memory holds it back.
    bool try_start(const Item& one) {
        const int j = one.second;
        for (const int r : program_.all[j].resources) {
            if (busy_[r] == 0) continue;
            waiting_[r].push(one);
            return true;
        }
        if (banker_ && (!progress_.has_room(j) || !banker_->start(j))) {
            held_back_.push_back(one);
            return false;
        }
        for (const int r : program_.all[j].resources) busy_[r] = 1;
        progress_.start(j);
        order_.push_back(j);
        started_[j] = 1;
        const Activity& started = program_.all[j];
        events_.emplace(now_ + started.picoseconds, j);
        if (started.early > 0) events_.emplace(now_ + started.picoseconds - started.early, program_.count() + j);
        return true;
    }

    // Nothing runs, so the first of the fallback that has not started is ready and fits.
    void start_next_of_fallback() {
        while (next_ < fallback_.size() && started_[fallback_[next_]] != 0) ++next_;
        if (next_ < fallback_.size()) try_start(item(fallback_[next_]));
    }

    // The next events: an activity ends, or it lets others start before its end.
    void end_next() {
        now_ = events_.top().first;
        const auto ready = [&](int later) { ready_.push(item(later)); };
        while (!events_.empty() && events_.top().first == now_) {
            const int j = events_.top().second;
            events_.pop();
            if (j >= program_.count()) {
                progress_.pass(j - program_.count(), ready);
                continue;
            }
            for (const int r : program_.all[j].resources) busy_[r] = 0;
            progress_.release(j);
            if (program_.all[j].early == 0) progress_.pass(j, ready);
        }
    }

    const Activities& program_;
    std::span<const Index> priority_;
    const Order& fallback_;
    Progress progress_;
    std::unique_ptr<Banker> banker_;
    Earliest<Item> ready_;
    std::vector<Earliest<Item>> waiting_;  // of each resource: ready, and it is busy
    std::vector<Item> held_back_;          // by memory, until something ends
    Earliest<std::pair<Index, int>> events_;
    std::vector<char> busy_;
    std::vector<char> started_;
    Order order_;
    Index now_ = 0;
    std::size_t next_ = 0;
};

// Always the first of `wanted` that is ready, has room and may start.
template <class May>
Order first_that_may(const Activities& program, const Order& wanted, const May& may) {
    Progress progress(program);
    std::vector<int> rank(wanted.size());
    Earliest<int> ready;
    for (std::size_t k = 0; k < wanted.size(); ++k) rank[wanted[k]] = static_cast<int>(k);
    for (const int j : wanted)
        if (progress.ready(j)) ready.push(rank[j]);
    Order order;
    std::vector<int> held_back;
    while (!ready.empty()) {
        const int k = ready.top();
        ready.pop();
        const int j = wanted[k];
        if (!progress.has_room(j) || !may(j)) {
            held_back.push_back(k);
            continue;
        }
        order.push_back(j);
        progress.start(j);
        progress.release(j);
        progress.pass(j, [&](int later) { ready.push(rank[later]); });
        for (const int again : held_back) ready.push(again);
        held_back.clear();
    }
    return order;
}

}  // namespace

Order list_order(const Activities& program, std::span<const Index> priority, const Order& fallback, Margin margin) {
    return List(program, priority, fallback, margin).run();
}

std::optional<Order> squeezed(const Activities& program, const Order& wanted) {
    Order order = first_that_may(program, wanted, [](int) { return true; });
    if (order.size() < wanted.size()) return std::nullopt;
    return order;
}

Order repaired(const Activities& program, const Order& wanted, const Order& fallback) {
    Banker banker(program, fallback, 0);
    return first_that_may(program, wanted, [&](int j) { return banker.start(j); });
}

Order late_moves(const Activities& program) {
    std::vector<int> rank(program.all.size());
    for (std::size_t k = 0; k < program.written.size(); ++k) rank[program.written[k]] = static_cast<int>(k);
    std::vector<std::pair<int, int>> key(program.all.size());
    for (int j = 0; j < program.count(); ++j) {
        key[j] = {rank[j], 1};
        if (!program.all[j].moves || program.after[j].empty()) continue;
        key[j] = {rank[program.after[j].front()], 0};
        for (const int later : program.after[j]) key[j] = std::min(key[j], {rank[later], 0});
    }
    Order order = program.written;
    std::ranges::stable_sort(order, {}, [&](int j) { return key[j]; });
    return order;
}

Order lean_order(const Activities& program, const Paths& paths) {
    Progress progress(program);
    using Item = std::tuple<Index, Index, int>;
    std::vector<Index> change(program.all.size());
    std::set<Item> ready;  // a change falls when other users of a buffer end, so the set is mended then
    const auto item = [&](int j) { return Item{change[j], -paths.tail[j], j}; };
    const auto insert = [&](int j) {
        change[j] = progress.change(j);
        ready.insert(item(j));
    };
    for (int j = 0; j < program.count(); ++j)
        if (progress.ready(j)) insert(j);
    Order order;
    while (!ready.empty()) {
        const int j = std::get<2>(*ready.begin());
        ready.erase(ready.begin());
        order.push_back(j);
        progress.start(j);
        progress.release(j);
        progress.pass(j, insert);
        for (const int b : program.releases[j])
            for (const int user : program.waits_for[b])
                if (ready.erase(item(user)) > 0) insert(user);
    }
    return order;
}

}  // namespace reshard::program
