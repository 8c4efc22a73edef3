import { valueError } from "@aenv/benchmark";
import { text } from "../../core/tools/parameters.ts";
import { type Side, toolsOf } from "../../core/tools/tool.ts";
import type { ToolkitDefinition } from "../../core/tools/toolkit.ts";
import { equals, lookup } from "../../python/equality.ts";
import type { Instance } from "../../python/model/model.ts";
import { str } from "../../python/repr.ts";
import { assign, attribute } from "../../python/values/objects.ts";
import type { PyValue } from "../../python/values/values.ts";
import { type MockUserDb, Notification } from "./model.ts";

const { read, write, helper } = toolsOf<Side<MockUserDb>>();

const checkNotifications = read({
  name: "check_notifications",
  summary: "Look at your notifications, read and unread.",
  parameters: {},
  run: (_, { db }) => [...attribute(db, "notifications").values()],
});

const dismissNotification = write({
  name: "dismiss_notification",
  summary: "ToolDecorator one of your notifications as read.",
  parameters: { notification_id: text("The notification to dismiss.") },
  run({ notification_id }, { db }) {
    assign(notificationOf(db, notification_id), "status", "read");
    return `Notification ${str(notification_id)} dismissed`;
  },
});

const addNotification = helper({
  name: "add_notification",
  parameters: ["notification_id", "message"],
  optionals: { task_id: null },
  run({ notification_id, message, task_id }, { db }) {
    const notification = Notification.create({ notification_id, message, status: "unread", task_id });
    attribute(db, "notifications").set(notification.notification_id, notification);
    return notification;
  },
});

const assertNotificationStatus = helper({
  name: "assert_notification_status",
  parameters: ["notification_id", "expected_status"],
  run: ({ notification_id, expected_status }, { db }) => equals(notificationOf(db, notification_id).status, expected_status),
});

function notificationOf(db: MockUserDb, id: PyValue): Instance<typeof Notification> {
  const notification = lookup(attribute(db, "notifications"), id);
  if (notification === undefined) throw valueError(`Notification ${str(id)} not found`);
  return notification;
}

export const mockUserTools: ToolkitDefinition<MockUserDb, null> = {
  className: "MockUserTools",
  tools: [checkNotifications, dismissNotification],
  helpers: [addNotification, assertNotificationStatus],
};
