#include "tool/commands/calibrate/disk.hpp"

#include <fcntl.h>

#include <array>
#include <chrono>
#include <numeric>
#include <random>

#include <fmt/format.h>

#include "files/base/file.hpp"
#include "report/numbers.hpp"
#include "report/table.hpp"
#include "reshard/planner/cost.hpp"
#include "src/base/try.hpp"
#include "tool/console/terminal.hpp"
#include "tool/request/json.hpp"

namespace reshard::cli {
namespace {

constexpr Index file_bytes = Index{256} << 20;
constexpr Index least_granule = Index{16} << 10;
constexpr Index largest_granule = Index{16} << 20;
constexpr Index ahead_max = Index{64} << 20;  // bytes that are asked for before they are read, as convert does
constexpr double seconds_max = 0.15;

using Clock = std::chrono::steady_clock;

// A file without a name whose bytes no disk makes fewer.
Result<files::File> scattered_file(const std::string& folder) {
    RESHARD_TRY(auto& file, files::File::unnamed(folder, "a file in " + folder));
    std::mt19937_64 numbers(1);
    std::vector<std::uint64_t> words(std::size_t{1} << 20);
    for (Index at = 0; at < file_bytes; at += std::ssize(words) * 8) {
        std::ranges::generate(words, std::ref(numbers));
        RESHARD_CHECK(file.write(std::as_bytes(std::span(words)), at));
    }
    RESHARD_CHECK(file.sync());
    return std::move(file);
}

// Bytes per second of granules at places in no order.
Result<double> rate_of(const files::File& file, Index granule, std::mt19937_64& numbers) {
    std::vector<Index> places(static_cast<std::size_t>(file_bytes / granule));
    std::iota(places.begin(), places.end(), Index{0});
    std::ranges::shuffle(places, numbers);
    std::vector<std::byte> bytes(static_cast<std::size_t>(granule));
    (void)::posix_fadvise(file.descriptor(), 0, 0, POSIX_FADV_DONTNEED);
    (void)::posix_fadvise(file.descriptor(), 0, 0, POSIX_FADV_RANDOM);
    const Index ahead = std::min<Index>(ahead_max / granule, 16);
    const auto begin = Clock::now();
    std::chrono::duration<double> taken{};
    Index asked = 0;
    Index read = 0;
    while (read < std::ssize(places) && taken.count() < seconds_max) {
        for (; asked < std::min(read + ahead, std::ssize(places)); ++asked)
            (void)::posix_fadvise(file.descriptor(), places[static_cast<std::size_t>(asked)] * granule, granule,
                                  POSIX_FADV_WILLNEED);
        RESHARD_CHECK(file.read(bytes, places[static_cast<std::size_t>(read)] * granule));
        ++read;
        taken = Clock::now() - begin;
    }
    return static_cast<double>(read * granule) / std::max(taken.count(), 1e-9);
}

}  // namespace

Result<Disk> measure_disk(const std::string& folder, Index rounds) {
    RESHARD_TRY(const auto& written, scattered_file(folder));
    RESHARD_TRY(const auto& file, files::File::open_to_read(written.in_this_process()));
    std::mt19937_64 numbers(1);
    Disk disk;
    for (Index granule = least_granule; granule <= largest_granule; granule *= 2) {
        std::vector<double> rates;
        for (Index round = 0; round < rounds; ++round) {
            RESHARD_TRY(const auto& rate, rate_of(file, granule, numbers));
            rates.push_back(rate);
        }
        disk.rates.emplace_back(granule, median(std::move(rates)));
    }
    const double most = std::ranges::max_element(disk.rates, {}, &std::pair<Index, double>::second)->second;
    disk.granule = std::ranges::find_if(disk.rates, [&](const auto& one) { return one.second >= 0.9 * most; })->first;
    return disk;
}

Result<int> calibrate_disk(const Arguments& arguments) {
    if (!arguments.output.empty())
        return fail(Code::usage, "--disk measures what convert --granule takes, which is in no machine's file");
    RESHARD_TRY(const auto& disk, measure_disk(arguments.disk, arguments.rounds));
    if (arguments.json) {
        Json rates = Json::array();
        for (const auto& [granule, rate] : disk.rates) rates.push_back({granule, rate});
        return answer(line(Json{{"granule", disk.granule}, {"rates", rates}}));
    }
    Table table({">granule", ">read at"});
    for (const auto& [granule, rate] : disk.rates) table.row({format_bytes(granule), format_rate(rate)});
    return answer(
        fmt::format("{}--granule {}KiB reaches 90% of what this disk reads\n", table.text(page()), disk.granule >> 10));
}

}  // namespace reshard::cli
