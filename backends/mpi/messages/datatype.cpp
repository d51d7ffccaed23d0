#include "backends/mpi/messages/datatype.hpp"

#include <array>

#include "src/base/try.hpp"
#include "src/tables/dtypes.hpp"

namespace reshard::mpi {
namespace {

constexpr Index count_max = Index{1} << 30;  // of one constructor; below 2^31 and a whole number of pages

Result<Datatype> committed(Result<Datatype> type) {
    if (!type) return type;
    MPI_Datatype raw = type->get();
    RESHARD_CHECK(checked(MPI_Type_commit(&raw), "MPI_Type_commit"));
    return type;
}

Result<Datatype> joined(const std::vector<MPI_Datatype>& types, const std::vector<MPI_Aint>& offsets) {
    const std::vector<int> ones(types.size(), 1);
    MPI_Datatype made = MPI_DATATYPE_NULL;
    const int code =
        MPI_Type_create_struct(static_cast<int>(types.size()), ones.data(), offsets.data(), types.data(), &made);
    RESHARD_CHECK(checked(code, "MPI_Type_create_struct"));
    return Datatype(made);
}

// `count` elements, `stride` bytes apart. If one constructor cannot count them: rows, rows of rows, and a rest.
Result<Datatype> repeated(MPI_Datatype element, Index count, Index stride) {
    if (count <= count_max) {
        MPI_Datatype made = MPI_DATATYPE_NULL;
        const int code = MPI_Type_create_hvector(static_cast<int>(count), 1, stride, element, &made);
        RESHARD_CHECK(checked(code, "MPI_Type_create_hvector"));
        return Datatype(made);
    }
    const Index rows = count / count_max;
    RESHARD_TRY(const auto& row, repeated(element, count_max, stride));
    auto whole = repeated(row.get(), rows, stride * count_max);
    if (!whole || count % count_max == 0) return whole;
    RESHARD_TRY(const auto& rest, repeated(element, count % count_max, stride));
    return joined({whole->get(), rest.get()}, {0, stride * count_max * rows});
}

Result<Datatype> uncommitted_type(const Region& region) {
    Region merged = coalesce(region);
    Index run_bytes = merged.element_bytes;
    if (!merged.extents.empty() && merged.strides_bytes.back() == merged.element_bytes) {
        run_bytes *= merged.extents.back();
        merged.extents.pop_back();
    }
    auto type = repeated(MPI_BYTE, run_bytes, 1);
    for (std::size_t k = merged.extents.size(); k-- > 0 && type;) {
        type = repeated(type->get(), merged.extents[k], merged.strides_bytes[k]);
    }
    return type;
}

// MPI gives an operation no state, so each dtype and combination has a function of its own.
template <DType dtype, Combine combine>
void apply(void* source, void* target, int* elements, MPI_Datatype*) {
    combine_dense(dtype, combine, static_cast<const std::byte*>(source), static_cast<std::byte*>(target), *elements);
}

// Indexed by Combine. A copy has no function.
template <DType dtype>
constexpr std::array<MPI_User_function*, 5> functions = {nullptr, apply<dtype, Combine::sum>,
                                                         apply<dtype, Combine::max>, apply<dtype, Combine::min>,
                                                         apply<dtype, Combine::prod>};
static_assert(functions<DType::f32>[static_cast<std::size_t>(Combine::sum)] == apply<DType::f32, Combine::sum> &&
              functions<DType::f32>[static_cast<std::size_t>(Combine::max)] == apply<DType::f32, Combine::max> &&
              functions<DType::f32>[static_cast<std::size_t>(Combine::min)] == apply<DType::f32, Combine::min> &&
              functions<DType::f32>[static_cast<std::size_t>(Combine::prod)] == apply<DType::f32, Combine::prod>);

template <std::size_t... number>
MPI_User_function* function_of(DType dtype, Combine combine, std::index_sequence<number...>) {
    constexpr std::array all = {functions<static_cast<DType>(number)>...};
    return all[static_cast<std::size_t>(dtype)][static_cast<std::size_t>(combine)];
}

}  // namespace

Result<Datatype> region_type(const Region& region) { return committed(uncommitted_type(region)); }

Result<Datatype> element_type(DType dtype) { return committed(repeated(MPI_BYTE, size_of(dtype), 1)); }

Result<Operation> reduce_operation(DType dtype, Combine combine) {
    MPI_Op made = MPI_OP_NULL;
    const int code =
        MPI_Op_create(function_of(dtype, combine, std::make_index_sequence<tables::dtypes.size()>{}), 1, &made);
    RESHARD_CHECK(checked(code, "MPI_Op_create"));
    return Operation(made);
}

}  // namespace reshard::mpi
