import type { Sandbox } from "@aenv/sandbox";
import type { TaskSandboxSpec } from "./policy.ts";

/** A sandbox of an instance, and what it was made of. */
export interface TaskSandbox {
  readonly sandbox: Sandbox;
  /** What the environment's code calls it. */
  readonly name: string;
  readonly episode: string;
  readonly spec: TaskSandboxSpec;
}

/** The sandboxes that the code of one instance has opened. */
export class InstanceSandboxes {
  readonly owner: string;
  /** The sandbox of the process in which the instance runs. */
  readonly hostId: string;
  readonly open = new Map<string, TaskSandbox>();
  /** Starts in progress, with what is started. */
  readonly starting = new Map<Promise<unknown>, Pick<TaskSandbox, "episode" | "spec">>();
  /** Why sandboxes have ended by themselves. */
  readonly ended = new Map<string, string>();
  readonly released = new AbortController();

  constructor(owner: string, hostId: string) {
    this.owner = owner;
    this.hostId = hostId;
  }

  get count(): number {
    return this.open.size + this.starting.size;
  }

  countOf(episode: string): number {
    return this.#all().filter((one) => one.episode === episode).length;
  }

  /** What they may use together. */
  get memoryMb(): number {
    return this.#all().reduce((sum, { spec }) => sum + spec.memoryMb, 0);
  }

  #all(): Pick<TaskSandbox, "episode" | "spec">[] {
    return [...this.open.values(), ...this.starting.values()];
  }

  /** The newest with this name: while an episode is reset, there may be two. */
  named(name: string): TaskSandbox | null {
    return [...this.open.values()].findLast((one) => one.name === name) ?? null;
  }
}

/** Labels from which the next server knows what a sandbox is. */
export interface TaskLabels {
  readonly instance: string;
  readonly owner: string;
  readonly host: string;
  readonly name: string;
  readonly episode: string;
  readonly spec: TaskSandboxSpec;
}

const ROLE = "task";

export function labelsOf(serverId: string, { spec, ...rest }: TaskLabels): Readonly<Record<string, string>> {
  return { server: serverId, role: ROLE, ...rest, spec: JSON.stringify(spec) };
}

export function isTaskSandbox({ labels }: Pick<Sandbox, "labels">): boolean {
  return labels.role === ROLE;
}

/** The instance that a sandbox belongs to; empty if it is no task's. */
export function instanceOf({ labels }: Pick<Sandbox, "labels">): string {
  return labels.role === ROLE ? (labels.instance ?? "") : "";
}

export function readLabels({ labels }: Pick<Sandbox, "labels">): TaskLabels {
  const { instance = "", owner = "", host = "", name = "", episode = "", spec = "{}" } = labels;
  return { instance, owner, host, name, episode, spec: JSON.parse(spec) as TaskSandboxSpec };
}
