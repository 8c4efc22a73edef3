import { valueError } from "@aenv/benchmark";
import { optional, text } from "../../core/tools/parameters.ts";
import { type Side, toolsOf } from "../../core/tools/tool.ts";
import type { ToolkitDefinition } from "../../core/tools/toolkit.ts";
import { equals } from "../../python/equality.ts";
import { str } from "../../python/repr.ts";
import { assign, attribute } from "../../python/values/objects.ts";
import type { PyValue } from "../../python/values/values.ts";
import { type MockDb, Task } from "./model.ts";

const { read, write, generic, helper } = toolsOf<Side<MockDb>>();

const createTask = write({
  name: "create_task",
  summary: "Add a task to a user's list.",
  parameters: {
    user_id: text("Whose list the task goes on."),
    title: text("What the task is called."),
    description: optional(text("More about the task, if there is more to say."), null),
  },
  run({ user_id, title, description }, { db }) {
    const users = attribute(db, "users");
    if (users.find(user_id) === undefined) throw valueError(`User ${str(user_id)} not found`);
    const task_id = `task_${db.tasks.size + 1}`;
    const task = Task.create({ task_id, title, description, status: "pending" });
    // As in the reference, the id is not checked: after a gap an existing task is replaced.
    db.tasks.set(task_id, task);
    users.edit(user_id)?.tasks.push(task_id);
    return task;
  },
});

const getUsers = read({
  name: "get_users",
  summary: "List every user.",
  parameters: {},
  run: (_, { db }) => [...attribute(db, "users").values()],
});

const updateTaskStatus = write({
  name: "update_task_status",
  summary: "Set the status of a task.",
  parameters: {
    task_id: text("The task to change."),
    status: { schema: { type: "string", enum: ["pending", "completed"] }, description: "The status that it gets." },
  },
  run({ task_id, status }, { db }) {
    const task = attribute(db, "tasks").edit(task_id);
    if (task === undefined) throw valueError(`Task ${str(task_id)} not found`);
    assign(task, "status", status);
    return task;
  },
});

const transferToHumanAgents = generic({
  name: "transfer_to_human_agents",
  summary: "Hand the user over to a human agent.",
  details: "Only for users who ask for a human, or whose request no other tool can serve.",
  parameters: { summary: text("What the user wants, in brief.") },
  run: () => "Transfer successful",
});

const assertNumberOfTasks = helper({
  name: "assert_number_of_tasks",
  parameters: ["user_id", "expected_number"],
  run({ user_id, expected_number }, { db }) {
    const user = attribute(db, "users").find(user_id);
    if (user === undefined) throw valueError(`User ${str(user_id)} not found`);
    return equals(user.tasks.length, expected_number);
  },
});

const assertTaskStatus = helper({
  name: "assert_task_status",
  parameters: ["task_id", "expected_status"],
  run({ task_id, expected_status }, { db }) {
    const task = attribute(db, "tasks").find(task_id);
    if (task === undefined) throw valueError(`Task ${str(task_id)} not found`);
    return equals(task.status as PyValue, expected_status);
  },
});

export const mockTools: ToolkitDefinition<MockDb, null> = {
  className: "MockTools",
  tools: [createTask, getUsers, updateTaskStatus, transferToHumanAgents],
  helpers: [assertNumberOfTasks, assertTaskStatus],
};
