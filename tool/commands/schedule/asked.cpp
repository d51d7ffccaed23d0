#include "tool/commands/schedule/asked.hpp"

#include <algorithm>
#include <iostream>
#include <iterator>

#include "reshard/files/program.hpp"
#include "src/base/try.hpp"
#include "tool/console/exit.hpp"
#include "tool/console/text_file.hpp"
#include "tool/request/json.hpp"

namespace reshard::cli {

Result<Program> read_program(const std::string& file) {
    if (file != "-") {
        RESHARD_TRY(const auto& text, read_text(file));
        return files::parse_program(text);
    }
    const std::string text{std::istreambuf_iterator<char>(std::cin), {}};
    if (std::cin.bad()) return fail(Code::io, "cannot read the program from stdin");
    return files::parse_program(text);
}

Result<ScheduledHlo> read_hlo(const Arguments& arguments, const Machine& machine) {
    RESHARD_TRY(const auto& text, read_text(arguments.hlo));
    Json seconds = Json::object();
    if (!arguments.seconds.empty()) {
        RESHARD_TRY(const auto& file, read_text(arguments.seconds));
        seconds = Json::parse(file, nullptr, false);
        const bool numbers = seconds.is_object() && std::ranges::all_of(seconds, &Json::is_number);
        if (!numbers)
            return fail(Code::syntax,
                        arguments.seconds + ": an object of names and seconds is wanted, {\"fusion\": 0.002}");
    }
    const HloTimes estimate = hlo_times_on(machine);
    const auto time = [&](const HloInstruction& one) -> Result<Index> {
        const auto known = seconds.find(one.name);
        if (known == seconds.end()) return estimate(one);
        return picoseconds_of(one, known->get<double>());
    };
    return in(arguments.hlo, program_of_hlo(text, time, arguments.computation));
}

Result<ScheduleOptions> schedule_options(const Arguments& arguments) {
    ScheduleOptions options;
    RESHARD_CHECK(read_options(arguments.question, options.moves));
    options.footprint_bytes_max = std::exchange(options.moves.limits.memory.footprint_bytes_max, std::nullopt);
    options.rounds_max = arguments.search_rounds;
    return options;
}

Index peak_bytes(const ScheduleVerdict& verdict) {
    Index most = 0;
    for (const PlaceVerdict& place : verdict.places) most = std::max(most, place.peak_bytes);
    return most;
}

}  // namespace reshard::cli
