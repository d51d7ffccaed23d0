// Moves on the caller's registered memory, whole or in part, and changes to it meanwhile.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <mpi.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <deque>
#include <random>
#include <thread>

#include "backends/mpi/shm/registry.hpp"
#include "conformance/harness.hpp"
#include "conformance/move.hpp"
#include "conformance/mpi/slot.hpp"
#include "reshard/backends/mpi.hpp"
#include "src/copy/kernels/dispatch.hpp"
#include "support/property.hpp"

namespace reshard::conformance {
namespace {

using enum StepKind;
using Random = std::mt19937_64;

bool sends_messages(const Executor& executor) { return executor.describe().find("messages") != std::string::npos; }

// One prepared move, and its arrays in memory that is sometimes registered.
class Mover {
public:
    Mover(Backend& backend, const Item& item) : backend_(backend) {
        executor_.emplace(
            Executor::prepare(judge(item.plan, backend.capabilities()), backend, storages_of(item, backend.rank()))
                .value());
        for (std::uint64_t salt = 1; salt <= salts; ++salt)
            benches_.emplace_back(item, backend.rank(), salt, workspace());
        source.emplace(benches_.front().source.bytes.size());
        target.emplace(benches_.front().target.bytes.size());
    }

    // Moves and returns the fault; empty if the result is right. Collective.
    std::string move(std::uint64_t salt) {
        const Workbench& bench = benches_[salt % salts];
        std::ranges::copy(bench.source.bytes, source->bytes().begin());
        std::ranges::copy(bench.target.bytes, target->bytes().begin());
        std::vector<std::byte> work(static_cast<std::size_t>(workspace()));
        const Buffers buffers{source->bytes(), target->bytes(), work};
        auto bound = executor_->bind({&buffers, 1});
        if (!bound) return bound.error().message;
        auto run = (*bound)->start();
        if (!run) return run.error().message;
        if (const auto done = (*run)->wait(); !done) return done.error().message;
        if (!std::ranges::equal(target->bytes(), bench.target_wanted.bytes)) return "the target is wrong";
        if (!std::ranges::equal(source->bytes(), bench.source_wanted.bytes)) return "the source was written";
        source->remember();
        target->remember();
        return source->neighbours_are_whole() && target->neighbours_are_whole() ? "" : "neighbours were written";
    }
    [[nodiscard]] const Executor& executor() const { return *executor_; }
    [[nodiscard]] Backend& backend() const { return backend_; }

