// A list of tensors as blocks: the tensors of one layer, and the numbers of the layers that have the same ones.
#pragma once

#include "reshard/model/rules.hpp"

namespace reshard::notation {

/// Stands in a name for the number of a layer. No rule and no name of a list has this byte.
inline constexpr char number_place = '\x01';

/// Tensors that are listed together.
struct TensorBlock {
    std::vector<Index> numbers;         ///< one for each time that the tensors are listed; empty: once, as named
    std::vector<ListedTensor> tensors;  ///< with numbers, each name has number_place once
};

/// Returns the name with `number` in each place of `stand_in`.
[[nodiscard]] std::string with_number(std::string_view name, char stand_in, Index number);

/// Reads a list of tensors. Lines with {name:count} are blocks, and so are consecutive layers with equal lines. The
/// tensors of all blocks, number by number, are the tensors of the list in its order. In a block the place of the
/// number is the first part of each name, between dots, that is a number. Errors: as parse_tensors, except that names
/// may be listed twice.
[[nodiscard]] Result<std::vector<TensorBlock>> read_blocks(std::string_view text);

/// True if no name is listed twice.
[[nodiscard]] bool names_differ(std::span<const TensorBlock> blocks);

/// All tensors of the blocks.
[[nodiscard]] std::vector<ListedTensor> all_tensors(std::span<const TensorBlock> blocks);

}  // namespace reshard::notation
