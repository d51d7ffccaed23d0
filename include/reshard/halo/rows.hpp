// A fill of halos as data for your own transport: which bytes go where.
#pragma once

#include "reshard/halo/plan.hpp"
#include "reshard/model/rows.hpp"

namespace reshard {

/// The rows of a fill that `rank` sends or receives, for each of its rounds. A round may begin when the rank has
/// received all rows of the round before. The way has one round or one for each dimension. Rounds of local copies
/// follow if an element has several cells on some device; all ranks have equally many rounds. Offsets count bytes from
/// the start of the arrays (array_shape), which are dense and row-major. In the first round of a move with a source,
/// source_offset counts from the start of the source tile. Local copies (peer == rank) are on both sides. The k-th row
/// of a round that a rank sends to a peer is the k-th row that the peer receives from it. A rank outside the mesh has
/// no rows. Errors: as validate; mismatch, unsupported, overflow as HaloExchange::prepare.
[[nodiscard]] Result<std::vector<std::vector<Row>>> halo_rows(const HaloMove& move, Index rank,
                                                              RowSide side = RowSide::send,
                                                              HaloWay way = HaloWay::at_once);

}  // namespace reshard
