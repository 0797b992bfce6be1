"""A filter of system calls for CPython in its sandbox: one process with threads, without sockets and new namespaces.

Limits of processes do not hold for root, so processes are refused instead: with one process, its limit of memory is the
limit of the whole program. The rest of the list is what programs have no use for and kernels have had flaws in.
"""

from __future__ import annotations

import errno
import struct
from typing import Final

# Numbers of system calls: asm/unistd_64.h of x86, asm-generic/unistd.h of ARM.
_EVERYWHERE: Final = (
    425, 426, 427,  # io_uring_setup, io_uring_enter, io_uring_register
    428, 429, 430, 431, 432, 433, 442,  # open_tree, move_mount, fsopen, fsconfig, fsmount, fspick, mount_setattr
    438, 447,  # pidfd_getfd, memfd_secret
)  # fmt: skip
_CLONE3: Final = 435
_X86: Final = (
    41, 57, 58,  # socket, fork, vfork
    29, 101, 155, 161, 165, 166,  # shmget, ptrace, pivot_root, chroot, mount, umount2
    248, 249, 250, 272, 298, 308,  # add_key, request_key, keyctl, unshare, perf_event_open, setns
    310, 311, 319, 321, 323,  # process_vm_readv, process_vm_writev, memfd_create, bpf, userfaultfd
)  # fmt: skip
_ARM: Final = (
    198,  # socket
    194, 117, 41, 51, 40, 39,  # shmget, ptrace, pivot_root, chroot, mount, umount2
    217, 218, 219, 97, 241, 268,  # add_key, request_key, keyctl, unshare, perf_event_open, setns
    270, 271, 279, 280, 282,  # process_vm_readv, process_vm_writev, memfd_create, bpf, userfaultfd
)  # fmt: skip
_MACHINES: Final = {"x86_64": (0xC000003E, 56, _X86), "aarch64": (0xC00000B7, 220, _ARM)}
"""Machine → the kernel's number for it, that of `clone`, and those of what is refused."""

_LOAD, _EQUAL, _AT_LEAST, _BITS, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _MACHINE, _FIRST_ARGUMENT = 0, 4, 16
"""Places in `struct seccomp_data`; of the argument, its lower half."""
_ALLOW, _KILL, _REFUSE = 0x7FFF0000, 0x80000000, 0x00050000
_CLONE_THREAD: Final = 0x00010000
_OTHER_ABI: Final = 0x40000000
"""From here on x86 has the calls of its x32 ABI, which would be a way around the list."""


def filter_for(machine: str) -> bytes | None:
    """The filter as the kernel takes it (`struct sock_filter[]`); None for a machine whose numbers are not known."""
    known = _MACHINES.get(machine)
    if known is None:
        return None
    number, clone, refused = known
    refuse = (_RETURN, 0, 0, _REFUSE | errno.EPERM)
    program = [
        (_LOAD, 0, 0, _MACHINE),
        (_EQUAL, 1, 0, number),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 0, 1, _OTHER_ABI),
        refuse,
        # glibc takes "there is no such call" as a reason to use clone, whose flags a filter can see.
        (_EQUAL, 0, 1, _CLONE3),
        (_RETURN, 0, 0, _REFUSE | errno.ENOSYS),
    ]
    for call in (*_EVERYWHERE, *refused):
        program += [(_EQUAL, 0, 1, call), refuse]
    program += [
        (_EQUAL, 0, 3, clone),
        (_LOAD, 0, 0, _FIRST_ARGUMENT),
        (_BITS, 1, 0, _CLONE_THREAD),
        refuse,
        (_RETURN, 0, 0, _ALLOW),
    ]
    return b"".join(struct.pack("<HBBI", *step) for step in program)
