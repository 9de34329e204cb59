"""Time: the clock, the timer, and the purgatory where requests wait. Only this package may ask for the time.

Left out: periodic tasks (a task that wants to run again schedules itself) and threads; all of it belongs to the loop thread.
"""
