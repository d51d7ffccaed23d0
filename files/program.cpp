#include "reshard/files/program.hpp"

#include <cmath>

#include <fmt/format.h>

#include "files/formats/json_text.hpp"
#include "reshard/text.hpp"
#include "src/base/try.hpp"

namespace reshard::files {
namespace {

constexpr double picoseconds_in_second = 1e12;
constexpr double seconds_max = 200'000;  // validate refuses programs of 2^58 ps

tl::unexpected<Error> wrong(const std::string& field, const char* wanted) {
    return fail(Code::syntax, fmt::format("\"{}\" must be {}", field, wanted));
}

Result<std::string> text_of(const std::string& field, const Json& value) {
    if (!value.is_string()) return wrong(field, "a text");
    return value.get<std::string>();
}
Result<bool> flag_of(const std::string& field, const Json& value) {
    if (!value.is_boolean()) return wrong(field, "true or false");
    return value.get<bool>();
}
Result<Index> seconds_of(const std::string& field, const Json& value) {
    if (!value.is_number()) return wrong(field, "a number of seconds");
    const auto seconds = value.get<double>();
    if (!(seconds >= 0 && seconds <= seconds_max)) return wrong(field, "from 0 to 200000 seconds");
    return static_cast<Index>(std::llround(seconds * picoseconds_in_second));
}
Result<Index> whole_of(const std::string& field, const Json& value) {
    const auto number = whole_number(value);
    if (!number) return wrong(field, "a whole number from 0 on");
    return *number;
}
Result<Index> bytes_of(const std::string& field, const Json& value) {
    if (value.is_string()) return parse_bytes(value.get<std::string>());
    return whole_of(field, value);
}
Result<std::vector<std::string>> names_of(const std::string& field, const Json& value) {
    if (!value.is_array()) return wrong(field, "a list of names");
    std::vector<std::string> names;
    for (const Json& one : value) {
        RESHARD_TRY(auto& name, text_of(field, one));
        names.push_back(std::move(name));
    }
    return names;
}

// Calls `read` for each field, which returns false for a name that it does not know.
template <class Read>
Result<void> each_field(const Json& object, const Read& read) {
    for (const auto& [name, value] : object.items()) {
        RESHARD_TRY(const bool known, read(name, value));
        if (!known) return fail(Code::syntax, fmt::format("unknown field \"{}\"", name));
    }
    return {};
}

// Stores the value of a field and reports it as known.
template <class Value, class Into>
Result<bool> store(Result<Value> value, Into& into) {
    if (!value) return tl::unexpected(std::move(value).error());
    into = std::move(*value);
    return true;
}

// A layout as text, or an object with the layout, its mesh and further fields.
template <class Further>
Result<Layout> layout_of(const std::string& name, const Json& given, const Mesh& mesh, const Further& further) {
    if (given.is_string()) return parse_layout(mesh, given.get<std::string>());
    if (!given.is_object()) return wrong(name, "a layout, or an object with one");
    Mesh own = mesh;
    std::string layout;
    RESHARD_CHECK(each_field(given, [&](const std::string& field, const Json& value) -> Result<bool> {
        if (field == "layout") return store(text_of(field, value), layout);
        if (field != "mesh") return further(field, value);
        RESHARD_TRY(const auto& text, text_of(field, value));
        return store(parse_mesh(text), own);
    }));
    return parse_layout(own, layout);
}

Result<ProgramArray> made_of(const std::string& name, const Json& given, const Mesh& mesh) {
    ProgramArray made{name, {}};
    RESHARD_ASSIGN(made.layout,
                   layout_of(name, given, mesh, [&](const std::string& field, const Json& value) -> Result<bool> {
                       if (field == "kept") return store(flag_of(field, value), made.kept);
                       return false;
                   }));
    return made;
}

Result<ProgramUse> use_of(const std::string& name, const Json& given, const Mesh& mesh) {
    ProgramUse use{name, {}};
    RESHARD_ASSIGN(use.layout,
                   layout_of(name, given, mesh, [&](const std::string& field, const Json& value) -> Result<bool> {
                       if (field == "again") return store(flag_of(field, value), use.again);
                       if (field == "seconds") return store(seconds_of(field, value), use.move_picoseconds);
                       if (field == "pieces") return store(whole_of(field, value), use.pieces_along);
                       if (field == "picoseconds") return store(whole_of(field, value), use.move_picoseconds);
                       return false;
                   }));
    return use;
}

Result<Mesh> mesh_of(const Json& line) {
    if (!line.contains("mesh")) return fail(Code::syntax, "\"mesh\" is missing");
    RESHARD_TRY(const auto& text, text_of("mesh", line["mesh"]));
    return parse_mesh(text);
}

Result<Task> task_of(const Json& line) {
    Task task;
    RESHARD_ASSIGN(task.mesh, mesh_of(line));
    const auto each_array = [&](const std::string& field, const Json& arrays, auto& into,
                                const auto& read) -> Result<bool> {
        if (!arrays.is_object()) return wrong(field, "an object of arrays");
        for (const auto& [name, given] : arrays.items()) {
            for (const Json& one : given.is_array() ? given : Json::array({given})) {
                auto array = read(name, one, task.mesh);
                if (!array) {
                    array.error().message = name + ": " + array.error().message;
                    return tl::unexpected(std::move(array).error());
                }
                into.push_back(std::move(*array));
            }
        }
        return true;
    };
    RESHARD_CHECK(each_field(line, [&](const std::string& field, const Json& value) -> Result<bool> {
        if (field == "task") return store(text_of(field, value), task.name);
        if (field == "mesh") return true;
        if (field == "seconds") return store(seconds_of(field, value), task.picoseconds);
        if (field == "picoseconds") return store(whole_of(field, value), task.picoseconds);
        if (field == "uses") return each_array(field, value, task.uses, use_of);
        if (field == "makes") return each_array(field, value, task.makes, made_of);
        if (field == "donates") return store(names_of(field, value), task.donates);
        if (field == "after") return store(names_of(field, value), task.after);
        if (field == "scratch") return store(bytes_of(field, value), task.scratch_bytes);
        if (field == "engine") return store(text_of(field, value), task.engine);
        return false;
    }));
    return task;
}

Result<ProgramArray> array_of(Json line) {
    RESHARD_TRY(const auto& mesh, mesh_of(line));
    RESHARD_TRY(const auto& name, text_of("array", line["array"]));
    line.erase("array");
    return made_of(name, line, mesh);
}

Result<ProgramLimit> limit_of(const Json& line) {
    ProgramLimit limit;
    RESHARD_ASSIGN(limit.mesh, mesh_of(line));
    RESHARD_ASSIGN(limit.bytes, bytes_of("limit", line["limit"]));
    if (line.size() > 2) return fail(Code::syntax, "a limit has only \"limit\" and \"mesh\"");
    return limit;
}

template <class Value>
Result<void> append(Result<Value> value, std::vector<Value>& into) {
    if (!value) return tl::unexpected(std::move(value).error());
    into.push_back(std::move(*value));
    return {};
}

void set_time(Json& json, Index picoseconds) {
    const double seconds = static_cast<double>(picoseconds) / picoseconds_in_second;
    if (seconds <= seconds_max && std::llround(seconds * picoseconds_in_second) == picoseconds) {
        json["seconds"] = seconds;
    } else {
        json["picoseconds"] = picoseconds;
    }
}

// The text of a layout, with its mesh if the mesh differs from the task's.
Json layout_json(const Layout& layout, const Mesh& mesh) {
    Json json{{"layout", reshard::format(layout)}};
    if (layout.mesh != mesh) json["mesh"] = reshard::format(layout.mesh);
    return json;
}

Json shortest(Json json) { return json.size() == 1 ? json["layout"] : json; }

Json task_json(const Task& task) {
    Json json{{"task", task.name}, {"mesh", reshard::format(task.mesh)}};
    set_time(json, task.picoseconds);
    for (const ProgramUse& use : task.uses) {
        Json one = layout_json(use.layout, task.mesh);
        if (use.again) one["again"] = true;
        if (use.move_picoseconds) set_time(one, *use.move_picoseconds);
        if (use.pieces_along) one["pieces"] = *use.pieces_along;
        Json& uses = json["uses"][use.array];
        if (uses.is_null()) {
            uses = shortest(std::move(one));
        } else {
            if (!uses.is_array()) uses = Json::array({uses});
            uses.push_back(std::move(one));
        }
    }
    for (const ProgramArray& array : task.makes) {
        Json one = layout_json(array.layout, task.mesh);
        if (array.kept) one["kept"] = true;
        json["makes"][array.name] = shortest(std::move(one));
    }
    if (!task.donates.empty()) json["donates"] = task.donates;
    if (!task.after.empty()) json["after"] = task.after;
    if (task.scratch_bytes > 0) json["scratch"] = task.scratch_bytes;
    if (task.engine != "compute") json["engine"] = task.engine;
    return json;
}

}  // namespace

Result<void> add_line(Program& program, std::string_view text) {
    RESHARD_TRY(const Json& line, parse_object(text, "the line"));
    if (line.contains("task")) return append(task_of(line), program.tasks);
    if (line.contains("array")) return append(array_of(line), program.arrays);
    if (line.contains("limit")) return append(limit_of(line), program.limits);
    return fail(Code::syntax, "the line has no \"task\", \"array\" or \"limit\"");
}

Result<Program> parse_program(std::string_view lines) {
    Program program;
    for (std::size_t number = 1; !lines.empty(); ++number) {
        const std::size_t end = std::min(lines.find('\n'), lines.size());
        const std::string_view line = lines.substr(0, end);
        lines.remove_prefix(std::min(end + 1, lines.size()));
        if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
        auto added = add_line(program, line);
        if (added) continue;
        added.error().message = fmt::format("line {}: {}", number, added.error().message);
        return tl::unexpected(std::move(added).error());
    }
    return program;
}

std::string format(const Program& program) {
    std::string text;
    const auto add = [&](const Json& json) {
        text += json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
    };
    for (const ProgramLimit& limit : program.limits)
        add({{"limit", limit.bytes}, {"mesh", reshard::format(limit.mesh)}});
    for (const ProgramArray& array : program.arrays) {
        Json json{{"array", array.name},
                  {"mesh", reshard::format(array.layout.mesh)},
                  {"layout", reshard::format(array.layout)}};
        if (array.kept) json["kept"] = true;
        add(json);
    }
    for (const Task& task : program.tasks) add(task_json(task));
    return text;
}

}  // namespace reshard::files
