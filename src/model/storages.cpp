// The storages of an array's tiles, from text.
#include <algorithm>

#include <fmt/format.h>

#include "reshard/model/rows.hpp"
#include "src/base/try.hpp"
#include "src/text/scanner.hpp"

namespace reshard {

namespace {

using notation::Scanner;

Result<std::vector<Index>> scan_order(Scanner& scanner, std::size_t rank) {
    const std::size_t begin = scanner.place();
    RESHARD_TRY(auto& order, notation::scan_numbers(scanner, "a dimension", 0));
    std::vector<bool> named(rank, false);
    for (const Index dim : order)
        if (dim < std::ssize(named)) named[static_cast<std::size_t>(dim)] = true;
    if (order.size() != rank || std::ranges::find(named, false) != named.end())
        return scanner.error(Code::mismatch, fmt::format("an order has each of the {} dimensions once", rank), begin);
    return std::move(order);
}

Storage dense_in_order(const Tile& tile, const std::vector<Index>& order) {
    Storage storage{0, std::vector<Index>(tile.size(), 1)};
    Index stride = 1;
    for (std::size_t i = order.size(); i-- > 0;) {
        const auto dim = static_cast<std::size_t>(order[i]);
        storage.strides[dim] = stride;
        stride *= tile[dim].size();
    }
    return storage;
}

Result<Storage> scan_strides(Scanner& scanner, std::size_t rank) {
    const std::size_t begin = scanner.place();
    RESHARD_TRY(auto& strides, notation::scan_numbers(scanner, "a stride in elements", 0));
    if (strides.size() != rank)
        return scanner.error(Code::mismatch, fmt::format("{} strides for {} dimensions", strides.size(), rank), begin);
    Storage storage{0, std::move(strides)};
    if (scanner.take_word("offset")) {
        RESHARD_ASSIGN(storage.offset, scanner.integer("an offset in elements"));
    }
    return storage;
}

}  // namespace

// storages := "order" numbers | strides {";" strides};  strides := "strides" numbers ["offset" integer]
Result<std::vector<Storage>> parse_storages(const Layout& layout, std::string_view text) {
    Scanner scanner(text);
    const Index ranks = world_size(layout.mesh);
    std::vector<Storage> storages;
    if (scanner.at_end()) return storages;
    if (scanner.take_word("order")) {
        RESHARD_TRY(const auto& order, scan_order(scanner, layout.dims.size()));
        RESHARD_CHECK(scanner.expect_end());
        for (Index rank = 0; rank < ranks; ++rank) storages.push_back(dense_in_order(tile(layout, rank), order));
        return storages;
    }
    do {
        if (!scanner.take_word("strides")) return scanner.error(Code::syntax, "expected `order` or `strides`");
        RESHARD_TRY(auto& storage, scan_strides(scanner, layout.dims.size()));
        storages.push_back(std::move(storage));
    } while (scanner.take(';'));
    RESHARD_CHECK(scanner.expect_end());
    if (storages.size() == 1) storages.resize(static_cast<std::size_t>(ranks), storages.front());
    if (std::ssize(storages) != ranks)
        return scanner.error(Code::mismatch,
                             fmt::format("{} storages; the layout has {} ranks", storages.size(), ranks), 0);
    return storages;
}

}  // namespace reshard
