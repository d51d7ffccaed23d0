#include "files/formats/npy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <set>

#include "files/formats/other_formats.hpp"
#include "files/formats/safetensors.hpp"
#include "src/base/printable.hpp"
#include "src/base/try.hpp"
#include "src/tables/dtypes.hpp"
#include "src/text/scanner.hpp"

namespace reshard::files {
namespace {

constexpr std::string_view magic("\x93NUMPY", 6);

// Reads the header: a Python dictionary literal of three known keys, and no other Python.
class Dictionary {
public:
    Dictionary(std::string_view text, NpyHeader& header) : scanner_(text, notation::Spaces::lines), header_(header) {}

    Result<void> read() {
        if (!scanner_.take('{')) return wrong("a dictionary");
        while (!scanner_.take('}')) {
            RESHARD_CHECK(read_entry());
            if (scanner_.take(',')) continue;
            if (!scanner_.take('}')) return wrong("a comma or the end of the dictionary");
            break;
        }
        if (!scanner_.at_end()) return wrong("nothing after the dictionary");
        for (const std::string_view key : keys)
            if (!seen_.contains(key)) return fail(Code::io, fmt::format("the npy header has no '{}'", key));
        return {};
    }

private:
    static constexpr std::array<std::string_view, 3> keys = {"descr", "fortran_order", "shape"};

    Result<void> read_entry() {
        const auto key = scanner_.quoted();
        if (!key) return wrong("a key in quotes");
        if (!scanner_.take(':')) return wrong("a colon");
        if (std::ranges::find(keys, *key) == keys.end())
            return fail(Code::io, fmt::format("the npy header has an unknown key {}", in_quotes(*key)));
        if (!seen_.insert(*key).second) return fail(Code::io, fmt::format("the npy header has '{}' twice", *key));
        if (*key == "descr") return read_descr();
        return *key == "shape" ? read_shape() : read_order();
    }

    Result<void> read_descr() {
        if (scanner_.sees('[')) return fail(Code::unsupported, "the npy file holds records, not one number an element");
        const auto descr = scanner_.quoted();
        if (!descr) return wrong("a descr in quotes");
        header_.descr = *descr;
        return {};
    }

    Result<void> read_order() {
        header_.fortran_order = scanner_.take_word("True");
        return header_.fortran_order || scanner_.take_word("False") ? Result<void>() : wrong("True or False");
    }

    Result<void> read_shape() {
        if (!scanner_.take('(')) return wrong("a tuple");
        while (!scanner_.take(')')) {
            const bool negative = scanner_.take('-');
            const auto extent = scanner_.integer("an extent");
            if (!extent && extent.error().code == Code::overflow)
                return fail(Code::overflow, "the npy header has an extent that leaves 64 bits");
            if (!extent) return wrong("an extent");
            if (negative && *extent > 0)
                return fail(Code::io, fmt::format("the npy header has a negative extent -{}", *extent));
            if (scanner_.text().substr(scanner_.offset()).starts_with('L')) scanner_.take('L');  // a long of Python 2
            if (std::ssize(header_.shape) == dims_max)
                return fail(Code::unsupported,
                            fmt::format("the npy header has more than {} dimensions, and so many are read", dims_max));
            header_.shape.push_back(*extent);
            if (scanner_.take(',')) continue;
            if (header_.shape.size() < 2) return wrong("a tuple; one extent is written (n,)");
            if (!scanner_.take(')')) return wrong("a comma or the end of the shape");
            break;
        }
        return {};
    }

    [[nodiscard]] Result<void> wrong(const char* wanted) const {
        return scanner_.error(Code::io, fmt::format("the npy header is not what numpy writes: expected {}", wanted));
    }

