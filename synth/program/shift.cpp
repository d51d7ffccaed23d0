#include "synth/program/shift.hpp"

namespace reshard::program {

void Shift::pull(Order& order, int at, int to) {
    moved_.assign(1, order[at]);
    mark(program_.all[order[at]].before, 1);
    int last = at;
    for (int k = at - 1; k >= to; --k) {
        const int i = order[k];
        if (marked_[i] != 0) {
            moved_.push_back(i);
            mark(program_.all[i].before, 1);
        } else {
            order[last--] = i;
        }
    }
    for (std::size_t k = 0; k < moved_.size(); ++k) order[last - static_cast<int>(k)] = moved_[k];
    for (const int i : moved_) mark(program_.all[i].before, 0);
}

void Shift::push(Order& order, int at, int to) {
    moved_.assign(1, order[at]);
    mark(program_.after[order[at]], 1);
    int first = at;
    for (int k = at + 1; k < to; ++k) {
        const int i = order[k];
        if (marked_[i] != 0) {
            moved_.push_back(i);
            mark(program_.after[i], 1);
        } else {
            order[first++] = i;
        }
    }
    for (std::size_t k = 0; k < moved_.size(); ++k) order[first + static_cast<int>(k)] = moved_[k];
    for (const int i : moved_) mark(program_.after[i], 0);
}

void Shift::mark(const std::vector<int>& activities, char value) {
    for (const int j : activities) marked_[j] = value;
}

}  // namespace reshard::program
