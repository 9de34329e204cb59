"""Faults in odradek's task assignor, put in while a context lasts, each of which the comparison must find."""

from odradek.coordinator.group.assignor import sticky_task_assignor
from tests.campaigns.planted import Faults

FAULTS = Faults()
_Queue = sticky_task_assignor._PriorityQueue
_Quota = sticky_task_assignor._Quota
_Process = sticky_task_assignor.ProcessState
_Assignment = sticky_task_assignor._Assignment


def _pop_the_newest(queue):
    heap = queue._heap
    newest = max(range(len(heap)), key=lambda place: (-heap[place][0], place))
    return heap.pop(newest)[1]


def _push_ahead_of_equals(queue, key, item):
    heap = queue._heap
    heap.insert(next((place for place, (other, _) in enumerate(heap) if other >= key), len(heap)), (key, item))


def _round_down(quota, count):
    if count == quota.value:
        quota._tasks -= count
        quota._members -= 1
        quota.value = quota._tasks // quota._members if quota._members else 0


def _keep_the_queue(process, member, task, *, is_active):
    process._add(member, task, is_active=is_active)


def _same_process_twice(assignment, by_load, task):
    process = by_load.pop()
    process.add_to_least_loaded(task, is_active=False)
    by_load.push(process.load, process)
    return True


def _by_code_points(text):
    return text.encode("utf-32-be")


def _less_in_either(members):
    chosen = None
    for member in members:
        if chosen is None or member.process.load < chosen.process.load or member.count < chosen.count:
            chosen = member
    return chosen


FAULTS.put("equals-from-the-end", _Queue, "pop", _pop_the_newest)
FAULTS.put("equals-from-the-front", _Queue, "push", _push_ahead_of_equals)
FAULTS.put("quota-never-changes", _Quota, "note", lambda quota, count: None)
FAULTS.put("quota-is-rounded-down", _Quota, "note", _round_down)
FAULTS.put("members-stay-in-their-queue", _Process, "add_to_member", _keep_the_queue)
FAULTS.put("a-process-gets-a-task-twice", _Assignment, "_give_standby", _same_process_twice)
FAULTS.put("no-standby-for-its-state", _Assignment, "_previous_holder", lambda assignment, task: None)
FAULTS.put("is-not-sticky", sticky_task_assignor, "_tasks", lambda tasks, places: [])
FAULTS.put("state-does-not-count", sticky_task_assignor, "_members_with_state", lambda group, members, places: {})
FAULTS.put("offsets-do-not-rank", sticky_task_assignor, "_by_rank", lambda candidate: candidate[0])
FAULTS.put("standbys-do-not-rank", sticky_task_assignor, "_by_rank", lambda candidate: candidate[1])
FAULTS.put("less-loaded-in-either", sticky_task_assignor, "_least_loaded", _less_in_either)
FAULTS.put("the-first-with-state", sticky_task_assignor, "_least_loaded", lambda members: next(iter(members), None))
FAULTS.put("by-subtopology-first", sticky_task_assignor, "_by_partition", lambda task: task)
FAULTS.put("by-code-points", sticky_task_assignor, "text_order", _by_code_points)
