#include <algorithm>

#include "bindings/c/answer.hpp"
#include "reshard/notations/notation.hpp"

namespace reshard::c {
namespace {

Result<Layout> read(const char* notation, const char* mesh, const char* array, const char* text) {
    RESHARD_TRY(const auto name, need_text(notation, "notation"));
    RESHARD_TRY(const auto layout, need_text(text, "text"));
    RESHARD_TRY(const Notation how, parse_notation(name));
    NotationContext setting;
    if (array != nullptr) {
        RESHARD_ASSIGN(setting, parse_array(array));
    } else if (how != Notation::jax) {
        return fail(Code::usage, "`array` is needed, dtype and shape: f32[8,4]; NULL was given");
    }
    if (mesh != nullptr) {
        RESHARD_ASSIGN(setting.mesh, parse_mesh(how, mesh));
    } else if (how != Notation::sdy && how != Notation::hlo) {
        return fail(Code::usage, "`mesh` is needed, since this notation does not bring its own; NULL was given");
    }
    return parse_layout(how, setting, layout);
}

// One number for each dimension of the layout; a device without a tile of rank 0 has one more, which is not asked for.
Result<void> copy(const Layout& layout, const std::vector<Index>& numbers, int64_t* place, int64_t dims) {
    if (std::ssize(layout.dims) != dims) {
        return fail(Code::mismatch, "the array has " + std::to_string(layout.dims.size()) + " dimensions, `dims` is " +
                                        std::to_string(dims));
    }
    if (place != nullptr) std::copy_n(numbers.begin(), dims, place);
    return {};
}

}  // namespace
}  // namespace reshard::c

using namespace reshard;
using namespace reshard::c;

extern "C" {

int reshard_mesh_parse(const char* text, reshard_mesh** mesh, reshard_error** error) {
    return make(mesh, error, [&]() -> Result<Mesh> {
        RESHARD_TRY(const auto given, need_text(text, "text"));
        return parse_mesh(given);
    });
}

const char* reshard_mesh_text(const reshard_mesh* mesh) { return mesh == nullptr ? nullptr : mesh->text.c_str(); }

int64_t reshard_mesh_device_count(const reshard_mesh* mesh) { return mesh == nullptr ? -1 : device_count(mesh->mesh); }

int64_t reshard_mesh_world_size(const reshard_mesh* mesh) { return mesh == nullptr ? -1 : world_size(mesh->mesh); }

int reshard_layout_parse(const reshard_mesh* mesh, const char* text, reshard_layout** layout, reshard_error** error) {
    return make(layout, mesh, error, [&](auto& over) -> Result<Layout> {
        RESHARD_TRY(const auto given, need_text(text, "text"));
        return parse_layout(over.mesh, given);
    });
}

int reshard_layout_read(const char* notation, const char* mesh, const char* array, const char* text,
                        reshard_layout** layout, reshard_error** error) {
    return make(layout, error, [&] { return read(notation, mesh, array, text); });
}

const char* reshard_layout_text(const reshard_layout* layout) {
    return layout == nullptr ? nullptr : layout->text.c_str();
}

int reshard_layout_write(const reshard_layout* layout, const char* notation, reshard_text** text,
                         reshard_error** error) {
    return make(text, layout, error, [&](auto& given) -> Result<std::string> {
        RESHARD_TRY(const auto name, need_text(notation, "notation"));
        RESHARD_TRY(const Notation how, parse_notation(name));
        return format(how, given.layout);
    });
}

int reshard_layout_mesh(const reshard_layout* layout, reshard_mesh** mesh, reshard_error** error) {
    return make(mesh, layout, error, [&](auto& given) { return given.layout.mesh; });
}

const char* reshard_layout_dtype(const reshard_layout* layout) {
    return layout == nullptr ? nullptr : name(layout->layout.dtype).data();  // a literal
}

int64_t reshard_layout_element_bytes(const reshard_layout* layout) {
    return layout == nullptr ? -1 : size_of(layout->layout.dtype);
}

int64_t reshard_layout_dims(const reshard_layout* layout) {
    return layout == nullptr ? -1 : std::ssize(layout->layout.dims);
}

int reshard_layout_shape(const reshard_layout* layout, int64_t* extents, int64_t dims, reshard_error** error) {
    return answer(layout, error, [&](auto& given) -> Result<void> {
        if (extents == nullptr && dims > 0) return fail(Code::usage, "there is no place for extents: NULL");
        return copy(given.layout, shape(given.layout), extents, dims);
    });
}

int reshard_layout_tile(const reshard_layout* layout, int64_t device, int64_t* extents, int64_t* first, int64_t dims,
                        reshard_error** error) {
    return answer(layout, error, [&](auto& given) -> Result<void> {
        RESHARD_CHECK(need_count(device, 0, "device"));
        RESHARD_CHECK(copy(given.layout, tile_shape(given.layout, device), extents, dims));
        return copy(given.layout, tile_offset(given.layout, device), first, dims);
    });
}

int64_t reshard_layout_tile_count(const reshard_layout* layout, int64_t device) {
    if (layout == nullptr || device < 0) return -1;
    return number([&] { return static_cast<int64_t>(tile_count(layout->layout, device)); });
}

int64_t reshard_layout_tile_bytes(const reshard_layout* layout, int64_t device) {
    const int64_t count = reshard_layout_tile_count(layout, device);
    return count < 0 ? -1 : count * size_of(layout->layout.dtype);
}

}  // extern "C"
