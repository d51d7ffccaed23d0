#include "synth/program/expand.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "reshard/text.hpp"
#include "src/base/try.hpp"

namespace reshard::program {
namespace {

constexpr std::size_t activities_max = std::size_t{1} << 22;
constexpr Index bytes_max = Index{1} << 58;  // all buffers together

// Numbers keys as they appear.
template <class Key>
class Numbers {
public:
    int operator()(const Key& key) {
        return numbers_.try_emplace(key, static_cast<int>(numbers_.size())).first->second;
    }
    [[nodiscard]] int count() const { return static_cast<int>(numbers_.size()); }

private:
    std::map<Key, int> numbers_;
};

// The finest common partition of the devices of all meshes.
class Places {
public:
    explicit Places(const Program& program) {
        std::map<Index, std::vector<int>> meshes_of;  // of each device
        const auto add = [&](const Mesh& mesh) {
            const std::string key = format(Mesh({{"d", device_count(mesh)}}, mesh.devices));
            const auto [at, fresh] = meshes_.try_emplace(key, static_cast<int>(meshes_.size()));
            if (!fresh) return;
            for (Index position = 0; position < device_count(mesh); ++position)
                meshes_of[device_at(mesh, position)].push_back(at->second);
        };
        for (const ProgramArray& array : program.arrays) add(array.layout.mesh);
        for (const Task& task : program.tasks) {
            add(task.mesh);
            for (const ProgramUse& use : task.uses) add(use.layout.mesh);
            for (const ProgramArray& array : task.makes) add(array.layout.mesh);
        }
        for (const ProgramLimit& limit : program.limits) add(limit.mesh);
        std::map<std::vector<int>, int> places;
        places_.resize(meshes_.size());
        for (const auto& [device, meshes] : meshes_of) {
            const auto [at, fresh] = places.try_emplace(meshes, static_cast<int>(places.size()));
            if (!fresh) continue;
            devices.push_back(device);
            for (const int mesh : meshes) places_[mesh].push_back(at->second);
        }
    }

    // The places of a mesh of the program, ascending.
    [[nodiscard]] const std::vector<int>& of(const Mesh& mesh) const {
        return places_[meshes_.at(format(Mesh({{"d", device_count(mesh)}}, mesh.devices)))];
    }

    std::vector<Index> devices;  // of each place, the smallest

private:
    std::map<std::string, int> meshes_;
    std::vector<std::vector<int>> places_;
};

// An array in one layout: at each of its places the buffers that hold it. Several, if it took over memory.
struct Instance {
    int maker = -1;
    std::vector<int> users = {};
    std::vector<int> buffers = {};
};

class Expand {
public:
    Expand(const Program& program, const Options& options) : program_(program), options_(options), places_(program) {}

    Result<Expanded> run() {
        activities().all.resize(program_.tasks.size());
        activities().limits.assign(places_.devices.size(), index_max);
        for (const ProgramLimit& limit : program_.limits)
            for (const int place : places_.of(limit.mesh))
                activities().limits[place] = std::min(activities().limits[place], limit.bytes);
        for (const ProgramArray& array : program_.arrays) make(array, -1, {});
        for (std::size_t t = 0; t < program_.tasks.size(); ++t) RESHARD_CHECK(add_task(static_cast<int>(t)));
        Index bytes = 0;
        for (const Buffer& buffer : activities().buffers) bytes = saturating_add(bytes, buffer.bytes);
        Index time = 0;
        for (const Activity& one : activities().all) time = saturating_add(time, one.picoseconds);
        if (std::max(bytes, time) >= bytes_max)
            return fail(Code::overflow, "all times or all bytes of the program together reach 2^58");
        for (Activity& one : activities().all) make_set(one.before);
        for (Buffer& buffer : activities().buffers) make_set(buffer.users);
        activities().resources = resource_.count();
        complete(activities());
        out_.devices = places_.devices;
        return std::move(out_);
    }

private:
    using Key = std::tuple<std::string, std::string, std::string, std::string>;
    struct Planned {
        Judged<Plan> plan;
        Index picoseconds = 0;
        std::vector<int> resources;
        std::vector<int> places;
    };

    Activities& activities() { return out_.activities; }
    static void make_set(std::vector<int>& numbers) {
        std::ranges::sort(numbers);
        const auto repeated = std::ranges::unique(numbers);
        numbers.erase(repeated.begin(), repeated.end());
    }
    int resource(const std::string& name) {
        const int number = resource_(name);
        if (number == static_cast<int>(out_.resources.size())) out_.resources.push_back(name);
        return number;
    }
    int engine(const std::string& name, int place) {
        return resource(fmt::format("{} of device {}", name, places_.devices[place]));
    }
    int buffer(int place, Index bytes, int maker, bool kept = false) {
        activities().buffers.push_back({place, bytes, maker, {}, kept});
        return static_cast<int>(activities().buffers.size()) - 1;
    }

    // A made array takes the buffers of donated ones first.
    void make(const ProgramArray& array, int maker, std::map<int, std::vector<int>> pools) {
        Instance made{maker};
        for (const int place : places_.of(array.layout.mesh)) {
            Index left = tile_bytes(array.layout);
            for (std::vector<int>& pool = pools[place]; left > 0 && !pool.empty();) {
                int taken = pool.back();
                if (activities().buffers[taken].bytes <= left) {
                    pool.pop_back();
                } else {
                    Buffer part = activities().buffers[taken];
                    activities().buffers[taken].bytes -= left;
                    part.bytes = left;
                    taken = static_cast<int>(activities().buffers.size());
                    activities().buffers.push_back(std::move(part));
                }
                left -= activities().buffers[taken].bytes;
                activities().buffers[taken].kept = array.kept;
                made.buffers.push_back(taken);
            }
            if (left > 0) made.buffers.push_back(buffer(place, left, maker, array.kept));
        }
        made_[array.name] = instances_.size();
        layouts_.push_back(&array.layout);
        instances_.push_back(std::move(made));
    }

