#include "reshard/live/subscribe.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <exception>
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
                     const nb::object& rules, Index lease, Index connect_limit, bool in_place, nb::object progress,
                     nb::object arrived)
        : group_(std::move(group)),
          options_{Milliseconds(lease), Milliseconds(connect_limit), in_place},
          progress_(std::move(progress)),
          arrived_(std::move(arrived)) {
        if (!progress_.is_none())
            options_.progress = [this](Index received, Index bytes) { call([&] { progress_(received, bytes); }); };
        if (!arrived_.is_none())
            options_.arrived = [this](std::size_t tensor, std::span<const std::byte> tile) {
                call([&] { arrived_(tensor, array_of(nb::find(this), tile)); });
            };
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
        auto version = waiting([&] { return into_->update(Milliseconds(limit)); });
        raise_callback();
        return unwrap(std::move(version));
    }
    std::optional<Index> poll() {
        const GroupCall call(*group_);
        auto version = waiting([&] { return into_->poll(); });
        raise_callback();
        return unwrap(std::move(version));
    }
    Index version() {
        const GroupCall call(*group_);
        return into_->version();
    }

    // The bytes of a tile. They keep `self` alive, which never moves or frees them.
    nb::object tile(nb::handle self, std::size_t tensor) {
        const GroupCall call(*group_);
        return array_of(self, unwrap(into_->tile(tensor)));
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

    static nb::object array_of(nb::handle self, std::span<const std::byte> bytes) {
        static const std::uint8_t none = 0;
        const auto* const first = bytes.empty() ? &none : reinterpret_cast<const std::uint8_t*>(bytes.data());
        return nb::cast(nb::ndarray<nb::numpy, const std::uint8_t>(first, {bytes.size()}, self));
    }

    // An exception of a callback must not go through the library. The update goes on without callbacks.
    template <class Body>
    void call(const Body& body) {
        if (raised_) return;
        const Locked locked;
        try {
            body();
        } catch (...) {
            raised_ = std::current_exception();
        }
    }
    void raise_callback() {
        if (raised_) std::rethrow_exception(std::exchange(raised_, nullptr));
    }

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
    nb::dict layouts_;     // by the names at this job
    nb::object progress_;  // functions, or None
    nb::object arrived_;
    std::exception_ptr raised_;  // by one of them, in the update under way
    std::optional<live::Subscriber> into_;
};

}  // namespace

void add_subscribers(nb::module_& module) {
    nb::class_<PythonSubscriber>(module, "Subscriber")
        .def(nb::init<std::shared_ptr<PythonGroup>, const std::string&, const nb::object&, const nb::object&, Index,
                      Index, bool, nb::object, nb::object>(),
             "group"_a, "endpoint"_a, "tensors"_a.none(), "rules"_a.none(), "lease"_a, "connect_limit"_a, "in_place"_a,
             "progress"_a.none(), "arrived"_a.none())
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
