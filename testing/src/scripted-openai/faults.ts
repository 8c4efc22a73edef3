import { createHash } from "node:crypto";
import type { ModelRequest, Script, ScriptedAnswer, ScriptedTurn } from "./script.ts";

export const modelFaults = ["silent", "cut", "busy", "failing", "malformed"] as const;
export type ModelFault = (typeof modelFaults)[number];

export interface FaultOptions {
  readonly seed: number;
  /** How many of the requests get a fault, from 0 to 1. */
  readonly share: number;
  readonly onFault?: (fault: ModelFault) => void;
}

/**
 * A script in which a share of the answers is replaced by a fault: silence, an answer that is cut off, 429 with `Retry-After`, 500, or a
 * tool call whose arguments are not JSON. The same request gets the same faults in every run with this seed, whatever the order of
 * arrival; when it is repeated, the draw is another one.
 */
export function faulty(script: (request: ModelRequest) => ScriptedAnswer, { seed, share, onFault }: FaultOptions): Script {
  const times = new Map<string, number>();
  return (request) => {
    const asked = `${seed} ${request.body.seed} ${request.turn}`;
    const time = times.get(asked) ?? 0;
    times.set(asked, time + 1);
    const draw = createHash("sha256").update(`${asked} ${time}`).digest();
    if (draw.readUInt32BE(0) / 2 ** 32 >= share) return script(request);
    const fault = modelFaults[draw.readUInt32BE(4) % modelFaults.length] as ModelFault;
    onFault?.(fault);
    return faultyTurn(fault, request, script);
  };
}

function faultyTurn(fault: ModelFault, request: ModelRequest, script: (request: ModelRequest) => ScriptedAnswer): ScriptedTurn {
  switch (fault) {
    case "silent":
      return { fault };
    case "cut":
      return { fault, answer: script(request) };
    case "busy":
      return { status: 429, message: "too many requests", headers: { "retry-after": "1" } };
    case "failing":
      return { status: 500, message: "the model's engine has failed" };
    case "malformed":
      return { toolCalls: [{ name: request.tools[0]?.name ?? "none", arguments: '{"half": ' }] };
  }
}
