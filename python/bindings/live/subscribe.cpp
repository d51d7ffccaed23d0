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
#include "reshard/live/rules.hpp"

namespace reshard::python {
namespace {

using namespace nb::literals;

class PythonSubscriber : NonCopyable {
public:
    PythonSubscriber(std::shared_ptr<PythonGroup> group, const std::string& endpoint, const nb::object& tensors,
                     const nb::object& rules, Index lease, Index connect_limit)
        : group_(std::move(group)), options_{Milliseconds(lease), Milliseconds(connect_limit)} {
        const GroupCall call(*group_);
        const auto wanted = checked(*group_, longest(), [&] { return wanted_of(endpoint, tensors, rules); });
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
    const nb::dict& layouts() const { return layouts_; }

private:
    using Milliseconds = std::chrono::milliseconds;

    Milliseconds longest() const { return options_.connect_limit + options_.lease; }

    std::vector<live::WantedTensor> wanted_of(const std::string& endpoint, const nb::object& tensors,
                                              const nb::object& rules) {
        std::vector<live::WantedTensor> wanted;
        if (rules.is_none() == tensors.is_none())
            throw nb::type_error("wanted either a dict of tensors or rules, and one of them is None");
        if (tensors.is_none()) return by_rules(endpoint, value_of<std::string>(rules, "rules are a text"));
        for (const auto& [name, layout] : value_of<nb::dict>(tensors, "wanted a dict of layouts by name")) {
            wanted.push_back({string_of(name), instance_of<Layout>(layout, "a wanted tensor is a Layout")});
            layouts_[name] = layout;
        }
        return wanted;
    }

    std::vector<live::WantedTensor> by_rules(const std::string& endpoint, const std::string& rules) {
        std::vector<live::WantedTensor> wanted;
        auto placed = unwrap(waiting([&] {
            return live::offered(endpoint, options_.connect_limit).and_then([&](const auto& offered) {
                return live::wanted_by_rules(rules, offered);
            });
        }));
        for (live::WantedByRule& one : placed) {
            layouts_[text_of(one.name)] = one.wanted.layout;
            wanted.push_back(std::move(one.wanted));
        }
        return wanted;
    }

    std::shared_ptr<PythonGroup> group_;
    std::shared_ptr<PythonGroup> before_;  // the library may still point to it if reconnect has failed
    live::SubscribeOptions options_;
    nb::dict layouts_;  // by the names at this job
    std::optional<live::Subscriber> into_;
};

}  // namespace

void add_subscribers(nb::module_& module) {
    nb::class_<PythonSubscriber>(module, "Subscriber")
        .def(nb::init<std::shared_ptr<PythonGroup>, const std::string&, const nb::object&, const nb::object&, Index,
                      Index>(),
             "group"_a, "endpoint"_a, "tensors"_a.none(), "rules"_a.none(), "lease"_a, "connect_limit"_a)
        .def("update", &PythonSubscriber::update, "limit"_a)
        .def("poll", &PythonSubscriber::poll)
        .def_prop_ro("version", &PythonSubscriber::version)
        .def_prop_ro("layouts", &PythonSubscriber::layouts)
        .def(
            "tile",
            [](nb::handle self, std::size_t tensor) { return nb::cast<PythonSubscriber&>(self).tile(self, tensor); },
            "tensor"_a)
        .def("reconnect", &PythonSubscriber::reconnect, "group"_a)
        .def("close", &PythonSubscriber::close);
}

}  // namespace reshard::python
