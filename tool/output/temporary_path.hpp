// Unfinished outputs. The signals INT, TERM, HUP, QUIT and XCPU remove them and then end the process as usual. KILL and
// a crash can leave one, under a name that no other run takes.
#pragma once

#include <mutex>
#include <string>

namespace reshard::cli {

/// An unfinished file or folder. The destructor removes it, unless it was released.
class TemporaryPath {
public:
    using Remove = void (*)(const std::string& path);

    TemporaryPath() = default;
    TemporaryPath(std::string path, Remove remove);
    TemporaryPath(TemporaryPath&& other) noexcept;
    TemporaryPath& operator=(TemporaryPath&& other) noexcept;
    ~TemporaryPath();

    [[nodiscard]] const std::string& path() const { return path_; }  ///< empty if there is no path
    void release();                                                  ///< it is finished, or belongs to another object

private:
    std::string path_;
    Remove remove_ = nullptr;
};

/// While this is held, no signal ends the process. Hold it while a temporary path is made, removed or given its final
/// name.
[[nodiscard]] std::unique_lock<std::recursive_mutex> hold_signals();

/// Draws a name in the folder that nobody can guess: reshard-<16 digits>.partial.
[[nodiscard]] std::string temporary_name(const std::string& folder);

}  // namespace reshard::cli
