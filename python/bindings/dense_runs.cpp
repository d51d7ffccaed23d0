#include "python/bindings/dense_runs.hpp"

#include <fmt/format.h>

namespace reshard::python {

std::string named(const char* what, std::size_t count, std::size_t number) {
    return count == 1 ? std::string(what) : fmt::format("{}[{}]", what, number);
}

std::span<std::byte> DenseArrays::add(nb::handle object, const std::string& name, Access access, DType dtype,
                                      const std::vector<Index>& shape, Index rank) {
    Array array = array_of(object, name.c_str(), access);
    expect_host(array, name.c_str());
    expect_tile(array, name.c_str(), dtype, shape, rank);
    if (!array.row_major())
        raise({Code::mismatch, fmt::format("`{}` is not row-major; a dense array in C order is wanted", name)});
    held.push_back(std::move(array));
    return {held.back().bytes, held.back().size_bytes()};
}

}  // namespace reshard::python
