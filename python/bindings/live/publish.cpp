#include "reshard/live/publish.hpp"

#include <fmt/format.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <span>
#include <vector>

#include "python/bindings/arrays.hpp"
#include "python/bindings/convert.hpp"
#include "python/bindings/live/groups.hpp"
#include "reshard/live/rules.hpp"

namespace reshard::python {
namespace {

using namespace nb::literals;

// The element type of an array, or its name.
DType type_of(const nb::object& dtype) {
    constexpr std::string_view torch = "torch.";
    std::string name = string_of(nb::str(dtype));
    if (name.starts_with(torch))
        name.erase(0, torch.size());
    else if (!nb::isinstance<nb::str>(dtype))
        name = string_of(nb::module_::import_("reshard.dtypes").attr("name_of")(dtype));
    return unwrap(parse_dtype(name));
}

/// A publisher, and the arrays that its commits read.
class PythonPublisher : NonCopyable {
public:
    PythonPublisher(std::shared_ptr<PythonGroup> group, const std::string& endpoint, const nb::dict& tensors,
                    const nb::object& rules, const nb::dict& shapes, const nb::object& cast, Index lease,
                    Index bytes_per_second, Index memory_bytes, bool check_bytes, const std::string& transport)
        : group_(std::move(group)), lease_(lease) {
        const GroupCall call(*group_);
        checked(*group_, lease_, [&] {
            if (rules.is_none())
                name(tensors);
            else
                place(tensors, value_of<std::string>(rules, "rules are a text"), shapes);
            for (std::size_t i = 0; i < tensors_.size(); ++i)
                if (!arrays_[i].is_none()) static_cast<void>(tile_of(i, arrays_[i]));
            publish_as(cast);
            if (!live::transport_of(transport))
                raise({Code::usage, fmt::format("no transport {}; wanted auto, tcp or ucx", transport)});
        });
        const live::PublishOptions options{lease_, check_bytes, bytes_per_second, memory_bytes,
                                           *live::transport_of(transport)};
        out_.emplace(
            unwrap(waiting([&] { return live::Publisher::open(*group_->group, endpoint, tensors_, options); })));
    }
    ~PythonPublisher() {
        const Unlocked unlocked;
        if (group_->home.here())
            out_.reset();
        else
            leave(out_);
    }

    void commit(Index version, const nb::dict& arrays) {
        const GroupCall call(*group_);
        const std::vector<DenseTile> tiles = checked(*group_, lease_, [&] {
            expect_open();
            return tiles_of(arrays);
        });
        std::vector<std::span<const std::byte>> bytes;
        for (const DenseTile& tile : tiles) bytes.push_back(tile.read().bytes);
        unwrap(waiting([&] { return out_->commit(version, bytes); }));
    }

    Index newest() const {
        expect_open();
        return out_->newest();
    }
    std::size_t subscriber_count() const {
        expect_open();
        return out_->subscriber_count();
    }

    std::string endpoint() const {
        expect_open();
        return out_->endpoint();
    }

    void close() {
        const GroupCall call(*group_);
        const Unlocked unlocked;
        out_.reset();
    }

private:
    // A value is a Layout, or a Layout and the array of this rank.
    void name(const nb::dict& tensors) {
        const char* const wanted = "a tensor is a Layout, or a pair of a Layout and this rank's array";
        for (const auto& [name, value] : tensors) {
            const bool pair = nb::isinstance<nb::tuple>(value) && nb::len(value) == 2;
            const auto& layout = instance_of<Layout>(pair ? nb::object(value[0]) : nb::borrow(value), wanted);
            add(string_of(name), layout, pair ? nb::object(value[1]) : nb::none());
        }
    }

    // A value is the array of this rank. Rules say where it is, and shapes say how large the whole tensors are.
    void place(const nb::dict& tensors, const std::string& rules, const nb::dict& shapes) {
        std::vector<ListedTensor> list;
        std::vector<nb::object> arrays;
        for (const auto& [name, array] : tensors) {
            const nb::object whole = shapes.contains(name) ? nb::object(shapes[name]) : array.attr("shape");
            list.push_back({string_of(name), type_of(array.attr("dtype")),
                            value_of<std::vector<Index>>(nb::tuple(whole), "a shape is a tuple of integers")});
            arrays.push_back(nb::borrow(array));
        }
        const auto placed = unwrap(live::published_by_rules(rules, list));
        for (std::size_t i = 0; i < placed.size(); ++i) add(placed[i].name, placed[i].layout, std::move(arrays[i]));
    }

