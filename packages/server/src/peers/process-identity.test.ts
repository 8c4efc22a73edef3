import { spawn } from "node:child_process";
import { once } from "node:events";
import { describe, expect, it } from "vitest";
import { identityOf, isRunning, ownIdentity } from "./process-identity.ts";

describe("a process's identity", () => {
  it("is its own for as long as it runs", async () => {
    expect(isRunning(ownIdentity())).toBe(true);
    const child = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"], { stdio: "ignore" });
    const identity = identityOf(child.pid as number) ?? "";
    expect(isRunning(identity)).toBe(true);
    child.kill("SIGKILL");
    await once(child, "exit");
    expect(isRunning(identity)).toBe(false);
  });

  it.runIf(process.platform === "linux")("is not that of another with the same number", () => {
    const [pid, start, boot] = ownIdentity().split(" ");
    expect(isRunning(`${pid} ${Number(start) + 1} ${boot}`)).toBe(false);
    expect(isRunning(`${pid} ${start} 00000000`)).toBe(false);
    expect(isRunning("")).toBe(false);
    expect(isRunning("-1 0 0")).toBe(false);
  });
});
