// The lines of a rules text, read but not yet applied to tensors. reshard/model/rules.hpp has the grammar.
#pragma once

#include "reshard/layout.hpp"
#include "reshard/planner/tile.hpp"
#include "src/model/rules/name_pattern.hpp"

namespace reshard::notation {

/// A line with its number, for errors.
struct RuleLine {
    std::string_view text;         ///< without comment and the blanks at its end
    std::size_t number = 0;        ///< from 1
    const char* of = "the rules";  ///< the text that has the line
    /// Returns the error "line 3 of the rules: ...", with the line and the place.
    [[nodiscard]] tl::unexpected<Error> error(Code code, std::string_view message, std::size_t offset) const;
    /// Returns the result, and adds the number of the line to its error.
    template <class T>
    [[nodiscard]] Result<T> numbered(Result<T> result) const {
        if (!result) result = error(result.error().code, result.error().message, result.error().offset);
        return result;
    }
};

/// Takes the next line off the text. Skips comments, which begin with #, and empty lines. Returns false at the end.
[[nodiscard]] bool next_line(std::string_view& text, RuleLine& line);

/// One dimension of a slice.
struct Slice {
    /// From and to (index_max: to the end). Negative numbers count from the end. Without this and a name: all.
    std::optional<Interval> indices;
    bool drops = false;               ///< an index; its dimension is dropped
    std::string_view name = {};       ///< {name}: the index that it stands for
    Index step = 1;                   ///< from:to:step: every step-th index
    Index period = 0;                 ///< from:to of period: these indices of each period; 0: none
    Interval range = {0, index_max};  ///< in from:to: the indices that have the periods
};

/// Entries of shape(...) that are no extents.
inline constexpr Index same_extent = -2;    ///< `:`, the extent of the dimension at the same place
inline constexpr Index other_indices = -1;  ///< `-1`, all elements that the other extents leave

/// One tensor that becomes a part of a target.
struct RulePart {
    NamePattern pattern;
    std::size_t offset = 0;                        ///< in the line
    std::optional<std::vector<Index>> shape = {};  ///< shape(...): the shape that slices and order see
    std::optional<std::vector<Slice>> slices = {};
    std::vector<std::size_t> order = {};  ///< permute(...): the dimension for each new one; empty: as it is
};

/// blocks n of pattern
struct BlocksOf {
    std::vector<Index> blocks;  ///< for each dimension, or one for all dimensions but a stack's
    NamePattern pattern;
    std::size_t offset = 0;
};

struct Rule {
    RuleLine line;
    std::size_t offset = 0;              ///< of the pattern
    std::optional<NamePattern> pattern;  ///< empty for `otherwise`
    bool also = false;
    std::size_t layout_offset = 0;   ///< of "-" or "["; entries are read when extents are known
    std::optional<BlocksOf> blocks;  ///< in place of entries
    std::optional<DType> cast = {};  ///< as bf16: the element type of the target
    std::size_t cast_offset = 0;
    std::vector<RulePart> parts;      ///< empty: the tensor of the same name
    bool cut_whole = false;           ///< ++
    std::size_t along = 0;            ///< the dimension in which parts follow each other, without that of a stack; of
                                      ///< one part the dimension of the stack
    Index groups = 1;                 ///< in n groups: each group has its share of every part
    std::string_view stack = {};      ///< the name over which parts are stacked, if any
    Interval stack_numbers = {0, 1};  ///< the values of that name

    /// Returns the dimension of the target that a stack adds: the first one, or the one that `along` names if one part
    /// is stacked. nullopt: no stack.
    [[nodiscard]] std::optional<std::size_t> stack_dim() const {
        if (stack.empty()) return std::nullopt;
        return parts.size() == 1 && groups == 1 ? along : 0;
    }
};

struct RuleEnd {
    Mesh mesh;
    std::optional<RuleLine> line;  ///< that begins it
    std::vector<Rule> rules;
    std::vector<Rule> drops;  ///< patterns only
};

struct RuleText {
    RuleEnd source;
    RuleEnd target;
};

/// Reads rules. pre: the text outlives the result. Errors: as apply_rules.
[[nodiscard]] Result<RuleText> read_rules(std::string_view text);

}  // namespace reshard::notation
