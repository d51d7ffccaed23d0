// Processes that a test forks. Each returns its findings as text, which is empty if all is well.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <string>

namespace reshard::test {

/// Runs the body in a separate process. The body may wait once until end() is called.
class Child {
public:
    using Body = std::function<std::string(const std::function<void()>& wait)>;

    explicit Child(const Body& body) {
        if (pipe(up_.data()) != 0 || pipe(down_.data()) != 0) return;
        process_ = fork();
        if (process_ != 0) {
            close(up_[1]);
            close(down_[0]);
            return;
        }
        close(up_[0]);
        close(down_[1]);
        const std::string text = body([&] {
            say("r");
            char go = 0;
            static_cast<void>(read(down_[0], &go, 1));
        });
        say(text.empty() ? "." : text);
        _exit(0);
    }
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;
    ~Child() {
        if (process_ > 0) end();
    }
    void reached() {  ///< returns when the child waits
        char word = 0;
        static_cast<void>(read(up_[0], &word, 1));
    }
    std::string end() {
        close(down_[1]);
        std::string text;
        std::array<char, 256> some{};
        for (ssize_t got = 0; (got = read(up_[0], some.data(), some.size())) > 0;)
            text.append(some.data(), static_cast<std::size_t>(got));
        close(up_[0]);
        int status = 0;
        waitpid(process_, &status, 0);
        process_ = -1;
        if (!WIFEXITED(status)) return "killed by signal " + std::to_string(WTERMSIG(status));
        if (text.empty()) return "ended without a word";
        return text == "." ? std::string() : text;
    }

private:
    void say(const std::string& text) const { static_cast<void>(write(up_[1], text.data(), text.size())); }
    std::array<int, 2> up_ = {-1, -1};
    std::array<int, 2> down_ = {-1, -1};
    pid_t process_ = -1;
};

inline std::string in_child(const std::function<std::string()>& body) {
    return Child([&](const std::function<void()>&) { return body(); }).end();
}

}  // namespace reshard::test
