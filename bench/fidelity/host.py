"""What the machine did while a tool ran: CPU time and memory of process trees, and who else was busy. Linux only."""
import os
import platform
import threading
import time

TICK = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


def read(path):
    try:
        with open(path) as file:
            return file.read()
    except OSError:  # the process or thread ended in the meantime
        return ""


def processes(session):
    """Process ids of one session; a tool is started in its own, so these are all that it started and did not detach."""
    out = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            fields = read(f"/proc/{name}/stat").rpartition(")")[2].split()
            if len(fields) > 3 and int(fields[3]) == session:
                out.append(int(name))
    return out


class Tree:
    """CPU time and resident memory of a session, thread by thread in nanoseconds. Threads that ended keep what they had
    when last seen, so at most one sampling interval of each is missed."""

    def __init__(self, session):
        self.session = session
        self.threads = {}
        self.peak_rss_bytes = 0
        self.peak_processes = 0

    def sample(self):
        """CPU nanoseconds so far."""
        rss = 0
        pids = processes(self.session)
        for pid in pids:
            try:
                tids = os.listdir(f"/proc/{pid}/task")
            except OSError:
                continue
            for tid in tids:
                spent = read(f"/proc/{pid}/task/{tid}/schedstat").split()
                if spent:
                    self.threads[pid, tid] = int(spent[0])
            pages = read(f"/proc/{pid}/statm").split()
            rss += int(pages[1]) * PAGE if len(pages) > 1 else 0
        self.peak_rss_bytes = max(self.peak_rss_bytes, rss)
        self.peak_processes = max(self.peak_processes, len(pids))
        return sum(self.threads.values())


def machine_ns():
    """(CPU nanoseconds of all user and kernel work of processes, nanoseconds that the hypervisor took), all cores together."""
    fields = [int(field) for field in read("/proc/stat").split("\n", 1)[0].split()[1:]]
    return sum(fields[:3]) * 1_000_000_000 // TICK, fields[7] * 1_000_000_000 // TICK


class Watch(threading.Thread):
    """Samples the tool's and the engine's session every `interval` seconds from start() to finish()."""

    def __init__(self, tool_session, engine_session, interval=0.5):
        super().__init__(daemon=True)
        self.tool, self.engine = Tree(tool_session), Tree(engine_session)
        self.interval = interval
        self.samples = []  # (monotonic ns, tool, engine, this process, machine, stolen)
        self.over = threading.Event()

    def take(self):
        own = time.process_time_ns()
        tool, engine = self.tool.sample(), self.engine.sample()
        self.samples.append((time.monotonic_ns(), tool, engine, own, *machine_ns()))

    def run(self):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 10)  # this thread alone: what we start keeps its priority
        self.take()
        while not self.over.wait(self.interval):
            self.take()

    def finish(self):
        self.over.set()
        self.join()

    def at(self, moment):
        """The counters at a moment, linear between two samples."""
        before = [sample for sample in self.samples if sample[0] <= moment]
        after = [sample for sample in self.samples if sample[0] > moment]
        if not before or not after:
            return (before or after)[-1 if before else 0][1:]
        a, b = before[-1], after[0]
        share = (moment - a[0]) / (b[0] - a[0])
        return tuple(x + (y - x) * share for x, y in zip(a[1:], b[1:]))

    def between(self, began_ns, ended_ns):
        """What was spent while the load ran. `foreign_cores`: cores that neither tool, engine nor we used, on average."""
        tool, engine, own, machine, stolen = (y - x for x, y in zip(self.at(began_ns), self.at(ended_ns)))
        lasted = max(1, ended_ns - began_ns)
        return {"tool_cpu_ns": tool, "engine_cores": engine / lasted, "tool_cores": tool / lasted,
                "foreign_cores": max(0.0, (machine - tool - engine - own) / lasted), "stolen_cores": stolen / lasted,
                "rss_mib": self.tool.peak_rss_bytes / 2**20, "processes": self.tool.peak_processes}


def busy_cores(seconds=1.0):
    """How many cores are in use on average for the next `seconds`, by anybody."""
    began, at = machine_ns()[0], time.monotonic()
    time.sleep(seconds)
    return (machine_ns()[0] - began) / 1e9 / (time.monotonic() - at)


def wait_until_idle(limit_cores, patience_s):
    """True once less than `limit_cores` cores were in use for a second; False when that took longer than `patience_s`."""
    until = time.monotonic() + patience_s
    while busy_cores() > limit_cores:
        if time.monotonic() > until:
            return False
    return True


def machine():
    cpu = next((line.split(":", 1)[1].strip() for line in read("/proc/cpuinfo").splitlines() if line.startswith("model name")),
               platform.machine())
    return {"cpu": cpu, "cores": os.cpu_count(), "kernel": platform.release(), "date": time.strftime("%Y-%m-%d"),
            "memory_mib": os.sysconf("SC_PHYS_PAGES") * PAGE // 2**20}
