import { table } from "../../core/database/table.ts";
import { dict, list, literal, nullable, text, withDefault } from "../../python/model/field-types.ts";
import { type Instance, model } from "../../python/model/model.ts";
import { Dict } from "../../python/values/values.ts";

const module = "tau2.domains.mock.data_model";

export const Task = model(
  "Task",
  {
    task_id: text,
    title: text,
    description: withDefault(nullable(text), null),
    status: literal("pending", "completed"),
  },
  { module },
);

export const User = model("User", { user_id: text, name: text, tasks: list(text) }, { module });

export const MockDb = model("MockDB", { tasks: table(Task), users: table(User) }, { module, extra: "forbid" });

export const Notification = model(
  "Notification",
  {
    notification_id: text,
    message: text,
    status: withDefault(literal("unread", "read"), "unread"),
    task_id: withDefault(nullable(text), null),
  },
  { module, extra: "forbid" },
);

export const MockUserDb = model(
  "MockUserDB",
  { notifications: withDefault(dict(Notification), () => new Dict()) },
  { module, extra: "forbid" },
);

export type MockDb = Instance<typeof MockDb>;
export type MockUserDb = Instance<typeof MockUserDb>;
