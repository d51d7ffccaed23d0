// The objects behind the handles of arrays with halos.
#pragma once

#include "bindings/c/handles.hpp"
#include "reshard/halo/exchange.hpp"
#include "reshard/halo/sum.hpp"

struct reshard_halo_layout final : reshard::c::HandleOf<reshard_halo_layout> {
    static constexpr const char* name = "a layout with halos";
    explicit reshard_halo_layout(reshard::HaloLayout of) : layout(std::move(of)), text(format(layout)) {}
    const reshard::HaloLayout layout;
    const std::string text;
};

struct reshard_halo final : reshard::c::HandleOf<reshard_halo> {
    static constexpr const char* name = "a halo";
    reshard_halo(reshard_backend* of, reshard::HaloLayout cells, std::optional<reshard::Storage> array,
                 reshard::HaloExchange own)
        : backend(of), layout(std::move(cells)), storage(std::move(array)), fill(std::move(own)) {}
    const reshard::c::Ref<reshard_backend> backend;  // goes last
    const reshard::HaloLayout layout;
    const std::optional<reshard::Storage> storage;
    reshard::HaloExchange fill;
    std::optional<reshard::HaloSum> sum;  // from the first sum on
};
