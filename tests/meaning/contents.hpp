// What the elements of a drawn array are, and what arrives must be: small whole numbers that every dtype combines
// exactly, or, where nothing is combined, any bytes.
#pragma once

#include <span>

#include "meaning/holders.hpp"

namespace reshard::test {

class Contents {
public:
    explicit Contents(const Draft& draft);

    /// A device's tile as bytes.
    [[nodiscard]] std::vector<std::byte> bytes_of(const Holder& holder) const;
    /// The same as whole numbers; an avg's are its shares, which add up.
    [[nodiscard]] std::vector<std::int64_t> numbers_of(const Holder& holder) const;

    /// Empty when the target's tiles are right: replicas equal, and every element whole, or its summands combining to
    /// it. One entry per device.
    [[nodiscard]] std::string fault(const std::vector<Holder>& held,
                                    const std::vector<std::vector<std::byte>>& tiles) const;
    [[nodiscard]] std::string fault(const std::vector<Holder>& held,
                                    const std::vector<std::vector<std::int64_t>>& tiles) const;

private:
    /// In a dtype, or in the whole numbers of a simulation, which are of no dtype.
    enum class Realm { dtype, numbers };
    [[nodiscard]] Index value(Index element, Index summand) const;
    [[nodiscard]] Index combined(Realm realm, Reduction reduction, Index a, Index b) const;
    [[nodiscard]] Index total(Realm realm, Index element) const;
    [[nodiscard]] Index wanted(Realm realm, Index element) const;
    [[nodiscard]] std::string fault(Realm realm, const std::vector<Holder>& held,
                                    const std::vector<std::vector<std::int64_t>>& tiles) const;
    void put(Index number, std::byte* place) const;
    [[nodiscard]] Index get(const std::byte* place) const;

    DType dtype_;
    Index size_;
    Index elements_;
    Index source_summands_;
    Index target_summands_;
    Reduction source_;
    Reduction target_;
};

}  // namespace reshard::test
