// Shared by all problems of the overlap bench: ranks, times, and errors that end the launch.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "reshard/backends/mpi.hpp"
#include "reshard/overlap/choose_pieces.hpp"
#include "reshard/overlap/measure_work.hpp"
#include "reshard/reshard.hpp"

namespace reshard::overlap {

/// Seconds of each round of each contestant.
using RoundTimes = std::map<std::string, std::vector<double>>;

/// Collective: of all ranks.
inline double largest(double mine) {
    double all = 0;
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return all;
}

/// Collective: over all ranks.
inline Index sum_of(Index mine) {
    Index all = 0;
    MPI_Allreduce(&mine, &all, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

inline void must(const Result<void>& done) {
    if (done) return;
    std::cerr << describe(done.error()) << '\n';
    MPI_Abort(MPI_COMM_WORLD, 1);
}

template <class Value>
Value must(Result<Value> made) {
    if (!made) must(Result<void>(tl::unexpected(made.error())));
    return *std::move(made);
}

/// Until more than `count` pieces have arrived. A rank that polled without rest would keep others from a core.
inline Result<void> until_arrived(Ticket& ticket, std::size_t count) {
    for (;;) {
        const auto arrived = ticket.arrived();
        if (!arrived) return tl::unexpected(arrived.error());
        if (*arrived > count) return {};
        if (const auto waited = ticket.wait_for(100); !waited) return tl::unexpected(waited.error());
    }
}

inline double median(std::vector<double> values) {
    std::ranges::sort(values);
    return values[values.size() / 2];
}

inline nlohmann::json medians(const RoundTimes& times) {
    nlohmann::json line;
    for (const auto& [name, taken] : times) line[name] = median(taken);
    return line;
}

/// Collective: seconds from when all ranks are there until the last one is done.
inline double timed(const std::function<void()>& body) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    body();
    return largest(MPI_Wtime() - begin);
}

/// Collective: runs one contestant of a round. The first round warms up.
inline void race(RoundTimes& times, int round, const std::string& name, const std::function<void()>& body) {
    const double seconds = timed(body);
    if (round > 0) times[name].push_back(seconds);
}

/// Grows or shrinks a problem until it takes about the wanted time. The last call of `seconds_of` has the final size.
inline void size_until(double wanted, const std::function<double(Index size)>& seconds_of) {
    Index size = 64;
    for (int turn = 0; turn < 8; ++turn) {
        const double taken = seconds_of(size);
        if (taken > 0.93 * wanted && taken < 1.07 * wanted) return;
        const auto next = static_cast<Index>(static_cast<double>(size) * wanted / taken);
        size = std::max<Index>(std::clamp(next, size / 4, size * 16), 1);
    }
}

inline Index count_wrong(const std::vector<float>& got, const std::vector<float>& right) {
    Index wrong = got.size() == right.size() ? 0 : 1;
    for (std::size_t i = 0; i < std::min(got.size(), right.size()); ++i) wrong += got[i] != right[i] ? 1 : 0;
    return wrong;
}

/// "f32[SHAPE]" with `first_cut` behind the first extent and `sums` behind the brackets.
inline std::string layout_text(const std::vector<Index>& shape, const std::string& first_cut, const std::string& sums) {
    std::ostringstream text;
    text << "f32[";
    for (std::size_t i = 0; i < shape.size(); ++i) text << (i == 0 ? "" : ",") << shape[i] << (i == 0 ? first_cut : "");
    text << "]" << sums;
    return text.str();
}

}  // namespace reshard::overlap
