#include "files/wanted.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <thread>
#include <tuple>

#include <fmt/ranges.h>

#include "files/base/cast.hpp"
#include "files/engine/stored_view.hpp"
#include "files/formats/formats.hpp"
#include "files/formats/json_text.hpp"
#include "files/formats/safetensors.hpp"
#include "src/base/try.hpp"
#include "src/model/rules/name_pattern.hpp"
#include "src/model/rules/rule_ends.hpp"
#include "src/tables/dtypes.hpp"

namespace reshard::files {

namespace {

// The types that are cast to each other, as a list in words.
std::string castable() {
    std::vector<std::string_view> names;
    for (const tables::DTypeRow& row : tables::dtypes)
        if (can_cast(row.dtype, DType::f32) || row.dtype == DType::f32) names.push_back(row.name);
    const std::string_view last = names.back();
    names.pop_back();
    return fmt::format("{} and {}", fmt::join(names, ", "), last);
}

Result<DType> cast_of(const std::string& name, DType dtype, std::span<const Cast> casts) {
    if (tables::row(dtype).kind != tables::Kind::floating) return dtype;
    for (const Cast& cast : casts) {
        notation::Scanner scanner(cast.pattern);
        RESHARD_TRY(const auto& pattern, notation::NamePattern::scan(scanner));
        RESHARD_CHECK(scanner.expect_end());
        notation::Bindings bindings;
        if (pattern.match(name, bindings)) return cast.dtype;
    }
    return dtype;
}

// Files cast fewer types than rules.
Result<void> check_cast(const ListedTensor& source, const NewTensor& target) {
    if (source.dtype == target.dtype || can_cast(source.dtype, target.dtype)) return {};
    return fail(Code::unsupported,
                fmt::format("{} is {} and cannot be cast to {}; {} can be cast to each other", in_quotes(source.name),
                            reshard::name(source.dtype), reshard::name(target.dtype), castable()));
}

Result<void> covered(const StoredTensor& tensor) {
    const Coverage found = coverage(tensor);
    if (found.twice)
        return fail(Code::io, fmt::format("{} has elements that are in two places", in_quotes(tensor.name)));
    if (found.missing == 0 || !tensor.fill.empty()) return {};
    return fail(Code::io, fmt::format("{} lacks {} of its elements", in_quotes(tensor.name), found.missing));
}

// The box of a part, and the shape around the box. An empty shape is the tensor's own.
std::pair<Box, std::vector<Index>> box_of(const TensorPart& part, const std::vector<Index>& own) {
    if (!part.box) return {whole_box(own), {}};
    std::vector<Index> view = shape(*part.layout);
    if (view == own) view.clear();
    return {*part.box, std::move(view)};
}

// Moves from a view get a tensor of their own, which has the same bytes in that view.
void add_views(Job& job) {
    std::map<std::pair<std::size_t, std::vector<Index>>, std::size_t> known;
    for (Move& move : job.moves) {
        if (move.source_view.empty()) continue;
        const auto [found, fresh] = known.emplace(std::pair(move.source, move.source_view), job.source.tensors.size());
        if (fresh) job.source.tensors.push_back(in_view(job.source.tensors[move.source], move.source_view));
        move.source = found->second;
        move.source_view.clear();
    }
}

}  // namespace

Result<Cast> parse_cast(std::string_view text) {
    const std::size_t equals = text.rfind('=');
    const bool all = equals == std::string_view::npos;
    RESHARD_TRY(const auto& dtype, parse_dtype(all ? text : text.substr(equals + 1)));
    return Cast{all ? "*" : std::string(text.substr(0, equals)), dtype};
}

Result<void> sensible(const ConvertOptions& options) {
    constexpr Index jobs_max = 1024;
    if (options.granule < 1 || options.file_bytes_max < 1)
        return fail(Code::usage, "a granule and a file have at least one byte");
    if (options.jobs < 0 || options.jobs > jobs_max)
        return fail(Code::usage, fmt::format("{} jobs; 0 to {} are wanted", options.jobs, jobs_max));
    if (options.memory < 0)
        return fail(Code::usage, fmt::format("{} bytes of memory; at least 0 are wanted", options.memory));
    return {};
}

Result<NewPath> new_path(const std::string& given) {
    std::string to = given;
    while (to.size() > 1 && to.back() == '/') to.pop_back();
    std::string file = std::filesystem::path(to).filename().string();
    if (!is_plain_name(file)) return fail(Code::usage, fmt::format("'{}' names no file or folder", given));
    return NewPath{std::move(to), std::move(file)};
}

namespace {

constexpr std::string_view whole_source = "\nsource file=1\notherwise = -\n";

// True if the line begins an end. `source = [x]` is the layout of a tensor with that name.
bool begins_end(std::string_view line, std::string_view word) {
    const std::size_t behind = says_end(line, word) ? line.find_first_not_of(" \t", line.find(word) + word.size()) : 0;
    return behind > 0 && behind < line.size() && line[behind] != '=';
}

// The rules for sources that are whole, as joined files are. The other lines keep their numbers.
std::string with_whole_source(std::string_view rules) {
    std::string made;
    bool keeps = true;
    while (!rules.empty()) {
        const std::size_t size = std::min(rules.find('\n'), rules.size());
        const std::string_view line = rules.substr(0, size);
        rules.remove_prefix(std::min(size + 1, rules.size()));
        if (begins_end(line, "source")) keeps = false;
        if (begins_end(line, "target")) keeps = true;
        if (keeps) made += line;
        made += '\n';
    }
    return made += whole_source;
}

}  // namespace

std::string with_ends(std::string rules, std::string_view target) {
    if (!says_end(rules, "source")) rules += whole_source;
    if (!target.empty() && !says_end(rules, "target")) rules += fmt::format("\ntarget {}\notherwise = -\n", target);
    return rules;
}

std::string with_ends(std::string rules, Form form) {
    return with_ends(std::move(rules), format_of(form).whole ? "file=1" : "");
}

Result<Wanted> wanted_of(const std::string& rules, std::span<const ListedTensor> list, std::span<const Cast> casts) {
    RESHARD_TRY(auto& model, apply_rules(rules, list));
    Wanted wanted;
    for (const ShardedTensor& target : model.targets) {
        RESHARD_TRY(const auto& dtype, cast_of(target.name, target.layout->dtype, casts));
        wanted.targets.push_back({target.name, dtype, target.shape, target.layout, {}, target.padded});
    }
    for (std::size_t i = 0; i < model.moves.size(); ++i) {
        Move move{model.ends[i].source, model.ends[i].target, {}, {}, {}};
        RESHARD_CHECK(check_cast(list[move.source], wanted.targets[move.target]));
        const PartProblem& parts = model.moves[i];
        std::tie(move.from, move.source_view) = box_of(parts.source, list[move.source].shape);
        std::tie(move.to, move.target_view) = box_of(parts.target, wanted.targets[move.target].shape);
        auto dims = match_dims(move.from, move.to, parts.source.order);
        if (!dims)
            return fail(Code::mismatch,
                        fmt::format("{} and the part of {} that it becomes differ in shape",
                                    in_quotes(list[move.source].name), in_quotes(wanted.targets[move.target].name)));
        move.source_dims = *std::move(dims);
        wanted.moves.push_back(std::move(move));
    }
    wanted.sources = std::move(model.sources);
    wanted.parts = std::move(model.moves);
    return wanted;
}

Result<OpenedSource> open_source(const std::string& path, const std::string& rules, const ConvertOptions& options) {
    OpenedSource opened;
    RESHARD_ASSIGN(opened.source, open_checkpoint(path));
    RESHARD_ASSIGN(opened.source, joined(std::move(opened.source), rules, options.list));
    RESHARD_TRY(const auto& list, list_of(opened.source));
    const bool whole = rules.find(whole_source) != std::string::npos;
    if (!whole) RESHARD_CHECK(place_sources(rules, list));  // the lines of the source are right
    RESHARD_ASSIGN(opened.wanted, wanted_of(whole ? rules : with_whole_source(rules), list, options.casts));
    RESHARD_CHECK(keep_types(opened, options.casts));
    std::vector<bool> used(opened.source.tensors.size(), false);
    for (const Move& move : opened.wanted.moves) used[move.source] = true;
    for (std::size_t i = 0; i < used.size(); ++i)
        if (used[i]) RESHARD_CHECK(covered(opened.source.tensors[i]));
    return opened;
}

void complete(Job& job, const ConvertOptions& options) {
    job.first_move.clear();
    for (std::size_t i = 0; i < job.moves.size(); ++i)
        while (job.first_move.size() <= job.moves[i].target) job.first_move.push_back(i);
    while (job.first_move.size() <= job.target.what.tensors.size()) job.first_move.push_back(job.moves.size());
    add_views(job);
    for (const StoredTensor& tensor : job.source.tensors) job.source_boxes.emplace_back(tensor);
    for (const StoredTensor& tensor : job.target.what.tensors) job.target_boxes.emplace_back(tensor);
    job.granule = options.granule;
    const auto processors = static_cast<Index>(std::thread::hardware_concurrency());
    job.workers = options.jobs > 0 ? options.jobs : std::clamp<Index>(processors, 1, 8);
}

}  // namespace reshard::files
