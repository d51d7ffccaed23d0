#include "tool/ranks/ranks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "tool/console/exit.hpp"
#include "tool/console/terminal.hpp"
#include "tool/request/json.hpp"

namespace reshard::cli {
namespace {

template <class T>
std::string bytes_of(const std::vector<T>& values) {
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

template <class T>
std::vector<T> values_of(const std::string& bytes) {
    std::vector<T> values(bytes.size() / sizeof(T));
    if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
}

template <class T, class Combine>
std::vector<T> combined(Rank& rank, const std::vector<T>& mine, Combine combine) {
    std::vector<T> all;
    for (const std::string& bytes : rank.share(bytes_of(mine))) {
        const std::vector<T> theirs = values_of<T>(bytes);
        if (all.empty())
            all = theirs;
        else
            std::ranges::transform(all, theirs, all.begin(), combine);
    }
    return all;
}

std::string chosen(const std::string& backend) {
    if (!backend.empty()) return backend;
    return launched_ranks() > 0 ? "mpi" : "local";
}

}  // namespace

int Ranks::each(bool as_json, const std::function<Result<int>(Rank&)>& body) {
    return drive([&](Rank& rank) {
        const auto code = body(rank);
        if (code) return *code;
        return rank.index() == 0 ? refuse(as_json, code.error()) : exit_code(code.error().code);
    });
}

Result<std::unique_ptr<Ranks>> make_ranks(const std::string& backend, Index devices, std::chrono::seconds timeout,
                                          Index ranks_per_node) {
    const std::string name = chosen(backend);
    if ((name == "local" || name == "nccl") && launched_ranks() > 1) {
        return fail(Code::usage,
                    fmt::format("--backend {} runs all ranks in one process, {} were started", name, launched_ranks()));
    }
    if (ranks_per_node != 0 && name != "mpi") return fail(Code::usage, "--ranks-per-node is for --backend mpi");
    if (name == "local") return local_ranks(devices);
    if (name == "mpi") return mpi_ranks(devices, timeout, ranks_per_node);
    if (name == "nccl") return nccl_ranks(devices);
    return fail(Code::usage, fmt::format("there is no backend '{}'; there are local, mpi and nccl", name));
}

Index default_rank_count(const std::string& backend) {
    const std::string name = chosen(backend);
    if (name == "mpi") return std::max<Index>(1, launched_ranks());
    return name == "nccl" ? std::max<Index>(1, nccl_devices()) : 8;
}

Result<void> agree(Rank& rank, const Result<void>& mine) {
    std::string brought;
    if (!mine) brought = static_cast<char>(static_cast<int>(mine.error().code) + 1) + mine.error().message;
    const std::vector<std::string> all = rank.share(brought);
    for (std::size_t r = 0; r < all.size(); ++r) {
        if (all[r].empty()) continue;
        if (r == static_cast<std::size_t>(rank.index())) return mine;
        return fail(static_cast<Code>(all[r][0] - 1), fmt::format("rank {}: {}", r, all[r].substr(1)));
    }
    return {};
}

std::vector<Index> sum(Rank& rank, const std::vector<Index>& mine) {
    return combined(rank, mine, [](Index a, Index b) { return saturating_add(a, b); });
}

std::vector<Index> largest(Rank& rank, const std::vector<Index>& mine) {
    return combined(rank, mine, [](Index a, Index b) { return std::max(a, b); });
}

std::vector<double> largest(Rank& rank, const std::vector<double>& mine) {
    return combined(rank, mine, [](double a, double b) { return std::max(a, b); });
}

}  // namespace reshard::cli
