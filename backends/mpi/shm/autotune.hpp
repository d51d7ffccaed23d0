// The fastest of several ways to do the same, by what each took in the runs so far.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

namespace reshard::mpi {

/// Tries every way a few times, in turn, and keeps the one with the least median. When that one becomes slower, and now
/// and then, ever less often while nothing changes, it times a run of each other way, except those that were far
/// slower, and changes to one that is faster. Ranks that are told the same times choose the same way.
class Autotune {
public:
    /// pre: ways > 0.
    explicit Autotune(std::size_t ways) : ways_(ways) {}

    [[nodiscard]] std::size_t way() const { return way_; }    ///< of the next run
    [[nodiscard]] std::size_t kept() const { return kept_; }  ///< pre: settled()
    [[nodiscard]] bool settled() const { return settled_; }
    /// For each way the median of its latest few runs; 0: not tried yet.
    [[nodiscard]] std::vector<double> seconds() const;

    /// The run that went by way() took so long.
    void ran(double seconds);

private:
    static constexpr std::size_t remembered = 3;

    struct Way {
        std::size_t runs = 0;
        bool hopeless = false;
        std::array<double, remembered> latest{};
        void ran(double seconds) { latest[runs++ % remembered] = seconds; }
        [[nodiscard]] double median() const;
    };

    void settle();
    void look();
    void end_look();
    [[nodiscard]] std::size_t next_candidate() const;

    std::vector<Way> ways_;
    std::size_t way_ = 0;
    std::size_t kept_ = 0;
    bool settled_ = false;
    double expected_ = 0;        // seconds of the kept way when it was last compared
    std::size_t runs_ = 0;       // of it since then
    std::size_t comparing_ = 0;  // compared after so many
    std::size_t best_ = 0;       // of those looked at so far
    double best_seconds_ = 0;
};

}  // namespace reshard::mpi
