// The rows of a whole model's move. Layers that are equal are understood once.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reshard/model/rules.hpp"

namespace reshard {

/// The rows of the moves that rules make of a list of tensors: the same rows as of apply_rules(rules,
/// parse_tensors(tensors)) and RowSchedule, in a fraction of the time and memory.
///
/// The list names equal layers by a number, `model.layers.{n:61}.norm bf16[7168]`, or lists them one after another. The
/// rules are applied to the first of the equal layers, and its rows are repeated for the others. A layer is read by
/// itself if a rule looks at its number. Several threads may use one object.
class ModelRows {
public:
    /// Applies the rules and makes the schedule. Errors: as parse_tensors, apply_rules and RowSchedule::make.
    [[nodiscard]] static Result<ModelRows> make(std::string_view rules, std::string_view tensors);
    /// The same of tensors that are not text. Braces in their names mean nothing.
    [[nodiscard]] static Result<ModelRows> make(std::string_view rules, std::span<const ListedTensor> tensors);

    /// The rows that `rank` sends or receives, as RowSchedule::rows. A row's `array` is the number of its move.
    [[nodiscard]] std::vector<Row> rows(Index rank, RowSide side = RowSide::send) const;

    /// The same as rows of up to four loops, as RowSchedule::nested_rows.
    [[nodiscard]] std::vector<NestedRow> nested_rows(Index rank, RowSide side = RowSide::send) const;

    [[nodiscard]] Index rank_count() const { return schedule_.rank_count(); }  ///< ranks from 0 on that may have rows
    [[nodiscard]] std::size_t array_count() const;                             ///< moves, of all layers
    [[nodiscard]] std::size_t question_count() const { return schedule_.question_count(); }  ///< different moves
    [[nodiscard]] std::size_t understood_count() const { return ends_.size(); }  ///< moves that were understood
    /// The names of a move's tensor at the source and at the target. pre: array < array_count().
    [[nodiscard]] std::pair<std::string, std::string> names(std::size_t array) const;
    /// The element types of a move's tensor at the source and at the target. If they differ, the rows count bytes of
    /// the narrower one (apply_rules). pre: array < array_count().
    [[nodiscard]] std::pair<DType, DType> dtypes(std::size_t array) const;

private:
    struct Ends {
        std::pair<std::string, std::string> names;
        std::pair<DType, DType> dtypes;
    };

    // Moves that are repeated for each number.
    struct Stretch {
        std::size_t first = 0;  // of the moves that were understood
        std::size_t moves = 0;
        std::size_t begin = 0;       // of all moves
        char stand_in = 0;           // in the names, for the number
        std::vector<Index> numbers;  // empty: once
        [[nodiscard]] std::size_t times() const { return numbers.empty() ? 1 : numbers.size(); }
    };
    class Making;
    template <class AnyRow>
    [[nodiscard]] std::vector<AnyRow> repeated(const std::vector<AnyRow>& once) const;

    [[nodiscard]] const Stretch& stretch_of(std::size_t array) const;
    [[nodiscard]] const Ends& ends_of(std::size_t array) const;

    explicit ModelRows(RowSchedule schedule) : schedule_(std::move(schedule)) {}

    RowSchedule schedule_;
    std::vector<Ends> ends_;
    std::vector<Stretch> stretches_;
};

}  // namespace reshard