    void add(std::string name, const Layout& layout, nb::object array) {
        tensors_.push_back({std::move(name), layout, {}, {}});
        held_.push_back(layout);
        arrays_.push_back(std::move(array));
    }

    // `cast` is None, the type of all floating tensors, or a dict of types by the names of tensors.
    void publish_as(const nb::object& cast) {
        nb::dict types;
        const bool some = nb::isinstance<nb::dict>(cast);
        if (some) types = nb::borrow<nb::dict>(cast);
        std::size_t known = 0;
        for (live::PublishedTensor& tensor : tensors_) {
            const nb::str name = text_of(tensor.name);
            known += types.contains(name) ? 1 : 0;
            const bool wanted = some ? types.contains(name) : !cast.is_none() && is_floating(tensor.layout.dtype);
            const DType type = wanted ? type_of(some ? nb::object(types[name]) : cast) : tensor.layout.dtype;
            if (type != tensor.layout.dtype) tensor.held = std::exchange(tensor.layout.dtype, type);
        }
        if (known != types.size()) raise({Code::mismatch, "`cast` names a tensor that is not published"});
    }

    std::vector<DenseTile> tiles_of(const nb::dict& arrays) const {
        std::vector<DenseTile> tiles;
        std::size_t known = 0;
        for (std::size_t i = 0; i < tensors_.size(); ++i) {
            const nb::str name = text_of(tensors_[i].name);
            const bool given = arrays.contains(name);
            known += given ? 1 : 0;
            tiles.push_back(tile_of(i, given ? nb::object(arrays[name]) : arrays_[i]));
        }
        if (known == arrays.size()) return tiles;
        for (const auto& [name, array] : arrays)
            if (std::ranges::find(tensors_, string_of(name), &live::PublishedTensor::name) == tensors_.end())
                raise({Code::mismatch, fmt::format("there is no tensor {} to commit", string_of(name))});
        return tiles;
    }

    DenseTile tile_of(std::size_t i, const nb::object& array) const {
        const live::PublishedTensor& tensor = tensors_[i];
        if (array.is_none())
            raise({Code::usage, fmt::format("tensor {} has no array; give it to publish or to commit", tensor.name)});
        return {array, tensor.name.c_str(), Access::read, held_[i], group_->group->rank()};
    }

    void expect_open() const {
        if (!out_) raise({Code::usage, "the publisher is closed"});
    }

    std::shared_ptr<PythonGroup> group_;
    std::chrono::milliseconds lease_;
    std::vector<live::PublishedTensor> tensors_;  // without tiles
    std::vector<Layout> held_;                    // with the types of the arrays
    std::vector<nb::object> arrays_;              // None: each commit brings it
    std::optional<live::Publisher> out_;
};

}  // namespace

void add_publishers(nb::module_& module) {
    nb::class_<PythonPublisher>(module, "Publisher")
        .def(nb::init<std::shared_ptr<PythonGroup>, const std::string&, const nb::dict&, const nb::object&,
                      const nb::dict&, const nb::object&, Index, Index, Index, bool, const std::string&>(),
             "group"_a, "endpoint"_a, "tensors"_a, "rules"_a.none(), "shapes"_a, "cast"_a.none(), "lease"_a,
             "bytes_per_second"_a, "memory_bytes"_a, "check_bytes"_a, "transport"_a)
        .def("commit", &PythonPublisher::commit, "version"_a, "arrays"_a)
        .def("close", &PythonPublisher::close)
        .def_prop_ro("endpoint", &PythonPublisher::endpoint)
        .def_prop_ro("newest", &PythonPublisher::newest)
        .def_prop_ro("subscriber_count", &PythonPublisher::subscriber_count);
}

}  // namespace reshard::python
