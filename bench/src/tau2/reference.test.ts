import { describeNeeding, temporaryTree } from "@aenv/testing";
import { describe, expect, it } from "vitest";
import { findReference } from "./reference.ts";

describe("the Python reference", () => {
  it("reports a missing checkout, not set or not found", async () => {
    expect(await findReference("")).toContain("AENV_TAU2_CHECKOUT names no checkout");
    expect(await findReference("/nowhere")).toContain("holds no src/tau2");
  });
});

/** The part of the reference that the script uses: two tasks, of which the second fails if the first's world still exists. */
const registry = `
from types import SimpleNamespace as Record

class World:
    def __init__(self):
        self.calls = 0
    def set_state(self, initialization_data, initialization_actions, message_history):
        assert message_history == []
    def get_response(self, call):
        self.calls += 1
        assert (call.name, call.requestor, call.arguments, self.calls) == ("look", "assistant", {"at": self.calls}, self.calls)

action = lambda at: Record(name="look", requestor="assistant", arguments={"at": at})
task = Record(initial_state=None, evaluation_criteria=Record(actions=[action(1), action(2)]))
registry = Record(get_env_constructor=lambda name: World, get_tasks_loader=lambda name: lambda: [task, task])
`;

describeNeeding("python", "a checkout of the reference", () => {
  it("reports its rate", async () => {
    using tree = temporaryTree({
      "src/tau2/__init__.py": "",
      "src/tau2/registry.py": registry,
      "src/tau2/data_model/__init__.py": "",
      "src/tau2/data_model/message.py": "class ToolCall:\n    def __init__(self, **fields):\n        self.__dict__.update(fields)\n",
    });
    const reference = await findReference(tree.path);
    if (typeof reference === "string") throw new Error(reference);
    expect(await reference.rate("airline")).toBeGreaterThan(0);
  });

  it("reports missing packages", async () => {
    using tree = temporaryTree({ "src/tau2/__init__.py": "", "src/tau2/registry.py": "import a_package_that_is_not_there" });
    expect(await findReference(tree.path)).toContain("cannot load tau2: ModuleNotFoundError");
  });
});
