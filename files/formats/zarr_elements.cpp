#include "files/formats/zarr_elements.hpp"

#include <charconv>
#include <cstring>
#include <limits>

#include "files/formats/zarr_json.hpp"
#include "src/base/try.hpp"
#include "src/copy/element_type.hpp"
#include "src/tables/dtypes.hpp"

namespace reshard::files {

namespace {

template <class T>
std::string bytes_of(T value) {
    std::string bytes(sizeof value, '\0');
    std::memcpy(bytes.data(), &value, sizeof value);
    return bytes;
}

// Reads a float: a number, or NaN, Infinity or -Infinity in quotes.
std::optional<double> float_of(const Json& json) {
    if (json.is_number()) return json.get<double>();
    if (json == "NaN") return std::numeric_limits<double>::quiet_NaN();
    if (json == "Infinity") return std::numeric_limits<double>::infinity();
    if (json == "-Infinity") return -std::numeric_limits<double>::infinity();
    return std::nullopt;
}

template <class T>
std::optional<T> integer_of(const Json& json) {
    if (!json.is_number_integer()) return std::nullopt;
    if (json.is_number_unsigned()) {
        const auto value = json.get<std::uint64_t>();
        if (value > static_cast<std::uint64_t>(std::numeric_limits<T>::max())) return std::nullopt;
        return static_cast<T>(value);
    }
    const auto value = json.get<std::int64_t>();
    if (std::is_unsigned_v<T> || value < static_cast<std::int64_t>(std::numeric_limits<T>::min())) return std::nullopt;
    return static_cast<T>(value);
}

// The bytes of an element that JSON writes as 0x7fc00000.
std::optional<std::string> hexadecimal(DType dtype, const Json& json) {
    if (!json.is_string() || !json.get<std::string>().starts_with("0x")) return std::nullopt;
    const auto text = json.get<std::string>().substr(2);
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
    const bool whole = error == std::errc() && end == text.data() + text.size();
    if (!whole || std::ssize(text) != 2 * size_of(dtype)) return std::nullopt;
    return bytes_of(value).substr(0, static_cast<std::size_t>(size_of(dtype)));
}

}  // namespace

std::optional<std::string> fill_bytes(const FileElements& elements, const Json& json) {
    const DType dtype = elements.dtype;
    if (!elements.type.name.empty() && json == "NaT") return bytes_of(std::numeric_limits<std::int64_t>::min());
    if (tables::row(dtype).kind == tables::Kind::floating)
        if (auto bytes = hexadecimal(dtype, json)) return bytes;
    return with_element_type(dtype, [&]<class E>(E) -> std::optional<std::string> {
        using Number = typename E::Number;
        if constexpr (std::is_same_v<E, Boolean>) {
            if (json.is_boolean()) return bytes_of(E::of(json.get<bool>() ? 1 : 0));
        } else if constexpr (std::is_integral_v<Number>) {
            if (const auto value = integer_of<Number>(json)) return bytes_of(E::of(*value));
        } else if constexpr (has_parts<E>) {
            if (!json.is_array() || json.size() != 2) return std::nullopt;
            const auto real = float_of(json[0]);
            const auto imaginary = float_of(json[1]);
            if (real && imaginary) return bytes_of(E{static_cast<Number>(*real), static_cast<Number>(*imaginary)});
        } else {
            if (const auto value = float_of(json)) return bytes_of(E::of(static_cast<Number>(*value)));
        }
        return std::nullopt;
    });
}

Json zero_fill(DType dtype) {
    if (dtype == DType::boolean) return false;
    if (is_complex(dtype)) return {0.0, 0.0};
    return 0;
}

namespace {

constexpr std::string_view numpy = "numpy.";

}  // namespace

Result<FileElements> parse_zarr_type(const Json& json) {
    const std::string name = name_of(json);
    if (name == "numpy.datetime64" || name == "numpy.timedelta64") {
        const Json& configuration = member(json, "configuration");
        const Json& unit = member(configuration, "unit");
        const int scale = number_of(configuration, "scale_factor", 1);
        if (!unit.is_string()) return zarr_wrong(fmt::format("{} without a unit", name));
        return elements_of(fmt::format("<{}8[{}{}]", name == "numpy.datetime64" ? 'M' : 'm',
                                       scale == 1 ? "" : std::to_string(scale), unit.get<std::string>()));
    }
    const auto found = tables::find_dtype(&tables::DTypeRow::zarr, name);
    if (!found) return zarr_unknown(fmt::format("elements of type {} are not read", in_quotes(name)));
    return FileElements{*found, {}, false};
}

Json zarr_type(DType dtype, const FileType& type) {
    if (type.name.empty()) return tables::row(dtype).zarr.empty() ? Json() : Json(std::string(tables::row(dtype).zarr));
    const std::size_t bracket = type.name.find('[');
    if (bracket == std::string::npos || !is_time(type)) return {};
    std::string unit = type.name.substr(bracket + 1, type.name.size() - bracket - 2);
    int scale = 1;
    const auto [end, error] = std::from_chars(unit.data(), unit.data() + unit.size(), scale);
    unit = error == std::errc() ? std::string(static_cast<const char*>(end)) : unit;
    return {{"name", std::string(numpy) + type.name.substr(0, bracket)},
            {"configuration", {{"unit", unit.empty() ? "generic" : unit}, {"scale_factor", scale}}}};
}

}  // namespace reshard::files
