#include "files/formats/json_text.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "src/base/try.hpp"

namespace reshard::files {
namespace {

// Estimated memory of a value in a list that grows, of a list or object by itself, and of a member of an object with
// its name in the set of names.
constexpr std::size_t value_bytes = 2 * sizeof(Json);
constexpr std::size_t begun_bytes = 64;

constexpr std::size_t few = 16;

const std::string& first_of(const Json::object_t::value_type& member) { return member.first; }
constexpr std::size_t member_bytes = 160;

// Makes values from events and checks depth and memory. A value that is parsed as a whole is as deep and as large as
// its text wants.
class MemberReader : public nlohmann::json_sax<Json> {
public:
    // `keeps`: what was visited stays in memory.
    MemberReader(std::string_view what, std::string_view within, bool keeps, const VisitMember& visit)
        : what_(what), within_(within), keeps_(keeps), visit_(visit) {}

    bool null() override { return add(nullptr); }
    bool boolean(bool given) override { return add(given); }
    bool number_integer(number_integer_t given) override { return add(given); }
    bool number_unsigned(number_unsigned_t given) override { return add(given); }
    bool number_float(number_float_t given, const string_t&) override { return add(given); }
    bool string(string_t& given) override {
        const std::size_t bytes = given.size();
        return add(std::move(given), bytes);
    }
    bool binary(binary_t&) override { return refuse("holds binary values, which JSON has not"); }
    bool start_object(std::size_t) override {
        Json made = Json::object();
        made.get_ref<Json::object_t&>().reserve(4);  // most are tensors
        return begin(std::move(made));
    }
    bool start_array(std::size_t) override { return begin(Json::array()); }
    bool end_object() override { return end(); }
    bool end_array() override { return end(); }

    bool key(string_t& name) override {
        if (!take(name.size() + member_bytes)) return false;
        if (known(name)) return refuse(fmt::format("has {} twice", in_quotes(name)));
        keys_.back() = std::move(name);
        return true;
    }

    bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& thrown) override {
        return refuse("is no JSON object: " + shortened(sentence_of(thrown)));
    }

    std::optional<Error> error;

private:
    [[nodiscard]] std::size_t depth() const { return names_.size(); }
    // True between the members of a visited object: the outermost one, or the object named `within`.
    [[nodiscard]] bool visits() const { return open_.empty(); }

    // Returns true if the open object has the name, and else remembers it. Searches a short object member by member.
    bool known(const std::string& name) {
        std::set<std::string>& names = names_.back();
        if (!visits()) {
            const auto& members = open_.back()->get_ref<const Json::object_t&>();
            if (members.size() < few) return std::ranges::find(members, name, first_of) != members.end();
            if (names.empty())
                for (const auto& member : members) names.insert(member.first);
        }
        const std::size_t before = names.size();
        names.emplace_hint(names.end(), name);  // names are sorted in most files
        return names.size() == before;
    }

    bool refuse(std::string_view why) {
        if (!error) error = Error{Code::io, fmt::format("{} {}", what_, why)};
        return false;
    }

    bool take(std::size_t bytes) {
        held_ += bytes;
        if (held_ <= json_bytes_max) return true;
        return refuse(
            fmt::format("takes more than {} MiB when it is read, and that is the most", json_bytes_max >> 20U));
    }

    bool begin(Json made) {
        if (depth() == json_depth_max)
            return refuse(fmt::format("has lists and objects more than {} deep within each other", json_depth_max));
        const bool streamed = made.is_object() && (depth() == 0 || (depth() == 1 && keys_[0] == within_));
        if (depth() == 0 && !streamed) return refuse("is no JSON object but a list");
        if (!streamed) {
            if (visits()) before_ = held_;
            if (!take(begun_bytes)) return false;
            Json* const place = put(std::move(made));
            if (place == nullptr) return false;
            open_.push_back(place);
        }
        names_.emplace_back();
        keys_.emplace_back();
        return true;
    }

    bool end() {
        names_.pop_back();
        keys_.pop_back();
        if (depth() == 0) return true;
        if (visits()) {  // `within` ends
            member_ = Json::object();
            return deliver("");
        }
        open_.pop_back();
        return !visits() || deliver(depth() == 1 ? "" : within_);
    }

