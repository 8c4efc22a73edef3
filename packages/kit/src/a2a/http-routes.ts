import { A2aError } from "./error.ts";
import type { OperationName } from "./operations.ts";

/** An operation that a path names, and what the path says about it. */
export interface HttpOperation {
  readonly name: OperationName;
  readonly version: "1.0" | "0.3";
  readonly params: Readonly<Record<string, string>>;
}

const routes: readonly (readonly [method: RegExp, path: RegExp, name: OperationName])[] = [
  [/^POST$/, /^\/message:send$/, "SendMessage"],
  [/^POST$/, /^\/message:stream$/, "SendStreamingMessage"],
  [/^GET$/, /^\/tasks$/, "ListTasks"],
  [/^GET$/, /^\/tasks\/(?<id>[^/:]+)$/, "GetTask"],
  [/^POST$/, /^\/tasks\/(?<id>[^/:]+):cancel$/, "CancelTask"],
  // The protocol's definition says GET, its text POST.
  [/^(?:GET|POST)$/, /^\/tasks\/(?<id>[^/:]+):subscribe$/, "SubscribeToTask"],
  [/^POST$/, /^\/tasks\/(?<taskId>[^/:]+)\/pushNotificationConfigs$/, "CreateTaskPushNotificationConfig"],
  [/^GET$/, /^\/tasks\/(?<taskId>[^/:]+)\/pushNotificationConfigs$/, "ListTaskPushNotificationConfigs"],
  [/^GET$/, /^\/tasks\/(?<taskId>[^/:]+)\/pushNotificationConfigs\/(?<id>[^/]+)$/, "GetTaskPushNotificationConfig"],
  [/^DELETE$/, /^\/tasks\/(?<taskId>[^/:]+)\/pushNotificationConfigs\/(?<id>[^/]+)$/, "DeleteTaskPushNotificationConfig"],
  [/^GET$/, /^\/(?:extendedAgentCard|card)$/, "GetExtendedAgentCard"],
];

/** Finds the operation at a path below `/a2a`; below `/v1` it is that of version 0.3. */
export function findHttpRoute(method: string, path: string): HttpOperation | null {
  const version = path.startsWith("/v1/") ? "0.3" : "1.0";
  let decoded: string;
  try {
    decoded = decodeURIComponent(version === "0.3" ? path.slice("/v1".length) : path);
  } catch {
    throw new A2aError("REQUEST", "The path is badly escaped");
  }
  for (const [methods, pattern, name] of routes) {
    const match = methods.test(method) ? pattern.exec(decoded) : null;
    if (match !== null) return { name, version, params: { ...match.groups } };
  }
  return null;
}
