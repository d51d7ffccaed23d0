#include "files/formats/formats.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>

#include "files/base/file.hpp"
#include "files/formats/arrays.hpp"
#include "files/formats/folder.hpp"
#include "files/formats/json_text.hpp"
#include "files/formats/zarr.hpp"
#include "src/base/try.hpp"

namespace reshard::files {

namespace {

constexpr std::string_view a_folder = "a folder of .safetensors files";

bool is_folder_of_ranks(const Found& found) {
    const auto files = safetensors_in(found);
    return !files.empty() && std::ranges::all_of(files, [](const auto& name) { return rank_in(name).has_value(); });
}

// A format is one row. open_checkpoint asks the rows in this order.
constexpr std::array table = {
    Format{Form::npy, "npy", ".npy", "an .npy file", true, true,
           [](const Found& found) { return !found.folder && found.path.ends_with(".npy"); },
           [](const Found& found) { return open_npy(found.path); }, new_npy},
    Format{Form::single, "single", ".safetensors", "a .safetensors file", true, true,
           [](const Found& found) { return !found.folder; }, open_single, new_single},
    Format{Form::zarr, "zarr", ".zarr", "a folder of zarr v3 or v2", false, true,
           [](const Found& found) { return found.has("zarr.json"); },
           [](const Found& found) { return open_zarr(found.path); }, new_zarr},
    Format{Form::index, "index", "", a_folder, false, true, [](const Found& found) { return found.has(index_name); },
           open_index, new_index},
    Format{Form::zarr2, "zarr2", "", "a folder of zarr v3 or v2", false, true,
           [](const Found& found) { return found.has(".zarray"); },
           [](const Found& found) { return open_zarr2(found.path); }, new_zarr2},
    Format{Form::ranks, "ranks", "", a_folder, false, false, is_folder_of_ranks, open_ranks, new_ranks},
    Format{Form::dcp, "dcp", "", a_folder, false, false, [](const Found&) { return true; }, open_folder, new_dcp}};

}  // namespace

bool Found::has(std::string_view name) const { return std::ranges::find(names, name) != names.end(); }

const Format& format_of(Form form) { return *std::ranges::find(table, form, &Format::form); }

std::string_view name(Form form) { return format_of(form).name; }

bool is_one_file(Form form) { return format_of(form).one_file; }

Form form_of_path(std::string_view path) {
    return std::ranges::find_if(table, [&](const Format& one) { return path.ends_with(one.suffix); })->form;
}

std::string forms_in_words() {
    std::string words;
    for (const Format& one : table) {
        words += fmt::format("{}{}", words.empty() ? "" : ", ", one.name);
        if (one.form != form_of_path(one.suffix)) continue;  // only its name asks for it
        words += fmt::format(" ({})", one.suffix.empty() ? "any other name" : one.suffix);
    }
    return words;
}

std::string paths_in_words() {
    std::vector<std::string_view> words;
    for (const Format& one : table)
        if (std::ranges::find(words, one.what) == words.end()) words.push_back(one.what);
    return fmt::format("{}", fmt::join(words, ", "));
}

Result<Form> parse_form(std::string_view text) {
    const auto found = std::ranges::find(table, text, &Format::name);
    if (found != table.end()) return found->form;
    return fail(Code::usage, fmt::format("there is no form {}; the forms are {}", in_quotes(text), forms_in_words()));
}

Result<Checkpoint> open_checkpoint(const std::string& path) {
    RESHARD_TRY(const auto& mode, mode_of(path));
    Found found{path, S_ISDIR(mode), {}};
    if (found.folder) {
        RESHARD_ASSIGN(found.names, names_in(path));
    }
    return std::ranges::find_if(table, [&](const Format& one) { return one.is(found); })->open(found);
}

Result<NewFiles> new_files(const NewContents& contents) {
    std::set<std::string_view> names;
    for (const NewTensor& tensor : contents.tensors)
        if (!names.insert(tensor.name).second || tensor.name == "__metadata__")
            return fail(Code::io, fmt::format("{} cannot be the name of {}", in_quotes(tensor.name),
                                              tensor.name == "__metadata__" ? "a tensor" : "two tensors"));
    return format_of(contents.options.form).create(contents);
}

}  // namespace reshard::files
