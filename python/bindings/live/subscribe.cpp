#include "reshard/live/subscribe.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <optional>
#include <utility>
#include <vector>

#include "python/bindings/arrays.hpp"
#include "python/bindings/convert.hpp"
#include "python/bindings/live/groups.hpp"

namespace reshard::python {
namespace {

using namespace nb::literals;

class PythonSubscriber : NonCopyable {
public:
    PythonSubscriber(std::shared_ptr<PythonGroup> group, const std::string& endpoint, const nb::dict& tensors,
                     Index lease, Index connect_limit)
        : group_(std::move(group)), options_{Milliseconds(lease), Milliseconds(connect_limit)} {
        const GroupCall call(*group_);
        const auto wanted = checked(*group_, longest(), [&] { return wanted_of(tensors); });
        into_.emplace(
            unwrap(waiting([&] { return live::Subscriber::connect(*group_->group, endpoint, wanted, options_); })));
    }
    ~PythonSubscriber() {
        if (!group_->home.here()) leave(into_);
    }

    Index update(Index limit) {
        const GroupCall call(*group_);
        return unwrap(waiting([&] { return into_->update(Milliseconds(limit)); }));
    }
    std::optional<Index> poll() {
        const GroupCall call(*group_);
        return unwrap(waiting([&] { return into_->poll(); }));
    }
    Index version() {
        const GroupCall call(*group_);
        return into_->version();
    }

    // The bytes of a tile. They keep `self` alive, which never moves or frees them.
    nb::object tile(nb::handle self, std::size_t tensor) {
        const GroupCall call(*group_);
        const auto bytes = unwrap(into_->tile(tensor));
        static const std::uint8_t none = 0;
        const auto* const first = bytes.empty() ? &none : reinterpret_cast<const std::uint8_t*>(bytes.data());
        return nb::cast(nb::ndarray<nb::numpy, const std::uint8_t>(first, {bytes.size()}, self));
    }

    void reconnect(std::shared_ptr<PythonGroup> group) {
        const GroupCall call(*group_);
        std::optional<GroupCall> also;
        if (group != group_) also.emplace(*group);
        before_ = std::exchange(group_, std::move(group));
        unwrap(waiting([&] { return into_->reconnect(*group_->group); }));
    }
    void close() {
        const GroupCall call(*group_);
        into_->close();
    }

private:
    using Milliseconds = std::chrono::milliseconds;

    Milliseconds longest() const { return options_.connect_limit + options_.lease; }

    static std::vector<live::WantedTensor> wanted_of(const nb::dict& tensors) {
        std::vector<live::WantedTensor> wanted;
        for (const auto& [name, layout] : tensors)
            wanted.push_back({string_of(name), instance_of<Layout>(layout, "a wanted tensor is a Layout")});
        return wanted;
    }

    std::shared_ptr<PythonGroup> group_;
    std::shared_ptr<PythonGroup> before_;  // the library may still point to it if reconnect has failed
    live::SubscribeOptions options_;
    std::optional<live::Subscriber> into_;
};

}  // namespace

void add_subscribers(nb::module_& module) {
    nb::class_<PythonSubscriber>(module, "Subscriber")
        .def(nb::init<std::shared_ptr<PythonGroup>, const std::string&, const nb::dict&, Index, Index>(), "group"_a,
             "endpoint"_a, "tensors"_a, "lease"_a, "connect_limit"_a)
        .def("update", &PythonSubscriber::update, "limit"_a)
        .def("poll", &PythonSubscriber::poll)
        .def_prop_ro("version", &PythonSubscriber::version)
        .def(
            "tile",
            [](nb::handle self, std::size_t tensor) { return nb::cast<PythonSubscriber&>(self).tile(self, tensor); },
            "tensor"_a)
        .def("reconnect", &PythonSubscriber::reconnect, "group"_a)
        .def("close", &PythonSubscriber::close);
}

}  // namespace reshard::python
