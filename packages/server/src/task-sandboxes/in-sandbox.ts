import type { linkRequests } from "@aenv/contract";
import type { LinkRequest, LinkTools } from "../link/link-request.ts";
import type { OpenSandbox } from "../sandboxes/init-connections.ts";
import { answered } from "../sandboxes/init-failure.ts";
import type { TaskSandboxes } from "./task-sandboxes.ts";

/** What the handlers of requests about sandboxes share. */
export interface HandlerOptions extends LinkTools {
  readonly sandboxes: TaskSandboxes;
}

/** The requests about sandboxes. */
export type TaskPath =
  | "/open"
  | "/close"
  | "/egress"
  | "/snapshot"
  | "/snapshot/remove"
  | "/run"
  | "/signal"
  | Extract<keyof typeof linkRequests, `/files/${string}`>;

/** The paths whose parameters name a sandbox. */
export type SandboxPath = Exclude<TaskPath, "/open" | "/snapshot/remove">;

/** Works in the sandbox that the request names. */
export async function inSandbox(
  { hostId, instanceId, given, signal }: LinkRequest<SandboxPath>,
  sandboxes: TaskSandboxes,
  work: (sandbox: OpenSandbox) => Promise<unknown>,
): Promise<unknown> {
  const sandbox = await sandboxes.use(hostId, instanceId, given.sandbox, signal);
  try {
    return await answered(work(sandbox));
  } finally {
    sandbox.release();
  }
}
