import type { PlatformLink } from "../link/link.ts";

/** An open sandbox, and how it is reached. */
export interface ResolvedSandbox {
  readonly link: PlatformLink;
  readonly instanceId: string;
  readonly id: string;
  readonly name: string;
  readonly image: string | null;
  readonly env: Readonly<Record<string, string>>;
}

/** The sandbox that an object of the environment's code stands for. */
export interface SandboxTarget {
  /** Throws the reason if there is none. */
  resolve(): ResolvedSandbox;
  /** The given signal together with that of the call in which the object is used. */
  signalWith(signal: AbortSignal | undefined): AbortSignal | undefined;
}