    void use(Instance& instance, int user) {
        if (instance.maker >= 0) activities().all[user].before.push_back(instance.maker);
        instance.users.push_back(user);
        for (const int b : instance.buffers) activities().buffers[b].users.push_back(user);
    }

    Result<void> add_task(int t) {
        const Task& task = program_.tasks[t];
        activities().all[t].picoseconds = task.picoseconds;
        for (const int place : places_.of(task.mesh)) {
            activities().all[t].resources.push_back(engine(task.engine, place));
            if (task.scratch_bytes > 0) buffer(place, task.scratch_bytes, t);
        }
        for (const std::string& earlier : task.after) activities().all[t].before.push_back(tasks_.at(earlier));
        for (std::size_t u = 0; u < task.uses.size(); ++u) {
            auto instance = instance_of(t, u);
            if (!instance) {
                instance.error().message =
                    fmt::format("task {}: {}: {}", task.name, task.uses[u].array, instance.error().message);
                return tl::unexpected(std::move(instance).error());
            }
            use(instances_[*instance], t);
        }
        std::map<int, std::vector<int>> pools;
        for (const std::string& array : task.donates) {
            const Instance& given = instances_[made_.at(array)];
            for (const int user : given.users)
                if (user != t) activities().all[t].before.push_back(user);
            for (const int b : given.buffers) pools[activities().buffers[b].place].push_back(b);
        }
        for (const ProgramArray& array : task.makes) {
            make(array, t, pools);
            take_from(pools, instances_.back());
        }
        tasks_[task.name] = t;
        activities().written.push_back(t);
        return {};
    }

    // A buffer that a made array took over whole is gone from the pool.
    static void take_from(std::map<int, std::vector<int>>& pools, const Instance& made) {
        for (auto& [place, pool] : pools)
            std::erase_if(pool, [&](int b) { return std::ranges::find(made.buffers, b) != made.buffers.end(); });
    }

    // The instance of a use: as made, moved before, or moved now.
    Result<std::size_t> instance_of(int t, std::size_t u) {
        const ProgramUse& use = program_.tasks[t].uses[u];
        const std::size_t made = made_.at(use.array);
        if (equivalent(*layouts_[made], use.layout)) return made;
        const std::tuple key(use.array, format(use.layout.mesh), format(use.layout));
        const auto before = moved_.find(key);
        if (before != moved_.end() && !use.again) {
            out_.moves[instances_[before->second].maker - program_.tasks.size()].users.push_back(
                {static_cast<std::size_t>(t), u});
            return before->second;
        }
        RESHARD_TRY(const Planned* const planned, plan(*layouts_[made], use.layout));
        if (activities().all.size() >= activities_max)
            return fail(Code::unsupported, fmt::format("more than {} activities", activities_max));
        const int move = activities().count();
        activities().all.push_back({use.move_picoseconds.value_or(planned->picoseconds), planned->resources, {}, true});
        activities().written.push_back(move);
        const Plan& plan = planned->plan.plan();
        const Index workspace =
            planned->plan.verdict().footprint_bytes - tile_bytes(plan.source) - tile_bytes(plan.target);
        for (const int place : planned->places)
            if (workspace > 0) buffer(place, workspace, move);
        this->use(instances_[made], move);
        Instance moved{move};
        for (const int place : places_.of(use.layout.mesh))
            moved.buffers.push_back(buffer(place, tile_bytes(use.layout), move));
        out_.moves.push_back(
            {use.array, {{static_cast<std::size_t>(t), u}}, planned->plan, activities().all[move].picoseconds});
        out_.places.push_back(planned->places);
        instances_.push_back(std::move(moved));
        layouts_.push_back(&use.layout);
        return moved_[key] = instances_.size() - 1;
    }

    // Equal problems share a plan.
    Result<const Planned*> plan(const Layout& source, const Layout& target) {
        const Key key(format(source.mesh), format(source), format(target.mesh), format(target));
        const auto known = plans_.find(key);
        if (known != plans_.end()) return &known->second;
        RESHARD_TRY(const Synthesis& made, synthesize(source, target, options_));
        Planned planned{made,
                        run_picoseconds(made.plan(), made.execution(), made.verdict(), options_.machine),
                        {},
                        places_.of(source.mesh)};
        for (const int place : places_.of(target.mesh)) planned.places.push_back(place);
        make_set(planned.places);
        for (const Card& card : cards_of(planned.plan, options_.machine, places_.devices)) {
            const Level& level = options_.machine.levels[card.level];
            planned.resources.push_back(resource(fmt::format("{} {} of {} {}", level.name, card.out ? "out" : "in",
                                                             level.shared ? "node" : "device", card.number)));
        }
        if (planned.resources.empty())
            for (const int place : planned.places) planned.resources.push_back(engine("compute", place));
        return &plans_.emplace(key, std::move(planned)).first->second;
    }

    const Program& program_;
    const Options& options_;
    Places places_;
    Expanded out_;
    Numbers<std::string> resource_;
    std::vector<Instance> instances_;
    std::vector<const Layout*> layouts_;  // of each instance
    std::map<std::string, std::size_t> made_;
    std::map<std::tuple<std::string, std::string, std::string>, std::size_t> moved_;
    std::map<std::string, int> tasks_;
    std::map<Key, Planned> plans_;
};

}  // namespace

Result<Expanded> expand(const Program& program, const Options& options) { return Expand(program, options).run(); }

}  // namespace reshard::program
