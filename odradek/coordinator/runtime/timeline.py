"""State that can be rolled back, and read as of an earlier offset.

A change belongs to the offset of the record whose replay made it. Until that offset is committed, the previous value is kept
beside the current one, so that

    reading at offset c     sees the changes of records below c, and no others
    rolling back to r       undoes the changes of records at r and above, latest first

Once the offset is committed, the previous value is dropped. So only uncommitted changes cost anything: an entry in two lists
each. Without them (for instance while a committed log is loaded) the cost is that of a dict.

Kafka's timeline structures (server-common, ``timeline``) keep a hash table for each snapshot, for readers on other threads; here
everything is on the loop thread.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Hashable, ItemsView, Iterator, KeysView, ValuesView
from typing import Any, Final, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

# In SnapshotRegistry.offset, besides the offset of the record being replayed.
COMMITTED: Final = -1
READ_ONLY: Final = -2
# Forgetting this many changes one by one is faster than clearing dicts.
_FEW: Final = 8


class _Absent:
    """The value of a missing key."""


_ABSENT: Final = _Absent()


class SnapshotRegistry:
    """The uncommitted changes of one shard's timelines, in the order they were made.

    ``offset`` says which record the changes belong to. COMMITTED: they never need to be rolled back (the initial value).
    READ_ONLY, between records: a change raises RuntimeError, as no log would know of it.
    """

    __slots__ = ("_journal", "offset")

    def __init__(self) -> None:
        self.offset: int = COMMITTED
        self._journal: deque[tuple[int, _Timeline, Any]] = deque()

    def __len__(self) -> int:
        """Return the number of uncommitted changes."""
        return len(self._journal)

    def note(self, timeline: "_Timeline", key: Any) -> int:
        """Note that ``key`` of ``timeline`` is about to change. Return the offset of the change."""
        offset = self.offset
        if offset == READ_ONLY:
            raise RuntimeError("state can change only during the replay of a record")
        self._journal.append((offset, timeline, key))
        return offset

    def commit(self, offset: int) -> None:
        """Drop the previous values of changes below ``offset``: they are neither rolled back nor read again."""
        journal = self._journal
        if len(journal) > _FEW and journal[-1][0] < offset:
            for _, timeline, _ in journal:
                timeline.forget_all()
            journal.clear()
        while journal and journal[0][0] < offset:
            _, timeline, key = journal.popleft()
            timeline.forget(key)

    def roll_back(self, offset: int) -> None:
        """Undo the changes made at ``offset`` and above."""
        journal = self._journal
        while journal and journal[-1][0] >= offset:
            _, timeline, key = journal.pop()
            timeline.undo(key)


class _Timeline(ABC):
    """The previous values, by key: (offset of the change, value before it), in the order of the changes."""

    __slots__ = ("_before", "_registry")

    def __init__(self, registry: SnapshotRegistry) -> None:
        self._registry = registry
        self._before: dict[Any, list[tuple[int, Any]]] = {}

    @abstractmethod
    def _restore(self, key: Any, value: Any) -> None:
        """Give ``key`` its previous value, or remove it for _ABSENT."""

    def _note(self, key: Any, before: Any) -> None:
        offset = self._registry.note(self, key)
        known = self._before.get(key)
        if known is None:
            self._before[key] = [(offset, before)]
        else:
            known.append((offset, before))

    def _at(self, key: Any, offset: int, now: Any) -> Any:
        """Return the value at ``offset`` of a key whose current value is ``now``."""
        for changed_at, before in self._before.get(key, ()):
            if changed_at >= offset:
                return before
        return now

    def undo(self, key: Any) -> None:
        """Take back the last change of ``key``."""
        changes = self._before[key]
        _, value = changes.pop()
        if not changes:
            del self._before[key]
        self._restore(key, value)

    def forget(self, key: Any) -> None:
        """Drop the value kept from before the earliest change of ``key``."""
        changes = self._before[key]
        del changes[0]
        if not changes:
            del self._before[key]

    def forget_all(self) -> None:
        """Drop all previous values."""
        self._before.clear()


class TimelineDict(_Timeline, Generic[K, V]):
    """A dict. Plain access reads current values; ``_at`` methods read at an offset not below the committed one."""

    __slots__ = ("_now",)

    def __init__(self, registry: SnapshotRegistry) -> None:
        super().__init__(registry)
        self._now: dict[K, V] = {}

    def __setitem__(self, key: K, value: V) -> None:
        now = self._now
        if self._registry.offset != COMMITTED:
            self._note(key, now.get(key, _ABSENT))
        now[key] = value

    def __delitem__(self, key: K) -> None:
        if self._registry.offset != COMMITTED:
            self._note(key, self._now[key])
        del self._now[key]

    def pop(self, key: K) -> V | None:
        """Remove ``key`` and return its value, or None if it is missing."""
        value = self._now.get(key)
        if key in self._now:
            del self[key]
        return value

    def __getitem__(self, key: K) -> V:
        return self._now[key]

    def get(self, key: K) -> V | None:
        """Return the current value, or None."""
        return self._now.get(key)

    def __contains__(self, key: object) -> bool:
        return key in self._now

    def __len__(self) -> int:
        return len(self._now)

    def __iter__(self) -> Iterator[K]:
        return iter(self._now)

    def keys(self) -> KeysView[K]:
        """Return the current keys, like a dict."""
        return self._now.keys()

    def values(self) -> ValuesView[V]:
        """Return the current values, like a dict."""
        return self._now.values()

    def items(self) -> ItemsView[K, V]:
        """Return the current items, like a dict."""
        return self._now.items()

    def get_at(self, key: K, offset: int) -> V | None:
        """Return the value at ``offset``, or None."""
        now = self._now.get(key)
        if not self._before:
            return now
        value = self._at(key, offset, _ABSENT if now is None else now)
        return None if value is _ABSENT else value

    def items_at(self, offset: int) -> ItemsView[K, V]:
        """Return the items at ``offset``: a view if no change is uncommitted, else a view of a copy."""
        if not self._before:
            return self._now.items()
        items: dict[K, Any] = dict(self._now)
        for key in self._before:
            value = self._at(key, offset, items.get(key, _ABSENT))
            if value is not _ABSENT:
                items[key] = value
            else:
                items.pop(key, None)
        return items.items()

    def _restore(self, key: K, value: Any) -> None:
        if value is _ABSENT:
            del self._now[key]
        else:
            self._now[key] = value


class TimelineValue(_Timeline, Generic[V]):
    """A single value."""

    __slots__ = ("_value",)

    def __init__(self, registry: SnapshotRegistry, value: V) -> None:
        super().__init__(registry)
        self._value = value

    def get(self) -> V:
        """Return the current value."""
        return self._value

    def set(self, value: V) -> None:
        """Set ``value`` as of the record being replayed."""
        if self._registry.offset != COMMITTED:
            self._note(None, self._value)
        self._value = value

    def get_at(self, offset: int) -> V:
        """Return the value at ``offset``, which is not below the committed one."""
        value: V = self._at(None, offset, self._value)
        return value

    def _restore(self, key: None, value: V) -> None:  # noqa: ARG002  there is only one key
        self._value = value
