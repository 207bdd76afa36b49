"""What is tried from inside shell.run. Each prints ESCAPED, or a secret, if it got through; `{...}`
are places of the world.

Nothing here may do harm where a wall is missing: kernel files are opened and not written, and bombs
are small.
"""

from typing import Literal, NamedTuple

_SYSCALL = """
import ctypes, errno, os, platform
libc = ctypes.CDLL(None, use_errno=True)
number = NUMBERS[0 if platform.machine() == "x86_64" else 1]
# Every pointer is bad: a call that is let through fails with another error than a refusal.
result = libc.syscall(number, *([-1] * 6))
if ctypes.get_errno() not in (errno.EPERM, errno.ENOSYS, errno.EACCES):
    print("ESCAPED", result, os.strerror(ctypes.get_errno()))
"""
_CALLS = {
    "bpf": (321, 280),
    "clock_settime": (227, 112),
    "fsopen": (430, 430),
    "init_module": (175, 105),
    "io_uring_setup": (425, 425),
    "kcmp": (312, 272),
    "kexec_load": (246, 104),
    "name_to_handle_at": (303, 264),
    "open_tree": (428, 428),
    "perf_event_open": (298, 241),
    "pidfd_getfd": (438, 438),
    "process_vm_readv": (310, 270),
    "reboot": (169, 142),
    "request_key": (249, 218),
    "setns": (308, 268),
    "swapon": (167, 224),
    "userfaultfd": (323, 282),
}


class Attempt(NamedTuple):
    command: str
    # Whether it gets through without a sandbox, so that the attempt itself is known to be a good
    # one: for anybody, or only for a root with all capabilities. False where that would do harm, or
    # where it depends on the machine.
    works_bare: bool | Literal["root"] = False


def python(code: str) -> str:
    return f"python3 - <<'E'\n{code.strip()}\nE"


FILES = {
    "reading a file beside the workspace": Attempt("cat {outside}/secret.txt", works_bare=True),
    "climbing up": Attempt("cat ../outside/secret.txt ../home/journal.db", works_bare=True),
    "a symlink made inside": Attempt("ln -s {outside}/secret.txt l; cat l", works_bare=True),
    "a symlink that was there": Attempt("cat way-out/secret.txt", works_bare=True),
    "a hard link to a file outside": Attempt("ln {outside}/secret.txt h && cat h", works_bare=True),
    "a hard link to a hidden file": Attempt("ln .env copy && cat copy", works_bare=True),
    "reading hidden files": Attempt(
        "cat .env conf/.env.production conf/server.pem .ssh/id_ed25519", works_bare=True
    ),
    "moving what is above a hidden file": Attempt(
        "mv conf conf2; cat conf2/.env.production", works_bare=True
    ),
    "moving a hidden file": Attempt("mv .env env; cat env", works_bare=True),
    "packing the whole workspace": Attempt("tar cf - . | strings", works_bare=True),
    "searching it all": Attempt("grep -ra canary-secret . ..", works_bare=True),
    "the root of a process": Attempt(
        "cat /proc/1/root{outside}/secret.txt /proc/self/root{outside}/secret.txt", works_bare=True
    ),
    "the working folder of another process": Attempt(
        "for p in /proc/[0-9]*; do cat $p/cwd/../outside/secret.txt; done", works_bare=True
    ),
    "descriptors that were left open": Attempt(
        "for f in /proc/self/fd/*; do case $(readlink $f) in *palyra*home*) echo ESCAPED;; esac; done",
        works_bare=True,
    ),
    "files by handle": Attempt(
        python(
            """
import ctypes, os, struct
libc = ctypes.CDLL(None, use_errno=True)
handle, mount = ctypes.create_string_buffer(struct.pack("=Ii", 128, 0) + bytes(128)), ctypes.c_int()
libc.name_to_handle_at(-100, b"plain.txt", handle, ctypes.byref(mount), 0)
if libc.open_by_handle_at(os.open(".", os.O_RDONLY), handle, 0) >= 0:
    print("ESCAPED")
"""
        ),
        works_bare="root",
    ),
    "writing the policies": Attempt(
        "echo 'permit(principal,action,resource);' > {home}/policies/evil.cedar && echo ESCAPED",
        works_bare=True,
    ),
    "writing the journal": Attempt("echo x >> {home}/journal.db && echo ESCAPED", works_bare=True),
    "listing the daemon's home": Attempt("ls {home} && echo ESCAPED", works_bare=True),
    # Opened for appending, with nothing appended: that changes nothing even where it succeeds.
    "writing the system": Attempt(
        "for f in /etc/passwd /etc/services /usr/lib/os-release; do (: >> $f) && echo ESCAPED $f; done",
        works_bare="root",
    ),
    "reading accounts": Attempt("cat /etc/shadow >/dev/null && echo ESCAPED", works_bare="root"),
    "git's hooks and settings": Attempt(
        "echo x > .git/hooks/post-commit && echo ESCAPED; echo x > .git/config && echo ESCAPED",
        works_bare=True,
    ),
    "another .git in its place": Attempt(
        "mv .git old && mkdir -p .git/hooks && echo ESCAPED", works_bare=True
    ),
    "the shared memory of the host": Attempt(
        "cat /dev/shm/{name} && echo ESCAPED", works_bare=True
    ),
}

