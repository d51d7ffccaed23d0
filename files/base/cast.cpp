#include "files/base/cast.hpp"

#include "src/copy/cast.hpp"
#include "src/tables/dtypes.hpp"

namespace reshard::files {

bool can_cast(DType from, DType to) {
    const auto casts = [](DType dtype) {
        return tables::row(dtype).kind == tables::Kind::floating && dtype != DType::f64;
    };
    return from != to && casts(from) && casts(to);
}

void cast_box(DType from, DType to, const Region& source, const Region& target, const std::byte* source_bytes,
              std::byte* target_bytes) {
    BoxCast(from, to, source, target).run(source_bytes, target_bytes);
}

}  // namespace reshard::files
