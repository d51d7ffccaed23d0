// Draws a draft. Every choice is one of a few words of the grammar, and all choices are independent.
#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "meaning/draft.hpp"
#include "meaning/holders.hpp"

namespace reshard::test {

namespace {

class Chance {
public:
    explicit Chance(std::uint64_t seed) : random_(seed) {}
    /// A number in [0, bound). Not std::uniform_int_distribution, because it differs between libraries.
    Index below(Index bound) { return static_cast<Index>(random_() % static_cast<std::uint64_t>(bound)); }
    bool one_in(Index many) { return below(many) == 0; }
    template <class T>
    T of(const std::vector<T>& list) {
        return list[static_cast<std::size_t>(below(static_cast<Index>(list.size())))];
    }
    template <class T>
    void shuffle(std::vector<T>& list) {
        for (std::size_t i = list.size(); i > 1; --i)
            std::swap(list[i - 1], list[static_cast<std::size_t>(below(static_cast<Index>(i)))]);
    }

private:
    std::mt19937_64 random_;
};

/// Factors above 1 with the product `size`, in any order; usually, but not always, prime.
std::vector<Index> factors(Chance& chance, Index size) {
    std::vector<Index> all;
    for (Index prime = 2; size > 1;) {
        if (size % prime == 0) {
            all.push_back(prime);
            size /= prime;
        } else {
            ++prime;
        }
    }
    chance.shuffle(all);
    if (all.size() > 2 && chance.one_in(3)) {
        all[0] *= all.back();
        all.pop_back();
    }
    return all;
}

/// Positions with the digits of the device number in another order.
std::vector<Index> digits_permuted(Chance& chance, Index count) {
    const std::vector<Index> sizes = factors(chance, count);
    std::vector<std::size_t> order(sizes.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    chance.shuffle(order);
    std::vector<Index> strides(sizes.size());
    Index stride = 1;
    for (const std::size_t digit : order) {
        strides[digit] = stride;
        stride *= sizes[digit];
    }
    std::vector<Index> devices;
    for (Index position = 0; position < count; ++position) {
        Index device = 0;
        Index rest = position;
        for (std::size_t i = sizes.size(); i-- > 0; rest /= sizes[i]) device += rest % sizes[i] * strides[i];
        devices.push_back(device);
    }
    return devices;
}

std::optional<std::vector<Index>> draw_devices(Chance& chance, Index count, Index world) {
    if (chance.below(5) < 2) return std::nullopt;
    std::vector<Index> devices(static_cast<std::size_t>(count));
    std::iota(devices.begin(), devices.end(), Index{0});
    switch (chance.below(9)) {
        case 0:  // in order, written out
            break;
        case 1:
            std::ranges::reverse(devices);
            break;
        case 2:
            chance.shuffle(devices);
            break;
        case 3: {  // with a stride, and an offset
            const Index stride = 1 + chance.below(std::max<Index>(1, world / count));
            const Index offset = chance.below(world - (count - 1) * stride);
            for (Index& device : devices) device = offset + device * stride;
            break;
        }
        case 4:  // rotated
            std::ranges::rotate(devices, devices.begin() + chance.below(count));
            break;
        case 5: {  // any devices
            std::vector<Index> all(static_cast<std::size_t>(world));
            std::iota(all.begin(), all.end(), Index{0});
            chance.shuffle(all);
            all.resize(devices.size());
            devices = std::move(all);
            if (chance.one_in(2)) std::ranges::sort(devices);
            break;
        }
        case 6: {
            devices = digits_permuted(chance, count);
            const Index offset = chance.below(world - count + 1);
            for (Index& device : devices) device += offset;
            break;
        }
        default:
            devices = digits_permuted(chance, count);
    }
    return devices;
}

DraftMesh draw_mesh(Chance& chance, Index most, Index world, const std::string& names) {
    DraftMesh mesh;
    Index count = 1;
    for (Index axes = chance.of<Index>({0, 1, 1, 2, 2, 2, 3, 3, 4}); axes > 0; --axes) {
        Index size = chance.of<Index>({1, 2, 2, 2, 2, 3, 3, 4, 4, 5, 6, 8});
        size = std::min(size, most / count);
        count *= size;
        mesh.sizes.push_back(size);
    }
    mesh.names = names.substr(0, mesh.sizes.size());
    mesh.devices = draw_devices(chance, count, world);
    return mesh;
}

/// Deals the axes, some in parts, to the dimensions and the unreduced set. Some stay unused.
End draw_end(Chance& chance, const DraftMesh& mesh, std::size_t rank, bool sums) {
    End end;
    end.mesh = mesh;
    end.dims.resize(rank);
    std::vector<Part> parts;
    for (std::size_t axis = 0; axis < mesh.sizes.size(); ++axis) {
        const Index size = mesh.sizes[axis];
        const std::vector<Index> cut = chance.one_in(3) ? factors(chance, size) : std::vector<Index>{size};
        Index before = 1;
        for (const Index factor : cut) {
            parts.push_back({axis, before, factor});
            before *= factor;
        }
    }
    chance.shuffle(parts);
    for (const Part& part : parts) {
        const Index role = chance.below(2 + 3 * static_cast<Index>(rank) + (sums ? 3 : 0));
        if (role < 2) continue;
        if (role >= 2 + 3 * static_cast<Index>(rank))
            end.unreduced.push_back(part);
        else
            end.dims[static_cast<std::size_t>((role - 2) / 3)].parts.push_back(part);
    }
    return end;
}

void draw_cut(Chance& chance, DraftDim& dim) {
    if (dim.parts.empty()) return;
    const Index count = shards(dim);
    switch (chance.below(12)) {
        case 0:
            dim.cut.kind = Cut::Kind::blocks;
            dim.cut.block = 1 + chance.below(4);
            break;
        case 1:
            dim.cut.kind = Cut::Kind::shares;
            dim.cut.shares.assign(static_cast<std::size_t>(count), 0);
            for (Index i = 0; i < dim.extent; ++i) ++dim.cut.shares[static_cast<std::size_t>(chance.below(count))];
            break;
        case 2:
            if (dim.extent == 0) break;
            dim.cut.kind = Cut::Kind::pieces;
            for (Index end = 0; end < dim.extent;) {
                end += chance.below(dim.extent - end + 1);  // a piece may be empty
                dim.cut.pieces.emplace_back(end, chance.below(count));
            }
            break;
        case 3:
            dim.cut.kind = Cut::Kind::balanced;
            break;
        default:
            break;
    }
}

Index draw_extent(Chance& chance, Index shards_of_both) {
    switch (chance.below(20)) {
        case 0:
            return 0;
        case 1:
        case 2:
        case 3:
            return 1;
        case 4:
        case 5:
            return chance.of<Index>({2, 3, 4, 6});
        case 6:
        case 7:
        case 8:
        case 9:
        case 10:
            return 2 + chance.below(13);
        case 11:
        case 12:
            return shards_of_both;
        default:
            return shards_of_both * (1 + chance.below(3));
    }
}

constexpr Index elements_max = 1024;

Index elements(const End& end) {
    Index product = 1;
    for (const DraftDim& dim : end.dims) product *= dim.extent;
    return product;
}

/// Extents of both ends. In a reshape one dimension of the target is two dimensions of the source, or vice versa.
void draw_extents(Chance& chance, Draft& draft) {
    auto& longer = draft.source.dims.size() >= draft.target.dims.size() ? draft.source.dims : draft.target.dims;
    auto& shorter = draft.source.dims.size() >= draft.target.dims.size() ? draft.target.dims : draft.source.dims;
    const bool reshaped = longer.size() > shorter.size();
    const std::size_t merged =
        reshaped ? static_cast<std::size_t>(chance.below(static_cast<Index>(shorter.size()))) : 0;
    for (std::size_t i = 0; i < longer.size(); ++i) {
        const std::size_t other = reshaped && i > merged ? i - 1 : i;
        const bool part = reshaped && (i == merged || i == merged + 1);
        longer[i].extent =
            draw_extent(chance, part ? shards(longer[i]) : std::lcm(shards(longer[i]), shards(shorter[other])));
    }
    for (std::size_t i = 0; elements(&longer == &draft.source.dims ? draft.source : draft.target) > elements_max;
         i = (i + 1) % longer.size())
        longer[i].extent = (longer[i].extent + 1) / 2;
    for (std::size_t i = 0; i < shorter.size(); ++i) {
        if (!reshaped || i < merged)
            shorter[i].extent = longer[i].extent;
        else
            shorter[i].extent = i == merged ? longer[i].extent * longer[i + 1].extent : longer[i + 1].extent;
    }
}

std::vector<Reduction> reductions_of(DType dtype) {
    switch (dtype) {
        case DType::f8_e4m3fn:
        case DType::f8_e5m2:
            return {};
        case DType::c64:
        case DType::c128:
            return {Reduction::sum, Reduction::prod, Reduction::avg};
        case DType::f16:
        case DType::bf16:
        case DType::f32:
        case DType::f64:
            return {Reduction::sum, Reduction::max, Reduction::min, Reduction::prod, Reduction::avg};
        default:
            return {Reduction::sum, Reduction::max, Reduction::min, Reduction::prod};
    }
}

std::string draw_machine(Chance& chance) {
    switch (chance.below(12)) {
        case 0:
            return fmt::format("dgx-h100:nodes={}", 1 + chance.below(3));
        case 1:
            return fmt::format("ethernet:nodes={},per_node={}", 1 + chance.below(4), 1 + chance.below(4));
        case 2:
            return fmt::format("tpu-v5p:{}x{}x{}", 1 + chance.below(2), 1 + chance.below(3), 2);
        case 3: {
            std::string text = "machine drawn\n";
            Index devices = 1;
            for (Index levels = chance.below(3); levels > 0; --levels) {
                devices *= 2 + chance.below(3);
                text += fmt::format("level l{} devices {} message {}ns bandwidth {}GB/s{}{}\n", levels, devices,
                                    chance.below(3000), 1 + chance.below(90), chance.one_in(2) ? " start 3us" : "",
                                    chance.one_in(3) ? " shared" : "");
            }
            return text + fmt::format("level all devices all message 3us bandwidth {}GB/s\ncopy {}GB/s\n",
                                      1 + chance.below(5), 1 + chance.below(50));
        }
        default:
            return "";
    }
}

void draw_options(Chance& chance, Draft& draft) {
    draft.objective = chance.of<Objective>({Objective::time, Objective::bytes, Objective::steps});
    draft.vocabulary = chance.one_in(3) ? Vocabulary::collectives : Vocabulary::all;
    draft.machine = draw_machine(chance);
    if (chance.one_in(10)) draft.peak = chance.of<double>({0.99, 1, 1, 1.5, 3});
    if (chance.one_in(8)) draft.footprint = chance.of<double>({0.9, 1, 1.05, 1.2, 1.5, 2, 3});
    draft.donate = chance.one_in(5);
}

/// Chooses another notation if it can express both ends.
void draw_notation(Chance& chance, Draft& draft) {
    Draft other = draft;
    other.notation =
        chance.of<Notation>({Notation::spec, Notation::sdy, Notation::hlo, Notation::hlo, Notation::dtensor});
    other.named = chance.one_in(2);
    for (End* end : {&other.source, &other.target})
        for (DraftDim& dim : end->dims) {
            dim.cut = {};
            if (other.notation == Notation::dtensor) dim.cut.kind = Cut::Kind::chunks;
        }
    if (foreign_text(other, other.source) && foreign_text(other, other.target)) draft = std::move(other);
}

/// One mesh of two or three small axes, in order, and tight extents, as the exact reference requires.
Draft draw_tight(Chance& chance) {
    Draft draft;
    DraftMesh mesh;
    mesh.sizes = chance.of<std::vector<Index>>({{2}, {2, 2}, {2, 2}, {3, 2}, {3, 3}, {4}, {6}, {2, 2, 2}});
    mesh.names = std::string("abc").substr(0, mesh.sizes.size());
    const auto rank = static_cast<std::size_t>(1 + chance.below(3));
    draft.source = draw_end(chance, mesh, rank, false);
    draft.target = draw_end(chance, mesh, rank, false);
    for (std::size_t i = 0; i < rank; ++i)
        draft.source.dims[i].extent = draft.target.dims[i].extent = chance.of<Index>({1, 1, 2, 2, 3, 4, 6, 8, 5, 9});
    draft.objective = chance.of<Objective>({Objective::bytes, Objective::bytes, Objective::steps, Objective::time});
    draft.vocabulary = chance.one_in(3) ? Vocabulary::all : Vocabulary::collectives;
    if (chance.one_in(4)) draft.machine = "ethernet:nodes=2,per_node=2";
    return draft;
}

}  // namespace

Draft draw(std::uint64_t number) {
    Chance chance(number * 0x9E3779B97F4A7C15U + 1);
    if (chance.one_in(6)) return draw_tight(chance);
    Draft draft;
    draft.dtype =
        chance.of<DType>({DType::boolean, DType::i8, DType::i16, DType::i32, DType::i64, DType::u8, DType::u16,
                          DType::u32, DType::u64, DType::f8_e4m3fn, DType::f8_e5m2, DType::f16, DType::bf16, DType::f32,
                          DType::f32, DType::f32, DType::f64, DType::c64, DType::c128});
    const Index world = chance.of<Index>({4, 6, 8, 8, 8, 12, 16});
    const DraftMesh mesh = draw_mesh(chance, world, world, "xyzw");
    DraftMesh other = mesh;
    const Index relation = chance.below(4);
    if (relation == 0) other = draw_mesh(chance, world, world, chance.one_in(2) ? "xyzw" : "abcd");
    if (relation == 1) other.devices = draw_devices(chance, positions(mesh), world);
    const auto rank = static_cast<std::size_t>(chance.of<Index>({0, 1, 1, 2, 2, 2, 2, 3, 3, 4}));
    const auto reductions = reductions_of(draft.dtype);
    const bool sums = !reductions.empty() && chance.one_in(3);
    const bool spreads = !reductions.empty() && chance.one_in(sums ? 3 : 10);
    const bool reshaped = rank > 0 && chance.one_in(12);
    draft.source = draw_end(chance, mesh, rank, sums);
    draft.target = draw_end(chance, other, reshaped ? rank + 1 : rank, spreads);
    if (reshaped && chance.one_in(2)) std::swap(draft.source, draft.target);
    draw_extents(chance, draft);
    if (!reductions.empty()) {
        draft.source.reduction = chance.of(reductions);
        draft.target.reduction = chance.one_in(4) ? chance.of(reductions) : draft.source.reduction;
    }
    for (End* end : {&draft.source, &draft.target})
        for (DraftDim& dim : end->dims) draw_cut(chance, dim);
    draw_options(chance, draft);
    if (chance.one_in(3)) draw_notation(chance, draft);
    return draft;
}

}  // namespace reshard::test
