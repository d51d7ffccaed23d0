#include "cases/rows.hpp"

#include "support/hlo.hpp"

namespace reshard::test {

namespace {

/// S(0), R, P as PyTorch writes them; nullopt for the strided and other placements.
std::optional<Placement> placement_of(const std::string& text) {
    if (text == "R") return Replicate();
    if (text == "P") return Partial();
    if (text.size() == 4 && text.starts_with("S(") && text[3] == ')')
        return Shard(static_cast<std::size_t>(text[2] - '0'));
    return std::nullopt;
}

std::optional<Layout> layout_of(const Json& placements, const Mesh& mesh, const std::vector<Index>& extents) {
    std::vector<Placement> list;
    for (const Json& entry : placements.list) {
        const auto placement = placement_of(entry.text);
        if (!placement) return std::nullopt;
        list.push_back(*placement);
    }
    const auto made = from_placements(mesh, DType::f32, extents, list);
    return made ? std::optional(*made) : std::nullopt;
}

}  // namespace

std::optional<Problem> problem_of_dtensor(const Json& row) {
    if (row.has("source_order") || row.has("target_order") || row["mesh"].kind != Json::Kind::list) return std::nullopt;
    Mesh mesh;
    std::vector<Index> extents;
    for (const Json& size : row["mesh"].list)
        mesh.axes.push_back({"d" + std::to_string(mesh.axes.size()), static_cast<Index>(size.number)});
    for (const Json& extent : row["shape"].list) extents.push_back(static_cast<Index>(extent.number));
    const auto source = layout_of(row["source"], mesh, extents);
    const auto target = layout_of(row["target"], mesh, extents);
    if (!source || !target) return std::nullopt;
    return Problem{*source, *target};
}

std::optional<Problem> problem_of_xla(const Json& row) {
    std::string word = row["dtype"].text;
    if (word.starts_with("s")) word[0] = 'i';
    const auto dtype = parse_dtype(word);
    if (!dtype) return std::nullopt;
    std::vector<Index> shape;
    for (const Json& extent : row["shape"].list) shape.push_back(static_cast<Index>(extent.number));
    const auto devices = static_cast<Index>(row["devices"].number);
    const auto source = layout_of_hlo(row["source"].text, *dtype, shape, devices);
    const auto target = layout_of_hlo(row["target"].text, *dtype, shape, devices);
    if (!source || !target) return std::nullopt;
    return Problem{*source, *target};
}

}  // namespace reshard::test
