// `reshard live status`: the versions, readers and rates of a publisher.
#include "reshard/live/status.hpp"

#include <fmt/format.h>

#include <chrono>

#include "report/numbers.hpp"
#include "report/table.hpp"
#include "reshard/planner/cost.hpp"
#include "src/base/try.hpp"
#include "tool/commands/commands.hpp"
#include "tool/commands/convert.hpp"
#include "tool/console/terminal.hpp"
#include "tool/request/json.hpp"

namespace reshard::cli {
namespace {

using live::RankStatus;

double rate_of(const live::ReaderStatus& reader) {
    return reader.last > 0 && reader.seconds > 0 ? static_cast<double>(reader.bytes) / reader.seconds : 0;
}

std::string number(Index version) { return version > 0 ? fmt::format("{}", version) : "-"; }

Json as_json(const std::vector<live::OfferedTensor>& tensors, const std::vector<RankStatus>& ranks) {
    Json all = Json::array();
    for (const RankStatus& rank : ranks) {
        Json versions = Json::array();
        for (const auto& one : rank.versions) versions.push_back({{"version", one.version}, {"state", one.state}});
        Json readers = Json::array();
        for (const auto& one : rank.readers)
            readers.push_back({{"peer", one.peer},
                               {"reads", one.reads},
                               {"last", one.last},
                               {"bytes", one.bytes},
                               {"seconds", one.seconds},
                               {"transport", one.transport}});
        all.push_back({{"newest", rank.newest},
                       {"bytes", rank.tile_bytes},
                       {"reads", rank.reads},
                       {"versions", versions},
                       {"readers", readers}});
    }
    return {{"schema", 1}, {"tensors", tensors.size()}, {"ranks", all}};
}

std::string as_text(const std::vector<live::OfferedTensor>& tensors, const std::vector<RankStatus>& ranks) {
    Index bytes = 0;
    Index newest = index_max;
    for (const RankStatus& rank : ranks) {
        bytes = saturating_add(bytes, rank.tile_bytes);
        newest = std::min(newest, rank.newest);
    }
    std::string text = fmt::format("version {}: {}, {} on {}\n", number(newest), plural(std::ssize(tensors), "tensor"),
                                   format_bytes(bytes), plural(std::ssize(ranks), "rank"));
    Table versions({">rank", ">version", "state"});
    Table readers({">rank", "reader", "by", ">reads", ">last", ">bytes", ">took", ">rate"});
    bool any = false;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        for (const auto& one : ranks[rank].versions)
            versions.row({fmt::format("{}", rank), number(one.version), one.state});
        for (const auto& one : ranks[rank].readers) {
            any = true;
            const bool took = one.last > 0;
            readers.row({fmt::format("{}", rank), one.peer, one.transport, number(one.reads), number(one.last),
                         format_bytes(one.bytes), took ? format_seconds(one.seconds) : "-",
                         took ? format_rate(rate_of(one)) : "-"});
        }
    }
    text += versions.text(page());
    return text + (any ? readers.text(page()) : std::string("no readers\n"));
}

}  // namespace

Result<int> live_status(const Arguments& arguments) {
    const std::chrono::milliseconds patience = std::chrono::seconds(arguments.patience);
    RESHARD_TRY(const auto& tensors, live::offered(arguments.endpoint, patience));
    RESHARD_TRY(const auto& ranks, live::status(arguments.endpoint, patience));
    return answer(arguments.json ? as_json(tensors, ranks).dump() + "\n" : as_text(tensors, ranks));
}

}  // namespace reshard::cli
