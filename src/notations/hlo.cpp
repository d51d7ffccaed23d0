// XLA's HloSharding as text: V1, V2 (iota), V3 (named axes), tuples; read and written.
//
// text      := ["sharding" "="] sharding | "mhlo" "." "sharding" "=" '"' sharding '"'         as programs print them
// sharding  := single | "{" "}" | "{" single {"," single} "}"                         a tuple does not nest
// single    := "{" {item} "}" | "{" named "}" | "{" "maximal_mesh" "[" "device_id" "=" id "]" "}"
// item      := "replicated" | "manual" | "unknown" | "unreduced" | "maximal" | "device" "=" id
//            | "devices" "=" "[" n {"," n} "]" (id {"," id}                             V1: in row-major order of tiles
//                                              | "<=" "[" n {"," n} "]" ["T" "(" i {"," i} ")"])             V2: iota
//            | "last_tile_dim_replicate" | "last_tile_dims" "=" "{" [type {"," type}] "}"
//            | ("shard_as" | "shard_like") n | "metadata" "=" balanced                  read, and say nothing here
// type      := "manual" | "replicated" | "unreduced"
// named     := "mesh" "[" [axis "=" n {"," axis "=" n}] "]" ["," "device_ids" "=" order] ","
//              ("replicated" | "manual" | "unreduced" | "[" dims "]" {"," set})
// order     := "(" id {"," id} ")" | "(" "[" n {"," n} "]" ["T" "(" i {"," i} ")"] ")"
// set       := ("replicated" | "manual") "=" parts | "unreduced" "=" ["sum" | "max" | "min"] parts
// dims, parts as in sdy; axes in ' or bare. Comments /*..*/ are spaces.
//
// Checked beyond what XLA's parser does: the product of the tiles against the devices, and T being a permutation.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/base/try.hpp"
#include "src/notations/iota.hpp"
#include "src/notations/peers.hpp"
#include "src/text/scanner.hpp"

namespace reshard {

namespace notation {

namespace {

using Kind = HloSharding::Kind;
using Subgroup = HloSharding::Subgroup;

constexpr std::array<std::string_view, 3> subgroup_names = {"manual", "replicated", "unreduced"};

class HloReader {
public:
    explicit HloReader(std::string_view text) : scanner_(text, Spaces::comments) {}

    Result<HloSharding> read() {
        const bool quoted = scanner_.take_word("mhlo") && scanner_.take('.');
        if (scanner_.take_word("sharding")) RESHARD_CHECK(scanner_.expect('='));
        if (quoted) RESHARD_CHECK(scanner_.expect('"'));
        RESHARD_CHECK(scanner_.expect('{'));
        RESHARD_TRY(auto& sharding, scanner_.sees('{') || scanner_.sees('}') ? tuple() : single());
        if (quoted) RESHARD_CHECK(scanner_.expect('"'));
        RESHARD_CHECK(scanner_.expect_end());
        return std::move(sharding);
    }

private:
    Result<HloSharding> tuple() {
        HloSharding all;
        all.kind = Kind::tuple;
        if (scanner_.take('}')) return all;
        do {
            RESHARD_CHECK(scanner_.expect('{'));
            RESHARD_TRY(auto& one, single());
            all.elements.push_back(std::move(one));
        } while (scanner_.take(','));
        RESHARD_CHECK(scanner_.expect('}'));
        return all;
    }

    // The sharding in one pair of braces. The opening brace is already read.
    Result<HloSharding> single() {
        made_ = {};
        seen_.clear();
        begin_ = scanner_.offset();
        while (!scanner_.take('}')) {
            place_ = scanner_.place();
            const std::string word(scanner_.word());
            if (word.empty()) return scanner_.error(Code::syntax, "expected a part of a sharding", place_);
            if (std::ranges::find(seen_, word) != seen_.end())
                return scanner_.error(Code::syntax, fmt::format("{} is given twice", word), place_);
            seen_.push_back(word);
            if (word == "mesh" || word == "maximal_mesh") return named(word);
            RESHARD_CHECK(item(word));
        }
        return finished();
    }

    Result<void> item(std::string_view word) {
        if (word == "maximal" || word == "replicated" || word == "manual" || word == "unknown" || word == "unreduced")
            return {};
        if (word == "device") return equals().and_then([&] { return number("the device", made_.device); });
        if (word == "devices") return equals().and_then([&] { return devices(); });
        if (word == "last_tile_dim_replicate") {
            made_.subgroups = {Subgroup::replicated};
            return {};
        }
        if (word == "last_tile_dims") return equals().and_then([&] { return subgroups(); });
        Index group = 0;
        if (word == "shard_as" || word == "shard_like") return number("the group", group);
        if (word == "metadata") return equals().and_then([&] { return balanced(); });
        return scanner_.error(Code::syntax, fmt::format("'{}' is no part of a sharding", word), place_);
    }

