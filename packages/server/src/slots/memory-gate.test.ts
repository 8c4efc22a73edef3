import { describe, expect, it } from "vitest";
import { MemoryGate } from "./memory-gate.ts";

const MIB = 1024 ** 2;
const never = new AbortController().signal;

function open(available: number) {
  const memory = { available };
  return { memory, gate: new MemoryGate({ minBytes: 100 * MIB, availableBytes: () => memory.available * MIB, pollMs: 1 }) };
}

describe("starts while the machine is short of memory", () => {
  it("go on at once if there is enough", async () => {
    const { gate } = open(100);
    const reasons: string[] = [];
    await gate.pass((why) => reasons.push(why), never);
    expect(reasons).toEqual([]);
  });

  it("wait with a reason, and go on in order when there is enough again", async () => {
    const { gate, memory } = open(50);
    const order: number[] = [];
    const reasons: string[] = [];
    const starts = [1, 2, 3].map((one) => gate.pass((why) => reasons.push(why), never).then(() => order.push(one)));
    expect(gate.waiting).toBe(3);
    expect(reasons[0]).toMatch(/has 50 MiB available.* until there are 100 MiB .*minAvailableMemoryMb/);
    memory.available = 200;
    await Promise.all(starts);
    expect(order).toEqual([1, 2, 3]);
    expect(gate.waiting).toBe(0);
  });

  it("end their waiting when they are cancelled, and let the others go on", async () => {
    const { gate, memory } = open(50);
    const stop = new AbortController();
    const first = gate.pass(() => {}, stop.signal);
    const second = gate.pass(() => {}, never);
    stop.abort(new Error("cancelled"));
    await expect(first).rejects.toThrow("cancelled");
    memory.available = 100;
    await second;
    expect(gate.waiting).toBe(0);
  });
});
