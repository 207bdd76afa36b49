"""Errors of a disk, told from defects: what failed is a device or a file system, and a person has
to look at it.
"""

import errno

_FULL = {errno.ENOSPC, errno.EDQUOT}
_FAILED = {
    errno.EIO,
    errno.EROFS,
    errno.ENODEV,
    errno.ENXIO,
    errno.ESTALE,
    errno.ETIMEDOUT,
    errno.EUCLEAN,
}


def trouble(error: OSError, where: object) -> str:
    """Return what is wrong with the disk under a place and what to do, or nothing if the error is
    not the disk's.
    """
    if error.errno in _FULL:
        return full(where)
    if error.errno in _FAILED:
        return failed(where, (error.strerror or str(error)).lower())
    return ""


def full(where: object) -> str:
    return (
        f"the disk is full: free some space where {where} lies and try again; nothing acknowledged"
        " was lost"
    )


def failed(where: object, why: object) -> str:
    return (
        f"the disk under {where} failed ({why}): check it (dmesg, smartctl); nothing acknowledged"
        " was lost"
    )
