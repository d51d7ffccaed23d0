#include "reshard/program/generate.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "reshard/text.hpp"
#include "src/base/try.hpp"
#include "src/text/scanner.hpp"
#include "synth/program/parameters.hpp"

namespace reshard {
namespace {

using notation::Scanner;
using notation::Unit;
using program::Parameters;

constexpr Index count_max = 100'000;
constexpr Index time_max = 1'000'000'000'000'000;  // picoseconds
constexpr Index bytes_max = 10'000'000'000'000;    // a product with count_max fits 64 bits
constexpr Index tasks_max = 4'000'000;

#define RESHARD_PIPELINE                                                                                        \
    {"stages", "4", "meshes in a row"}, {"microbatches", "8", "parts of a batch"},                              \
        {"width", "1", "devices of a mesh"}, {"forward", "10ms", "a forward task"},                             \
        {"backward", "20ms", "a backward task"}, {"move", "0", "a message; 0: the estimate of its plan"},       \
        {"activation", "16MiB", "held on a device from forward to backward"},                                   \
        {"message", "1MiB", "what a device sends to the next mesh"},                                            \
        {"activations", "0", "limit: activations that the first mesh may hold, falling to one; 0: no limit"}, { \
        "everywhere", "0", "1: all meshes have the first one's limit"                                           \
    }

constexpr auto pipeline_parameters = std::to_array<GeneratorParameter>({RESHARD_PIPELINE});
constexpr auto interleaved_parameters =
    std::to_array<GeneratorParameter>({RESHARD_PIPELINE, {"chunks", "2", "parts of the layers on a mesh"}});
constexpr auto zero_bubble_parameters =
    std::to_array<GeneratorParameter>({RESHARD_PIPELINE, {"weight", "10ms", "the gradient of the weights"}});
#undef RESHARD_PIPELINE
constexpr auto zero3_parameters = std::to_array<GeneratorParameter>({
    {"layers", "24", "layers of the model"},
    {"devices", "8", "that share the weights"},
    {"forward", "10ms", "a layer forward"},
    {"backward", "20ms", "a layer backward"},
    {"move", "0", "a gather or a scatter; 0: the estimate of its plan"},
    {"layer", "64MiB", "the weights of a layer"},
});
constexpr auto tensor_data_parameters = std::to_array<GeneratorParameter>({
    {"layers", "12", "layers of the model"},
    {"parts", "2", "of a batch, which may overlap"},
    {"tensor", "2", "devices that share a layer; consecutive"},
    {"data", "2", "groups of them, which share the gradients"},
    {"forward", "10ms", "half a layer forward, one part"},
    {"backward", "20ms", "half a layer backward, one part"},
    {"inside", "0", "a sum over `tensor`; 0: the estimate of its plan"},
    {"outside", "0", "a sum over `data`; 0: the estimate of its plan"},
    {"activation", "16MiB", "an activation"},
    {"gradient", "64MiB", "the gradients of half a layer"},
});
constexpr auto refit_parameters = std::to_array<GeneratorParameter>({
    {"buckets", "16", "parts of the weights"},
    {"trainer", "4", "devices that have them"},
    {"rollout", "2", "devices that want them"},
    {"pack", "10ms", "a bucket, on the trainer"},
    {"load", "10ms", "a bucket, on the rollout engine"},
    {"move", "0", "a bucket; 0: the estimate of its plan"},
    {"bucket", "64MiB", "all devices together"},
    {"hold", "0", "limit: buckets that a device may hold; 0: no limit"},
});
constexpr auto coupled_parameters = std::to_array<GeneratorParameter>({
    {"windows", "20", "coupling windows"},
    {"a", "10ms", "a window of the first code"},
    {"b", "10ms", "a window of the second code"},
    {"uneven", "0", "by how much windows of the second code are longer and shorter, in turns"},
    {"devices_a", "4", "of the first code"},
    {"devices_b", "2", "of the second code"},
    {"move", "0", "a field; 0: the estimate of its plan"},
    {"field", "16MiB", "all devices together"},
    {"lag", "1", "windows by which a code uses the other's field later; 0: the second follows the first"},
});

constexpr auto all_generators = std::to_array<Generator>({
    {"gpipe", "a pipeline: all forwards, then all backwards", pipeline_parameters},
    {"1f1b", "a pipeline: one forward, one backward", pipeline_parameters},
    {"eager", "1f1b with more forwards ahead, which hides the messages", pipeline_parameters},
    {"interleaved", "1f1b with several chunks of layers on a mesh", interleaved_parameters},
    {"zero_bubble", "1f1b whose weights' gradients wait (ZB-H1)", zero_bubble_parameters},
    {"zero3", "weights gathered for each layer, gradients scattered", zero3_parameters},
    {"tensor_data", "tensor and data parallel layers, a batch in parts", tensor_data_parameters},
    {"refit", "weights from a trainer to a rollout engine, in buckets", refit_parameters},
    {"coupled", "two codes that exchange fields", coupled_parameters},
});

constexpr auto units = std::to_array<Unit>({{"", 1},
                                            {"ps", 1},
                                            {"ns", 1'000},
                                            {"us", 1'000'000},
                                            {"ms", 1'000'000'000},
                                            {"s", 1'000'000'000'000},
                                            {"B", 1},
                                            {"KiB", 1 << 10},
                                            {"MiB", 1 << 20},
                                            {"GiB", 1 << 30}});

// A time has a time's default, and so on.
bool is_count(const GeneratorParameter& parameter) {
    return parameter.value.find_first_not_of("0123456789") == std::string_view::npos;
}
constexpr std::array may_be_zero{"move",    "inside",   "outside", "activations", "everywhere", "hold", "uneven", "lag",
                                 "forward", "backward", "weight",  "pack",        "load",       "a",    "b"};
constexpr std::array times_with_zero{"move", "inside", "outside", "uneven"};

std::vector<std::string_view> names_of(std::span<const GeneratorParameter> parameters) {
    std::vector<std::string_view> names;
    for (const GeneratorParameter& parameter : parameters) names.push_back(parameter.name);
    return names;
}

Result<Parameters> read(Scanner& scanner, const Generator& generator) {
    Parameters given;
    for (const GeneratorParameter& parameter : generator.parameters) {
        Scanner value(parameter.value);
        RESHARD_TRY(const Index number, notation::scan_quantity(value, "a value", units));
        given.set(parameter.name, number);
    }
    while (!scanner.at_end()) {
        const std::size_t begin = scanner.offset();
        const std::string_view word = scanner.text().substr(begin, scanner.text().find(' ', begin) - begin);
        const std::size_t equals = std::min(word.find('='), word.size());
        const std::string_view name = word.substr(0, equals);
        const auto parameter = std::ranges::find(generator.parameters, name, &GeneratorParameter::name);
        if (parameter == generator.parameters.end()) {
            const std::string names = fmt::format("{}", fmt::join(names_of(generator.parameters), ", "));
            return scanner.error(
                Code::syntax, fmt::format("{} has no parameter of this name; it has {}", generator.name, names), begin);
        }
        const std::size_t at = begin + std::min(equals + 1, word.size());
        scanner.move_to(begin + word.size());
        Scanner number(word.substr(at - begin));
        const auto read = notation::scan_quantity(number, name, units);
        if (!read) return scanner.error(read.error().code, read.error().message, at + read.error().offset);
        RESHARD_CHECK(scanner.at(number.expect_end(), at + number.offset()));
        const Index value = *read;
        const bool zero = std::ranges::find(may_be_zero, name) != may_be_zero.end();
        if (value < (zero ? 0 : 1)) return scanner.error(Code::usage, fmt::format("{} is at least 1", name), at);
        const bool time = std::ranges::find(times_with_zero, name) != times_with_zero.end();
        const Index most = time || parameter->value.back() == 's' ? time_max
                           : is_count(*parameter)                 ? count_max
                                                                  : bytes_max;
        if (value > most) return scanner.error(Code::usage, fmt::format("{} is at most {}", name, most), at);
        given.set(parameter->name, value);
    }
    return given;
}

Layout in(const Mesh& mesh, const std::string& text) { return parse_layout(mesh, text).value(); }

Program zero3(const Parameters& given) {
    const Mesh mesh = program::devices_from(0, given["devices"]);
    const Index elements = ceil_divide(given["layer"], 4 * given["devices"]) * given["devices"];
    const Layout shard = in(mesh, fmt::format("f32[{}@d]", elements));
    const Layout whole = in(mesh, fmt::format("f32[{}]", elements));
    const Layout summands = in(mesh, fmt::format("f32[{}]{{U:d}}", elements));
    const Layout little = in(mesh, "u8[1]");
    const auto move = given.move_time();
    Program program;
    const Index layers = given["layers"];
    program.arrays.push_back({"x0", little});
    for (Index i = 0; i < layers; ++i) program.arrays.push_back({fmt::format("w{}", i), shard, true});
    for (Index i = 0; i < layers; ++i)
        program.tasks.push_back({fmt::format("F{}", i),
                                 mesh,
                                 given["forward"],
                                 {{fmt::format("x{}", i), little}, {fmt::format("w{}", i), whole, false, move}},
                                 {{fmt::format("x{}", i + 1), little}}});
    for (Index i = layers; i-- > 0;) {
        Task back{fmt::format("B{}", i),
                  mesh,
                  given["backward"],
                  {{fmt::format("x{}", i + 1), little}, {fmt::format("w{}", i), whole, true, move}},
                  {{fmt::format("d{}", i), little}, {fmt::format("g{}", i), summands}}};
        if (i + 1 < layers) back.uses.push_back({fmt::format("d{}", i + 1), little});
        program.tasks.push_back(std::move(back));
        Task update{fmt::format("U{}", i), mesh, 0, {{fmt::format("g{}", i), shard, false, move}}};
        update.engine = "optimizer";
        program.tasks.push_back(std::move(update));
    }
    return program;
}

Program tensor_data(const Parameters& given) {
    const Mesh mesh{{"data", given["data"]}, {"tensor", given["tensor"]}};
    const Index n = ceil_divide(given["activation"], 4);
    const Index weights = ceil_divide(given["gradient"], 4);
    const Layout whole = in(mesh, fmt::format("f32[{}]", n));
    const Layout part = in(mesh, fmt::format("f32[{}]{{U:tensor}}", n));
    const Layout gradient = in(mesh, fmt::format("f32[{}]{{U:data}}", weights));
    const Layout summed = in(mesh, fmt::format("f32[{}]", weights));
    const auto time = [&](std::string_view name) {
        return given[name] == 0 ? std::nullopt : std::optional(given[name]);
    };
    const Index halves = 2 * given["layers"];
    const Index parts = given["parts"];
    const auto named = [](const char* array, Index half, Index m) { return fmt::format("{}{}.{}", array, half, m); };
    Program program;
    for (Index m = 0; m < parts; ++m) program.arrays.push_back({named("x", 0, m), whole});
    for (Index m = 0; m < parts; ++m)
        for (Index i = 0; i < halves; ++i)
            program.tasks.push_back({named("F", i, m),
                                     mesh,
                                     given["forward"],
                                     {{named("x", i, m), whole, false, time("inside")}},
                                     {{named("x", i + 1, m), part}, {named("a", i, m), whole}}});
    for (Index i = halves; i-- > 0;) {
        for (Index m = 0; m < parts; ++m) {
            const std::string above = i + 1 < halves ? named("d", i + 1, m) : named("x", halves, m);
            Task back{named("B", i, m),
                      mesh,
                      given["backward"],
                      {{above, whole, false, time("inside")}, {named("a", i, m), whole}},
                      {{named("d", i, m), part}}};
            // The parts of a batch add to one gradient.
            if (m == 0) {
                back.makes.push_back({named("g", i, m), gradient});
            } else {
                back.uses.push_back({named("g", i, m - 1), gradient});
                back.donates.push_back(named("g", i, m - 1));
                back.makes.push_back({named("g", i, m), gradient});
            }
            program.tasks.push_back(std::move(back));
        }
        Task update{fmt::format("U{}", i), mesh, 0, {{named("g", i, parts - 1), summed, false, time("outside")}}};
        update.engine = "optimizer";
        program.tasks.push_back(std::move(update));
    }
    return program;
}

Program refit(const Parameters& given) {
    const Mesh trainer = program::devices_from(0, given["trainer"]);
    const Mesh rollout = program::devices_from(given["trainer"], given["rollout"]);
    const Index elements = ceil_divide(given["bucket"], 2);
    Program program;
    for (Index k = 0; k < given["buckets"]; ++k) {
        const std::string bucket = fmt::format("w{}", k);
        const Layout wanted = in(rollout, fmt::format("bf16[{}@d]", elements));
        program.tasks.push_back({fmt::format("pack{}", k),
                                 trainer,
                                 given["pack"],
                                 {},
                                 {{bucket, in(trainer, fmt::format("bf16[{}@d]", elements))}}});
        program.tasks.push_back(
            {fmt::format("load{}", k), rollout, given["load"], {{bucket, wanted, false, given.move_time()}}});
    }
    if (given["hold"] == 0) return program;
    for (const Mesh& mesh : {trainer, rollout})
        program.limits.push_back({mesh, given["hold"] * tile_bytes(in(mesh, fmt::format("bf16[{}@d]", elements)))});
    return program;
}

Program coupled(const Parameters& given) {
    const Mesh a = program::devices_from(0, given["devices_a"]);
    const Mesh b = program::devices_from(given["devices_a"], given["devices_b"]);
    const std::string field = fmt::format("f64[{}@d]", ceil_divide(given["field"], 8));
    const Index lag = given["lag"];
    Program program;
    for (Index t = 0; t < given["windows"]; ++t) {
        const Index uneven = std::min(given["uneven"], given["b"]);
        Task first{fmt::format("A{}", t), a, given["a"], {}, {{fmt::format("fa{}", t), in(a, field)}}};
        Task second{fmt::format("B{}", t),
                    b,
                    t % 2 == 0 ? given["b"] + uneven : given["b"] - uneven,
                    {},
                    {{fmt::format("fb{}", t), in(b, field)}}};
        const auto use = [&](Task& task, const Mesh& mesh, const char* array, Index window) {
            if (window >= 0)
                task.uses.push_back({fmt::format("{}{}", array, window), in(mesh, field), false, given.move_time()});
        };
        use(first, a, "fa", t - 1);
        use(first, a, "fb", t - std::max(Index{1}, lag));
        use(second, b, "fb", t - 1);
        use(second, b, "fa", t - lag);
        program.tasks.push_back(std::move(first));
        program.tasks.push_back(std::move(second));
    }
    return program;
}

}  // namespace

Mesh program::devices_from(Index first, Index width) {
    std::vector<Index> devices;
    for (Index k = 0; k < width; ++k) devices.push_back(first + k);
    return Mesh({{"d", width}}, DeviceList(std::move(devices)));
}

Layout program::bytes_on_each(const Mesh& mesh, Index bytes) {
    return parse_layout(mesh, fmt::format("u8[{}@d]", saturating_multiply(bytes, device_count(mesh)))).value();
}

std::span<const Generator> generators() { return all_generators; }

Result<Program> generate(std::string_view text) {
    Scanner scanner(text);
    scanner.skip_space();
    const std::size_t begin = scanner.offset();
    std::size_t end = begin;
    while (end < text.size() && text[end] != ' ') ++end;
    const auto generator = std::ranges::find(all_generators, text.substr(begin, end - begin), &Generator::name);
    if (generator == all_generators.end()) {
        std::string names;
        for (const Generator& known : all_generators)
            names += fmt::format("{}{}", names.empty() ? "" : ", ", known.name);
        return scanner.error(Code::syntax, "no program has this name; there are " + names, begin);
    }
    scanner.move_to(end);
    RESHARD_TRY(const Parameters& given, read(scanner, *generator));
    Index tasks = 1;
    for (const char* const factor : {"stages", "microbatches", "chunks", "layers", "parts", "buckets", "windows"})
        if (std::ranges::find(generator->parameters, std::string_view(factor), &GeneratorParameter::name) !=
            generator->parameters.end())
            tasks = saturating_multiply(tasks, given[factor]);
    if (tasks > tasks_max) return fail(Code::usage, fmt::format("a program of more than {} tasks", tasks_max));
    if (generator->name == "zero3") return zero3(given);
    if (generator->name == "tensor_data") return tensor_data(given);
    if (generator->name == "refit") return refit(given);
    if (generator->name == "coupled") return coupled(given);
    return program::pipeline(generator->name, given);
}

}  // namespace reshard
