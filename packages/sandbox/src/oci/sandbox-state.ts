import type { SandboxExit } from "../engine/engine.ts";

/** The life of a sandbox, as this process sees it. */
export type SandboxState = Alive | Exited;

interface Alive extends Common {
  /**
   * `left`: this process has closed its connection, so the end of the connection says nothing. `ending`: its program or its init has ended; the
   * rest of it is being ended, and the reason is being found.
   */
  readonly kind: "running" | "left" | "ending";
  /** The reason that will be reported; null if it is found when the sandbox ends. */
  readonly exitReason: string | null;
  /** The process that serves its files has ended. */
  readonly hasLostFiles: boolean;
}

interface Exited extends Common {
  readonly kind: "exited";
  readonly exit: SandboxExit;
}

interface Common {
  /** This process stores its output and removes it when it has ended; otherwise another server process does. */
  readonly isKept: boolean;
}

export type SandboxEvent =
  | { readonly kind: "kept" | "taken over" | "left" | "files lost" | "connection closed" | "program ended" }
  /** The first reason counts. */
  | { readonly kind: "reason known"; readonly reason: string }
  | { readonly kind: "exited"; readonly reason: string; readonly at: Date };

export const STARTED: SandboxState = { kind: "running", isKept: false, exitReason: null, hasLostFiles: false };

export function nextState(state: SandboxState, event: SandboxEvent): SandboxState {
  if (event.kind === "kept" || event.kind === "taken over") return { ...state, isKept: event.kind === "kept" };
  if (state.kind === "exited") return state;
  switch (event.kind) {
    case "left":
      return state.kind === "running" ? { ...state, kind: "left" } : state;
    case "files lost":
      return { ...state, hasLostFiles: true };
    case "connection closed":
      return state.kind === "running" ? { ...state, kind: "ending" } : state;
    case "program ended":
      return { ...state, kind: "ending" };
    case "reason known":
      return { ...state, exitReason: state.exitReason ?? event.reason };
    case "exited":
      return { kind: "exited", isKept: state.isKept, exit: { at: event.at, reason: state.exitReason ?? event.reason } };
  }
}
