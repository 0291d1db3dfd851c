"""The server measured, and sessions on it through psql."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time

CONNECTION_VARIABLES = ["PGHOST", "PGHOSTADDR", "PGPORT", "PGSERVICE"]


class Failure(Exception):
    """An error that the user can fix."""


def memory_total():
    for line in open("/proc/meminfo"):
        if line.startswith("MemTotal"):
            return int(line.split()[1]) * 1024
    return None


def _find(program):
    config = os.environ.get("PG_CONFIG", "pg_config")
    try:
        folder = subprocess.run([config, "--bindir"], check=True, capture_output=True, text=True).stdout.strip()
        path = os.path.join(folder, program)
        if os.path.exists(path):
            return path
    except (OSError, subprocess.CalledProcessError):
        pass
    path = shutil.which(program)
    if path is None:
        raise Failure(f"{program} not found: set PG_CONFIG to the server's pg_config, or PGHOST to use a running server")
    return path


class ExistingServer:
    """The server that PGHOST and similar variables name."""

    owned = False

    def environment(self):
        return os.environ

    def stop(self):
        pass


def in_memory(largest_table):
    """Settings of a server that sorts alone: tables are cached, and nothing is written meanwhile."""
    # a table of more than a quarter of shared_buffers is read through a small set
    # of buffers, from the kernel each time
    shared_buffers = max(256 << 20, int(largest_table * 4.6))
    total = memory_total()
    if total and shared_buffers + 3 * largest_table > total:
        raise Failure(
            f"a table of {largest_table >> 20} MB takes {shared_buffers >> 20} MB of shared_buffers and as much "
            f"again to sort; this machine has {total >> 20} MB: lower --max-rows")
    return {
        "shared_buffers": f"{shared_buffers >> 10}kB",
        "max_connections": 40,
        "fsync": "off",
        "full_page_writes": "off",
        "wal_level": "minimal",
        "max_wal_senders": 0,
        "max_wal_size": "64GB",
        "checkpoint_timeout": "1d",
        "bgwriter_lru_maxpages": 0,
        "autovacuum": "off",
    }


class ThrowAwayServer:
    """A cluster in a temporary folder, removed by stop()."""

    owned = True

    def __init__(self, settings, folder=None, locale="C"):
        self.user = None
        if os.geteuid() == 0:
            names = [entry.pw_name for entry in pwd.getpwall()]
            self.user = "postgres" if "postgres" in names else "nobody"
        self.folder = tempfile.mkdtemp(prefix="gpusort-bench-", dir=folder)
        self.data = os.path.join(self.folder, "data")
        self.log = os.path.join(self.folder, "log")
        self.running = False
        if self.user:
            shutil.chown(self.folder, self.user)
        try:
            self._run(_find("initdb"), "-D", self.data, "-U", "postgres", "--auth=trust", "--no-sync",
                      "--locale-provider=libc", f"--locale={locale}", "--encoding=UTF8")
            self._configure(settings)
            self.running = True
            self._run(_find("pg_ctl"), "-D", self.data, "-l", self.log, "-w", "start")
        except BaseException:
            self.stop()
            raise

    def _configure(self, settings):
        with open(os.path.join(self.data, "postgresql.conf"), "a") as conf:
            conf.write(f"""
listen_addresses = ''
unix_socket_directories = '{self.folder}'
unix_socket_permissions = 0700
shared_preload_libraries = 'gpusort'
""")
            conf.writelines(f"{name} = '{value}'\n" for name, value in settings.items())

    def _run(self, *command):
        if self.user:
            command = ("runuser", "-u", self.user, "--") + command
        # the server must not get the terminal's Ctrl-C: stop() is in charge
        done = subprocess.run(command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True)
        if done.returncode != 0:
            log = open(self.log, errors="replace").read() if os.path.exists(self.log) else ""
            hint = "\nbuild and install gpusort first: make && sudo make install" if '"gpusort"' in log else ""
            raise Failure(f"{' '.join(command)} failed:\n{done.stdout}{log}{hint}")

    def environment(self):
        env = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
        env.update(PGHOST=self.folder, PGUSER="postgres", PGDATABASE="postgres")
        return env

    def stop(self):
        if self.running:
            self.running = False
            try:
                self._run(_find("pg_ctl"), "-D", self.data, "-m", "immediate", "-w", "stop")
            except Failure as failure:
                print(failure)
        shutil.rmtree(self.folder, ignore_errors=True)


class Session:
    """One psql, and so one backend, fed through a pipe."""

    _END = "--end-of-answer--"

    def __init__(self, server, settings=()):
        program = shutil.which("psql") or _find("psql")
        self.process = subprocess.Popen(
            [program, "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"], env=server.environment(), text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=1,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
        self.run("SET client_min_messages = warning; SET TimeZone = 'UTC'")
        for name, value in settings:
            self.set(name, value)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def run(self, sql):
        """Runs SQL; returns psql's output without the last newline."""
        try:
            self.process.stdin.write(f"{sql}\n;\n\\echo {self._END}\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        lines = []
        for line in self.process.stdout:
            if line.rstrip("\n") == self._END:
                return "".join(lines).rstrip("\n")
            lines.append(line)
        raise Failure("the server said: " + "".join(lines).strip() + f"\nto: {sql.strip()}")

    def set(self, name, value):
        self.run(f"SET {name} = '{value}'")

    def close(self):
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        self.process.wait()


def wait_for_service(session):
    """The names of the devices, when all of them run."""
    deadline = time.time() + 60
    while True:
        state, detail, device = session.run(
            "SELECT string_agg(DISTINCT state, ','), string_agg(DISTINCT detail, ', '), string_agg(device, ', ')"
            " FROM gpusort_service_status()").split("|")
        if state == "running":
            return device
        if time.time() > deadline:
            raise Failure(f"no device: {state} {detail}")
        time.sleep(0.1)
