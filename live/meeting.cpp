#include "live/meeting.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "live/place.hpp"
#include "live/transport/segment.hpp"
#include "src/base/printable.hpp"
#include "src/base/try.hpp"

namespace reshard::live {
namespace {

// One rank of a publisher, and its first words.
struct Greeted {
    Connection connection;
    Packet packet;
    std::string text;
};

Result<Greeted> greet(const std::string& endpoint, Clock::time_point end) {
    RESHARD_TRY(Descriptor & socket, connect_to(endpoint, is_path(endpoint) ? Kind::packets : Kind::stream, end));
    Greeted one;
    if (is_path(endpoint))
        one.connection.socket = std::move(socket);
    else
        one.connection.stream.emplace(std::move(socket));
    auto arrival = next_packet(one.connection, end);
    if (!arrival) return fail(Code::backend, fmt::format("{}: {}", in_quotes(endpoint), arrival.error().message));
    if (arrival->packet.word != hello || arrival->descriptor.is_open() != is_path(endpoint))
        return fail(Code::backend,
                    fmt::format("{} is no publisher of protocol {}", in_quotes(endpoint), protocol_number));
    one.packet = arrival->packet;
    RESHARD_ASSIGN(one.text, text_with(one.connection, *arrival));
    return one;
}

// The endpoints of all ranks. Over TCP they stand before the tensors: one a line, and an empty line.
std::vector<std::string> endpoints_of(const std::string& endpoint, const Greeted& first) {
    std::vector<std::string> endpoints;
    std::string_view lines = first.text;
    for (std::uint32_t rank = 0; rank < first.packet.ranks; ++rank) {
        const auto line = lines.substr(0, lines.find('\n'));
        lines.remove_prefix(std::min(lines.size(), line.size() + 1));
        endpoints.push_back(is_path(endpoint) ? fmt::format("{}.{}", endpoint, rank) : std::string(line));
    }
    return endpoints;
}

}  // namespace

Result<Arrival> next_packet(Connection& from, Clock::time_point end) {
    while (true) {
        const int number = from.number();
        if (!wait_readable({&number, 1}, end)) return fail(Code::backend, "it is silent");
        Arrival arrival = from.stream ? from.stream->receive() : receive_packet(from.socket);
        if (arrival.kind == Arrival::Kind::closed) return fail(Code::backend, "its connection is closed");
        if (arrival.kind == Arrival::Kind::strange)
            return fail(Code::backend, fmt::format("it is no publisher of protocol {}", protocol_number));
        if (arrival.kind == Arrival::Kind::packet) return arrival;
    }
}

Result<std::string> text_with(const Connection& from, Arrival& arrival) {
    if (from.stream) return std::string(from.stream->payload());
    RESHARD_TRY(const Segment& segment, Segment::open(std::move(arrival.descriptor), arrival.packet.bytes));
    return std::string(reinterpret_cast<const char*>(segment.bytes().data()),
                       static_cast<std::size_t>(arrival.packet.bytes));
}

Result<Met> meet(const std::string& endpoint, Clock::time_point end) {
    Met met;
    RESHARD_TRY(Greeted & first, greet(is_path(endpoint) ? endpoint + ".0" : endpoint, end));
    const std::vector<std::string> endpoints = endpoints_of(endpoint, first);
    if (endpoints.empty() || first.packet.rank != 0)
        return fail(Code::mismatch, fmt::format("{} is not rank 0 of a publisher", in_quotes(endpoint)));
    met.ranks.push_back(std::move(first.connection));
    for (std::uint32_t rank = 1; rank < endpoints.size(); ++rank) {
        RESHARD_TRY(Greeted & one, greet(endpoints[rank], end));
        if (one.packet.rank != rank || one.packet.ranks != endpoints.size() || one.text != first.text)
            return fail(Code::mismatch, fmt::format("rank {} at {} is of another publisher than rank 0", rank,
                                                    in_quotes(endpoints[rank])));
        met.ranks.push_back(std::move(one.connection));
    }
    met.checks_bytes = first.packet.checks_bytes != 0;
    if (!is_path(endpoint)) met.devices = static_cast<Devices>(first.packet.devices);
    const auto blank = is_path(endpoint) ? std::string::npos : first.text.find("\n\n");
    const std::size_t start = blank == std::string::npos ? 0 : blank + 2;
    RESHARD_ASSIGN(met.tensors, tensors_of(std::string_view(first.text).substr(start)));
    return met;
}

}  // namespace reshard::live
