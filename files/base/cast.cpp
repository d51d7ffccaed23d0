#include "files/base/cast.hpp"

#include <algorithm>
#include <array>

#include "src/tables/dtypes.hpp"

namespace reshard::files {
namespace {

// Calls visit(line, source, target) for each line of elements of the last dimension.
template <class Visit>
void for_each_line(const Region& source, const Region& target, const std::byte* source_bytes, std::byte* target_bytes,
                   const Visit& visit) {
    std::vector<LoopNest::Loop> loops;
    for (std::size_t k = 0; k < source.extents.size(); ++k) {
        if (source.extents[k] == 0) return;
        loops.push_back({source.extents[k], source.strides_bytes[k], target.strides_bytes[k]});
    }
    LoopNest::Loop line{1, 0, 0};
    if (!loops.empty()) {
        line = loops.back();
        loops.pop_back();
    }
    for_each(loops, source_bytes + source.offset_bytes, target_bytes + target.offset_bytes,
             [&](const std::byte* at, std::byte* into) { visit(line, at, into); });
}

// Reverses the bytes of an element. A complex number is two numbers.
void swap_element(DType dtype, const std::byte* from, std::byte* to) {
    const Index parts = is_complex(dtype) ? 2 : 1;
    const Index bytes = size_of(dtype) / parts;
    for (Index part = 0; part < parts; ++part)
        std::reverse_copy(from + part * bytes, from + (part + 1) * bytes, to + part * bytes);
}

}  // namespace

bool can_cast(DType from, DType to) {
    const auto casts = [](DType dtype) {
        return tables::row(dtype).kind == tables::Kind::floating && dtype != DType::f64;
    };
    return from != to && casts(from) && casts(to);
}

void cast_box(DType from, DType to, const Region& source, const Region& target, const std::byte* source_bytes,
              std::byte* target_bytes) {
    BoxCopy(source, target, cast_of(from, to)).run(source_bytes, target_bytes);
}

void copy_swapped(DType from, DType to, const Region& source, const Region& target, const std::byte* source_bytes,
                  std::byte* target_bytes) {
    const ElementCast cast = cast_of(from, to);
    const CastLine one = cast.lines[0];
    for_each_line(source, target, source_bytes, target_bytes,
                  [&](const LoopNest::Loop& line, const std::byte* at, std::byte* into) {
                      std::array<std::byte, 16> element{};
                      for (Index i = 0; i < line.extent; ++i) {
                          std::byte* const place = into + i * line.target_stride;
                          swap_element(from, at + i * line.source_stride, cast ? element.data() : place);
                          if (cast) one(1, cast.from_bytes, cast.to_bytes, element.data(), place);
                      }
                  });
}

}  // namespace reshard::files