    std::optional<Slot> source;
    std::optional<Slot> target;

private:
    static constexpr std::uint64_t salts = 5;
    [[nodiscard]] Index workspace() const { return executor_->plans().front().workspace_bytes; }
    Backend& backend_;
    std::optional<Executor> executor_;
    std::vector<Workbench> benches_;
};

Item rows_to_columns(Index ranks, const std::string& array = "f32[64@x,320] f32[64,320@x]") {
    const std::size_t blank = array.find(' ');
    return {*plan_of(fmt::format("x={}", ranks), array.substr(0, blank), exchange, array.substr(blank + 1))};
}

void on_a_backend(const std::function<void(Backend&)>& body) { harness().on_every_rank(body); }

// Memory registered whole, up to odd ends, in halves, beside others, or not at all gives the same bytes.
TEST(Registered, WholeAndInPart) {
    on_a_backend([](Backend& backend) {
        for (const std::string array : {"f32[64@x,320] f32[64,320@x]", "u8[4099@x,13] u8[4099,13@x]"}) {
            Mover mover(backend, rows_to_columns(backend.size(), array));
            for (const Slot::Kind kind : Slot::kinds) {
                for (int way = 0; way < 6; ++way) {
                    for (std::optional<Slot>* slot : {&mover.source, &mover.target}) {
                        const std::size_t bytes = (*slot)->bytes().size();
                        slot->emplace(bytes, kind, array.starts_with("u8") ? 4091 + 13 * way : 4088 + 12 * way);
                        const std::span all = (*slot)->around();
                        const std::span own = (*slot)->bytes();
                        const auto enter = [&](std::span<std::byte> some) {
                            EXPECT_EQ((*slot)->enter(backend, some), "");
                        };
                        if (way == 1) enter(own);
                        if (way == 2) enter(all);
                        if (way == 3) enter(own.first(bytes / 2 + 1));
                        if (way == 4) enter(own.subspan(bytes / 3));
                        if (way == 5) {
                            enter(own.first(bytes / 2));
                            enter(own.subspan(bytes / 2, bytes / 4));
                        }
                    }
                    for (int run = 0; run < 3; ++run) EXPECT_EQ(mover.move(run), "") << array << " way " << way;
                    for (std::optional<Slot>* slot : {&mover.source, &mover.target}) EXPECT_EQ((*slot)->leave(), "");
                    EXPECT_EQ(mover.move(3), "");
                }
            }
        }
    });
}

// If the data is larger than the caches, senders write the registered target with non-temporal stores.
TEST(Registered, BeyondTheCaches) {
    on_a_backend([](Backend& backend) {
        if (backend.size() < 2 || !backend.capabilities().one_exchange) return;  // no rank writes another's memory
        constexpr Index columns = 2053;
        const Index ranks = backend.size();
        const Index rows = last_cache_bytes() / 2 / columns + 13;
        const auto value = [](Index row, Index column) {
            return std::byte(static_cast<unsigned char>(row * 31 + column * 7));
        };
        const auto own = [&](Index extent) {
            const Index block = ceil_divide(extent, ranks);
            return Interval{std::min(extent, block * backend.rank()), std::min(extent, block * (backend.rank() + 1))};
        };
        const Item item = rows_to_columns(ranks, fmt::format("u8[{}@x,{}] u8[{},{}@x]", rows, columns, rows, columns));
        auto executor = Executor::prepare(judge(item.plan, backend.capabilities()), backend).value();
        const Interval mine = own(rows);
        const Interval wanted = own(columns);
        Slot source(static_cast<std::size_t>(mine.size() * columns), Slot::Kind::mapped, 77);
        Slot target(static_cast<std::size_t>(rows * wanted.size()), Slot::Kind::heap, 4091);
        for (Index i = 0; i < mine.size() * columns; ++i)
            source.bytes()[static_cast<std::size_t>(i)] = value(mine.begin + i / columns, i % columns);
        source.remember();
        for (Slot* slot : {&source, &target}) EXPECT_EQ(slot->enter(backend, slot->bytes()), "");
        for (int run = 0; run < 2; ++run) {
            std::ranges::fill(target.bytes(), std::byte{0});
            const auto done = executor.run(source.bytes(), target.bytes());
            ASSERT_TRUE(done) << done.error().message;
            Index wrong = 0;
            for (Index i = 0; i < rows * wanted.size(); ++i) {
                wrong += target.bytes()[static_cast<std::size_t>(i)] !=
                         value(i / wanted.size(), wanted.begin + i % wanted.size());
            }
            EXPECT_EQ(wrong, 0);
            EXPECT_EQ(source.read(), "");
            EXPECT_TRUE(target.neighbours_are_whole());
        }
    });
}

// Sums: all ranks write the targets if all want them.
TEST(Registered, Sums) {
    on_a_backend([](Backend& backend) {
        if (backend.size() < 2) return;
        const std::string mesh = fmt::format("x={}", backend.size());
        const Item scattered{*plan_of(mesh, "f32[64,320]{U:x}", reduce_scatter, "f32[64@x,320]")};
        const Item for_all{*plan_of(mesh, "f32[64,320]{U:x}", all_reduce, "f32[64,320]")};
        for (const Item& item : {scattered, for_all}) {
            Mover mover(backend, item);
            for (std::optional<Slot>* slot : {&mover.source, &mover.target}) {
                slot->emplace((*slot)->bytes().size(), Slot::Kind::mapped, 76);
                EXPECT_EQ((*slot)->enter(backend, (*slot)->bytes()), "");
            }
            for (int run = 0; run < 3; ++run) EXPECT_EQ(mover.move(run), "");
        }
    });
}

// Buffers bound before the registration, during it and after its end: each run is right, and every bind stays valid.
TEST(Registered, ABindOutlivesRegistrations) {
    on_a_backend([](Backend& backend) {
        const Item item = rows_to_columns(backend.size());
        auto executor = Executor::prepare(judge(item.plan, backend.capabilities()), backend).value();
        Workbench bench(item, backend.rank(), 1, 0);
        Slot source(bench.source.bytes.size(), Slot::Kind::vector, 20);
        Slot target(bench.target.bytes.size(), Slot::Kind::heap, 4);
        std::ranges::copy(bench.source.bytes, source.bytes().begin());
        const Buffers buffers{source.bytes(), target.bytes(), {}};
        auto bound = executor.bind({&buffers, 1}).value();
        for (int run = 0; run < 6; ++run) {
            source.remember();
            target.remember();
            if (run % 3 == 1) {
                EXPECT_EQ(source.enter(backend, source.bytes()), "");
            }
            if (run % 3 == 1 && backend.rank() % 2 == 0) {
                EXPECT_EQ(target.enter(backend, target.around()), "");
            }
            if (run % 3 == 2) {
                EXPECT_EQ(source.leave(), "");
            }
            std::ranges::fill(target.bytes(), std::byte{0x55});
            auto ticket = bound->start();
            ASSERT_TRUE(ticket) << ticket.error().message;
            const auto done = (*ticket)->wait();
            ASSERT_TRUE(done) << done.error().message;
            EXPECT_TRUE(std::ranges::equal(target.bytes(), bench.target_wanted.bytes)) << run;
            if (run % 3 == 2) {
                EXPECT_EQ(target.leave(), "");
            }
        }
    });
}

// Memory freed while it was registered: an error at bind and at start, on the rank that freed it.
TEST(Registered, FreedMemoryIsAnErrorAtBindAndStart) {
    on_a_backend([](Backend& backend) {
        const Item item = rows_to_columns(backend.size());
        auto executor = Executor::prepare(judge(item.plan, backend.capabilities()), backend).value();
        Workbench bench(item, backend.rank(), 1, 0);
        Slot source(bench.source.bytes.size(), Slot::Kind::mapped, 0);
        const Buffers buffers{source.bytes(), bench.target.bytes, {}};
        auto bound = executor.bind({&buffers, 1}).value();
        EXPECT_EQ(source.enter(backend, source.bytes()), "");
        if (backend.memory_use().registered_bytes == 0) return;  // no peer reaches it, so it was not exchanged
        // A foreign page in the middle.
        auto* const page =
            reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(source.bytes().data()) / 4096 + 1) * 4096);
        ASSERT_NE(mmap(page, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), MAP_FAILED);
        std::fill_n(page, 4096, std::byte{0x11});
        const auto again = executor.bind({&buffers, 1});
        ASSERT_FALSE(again);
        EXPECT_NE(again.error().message.find("array 0: the memory of its source was freed or mapped anew"),
                  std::string::npos)
            << again.error().message;
        const auto run = bound->start();
        ASSERT_FALSE(run);
        EXPECT_NE(run.error().message.find("was freed or mapped anew"), std::string::npos) << run.error().message;
        EXPECT_NE(source.leave().find("4096 of"), std::string::npos);
        EXPECT_TRUE(std::all_of(page, page + 4096, [](std::byte one) { return one == std::byte{0x11}; }));
        EXPECT_EQ(backend.memory_use().registered_bytes, 0);
    });
}

