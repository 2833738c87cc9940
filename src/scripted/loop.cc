#include "scripted/loop.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <future>
#include <tuple>

namespace anvil::scripted {

namespace {

constexpr uint64_t kListenerKey = ~uint64_t{0};
constexpr uint64_t kWakeKey = kListenerKey - 1;
constexpr size_t kReadBytes = 64 * 1024;
constexpr int kEventsAtOnce = 512;
constexpr int kAcceptsAtOnce = 64;

Nanos thread_cpu() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<Nanos>(time.tv_sec) * kSecond + time.tv_nsec;
}

base::Fd open_reserve() {
  return base::Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
}

}  // namespace

Loop::Loop(Engine& engine, std::shared_ptr<const TlsIdentity> tls, Nanos spin)
    : engine_(engine), tls_(std::move(tls)), spin_(spin), read_buffer_(kReadBytes, '\0') {}

Loop::~Loop() {
  stop();
}

Result<void> Loop::start(int listener, std::function<void(base::Fd)> accepted) {
  listener_ = listener;
  accepted_ = std::move(accepted);
  epoll_.reset(epoll_create1(EPOLL_CLOEXEC));
  wake_.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  reserve_ = open_reserve();
  if (!epoll_ || !wake_ || !reserve_) return fail(base::from_errno(errno, "set up an event loop"));
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = kWakeKey;
  int failed = epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &event);
  if (listener_ >= 0) {
    event.data.u64 = kListenerKey;
    failed |= epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, listener_, &event);
  }
  if (failed) return fail(base::from_errno(errno, "watch the listening socket"));
  running_ = true;
  thread_ = std::thread([this] { run(); });
  return {};
}

void Loop::stop() {
  stopping_ = true;
  const uint64_t one = 1;
  if (wake_) std::ignore = write(wake_.get(), &one, sizeof one);
  if (thread_.joinable()) thread_.join();
}

// Runs the task on the thread, or at once if the thread has ended.
void Loop::call(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    if (running_) {
      inbox_.push_back(std::move(task));
      const uint64_t one = 1;
      std::ignore = write(wake_.get(), &one, sizeof one);
      return;
    }
  }
  task();
}

void Loop::adopt(base::Fd fd) {
  call([this, held = std::make_shared<base::Fd>(std::move(fd))] { open(std::move(*held)); });
}

void Loop::start(uint64_t key) {
  call([this, key] {
    if (Connection* connection = find(key); connection && connection->exchange)
      begin_answer(*connection, mono_now());
  });
}

void Loop::add_sums(Ledger& ledger) {
  std::promise<void> done;
  call([&] {
    ledger.events += events_;
    ledger.bytes += bytes_;
    ledger.writes += writes_;
    ledger.lateness.merge(lateness_);
    ledger.cpu += cpu_ > 0 ? cpu_ : thread_cpu();
    done.set_value();
  });
  done.get_future().wait();
}

void Loop::run() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  // Without it the kernel adds up to 50 us to every sleep.
  prctl(PR_SET_TIMERSLACK, 1);
  std::vector<epoll_event> events(kEventsAtOnce);
  while (!stopping_) {
    const int ready = wait(events);
    kernel_clock_.keep_fresh();
    fire_timers();
    for (int i = 0; i < ready; ++i) {
      const epoll_event& event = events[static_cast<size_t>(i)];
      if (event.data.u64 == kListenerKey) {
        accept_all();
      } else if (event.data.u64 == kWakeKey) {
        take_inbox();
      } else if (Connection* connection = find(event.data.u64)) {
        if ((event.events & EPOLLOUT) && !on_writable(*connection)) continue;
        if (event.events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) on_readable(*connection);
      }
    }
  }
  for (auto& connection : connections_)
    if (connection) close(*connection);
  cpu_ = thread_cpu();
  std::vector<std::function<void()>> left;
  {
    const std::lock_guard lock(mutex_);
    running_ = false;
    left.swap(inbox_);
  }
  for (auto& task : left) task();
}

void Loop::take_inbox() {
  uint64_t times = 0;
  std::ignore = read(wake_.get(), &times, sizeof times);
  std::vector<std::function<void()>> tasks;
  {
    const std::lock_guard lock(mutex_);
    tasks.swap(inbox_);
  }
  for (auto& task : tasks) task();
}

