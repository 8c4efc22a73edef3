"""Runs a domain's golden actions in new worlds of the Python reference, and prints the number of calls and their time."""

import json
import sys
import time

from tau2.data_model.message import ToolCall
from tau2.registry import registry

domain = sys.argv[1]
create = registry.get_env_constructor(domain)
tasks = registry.get_tasks_loader(domain)()


def play(task):
    world = create()
    state = task.initial_state
    world.set_state(
        initialization_data=state.initialization_data if state else None,
        initialization_actions=state.initialization_actions if state else None,
        message_history=(state.message_history if state else None) or [],
    )
    actions = (task.evaluation_criteria.actions if task.evaluation_criteria else None) or []
    for action in actions:
        world.get_response(ToolCall(id="1", name=action.name, arguments=action.arguments, requestor=action.requestor))
    return len(actions)


play(tasks[0])
started = time.perf_counter()
calls = 0
for task in tasks:
    calls += play(task)
    # One world of a large database takes long enough to make; some of the tasks are measure enough.
    if time.perf_counter() - started > 5:
        break
print(json.dumps({"calls": calls, "seconds": time.perf_counter() - started}))
