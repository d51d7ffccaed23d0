#include "support/hlo.hpp"

#include <algorithm>
#include <regex>

namespace reshard::test {

namespace {

std::vector<Index> numbers(const std::string& text) {
    std::vector<Index> found;
    Index value = 0;
    bool open = false;
    for (const char c : text + ",") {
        if (c >= '0' && c <= '9') {
            value = value * 10 + (c - '0');
            open = true;
        } else if (open) {
            found.push_back(value);
            value = 0;
            open = false;
        }
    }
    return found;
}

}  // namespace

std::optional<Layout> layout_of_hlo(const std::string& text, DType dtype, const std::vector<Index>& shape,
                                    Index devices) {
    Layout layout{dtype, Mesh{{"d", devices}}, {}, {}};
    for (const Index extent : shape) layout.dims.push_back({extent, {}});
    if (text == "{replicated}") return layout;
    static const std::regex iota(
        R"(\{devices=\[([\d,]+)\]<=\[([\d,]+)\](T\(([\d,]+)\))?( last_tile_dim_replicate)?\})");
    std::smatch match;
    if (!std::regex_match(text, match, iota)) return std::nullopt;
    const std::vector<Index> tiles = numbers(match[1]);
    const std::vector<Index> radix = numbers(match[2]);
    std::vector<Index> order = numbers(match[4]);
    for (std::size_t i = order.size(); i < radix.size(); ++i) order.push_back(static_cast<Index>(i));
    if (tiles.size() != shape.size() + (match[5].matched ? 1 : 0)) return std::nullopt;
    // The digits of the device number in the order in which the tiles run through them, major to minor.
    AtomList digits;
    for (const Index digit : order) {
        Index stride = 1;
        for (std::size_t i = static_cast<std::size_t>(digit) + 1; i < radix.size(); ++i) stride *= radix[i];
        digits.push_back({radix[static_cast<std::size_t>(digit)], stride});
    }
    for (std::size_t i = 0; i < tiles.size(); ++i) {
        AtomList atoms;
        for (Index left = tiles[i]; left > 1;) {
            while (!digits.empty() && digits.front().size == 1) digits.erase(digits.begin());
            if (digits.empty()) return std::nullopt;
            Atom& head = digits.front();
            const Index size = std::min(head.size, left);
            if (head.size % size != 0 || left % size != 0) return std::nullopt;
            head.size /= size;
            atoms.push_back({size, head.stride * head.size});
            left /= size;
        }
        if (i < shape.size()) layout.dims[i].atoms = canonical(std::move(atoms));
    }
    if (!validate(layout)) return std::nullopt;
    return layout;
}

}  // namespace reshard::test