TEST(Registered, IsCountedAndMayNotEndInFlight) {
    on_a_backend([](Backend& backend) {
        const Index before = backend.memory_use().held_bytes;
        Mover mover(backend, rows_to_columns(backend.size()));
        const Index prepared = backend.memory_use().held_bytes;
        EXPECT_EQ(mover.source->enter(backend, mover.source->bytes()), "");
        const MemoryUse use = backend.memory_use();
        if (use.registered_bytes == 0) return;
        EXPECT_EQ(use.registered_bytes, static_cast<Index>(mover.source->bytes().size()));
        EXPECT_LE(use.held_bytes, prepared + 2 * 4096) << "the shadows of two pages";
        EXPECT_LE(use.most_bytes, before + prepared + (8 << 20) + 2 * 4096);
        auto again = backend.register_memory(mover.source->bytes());
        ASSERT_FALSE(again);
        EXPECT_EQ(again.error().code, Code::usage);
        EXPECT_EQ(mover.source->leave(), "");
        EXPECT_EQ(backend.memory_use().registered_bytes, 0);
        EXPECT_EQ(backend.memory_use().held_bytes, prepared);
    });
}

// One thread's random sequence of everything that programs do. The ranks move at the same places of the sequence, and
// choose the rest themselves.
class Sequence {
public:
    Sequence(Mover& mover, std::uint64_t seed)
        : mover_(mover), common_(seed), own_(seed * 31 + static_cast<std::uint64_t>(mover.backend().rank()) + 1) {}

    std::string run() {
        for (int step = 0; step < 12; ++step) {
            if (auto wrong = draw(common_, 3) == 0 ? mover_.move(common_()) : own_step(); !wrong.empty())
                return fmt::format("step {}: {}", step, wrong);
        }
        for (std::optional<Slot>* slot : {&mover_.source, &mover_.target}) {
            if (auto wrong = (*slot)->leave(); !wrong.empty()) return wrong;
        }
        return mover_.move(common_());
    }

private:
    static std::uint64_t draw(Random& random, std::uint64_t below) { return random() % below; }

