#include "conformance/halos/padded.hpp"

#include <algorithm>

namespace reshard::conformance {

PaddedArray::PaddedArray(const std::vector<Index>& shape, Index pad, Index element_bytes, MemoryKind kind,
                         Backend& backend) {
    Index stride = 1;
    storage_.offset = pad;
    storage_.strides.resize(shape.size());
    for (std::size_t k = shape.size(); k-- > 0;) {
        storage_.strides[k] = stride;
        stride = stride * shape[k] + pad;
    }
    places_ = {storage_.offset};
    for (std::size_t k = 0; k < shape.size(); ++k) {
        std::vector<Index> longer;
        for (const Index first : places_)
            for (Index i = 0; i < shape[k]; ++i) longer.push_back(first + i * storage_.strides[k]);
        places_ = std::move(longer);
    }
    const auto size = static_cast<std::size_t>((pad + stride) * element_bytes);
    if (kind == MemoryKind::of_backend) {
        allocated_ = backend.allocate(std::max<Index>(static_cast<Index>(size), 1)).value();
        memory_ = allocated_->bytes().first(size);
        return;
    }
    own_.resize(size);
    memory_ = own_;
    if (kind == MemoryKind::registered) registration_ = backend.register_memory(memory_).value();
}

}  // namespace reshard::conformance
