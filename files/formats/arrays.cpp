#include "files/formats/arrays.hpp"

#include <filesystem>

#include <fmt/format.h>

#include "files/base/file.hpp"
#include "files/formats/folder.hpp"
#include "files/formats/json_text.hpp"
#include "files/formats/safetensors.hpp"
#include "src/base/try.hpp"

namespace reshard::files {

std::string stem_of(const std::string& path) {
    std::string trimmed = path;
    while (trimmed.size() > 1 && trimmed.back() == '/') trimmed.pop_back();
    return std::filesystem::path(trimmed).stem().string();
}

Result<OpenedNpy> open_npy_header(const std::string& path) {
    RESHARD_TRY(const auto& file, File::open_to_read(path));
    RESHARD_TRY(const auto& bytes, file.size());
    RESHARD_TRY(const auto& start, file.start(npy_start_max));
    auto header = parse_npy(start, bytes);
    if (!header) return in_file(path, header.error());
    RESHARD_TRY(const auto& element, parse_descr(header->descr));
    return OpenedNpy{*std::move(header), element, bytes};
}

Result<Checkpoint> open_npy(const std::string& path) {
    RESHARD_TRY(const auto& npy, open_npy_header(path));
    const auto& [header, element, bytes] = npy;
    const auto elements = elements_of(header.descr);
    if (!elements) return in_file(path, elements.error());
    std::vector<Index> strides = dense_strides(header.shape, element.bytes);
    if (header.fortran_order) {
        Index stride = element.bytes;
        for (std::size_t k = 0; k < strides.size(); ++k) {
            strides[k] = stride;
            stride = saturating_multiply(stride, header.shape[k]);
        }
    }
    Checkpoint made{"npy",
                    {{path, bytes}},
                    {{stem_of(path), elements->dtype, header.shape, {}, "", elements->type, elements->swapped}}};
    if (bytes > header.data_offset)
        made.tensors[0].boxes.push_back({whole_box(header.shape), 0, header.data_offset, std::move(strides)});
    return made;
}

Result<NewTensor> only_tensor(const NewContents& contents) {
    if (contents.tensors.size() != 1)
        return fail(Code::mismatch, fmt::format("{} holds one array, and there are {}", name(contents.options.form),
                                                contents.tensors.size()));
    RESHARD_CHECK(is_whole(contents.tensors[0], contents.options));
    const FileType& type = contents.tensors[0].type;
    if (!type.name.empty() && type.bits != 8 * size_of(contents.tensors[0].dtype))
        return fail(Code::unsupported, fmt::format("{} has no elements of type {}, which have {} bits",
                                                   name(contents.options.form), in_quotes(type.name), type.bits));
    return contents.tensors[0];
}

Result<NewFiles> new_npy(const NewContents& contents) {
    RESHARD_TRY(const auto& tensor, only_tensor(contents));
    NewFiles made;
    if (tensor.shape.size() > 32) return fail(Code::unsupported, "an .npy file of more than 32 dimensions");
    const std::string head = npy_header(descr_of(tensor.dtype, tensor.type), false, tensor.shape);
    RESHARD_TRY(const auto& bytes, dense_bytes(tensor.dtype, tensor.shape));
    const auto all = checked_add(std::ssize(head), bytes);
    if (!all) return fail(Code::overflow, "a file would have more bytes than 64 bits can count");
    made.what.files.push_back({contents.file, *all});
    made.fixed.push_back({0, 0, head});
    made.summed.push_back({0, std::ssize(head), *all, tensor.name});
    made.what.tensors.push_back({tensor.name, tensor.dtype, tensor.shape, {}, "", tensor.type});
    if (bytes > 0)
        made.what.tensors[0].boxes.push_back(
            {whole_box(tensor.shape), 0, std::ssize(head), dense_strides(tensor.shape, size_of(tensor.dtype))});
    return made;
}

}  // namespace reshard::files
