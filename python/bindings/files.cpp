#include "python/bindings/files.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "python/bindings/arrays.hpp"
#include "python/bindings/door.hpp"
#include "reshard/files/load.hpp"

namespace reshard::python {
namespace {

using namespace nb::literals;

using Casts = std::vector<std::pair<std::string, std::string>>;  // pattern, element type

files::ConvertOptions options_of(const std::string& rules, const Casts& casts, Index memory, Index jobs) {
    files::ConvertOptions options;
    options.rules = rules;
    options.memory = memory;
    options.jobs = jobs;
    for (const auto& [pattern, dtype] : casts) options.casts.push_back({pattern, unwrap(parse_dtype(dtype))});
    return options;
}

// This rank's tile of a tensor, as dense memory.
files::SavedTile tile_of(const std::string& name, const Array& array, const std::vector<Index>& shape) {
    expect_host(array, name.c_str());
    if (!array.row_major())
        raise({Code::unsupported, "the tile of '" + name + "' does not lie row-major: copy it first"});
    return {name, array.dtype, shape, {array.bytes, array.size_bytes()}};
}

nb::object array_of_tile(files::LoadedTile& tile) {
    const nb::capsule owner = keeper_of(std::move(tile.memory));
    return nb::cast(nb::ndarray<nb::numpy, std::uint8_t>(tile.bytes.data(), {tile.bytes.size()}, owner));
}

// The name, element type, shape of this rank's tile, and bytes of each tensor.
nb::list listed(Result<files::Loaded> loaded) {
    if (!loaded) raise(loaded.error());
    nb::list tiles;
    for (files::LoadedTile& tile : loaded->tiles)
        tiles.append(nb::make_tuple(tile.name, text_of(name(tile.layout->dtype)), nb::tuple(nb::cast(tile.shape)),
                                    tile.bytes.empty() ? nb::none() : array_of_tile(tile)));
    return tiles;
}

nb::list load(std::uintptr_t address, const std::string& path, const std::string& rules, const std::string& list,
              const Casts& casts, Index memory, Index jobs, bool verify) {
    const auto backend = backend_at(address);
    auto options = options_of(rules, casts, memory, jobs);
    options.verify = verify;
    options.list = unwrap(parse_tensors(list));
    Call::vote(*backend);
    return listed(waiting([&] { return files::load(*backend, path, options); }));
}

// `list`: the tensors of the source. `tiles`: of this rank by name. A tensor that is not among them has no elements
// here.
nb::list move_tensors(std::uintptr_t address, const nb::dict& tiles, const std::string& rules, const std::string& list,
                      const Casts& casts) {
    const auto backend = backend_at(address);
    const auto options = options_of(rules, casts, 0, 0);
    std::vector<Array> held;
    std::vector<files::SavedTile> given;
    for (const ListedTensor& tensor : unwrap(parse_tensors(list))) {
        given.push_back({tensor.name, tensor.dtype, tensor.shape, {}});
        if (!tiles.contains(tensor.name.c_str())) continue;
        held.push_back(array_of(tiles[tensor.name.c_str()], tensor.name.c_str(), Access::read));
        given.back() = tile_of(tensor.name, held.back(), tensor.shape);
        if (given.back().dtype != tensor.dtype)
            raise({Code::mismatch, fmt::format("the tile of '{}' is {}, and the list says {}", tensor.name,
                                               name(given.back().dtype), name(tensor.dtype))});
    }
    for (auto entry = tiles.begin(); held.size() < tiles.size() && entry != tiles.end(); ++entry) {
        const std::string key = nb::str((*entry).first).c_str();
        if (std::ranges::find(given, key, &files::SavedTile::name) == given.end())
            raise({Code::mismatch, fmt::format("the list has no tensor '{}'", key)});
    }
    Call::vote(*backend);
    return listed(waiting([&] { return files::move_tensors(*backend, given, options); }));
}

// The whole shapes of the tensors, and this rank's tiles as dense memory.
void save(std::uintptr_t address, const std::string& path, const std::vector<std::string>& names,
          const std::vector<std::vector<Index>>& shapes, const nb::list& arrays, const std::string& form,
          const std::string& rules, const Casts& casts, Index memory, Index jobs, bool verify, bool resume) {
    const auto backend = backend_at(address);
    std::vector<Array> held;
    std::vector<files::SavedTile> tiles;
    auto options = options_of(rules, casts, memory, jobs);
    options.verify = verify;
    options.resume = resume;
    options.form = form.empty() ? files::form_of_path(path) : unwrap(files::parse_form(form));
    for (std::size_t i = 0; i < names.size(); ++i) {
        held.push_back(array_of(arrays[i], names[i].c_str(), Access::read));
        tiles.push_back(tile_of(names[i], held.back(), shapes[i]));
    }
    Call::vote(*backend);
    auto saved = waiting([&] { return files::save(*backend, path, tiles, options); });
    if (!saved) raise(saved.error());
}

}  // namespace

void add_files(nb::module_& module) {
    module.def("load", load, "address"_a, "path"_a, "rules"_a, "list"_a, "casts"_a, "memory"_a, "jobs"_a, "verify"_a);
    module.def("move_tensors", move_tensors, "address"_a, "tiles"_a, "rules"_a, "list"_a, "casts"_a);
    module.def("save", save, "address"_a, "path"_a, "names"_a, "shapes"_a, "arrays"_a, "form"_a, "rules"_a, "casts"_a,
               "memory"_a, "jobs"_a, "verify"_a, "resume"_a);
}

}  // namespace reshard::python