    notation::Scanner scanner_;
    NpyHeader& header_;
    std::set<std::string_view> seen_;
};

std::size_t little_endian(std::string_view bytes) {
    std::size_t value = 0;
    for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
    return value;
}

// Fails if the header and the file disagree about the size. Every offset would be wrong.
Result<void> adds_up(const NpyHeader& header, Index file_bytes) {
    RESHARD_TRY(const auto& element, parse_descr(header.descr));
    std::optional<Index> bytes = element.bytes;
    bool empty = false;
    for (const Index extent : header.shape) empty = empty || extent == 0;
    if (empty) bytes = 0;
    for (const Index extent : header.shape) {
        if (!empty && bytes) bytes = checked_multiply(*bytes, extent);
    }
    if (bytes) bytes = checked_add(*bytes, header.data_offset);
    if (!bytes) return fail(Code::overflow, "the npy header describes more bytes than 64 bits can count");
    if (*bytes == file_bytes) return {};
    return fail(Code::io,
                fmt::format("the npy header describes a file of {} bytes, the file has {}", *bytes, file_bytes));
}

}  // namespace

Result<NpyHeader> parse_npy(std::string_view start, Index file_bytes) {
    if (start.size() < 10 || start.substr(0, 6) != magic) {
        const auto other = start.starts_with(magic) ? std::nullopt : other_format(start);
        return fail(Code::io, other ? "not an npy file but " + *other : "not an npy file (wrong first bytes)");
    }
    const int major = static_cast<unsigned char>(start[6]);
    const int minor = static_cast<unsigned char>(start[7]);
    if (major < 1 || major > 3 || minor != 0) {
        return fail(Code::unsupported,
                    fmt::format("npy version {}.{} is not known; 1.0, 2.0 and 3.0 are", major, minor));
    }
    const std::size_t length_bytes = major == 1 ? 2 : 4;
    const std::size_t begin = 8 + length_bytes;
    if (start.size() < begin) return fail(Code::io, "the npy file ends inside its header");
    const std::size_t length = little_endian(start.substr(8, length_bytes));
    if (length > start.size() - begin) {
        const bool cut = static_cast<Index>(length) > file_bytes - static_cast<Index>(begin);
        if (cut) return fail(Code::io, "the npy file ends inside its header");
        return fail(Code::unsupported, "the npy header is longer than 1 MiB");
    }
    NpyHeader header;
    header.data_offset = static_cast<Index>(begin + length);
    RESHARD_CHECK(Dictionary(start.substr(begin, length), header).read());
    RESHARD_CHECK(adds_up(header, file_bytes));
    return header;
}

namespace {

// True for [ns] and [25s]: a unit of numpy's times in brackets.
bool is_unit(std::string_view text) {
    if (text.size() < 3 || text.size() > 16 || text.front() != '[' || text.back() != ']') return false;
    return std::ranges::all_of(text.substr(1, text.size() - 2), [](char one) {
        return (one >= '0' && one <= '9') || (one >= 'a' && one <= 'z') || (one >= 'A' && one <= 'Z');
    });
}

}  // namespace

Result<Element> parse_descr(std::string_view descr) {
    const auto unknown = [&] {
        return fail(Code::unsupported, fmt::format("npy elements of type {} are not supported", in_quotes(descr)));
    };
    if (descr.size() < 3) return unknown();
    Element element;
    element.kind = descr[1];
    element.big_endian = descr[0] == '>';
    std::string_view digits = descr.substr(2);
    const bool time = (element.kind == 'M' || element.kind == 'm') && descr[0] != '|';
    if (time) {
        const std::size_t unit = descr.find('[');
        if (unit != std::string_view::npos && !is_unit(descr.substr(unit))) return unknown();
        digits = digits.substr(0, std::min(unit, descr.size()) - 2);
        if (digits != "8") return unknown();
    }
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), element.bytes);
    if (error != std::errc() || end != digits.data() + digits.size()) return unknown();
    const std::string_view kind = descr.substr(1);
    if (!time && kind != "V1" && kind != "V2" && !tables::find_dtype(&tables::DTypeRow::numpy, kind)) return unknown();
    // '|' says that byte order has no meaning, which is true of single bytes and of raw ones only.
    const bool orderless = element.bytes == 1 || element.kind == 'V';
    const bool order_known = descr[0] == '<' || descr[0] == '>' || descr[0] == '=' || (descr[0] == '|' && orderless);
    if (!order_known) return unknown();
    return element;
}

Result<DType> dtype_of(const Element& element, std::optional<DType> as) {
    const std::string had = fmt::format("{}{}", element.kind, element.bytes);
    if (as) {
        if (element.kind != 'V' && element.kind != 'u') {
            return fail(Code::mismatch, fmt::format("--dtype is for raw elements (V or u), the file has {}", had));
        }
        if (size_of(*as) == element.bytes) return *as;
        return fail(Code::mismatch, fmt::format("--dtype {} has {} bytes, the file's elements have {}", name(*as),
                                                size_of(*as), element.bytes));
    }
    if (const auto found = tables::find_dtype(&tables::DTypeRow::numpy, had)) return *found;
    if (element.kind == 'M' || element.kind == 'm') return fail(Code::unsupported, "the file's elements are times");
    return fail(Code::unsupported,
                fmt::format("the file's elements are raw ({}): say what they are with --dtype", had));
}

Result<FileElements> elements_of(std::string_view descr) {
    RESHARD_TRY(const auto& element, parse_descr(descr));
    const bool swapped = element.big_endian && element.bytes > 1;
    if (element.kind == 'V') return fail(Code::unsupported, "its elements are raw, of no known type");
    if (element.kind == 'M' || element.kind == 'm') {
        const char* const what = element.kind == 'M' ? "datetime64" : "timedelta64";
        return FileElements{DType::i64, {fmt::format("{}{}", what, descr.substr(3)), 64}, swapped};
    }
    RESHARD_TRY(const auto& dtype, dtype_of(element, std::nullopt));
    return FileElements{dtype, {}, swapped};
}

bool is_time(const FileType& type) {
    return type.name.starts_with("datetime64") || type.name.starts_with("timedelta64");
}

std::string descr_of(DType dtype, const FileType& type) {
    constexpr std::size_t before_unit = sizeof("timedelta64") - 1;
    if (type.name.starts_with("datetime64")) return "<M8" + type.name.substr(before_unit - 1);
    if (type.name.starts_with("timedelta64")) return "<m8" + type.name.substr(before_unit);
    if (!type.name.empty()) return fmt::format("|V{}", size_of(dtype));
    const tables::DTypeRow& row = tables::row(dtype);
    return (row.bytes == 1 ? "|" : "<") + (row.numpy.empty() ? fmt::format("V{}", row.bytes) : std::string(row.numpy));
}

std::string npy_header(const std::string& descr, bool fortran_order, const std::vector<Index>& shape) {
    std::string tuple;
    for (const Index extent : shape) tuple += fmt::format("{}{}", extent, shape.size() == 1 ? "," : ", ");
    if (shape.size() > 1) tuple.resize(tuple.size() - 2);
    const std::string quoted = descr.starts_with('[') ? descr : "'" + descr + "'";
    std::string text = fmt::format("{{'descr': {}, 'fortran_order': {}, 'shape': ({}), }}", quoted,
                                   fortran_order ? "True" : "False", tuple);
    constexpr std::size_t before = 10;
    const std::size_t whole = (before + text.size() + 1 + 63) / 64 * 64;
    text.append(whole - before - text.size() - 1, ' ');
    text += '\n';
    std::string header(magic);
    header += {'\x01', '\x00', static_cast<char>(text.size() & 0xff), static_cast<char>(text.size() >> 8)};
    return header + text;
}

}  // namespace reshard::files
