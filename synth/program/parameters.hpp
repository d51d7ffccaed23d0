// The parameters of a generated program.
#pragma once

#include <map>

#include "reshard/program/generate.hpp"

namespace reshard::program {

/// The value of every parameter of a generator: as given, or the default. Times are picoseconds, sizes bytes.
class Parameters {
public:
    [[nodiscard]] Index operator[](std::string_view name) const { return values_.find(name)->second; }
    void set(std::string_view name, Index value) { values_[name] = value; }
    /// The time of each move; nullopt: the estimate of its plan.
    [[nodiscard]] std::optional<Index> move_time() const {
        const Index time = (*this)["move"];
        return time == 0 ? std::nullopt : std::optional(time);
    }

private:
    std::map<std::string_view, Index> values_;
};

/// `width` devices from `first` on, as one axis d.
[[nodiscard]] Mesh devices_from(Index first, Index width);
/// u8[bytes x devices @ d]: so many bytes on each device.
[[nodiscard]] Layout bytes_on_each(const Mesh& mesh, Index bytes);

/// The pipelines: gpipe, 1f1b, eager, interleaved, zero_bubble. Errors: usage.
[[nodiscard]] Result<Program> pipeline(std::string_view kind, const Parameters& given);

}  // namespace reshard::program
