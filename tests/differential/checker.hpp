// The checker that is extracted from the proofs, as a process: lines in, answers out.
#pragma once

#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "reshard/check.hpp"

namespace reshard::test {

/// What the checker says of one line. Elements.
struct Answer {
    bool accepted = false;
    Index peak = 0;
    Index received = 0;
    std::optional<Index> lower_bound;
    bool optimal = false;
    std::string text;
};

[[nodiscard]] Answer read_answer(const std::string& text);

/// What the two judges say differently of a plan that both accept; empty when the numbers are the same.
[[nodiscard]] std::string differ(const Plan& plan, const Verdict& verdict, const Answer& answer);

/// Lines for one process, collected in a file.
class Checker {
public:
    explicit Checker(const std::string& name);
    ~Checker();
    Checker(const Checker&) = delete;
    Checker& operator=(const Checker&) = delete;

    [[nodiscard]] static bool built();  ///< this build has made a checker
    void ask(const std::string& line) { questions_ << line << '\n'; }
    [[nodiscard]] std::vector<Answer> answers();  ///< to all lines, in order, from one process

private:
    std::string path_;
    std::ofstream questions_;
};

}  // namespace reshard::test
