"""Time: the clock, the timer, and the purgatory where requests wait. The only room that may ask what time it is.

Left out: periodic tasks (a task that wants to run again schedules itself) and threads; all of it belongs to the loop thread.
"""
