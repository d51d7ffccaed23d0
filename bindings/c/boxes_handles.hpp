// The objects behind the handles of boxes and rebuilds.
#pragma once

#include "bindings/c/handles.hpp"
#include "reshard/boxes/exchange.hpp"
#include "reshard/boxes/rebuild.hpp"

struct reshard_boxes final : reshard::c::HandleOf<reshard_boxes> {
    static constexpr const char* name = "an exchange of boxes";
    reshard_boxes(reshard_backend* of, reshard::DType type, reshard::BoxExchange own)
        : backend(of), dtype(type), exchange(std::move(own)) {}
    const reshard::c::Ref<reshard_backend> backend;  // goes last
    const reshard::DType dtype;
    reshard::BoxExchange exchange;
};

struct reshard_rebuild final : reshard::c::HandleOf<reshard_rebuild> {
    static constexpr const char* name = "a rebuild";
    reshard_rebuild(reshard_backend* of, std::vector<reshard::DType> types, reshard::Rebuild own)
        : backend(of), dtypes(std::move(types)), rebuild(std::move(own)) {}
    const reshard::c::Ref<reshard_backend> backend;  // goes last
    const std::vector<reshard::DType> dtypes;        // of each array
    reshard::Rebuild rebuild;
};
