// The elements of a drawn array, and the elements that must arrive: small whole numbers that every dtype combines
// exactly, or any bytes if nothing is combined.
#pragma once

#include <span>

#include "meaning/holders.hpp"

namespace reshard::test {

class Contents {
public:
    explicit Contents(const Draft& draft);

    /// A device's tile as bytes.
    [[nodiscard]] std::vector<std::byte> bytes_of(const Holder& holder) const;
    /// The same as whole numbers. The summands of an avg are shares, which add up.
    [[nodiscard]] std::vector<std::int64_t> numbers_of(const Holder& holder) const;

    /// Empty if the target's tiles are right: replicas are equal, and every element is whole or its summands combine to
    /// it. One entry per device.
    [[nodiscard]] std::string fault(const std::vector<Holder>& held,
                                    const std::vector<std::vector<std::byte>>& tiles) const;
    [[nodiscard]] std::string fault(const std::vector<Holder>& held,
                                    const std::vector<std::vector<std::int64_t>>& tiles) const;

private:
    /// Values in a dtype, or in the whole numbers of a simulation, which have no dtype.
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
