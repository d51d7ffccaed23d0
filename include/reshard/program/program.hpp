// A program: tasks that compute on meshes, and the arrays that they use and make.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reshard/layout.hpp"

namespace reshard {

/// An array that a task makes, or that is there from the beginning.
struct ProgramArray {
    std::string name;   ///< no other array of the program has it
    Layout layout;      ///< how it is made
    bool kept = false;  ///< true: held to the end; false: freed when its last user has ended
    friend bool operator==(const ProgramArray&, const ProgramArray&) = default;
};

/// An array that a task uses. If it was made in another layout, it is moved before; the move is inferred. Uses of one
/// array in one layout share one move.
struct ProgramUse {
    std::string array;   ///< made by an earlier task, or there from the beginning
    Layout layout;       ///< of the same type and shape
    bool again = false;  ///< true: moved once more, even if an earlier use has it in this layout
    /// The measured time of the move; else the estimate of its plan.
    std::optional<Index> move_picoseconds = std::nullopt;
    /// The dimension along which the task uses the array part by part, evenly over its time and in any order. Then the
    /// move may arrive in pieces while the task runs. nullopt: the task needs the whole array from its start.
    std::optional<std::size_t> pieces_along = std::nullopt;
    friend bool operator==(const ProgramUse&, const ProgramUse&) = default;
};

/// A part of the computation that runs on all devices of its mesh at once.
struct Task {
    std::string name;                      ///< no other task of the program has it
    Mesh mesh;                             ///< where it runs; the layouts of its arrays stand on the same devices
    Index picoseconds = 0;                 ///< how long it takes, at least 0
    std::vector<ProgramUse> uses = {};     ///< moved there before it starts
    std::vector<ProgramArray> makes = {};  ///< held from its start on
    /// Arrays whose memory the made arrays take over. The task uses each of them as it was made. Every other
    /// user ends before this task starts.
    std::vector<std::string> donates = {};
    std::vector<std::string> after = {};  ///< names of earlier tasks that end before it starts
    Index scratch_bytes = 0;              ///< held on each device while it runs
    /// Tasks of one engine run one after another on a device; tasks of two engines may run at once.
    std::string engine = "compute";
    friend bool operator==(const Task&, const Task&) = default;
};

/// A limit for the devices of a mesh.
struct ProgramLimit {
    Mesh mesh;        ///< the devices
    Index bytes = 0;  ///< that each of them may hold
    friend bool operator==(const ProgramLimit&, const ProgramLimit&) = default;
};

/// Tasks that could run one by one as they stand. A plain value.
struct Program {
    std::vector<ProgramArray> arrays = {};  ///< there from the beginning
    std::vector<Task> tasks = {};           ///< each after its inputs
    std::vector<ProgramLimit> limits = {};  ///< a device in several meshes keeps the least
    friend bool operator==(const Program&, const Program&) = default;
};

/// Fails with the first fault. Errors: as validate of a mesh or a layout; usage (a name that is empty or used twice, an
/// array or a task that does not exist yet, a negative number, an array that is donated wrongly); mismatch (another
/// type, shape or set of devices); overflow (all times or all bytes together reach 2^58).
[[nodiscard]] Result<void> validate(const Program& program);

}  // namespace reshard
