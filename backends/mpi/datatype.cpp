#include "backends/mpi/datatype.hpp"

namespace reshard::mpi {
namespace {

constexpr Index count_max = Index{1} << 30;  // of one constructor; below 2^31 and a whole number of pages

Result<Datatype> committed(Result<Datatype> type) {
    if (!type) return type;
    MPI_Datatype raw = type->get();
    if (auto done = checked(MPI_Type_commit(&raw), "MPI_Type_commit"); !done) return tl::unexpected(done.error());
    return type;
}

Result<Datatype> joined(const std::vector<MPI_Datatype>& types, const std::vector<MPI_Aint>& offsets) {
    const std::vector<int> ones(types.size(), 1);
    MPI_Datatype made = MPI_DATATYPE_NULL;
    const int code =
        MPI_Type_create_struct(static_cast<int>(types.size()), ones.data(), offsets.data(), types.data(), &made);
    if (auto done = checked(code, "MPI_Type_create_struct"); !done) return tl::unexpected(done.error());
    return Datatype(made);
}

// `count` elements, `stride` bytes apart. More than one constructor counts: rows of count_max, rows of rows, and a
// rest.
Result<Datatype> repeated(MPI_Datatype element, Index count, Index stride) {
    if (count <= count_max) {
        MPI_Datatype made = MPI_DATATYPE_NULL;
        const int code = MPI_Type_create_hvector(static_cast<int>(count), 1, stride, element, &made);
        if (auto done = checked(code, "MPI_Type_create_hvector"); !done) return tl::unexpected(done.error());
        return Datatype(made);
    }
    const Index rows = count / count_max;
    auto row = repeated(element, count_max, stride);
    if (!row) return row;
    auto whole = repeated(row->get(), rows, stride * count_max);
    if (!whole || count % count_max == 0) return whole;
    auto rest = repeated(element, count % count_max, stride);
    if (!rest) return rest;
    return joined({whole->get(), rest->get()}, {0, stride * count_max * rows});
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

// MPI gives an operation no state, so each dtype has a function of its own.
template <DType dtype>
void add(void* source, void* target, int* elements, MPI_Datatype*) {
    add_dense(dtype, static_cast<const std::byte*>(source), static_cast<std::byte*>(target), *elements);
}

MPI_User_function* add_function(DType dtype) {
    switch (dtype) {
        case DType::boolean:
            return add<DType::boolean>;
        case DType::i8:
        case DType::u8:
            return add<DType::u8>;
        case DType::i16:
        case DType::u16:
            return add<DType::u16>;
        case DType::i32:
        case DType::u32:
            return add<DType::u32>;
        case DType::i64:
        case DType::u64:
            return add<DType::u64>;
        case DType::f16:
            return add<DType::f16>;
        case DType::bf16:
            return add<DType::bf16>;
        case DType::f32:
            return add<DType::f32>;
        case DType::f64:
            return add<DType::f64>;
        case DType::c64:
            return add<DType::c64>;
        case DType::c128:
            return add<DType::c128>;
        case DType::f8_e4m3fn:
        case DType::f8_e5m2:
            break;
    }
    return nullptr;  // bytes only; the precondition keeps them out
}

}  // namespace

Result<Datatype> run_type(Index bytes) { return committed(repeated(MPI_BYTE, bytes, 1)); }

Result<Datatype> region_type(const Region& region) { return committed(uncommitted_type(region)); }

Result<Datatype> regions_type(std::span<const Region> regions) {
    std::vector<Datatype> owned;
    std::vector<MPI_Datatype> types;
    std::vector<MPI_Aint> offsets;
    for (const Region& region : regions) {
        auto type = uncommitted_type(region);
        if (!type) return type;
        types.push_back(type->get());
        offsets.push_back(region.offset_bytes);
        owned.push_back(std::move(*type));
    }
    return committed(joined(types, offsets));
}

Result<Datatype> element_type(DType dtype) { return run_type(size_of(dtype)); }

Result<Operation> sum_operation(DType dtype) {
    MPI_Op made = MPI_OP_NULL;
    const int code = MPI_Op_create(add_function(dtype), 1, &made);
    if (auto done = checked(code, "MPI_Op_create"); !done) return tl::unexpected(done.error());
    return Operation(made);
}

}  // namespace reshard::mpi
