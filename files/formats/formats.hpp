// The table of formats. All code that opens, creates or names a checkpoint asks it.
#pragma once

#include "files/formats/new_files.hpp"

namespace reshard::files {

/// A path, and what it names.
struct Found {
    std::string path;
    bool folder = false;
    std::vector<std::string> names;  ///< in the folder, in order
    [[nodiscard]] bool has(std::string_view name) const;
};

struct Format {
    Form form = Form::index;
    std::string_view name;    ///< of the form, in options
    std::string_view suffix;  ///< of a path that asks for the form; the first row without one gets all other paths
    std::string_view what;    ///< what a path to it names, for people
    bool one_file = false;    ///< else a folder
    bool whole = true;        ///< holds whole tensors; else what its layout gives each rank
    bool (*is)(const Found& found) = nullptr;  ///< asked in the order of the table
    Result<Checkpoint> (*open)(const Found& found) = nullptr;
    Result<NewFiles> (*create)(const NewContents& contents) = nullptr;
};

[[nodiscard]] const Format& format_of(Form form);

}  // namespace reshard::files
