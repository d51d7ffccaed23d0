// A vector of at most N items that never allocates: the lists of a search are a handful long.
#pragma once

#include <array>
#include <cstddef>

namespace reshard {

template <class T, std::size_t N>
class InlineVector {
public:
    void push_back(const T& item) { items_[size_++] = item; }  ///< pre: size() < N
    void pop_back() { --size_; }
    void clear() { size_ = 0; }
    [[nodiscard]] std::size_t size() const { return size_; }
    [[nodiscard]] bool empty() const { return size_ == 0; }
    [[nodiscard]] bool full() const { return size_ == N; }
    [[nodiscard]] T& operator[](std::size_t at) { return items_[at]; }
    [[nodiscard]] const T& operator[](std::size_t at) const { return items_[at]; }
    [[nodiscard]] T& back() { return items_[size_ - 1]; }
    [[nodiscard]] const T& back() const { return items_[size_ - 1]; }
    [[nodiscard]] T* data() { return items_.data(); }
    [[nodiscard]] const T* data() const { return items_.data(); }
    [[nodiscard]] T* begin() { return items_.data(); }
    [[nodiscard]] T* end() { return items_.data() + size_; }
    [[nodiscard]] const T* begin() const { return items_.data(); }
    [[nodiscard]] const T* end() const { return items_.data() + size_; }

private:
    std::array<T, N> items_;
    std::size_t size_ = 0;
};

}  // namespace reshard
