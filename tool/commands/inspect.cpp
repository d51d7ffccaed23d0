// `reshard inspect`: the tensors of a checkpoint, which file holds what of them, and what each rank gets by rules.
#include <fmt/format.h>

#include <map>
#include <set>

#include "files/formats/safetensors.hpp"
#include "files/wanted.hpp"
#include "report/rank_table.hpp"
#include "report/table.hpp"
#include "reshard/files/checkpoint.hpp"
#include "reshard/planner/cost.hpp"
#include "src/base/printable.hpp"
#include "src/base/try.hpp"
#include "tool/commands/commands.hpp"
#include "tool/commands/list.hpp"
#include "tool/console/exit.hpp"
#include "tool/console/terminal.hpp"
#include "tool/console/text_file.hpp"
#include "tool/request/json.hpp"

namespace reshard::cli {
namespace {

// f32[8,4], or F4[8,64] for elements that are only copied.
std::string array_text(const files::StoredTensor& tensor) {
    if (tensor.type.name.empty()) return fmt::format("{}[{}]", name(tensor.dtype), fmt::join(tensor.shape, ","));
    const auto shape = files::shape_in_elements(tensor.type, tensor.dtype, tensor.shape);
    return fmt::format("{}[{}]", printable(tensor.type.name), fmt::join(shape ? *shape : tensor.shape, ","));
}

Index bytes_of(const files::StoredTensor& tensor) {
    Index bytes = 0;
    for (const files::StoredBox& stored : tensor.boxes) bytes += count(stored.box) * size_of(tensor.dtype);
    return bytes;
}

// The indices at which boxes begin and end in a dimension.
std::vector<Index> cuts_of(const files::StoredTensor& tensor, std::size_t dim) {
    std::set<Index> cuts;
    for (const files::StoredBox& stored : tensor.boxes) {
        cuts.insert(stored.box[dim].begin);
        cuts.insert(stored.box[dim].end);
    }
    return {cuts.begin(), cuts.end()};
}

// 4 x 1 where the boxes of a matrix are cut in four by rows; - where there is one.
std::string cut_text(const files::StoredTensor& tensor) {
    if (tensor.boxes.size() < 2) return "-";
    std::vector<std::size_t> counts;
    for (std::size_t k = 0; k < tensor.shape.size(); ++k) counts.push_back(cuts_of(tensor, k).size() - 1);
    return fmt::format("{}", fmt::join(counts, " x "));
}

std::string state_text(const files::StoredTensor& tensor) {
    const files::Coverage found = files::coverage(tensor);
    if (found.twice) return "overlaps";
    if (found.missing == 0) return "whole";
    return tensor.fill.empty() ? fmt::format("lacks {} elements", found.missing)
                               : fmt::format("{} elements are the fill value", found.missing);
}

std::string head_text(const files::Checkpoint& checkpoint) {
    Index in_files = 0;
    for (const files::StoredFile& file : checkpoint.files) in_files = saturating_add(in_files, file.bytes);
    const std::size_t tensors =
        checkpoint.tensors.size() / static_cast<std::size_t>(std::max<Index>(checkpoint.ranks, 1));
    const std::string codecs = checkpoint.codecs.empty() ? "" : fmt::format(" ({})", checkpoint.codecs);
    return fmt::format("{}{}: {} file{}, {} tensor{}, {}\n", checkpoint.format, codecs, checkpoint.files.size(),
                       checkpoint.files.size() == 1 ? "" : "s", tensors, tensors == 1 ? "" : "s",
                       format_bytes(in_files));
}

// For files of ranks only rules can say what a tensor is. The table shows what each rank has.
std::string ranks_text(const files::Checkpoint& checkpoint) {
    Table table({"tensor", "on a rank", ">bytes of all", ">ranks"});
    const auto ranks = static_cast<std::size_t>(checkpoint.ranks);
    for (std::size_t i = 0; i < checkpoint.tensors.size(); i += ranks) {
        std::vector<std::string> arrays;
        Index bytes = 0;
        std::size_t holders = 0;
        for (std::size_t rank = 0; rank < ranks; ++rank) {
            const files::StoredTensor& own = checkpoint.tensors[i + rank];
            if (own.shape.empty() && own.boxes.empty()) continue;
            ++holders;
            bytes += bytes_of(own);
            const std::string array = array_text(own);
            if (std::ranges::find(arrays, array) == arrays.end()) arrays.push_back(array);
        }
        table.row({checkpoint.tensors[i].name, fmt::format("{}", fmt::join(arrays, " ")), format_bytes(bytes),
                   fmt::format("{}", holders)});
    }
    return table.text(page());
}

std::string tensors_text(const files::Checkpoint& checkpoint) {
    Table table({"tensor", "elements", ">bytes", ">boxes", "cut", "state"});
    for (const files::StoredTensor& tensor : checkpoint.tensors)
        table.row({tensor.name, array_text(tensor), format_bytes(bytes_of(tensor)),
                   fmt::format("{}", tensor.boxes.size()), cut_text(tensor), state_text(tensor)});
    return table.text(page());
}

constexpr Index picture_max = Index{1} << 20;  // boxes times columns

// One line for each cut of all dimensions but the last, one column for each of the last: the numbers of files.
Result<std::string> picture(const files::Checkpoint& checkpoint, const files::StoredTensor& tensor) {
    std::string text = fmt::format("{} {}\n", shortened(tensor.name), shortened(array_text(tensor)));
    std::vector<Table::Column> columns = {{"indices"}};
    const std::size_t rank = tensor.shape.size();
    const std::vector<Index> across = rank > 0 ? cuts_of(tensor, rank - 1) : std::vector<Index>{0, 1};
    if (saturating_multiply(std::ssize(across), std::ssize(tensor.boxes)) > picture_max)
        return fail(Code::unsupported, fmt::format("--tensor: {} boxes are too many to draw", tensor.boxes.size()));
    for (std::size_t i = 0; i + 1 < across.size(); ++i)
        columns.push_back({fmt::format("{}:{}", across[i], across[i + 1]), Table::Align::right});
    std::map<std::vector<std::pair<Index, Index>>, std::vector<std::string>> rows;
    std::set<Index> files;
    for (const files::StoredBox& stored : tensor.boxes) {
        std::vector<std::pair<Index, Index>> key;
        for (std::size_t k = 0; k + 1 < rank; ++k) key.emplace_back(stored.box[k].begin, stored.box[k].end);
        auto& cells = rows[key];
        cells.resize(across.size() - 1);
        for (std::size_t i = 0; i + 1 < across.size(); ++i) {
            const bool held =
                rank == 0 || (stored.box.back().begin <= across[i] && across[i + 1] <= stored.box.back().end);
            if (held) cells[i] += fmt::format("{}{}", cells[i].empty() ? "" : ",", stored.file);
        }
        files.insert(stored.file);
    }
    Table table(std::move(columns));
    for (auto& [key, cells] : rows) {
        std::vector<std::string> sides;
        for (const auto& [begin, end] : key) sides.push_back(fmt::format("{}:{}", begin, end));
        std::vector<std::string> row = {sides.empty() ? "all" : fmt::format("{}", fmt::join(sides, " "))};
        row.insert(row.end(), cells.begin(), cells.end());
        table.row(std::move(row));
    }
    text += table.text(page());
    for (const Index file : files)
        text += fmt::format("{}: {}\n", file, printable(checkpoint.files[static_cast<std::size_t>(file)].path));
    return text;
}

Json as_json(const files::Checkpoint& checkpoint) {
    Json json = {{"schema", 1}, {"format", checkpoint.format}, {"ranks", checkpoint.ranks}};
    if (checkpoint.piece_bytes > 0) json["codecs"] = checkpoint.codecs;
    json["files"] = Json::array();
    for (const files::StoredFile& file : checkpoint.files)
        json["files"].push_back({{"path", file.path}, {"bytes", file.bytes}});
    json["tensors"] = Json::array();
    for (std::size_t i = 0; i < checkpoint.tensors.size(); ++i) {
        const files::StoredTensor& tensor = checkpoint.tensors[i];
        Json one = {{"name", tensor.name}, {"dtype", name(tensor.dtype)}, {"shape", tensor.shape}};
        if (!tensor.type.name.empty()) one["type"] = {{"name", tensor.type.name}, {"bits", tensor.type.bits}};
        one["boxes"] = Json::array();
        for (const files::StoredBox& stored : tensor.boxes) {
            Json box = Json::array();
            for (const Interval& side : stored.box) box.push_back({side.begin, side.end});
            one["boxes"].push_back(
                {{"box", box}, {"file", stored.file}, {"offset", stored.offset}, {"strides", stored.strides}});
        }
        if (checkpoint.ranks > 0) {
            one["rank"] = static_cast<Index>(i) % checkpoint.ranks;
        } else {
            const files::Coverage found = files::coverage(tensor);
            one["missing_elements"] = found.missing;
            one["overlaps"] = found.twice;
        }
        json["tensors"].push_back(std::move(one));
    }
    return json;
}

// The tensors that rules are applied to: of a list, or of a checkpoint.
Result<std::vector<ListedTensor>> listed(const Arguments& arguments) {
    if (arguments.list.empty()) {
        RESHARD_TRY(const auto& checkpoint, files::open_checkpoint(arguments.from));
        return files::list_of(checkpoint);
    }
    RESHARD_TRY(const auto& text, read_list_text(arguments.list));
    return in("--list", parse_tensors(text));
}

Result<int> inspect_ranks(const Arguments& arguments) {
    RESHARD_TRY(const auto& list, listed(arguments));
    RESHARD_TRY(auto& rules, in("--rules", read_text(arguments.rules)));
    RESHARD_TRY(const auto& model, in("--rules", apply_rules(files::with_ends(std::move(rules), ""), list)));
    RESHARD_TRY(const auto& text, in("--tensor", rank_table(model, arguments.tensor, page())));
    return answer(text);
}

}  // namespace

Result<int> inspect(const Arguments& arguments) {
    if (!arguments.rules.empty()) return inspect_ranks(arguments);
    RESHARD_TRY(const auto& checkpoint, files::open_checkpoint(arguments.from));
    if (arguments.json) {
        return answer(line(as_json(checkpoint)));
    }
    if (!arguments.tensor.empty()) {
        const auto found = std::ranges::find(checkpoint.tensors, arguments.tensor, &files::StoredTensor::name);
        if (found == checkpoint.tensors.end() || checkpoint.ranks > 0)
            return fail(Code::usage, found == checkpoint.tensors.end()
                                         ? fmt::format("--tensor: there is no {}", in_quotes(arguments.tensor))
                                         : "--tensor: only rules say where the tiles of ranks are");
        RESHARD_TRY(const auto& text, picture(checkpoint, *found));
        return answer(text);
    }
    answer(head_text(checkpoint));
    return answer(checkpoint.ranks > 0 ? ranks_text(checkpoint) : tensors_text(checkpoint));
}

}  // namespace reshard::cli
