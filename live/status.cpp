#include "reshard/live/status.hpp"

#include <fmt/format.h>

#include "live/meeting.hpp"
#include "live/read_log.hpp"
#include "src/base/try.hpp"

namespace reshard::live {
namespace {

Result<RankStatus> ask(Connection& rank, Clock::time_point end) {
    Packet question;
    question.word = status_word;
    if (rank.stream) {
        rank.stream->queue(question);
        static_cast<void>(rank.stream->flush());  // a new connection has room for one packet
    } else {
        static_cast<void>(send_packet(rank.socket, question));
    }
    while (true) {
        RESHARD_TRY(Arrival & arrival, next_packet(rank, end));
        if (arrival.packet.word != status_word) continue;  // it also says its newest version
        RESHARD_TRY(const std::string& text, text_with(rank, arrival));
        if (auto status = status_of(text)) return std::move(*status);
        return fail(Code::backend, "it speaks another protocol");
    }
}

}  // namespace

Result<std::vector<OfferedTensor>> offered(const std::string& endpoint, std::chrono::milliseconds limit) {
    RESHARD_TRY(Met & met, meet(endpoint, Clock::now() + limit));
    std::vector<OfferedTensor> tensors;
    for (NamedTensor& one : met.tensors) tensors.push_back({std::move(one.name), std::move(one.layout)});
    return tensors;
}

Result<std::vector<RankStatus>> status(const std::string& endpoint, std::chrono::milliseconds limit) {
    const auto end = Clock::now() + limit;
    RESHARD_TRY(Met & met, meet(endpoint, end));
    std::vector<RankStatus> ranks;
    for (Connection& one : met.ranks) {
        auto status = ask(one, end);
        if (!status)
            return fail(Code::backend,
                        fmt::format("rank {} of the publisher is lost: {}", ranks.size(), status.error().message));
        ranks.push_back(std::move(*status));
    }
    return ranks;
}

}  // namespace reshard::live
