// A tile program as a StableHLO module: what one replica does.
#include <algorithm>

#include <fmt/ranges.h>

#include "src/base/try.hpp"
#include "src/emit/text.hpp"
#include "src/tables/dtypes.hpp"

namespace reshard {

namespace {

// A small number as a literal of the type.
std::string literal(DType dtype, Index number) {
    if (is_complex(dtype)) return fmt::format("({}.0, 0.0)", number);
    if (tables::row(dtype).kind == tables::Kind::floating) return fmt::format("{}.0", number);
    if (dtype == DType::boolean) return number != 0 ? "true" : "false";
    return fmt::format("{}", number);
}

// The neutral element of max and min: infinities of floats by their bits, else the ends of the range.
std::string extreme(DType dtype, bool lowest) {
    const tables::DTypeRow& row = tables::row(dtype);
    const Index bits = 8 * row.bytes;
    if (dtype == DType::boolean) return lowest ? "false" : "true";
    if (row.kind == tables::Kind::floating) {
        const auto mantissa = static_cast<std::uint64_t>(row.mantissa);
        const std::uint64_t infinity = ((std::uint64_t{1} << (static_cast<std::uint64_t>(bits) - 1 - mantissa)) - 1)
                                       << mantissa;
        const std::uint64_t sign = lowest ? std::uint64_t{1} << (bits - 1) : 0;
        return fmt::format("0x{:0{}X}", sign | infinity, bits / 4);
    }
    const std::uint64_t half = std::uint64_t{1} << (bits - 1);
    if (row.kind == tables::Kind::unsigned_integer) return lowest ? "0" : fmt::format("{}", half - 1 + half);
    return lowest ? fmt::format("-{}", half) : fmt::format("{}", half - 1);
}

std::string neutral(DType dtype, Combine combine) {
    if (combine == Combine::max) return extreme(dtype, true);
    if (combine == Combine::min) return extreme(dtype, false);
    return literal(dtype, combine == Combine::prod ? 1 : 0);
}

std::string_view op_name(Combine combine) {
    return combine == Combine::max    ? "maximum"
           : combine == Combine::min  ? "minimum"
           : combine == Combine::prod ? "multiply"
                                      : "add";
}

class StableHloText {
public:
    explicit StableHloText(const TileProgram& program) : program_(program), dtype_(program.source.dtype) {}

    std::string text() {
        const std::string source = type(extents_of(program_.source));
        std::string held = "%tile";
        for (const Operation& operation : program_.operations) held = add(operation, held);
        const std::string target = type(extents_of(program_.target));
        return fmt::format(
            "// {}.\n// What one replica does with its tile; replica i stands at position i of the mesh. Written by "
            "`reshard emit --to stablehlo`.\n"
            "module @reshard attributes {{mhlo.num_partitions = 1 : i32, mhlo.num_replicas = {} : i32}} {{\n"
            "  func.func public @main(%tile: {}) -> {} {{\n{}    return {} : {}\n  }}\n}}\n",
            headline(program_), device_count(program_.source), source, target, body_, held, target);
    }

private:
    std::string type(const std::vector<Index>& shape) const {
        return fmt::format("tensor<{}{}{}>", fmt::join(shape, "x"), shape.empty() ? "" : "x",
                           tables::row(dtype_).stablehlo);
    }

    std::string value(std::string text) {
        std::string made = fmt::format("%{}", count_++);
        body_ += fmt::format("    {} = {}\n", made, text);
        return made;
    }

    std::string signature(const Operation& operation) const {
        return fmt::format("({}) -> {}", type(operation.input), type(operation.output));
    }

    // dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>
    static std::string table(const std::vector<std::vector<Index>>& rows) {
        std::vector<std::string> all;
        for (const auto& row : rows) all.push_back(fmt::format("[{}]", listed(row)));
        return fmt::format("dense<[{}]> : tensor<{}x{}xi64>", fmt::join(all, ", "), rows.size(), rows[0].size());
    }

