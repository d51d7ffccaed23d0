// What a process that ends early must not leave behind. The signals INT, TERM, HUP, QUIT and XCPU remove it and then
// end the process as they would have; KILL and a crash can leave it, under a name that no other run takes.
#pragma once

#include <mutex>
#include <string>

namespace reshard::cli {

/// Something unfinished that has a name. Removed when the object goes, unless it was released.
class Litter {
public:
    using Remove = void (*)(const std::string& path);

    Litter() = default;
    Litter(std::string path, Remove remove);
    Litter(Litter&& other) noexcept;
    Litter& operator=(Litter&& other) noexcept;
    ~Litter();

    [[nodiscard]] const std::string& path() const { return path_; }  ///< empty when there is none
    void release();                                                  ///< it is somebody else's, or finished

private:
    std::string path_;
    Remove remove_ = nullptr;
};

/// No signal ends the process while this is held: it guards the moments in which something becomes litter, or takes its
/// name and is litter no more.
[[nodiscard]] std::unique_lock<std::recursive_mutex> undisturbed();

/// A name in the folder that nobody could have guessed: reshard-<16 digits>.partial.
[[nodiscard]] std::string name_in(const std::string& folder);

}  // namespace reshard::cli