int Loop::wait(std::vector<epoll_event>& events) {
  const auto room = static_cast<int>(events.size());
  int ready = 0;
  if (timers_.empty()) {
    ready = epoll_wait(epoll_.get(), events.data(), room, -1);
  } else {
    const Nanos rest = timers_.front().due - mono_now() - spin_;
    timespec time{};
    if (rest > 0) time = {.tv_sec = rest / kSecond, .tv_nsec = rest % kSecond};
    ready = epoll_pwait2(epoll_.get(), events.data(), room, &time, nullptr);
    if (ready < 0 && errno == ENOSYS) {  // before Linux 5.11: whole milliseconds, then polling
      const Nanos millis = std::clamp<Nanos>(rest / kMillisecond, 0, 60'000);
      ready = epoll_wait(epoll_.get(), events.data(), room, static_cast<int>(millis));
    }
  }
  return std::max(ready, 0);
}

void Loop::accept_all() {
  for (int i = 0; i < kAcceptsAtOnce; ++i) {
    base::Fd fd(accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (fd) {
      accepted_(std::move(fd));
      continue;
    }
    if (errno == EMFILE || errno == ENFILE) {
      // The waiting connection is taken and dropped, or it would wake the loop for ever.
      reserve_.reset();
      fd.reset(accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC));
      fd.reset();
      reserve_ = open_reserve();
    }
    if (errno != EINTR && errno != ECONNABORTED) return;
  }
}

void Loop::open(base::Fd fd) {
  if (stopping_) return;
  const int one = 1;
  setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);  // no-op on unix sockets
  size_t place = connections_.size();
  if (free_.empty()) {
    connections_.emplace_back();
  } else {
    place = free_.back();
    free_.pop_back();
  }
  auto connection = std::make_unique<Connection>();
  connection->transport = Transport(std::move(fd), tls_.get());
  connection->tls = tls_ != nullptr;
  connection->key = static_cast<uint64_t>(place) << 32 | ++generation_;
  connection->number = engine_.next_connection();
  connection->watched = EPOLLIN | EPOLLRDHUP;
  epoll_event event{};
  event.events = connection->watched;
  event.data.u64 = connection->key;
  if (!connection->transport.open() ||
      epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, connection->transport.fd(), &event) != 0) {
    free_.push_back(place);
    return;
  }
  connections_[place] = std::move(connection);
}

Connection* Loop::find(uint64_t key) {
  const auto place = static_cast<size_t>(key >> 32);
  if (place >= connections_.size()) return nullptr;
  Connection* connection = connections_[place].get();
  return connection && connection->key == key ? connection : nullptr;
}

void Loop::set_timer(Connection& connection, Nanos due) {
  connection.timer = due;
  timers_.push_back({due, connection.key});
  std::push_heap(timers_.begin(), timers_.end());
}

void Loop::fire_timers() {
  while (!timers_.empty()) {
    const Timer timer = timers_.front();
    const Nanos now = mono_now();
    if (timer.due > now) return;
    std::pop_heap(timers_.begin(), timers_.end());
    timers_.pop_back();
    Connection* connection = find(timer.key);
    if (!connection || connection->timer != timer.due) continue;
    connection->timer = 0;
    take_step(*connection, now);
  }
}

void Loop::watch(Connection& connection, bool writing) {
  const uint32_t wanted = EPOLLIN | EPOLLRDHUP | (writing ? EPOLLOUT : 0u);
  if (wanted == connection.watched) return;
  connection.watched = wanted;
  epoll_event event{};
  event.events = wanted;
  event.data.u64 = connection.key;
  epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, connection.transport.fd(), &event);
}

// Ends what is in progress; the connection is gone afterwards.
void Loop::close(Connection& connection) {
  if (connection.exchange) {
    connection.exchange->keep_alive = false;
    finish(connection, stopping_ ? Ending::kStopped : Ending::kClient);
    return;
  }
  connection.transport.close();
  const auto place = static_cast<size_t>(connection.key >> 32);
  free_.push_back(place);
  connections_[place].reset();
}

}  // namespace anvil::scripted
