// Small random programs, as the search sees them.
#pragma once

#include <algorithm>

#include "synth/program/dice.hpp"
#include "synth/program/list_order.hpp"

namespace reshard::test {

/// Tasks on one to three places, buffers with several users, and moves between places, which need two cards.
class RandomActivities {
public:
    explicit RandomActivities(std::uint64_t seed) : dice_(seed) {}

    /// At most `tasks_max` tasks, with limits at or near the least in three programs of four.
    program::Activities draw(int tasks_max) {
        out_ = {};
        where_.clear();
        const int places = 1 + below(3);
        out_.resources = 3 * places;  // compute, out and in of each place
        out_.limits.assign(static_cast<std::size_t>(places), index_max);
        const int tasks = 2 + below(tasks_max - 1);
        for (int t = 0; t < tasks; ++t) add_task(below(places));
        for (program::Activity& one : out_.all) {
            std::ranges::sort(one.before);
            one.before.erase(std::unique(one.before.begin(), one.before.end()), one.before.end());
        }
        for (program::Buffer& buffer : out_.buffers) {
            std::ranges::sort(buffer.users);
            buffer.users.erase(std::unique(buffer.users.begin(), buffer.users.end()), buffer.users.end());
        }
        complete(out_);
        if (below(4) > 0) limit();
        return out_;
    }

    int below(int count) { return dice_.below(count); }

    /// Each move that only one activity waits for lets it start early, in half of the cases.
    program::Activities with_pieces(program::Activities drawn) {
        for (int j = 0; j < drawn.count(); ++j) {
            program::Activity& move = drawn.all[static_cast<std::size_t>(j)];
            const std::vector<int>& after = drawn.after[static_cast<std::size_t>(j)];
            if (!move.moves || after.size() != 1 || below(2) == 0) continue;
            const Index user = drawn.all[static_cast<std::size_t>(after.front())].picoseconds;
            move.early = below(static_cast<int>(std::min(move.picoseconds, user + 1)));
        }
        return drawn;
    }

private:
    void add_task(int place) {
        std::vector<int> inputs;
        const int used = below(3);
        for (int k = 0; k < used && !where_.empty(); ++k) {
            const int recent = std::min<int>(5, static_cast<int>(where_.size()));
            inputs.push_back(at(where_[where_.size() - 1 - static_cast<std::size_t>(below(recent))], place));
        }
        const int t = out_.count();
        out_.all.push_back({1 + below(12), {3 * place}, {}, false});
        out_.written.push_back(t);
        for (const int b : inputs) use(b, t);
        const int made = below(4) == 0 ? 0 : 1 + below(2) / 2;
        for (int k = 0; k < made; ++k) {
            out_.buffers.push_back({place, 1 + below(9), t, {}, below(12) == 0});
            where_.push_back(static_cast<int>(out_.buffers.size()) - 1);
        }
        if (below(4) == 0) out_.buffers.push_back({place, 3, t, {}, false});  // scratch
    }

    // The buffer itself, or a copy that a move makes.
    int at(int buffer, int place) {
        const int from = out_.buffers[static_cast<std::size_t>(buffer)].place;
        if (from == place && below(3) > 0) return buffer;
        const int move = out_.count();
        const Index bytes = out_.buffers[static_cast<std::size_t>(buffer)].bytes;
        out_.all.push_back({1 + bytes * (1 + below(6)) / 3, {3 * from + 1, 3 * place + 2}, {}, true});
        out_.written.push_back(move);
        use(buffer, move);
        out_.buffers.push_back({place, bytes, move, {}, false});
        return static_cast<int>(out_.buffers.size()) - 1;
    }

    void use(int buffer, int user) {
        program::Buffer& one = out_.buffers[static_cast<std::size_t>(buffer)];
        one.users.push_back(user);
        if (one.maker >= 0) out_.all[static_cast<std::size_t>(user)].before.push_back(one.maker);
    }

    // The least that the written order needs, or a little more.
    void limit() {
        program::Activities all = out_;
        std::ranges::fill(all.limits, Index{1} << 40);
        complete(all);
        out_.limits = one_by_one(all, all.written);
        const int slack = below(3) * below(8);
        for (Index& limit : out_.limits) limit += slack;
        complete(out_);
    }

    program::Dice dice_;
    program::Activities out_;
    std::vector<int> where_;
};

}  // namespace reshard::test
