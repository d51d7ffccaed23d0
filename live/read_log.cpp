#include "live/read_log.hpp"

#include <fmt/format.h>

#include <sstream>
#include <utility>

namespace reshard::live {

// A grant is repeated when the lease is renewed.
void ReadLog::granted(const Message& message, Clock::time_point now) {
    if (message.generation <= generation_) return;
    generation_ = message.generation;
    status_.reads = message.version;
    start_ = now;
}

void ReadLog::said(const Message& message, Clock::time_point now) {
    if (message.word != Word::release || status_.reads == 0 || message.generation < generation_) return;
    status_.last = std::exchange(status_.reads, 0);
    status_.seconds = std::chrono::duration<double>(now - start_).count();
    ++ended_;
}

ReaderStatus ReadLog::status(Index bytes, std::string transport) const {
    ReaderStatus status = status_;
    status.bytes = bytes;
    status.transport = std::move(transport);
    return status;
}

std::string text_of(const RankStatus& status) {
    std::string text = fmt::format("rank {} {} {}\n", status.newest, status.tile_bytes, status.reads);
    for (const VersionStatus& one : status.versions) text += fmt::format("version {} {}\n", one.version, one.state);
    for (const ReaderStatus& one : status.readers)
        text += fmt::format("reader {} {} {} {:.9f} {} {}\n", one.reads, one.last, one.bytes, one.seconds,
                            one.transport, one.peer);
    return text;
}

std::optional<RankStatus> status_of(std::string_view text) {
    RankStatus status;
    std::istringstream lines{std::string(text)};
    bool first = true;
    for (std::string line; std::getline(lines, line); first = false) {
        std::istringstream words(line);
        std::string kind;
        words >> kind;
        if (first != (kind == "rank")) return std::nullopt;
        if (kind == "rank") {
            words >> status.newest >> status.tile_bytes >> status.reads;
        } else if (kind == "version") {
            VersionStatus& one = status.versions.emplace_back();
            words >> one.version >> one.state;
        } else if (kind == "reader") {
            ReaderStatus& one = status.readers.emplace_back();
            words >> one.reads >> one.last >> one.bytes >> one.seconds >> one.transport >> std::ws;
            std::getline(words, one.peer);
        } else {
            return std::nullopt;
        }
        if (words.fail()) return std::nullopt;
    }
    return first ? std::nullopt : std::optional(std::move(status));
}

}  // namespace reshard::live