    bool add(Json made, std::size_t bytes = 0) {
        if (depth() == 0) return refuse("is no JSON object but a single value");
        if (visits()) before_ = held_;
        if (!take(bytes) || put(std::move(made)) == nullptr) return false;
        return !visits() || deliver(depth() == 1 ? "" : within_);
    }

    // Returns the place of a value in the open list or object, or of the visited member. Returns null if it is too
    // large.
    Json* put(Json made) {
        if (!take(value_bytes)) return nullptr;
        if (visits()) return &(member_ = std::move(made));
        Json& into = *open_.back();
        if (into.is_array()) return &into.get_ref<Json::array_t&>().emplace_back(std::move(made));
        append(into, keys_.back(), std::move(made));
        return &into.get_ref<Json::object_t&>().back().second;
    }

    bool deliver(std::string_view within) {
        const auto done = visit_({within, keys_.back(), member_});
        if (!done && !error) error = done.error();
        member_ = nullptr;
        if (!keeps_) held_ = before_;
        return done.has_value();
    }

    std::string_view what_;
    std::string_view within_;
    bool keeps_;
    const VisitMember& visit_;
    std::vector<std::set<std::string>> names_;  // of each list and object that is open
    std::vector<std::string> keys_;             // the last of each
    std::vector<Json*> open_;                   // within the member, from the outside in
    Json member_;
    std::size_t held_ = 0;
    std::size_t before_ = 0;
};

Result<void> read_all(std::string_view text, std::string_view what, std::string_view within, bool keeps,
                      const VisitMember& visit) {
    if (const auto hidden = hidden_byte(text))
        return fail(Code::io, fmt::format("{} is no JSON object: at byte {} is {}", what, hidden->place, hidden->what));
    MemberReader reader(what, within, keeps, visit);
    if (Json::sax_parse(text.begin(), text.end(), &reader) && !reader.error) return {};
    return tl::unexpected(reader.error.value_or(Error{Code::io, fmt::format("{} is no JSON object", what)}));
}

}  // namespace

Result<void> read_members(std::string_view text, std::string_view what, std::string_view within,
                          const VisitMember& visit) {
    return read_all(text, what, within, false, visit);
}

Result<Json> parse_object(std::string_view text, std::string_view what) {
    Json json = Json::object();
    RESHARD_CHECK(read_all(text, what, "", true, [&](const JsonMember& member) -> Result<void> {
        append(json, member.name, std::move(member.value));
        return {};
    }));
    return json;
}

std::optional<HiddenByte> hidden_byte(std::string_view text) {
    if (text.starts_with("\xef\xbb\xbf")) return HiddenByte{1, "a byte order mark"};
    const std::size_t nul = text.find('\0');
    return nul == std::string_view::npos ? std::nullopt : std::optional(HiddenByte{nul + 1, "a NUL"});
}

std::string sentence_of(const nlohmann::detail::exception& thrown) {
    const std::string_view text = thrown.what();  // [json.exception.parse_error.101] parse error at ...
    const std::size_t end = text.find("] ");
    return std::string(end == std::string_view::npos ? text : text.substr(end + 2));
}

void append(Json& object, std::string name, Json value) {
    object.get_ref<Json::object_t&>().emplace_back(std::move(name), std::move(value));
}

std::optional<std::int64_t> whole_number(const Json& json) {
    if (!json.is_number_unsigned()) return std::nullopt;
    const auto value = json.get<std::uint64_t>();
    if (value > static_cast<std::uint64_t>(INT64_MAX)) return std::nullopt;
    return static_cast<std::int64_t>(value);
}

std::optional<std::vector<std::int64_t>> whole_numbers(const Json& json) {
    if (!json.is_array()) return std::nullopt;
    std::vector<std::int64_t> numbers;
    for (const Json& one : json) {
        const auto number = whole_number(one);
        if (!number) return std::nullopt;
        numbers.push_back(*number);
    }
    return numbers;
}

bool is_plain_name(std::string_view name) {
    if (name.empty() || name == "." || name == ".." || name.size() > 255) return false;
    for (const char byte : name)
        if (byte == '/' || static_cast<unsigned char>(byte) < 0x20 || byte == 0x7f) return false;
    return true;
}

}  // namespace reshard::files
