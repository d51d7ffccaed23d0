// The text of a draft: in our own notation, and in the other notations by their own rules.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "meaning/holders.hpp"

namespace reshard::test {

namespace {

bool whole(const DraftMesh& mesh, const Part& part) { return part.size == mesh.sizes[part.axis]; }

std::string part_text(const DraftMesh& mesh, const Part& part) {
    const char name = mesh.names[part.axis];
    if (whole(mesh, part)) return std::string(1, name);
    return fmt::format("{}:({}){}", name, part.before, part.size);
}

std::string axes_text(const DraftMesh& mesh, const std::vector<Part>& parts) {
    if (parts.size() == 1) return part_text(mesh, parts.front());
    std::vector<std::string> texts;
    for (const Part& part : parts) texts.push_back(part_text(mesh, part));
    return fmt::format("({})", fmt::join(texts, ","));
}

std::string cut_text(const Cut& cut) {
    if (cut.kind == Cut::Kind::blocks) return fmt::format("/{}", cut.block);
    if (cut.kind == Cut::Kind::balanced) return "[balanced]";
    if (cut.kind == Cut::Kind::shares) return fmt::format("[{}]", fmt::join(cut.shares, ","));
    if (cut.kind != Cut::Kind::pieces) return "";
    std::vector<std::string> texts;
    for (const auto& [end, shard] : cut.pieces) texts.push_back(fmt::format("{}:{}", end, shard));
    return fmt::format("[{}]", fmt::join(texts, ","));
}

std::string array_text(DType dtype, const End& end) {
    std::vector<Index> extents;
    for (const DraftDim& dim : end.dims) extents.push_back(dim.extent);
    return fmt::format("{}[{}]", name(dtype), fmt::join(extents, ","));
}

bool all_whole(const End& end) {
    const auto is_whole = [&](const Part& part) { return whole(end.mesh, part); };
    return std::ranges::all_of(end.unreduced, is_whole) &&
           std::ranges::all_of(end.dims, [&](const DraftDim& dim) { return std::ranges::all_of(dim.parts, is_whole); });
}

/// True if the devices are 0, 1, ... in some order, or not listed.
bool permuted(const DraftMesh& mesh) { return !mesh.devices || std::ranges::max(*mesh.devices) + 1 == positions(mesh); }

bool ascending(const DraftMesh& mesh) { return !mesh.devices || std::ranges::is_sorted(*mesh.devices); }

std::optional<std::string> spec_text(const End& end) {
    if (!all_whole(end) || (!end.unreduced.empty() && end.reduction != Reduction::sum)) return std::nullopt;
    const auto quoted = [&](const std::vector<Part>& parts) {
        std::vector<std::string> texts;
        for (const Part& part : parts) texts.push_back(fmt::format("'{}'", end.mesh.names[part.axis]));
        return fmt::format("{}", fmt::join(texts, ", "));
    };
    std::vector<std::string> items;
    for (const DraftDim& dim : end.dims)
        items.push_back(dim.parts.empty()       ? "None"
                        : dim.parts.size() == 1 ? quoted(dim.parts)
                                                : "(" + quoted(dim.parts) + ")");
    if (!end.unreduced.empty()) items.push_back("unreduced={" + quoted(end.unreduced) + "}");
    return fmt::format("P({})", fmt::join(items, ", "));
}

/// Writes consecutive parts of one axis as one part, as sdy and HLO require.
std::string named_axes(const DraftMesh& mesh, const std::vector<Part>& parts, char quote) {
    std::vector<Part> merged;
    for (const Part& part : parts) {
        if (!merged.empty() && merged.back().axis == part.axis &&
            merged.back().before * merged.back().size == part.before)
            merged.back().size *= part.size;
        else
            merged.push_back(part);
    }
    std::vector<std::string> texts;
    for (const Part& part : merged) {
        const std::string tail = whole(mesh, part) ? "" : fmt::format(":({}){}", part.before, part.size);
        texts.push_back(fmt::format("{}{}{}{}", quote, mesh.names[part.axis], quote, tail));
    }
    return fmt::format("{{{}}}", fmt::join(texts, ", "));
}

/// The two notations with axes write the same sets in different brackets.
std::optional<std::string> named_text(const End& end, bool hlo) {
    const DraftMesh& mesh = end.mesh;
    const bool sayable = end.unreduced.empty() || end.reduction == Reduction::sum || end.reduction == Reduction::max ||
                         end.reduction == Reduction::min;
    if (!sayable || !permuted(mesh) || mesh.sizes.empty()) return std::nullopt;
    const char quote = hlo ? '\'' : '"';
    std::vector<std::string> axes;
    for (std::size_t i = 0; i < mesh.sizes.size(); ++i)
        axes.push_back(fmt::format("{}{}{}={}", quote, mesh.names[i], quote, mesh.sizes[i]));
    std::string text = fmt::format("[{}]", fmt::join(axes, ","));
    if (!ascending(mesh))
        text += fmt::format(", device_ids={}{}{}", hlo ? "(" : "[", fmt::join(*mesh.devices, ","), hlo ? ")" : "]");
    std::vector<std::string> dims;
    for (const DraftDim& dim : end.dims) dims.push_back(named_axes(mesh, dim.parts, quote));
    text += fmt::format("{}, [{}]", hlo ? "" : ">", fmt::join(dims, ", "));
    if (!end.unreduced.empty())
        text += fmt::format(", unreduced={}{}", end.reduction == Reduction::sum ? "" : name(end.reduction),
                            named_axes(mesh, summing_parts(end), quote));
    return hlo ? "{mesh" + text + "}" : "#sdy.sharding<mesh<" + text + ">";
}

/// Tile number t, row-major over dimensions, summands and replicas, is on the t-th device of the list.
std::optional<std::string> tiled_text(const End& end) {
    if (!permuted(end.mesh) || (!end.unreduced.empty() && end.reduction != Reduction::sum)) return std::nullopt;
    std::vector<Index> tiles;
    for (const DraftDim& dim : end.dims) tiles.push_back(shards(dim));
    const Index parts = summands(end);
    Index replicas = positions(end.mesh) / parts;
    for (const Index tile : tiles) replicas /= tile;
    std::vector<Index> devices(static_cast<std::size_t>(positions(end.mesh)));
    std::vector<Index> met(devices.size(), 0);  // replicas of each tile so far
    for (Index position = 0; position < positions(end.mesh); ++position) {
        Index tile = 0;
        for (const DraftDim& dim : end.dims) tile = tile * shards(dim) + number_on(end.mesh, dim.parts, position);
        tile = tile * parts + number_on(end.mesh, summing_parts(end), position);
        const Index place = tile * replicas + met[static_cast<std::size_t>(tile)]++;
        devices[static_cast<std::size_t>(place)] = device_of(end.mesh, position);
    }
    std::vector<std::string> groups;
    if (parts > 1) groups.emplace_back("unreduced"), tiles.push_back(parts);
    if (replicas > 1) groups.emplace_back("replicated"), tiles.push_back(replicas);
    if (tiles.empty()) return std::nullopt;
    const std::string tail = groups.empty() ? "" : fmt::format(" last_tile_dims={{{}}}", fmt::join(groups, ", "));
    return fmt::format("{{devices=[{}]{}{}}}", fmt::join(tiles, ","), fmt::join(devices, ","), tail);
}

std::optional<std::string> placements_text(const End& end) {
    if (!all_whole(end)) return std::nullopt;
    if (end.mesh.sizes.empty() && end.mesh.devices) return std::nullopt;  // there [3] is a mesh of three devices
    std::vector<std::string> words(end.mesh.sizes.size(), "Replicate()");
    for (std::size_t d = 0; d < end.dims.size(); ++d) {
        const DraftDim& dim = end.dims[d];
        for (std::size_t i = 0; i < dim.parts.size(); ++i) {
            // Axes that are more major in the dimension but later in the mesh give the strides before this one.
            Index split = 1;
            for (std::size_t j = 0; j < i; ++j)
                if (dim.parts[j].axis > dim.parts[i].axis) split *= dim.parts[j].size;
            if (split > 1 && dim.extent % shards(dim) != 0) return std::nullopt;
            words[dim.parts[i].axis] =
                split == 1 ? fmt::format("Shard(dim={})", d) : fmt::format("_StridedShard(dim={}, sf={})", d, split);
        }
    }
    const std::string_view kind = end.reduction == Reduction::prod ? "product" : name(end.reduction);
    for (const Part& part : end.unreduced) words[part.axis] = fmt::format("Partial({})", kind);
    return fmt::format("({}{})", fmt::join(words, ", "), words.size() == 1 ? "," : "");
}

std::string quoted_for_shell(const std::string& text) {
    if (text.find('\n') == std::string::npos) return "'" + text + "'";  // no text has both a quote and an end of line
    std::string out = "$'";
    for (const char c : text) out += c == '\n' ? std::string("\\n") : std::string(1, c);
    return out + "'";
}

}  // namespace

std::string mesh_text(const DraftMesh& mesh) {
    std::vector<std::string> axes;
    for (std::size_t i = 0; i < mesh.sizes.size(); ++i)
        axes.push_back(fmt::format("{}={}", mesh.names[i], mesh.sizes[i]));
    std::string text = fmt::format("{}", fmt::join(axes, ","));
    if (mesh.devices) text += fmt::format("[{}]", fmt::join(*mesh.devices, ","));
    return text;
}

std::string layout_text(DType dtype, const End& end) {
    std::vector<std::string> dims;
    for (const DraftDim& dim : end.dims) {
        const std::string axes = dim.parts.empty() ? "" : "@" + axes_text(end.mesh, dim.parts) + cut_text(dim.cut);
        dims.push_back(fmt::format("{}{}", dim.extent, axes));
    }
    std::string text = fmt::format("{}[{}]", name(dtype), fmt::join(dims, ","));
    if (end.unreduced.empty()) return text;
    const std::string_view word = end.reduction == Reduction::sum ? "U" : name(end.reduction);
    return text + fmt::format("{{{}:{}}}", word, axes_text(end.mesh, end.unreduced));
}

std::optional<std::string> foreign_text(const Draft& draft, const End& end) {
    switch (draft.notation) {
        case Notation::spec:
            return spec_text(end);
        case Notation::sdy:
            return named_text(end, false);
        case Notation::hlo:
            return draft.named ? named_text(end, true) : tiled_text(end);
        case Notation::dtensor:
            return placements_text(end);
        case Notation::jax:
            break;
    }
    return std::nullopt;
}

cli::Question question_of(const Draft& draft) {
    cli::Question question;
    const bool own = draft.notation == Notation::jax;
    const bool brings_mesh = draft.notation == Notation::sdy || draft.notation == Notation::hlo;
    if (!brings_mesh) question.mesh = mesh_text(draft.source.mesh);
    if (!brings_mesh && draft.target.mesh != draft.source.mesh) question.target_mesh = mesh_text(draft.target.mesh);
    question.source = own ? layout_text(draft.dtype, draft.source) : foreign_text(draft, draft.source).value();
    question.target = own ? layout_text(draft.dtype, draft.target) : foreign_text(draft, draft.target).value();
    if (!own) {
        question.notation = name(draft.notation);
        question.array = array_text(draft.dtype, draft.source);
        const std::string target_array = array_text(draft.dtype, draft.target);
        if (target_array != *question.array) question.target_array = target_array;
    }
    if (draft.vocabulary != Vocabulary::all) question.vocabulary = name(draft.vocabulary);
    if (draft.objective != Objective::time) question.objective = name(draft.objective);
    if (!draft.machine.empty()) question.machine = draft.machine;
    const Index world = world_of(draft);
    const Index source = largest_tile(holders(draft.source, world)) * size_of(draft.dtype);
    const Index target = largest_tile(holders(draft.target, world)) * size_of(draft.dtype);
    const auto part = [](Index bytes, double factor) {
        return std::to_string(static_cast<Index>(static_cast<double>(bytes) * factor));
    };
    if (draft.peak) question.peak_bytes_max = part(std::max(source, target), *draft.peak);
    if (draft.footprint) question.footprint_bytes_max = part(source + target, *draft.footprint);
    question.donate = draft.donate;
    return question;
}

std::vector<std::string> arguments_of(const cli::Question& question, const std::string& command) {
    std::vector<std::string> words = {command};
    const auto add = [&](const char* option, const std::optional<std::string>& value) {
        if (value) words.insert(words.end(), {option, *value});
    };
    if (!question.mesh.empty() || question.target_mesh) add("--mesh", question.mesh);
    add("--target-mesh", question.target_mesh);
    words.insert(words.end(), {question.source, question.target});
    add("--notation", question.notation);
    add("--array", question.array);
    add("--target-array", question.target_array);
    add("--vocabulary", question.vocabulary);
    add("--objective", question.objective);
    add("--machine", question.machine);
    add("--peak-bytes-max", question.peak_bytes_max);
    add("--footprint-bytes-max", question.footprint_bytes_max);
    if (question.donate) words.emplace_back("--donate");
    return words;
}

std::string command_line(const cli::Question& question, const std::string& command) {
    std::string line = "reshard";
    for (const std::string& word : arguments_of(question, command)) {
        const bool plain = word.find_first_not_of("abcdefghijklmnopqrstuvwxyz_-0123456789") == std::string::npos;
        // PartitionSpecs and HLO quote with ', which a shell accepts only within ".
        const bool single = word.find('\'') != std::string::npos;
        line += " " + (plain && !word.empty() ? word : single ? "\"" + word + "\"" : quoted_for_shell(word));
    }
    return line;
}

std::string problem_line(const cli::Question& question) {
    const auto escaped = [](const std::string& text) {
        std::string out;
        for (const char c : text) {
            if (c == '"' || c == '\\') out += '\\';
            out += c == '\n' ? "\\n" : std::string(1, c);
        }
        return "\"" + out + "\"";
    };
    std::string line = fmt::format("{{\"mesh\":{},\"source\":{},\"target\":{}", escaped(question.mesh),
                                   escaped(question.source), escaped(question.target));
    const auto add = [&](const char* field, const std::optional<std::string>& value, std::string& into) {
        if (value) into += fmt::format(",\"{}\":{}", field, escaped(*value));
    };
    add("target_mesh", question.target_mesh, line);
    add("notation", question.notation, line);
    add("array", question.array, line);
    add("target_array", question.target_array, line);
    std::string options;
    add("vocabulary", question.vocabulary, options);
    add("objective", question.objective, options);
    add("machine", question.machine, options);
    add("peak_bytes_max", question.peak_bytes_max, options);
    add("footprint_bytes_max", question.footprint_bytes_max, options);
    options += fmt::format(",\"donate\":{}", question.donate);
    return line + ",\"options\":{" + options.substr(1) + "}}";
}

}  // namespace reshard::test
