import type { SandboxAddress } from "@aenv/sandbox";

/** An instance's place in a sandbox. */
export interface Slot {
  readonly sandboxId: string;
  readonly address: SandboxAddress;
  /** Path prefix of the instance's routes inside the sandbox. */
  readonly prefix: string;
  /** The sandbox holds this instance only, and is destroyed with it. */
  readonly isOwnSandbox: boolean;
}
