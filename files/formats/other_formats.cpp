#include "files/formats/other_formats.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace reshard::files {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view pickles =
    ", which holds pickles, and a pickle can run code: load it with torch.load(..., weights_only=True) and write it "
    "with "
    "safetensors.torch.save_file";

struct Known {
    std::string_view bytes;  // that the file begins with
    std::string_view what;
    bool of_torch = false;  // the sentence ends with `pickles`
};

constexpr std::array<Known, 21> known_formats = {
    {{"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19"sv, "an archive of torch.save before version 1.6",
      true},
     {"GGUF"sv, "a GGUF file, which is not read: convert the model that it was made from"},
     {"\x89HDF\r\n\x1a\n"sv, "an HDF5 file, which is not read: write its arrays as .npy, .zarr or .safetensors"},
     {"CDF\x01"sv, "a NetCDF file, which is not read: write its arrays as .npy, .zarr or .safetensors"},
     {"CDF\x02"sv, "a NetCDF file, which is not read: write its arrays as .npy, .zarr or .safetensors"},
     {"CDF\x05"sv, "a NetCDF file, which is not read: write its arrays as .npy, .zarr or .safetensors"},
     {"PAR1"sv, "a Parquet file, which is not read: write its arrays as .npy, .zarr or .safetensors"},
     {"ARROW1"sv, "an Arrow file, which is not read: write its arrays as .npy, .zarr or .safetensors"},
     {"7z\xbc\xaf\x27\x1c"sv, "a 7z archive: unpack it first"},
     {"\x93NUMPY"sv, "an .npy file: give it a name that ends in .npy"},
     {"\x1f\x8b"sv, "compressed with gzip: decompress it first"},
     {"\x28\xb5\x2f\xfd"sv, "compressed with zstd: decompress it first"},
     {"\xfd\x37zXZ\0"sv, "compressed with xz: decompress it first"},
     {"BZh"sv, "compressed with bzip2: decompress it first"},
     {"version https://git-lfs"sv, "a pointer of Git LFS and not the file itself: run git lfs pull"},
     {"<!DOCTYPE"sv, "a page of HTML, as a failed download leaves it: download the file again"},
     {"<!doctype"sv, "a page of HTML, as a failed download leaves it: download the file again"},
     {"<html"sv, "a page of HTML, as a failed download leaves it: download the file again"},
     {"\x7f\x45LF"sv, "a program: give a .safetensors file, an .npy file or a folder"},
     {"%PDF"sv, "a PDF document: give a .safetensors file, an .npy file or a folder"},
     {"{"sv, "a text of JSON: give the folder that an index or a zarr.json is in, not that file"}}};

// True for the first bytes of protocols 2 to 5. If the next byte is 0, they are the length of a safetensors header.
bool is_pickle(std::string_view start) {
    return start.size() > 2 && start[0] == '\x80' && start[1] >= 2 && start[1] <= 5 && start[2] != 0;
}

// The name of the first file in a zip archive.
std::string_view first_name(std::string_view zip) {
    constexpr std::size_t head = 30;
    if (zip.size() < head) return {};
    const auto byte = [&](std::size_t i) { return static_cast<std::size_t>(static_cast<unsigned char>(zip[i])); };
    return zip.substr(head, byte(26) | byte(27) << 8U);
}

std::string zip(std::string_view start) {
    const std::string_view name = first_name(start);
    if (name.ends_with(".npy")) return "an .npz archive: write each of its arrays as an .npy file";
    if (name.ends_with("/data.pkl") || name == "data.pkl" || name.ends_with("/version"))
        return fmt::format("an archive of torch.save (.pt, .pth, .bin){}", pickles);
    return fmt::format(
        "a zip archive. If it is a zarr store, unpack it. If torch.save wrote it (.pt, .pth, .bin), it "
        "is one{}",
        pickles);
}

struct KnownName {
    std::string_view begin;
    std::string_view end;  // empty: `begin` is the whole name; *: any
    std::string_view what;
    bool of_torch = false;
};

constexpr std::string_view an_orbax =
    "a checkpoint of Orbax (OCDBT), which is not read: restore it with Orbax, and write its arrays as .zarr or "
    ".safetensors";

constexpr std::array<KnownName, 15> known_names = {
    {{".metadata", "",
      "a checkpoint of torch.distributed.checkpoint (.distcp), whose .metadata is a pickle: "
      "reshard.distcp.to_safetensors of the Python package, with torch, writes it as .safetensors"},
     {"", ".distcp",
      "a checkpoint of torch.distributed.checkpoint without its .metadata: reshard.distcp.to_safetensors of the Python "
      "package, with torch, writes a whole one as .safetensors"},
     {".zgroup", "", "a group of zarr v2: name one of the arrays in it"},
     {"manifest.ocdbt", "", an_orbax},
     {"ocdbt.process_", "*", an_orbax},
     {"_METADATA", "", an_orbax},
     {"_CHECKPOINT_METADATA", "", an_orbax},
     {"", ".nc", "a folder of NetCDF files, which are not read: write their arrays as .npy, .zarr or .safetensors"},
     {"", ".pth", "a folder of archives of torch.save", true},
     {"", ".pt", "a folder of archives of torch.save", true},
     {"pytorch_model", ".bin", "a folder of archives of torch.save", true},
     {"", ".msgpack",
      "a folder of msgpack files of Flax, which are not read: load them with Flax and write .safetensors"},
     {"", ".data-00000-of-00001",
      "a checkpoint of TensorFlow, which is not read: load it with TensorFlow and write .safetensors"},
     {"", ".gguf", "a folder of GGUF files, which are not read: convert the model that they were made from"},
     {"", ".h5", "a folder of HDF5 files, which are not read: write their arrays as .npy, .zarr or .safetensors"}}};

bool fits(const KnownName& one, std::string_view name) {
    if (one.end == "*") return name.starts_with(one.begin);
    return one.end.empty() ? name == one.begin : name.starts_with(one.begin) && name.ends_with(one.end);
}

}  // namespace

std::optional<std::string> other_format(std::string_view start) {
    if (start.empty()) return "an empty file";
    if (start.starts_with("PK\x03\x04")) return zip(start);
    for (const Known& one : known_formats)
        if (start.starts_with(one.bytes)) return fmt::format("{}{}", one.what, one.of_torch ? pickles : "");
    if (is_pickle(start)) return "a pickle of Python: load it with the program that wrote it and write .safetensors";
    return std::nullopt;
}

std::optional<std::string> other_folder(std::span<const std::string> names) {
    for (const KnownName& one : known_names)
        if (std::ranges::any_of(names, [&](const std::string& name) { return fits(one, name); }))
            return fmt::format("{}{}", one.what, one.of_torch ? pickles : "");
    return std::nullopt;
}

}  // namespace reshard::files
