// Runs the checker that is extracted from the proofs as a process: lines in, answers out.
#pragma once

#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "reshard/check.hpp"

namespace reshard::test {

/// The checker's answer to one line, in elements.
struct Answer {
    bool accepted = false;
    Index peak = 0;
    Index received = 0;
    std::optional<Index> lower_bound;
    bool optimal = false;
    std::string text;
};

[[nodiscard]] Answer read_answer(const std::string& text);

/// The differences between the numbers of the two judges, for a plan that both accept; empty if all are equal.
[[nodiscard]] std::string differ(const Plan& plan, const Verdict& verdict, const Answer& answer);

/// Lines for one process, collected in a file.
class Checker {
public:
    explicit Checker(const std::string& name);
    ~Checker();
    Checker(const Checker&) = delete;
    Checker& operator=(const Checker&) = delete;

    [[nodiscard]] static bool built();  ///< true if this build has made a checker
    void ask(const std::string& line) { questions_ << line << '\n'; }
    [[nodiscard]] std::vector<Answer> answers();  ///< answers to all lines, in order, from one process

private:
    std::string path_;
    std::ofstream questions_;
};

}  // namespace reshard::test
