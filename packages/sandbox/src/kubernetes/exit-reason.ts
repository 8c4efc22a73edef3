import { describeExit, exitOf } from "../host/exit-reason.ts";
import type { PodEnd } from "./pod/progress.ts";
import type { KubernetesSandbox } from "./sandbox.ts";

const REASON_LINES = 40;

/** Why a sandbox has ended, as a sentence. */
export async function describeEnd(end: PodEnd, sandbox: KubernetesSandbox): Promise<string> {
  const { memoryMb } = sandbox.state;
  switch (end.kind) {
    case "cluster":
      return end.reason;
    case "out-of-memory":
      return `the program ran out of memory${memoryMb === null ? "" : ` (its limit is ${memoryMb} MB)`}`;
    case "exit":
      return describeExit({ exit: exitOf(end.code), lines: await sandbox.tail(REASON_LINES).catch(() => []), memoryMb });
  }
}
