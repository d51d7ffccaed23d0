#include "reshard/planner/plan_cache.hpp"

#include <list>
#include <mutex>
#include <set>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include "reshard/planner/normalize_devices.hpp"
#include "src/base/try.hpp"
#include "synth/rule_table.hpp"

namespace reshard {

namespace {

using Key = std::vector<Index>;

struct KeyHash {
    std::size_t operator()(const Key& key) const {
        std::uint64_t state = 0xcbf29ce484222325u;
        for (const Index word : key) state = (state ^ static_cast<std::uint64_t>(word)) * 0x100000001b3u;
        return static_cast<std::size_t>(state ^ state >> 32);
    }
};

void add(Key& key, const AtomList& atoms) {
    key.push_back(static_cast<Index>(atoms.size()));
    for (const Atom& atom : atoms) {
        key.push_back(atom.size);
        key.push_back(atom.stride);
    }
}

void add(Key& key, const Layout& layout) {
    key.push_back(size_of(layout.dtype));
    key.push_back(static_cast<Index>(layout.mesh.axes.size()));
    for (const Axis& axis : layout.mesh.axes) key.push_back(axis.size);
    const bool listed = !layout.mesh.devices.in_order();
    key.push_back(listed ? device_count(layout.mesh) : 0);
    if (listed) key.insert(key.end(), layout.mesh.devices.devices().begin(), layout.mesh.devices.devices().end());
    key.push_back(static_cast<Index>(layout.dims.size()));
    for (const Dim& dim : layout.dims) {
        key.push_back(dim.extent);
        add(key, dim.atoms);
        key.push_back(dim.balanced ? -1 : static_cast<Index>(dim.pieces.size()));
        for (const Dim::Piece& piece : dim.pieces) {
            key.push_back(piece.end);
            key.push_back(piece.shard);
        }
    }
    add(key, layout.unreduced);
    key.push_back(static_cast<Index>(layout.reduction));
    key.push_back(layout.summed);
}

template <class T>
concept Number = std::is_integral_v<T> || std::is_enum_v<T>;

// An overload for each type of a field in the tables, so that a key leaves no field out.
template <Number T>
void add(Key& key, T word) {
    key.push_back(static_cast<Index>(word));
}
void add(Key& key, const std::optional<Index>& limit) { key.push_back(limit.value_or(-1)); }
void add(Key&, const std::string&) {}  // a name of a machine or level decides nothing
void add(Key&, Index (*)()) {}         // nor does a clock
void add(Key& key, const std::vector<std::string>& names) {
    const std::set<std::string> sorted(names.begin(), names.end());
    key.push_back(std::ssize(sorted));
    for (const std::string& name : sorted) {
        key.push_back(std::ssize(name));
        key.insert(key.end(), name.begin(), name.end());
    }
}
void add(Key& key, const std::vector<Step>& steps) {
    key.push_back(std::ssize(steps));
    for (const Step& step : steps) {
        add(key, step.kind);
        add(key, step.layout);
    }
}
void add(Key& key, const Capabilities& capabilities) {
#define RESHARD_CAPABILITY(kind, name, ...) add(key, capabilities.name);
#include "src/tables/capabilities.def"
}
void add(Key& key, const std::vector<Level>& levels) {
    key.push_back(std::ssize(levels));
    for (const Level& level : levels) {
#define RESHARD_LEVEL(kind, name, ...) add(key, level.name);
#include "src/tables/levels.def"
    }
}
void add(Key& key, const Machine& machine) {
#define RESHARD_MACHINE(kind, name, ...) add(key, machine.name);
#include "src/tables/levels.def"
}
void add(Key& key, const Options& options) {
#define RESHARD_OPTION(kind, name, member, ...) add(key, options.member);
#define RESHARD_INNER_OPTION(member) add(key, options.member);
#include "src/tables/options.def"
}

bool casts(const Problem& problem) { return problem.source.dtype != problem.target.dtype; }

Key key_of(const Problem& problem, const Options& options) {
    Key key;
    key.reserve(64);
    add(key, problem.source);
    add(key, problem.target);
    key.push_back(problem.source.mesh == problem.target.mesh ? 1 : 0);  // by names, too
    // Types of one size move in the same way, unless they are cast.
    if (casts(problem)) add(key, problem.source.dtype);
    if (casts(problem)) add(key, problem.target.dtype);
    add(key, options);
    return key;
}

// The plan in the names of this question, whose first plan was `plan`. False when some mesh on the way is neither
// end's.
bool rename(Plan& plan, const Problem& problem, const Options& options) {
    const bool straight = options.first_steps.empty();  // as synthesize takes its problem
    const auto [source, target] =
        straight ? normalized_devices(problem.source, problem.target) : std::pair(problem.source, problem.target);
    const Mesh source_mesh = std::exchange(plan.source, source).mesh;
    const Mesh target_mesh = std::exchange(plan.target, target).mesh;
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
        Layout& layout = plan.steps[i].layout;
        if (i < options.first_steps.size()) {
            layout = options.first_steps[i].layout;
        } else if (i + 1 == plan.steps.size()) {
            layout = target;
        } else {
            if (layout.mesh != source_mesh && layout.mesh != target_mesh) return false;
            layout.mesh = layout.mesh == source_mesh ? source.mesh : target.mesh;
            if (!casts(problem)) layout.dtype = source.dtype;
        }
    }
    return true;
}

}  // namespace

struct PlanCache::Memory {
    struct Entry {
        Key key;
        Synthesis made;
    };
    const std::size_t plans_max;
    mutable std::mutex mutex;
    std::list<Entry> entries;  // the one asked for last first
    std::unordered_map<Key, std::list<Entry>::iterator, KeyHash> places;
    Index hits = 0;

    std::optional<Synthesis> recall(const Key& key) {
        const std::lock_guard lock(mutex);
        const auto place = places.find(key);
        if (place == places.end()) return std::nullopt;
        entries.splice(entries.begin(), entries, place->second);
        return place->second->made;
    }

    void remember(Key key, const Synthesis& made) {
        const std::lock_guard lock(mutex);
        if (plans_max == 0 || places.count(key) != 0) return;
        if (entries.size() == plans_max) {
            places.erase(entries.back().key);
            entries.pop_back();
        }
        entries.push_front({key, made});
        places.emplace(std::move(key), entries.begin());
    }

    void count_hit() {
        const std::lock_guard lock(mutex);
        ++hits;
    }
};

PlanCache::PlanCache(std::size_t plans_max) : memory_(new Memory{plans_max, {}, {}, {}, 0}) {}

PlanCache::~PlanCache() = default;

Result<Synthesis> PlanCache::synthesize(const Problem& asked, const Options& options) {
    if (options.explain) return reshard::synthesize(asked, options);
    RESHARD_TRY(const Problem& problem, to_common_shape(asked));
    RESHARD_CHECK(rules_off(options));
    Key key = key_of(problem, options);
    if (auto known = memory_->recall(key)) {
        Plan plan = known->plan();
        const Verdict verdict = known->verdict();
        if (rename(plan, problem, options) &&
            rejudge(*known, judge(std::move(plan), known->execution(), options.limits)) &&
            known->verdict() == verdict) {
            memory_->count_hit();
            return std::move(*known);
        }
    }
    auto made = reshard::synthesize(problem, options);
    if (made) memory_->remember(std::move(key), *made);
    return made;
}

std::size_t PlanCache::size() const {
    const std::lock_guard lock(memory_->mutex);
    return memory_->entries.size();
}

Index PlanCache::hits() const {
    const std::lock_guard lock(memory_->mutex);
    return memory_->hits;
}

}  // namespace reshard
