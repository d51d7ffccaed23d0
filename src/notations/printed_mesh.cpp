// Meshes as PyTorch and JAX print them.
//
// mesh    := {word "."} ("DeviceMesh" | "Mesh" | "AbstractMesh") "(" [item {"," item} [","]] ")"
// item    := axes | "(" (axes | size {"," size}) [","] ")"
//          | "axis_sizes" "=" tuple of sizes | ("axis_names" | "mesh_dim_names") "=" (tuple of names | "None")
//          | [("device_ids" | "mesh" | "Mesh") sets] (devices | ("array" | "tensor") "(" devices ")")
//          | "stride" sets tuple                                    device = sum of coordinate * stride
//          | ["device" sets] "'" text "'" | "axis_types" "=" tuple  read, and ignored
// axes    := axis sets size {"," axis sets size}; sets := "=" | ":"; axis := name | "'" name "'"
// devices := "[" (id {"," id} | devices {"," devices}) "]"          nested as deep as the mesh has axes
//
// Axes without a name are called d0, d1, ...
#include "src/notations/printed_mesh.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/base/try.hpp"
#include "src/notations/peers.hpp"

namespace reshard::notation {

namespace {

constexpr std::size_t axes_max = 64;
// Devices that a stride may number one by one.
constexpr Index strided_devices_max = Index{1} << 22;

class PrintedMeshReader {
public:
    explicit PrintedMeshReader(Scanner& scanner) : scanner_(scanner) {}

    Result<Mesh> read() {
        begin_ = scanner_.place();
        std::string_view word = scanner_.word();
        while (!word.empty() && scanner_.take('.')) word = scanner_.word();
        if (word != "DeviceMesh" && word != "Mesh" && word != "AbstractMesh")
            return scanner_.error(Code::syntax, "expected DeviceMesh(...) or Mesh(...)", begin_);
        RESHARD_CHECK(scanner_.expect('('));
        while (!scanner_.sees(')')) {
            RESHARD_CHECK(item());
            if (!scanner_.take(',')) break;
        }
        RESHARD_CHECK(scanner_.expect(')'));
        return finished();
    }

private:
    Result<void> item() {
        if (scanner_.sees('[')) return devices(0);
        if (scanner_.sees('(')) return sizes_or_axes();
        const std::size_t begin = scanner_.place();
        const auto quoted = scanner_.quoted();
        const std::string_view word = quoted ? *quoted : scanner_.word();
        if (word.empty() && !quoted) return scanner_.error(Code::syntax, "expected a part of a mesh", begin);
        if (word == "tensor" || word == "array") return in_call();
        const bool sets = scanner_.take('=') || scanner_.take(':');
        if (!sets && quoted) return {};  // the type of the devices
        if (!sets) return scanner_.error(Code::syntax, "expected '=' or ':'");
        if (word == "device" || word == "axis_types") return skip();
        if (word == "axis_sizes") return tuple([&] { return size(); });
        if (word == "axis_names" || word == "mesh_dim_names") return names();
        if (word == "stride") return tuple([&] { return number("a stride", stride_); });
        if (word == "device_ids" || word == "mesh" || word == "Mesh") return call_or_devices();
        return axis(word);
    }

    // [[0, 1], [2, 3]], alone or in a call: array([[0, 1], [2, 3]]).
    Result<void> call_or_devices() {
        if (scanner_.take_word("array") || scanner_.take_word("tensor")) return in_call();
        return devices(0);
    }

    Result<void> in_call() {
        RESHARD_CHECK(scanner_.expect('('));
        RESHARD_CHECK(devices(0));
        return scanner_.expect(')');
    }

    Result<void> sizes_or_axes() {
        RESHARD_CHECK(scanner_.expect('('));
        while (!scanner_.sees(')')) {
            const auto quoted = scanner_.quoted();
            const std::string_view word = quoted ? *quoted : scanner_.word();
            if (!word.empty()) {
                if (!scanner_.take('=')) RESHARD_CHECK(scanner_.expect(':'));
                RESHARD_CHECK(axis(word));
            } else {
                RESHARD_CHECK(size());
            }
            if (!scanner_.take(',')) break;
        }
        return scanner_.expect(')');
    }

    Result<void> axis(std::string_view name) {
        names_.emplace_back(name);
        return size();
    }

    Result<void> size() { return number("the size of an axis", sizes_); }

    Result<void> number(std::string_view what, std::vector<Index>& into) {
        RESHARD_TRY(const auto& read, scanner_.integer(what));
        into.push_back(read);
        return {};
    }

    Result<void> names() {
        if (scanner_.take_word("None")) return {};
        return tuple([&]() -> Result<void> {
            RESHARD_TRY(auto& name, scan_name(scanner_));
            names_.push_back(std::move(name));
            return {};
        });
    }

    template <class Read>
    Result<void> tuple(const Read& read) {
        const char close = scanner_.take('[') ? ']' : ')';
        if (close == ')') RESHARD_CHECK(scanner_.expect('('));
        while (!scanner_.sees(close)) {
            RESHARD_CHECK(read());
            if (!scanner_.take(',')) break;
        }
        return scanner_.expect(close);
    }

