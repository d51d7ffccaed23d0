#include "backends/baseline/regions_type.hpp"

namespace reshard::mpi {

Result<Datatype> regions_type(std::span<const Region> regions) {
    std::vector<Datatype> owned;
    std::vector<MPI_Datatype> types;
    std::vector<MPI_Aint> offsets;
    for (const Region& region : regions) {
        auto type = region_type(region);
        if (!type) return type;
        types.push_back(type->get());
        offsets.push_back(region.offset_bytes);
        owned.push_back(std::move(*type));
    }
    const std::vector<int> ones(types.size(), 1);
    MPI_Datatype made = MPI_DATATYPE_NULL;
    int code = MPI_Type_create_struct(static_cast<int>(types.size()), ones.data(), offsets.data(), types.data(), &made);
    if (code == MPI_SUCCESS) code = MPI_Type_commit(&made);
    return checked(code, "MPI_Type_create_struct").map([&] { return Datatype(made); });
}

}  // namespace reshard::mpi
