#include "support/jsonl.hpp"

#include <cctype>
#include <fstream>
#include <stdexcept>

namespace reshard::test {

namespace {

class Reader {
public:
    explicit Reader(const std::string& text) : text_(text) {}

    Json whole() {
        Json value = any();
        skip();
        if (at_ != text_.size()) stop("something after the end");
        return value;
    }

private:
    [[noreturn]] void stop(const std::string& why) const {
        throw std::runtime_error("JSON, byte " + std::to_string(at_) + ": " + why + ": " + text_);
    }
    void skip() {
        while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
    }
    bool take(char letter) {
        skip();
        if (at_ >= text_.size() || text_[at_] != letter) return false;
        ++at_;
        return true;
    }
    bool take_word(const char* word) {
        const std::string wanted(word);
        if (text_.compare(at_, wanted.size(), wanted) != 0) return false;
        at_ += wanted.size();
        return true;
    }

    std::string string() {
        if (!take('"')) stop("a string is wanted");
        std::string out;
        while (at_ < text_.size() && text_[at_] != '"') {
            char letter = text_[at_++];
            if (letter == '\\') {
                if (at_ >= text_.size()) stop("the text ends in an escape");
                letter = text_[at_++];
                if (letter == 'n') letter = '\n';
                if (letter == 't') letter = '\t';
                if (letter == 'u') {
                    at_ += 4;
                    letter = '?';
                }
            }
            out += letter;
        }
        if (!take('"')) stop("a string does not end");
        return out;
    }

    Json any() {
        skip();
        Json value;
        if (at_ >= text_.size()) stop("a value is wanted");
        if (take('{')) {
            value.kind = Json::Kind::object;
            if (take('}')) return value;
            do {
                const std::string key = string();
                if (!take(':')) stop("a colon is wanted");
                if (!value.members.emplace(key, any()).second) stop("a key twice");
            } while (take(','));
            if (!take('}')) stop("an object does not end");
        } else if (take('[')) {
            value.kind = Json::Kind::list;
            if (take(']')) return value;
            do value.list.push_back(any());
            while (take(','));
            if (!take(']')) stop("a list does not end");
        } else if (text_[at_] == '"') {
            value.kind = Json::Kind::text;
            value.text = string();
        } else if (take_word("true") || take_word("false")) {
            value.kind = Json::Kind::boolean;
            value.number = text_[at_ - 2] == 'u' ? 1 : 0;  // tr-u-e, fal-s-e
        } else if (!take_word("null")) {
            std::size_t used = 0;
            try {
                value.number = std::stod(text_.substr(at_), &used);
            } catch (const std::exception&) {
                stop("not a value");
            }
            at_ += used;
            value.kind = Json::Kind::number;
        }
        return value;
    }

    const std::string& text_;
    std::size_t at_ = 0;
};

}  // namespace

const Json& Json::operator[](const std::string& key) const {
    static const Json null;
    const auto member = members.find(key);
    return member == members.end() ? null : member->second;
}

Json parse_json(const std::string& text) { return Reader(text).whole(); }

std::vector<Json> read_jsonl(const std::string& path) {
    std::ifstream file(path);
    if (!file) throw std::runtime_error("cannot read " + path);
    std::vector<Json> rows;
    for (std::string line; std::getline(file, line);)
        if (!line.empty()) rows.push_back(parse_json(line));
    if (rows.empty()) throw std::runtime_error(path + " has no rows");
    return rows;
}

}  // namespace reshard::test
