// Random programs with layouts.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "reshard/program/program.hpp"
#include "reshard/text.hpp"
#include "synth/program/dice.hpp"

namespace reshard::test {

/// Tasks on meshes that are disjoint, overlap, or lie in each other, of four or eight devices. Arrays are cut or whole.
class RandomProgram {
public:
    /// In pieces: arrays are larger, and tasks ask for pieces of what they use.
    explicit RandomProgram(std::uint64_t seed, int devices = 4, bool in_pieces = false)
        : dice_(seed), meshes_(devices == 4 ? 6 : 9), in_pieces_(in_pieces) {}

    Program draw() {
        Program program;
        for (int k = dice_.below(3); k > 0; --k) {
            program.arrays.push_back({name(), layout(mesh()), dice_.below(3) == 0});
            made_.push_back(program.arrays.back());
        }
        for (int t = 3 + dice_.below(8); t > 0; --t) program.tasks.push_back(task("t" + std::to_string(t)));
        return program;
    }

    int below(int count) { return dice_.below(count); }

private:
    std::string name() { return "a" + std::to_string(names_++); }
    Mesh mesh() {
        const char* const meshes[] = {"x=2[0,1]", "x=2[2,3]", "x=2[1,2]",     "x=4",       "x=2,y=2",
                                      "x=1[3]",   "x=8",      "x=4[7,6,5,4]", "x=3[1,4,6]"};
        return parse_mesh(meshes[dice_.below(meshes_)]).value();
    }
    Layout layout(const Mesh& mesh) {
        const char* const layouts[] = {"f32[8@x,4]", "f32[8,4@x]", "f32[8,4]", "f32[8@x,4]"};
        const char* const large[] = {"f32[1024@x,32]", "f32[1024,32@x]", "f32[1024,32]", "f32[1024@x,32]"};
        return parse_layout(mesh, (in_pieces_ ? large : layouts)[dice_.below(4)]).value();
    }

    Task task(const std::string& called) {
        const Index unit = in_pieces_ ? 10'000'000 : 100'000;  // picoseconds; a large array moves in some 50 us
        Task task{called, mesh(), unit * (1 + dice_.below(20))};
        for (int k = dice_.below(3); k > 0 && !made_.empty(); --k) {
            const ProgramArray& used =
                made_[made_.size() - 1 -
                      static_cast<std::size_t>(dice_.below(std::min<int>(4, static_cast<int>(made_.size()))))];
            if (std::ranges::count(task.uses, used.name, &ProgramUse::array) > 0) continue;
            const bool here = used.layout.mesh == task.mesh && dice_.below(3) > 0;
            task.uses.push_back({used.name, here ? used.layout : layout(task.mesh), dice_.below(5) == 0});
            if (dice_.below(4) == 0) task.uses.back().move_picoseconds = unit * dice_.below(15);
            if (in_pieces_ && dice_.below(4) > 0)
                task.uses.back().pieces_along = static_cast<std::size_t>(dice_.below(2));
        }
        std::vector<ProgramArray> made;
        for (int k = dice_.below(3); k > 0; --k) made.push_back({name(), layout(task.mesh), dice_.below(8) == 0});
        // A made array takes over an input of its own layout, so that nothing is left over.
        if (!made.empty() && !task.uses.empty() && dice_.below(2) == 0) {
            const ProgramUse& use = task.uses.front();
            const auto source = std::ranges::find(made_, use.array, &ProgramArray::name);
            if (!source->kept && equivalent(source->layout, use.layout)) {
                task.donates.push_back(use.array);
                made.front().layout = source->layout;
                made_.erase(source);
            }
        }
        task.makes = made;
        made_.insert(made_.end(), made.begin(), made.end());
        if (dice_.below(4) == 0) task.scratch_bytes = 16 * dice_.below(8);
        if (dice_.below(5) == 0) task.engine = "host";
        if (!tasks_.empty() && dice_.below(5) == 0)
            task.after.push_back(tasks_[static_cast<std::size_t>(dice_.below(static_cast<int>(tasks_.size())))]);
        tasks_.push_back(called);
        return task;
    }

    program::Dice dice_;
    int meshes_;  // of the list
    bool in_pieces_;
    int names_ = 0;
    std::vector<ProgramArray> made_;
    std::vector<std::string> tasks_;
};

}  // namespace reshard::test