    // A quoted text, a name or a tuple, with nothing to say about the mesh.
    Result<void> skip() {
        if (scanner_.sees('(')) {
            if (!scanner_.skip_balanced('(', ')')) return scanner_.error(Code::syntax, "expected ')'");
        } else if (!scanner_.quoted()) {
            static_cast<void>(scanner_.word());
        }
        return {};
    }

    // One list of the nested lists of devices. Lists of one depth have one length.
    Result<void> devices(std::size_t depth) {
        const std::size_t begin = scanner_.place();
        RESHARD_CHECK(scanner_.expect('['));
        if (depth == 0) nested_.clear();
        if (depth == axes_max) return scanner_.error(Code::mesh, fmt::format("more than {} axes", axes_max), begin);
        const bool seen = depth < nested_.size();
        if (!seen) nested_.push_back(0);
        Index count = 0;
        while (!scanner_.sees(']')) {
            const bool leaf = !scanner_.sees('[');
            if (leaf != (depth + 1 == nested_.size()) && (seen || count > 0))
                return scanner_.error(Code::mesh, "the lists of devices are not nested equally deep");
            RESHARD_CHECK(leaf ? number("a device", ids_) : devices(depth + 1));
            ++count;
            if (!scanner_.take(',')) break;
        }
        RESHARD_CHECK(scanner_.expect(']'));
        if (seen && count != nested_[depth])
            return scanner_.error(Code::mesh, fmt::format("a list of {} beside one of {}", count, nested_[depth]),
                                  begin);
        nested_[depth] = count;
        return {};
    }

    Result<Mesh> finished() {
        if (!nested_.empty() && !sizes_.empty() && nested_ != sizes_)
            return wrong(fmt::format("the devices are listed as {}, but the axes have the sizes {}",
                                     fmt::join(nested_, " x "), fmt::join(sizes_, " x ")));
        if (sizes_.empty()) sizes_ = nested_;
        if (!names_.empty() && names_.size() != sizes_.size())
            return wrong(fmt::format("{} names for {} axes", names_.size(), sizes_.size()));
        Mesh mesh;
        for (std::size_t i = 0; i < sizes_.size(); ++i)
            mesh.axes.push_back({names_.empty() ? fmt::format("d{}", i) : names_[i], sizes_[i]});
        RESHARD_CHECK(scanner_.at(validate(mesh), begin_));
        RESHARD_CHECK(number_by_strides(mesh));
        if (!ids_.empty()) mesh.devices = DeviceList(ids_);
        RESHARD_CHECK(scanner_.at(validate(mesh), begin_));
        return mesh;
    }

    // Strides of a row-major mesh say nothing new.
    Result<void> number_by_strides(const Mesh& mesh) {
        if (stride_.empty() || !ids_.empty()) return {};
        if (stride_.size() != sizes_.size())
            return wrong(fmt::format("{} strides for {} axes", stride_.size(), sizes_.size()));
        Index below = 1;
        bool row_major = true;
        for (std::size_t i = sizes_.size(); i-- > 0; below *= sizes_[i])
            row_major = row_major && (sizes_[i] == 1 || stride_[i] == below);
        if (row_major) return {};
        const Index devices = device_count(mesh);
        if (devices > strided_devices_max)
            return scanner_.error(Code::unsupported,
                                  fmt::format("strides number more than {} devices", strided_devices_max), begin_);
        for (Index position = 0; position < devices; ++position) {
            Index rest = position;
            Index device = 0;
            for (std::size_t i = sizes_.size(); i-- > 0; rest /= sizes_[i])
                device = saturating_add(device, saturating_multiply(rest % sizes_[i], stride_[i]));
            ids_.push_back(device);
        }
        return {};
    }

    tl::unexpected<Error> wrong(const std::string& why) const { return scanner_.error(Code::mesh, why, begin_); }

    Scanner& scanner_;
    std::size_t begin_ = 0;
    std::vector<std::string> names_;
    std::vector<Index> sizes_;
    std::vector<Index> stride_;
    std::vector<Index> nested_;  // the lengths of the nested lists of devices, by depth
    std::vector<Index> ids_;     // the devices in row-major order
};

}  // namespace

bool looks_like_printed_mesh(std::string_view text) {
    Scanner scanner(text);
    std::string_view word = scanner.word();
    while (!word.empty() && scanner.take('.')) word = scanner.word();
    return (word == "DeviceMesh" || word == "Mesh" || word == "AbstractMesh") && scanner.sees('(');
}

Result<Mesh> scan_printed_mesh(Scanner& scanner) { return PrintedMeshReader(scanner).read(); }

Result<Mesh> parse_printed_mesh(std::string_view text) {
    Scanner scanner(text, Spaces::lines);
    RESHARD_TRY(auto& mesh, scan_printed_mesh(scanner));
    RESHARD_CHECK(scanner.expect_end());
    return std::move(mesh);
}

}  // namespace reshard::notation
