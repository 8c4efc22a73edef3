import type { SandboxAddress } from "@aenv/sandbox";

/** An instance's place in a sandbox. */
export interface Slot {
  readonly sandboxId: string;
  readonly address: SandboxAddress;
  /** Path prefix of the instance's routes inside the sandbox. */
  readonly prefix: string;
  /** The sandbox holds this instance only, and is destroyed with it. */
  readonly isOwnSandbox: boolean;
  /** What the instances of a shared sandbox have in common, so that others of the kind can share it too. */
  readonly group?: string;
  /** The roles of its environment, in order; absent if it has none. */
  readonly roles?: readonly string[];
  /** Set if the instance is a program that has only some of the routes of an instance, or none. */
  readonly program?: SlotProgram;
}

export interface SlotProgram {
  /** False for a sandbox that is used for commands, files and ports only. */
  readonly hasServer: boolean;
  /** The path that says whether the program is healthy; null: `/health`, if it has that. */
  readonly healthPath: string | null;
}
