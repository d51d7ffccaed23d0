#include "reshard/program/program.hpp"

#include <map>
#include <set>

#include <fmt/format.h>

#include "reshard/text.hpp"
#include "src/base/try.hpp"

namespace reshard {
namespace {

constexpr Index sum_max = Index{1} << 58;  // of all times, and of all bytes

// Reads a program task by task, and knows what exists so far.
class Reader {
public:
    Result<void> array(const ProgramArray& array) {
        if (array.name.empty()) return fail(Code::usage, "an array has no name");
        RESHARD_CHECK(named(validate(array.layout), array.name));
        if (!arrays_.try_emplace(array.name, &array).second)
            return fail(Code::usage, fmt::format("array {} is made twice", array.name));
        return add(bytes_, tile_bytes(array.layout), "bytes");
    }

    Result<void> task(const Task& task) {
        if (task.name.empty()) return fail(Code::usage, "a task has no name");
        const auto at = [&](Result<void> result) { return named(std::move(result), "task " + task.name); };
        RESHARD_CHECK(at(validate(task.mesh)));
        if (task.picoseconds < 0 || task.scratch_bytes < 0)
            return at(fail(Code::usage, fmt::format("it takes {} ps and {} bytes of scratch; neither may be negative",
                                                    task.picoseconds, task.scratch_bytes)));
        if (task.engine.empty()) return at(fail(Code::usage, "its engine has no name"));
        RESHARD_CHECK(at(add(picoseconds_, task.picoseconds, "picoseconds")));
        RESHARD_CHECK(at(add(bytes_, task.scratch_bytes, "bytes")));
        for (const ProgramUse& use : task.uses) RESHARD_CHECK(at(use_of(task, use)));
        for (const std::string& earlier : task.after)
            if (tasks_.count(earlier) == 0)
                return at(
                    fail(Code::usage, fmt::format("it comes after {}, but no task before it has that name", earlier)));
        for (const std::string& array : task.donates) RESHARD_CHECK(at(donation(task, array)));
        for (const ProgramArray& made : task.makes) {
            RESHARD_CHECK(at(array(made)));
            RESHARD_CHECK(at(on_devices(task, made.layout, made.name)));
        }
        if (!tasks_.insert(task.name).second)
            return fail(Code::usage, fmt::format("two tasks are named {}", task.name));
        return {};
    }

private:
    static Result<void> named(Result<void> result, const std::string& name) {
        if (!result) result.error().message = name + ": " + result.error().message;
        return result;
    }
    static Result<void> add(Index& sum, Index more, const char* unit) {
        sum = saturating_add(sum, more);
        if (sum < sum_max) return {};
        return fail(Code::overflow, fmt::format("all {} of the program together reach 2^58", unit));
    }
    static Result<void> on_devices(const Task& task, const Layout& layout, const std::string& array) {
        if (same_devices(task.mesh, layout.mesh)) return {};
        return fail(Code::mismatch, fmt::format("{} is on mesh {}, the task on mesh {}; the devices must be the same",
                                                array, format(layout.mesh), format(task.mesh)));
    }

    Result<void> use_of(const Task& task, const ProgramUse& use) {
        RESHARD_CHECK(named(validate(use.layout), use.array));
        const auto made = arrays_.find(use.array);
        if (made == arrays_.end())
            return fail(Code::usage, fmt::format("it uses {}, which nothing before it makes", use.array));
        if (donated_.count(use.array) > 0)
            return fail(Code::usage, fmt::format("it uses {}, whose memory was donated before", use.array));
        RESHARD_CHECK(named(same_array(made->second->layout, use.layout), use.array));
        RESHARD_CHECK(on_devices(task, use.layout, use.array));
        if (use.pieces_along && *use.pieces_along >= use.layout.dims.size())
            return fail(Code::usage, fmt::format("it uses {} in pieces along dimension {}; the array has {} dimensions",
                                                 use.array, *use.pieces_along, use.layout.dims.size()));
        const Index time = use.move_picoseconds.value_or(0);
        if (time < 0) return fail(Code::usage, fmt::format("the move of {} takes {} ps", use.array, time));
        RESHARD_CHECK(add(picoseconds_, time, "picoseconds"));
        return add(bytes_, tile_bytes(use.layout), "bytes");
    }

    Result<void> donation(const Task& task, const std::string& array) {
        const auto made = arrays_.find(array);
        bool in_place = false;
        for (const ProgramUse& use : task.uses)
            in_place = in_place ||
                       (use.array == array && made != arrays_.end() && equivalent(made->second->layout, use.layout));
        if (!in_place)
            return fail(Code::usage,
                        fmt::format("it donates {}, but does not use it in the layout in which it was made", array));
        if (made->second->kept) return fail(Code::usage, fmt::format("it donates {}, which is kept to the end", array));
        if (!donated_.insert(array).second) return fail(Code::usage, fmt::format("it donates {} twice", array));
        return {};
    }

    std::map<std::string, const ProgramArray*> arrays_;
    std::set<std::string> tasks_;
    std::set<std::string> donated_;
    Index picoseconds_ = 0;
    Index bytes_ = 0;
};

}  // namespace

Result<void> validate(const Program& program) {
    Reader reader;
    for (const ProgramArray& array : program.arrays) RESHARD_CHECK(reader.array(array));
    for (const Task& task : program.tasks) RESHARD_CHECK(reader.task(task));
    for (const ProgramLimit& limit : program.limits) {
        RESHARD_CHECK(validate(limit.mesh));
        if (limit.bytes < 0) return fail(Code::usage, fmt::format("a limit of {} bytes is negative", limit.bytes));
    }
    return {};
}

}  // namespace reshard
