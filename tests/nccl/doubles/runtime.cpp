// CUDA's calls on streams, events and graphs.
#include <cstdlib>

#include "stream.hpp"

using namespace gpu_double;

namespace {

Event& event_of(cudaEvent_t handle) { return *reinterpret_cast<Event*>(handle); }

// A wait for a captured event joins streams of one capture. Nothing runs.
cudaError_t join_capture(Stream& waiting, Event& event) {
    if (!waiting.capture) waiting.capture = event.capture;
    if (waiting.capture != event.capture) return failed(cudaErrorStreamCaptureMerge);
    waiting.capture->captured.try_emplace(&waiting, 0);
    std::size_t& joined = waiting.capture->joined[event.stream];
    if (event.stream != &waiting) joined = std::max(joined, event.position);
    return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* made, unsigned) {
    note_blocking_call();
    *made = reinterpret_cast<cudaStream_t>(new_stream(current_device()).get());
    return cudaSuccess;
}
cudaError_t cudaStreamCreate(cudaStream_t* made) { return cudaStreamCreateWithFlags(made, 0); }

cudaError_t cudaStreamDestroy(cudaStream_t handle) {
    const auto stream = stream_of(handle);
    stream->wait();
    return drop_stream(stream.get()) ? cudaSuccess : failed(cudaErrorInvalidValue);
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
    note_blocking_call();
    const auto stream = stream_of(handle);
    if (stream->capture) return failed(cudaErrorStreamCaptureUnsupported);
    stream->wait();
    return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t handle) {
    const auto stream = stream_of(handle);
    if (stream->capture) return failed(cudaErrorStreamCaptureUnsupported);
    return stream->idle() ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaDeviceSynchronize() {
    note_blocking_call();
    if (capturing_here()) return failed(cudaErrorStreamCaptureUnsupported);
    for (const auto& stream : streams_of(current_device())) stream->wait();
    return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* made, unsigned flags) {
    note_blocking_call();
    *made = reinterpret_cast<cudaEvent_t>(new Event((flags & cudaEventDisableTiming) == 0));
    return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* made) { return cudaEventCreateWithFlags(made, 0); }

cudaError_t cudaEventDestroy(cudaEvent_t handle) {
    Event* event = &event_of(handle);
    {
        std::unique_lock lock(event->mutex);  // a real event may go while it is recorded; the double waits for that
        event->changed.wait(lock, [&] { return event->reached >= event->recorded; });
    }
    delete event;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t stream_handle) {
    Event* event = &event_of(handle);
    const auto stream = stream_of(stream_handle);
    event->capture = stream->capture;
    event->stream = stream.get();
    if (stream->capture) {
        event->position = stream->capture->captured[stream.get()];
        return cudaSuccess;
    }
    unsigned long number = 0;
    {
        const std::lock_guard lock(event->mutex);
        number = ++event->recorded;
    }
    stream->push([event, number] {
        const std::lock_guard lock(event->mutex);  // notifies under the lock: the owner may be about to destroy it
        event->reached = number;
        event->at = std::chrono::steady_clock::now();
        event->changed.notify_all();
    });
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream_handle, cudaEvent_t handle, unsigned) {
    Event* event = &event_of(handle);
    const auto stream = stream_of(stream_handle);
    if (event->capture) return join_capture(*stream, *event);
    if (stream->capture) return failed(cudaErrorStreamCaptureIsolation);
    unsigned long number = 0;
    {
        const std::lock_guard lock(event->mutex);
        number = event->recorded;
    }
    stream->push([event, number] {
        std::unique_lock lock(event->mutex);
        event->changed.wait(lock, [&] { return event->reached >= number; });
    });
    return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t handle) {
    Event& event = event_of(handle);
    if (event.capture) return failed(cudaErrorCapturedEvent);
    const std::lock_guard lock(event.mutex);
    return event.reached >= event.recorded ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
    note_blocking_call();
    Event& event = event_of(handle);
    if (event.capture) return failed(cudaErrorCapturedEvent);
    std::unique_lock lock(event.mutex);
    event.changed.wait(lock, [&] { return event.reached >= event.recorded; });
    return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
    if (!event_of(begin).timed || !event_of(end).timed) return failed(cudaErrorInvalidResourceHandle);
    *milliseconds = std::chrono::duration<float, std::milli>(event_of(end).at - event_of(begin).at).count();
    return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode) {
    const auto stream = stream_of(handle);
    if (stream->capture) return failed(cudaErrorIllegalState);
    stream->capture = std::make_shared<Capture>();
    stream->capture->origin = stream.get();
    stream->capture->captured[stream.get()] = 0;
    note_capture(1);
    return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus* status) {
    *status = stream_of(handle)->capture ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* made) {
    const auto stream = stream_of(handle);
    const std::shared_ptr<Capture> capture = stream->capture;
    *made = nullptr;
    if (!capture || capture->origin != stream.get()) return failed(cudaErrorIllegalState);
    note_capture(-1);
    bool joined = true;
    for (const auto& [one, captured] : capture->captured) {
        one->capture.reset();
        if (one != stream.get() && capture->joined[one] < captured) joined = false;
    }
    if (!joined) return failed(cudaErrorStreamCaptureUnjoined);
    *made = reinterpret_cast<cudaGraph_t>(new std::shared_ptr<Graph>(capture->graph));
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* made, cudaGraph_t graph, unsigned long long) {
    *made = reinterpret_cast<cudaGraphExec_t>(
        new std::shared_ptr<Graph>(*reinterpret_cast<std::shared_ptr<Graph>*>(graph)));
    return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t handle, cudaStream_t stream) {
    const auto graph = *reinterpret_cast<std::shared_ptr<Graph>*>(handle);
    stream_of(stream)->push([graph] {
        for (const Work& work : graph->work) work();
    });
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    delete reinterpret_cast<std::shared_ptr<Graph>*>(graph);
    return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
    delete reinterpret_cast<std::shared_ptr<Graph>*>(graph);
    return cudaSuccess;
}
}
