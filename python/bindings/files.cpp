#include "python/bindings/files.hpp"

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

nb::object array_of_tile(files::LoadedTile& tile) {
    const nb::capsule owner = keeper_of(std::move(tile.memory));
    return nb::cast(nb::ndarray<nb::numpy, std::uint8_t>(tile.bytes.data(), {tile.bytes.size()}, owner));
}

// The name, element type, shape of this rank's tile, and bytes of each tensor.
nb::list load(std::uintptr_t address, const std::string& path, const std::string& rules, const std::string& list,
              const Casts& casts, Index memory, Index jobs, bool verify) {
    const auto backend = backend_at(address);
    auto options = options_of(rules, casts, memory, jobs);
    options.verify = verify;
    options.list = unwrap(parse_tensors(list));
    Call::vote(*backend);
    auto loaded = waiting([&] { return files::load(*backend, path, options); });
    if (!loaded) raise(loaded.error());
    nb::list tiles;
    for (files::LoadedTile& tile : loaded->tiles)
        tiles.append(nb::make_tuple(tile.name, text_of(name(tile.layout->dtype)), nb::tuple(nb::cast(tile.shape)),
                                    tile.bytes.empty() ? nb::none() : array_of_tile(tile)));
    return tiles;
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
        expect_host(held.back(), names[i].c_str());
        if (!held.back().row_major())
            raise({Code::unsupported, "the tile of '" + names[i] + "' does not lie row-major: copy it first"});
        tiles.push_back({names[i], held.back().dtype, shapes[i], {held.back().bytes, held.back().size_bytes()}});
    }
    Call::vote(*backend);
    auto saved = waiting([&] { return files::save(*backend, path, tiles, options); });
    if (!saved) raise(saved.error());
}

}  // namespace

void add_files(nb::module_& module) {
    module.def("load", load, "address"_a, "path"_a, "rules"_a, "list"_a, "casts"_a, "memory"_a, "jobs"_a, "verify"_a);
    module.def("save", save, "address"_a, "path"_a, "names"_a, "shapes"_a, "arrays"_a, "form"_a, "rules"_a, "casts"_a,
               "memory"_a, "jobs"_a, "verify"_a, "resume"_a);
}

}  // namespace reshard::python
