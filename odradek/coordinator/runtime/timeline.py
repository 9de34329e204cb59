"""State that can be taken back, and read as it was at an earlier offset.

A change belongs to the offset of the record that was replayed when it was made. As long as that offset is not committed, the
value from before is kept beside the value now, so that

    reading at offset c     sees the changes of records below c, and no others
    rolling back to r       undoes the changes of records at r and above, latest first

and as soon as it is, the value from before is dropped. So the cost is that of what is under way: a dict's own where nothing is
(while a log that is committed is loaded, nothing ever is), and an entry in two lists for each change that is.

Kafka's timeline structures (server-common, ``timeline``) keep a hash table for each snapshot, for readers on other threads;
here all is on the loop thread.
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
# As many changes are forgotten one by one in less time than dicts are emptied.
_FEW: Final = 8


class _Absent:
    """The value of a key that is not there."""


_ABSENT: Final = _Absent()


class SnapshotRegistry:
    """The uncommitted changes of one shard's timelines, in the order they were made.

    ``offset`` says what changes belong to: a record's offset; COMMITTED, where they need never be taken back (a new registry
    begins so); READ_ONLY between records, where a change would be one that no log knows of, and raises RuntimeError.
    """

    __slots__ = ("_journal", "offset")

    def __init__(self) -> None:
        self.offset: int = COMMITTED
        self._journal: deque[tuple[int, _Timeline, Any]] = deque()

    def __len__(self) -> int:
        """How many changes are uncommitted."""
        return len(self._journal)

    def note(self, timeline: "_Timeline", key: Any) -> int:
        """Told by a timeline that ``key`` is about to change; at which offset."""
        offset = self.offset
        if offset == READ_ONLY:
            raise RuntimeError("state may change only while a record is replayed")
        self._journal.append((offset, timeline, key))
        return offset

    def commit(self, offset: int) -> None:
        """Nothing below ``offset`` will be taken back any more, nor be read as it was before."""
        journal = self._journal
        if len(journal) > _FEW and journal[-1][0] < offset:
            for _, timeline, _ in journal:
                timeline.forget_all()
            journal.clear()
        while journal and journal[0][0] < offset:
            _, timeline, key = journal.popleft()
            timeline.forget(key)

    def roll_back(self, offset: int) -> None:
        """Undo what was changed at ``offset`` and above."""
        journal = self._journal
        while journal and journal[-1][0] >= offset:
            _, timeline, key = journal.pop()
            timeline.undo(key)


class _Timeline(ABC):
    """The values from before, by key: (offset of the change, value before it), in the order of the changes."""

    __slots__ = ("_before", "_registry")

    def __init__(self, registry: SnapshotRegistry) -> None:
        self._registry = registry
        self._before: dict[Any, list[tuple[int, Any]]] = {}

    @abstractmethod
    def _restore(self, key: Any, value: Any) -> None:
        """Let ``key`` have a value it had before, or not be there for _ABSENT."""

    def _note(self, key: Any, before: Any) -> None:
        offset = self._registry.note(self, key)
        known = self._before.get(key)
        if known is None:
            self._before[key] = [(offset, before)]
        else:
            known.append((offset, before))

    def _at(self, key: Any, offset: int, now: Any) -> Any:
        """The value at ``offset`` of a key whose value is ``now``."""
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
        """Drop the value from before the earliest change of ``key``."""
        changes = self._before[key]
        del changes[0]
        if not changes:
            del self._before[key]

    def forget_all(self) -> None:
        """Drop all values from before."""
        self._before.clear()


class TimelineDict(_Timeline, Generic[K, V]):
    """A dict. Plain access is to the values now, ``_at`` methods to those at an offset not below the committed one."""

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
        """Remove ``key`` and return what it had; None where it is not there."""
        value = self._now.get(key)
        if key in self._now:
            del self[key]
        return value

    def __getitem__(self, key: K) -> V:
        return self._now[key]

    def get(self, key: K) -> V | None:
        """The value now, or None."""
        return self._now.get(key)

    def __contains__(self, key: object) -> bool:
        return key in self._now

    def __len__(self) -> int:
        return len(self._now)

    def __iter__(self) -> Iterator[K]:
        return iter(self._now)

    def keys(self) -> KeysView[K]:
        """A dict's."""
        return self._now.keys()

    def values(self) -> ValuesView[V]:
        """A dict's."""
        return self._now.values()

    def items(self) -> ItemsView[K, V]:
        """A dict's."""
        return self._now.items()

    def get_at(self, key: K, offset: int) -> V | None:
        """The value at ``offset``, or None."""
        now = self._now.get(key)
        if not self._before:
            return now
        value = self._at(key, offset, _ABSENT if now is None else now)
        return None if value is _ABSENT else value

    def items_at(self, offset: int) -> ItemsView[K, V]:
        """The items at ``offset``: a view where nothing is under way, else of a copy."""
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
    """One value."""

    __slots__ = ("_value",)

    def __init__(self, registry: SnapshotRegistry, value: V) -> None:
        super().__init__(registry)
        self._value = value

    def get(self) -> V:
        """The value now."""
        return self._value

    def set(self, value: V) -> None:
        """Let it be ``value`` from the record replayed on."""
        if self._registry.offset != COMMITTED:
            self._note(None, self._value)
        self._value = value

    def get_at(self, offset: int) -> V:
        """The value at ``offset``, not below the committed one."""
        value: V = self._at(None, offset, self._value)
        return value

    def _restore(self, key: None, value: V) -> None:  # noqa: ARG002  there is but one key
        self._value = value
