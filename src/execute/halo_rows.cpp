#include "reshard/halo/rows.hpp"

#include <map>

#include "src/base/try.hpp"
#include "src/execute/lower_halo.hpp"
#include "src/model/rows.hpp"

namespace reshard {

Result<std::vector<std::vector<Row>>> halo_rows(const HaloMove& move, Index rank, RowSide side, HaloWay way) {
    std::map<Index, LoweredHalo> lowered;  // of this rank and of its peers: each end knows its own memory only
    const auto lower = [&](Index device) -> Result<void> {
        if (!lowered.contains(device)) {
            RESHARD_ASSIGN(lowered[device], lower_halo(move, way, device, {}));
        }
        return {};
    };
    RESHARD_CHECK(lower(rank));
    const Index element_bytes = size_of(move.target.owned.dtype);
    std::vector<std::vector<Row>> rounds(lowered[rank].rounds.size());
    for (std::size_t i = 0; i < rounds.size(); ++i) {
        const auto step_of = [&](Index device) -> const RankStep& { return lowered[device].rounds[i].steps.front(); };
        const Schedule& own = step_of(rank).schedule;
        const auto append = [&](const Transfer& one, bool sends) -> Result<void> {
            RESHARD_CHECK(lower(one.peer));
            const Tile part = as_tile(one.box);
            Row row;
            row.peer = one.peer;
            append_rows(row, std::span(&part, 1), step_of(sends ? rank : one.peer).from,
                        step_of(sends ? one.peer : rank).to, element_bytes, rounds[i]);
            return {};
        };
        const bool sends = side == RowSide::send;
        for (const Transfer& one : sends ? own.sends : own.receives) RESHARD_CHECK(append(one, sends));
        for (const Transfer& one : own.receives)
            if (sends && one.peer == rank) RESHARD_CHECK(append(one, false));
    }
    return rounds;
}

}  // namespace reshard