    // The combiner of two elements, as the region of an operation.
    std::string combiner(Combine combine) const {
        const std::string_view element = tables::row(dtype_).stablehlo;
        return fmt::format(
            "({{\n    ^bb0(%a: tensor<{0}>, %b: tensor<{0}>):\n      %c = stablehlo.{1} %a, %b : tensor<{0}>\n"
            "      stablehlo.return %c : tensor<{0}>\n    }})",
            element, op_name(combine));
    }

    std::string collective(const Operation& operation, const std::string& held, std::string_view attributes,
                           const std::string& region = "") {
        return value(fmt::format("\"stablehlo.{}\"({}) {}{}{{{}replica_groups = {}}} : {}", name(operation.kind), held,
                                 region, region.empty() ? "" : " ", attributes, table(operation.groups),
                                 signature(operation)));
    }

    std::string replica() {
        if (replica_.empty()) replica_ = value("stablehlo.replica_id : tensor<ui32>");
        return replica_;
    }

    std::vector<std::string> starts(const Operation& operation) {
        std::vector<std::string> all;
        for (std::size_t dim = 0; dim < operation.input.size(); ++dim) {
            std::vector<Index> column;
            for (const auto& start : operation.starts) column.push_back(start[dim]);
            if (std::ranges::count(column, 0) == static_cast<Index>(column.size())) {
                all.push_back(value("stablehlo.constant dense<0> : tensor<i64>"));
                continue;
            }
            const std::string at = replica();
            const std::string table_type = fmt::format("tensor<{}xi64>", column.size());
            const std::string table =
                value(fmt::format("stablehlo.constant dense<[{}]> : {}", listed(column), table_type));
            const std::string own =
                value(fmt::format("stablehlo.dynamic_slice {}, {}, sizes = [1] : ({}, tensor<ui32>) -> tensor<1xi64>",
                                  table, at, table_type));
            all.push_back(value(fmt::format("stablehlo.reshape {} : (tensor<1xi64>) -> tensor<i64>", own)));
        }
        return all;
    }

    static std::string index_types(std::size_t count) {
        std::string text;
        for (std::size_t i = 0; i < count; ++i) text += ", tensor<i64>";
        return text;
    }

    std::string filled(const std::vector<Index>& shape, Combine combine) {
        return value(fmt::format("stablehlo.constant dense<{}> : {}", neutral(dtype_, combine), type(shape)));
    }

    std::string masked(const Operation& operation, const std::string& held) {
        std::vector<std::string> keeps;
        for (Index position = 0; position < device_count(program_.source); ++position)
            keeps.push_back(std::ranges::binary_search(operation.keeps, position) ? "true" : "false");
        const std::string at = replica();
        const std::string type_of_table = fmt::format("tensor<{}xi1>", keeps.size());
        const std::string table =
            value(fmt::format("stablehlo.constant dense<[{}]> : {}", fmt::join(keeps, ", "), type_of_table));
        const std::string own =
            value(fmt::format("stablehlo.dynamic_slice {}, {}, sizes = [1] : ({}, tensor<ui32>) -> tensor<1xi1>", table,
                              at, type_of_table));
        const std::string keep = value(fmt::format("stablehlo.reshape {} : (tensor<1xi1>) -> tensor<i1>", own));
        const std::string fill = filled(operation.output, operation.combine);
        return value(
            fmt::format("stablehlo.select {}, {}, {} : tensor<i1>, {}", keep, held, fill, type(operation.output)));
    }

    std::string scaled(const Operation& operation, std::string held) {
        const std::string shape = type(operation.output);
        const auto by = [&](std::string_view what, Index factor) {
            if (factor == 1) return;
            const std::string number =
                value(fmt::format("stablehlo.constant dense<{}> : {}", literal(dtype_, factor), shape));
            held = value(fmt::format("stablehlo.{} {}, {} : {}", what, held, number, shape));
        };
        by("multiply", operation.factor.times);
        by("divide", operation.factor.over);
        return held;
    }

