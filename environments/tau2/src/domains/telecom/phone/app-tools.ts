import { text } from "../../../core/tools/parameters.ts";
import { toolsOf } from "../../../core/tools/tool.ts";
import { lookup } from "../../../python/equality.ts";
import { repr, str } from "../../../python/repr.ts";
import { PyTuple, type PyValue } from "../../../python/values/values.ts";
import { lowered } from "../lower.ts";
import { type AppStatus, PERMISSIONS, type PhoneSide, type TelecomUserDb } from "./model.ts";
import { canSendMms, deviceOf } from "./network.ts";
import { withStatusBar } from "./status-bar.ts";

const { read, write, helper } = toolsOf<PhoneSide>();

const appName = text("The app's name.");

export const checkInstalledApps = read({
  name: "check_installed_apps",
  summary: "List the apps on your phone.",
  parameters: {},
  run: (_, { db }) => `The following apps are installed on the phone: ${[...deviceOf(db).app_statuses.keys()].join(", ")}`,
});

export const checkAppStatus = read({
  name: "check_app_status",
  summary: "See the details of an app.",
  parameters: { app_name: appName },
  run({ app_name }, { db }) {
    const app = findApp(db, app_name);
    if (app === undefined) return notFound(app_name);
    const granted = grantedTo(app).map((name) => `\n   - ${name}`);
    const permissions = granted.length === 0 ? " - Permissions: None granted." : ` - Permissions Granted:${granted.join("")}`;
    return `Status for App: ${str(app_name)}\n${permissions}`;
  },
});

export const checkAppPermissions = read({
  name: "check_app_permissions",
  summary: "See what an app is permitted to use.",
  parameters: { app_name: appName },
  run({ app_name }, { db }) {
    const app = findApp(db, app_name);
    if (app === undefined) return notFound(app_name);
    const granted = grantedTo(app);
    if (granted.length === 0) return `App '${str(app_name)}' currently has no permissions granted.`;
    return `App '${str(app_name)}' has permission for: ${granted.join(", ")}.`;
  },
});

export const grantAppPermission = write({
  name: "grant_app_permission",
  summary: "Permit an app to use something.",
  parameters: { app_name: appName, permission: text("What it may use: sms, storage, phone or network.") },
  run({ app_name, permission }, { db }) {
    const app = findApp(db, app_name);
    const name = lowered(permission);
    if (app === undefined) return withStatusBar(`Error. App '${str(app_name)}' not found. Cannot grant permission.`, db);
    if (!setPermission(app, name, true)) {
      const available = repr([...PERMISSIONS]);
      return withStatusBar(`Error. Permission '${name}' not tracked for app '${str(app_name)}', available permissions: ${available}`, db);
    }
    return withStatusBar(`Success. Permission '${name}' granted to app '${str(app_name)}'.`, db);
  },
});

export const canSendMmsTool = read({
  name: "can_send_mms",
  summary: "Try whether your messaging app can send picture messages.",
  parameters: {},
  run: (_, { db }) => `Your messaging app ${canSendMms(db) ? "can" : "cannot"} send MMS messages.`,
});

export const appHelpers = [
  helper({
    name: "remove_app_permission",
    parameters: ["app_name", "permission"],
    run({ app_name, permission }, { db }) {
      const app = findApp(db, app_name);
      const name = lowered(permission);
      if (app === undefined) return new PyTuple([false, `App '${str(app_name)}' not found. Cannot remove permission.`]);
      if (!setPermission(app, name, false)) {
        return new PyTuple([false, `Permission '${name}' not tracked for app '${str(app_name)}'.`]);
      }
      return new PyTuple([true, `Permission '${name}' removed from app '${str(app_name)}'.`]);
    },
  }),
];

function findApp(db: TelecomUserDb, name: PyValue): AppStatus | undefined {
  return lookup(deviceOf(db).app_statuses, name);
}

const notFound = (name: PyValue): string => `App '${str(name)}' not found on this phone.`;

function grantedTo({ permissions }: AppStatus): string[] {
  return PERMISSIONS.filter((name) => permissions[name]);
}

/** False if there is no such permission. */
function setPermission({ permissions }: AppStatus, name: string, isGranted: boolean): boolean {
  const known = PERMISSIONS.find((candidate) => candidate === name);
  if (known !== undefined) permissions[known] = isGranted;
  return known !== undefined;
}
