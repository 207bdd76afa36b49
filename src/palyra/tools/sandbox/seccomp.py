"""The system calls a sandboxed program does not get, as a filter for the kernel. Made by hand: it
is one list and three checks.

What is refused is what could reach around the other walls: new namespaces and mounts, other
processes' memory, the keyring, kernel interfaces that few programs need and many exploits do,
sockets that no namespace holds.
"""

import errno
import platform
import struct
from collections.abc import Iterator
from functools import cache

_X86, _ARM = "x86_64", "aarch64"
_AUDIT = {_X86: 0xC000003E, _ARM: 0xC00000B7}

# name -> (number on x86_64, number on aarch64); -1 where the call does not exist.
_NUMBERS: dict[str, tuple[int, int]] = {
    "acct": (163, 89),
    "add_key": (248, 217),
    "adjtimex": (159, 171),
    "bpf": (321, 280),
    "chroot": (161, 51),
    "clock_adjtime": (305, 266),
    "clock_settime": (227, 112),
    "delete_module": (176, 106),
    "fanotify_init": (300, 262),
    "finit_module": (313, 273),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "init_module": (175, 105),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "ioperm": (173, -1),
    "iopl": (172, -1),
    "kcmp": (312, 272),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "lookup_dcookie": (212, 18),
    "mknod": (133, -1),
    "mknodat": (259, 33),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "move_pages": (279, 239),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "perf_event_open": (298, 241),
    "pidfd_getfd": (438, 438),
    "pivot_root": (155, 41),
    "process_madvise": (440, 440),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "reboot": (169, 142),
    "request_key": (249, 218),
    "setdomainname": (171, 162),
    "sethostname": (170, 161),
    "setns": (308, 268),
    "settimeofday": (164, 170),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "syslog": (103, 116),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
    "vhangup": (153, 58),
}
_SIGNALS: dict[str, tuple[int, int]] = {
    "kill": (62, 129),
    "pidfd_send_signal": (424, 424),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "tgkill": (234, 131),
    "tkill": (200, 130),
}
_CLONE, _CLONE3, _SOCKET, _IOCTL = (56, 220), (435, 435), (41, 198), (16, 29)
# mknod makes a FIFO or a plain file as well; only devices are refused.
_BY_MODE = {"mknod": 1, "mknodat": 2}

_NEW_NAMESPACES = 0x7E020080
_S_IFMT, _S_IFCHR, _S_IFBLK = 0o170000, 0o020000, 0o060000
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_UNIX, _INET, _INET6, _NETLINK = 1, 2, 10, 16
_SOCK_RAW, _SOCK_TYPE = 3, 0xF

_LD, _AND = 0x20, 0x54
_JEQ, _JSET, _JGE = 0x15, 0x45, 0x35
_RET = 0x06
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_NUMBER_AT, _ARCH_AT, _ARGS_AT = 0, 4, 16
_LEAF = 4


def supported() -> bool:
    return platform.machine() in _AUDIT


@cache
def program(*, sockets: bool = True, signals: bool = True) -> bytes:
    """The filter. Without `sockets` no socket can be made; without `signals` none can be sent, not
    even to a child.
    """
    machine = platform.machine()
    column = 0 if machine == _X86 else 1
    code = [
        *_ops(
            (_LD, 0, 0, _ARCH_AT),
            (_JEQ, 1, 0, _AUDIT[machine]),
            (_RET, 0, 0, _KILL),
            (_LD, 0, 0, _NUMBER_AT),
        )
    ]
    if machine == _X86:
        # The x32 numbers are the same calls under other names.
        code += _ops((_JGE, 0, 1, 0x40000000), (_RET, 0, 0, _ERRNO | errno.ENOSYS))
    code += _search(sorted(_cases(column, sockets=sockets, signals=signals).items()))
    return b"".join(code)


def _cases(column: int, *, sockets: bool, signals: bool) -> dict[int, list[bytes]]:
    """Return the filter of each call by its number. Each ends in an answer; a call without a number
    here is allowed.
    """
    refused = {**_NUMBERS, **({} if signals else _SIGNALS)}
    cases = {numbers[column]: _refuse() for numbers in refused.values()}
    for name, argument in _BY_MODE.items():
        cases[_NUMBERS[name][column]] = [*_device_mode(argument)]
    # glibc falls back to clone, whose flags a filter can see.
    cases[_CLONE3[column]] = _refuse(errno.ENOSYS)
    cases[_CLONE[column]] = [
        *_load(0),
        *_ops((_JSET, 0, 1, _NEW_NAMESPACES)),
        *_refuse(),
        *_allow(),
    ]
    cases[_IOCTL[column]] = [*_load(1), *_equal(_TIOCSTI), *_equal(_TIOCLINUX), *_allow()]
    cases[_SOCKET[column]] = [*_socket_rules()] if sockets else _refuse(errno.EACCES)
    cases.pop(-1, None)
    return cases


def _search(cases: list[tuple[int, list[bytes]]]) -> list[bytes]:
    """By halves: the kernel walks the filter once for each call it knows when it is loaded, so its
    depth is paid at every start.
    """
    if len(cases) <= _LEAF:
        return [line for number, then in cases for line in _when(number, then)] + _allow()
    middle = len(cases) // 2
    below, above = _search(cases[:middle]), _search(cases[middle:])
    return [*_ops((_JGE, len(below), 0, cases[middle][0])), *below, *above]


def _ops(*instructions: tuple[int, int, int, int]) -> list[bytes]:
    return [struct.pack("=HBBI", code, yes, no, value) for code, yes, no, value in instructions]


def _when(number: int, then: list[bytes]) -> list[bytes]:
    return [*_ops((_JEQ, 0, len(then), number)), *then]


def _load(argument: int) -> list[bytes]:
    return _ops((_LD, 0, 0, _ARGS_AT + 8 * argument))


def _refuse(error: int = errno.EPERM) -> list[bytes]:
    return _ops((_RET, 0, 0, _ERRNO | error))


def _allow() -> list[bytes]:
    return _ops((_RET, 0, 0, _ALLOW))


def _equal(value: int) -> list[bytes]:
    return [*_ops((_JEQ, 0, 1, value)), *_refuse()]


def _device_mode(argument: int) -> Iterator[bytes]:
    yield from _load(argument)
    yield from _ops((_AND, 0, 0, _S_IFMT))
    yield from _equal(_S_IFCHR)
    yield from _equal(_S_IFBLK)
    yield from _allow()


def _socket_rules() -> Iterator[bytes]:
    """Local, IPv4, IPv6 and the netlink that name lookups use; nothing raw. vsock and others are
    held by no namespace.
    """
    kinds = (_UNIX, _INET, _INET6, _NETLINK)
    yield from _load(0)
    for index, kind in enumerate(kinds):
        yield from _ops((_JEQ, len(kinds) - index, 0, kind))
    yield from _refuse(errno.EAFNOSUPPORT)
    # Netlink's own sockets are all raw, and are held by the network namespace.
    yield from _ops(
        (_JEQ, 4, 0, _NETLINK),
        *[(_LD, 0, 0, _ARGS_AT + 8), (_AND, 0, 0, _SOCK_TYPE), (_JEQ, 0, 1, _SOCK_RAW)],
    )
    yield from _refuse()
    yield from _allow()
