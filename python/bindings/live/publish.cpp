#include "reshard/live/publish.hpp"

#include <fmt/format.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <optional>
#include <span>
#include <vector>

#include "python/bindings/arrays.hpp"
#include "python/bindings/convert.hpp"
#include "python/bindings/live/groups.hpp"

namespace reshard::python {
namespace {

using namespace nb::literals;

/// A publisher, and the arrays that its commits read.
class PythonPublisher : NonCopyable {
public:
    PythonPublisher(std::shared_ptr<PythonGroup> group, const std::string& endpoint, const nb::dict& tensors,
                    Index lease, bool check_bytes)
        : group_(std::move(group)), lease_(lease) {
        const GroupCall call(*group_);
        checked(*group_, lease_, [&] { name(tensors); });
        const live::PublishOptions options{lease_, check_bytes};
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
            tensors_.push_back({string_of(name), layout, {}});
            arrays_.push_back(pair ? nb::object(value[1]) : nb::none());
            if (pair) static_cast<void>(tile_of(tensors_.size() - 1, arrays_.back()));
        }
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
        return {array, tensor.name.c_str(), Access::read, tensor.layout, group_->group->rank()};
    }

    void expect_open() const {
        if (!out_) raise({Code::usage, "the publisher is closed"});
    }

    std::shared_ptr<PythonGroup> group_;
    std::chrono::milliseconds lease_;
    std::vector<live::PublishedTensor> tensors_;  // without tiles
    std::vector<nb::object> arrays_;              // None: each commit brings it
    std::optional<live::Publisher> out_;
};

}  // namespace

void add_publishers(nb::module_& module) {
    nb::class_<PythonPublisher>(module, "Publisher")
        .def(nb::init<std::shared_ptr<PythonGroup>, const std::string&, const nb::dict&, Index, bool>(), "group"_a,
             "endpoint"_a, "tensors"_a, "lease"_a, "check_bytes"_a)
        .def("commit", &PythonPublisher::commit, "version"_a, "arrays"_a)
        .def("close", &PythonPublisher::close)
        .def_prop_ro("endpoint", &PythonPublisher::endpoint)
        .def_prop_ro("newest", &PythonPublisher::newest)
        .def_prop_ro("subscriber_count", &PythonPublisher::subscriber_count);
}

}  // namespace reshard::python
