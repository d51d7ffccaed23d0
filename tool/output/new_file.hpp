// Files and folders that take their name when they are whole. Until then the name means what it meant before.
#pragma once

#include <optional>

#include "files/base/file.hpp"
#include "tool/output/temporary_path.hpp"

namespace reshard::cli {

using files::cannot;
using files::File;

/// What a folder is for: rank7.source.npy, rank7.target.npy and rank7.json, or rank7.rows.npy and arrays.tsv.
enum class Contents { tiles, rows };
/// A file of that name is one of those.
[[nodiscard]] bool belongs(Contents contents, std::string_view name);

/// Where an output goes. Symbolic links are followed, so what they lead to is replaced; other hard links of a file that
/// is replaced keep what they had.
struct Destination {
    enum class Kind { fresh, old, stream };
    Kind kind = Kind::fresh;  ///< a stream, a pipe or a device, is written where it is
    std::string path;
    unsigned mode = 0;  ///< of what is replaced, as are the next two
    unsigned user = 0;
    unsigned group = 0;
    Contents contents = Contents::tiles;  ///< of a folder
};

/// Errors: io; for a folder, a socket, a disk, a link to nothing, a file that may not be written, and for stdout, which
/// has the report.
[[nodiscard]] Result<Destination> destination_of_file(const std::string& path);

/// A folder of such files. Errors: io; for one that has others, and for those that cannot be exchanged.
[[nodiscard]] Result<Destination> destination_of_folder(const std::string& path, Contents contents);

class NewFile {
public:
    /// pre: no stream. With `other_processes` that write it too it has a name meanwhile, else none where the file
    /// system can do that. Errors: io.
    [[nodiscard]] static Result<NewFile> begin(Destination destination, bool other_processes);

    [[nodiscard]] File& file() { return file_; }
    [[nodiscard]] std::string way() const;  ///< for File::open_again, of other ranks
    /// To the disk, and named. Errors: io.
    [[nodiscard]] Result<void> commit();

private:
    NewFile(Destination destination, File file, TemporaryPath partial);

    Destination destination_;
    File file_;
    TemporaryPath partial_;
};

class NewFolder {
public:
    /// Errors: io.
    [[nodiscard]] static Result<NewFolder> begin(Destination destination);

    [[nodiscard]] const std::string& path() const { return partial_.path(); }  ///< until it is committed
    /// To the disk, and named; a folder that it replaces goes. Errors: io.
    [[nodiscard]] Result<void> commit();

private:
    NewFolder(Destination destination, TemporaryPath partial);

    Destination destination_;
    TemporaryPath partial_;
};

/// A folder that is not committed yet.
struct PartialFolder {
    std::string path;
    std::string shown;  ///< its final path, for errors
};
/// Writes a new file, head first, to a partial folder. Errors: io.
[[nodiscard]] Result<void> write_file(const PartialFolder& folder, const std::string& name, const std::string& head,
                                      std::span<const std::byte> body);

/// Writes a text: to a file whole or not at all, to a stream as it is. Errors: io.
[[nodiscard]] Result<void> write_text(const Destination& destination, const std::string& text);

}  // namespace reshard::cli