    Result<void> equals() { return scanner_.expect('='); }

    Result<void> number(std::string_view what, Index& into) {
        RESHARD_ASSIGN(into, scanner_.integer(what));
        return {};
    }

    Result<void> devices() {
        RESHARD_ASSIGN(made_.tiles, scan_list(scanner_, '[', ']', "a tile count", 1));
        list_ = scanner_.place();
        if (scanner_.take('<')) {
            RESHARD_CHECK(scanner_.expect('='));
            return scan_iota(scanner_, made_.reshape, made_.transpose);
        }
        RESHARD_ASSIGN(made_.devices, scan_numbers(scanner_, "a device", 0));
        return {};
    }

    Result<void> subgroups() {
        RESHARD_CHECK(scanner_.expect('{'));
        while (!scanner_.sees('}')) {
            const std::size_t place = scanner_.place();
            const std::string_view word = scanner_.word();
            const auto known = std::ranges::find(subgroup_names, word);
            if (known == subgroup_names.end())
                return scanner_.error(Code::syntax, "expected manual, replicated or unreduced", place);
            made_.subgroups.push_back(static_cast<Subgroup>(known - subgroup_names.begin()));
            if (!scanner_.take(',')) break;
        }
        return scanner_.expect('}');
    }

    Result<void> balanced() {
        if (!scanner_.sees('{')) return scanner_.error(Code::syntax, "expected '{'");
        if (scanner_.skip_balanced('{', '}')) return {};
        return scanner_.error(Code::syntax, "a brace that does not close");
    }

    bool has(std::string_view word) const { return std::ranges::find(seen_, word) != seen_.end(); }

    Result<HloSharding> finished() {
        const auto error = [&](std::string message, std::size_t place) {
            return scanner_.error(Code::layout, std::move(message), place);
        };
        if (has("last_tile_dim_replicate") && has("last_tile_dims"))
            return error("last_tile_dim_replicate and last_tile_dims exclude each other", begin_);
        if (has("maximal") != has("device")) return error("maximal goes with device=", begin_);
        constexpr std::array<std::pair<std::string_view, Kind>, 5> words = {{{"replicated", Kind::replicated},
                                                                             {"maximal", Kind::maximal},
                                                                             {"manual", Kind::manual},
                                                                             {"unknown", Kind::unknown},
                                                                             {"unreduced", Kind::unreduced}}};
        int kinds = has("devices") ? 1 : 0;
        if (has("devices")) made_.kind = Kind::tiled;
        for (const auto& [word, kind] : words) {
            if (!has(word)) continue;
            made_.kind = kind;
            ++kinds;
        }
        if (kinds != 1)
            return error(kinds == 0 ? "it says neither replicated, maximal, ... nor devices=" : "two kinds in one",
                         begin_);
        if (made_.kind != Kind::tiled) {
            if (!made_.subgroups.empty()) return error("subgroups without devices=", begin_);
            return made_;
        }
        if (made_.subgroups.size() > made_.tiles.size()) return error("more subgroups than tile dimensions", begin_);
        return counted();
    }

    // The devices are as many as the tiles.
    Result<HloSharding> counted() {
        Index product = 1;
        for (const Index count : made_.tiles) product = saturating_multiply(product, count);
        Index devices = static_cast<Index>(made_.devices.size());
        for (std::size_t i = 0; i < made_.reshape.size(); ++i)
            devices = saturating_multiply(i == 0 ? 1 : devices, made_.reshape[i]);
        if (product != devices || product == index_max)
            return scanner_.error(
                Code::layout, fmt::format("{} tiles [{}] on {} devices", product, fmt::join(made_.tiles, ","), devices),
                list_);
        std::vector<Index> ids = made_.devices;
        std::ranges::sort(ids);
        if (std::ranges::adjacent_find(ids) != ids.end())
            return scanner_.error(Code::layout, "a device is named twice", list_);
        if (!ids.empty() && ids.back() != product - 1)
            return scanner_.error(Code::layout, fmt::format("device {} of {}", ids.back(), product), list_);
        return made_;
    }

