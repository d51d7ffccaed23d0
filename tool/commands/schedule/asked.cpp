#include "tool/commands/schedule/asked.hpp"

#include <algorithm>
#include <iostream>
#include <iterator>

#include "reshard/files/program.hpp"
#include "src/base/try.hpp"
#include "tool/console/text_file.hpp"

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