KERNEL = {
    # Opened for appending, with nothing appended: that changes no setting even where it succeeds.
    "kernel settings": Attempt(
        "for f in /proc/sys/kernel/core_pattern /proc/sys/kernel/modprobe /proc/sys/vm/overcommit_memory /proc/sysrq-trigger; "
        "do (: >> $f) && echo ESCAPED $f; done",
        works_bare="root",
    ),
    "the groups that hold the limits": Attempt(
        "for f in $(find /sys/fs/cgroup /proc/self/cgroup/.. -name cgroup.procs | head -3); do (: >> $f) && echo ESCAPED; done",
        works_bare="root",
    ),
    "the kernel's tree": Attempt("ls /sys/kernel && echo ESCAPED", works_bare=True),
    "memory of the machine": Attempt(
        "head -c1 /proc/kcore && echo ESCAPED; head -c1 /dev/mem && echo ESCAPED"
    ),
    "disks": Attempt(
        "for d in /dev/vda /dev/sda /dev/nvme0n1 /dev/loop0; do head -c1 $d && echo ESCAPED; done"
    ),
    "a device file": Attempt(
        "mknod disk b 254 0 && echo ESCAPED; mknod null c 1 3 && echo ESCAPED", works_bare="root"
    ),
    "mounting": Attempt(
        "mkdir m; mount -t tmpfs none m && echo ESCAPED && umount m; umount .env && echo ESCAPED",
        works_bare="root",
    ),
    "making the system writable again": Attempt(
        "mount -o remount,rw /usr && echo ESCAPED; mount -o remount,rw / && echo ESCAPED"
    ),
    "a new user namespace": Attempt(
        "unshare -Ur id && echo ESCAPED; unshare -m true && echo ESCAPED", works_bare=True
    ),
    "a new namespace by clone": Attempt(
        python(
            """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
number = {"x86_64": 56, "aarch64": 220}[os.uname().machine]
pid = libc.syscall(number, 0x10000000 | 17, 0, 0, 0, 0)
if pid == 0:
    os._exit(0)
print("ESCAPED" if pid > 0 else "refused")
"""
        ),
        works_bare=True,
    ),
    "entering a namespace": Attempt(
        "nsenter -t 1 -m true && echo ESCAPED; nsenter -t 1 -p true && echo ESCAPED",
        works_bare="root",
    ),
    "changing the root": Attempt(
        "chroot / /bin/true && echo ESCAPED; pivot_root . . && echo ESCAPED", works_bare="root"
    ),
    "the keyring": Attempt(
        python(
            """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
import os
add, control = {"x86_64": (248, 250), "aarch64": (217, 219)}[os.uname().machine]
key = libc.syscall(add, b"user", b"palyra-test", b"x", 1, -2)
joined = libc.syscall(control, 0, -3, 0)
print("ESCAPED" if key > 0 or joined > 0 else "refused")
"""
        ),
        works_bare=True,
    ),
}

