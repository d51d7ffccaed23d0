// Puts through UCX. Its library is loaded when it is first used, so no program links it, and jobs without it work.
#include "live/transport/puts.hpp"

#ifdef RESHARD_HAS_UCX
#include <dlfcn.h>
#include <fmt/format.h>
#include <ucp/api/ucp.h>

#include <cstring>
#include <deque>
#include <filesystem>
#include <vector>

#include "src/base/try.hpp"

namespace reshard::live {
namespace {

#define RESHARD_UCX_CALLS(CALL)      \
    CALL(ucp_config_read)            \
    CALL(ucp_config_modify)          \
    CALL(ucp_config_release)         \
    CALL(ucp_init_version)           \
    CALL(ucp_cleanup)                \
    CALL(ucp_worker_create)          \
    CALL(ucp_worker_destroy)         \
    CALL(ucp_worker_get_efd)         \
    CALL(ucp_worker_arm)             \
    CALL(ucp_worker_progress)        \
    CALL(ucp_worker_get_address)     \
    CALL(ucp_worker_release_address) \
    CALL(ucp_mem_map)                \
    CALL(ucp_mem_unmap)              \
    CALL(ucp_rkey_pack)              \
    CALL(ucp_rkey_buffer_release)    \
    CALL(ucp_ep_create)              \
    CALL(ucp_ep_rkey_unpack)         \
    CALL(ucp_ep_flush_nbx)           \
    CALL(ucp_ep_close_nbx)           \
    CALL(ucp_rkey_destroy)           \
    CALL(ucp_put_nbx)                \
    CALL(ucp_request_check_status)   \
    CALL(ucp_request_free)           \
    CALL(ucs_status_string)

// The functions of UCX that are used, by their own names.
struct Ucx {
#define RESHARD_UCX_MEMBER(name) decltype(&::name) name = nullptr;
    RESHARD_UCX_CALLS(RESHARD_UCX_MEMBER)
    bool loaded = false;

