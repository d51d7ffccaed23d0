#include "targets.hpp"

#include <array>
#include <cstdio>
#include <cstdlib>

#include "files/base/codecs.hpp"
#include "files/formats/folder.hpp"
#include "files/formats/npy.hpp"
#include "files/formats/zarr.hpp"
#include "reshard/files/program.hpp"
#include "reshard/model/model_rows.hpp"
#include "reshard/notations/hlo.hpp"
#include "reshard/notations/notation.hpp"
#include "reshard/planner/cost.hpp"
#include "reshard/program/hlo.hpp"
#include "reshard/synthesize.hpp"
#include "tool/request/problem_line.hpp"

namespace reshard::fuzz {
namespace {

// Enough for every path through a reader. A longer list of devices is slow and finds nothing new.
constexpr Index devices_max = 4096;

void require(bool held, const char* what) {
    if (held) return;
    std::fprintf(stderr, "%s\n", what);
    std::abort();
}

// Checks that an error has a place within its text.
template <class T>
bool accepted(const Result<T>& result) {
    if (result) return true;
    require(!result.error().message.empty(), "an error without a sentence");
    require(result.error().offset <= result.error().text.size(), "an error past the end of its text");
    static_cast<void>(describe(result.error()));
    return false;
}

// Splits the bytes into two texts: the first line, and the rest.
std::pair<std::string_view, std::string_view> halves(std::string_view bytes) {
    const std::size_t end = std::min(bytes.find('\n'), bytes.size());
    return {bytes.substr(0, end), bytes.substr(std::min(end + 1, bytes.size()))};
}

Mesh small_mesh(std::string_view text) {
    const auto mesh = parse_mesh(text);
    return accepted(mesh) && device_count(*mesh) <= devices_max ? *mesh : Mesh{{"x", 2}, {"y", 3}, {"z", 4}};
}

void look_at(const Layout& layout) {
    require(validate(layout).has_value(), "a reader made a layout that is not valid");
    if (device_count(layout) > devices_max) return;
    for (const Notation notation : all_notations) {
        const auto text = format(notation, layout);
        if (!accepted(text)) continue;
        const auto back = parse_layout(notation, {layout.mesh, layout.dtype, shape(layout)}, *text);
        require(back.has_value(), "what was written is not read");
        for (Index device = 0; device < device_count(layout.mesh); ++device) {
            const Index at = device_at(layout.mesh, device);
            require(tile(*back, at) == tile(layout, at), "what was written is read as another layout");
        }
    }
}

void mesh(std::string_view bytes) {
    for (const Notation notation : all_notations) {
        const auto read = parse_mesh(notation, bytes);
        if (accepted(read)) require(parse_mesh(format(*read)) == *read, "a mesh changes when it is written");
    }
}

void layout(std::string_view bytes) {
    const auto [first, rest] = halves(bytes);
    const auto read = parse_layout(small_mesh(first), rest);
    if (accepted(read)) look_at(*read);
}

template <Notation notation>
void foreign(std::string_view bytes) {
    const auto [first, rest] = halves(bytes);
    auto setting = parse_array(first).value_or(NotationContext{std::nullopt, DType::f32, {8, 12}});
    // Half of the cases have no mesh, and the text must have its own.
    if (rest.size() % 2 == 0) setting.mesh = Mesh{{"x", 2}, {"y", 3}, {"z", 4}};
    const auto read = parse_layout(notation, setting, rest);
    if (accepted(read)) look_at(*read);
    if (notation != Notation::hlo) return;
    const auto sharding = parse_hlo(rest);
    if (accepted(sharding)) require(parse_hlo(format(*sharding)).has_value(), "an HloSharding is not read again");
}

void plan(std::string_view bytes) {
    const auto read = parse_plan(bytes);
    if (!accepted(read)) return;
    require(parse_plan(format(*read)) == *read, "a plan changes when it is written");
    if (device_count(read->source) <= devices_max) static_cast<void>(accepted(check(*read)));
}

void machine(std::string_view bytes) {
    const auto read = parse_machine(bytes);
    if (accepted(read)) require(parse_machine(format(*read)) == *read, "a machine changes when it is written");
    static_cast<void>(accepted(make_machine(bytes)));
    static_cast<void>(accepted(parse_bytes(bytes)));
}

void problem(std::string_view bytes) {
    const auto line = cli::parse_problem_line(bytes);
    static_cast<void>(line.id.dump(-1, ' ', false, cli::Json::error_handler_t::replace));
    if (accepted(line.question)) static_cast<void>(accepted(cli::understand(*line.question)));
}

void npy(std::string_view bytes) {
    const auto header = files::parse_npy(bytes, static_cast<Index>(bytes.size()));
    if (!accepted(header)) return;
    const auto element = files::parse_descr(header->descr);
    if (accepted(element)) static_cast<void>(accepted(files::dtype_of(*element, std::nullopt)));
}

// A whole file. Accepted tensors lie within the file, with no holes, and their description survives write and read.
void safetensors(std::string_view bytes) {
    const auto file_bytes = static_cast<Index>(bytes.size());
    const auto length = files::safetensors_header_bytes(bytes.substr(0, 8), file_bytes);
    if (!accepted(length)) return;
    const auto read = files::parse_safetensors(bytes.substr(8, static_cast<std::size_t>(*length)), file_bytes);
    if (!accepted(read)) return;
    Index end = 8 + *length;
    for (const files::SafetensorsEntry& entry : read->tensors) {
        require(entry.begin == end && entry.end >= end && entry.end <= file_bytes, "a tensor outside of its file");
        require(files::dense_bytes(entry.dtype, entry.shape) == entry.end - entry.begin, "a tensor of another size");
        end = entry.end;
    }
    require(end == file_bytes, "bytes that no tensor has");
    static_cast<void>(accepted(files::saved_offsets(*read)));
    auto tensors = read->tensors;
    const auto head = files::write_safetensors(tensors, read->metadata);
    if (!accepted(head)) return;
    const Index all = static_cast<Index>(head->size()) + file_bytes - 8 - *length;
    const auto back = files::parse_safetensors(std::string_view(*head).substr(8), all);
    require(back.has_value() && back->tensors.size() == tensors.size(), "what was written is not read");
    require(back->metadata == read->metadata, "metadata change when they are written");
}

// Accepted metadata is written and read again as the same array, with the default keys.
void zarr(std::string_view bytes) {
    auto read = files::parse_zarr(bytes);
    if (!accepted(read)) return;
    const auto back = files::parse_zarr(files::write_zarr(*read));
    require(back.has_value(), "what was written is not read");
    require(back->shape == read->shape && back->files == read->files && back->chunks == read->chunks &&
                back->dtype == read->dtype && back->fill == read->fill && back->sharded == read->sharded &&
                back->codecs == read->codecs && back->type == read->type,
            "an array changes when it is written");
    static_cast<void>(accepted(files::grid_of(read->shape, read->chunks)));
}

void zarr2(std::string_view bytes) {
    auto read = files::parse_zarr2(bytes, "");
    if (!accepted(read)) return;
    const auto back = files::parse_zarr2(files::write_zarr2(*read), files::write_attributes2(*read));
    require(back.has_value(), "what was written is not read");
    require(back->shape == read->shape && back->chunks == read->chunks && back->dtype == read->dtype &&
                back->fill == read->fill && back->codecs == read->codecs && back->type == read->type,
            "an array changes when it is written");
}

// A line with codecs, then an encoded chunk. It decodes to the wanted bytes or not, and writes nothing behind them.
void codecs(std::string_view bytes) {
    const auto [text, encoded] = halves(bytes);
    const auto known = files::parse_codecs(text);
    if (!accepted(known)) return;
    require(files::parse_codecs(files::format(*known)) == *known, "codecs change when they are written");
    auto coder = files::Coder::make(*known, 4);
    if (!accepted(coder)) return;
    for (const std::size_t size : {0, 100, 4096}) {
        std::vector<std::byte> decoded(size + 16, std::byte{42});
        static_cast<void>(accepted(coder->decode(std::as_bytes(std::span(encoded)), std::span(decoded).first(size))));
        for (std::size_t i = size; i < decoded.size(); ++i)
            require(decoded[i] == std::byte{42}, "bytes behind a chunk are written");
    }
}

void index(std::string_view bytes) {
    const auto read = files::parse_index(bytes);
    if (!accepted(read)) return;
    for (const auto& [name, file] : *read) require(file.find('/') == std::string::npos, "a path out of the folder");
}

// An accepted program survives being written and read.
void same_again(const Program& program) {
    const std::string text = files::format(program);
    const auto back = files::parse_program(text);
    require(back.has_value(), "a program is not read again");
    require(files::format(*back) == text, "a program changes when it is written");
}

void program(std::string_view bytes) {
    const auto read = files::parse_program(bytes);
    if (!accepted(read)) return;
    if (accepted(validate(*read))) same_again(*read);
}

// The name of a computation, or an empty line, then scheduled HLO. A machine says the times of small groups.
void module(std::string_view bytes) {
    constexpr Index bytes_max = Index{1} << 40;
    const HloTimes on_machine = hlo_times_on(laptop());
    const HloTimes times = [&](const HloInstruction& one) -> Result<Index> {
        const bool is_small = one.devices.size() <= 16 && std::max(one.bytes, one.read_bytes) < bytes_max;
        return is_small ? on_machine(one) : picoseconds_of(one, 1.0);
    };
    const auto [computation, text] = halves(bytes);
    const auto read = program_of_hlo(text, times, computation);
    if (!accepted(read)) return;
    require(validate(read->program).has_value(), "HLO made a program that is not valid");
    require(read->xla_picoseconds >= 0 && read->hidden + read->blocking <= std::ssize(read->program.tasks),
            "XLA's order has more collectives than tasks");
    same_again(read->program);
}

// Equal layers are understood once, with the rows of all tensors.
void rules_by_layer(std::string_view list, std::string_view rules, const CheckpointMapping& mapping,
                    const RowSchedule& schedule) {
    const auto model = ModelRows::make(rules, list);
    require(model.has_value(), "rules fail for layers only");
    require(model->array_count() == mapping.ends.size(), "layers have other moves");
    for (std::size_t i = 0; i < mapping.ends.size(); ++i)
        require(model->names(i) == std::pair(mapping.sources[mapping.ends[i].source].name,
                                             mapping.targets[mapping.ends[i].target].name),
                "a move of a layer has other names");
    for (Index rank = 0; rank < std::min<Index>(schedule.rank_count(), 8); ++rank)
        require(model->rows(rank) == schedule.rows(rank), "a layer has other rows");
}

// The list, an empty line, the rules. The resulting moves make a schedule, and the parts of a tensor make up the
// tensor.
void rules(std::string_view bytes) {
    const std::size_t end = std::min(bytes.find("\n\n"), bytes.size());
    const auto tensors = parse_tensors(bytes.substr(0, end));
    if (!accepted(tensors)) return;
    const auto model = apply_rules(bytes.substr(end), *tensors);
    if (!accepted(model)) return;
    require(model->moves.size() == model->ends.size(), "a move without its names");
    std::vector<Index> elements(model->targets.size(), 0);
    for (std::size_t i = 0; i < model->moves.size(); ++i) {
        const auto array = layout_of(model->moves[i].target);
        require(array.has_value(), "a part is not within its tensor");
        Index part = 1;
        for (const Dim& dim : array->dims) part *= dim.extent;
        elements[model->ends[i].target] += part;
    }
    for (std::size_t i = 0; i < model->targets.size(); ++i) {
        const Layout& whole = *model->targets[i].layout;
        Index all = 1;
        for (const Dim& dim : whole.dims) all *= dim.extent;
        require(validate(whole).has_value(), "rules made a layout that is not valid");
        require(model->targets[i].padded ? elements[i] < all : elements[i] == all,
                "the parts of a tensor do not make it up");
        if (device_count(whole) > devices_max) return;
    }
    for (const ShardedTensor& tensor : model->sources)
        if (device_count(*tensor.layout) > devices_max) return;
    const auto schedule = RowSchedule::make(model->moves);
    require(schedule.has_value(), "moves that have no rows");
    if (tensors->size() <= 10'000) rules_by_layer(bytes.substr(0, end), bytes.substr(end), *model, *schedule);
}

constexpr std::array<Target, 18> all = {{{"mesh", mesh},
                                         {"layout", layout},
                                         {"spec", foreign<Notation::spec>},
                                         {"sdy", foreign<Notation::sdy>},
                                         {"hlo", foreign<Notation::hlo>},
                                         {"dtensor", foreign<Notation::dtensor>},
                                         {"plan", plan},
                                         {"machine", machine},
                                         {"problem", problem},
                                         {"npy", npy},
                                         {"safetensors", safetensors},
                                         {"index", index},
                                         {"zarr", zarr},
                                         {"zarr2", zarr2},
                                         {"codecs", codecs},
                                         {"rules", rules},
                                         {"program", program},
                                         {"module", module}}};

}  // namespace

std::span<const Target> targets() { return all; }

}  // namespace reshard::fuzz
