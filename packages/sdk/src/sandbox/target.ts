import type { ControlClient } from "../platform/control-client.ts";
import type { SchedulerClient } from "../platform/scheduler-client.ts";

/** An instance on a platform, and the clients that reach it. */
export interface SandboxTarget {
  readonly id: string;
  readonly control: ControlClient;
  readonly scheduler: Pick<SchedulerClient, "presignUrl" | "getInstance">;
}