    Ucx() {
        void* const library = dlopen("libucp.so.0", RTLD_NOW | RTLD_LOCAL);
        if (library == nullptr) return;
        loaded = true;
#define RESHARD_UCX_FIND(name)                                      \
    name = reinterpret_cast<decltype(name)>(dlsym(library, #name)); \
    loaded = loaded && name != nullptr;
        RESHARD_UCX_CALLS(RESHARD_UCX_FIND)
    }
};
#undef RESHARD_UCX_CALLS
#undef RESHARD_UCX_MEMBER
#undef RESHARD_UCX_FIND

const Ucx& ucx() {
    static const Ucx library;
    return library;
}

Result<void> check_ucx(ucs_status_t status, const char* what) {
    if (status == UCS_OK) return {};
    return fail(Code::backend, fmt::format("UCX cannot {}: {}", what, ucx().ucs_status_string(status)));
}

bool has_rdma() {
    std::error_code none;
    return std::filesystem::directory_iterator("/sys/class/infiniband", none) != std::filesystem::directory_iterator();
}

// Registered memory for as many chunks as are under way at once.
class Chunks {
public:
    explicit Chunks(ucp_context_h context) : context_(context), bytes_(chunk_bytes * landing_chunks) {}
    Chunks(const Chunks&) = delete;
    ~Chunks() {
        if (handle_ != nullptr) ucx().ucp_mem_unmap(context_, handle_);
    }
    Result<void> enter() {
        ucp_mem_map_params_t params{};
        params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
        params.address = bytes_.data();
        params.length = bytes_.size();
        return check_ucx(ucx().ucp_mem_map(context_, &params, &handle_), "register memory");
    }
    [[nodiscard]] char* at(Index number) { return bytes_.data() + number % landing_chunks * chunk_bytes; }
    [[nodiscard]] const char* at(Index number) const { return bytes_.data() + number % landing_chunks * chunk_bytes; }
    [[nodiscard]] ucp_mem_h handle() const { return handle_; }

private:
    ucp_context_h context_;
    std::vector<char> bytes_;
    ucp_mem_h handle_ = nullptr;
};

// The text of a landing begins with this. The worker's address and the remote key follow.
struct LandingHeader {
    std::uint64_t start = 0;
    std::uint64_t address_bytes = 0;
};

class UcxLanding : public Landing {
public:
    UcxLanding(ucp_context_h context, ucp_worker_h worker) : context_(context), worker_(worker), chunks_(context) {}
    Result<void> enter() { return chunks_.enter(); }

    [[nodiscard]] Result<std::string> text() const override {
        ucp_address_t* address = nullptr;
        void* key = nullptr;
        std::size_t address_bytes = 0;
        std::size_t key_bytes = 0;
        RESHARD_CHECK(check_ucx(ucx().ucp_worker_get_address(worker_, &address, &address_bytes), "say its address"));
        std::string all(reinterpret_cast<const char*>(address), address_bytes);
        ucx().ucp_worker_release_address(worker_, address);
        RESHARD_CHECK(check_ucx(ucx().ucp_rkey_pack(context_, chunks_.handle(), &key, &key_bytes), "make a key"));
        all.append(static_cast<const char*>(key), key_bytes);
        ucx().ucp_rkey_buffer_release(key);
        const LandingHeader header{reinterpret_cast<std::uint64_t>(chunks_.at(0)), address_bytes};
        return std::string(reinterpret_cast<const char*>(&header), sizeof header) + all;
    }
    [[nodiscard]] const std::byte* chunk(Index number) const override {
        return reinterpret_cast<const std::byte*>(chunks_.at(number));
    }

private:
    ucp_context_h context_;
    ucp_worker_h worker_;
    Chunks chunks_;
};

class UcxLane : public Lane {
public:
    UcxLane(ucp_context_h context, ucp_worker_h worker) : worker_(worker), chunks_(context) {}
    // The puts under way end before their memory goes. A forced close does not wait for the peer.
    ~UcxLane() override {
        if (key_ != nullptr) ucx().ucp_rkey_destroy(key_);
        if (peer_ != nullptr) {
            ucp_request_param_t params{};
            params.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
            params.flags = UCP_EP_CLOSE_FLAG_FORCE;
            void* const closing = ucx().ucp_ep_close_nbx(peer_, &params);
            while (!is_over(closing)) ucx().ucp_worker_progress(worker_);
            free(closing);
        }
        for (void* const one : flushes_) free(one);
    }

    Result<void> enter(const std::string& landing) {
        RESHARD_CHECK(chunks_.enter());
        LandingHeader header;
        if (landing.size() < sizeof header) return fail(Code::backend, "the other end speaks another protocol");
        std::memcpy(&header, landing.data(), sizeof header);
        if (header.address_bytes >= landing.size() - sizeof header)
            return fail(Code::backend, "the other end speaks another protocol");
        start_ = header.start;
        ucp_ep_params_t params{};
        params.field_mask =
            UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
        params.address = reinterpret_cast<const ucp_address_t*>(landing.data() + sizeof header);
        params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
        params.err_handler = {[](void* lane, ucp_ep_h, ucs_status_t) { static_cast<UcxLane*>(lane)->failed_ = true; },
                              this};
        RESHARD_CHECK(check_ucx(ucx().ucp_ep_create(worker_, &params, &peer_), "reach the subscriber"));
        return check_ucx(ucx().ucp_ep_rkey_unpack(peer_, landing.data() + sizeof header + header.address_bytes, &key_),
                         "read the subscriber's key");
    }

    [[nodiscard]] char* room() override {
        return failed_ || put_ - taken_ == landing_chunks ? nullptr : chunks_.at(put_);
    }
    // A flush ends when the bytes of all puts before it are in the subscriber's memory.
    void put(Index bytes) override {
        ucp_request_param_t params{};
        params.op_attr_mask = UCP_OP_ATTR_FIELD_MEMH;
        params.memh = chunks_.handle();
        const auto place = start_ + static_cast<std::uint64_t>(put_ % landing_chunks * chunk_bytes);
        void* const putting =
            ucx().ucp_put_nbx(peer_, chunks_.at(put_), static_cast<std::size_t>(bytes), place, key_, &params);
        failed_ = failed_ || UCS_PTR_IS_ERR(putting);
        free(putting);  // the flush tells of its end
        const ucp_request_param_t none{};
        flushes_.push_back(ucx().ucp_ep_flush_nbx(peer_, &none));
        ++put_;
    }
    [[nodiscard]] bool landed() override {
        if (failed_ || flushes_.empty() || !is_over(flushes_.front())) return false;
        void* const flush = flushes_.front();
        flushes_.pop_front();
        failed_ = UCS_PTR_IS_ERR(flush) || (flush != nullptr && ucx().ucp_request_check_status(flush) != UCS_OK);
        free(flush);
        if (!failed_) ++landed_;
        return !failed_;
    }
    void taken() override {
        if (taken_ < landed_) ++taken_;
    }
    [[nodiscard]] bool has_failed() const override { return failed_; }

private:
    static bool is_over(void* request) {
        return request == nullptr || UCS_PTR_IS_ERR(request) ||
               ucx().ucp_request_check_status(request) != UCS_INPROGRESS;
    }
    static void free(void* request) {
        if (request != nullptr && !UCS_PTR_IS_ERR(request)) ucx().ucp_request_free(request);
    }

    ucp_worker_h worker_;
    Chunks chunks_;
    ucp_ep_h peer_ = nullptr;
    ucp_rkey_h key_ = nullptr;
    std::uint64_t start_ = 0;    // the address of the landing
    Index put_ = 0;              // chunks so far
    Index landed_ = 0;           // chunks so far
    Index taken_ = 0;            // chunks so far
    std::deque<void*> flushes_;  // one for each chunk that was put and has not landed
    bool failed_ = false;
};

class UcxPuts : public Puts {
public:
    ~UcxPuts() override {
        if (worker_ != nullptr) ucx().ucp_worker_destroy(worker_);
        if (context_ != nullptr) ucx().ucp_cleanup(context_);
    }

    Result<void> enter(Devices devices) {
        ucp_config_t* config = nullptr;
        RESHARD_CHECK(check_ucx(ucx().ucp_config_read(nullptr, nullptr, &config), "read its configuration"));
        ucp_params_t params{};
        params.field_mask = UCP_PARAM_FIELD_FEATURES;
        params.features = UCP_FEATURE_RMA | UCP_FEATURE_WAKEUP;
        const ucs_status_t chosen = devices == Devices::rdma ? ucx().ucp_config_modify(config, "TLS", "ib") : UCS_OK;
        const ucs_status_t begun =
            chosen == UCS_OK ? ucx().ucp_init_version(UCP_API_MAJOR, UCP_API_MINOR, &params, config, &context_)
                             : chosen;
        ucx().ucp_config_release(config);
        RESHARD_CHECK(check_ucx(begun, "begin"));
        ucp_worker_params_t worker{};
        worker.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
        worker.thread_mode = UCS_THREAD_MODE_SERIALIZED;
        RESHARD_CHECK(check_ucx(ucx().ucp_worker_create(context_, &worker, &worker_), "open its devices"));
        return check_ucx(ucx().ucp_worker_get_efd(worker_, &number_), "wait for its devices");
    }

    [[nodiscard]] int number() const override { return number_; }
    [[nodiscard]] bool work() override {
        while (ucx().ucp_worker_progress(worker_) != 0) continue;
        return ucx().ucp_worker_arm(worker_) == UCS_OK;
    }
    [[nodiscard]] Result<std::unique_ptr<Landing>> landing() override {
        auto made = std::make_unique<UcxLanding>(context_, worker_);
        RESHARD_CHECK(made->enter());
        return made;
    }
    [[nodiscard]] Result<std::unique_ptr<Lane>> lane(const std::string& landing) override {
        auto made = std::make_unique<UcxLane>(context_, worker_);
        RESHARD_CHECK(made->enter(landing));
        return made;
    }

private:
    ucp_context_h context_ = nullptr;
    ucp_worker_h worker_ = nullptr;
    int number_ = -1;
};

}  // namespace

Result<std::unique_ptr<Puts>> open_ucx(Devices devices) {
    if (devices == Devices::none || (devices == Devices::rdma && !has_rdma()))
        return fail(Code::unsupported, "this machine has no RDMA");
    if (!ucx().loaded) return fail(Code::unsupported, "libucp.so.0 is not installed");
    auto made = std::make_unique<UcxPuts>();
    if (auto ready = made->enter(devices); !ready) return fail(Code::unsupported, ready.error().message);
    return made;
}

}  // namespace reshard::live
#else
namespace reshard::live {
Result<std::unique_ptr<Puts>> open_ucx(Devices /*devices*/) {
    return fail(Code::unsupported, "this build has no UCX; libucx-dev was not found");
}
}  // namespace reshard::live
#endif