    std::string own_step() {
        std::optional<Slot>& slot = draw(own_, 2) == 0 ? mover_.source : mover_.target;
        switch (draw(own_, 8)) {
            case 0:
            case 1:
            case 2:
                return enter(*slot);
            case 3:
                return slot->leave();
            case 4:
                return again(slot);
            case 5:
                return write(*slot);
            case 6:
                return slot->resize();
            default:
                return draw(own_, 4) == 0 ? in_a_child(*slot) : slot->read();
        }
    }
    std::string enter(Slot& slot) {
        if (slot.registrations() > 0) return {};
        const std::size_t from = draw(own_, 3) == 0 ? draw(own_, slot.bytes().size() / 2) : 0;
        const bool around = draw(own_, 3) == 0;
        return slot.enter(mover_.backend(), (around ? slot.around() : slot.bytes()).subspan(from));
    }
    // Frees the memory, mostly after its registration has ended, and allocates it again elsewhere.
    std::string again(std::optional<Slot>& slot) {
        const bool forgotten = draw(own_, 8) == 0;
        const std::size_t bytes = slot->bytes().size();
        std::string wrong = forgotten ? slot->lose() : slot->leave();
        slot.emplace(bytes, Slot::kinds[draw(own_, Slot::kinds.size())], 4 * draw(own_, 3000));
        return wrong;
    }
    std::string write(Slot& slot) {
        for (std::byte& one : slot.bytes()) one = std::byte(static_cast<unsigned char>(own_()));
        slot.remember();
        return slot.neighbours_are_whole() ? "" : "neighbours were written";
    }
    // Allocates nothing, because another thread may hold the allocator's lock.
    static std::string in_a_child(const Slot& slot) {
        const pid_t child = fork();
        if (child == 0) _exit(slot.is_as_remembered() && slot.neighbours_are_whole() ? 0 : 1);
        int status = 0;
        waitpid(child, &status, 0);
        return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? "" : "a child sees other contents";
    }
    Mover& mover_;
    Random common_;
    Random own_;
};

TEST(Registered, RandomSequencesInTwoThreads) {
    const std::uint64_t seed = std::stoull(harness().from_rank_0([] { return std::to_string(test::drawn_seed()); }));
    on_a_backend([&](Backend& backend) {
        // More ranks than cores mostly wait for each other, and messages do not use registration.
        const bool shares = backend.capabilities().ranks_per_node > 1;
        const int all = !shares ? 30 : backend.size() == 2 ? 500 : 60;
        const int sequences = test::long_run() ? 20 * all : test::cases(all);
        const std::string mesh = fmt::format("x={}", backend.size());
        std::array<std::deque<Mover>, 2> movers;
        movers[0].emplace_back(backend, rows_to_columns(backend.size()));
        if (backend.size() > 1)
            movers[0].emplace_back(backend, Item{*plan_of(mesh, "f32[40,80]{U:x}", all_reduce, "f32[40,80]")});
        movers[1].emplace_back(backend, rows_to_columns(backend.size(), "u8[4099@x,13] u8[4099,13@x]"));
        movers[1].emplace_back(backend, rows_to_columns(backend.size(), "f32[37@x,41] f32[37,41]"));
        const bool threads = !sends_messages(movers[0].front().executor());
        for (int sequence = 0; sequence < sequences && !testing::Test::HasFailure(); ++sequence) {
            std::array<std::string, 2> wrong;
            const auto run = [&](std::size_t which) {
                auto& some = movers.at(which);
                const std::uint64_t own_seed = seed + 2 * static_cast<std::uint64_t>(sequence) + which;
                wrong.at(which) = Sequence(some[static_cast<std::size_t>(sequence) % some.size()], own_seed).run();
            };
            std::thread other;
            threads ? static_cast<void>(other = std::thread(run, 1)) : run(1);
            run(0);
            if (threads) other.join();
            for (const std::string& one : wrong) {
                EXPECT_EQ(one, "") << "rank " << backend.rank() << ", sequence " << sequence
                                   << "; repeat it: RESHARD_SEED=" << seed + 2 * static_cast<std::uint64_t>(sequence);
            }
        }
        EXPECT_EQ(backend.memory_use().registered_bytes, 0);
    });
}

}  // namespace
}  // namespace reshard::conformance