PROCESSES = {
    "the daemon's environment": Attempt(
        "cat /proc/*/environ | tr '\\0' '\\n'; env; set", works_bare=True
    ),
    "another process's environment by number": Attempt(
        "cat /proc/{pid}/environ; cat /proc/{pid}/maps && echo ESCAPED", works_bare=True
    ),
    "a signal to a process of the host": Attempt(
        "kill -0 {pid} && echo ESCAPED; kill -9 {pid} && echo ESCAPED", works_bare=True
    ),
    "a signal to everybody": Attempt("kill -9 -1; echo ESCAPED-NOT"),
    "tracing another process": Attempt(
        python(
            """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
# Seizing stops nobody.
for pid in (os.getppid(), {pid}):
    if libc.ptrace(0x4206, pid, 0, 0) == 0:
        print("ESCAPED")
"""
        ),
        works_bare="root",
    ),
    "memory of another process": Attempt("(: < /proc/{pid}/mem) && echo ESCAPED", works_bare=True),
    "writing the memory of the first process": Attempt(
        "(: >> /proc/1/mem) && echo ESCAPED", works_bare="root"
    ),
    "root by a setuid program": Attempt(
        "for p in $(find /usr -perm -4000 2>/dev/null); do :; done; su -c 'echo ESCAPED' </dev/null; "
        "cp /usr/bin/id i && chmod 6755 i && ./i -u | grep -qx 0 && echo ESCAPED; "
        "grep -q 'NoNewPrivs:.1' /proc/self/status || echo ESCAPED",
        works_bare="root",
    ),
    "capabilities": Attempt(
        "grep Cap /proc/self/status | grep -v '0000000000000000' && echo ESCAPED", works_bare=True
    ),
    "a preloaded library": Attempt(
        "env | grep LD_ && echo ESCAPED; grep preload /proc/self/maps && echo ESCAPED",
        works_bare=True,
    ),
    "typing into the terminal": Attempt(
        python(
            """
import fcntl
for name in ("/dev/tty", "/dev/stdin", "/dev/pts/0"):
    try:
        fcntl.ioctl(open(name), 0x5412, b"x")
        print("ESCAPED")
    except OSError as error:
        print("refused", error.errno)
"""
        )
    ),
    "a core dump": Attempt(
        "ulimit -c unlimited && echo ESCAPED; sh -c 'kill -SEGV $$'; ls core* && echo ESCAPED",
        works_bare="root",
    ),
    "raising a limit": Attempt(
        "ulimit -n 1000000 && echo ESCAPED; ulimit -f unlimited && echo ESCAPED", works_bare=True
    ),
}

NETWORK = {
    "a server on loopback": Attempt(
        "exec 3<>/dev/tcp/127.0.0.1/{port}; echo GET / >&3; cat <&3", works_bare=True
    ),
    "the same by another name": Attempt(
        "for h in localhost 0.0.0.0 127.1 ::1; do exec 3<>/dev/tcp/$h/{port} && cat <&3; done",
        works_bare=True,
    ),
    "a Unix socket": Attempt(
        python(
            'import socket; s = socket.socket(socket.AF_UNIX); s.connect("{outside}/socket"); print(s.recv(99))'
        ),
        works_bare=True,
    ),
    "an abstract Unix socket": Attempt(
        python(
            'import socket; s = socket.socket(socket.AF_UNIX); s.connect("\\0{name}"); print(s.recv(99))'
        ),
        works_bare=True,
    ),
    "where the host's services have their sockets": Attempt(
        "ls /run /var/run >/dev/null && echo ESCAPED; (: <> /var/run/docker.sock) && echo ESCAPED",
        works_bare=True,
    ),
    "data in a question to a name server": Attempt(
        python(
            """
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(2)
for server in ("127.0.0.1", "127.0.0.53"):
    try:
        s.sendto(b"stolen-data.example.org", (server, {udp}))
        print(s.recv(99))
    except OSError as error:
        print("refused", error)
"""
        ),
        works_bare=True,
    ),
    "looking up a name": Attempt(
        "getent hosts example.org && echo ESCAPED; cat /etc/resolv.conf | grep nameserver && echo ESCAPED"
    ),
    "raw sockets": Attempt(
        python(
            """
import socket
for family, kind in ((2, 3), (10, 3), (17, 3), (17, 2), (40, 1), (38, 5), (29, 3), (31, 3)):
    try:
        socket.socket(family, kind)
        print("ESCAPED", family, kind)
    except OSError as error:
        print("refused", error.errno)
"""
        ),
        works_bare=True,
    ),
    "interfaces of the host": Attempt(
        "ls /proc/net/dev && grep -vE 'Inter|face|lo:' /proc/net/dev && echo ESCAPED",
        works_bare=True,
    ),
}

CALLS = {
    f"the system call {name}": Attempt(python(_SYSCALL.replace("NUMBERS", str(numbers))))
    for name, numbers in _CALLS.items()
}

ALL = {**FILES, **KERNEL, **CALLS, **PROCESSES, **NETWORK}
