// `reshard plan`: what will happen, what it costs and how good that is, before a byte moves.
#include <fmt/format.h>

#include <chrono>

#include "commands.hpp"
#include "exit.hpp"
#include "json.hpp"
#include "numbers.hpp"
#include "plan_table.hpp"
#include "terminal.hpp"

namespace reshard::cli {

int plan(const Arguments& arguments) {
    if (arguments.batch) return batch();
    const auto refuse = [&](const Error& error) {
        if (arguments.json) answer(line(error_json(nullptr, error)));
        return complain(error);
    };
    const auto asked = understand(arguments.question);
    if (!asked) return refuse(asked.error());
    const auto begin = std::chrono::steady_clock::now();
    const auto made = synthesize(asked->problem, asked->options);
    const auto spent = std::chrono::steady_clock::now() - begin;
    if (!made) return refuse(made.error());
    if (arguments.json) {
        const Index us = std::chrono::duration_cast<std::chrono::microseconds>(spent).count();
        answer(line(plan_json(nullptr, *asked, *made, us)));
    } else {
        answer(plan_table(*asked, *made) + plan_summary(*asked, *made));
    }
    return exit_ok;
}

}  // namespace reshard::cli
