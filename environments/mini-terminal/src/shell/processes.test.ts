import { spawn } from "node:child_process";
import { once } from "node:events";
import { describe, expect, it } from "vitest";
import { childrenOf, descendantsOf, endsAtInterrupt, listProcesses, parseStat } from "./processes.ts";

describe("processes", () => {
  it("are read from a line of the kernel, whatever their name is", () => {
    const numbers = Array.from({ length: 46 }, (_, at) => at).join(" ");
    expect(parseStat(`12 (a) Z (b) S 7 12 9 ${numbers}\n`)).toEqual({ pid: 12, parent: 7, group: 12, session: 9 });
    expect(parseStat(`12 (dead) Z 7 12 9 ${numbers}`)).toBeNull();
    expect(parseStat("")).toBeNull();
  });

  it.runIf(process.platform === "linux")("are listed with this one, and as a child of its parent", () => {
    const own = listProcesses().find(({ pid }) => pid === process.pid);
    expect(own?.parent).toBe(process.ppid);
    expect(childrenOf(process.ppid)).toContain(process.pid);
  });

  it.runIf(process.platform === "linux")("end at an interrupt unless they handle or ignore it", async () => {
    const ended = [];
    for (const before of ["", "trap '' INT;", "trap : INT;"]) {
      const [program = "", ...args] = before === "" ? ["sleep", "50"] : ["bash", "-c", `${before} echo ready; sleep 50; :`];
      const child = spawn(program, args, { stdio: ["ignore", "pipe", "ignore"], detached: true });
      await (before === "" ? once(child, "spawn") : once(child.stdout, "data"));
      ended.push(endsAtInterrupt(child.pid as number));
      process.kill(-(child.pid as number), "SIGKILL");
    }
    expect(ended).toEqual([true, false, false]);
  });

  it("have descendants at every level", () => {
    const one = (pid: number, parent: number) => ({ pid, parent, group: 1, session: 1 });
    const all = [one(2, 1), one(3, 2), one(4, 3), one(5, 1)];
    expect(descendantsOf(2, all).map(({ pid }) => pid)).toEqual([3, 4]);
  });
});
