// Files and folders that get their name when they are complete. Until then the name keeps its old meaning.
#pragma once

#include "files/base/file.hpp"
#include "tool/output/temporary_path.hpp"

namespace reshard::cli {

using files::cannot;
using files::File;

/// The contents of a folder: rank7.source.npy, rank7.target.npy and rank7.json, or rank7.rows.npy and arrays.tsv.
enum class Contents { tiles, rows };
/// True if a file of that name is one of these.
[[nodiscard]] bool belongs(Contents contents, std::string_view name);

/// The destination of an output. Symbolic links are followed, and their target is replaced. Other hard links of a
/// replaced file keep its old contents.
struct Destination {
    enum class Kind { fresh, old, stream };
    Kind kind = Kind::fresh;  ///< a stream, a pipe or a device, is written where it is
    std::string path;
    unsigned mode = 0;  ///< of the replaced file or folder, as are the next two
    unsigned user = 0;
    unsigned group = 0;
    Contents contents = Contents::tiles;  ///< of a folder
};

/// Errors: io (a folder, a socket, a disk, a link to nothing, a file that may not be written; stdout, which has the
/// report).
[[nodiscard]] Result<Destination> destination_of_file(const std::string& path);

/// A folder of such files. Errors: io (a folder with other files, or one that cannot be exchanged).
[[nodiscard]] Result<Destination> destination_of_folder(const std::string& path, Contents contents);

class NewFile {
public:
    /// Begins a file. If `other_processes` write it too, it has a temporary name, and otherwise no name if the file
    /// system can do that. pre: no stream. Errors: io.
    [[nodiscard]] static Result<NewFile> begin(Destination destination, bool other_processes);

    [[nodiscard]] File& file() { return file_; }
    [[nodiscard]] std::string way() const;  ///< for File::open_again, of other ranks
    /// Brings the file to the disk and gives it its name. Errors: io.
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
    /// Brings the folder to the disk, gives it its name, and removes the folder that it replaces. Errors: io.
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
