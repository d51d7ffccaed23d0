// Carries out the rows of a model's moves on tiles in memory.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

#include "reshard/model/rules.hpp"
#include "rows/memory.hpp"

namespace reshard::test {

/// The value of a byte of a listed tensor.
inline std::byte value_in(const std::string& tensor, Index element, Index byte) {
    return value_of_byte(element + 1000 * static_cast<Index>(std::hash<std::string>()(tensor) % 1000), byte);
}

/// Carries out the moves of a list by rules. Returns the tiles of each target by rank, and the faults of the rows.
struct MovedModel {
    CheckpointMapping model;
    std::vector<Memory> targets;  ///< of each target
    std::string fault;            ///< empty: every row is at both ends, and each byte is written once
};

/// Returns the element of a source for its number in the layout. They differ if ranks share blocks.
using Numbers = std::function<Index(const ShardedTensor&, Index number)>;
inline Index same_number(const ShardedTensor&, Index number) { return number; }

inline MovedModel moved_model(const std::string& list, const std::string& rules, Index ranks,
                              const Numbers& number_of = same_number) {
    const auto tensors = parse_tensors(list);
    if (!tensors) throw std::runtime_error(describe(tensors.error()));
    auto model = apply_rules(rules, *tensors);
    if (!model) throw std::runtime_error(describe(model.error()));
    const auto schedule = RowSchedule::make(model->moves);
    if (!schedule) throw std::runtime_error(describe(schedule.error()));
    std::vector<Memory> sources;
    for (const ShardedTensor& tensor : model->sources)
        sources.push_back(tiles_of(*tensor.layout, ranks, [&](Index number, Index byte) {
            return value_in(tensor.name, number_of(tensor, number), byte);
        }));
    MovedModel moved{*std::move(model), {}, ""};
    std::vector<std::vector<std::vector<int>>> written;
    for (const ShardedTensor& tensor : moved.model.targets) {
        moved.targets.push_back(blank_of(tiles_of(*tensor.layout, ranks, [](Index, Index) { return std::byte{0}; })));
        written.push_back(counters_of(moved.targets.back()));
    }
    const auto sends = all_rows(*schedule, ranks, RowSide::send);
    moved.fault = mirror_fault(sends, all_rows(*schedule, ranks, RowSide::receive));
    for (std::size_t move = 0; move < moved.model.ends.size(); ++move) {
        const auto [source, target] = moved.model.ends[move];
        std::vector<std::vector<Row>> rows(sends.size());
        for (std::size_t rank = 0; rank < sends.size(); ++rank)
            for (const Row& row : sends[rank])
                if (row.array == static_cast<Index>(move)) rows[rank].push_back(row);
        carry_out(rows, sources[source], moved.targets[target], written[target]);
    }
    for (const auto& of_target : written)
        for (const auto& of_rank : of_target)
            for (const int times : of_rank)
                if (times != 1 && moved.fault.empty()) moved.fault = fmt::format("a byte is written {} times", times);
    return moved;
}

/// The element of a listed tensor, by its number.
struct Element {
    std::string tensor;
    Index number = 0;
};

using Place = std::vector<Index>;  ///< the index of an element in each dimension

inline Place place_of(Index number, std::span<const Index> shape) {
    Place place(shape.size());
    for (std::size_t k = shape.size(); k-- > 0; number /= shape[k]) place[k] = number % shape[k];
    return place;
}

/// Compares the target with the elements that `element_at` names for its places.
inline void expect_elements(const MovedModel& moved, std::size_t target,
                            const std::function<Element(const Place&)>& element_at) {
    EXPECT_EQ(moved.fault, "");
    const ShardedTensor& tensor = moved.model.targets.at(target);
    const Memory wanted = tiles_of(*tensor.layout, std::ssize(moved.targets[target]), [&](Index number, Index byte) {
        const Element element = element_at(place_of(number, tensor.shape));
        return value_in(element.tensor, element.number, byte);
    });
    EXPECT_EQ(moved.targets[target], wanted) << tensor.name;
}

}  // namespace reshard::test