    std::string reordered(const Operation& operation, const std::string& held) {
        std::vector<std::string> parts;
        std::vector<std::string> types;
        for (const Interval& run : operation.runs) {
            std::vector<Index> shape = operation.input;
            shape[1] = run.size();
            std::vector<std::string> bounds;
            for (std::size_t dim = 0; dim < shape.size(); ++dim)
                bounds.push_back(dim == 1 ? fmt::format("{}:{}", run.begin, run.end)
                                          : fmt::format("0:{}", operation.input[dim]));
            types.push_back(type(shape));
            parts.push_back(value(fmt::format("stablehlo.slice {} [{}] : ({}) -> {}", held, fmt::join(bounds, ", "),
                                              type(operation.input), types.back())));
        }
        return value(fmt::format("stablehlo.concatenate {}, dim = 1 : ({}) -> {}", fmt::join(parts, ", "),
                                 fmt::join(types, ", "), type(operation.output)));
    }

    std::string add(const Operation& operation, const std::string& held) {
        switch (operation.kind) {
            case OperationKind::reshape:
                return value(fmt::format("stablehlo.reshape {} : {}", held, signature(operation)));
            case OperationKind::transpose:
                return value(fmt::format("stablehlo.transpose {}, dims = [{}] : {}", held,
                                         fmt::join(operation.permutation, ", "), signature(operation)));
            case OperationKind::reorder:
                return reordered(operation, held);
            case OperationKind::slice: {
                const auto at = starts(operation);
                return value(fmt::format("stablehlo.dynamic_slice {}, {}, sizes = [{}] : ({}{}) -> {}", held,
                                         fmt::join(at, ", "), listed(operation.output), type(operation.input),
                                         index_types(at.size()), type(operation.output)));
            }
            case OperationKind::update_slice: {
                const std::string fill = filled(operation.output, operation.combine);
                const auto at = starts(operation);
                return value(fmt::format("stablehlo.dynamic_update_slice {}, {}, {} : ({}, {}{}) -> {}", fill, held,
                                         fmt::join(at, ", "), type(operation.output), type(operation.input),
                                         index_types(at.size()), type(operation.output)));
            }
            case OperationKind::mask:
                return masked(operation, held);
            case OperationKind::scale:
                return scaled(operation, held);
            case OperationKind::cast: {
                const std::string before = type(operation.input);
                dtype_ = operation.dtype;
                return value(fmt::format("stablehlo.convert {} : ({}) -> {}", held, before, type(operation.output)));
            }
            case OperationKind::reduce: {
                const std::string start = filled({}, operation.combine);
                return value(fmt::format(
                    "stablehlo.reduce({} init: {}) applies stablehlo.{} across dimensions = [0] : ({}, {}) -> {}", held,
                    start, op_name(operation.combine), type(operation.input), type({}), type(operation.output)));
            }
            case OperationKind::all_gather:
                return collective(operation, held, "all_gather_dim = 0 : i64, ");
            case OperationKind::all_to_all:
                return collective(
                    operation, held,
                    fmt::format("split_dimension = 0 : i64, concat_dimension = 0 : i64, split_count = {} : i64, ",
                                operation.groups[0].size()));
            case OperationKind::reduce_scatter:
                return collective(operation, held, "scatter_dimension = 0 : i64, ", combiner(Combine::sum));
            case OperationKind::all_reduce:
                return collective(operation, held, "", combiner(operation.combine));
            case OperationKind::permute:
                break;
        }
        std::vector<std::vector<Index>> pairs;
        for (const SourceTargetPair& pair : operation.pairs) pairs.push_back({pair.source, pair.target});
        return value(fmt::format("\"stablehlo.collective_permute\"({}) {{source_target_pairs = {}}} : {}", held,
                                 table(pairs), signature(operation)));
    }

    const TileProgram& program_;
    DType dtype_;  // of the tile, where the text is written
    std::string body_;
    std::string replica_;
    int count_ = 0;
};

}  // namespace

Result<std::string> stablehlo_text(const TileProgram& program) { return StableHloText(program).text(); }

}  // namespace reshard