    Result<HloSharding> named(std::string_view word);
    Result<Mesh> named_mesh();
    Result<void> named_sets(NamedAxes& axes);

    Scanner scanner_;
    HloSharding made_;
    std::vector<std::string> seen_;
    std::size_t begin_ = 0;
    std::size_t place_ = 0;
    std::size_t list_ = 0;
};

Result<Mesh> HloReader::named_mesh() {
    RESHARD_CHECK(scanner_.expect('['));
    RESHARD_TRY(auto& axes, scan_mesh_axes(scanner_, ']'));
    RESHARD_CHECK(scanner_.expect(']'));
    Mesh mesh(std::move(axes));
    RESHARD_CHECK(scanner_.expect(','));
    const std::size_t begin = scanner_.place();
    if (!scanner_.take_word("device_ids")) return mesh;
    RESHARD_CHECK(equals());
    RESHARD_CHECK(scanner_.expect('('));
    std::vector<Index> ids;
    if (scanner_.sees('[')) {
        std::vector<Index> shape;
        std::vector<Index> order;
        RESHARD_CHECK(scan_iota(scanner_, shape, order));
        if (device_count(mesh) > listed_devices_max)
            return scanner_.error(Code::unsupported, "too many devices to list", begin);
        const auto listed = iota_devices(shape, order, device_count(mesh));
        if (!listed) return scanner_.error(Code::mesh, "as many devices as the mesh has are wanted", begin);
        ids = *listed;
    } else {
        RESHARD_ASSIGN(ids, scan_numbers(scanner_, "a device", 0));
    }
    RESHARD_CHECK(scanner_.expect(')'));
    mesh.devices = DeviceList(ids);
    RESHARD_CHECK(scanner_.at(validate(mesh), begin));
    RESHARD_CHECK(scanner_.expect(','));
    return mesh;
}

Result<void> HloReader::named_sets(NamedAxes& axes) {
    std::vector<std::string> seen;
    while (scanner_.take(',')) {
        const std::size_t place = scanner_.place();
        const std::string word(scanner_.word());
        const bool known = word == "replicated" || word == "manual" || word == "unreduced" || word == "metadata";
        if (!known || std::ranges::find(seen, word) != seen.end())
            return scanner_.error(Code::syntax, "expected replicated, unreduced or manual, each once", place);
        seen.push_back(word);
        RESHARD_CHECK(equals());
        if (word == "metadata") {
            RESHARD_CHECK(balanced());
            continue;
        }
        RESHARD_TRY(const auto& list, word == "unreduced" ? axes.unreduced(made_.reduction) : axes.braces(false));
        if (word == "unreduced") made_.partial = as_set(list);
        if (made_.partial.empty()) made_.reduction = Reduction::sum;  // of nothing: axes of size 1
        if (word == "manual" && !list.empty()) made_.subgroups = {Subgroup::manual};
    }
    return {};
}

Result<HloSharding> HloReader::named(std::string_view word) {
    if (seen_.size() > 1) return scanner_.error(Code::syntax, "a mesh stands first", place_);
    if (word == "maximal_mesh") {
        made_.kind = Kind::maximal;
        RESHARD_CHECK(scanner_.expect('['));
        if (!scanner_.take_word("device_id")) return scanner_.error(Code::syntax, "expected device_id");
        RESHARD_CHECK(equals().and_then([&] { return number("the device", made_.device); }));
        RESHARD_CHECK(scanner_.expect(']'));
    } else {
        made_.kind = Kind::named;
        RESHARD_ASSIGN(made_.mesh, named_mesh());
        if (scanner_.sees('[')) {
            NamedAxes axes(scanner_, *made_.mesh);
            RESHARD_TRY(auto& dims, axes.dims());
            for (AtomList& atoms : dims) made_.dims.push_back(canonical(std::move(atoms)));
            RESHARD_CHECK(named_sets(axes));
        } else {
            const std::size_t place = scanner_.place();
            const std::string_view whole = scanner_.word();
            if (whole != "replicated" && whole != "manual" && whole != "unreduced")
                return scanner_.error(Code::syntax, "expected dimensions, replicated, manual or unreduced", place);
            made_.kind = whole == "replicated" ? Kind::replicated : whole == "manual" ? Kind::manual : Kind::unreduced;
        }
    }
    RESHARD_CHECK(scanner_.expect('}'));
    return made_;
}

}  // namespace

}  // namespace notation

Result<HloSharding> parse_hlo(std::string_view text) { return notation::HloReader(text).read(); }

}  // namespace reshard
