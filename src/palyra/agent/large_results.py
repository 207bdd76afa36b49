"""Results that are too large to be shown: what is shown of them instead."""

LARGE_RESULT = 8 << 10
_SHOWN_OF_LARGE = 3 << 10


def summary(text: str, size: int, artifact_id: str) -> str:
    """Return what is shown of a result that is too large to be shown."""
    head = text[:_SHOWN_OF_LARGE]
    cut = head.rfind("\n")
    head = head[:cut] if cut > _SHOWN_OF_LARGE // 2 else head
    lines = text.count("\n") + 1
    return (
        f"{head}\n… [{size} bytes, {lines} lines in all; read the rest with artifact.read, id"
        f" {artifact_id}]"
    )
