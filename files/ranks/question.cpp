#include "files/ranks/question.hpp"

#include <algorithm>
#include <thread>

#include <fmt/format.h>

namespace reshard::files {

void add_text(Hash& hash, std::string_view text) {
    hash.add(text);
    hash.add("\xff");
}

Hash hash_of(const ConvertOptions& options, std::string_view more) {
    Hash hash;
    add_text(hash, options.rules);
    add_text(hash, fmt::format("{} {} {} {} {} {}", name(options.form), options.memory, options.granule,
                               options.file_bytes_max, fmt::join(options.chunks, ","), fmt::join(options.shards, ",")));
    for (const Cast& cast : options.casts) add_text(hash, fmt::format("{}={}", cast.pattern, name(cast.dtype)));
    for (const ListedTensor& tensor : options.list)
        add_text(hash, fmt::format("{} {}[{}]", tensor.name, name(tensor.dtype), fmt::join(tensor.shape, ",")));
    add_text(hash, more);
    return hash;
}

void add_manner(Hash& hash, const ConvertOptions& options) {
    add_text(hash, fmt::format("verify {}, resume {}", options.verify, options.resume));
}

Result<void> read_again(Company& company, const SummedFiles& files, std::span<const std::uint32_t> sums,
                        const ConvertOptions& options) {
    const Backend& backend = company.backend();
    RESHARD_TRY(const auto& own,
                company.all_have(read_sums(files, {backend.rank(), backend.size()}, workers_of(options, backend),
                                           stretch_bytes_of(options.memory))));
    RESHARD_TRY(const auto& all, company.combined(own));
    return company.all_well(compare_sums(files, sums, all));
}

Result<void> host_only(const Backend& backend) {
    if (!backend.on_device()) return {};
    return fail(Code::unsupported,
                "files are read into and written from the host's memory, and this backend's is a device's");
}

Result<void> enough_ranks(const Backend& backend, const Layout& layout) {
    const Index ranks = world_size(layout.mesh);
    if (ranks <= backend.size()) return {};
    return fail(Code::mismatch, fmt::format("the rules are of {} ranks, and there are {}", ranks, backend.size()));
}

std::shared_ptr<const Layout> in_dtype(const std::shared_ptr<const Layout>& layout, DType dtype) {
    if (layout->dtype == dtype) return layout;
    auto made = std::make_shared<Layout>(*layout);
    made->dtype = dtype;
    return made;
}

Index workers_of(const ConvertOptions& options, const Backend& backend) {
    if (options.jobs > 0) return options.jobs;
    const auto processors = static_cast<Index>(std::thread::hardware_concurrency());
    return std::clamp<Index>(processors / std::max<Index>(backend.capabilities().ranks_per_node, 1), 1, 8);
}

Index stretch_bytes_of(Index memory) { return std::clamp<Index>(memory / 32, 1 << 16, 1 << 22) / 4096 * 4096; }

Result<Index> room_of(Index memory, Index stretch_bytes, const ConvertOptions& options, const Backend& backend) {
    const Index held = saturating_multiply(workers_of(options, backend), saturating_add(stretch_bytes, 4096));
    const Index room = memory - held;
    constexpr Index least = 1 << 16;
    // A larger round is slower. Its buffers leave the caches, and the system clears each page before its first use.
    constexpr Index most = Index{64} << 20;
    if (room >= least) return std::min(room, most);
    return fail(Code::infeasible,
                fmt::format("{} bytes of memory are too few; {} are the least", memory, saturating_add(held, least)));
}

}  // namespace reshard::files
