import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openProcessTable } from "@aenv/sandbox";
import { temporaryTree } from "@aenv/testing";
import { describe, expect, it, onTestFinished } from "vitest";
import { lockHome } from "./home-lock.ts";
import { ownIdentity } from "./own-identity.ts";

/** A process that locks the home and then waits; it prints `locked` or the error code. */
async function lockElsewhere(home: string): Promise<{ child: ChildProcess; printed: string }> {
  const module = JSON.stringify(new URL("./home-lock.ts", import.meta.url).href);
  const program = `const { lockHome } = await import(${module});
    try { lockHome(process.argv[1]); console.log("locked"); setInterval(() => {}, 1000); } catch (error) { console.log(error.code); }`;
  const child = spawn(process.execPath, ["--input-type=module", "--eval", program, home], { stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  const [printed] = await once(child.stdout, "data");
  return { child, printed: String(printed).trim() };
}

describe("a home", () => {
  it("is refused while a running server uses it, and free when that has unlocked it", () => {
    using tree = temporaryTree();
    const unlock = lockHome(tree.path);
    expect(() => lockHome(tree.path)).toThrow(`another server (process ${process.pid}) uses ${tree.path}`);
    unlock();
    const again = lockHome(tree.path);
    // A second unlock does not remove the lock of another server.
    unlock();
    expect(() => lockHome(tree.path)).toThrow(/another server/);
    again();
    expect(readdirSync(tree.path)).toEqual([]);
  });

  it("can be locked after its server was killed", async () => {
    using tree = temporaryTree();
    const { child, printed } = await lockElsewhere(tree.path);
    expect(printed).toBe("locked");
    expect(() => lockHome(tree.path)).toThrow(`another server (process ${child.pid})`);
    child.kill("SIGKILL");
    await once(child, "exit");
    lockHome(tree.path)();
    expect(readdirSync(tree.path)).toEqual([]);
  });

  it("is locked by exactly one of several servers that find a stale lock at the same time", async () => {
    using tree = temporaryTree();
    writeFileSync(join(tree.path, "server.lock"), "1 0 gone");
    const others = await Promise.all(Array.from({ length: 3 }, () => lockElsewhere(tree.path)));
    expect(others.map(({ printed }) => printed).sort()).toEqual(["locked", ...Array(2).fill("server.locked")]);
  });

  it.runIf(process.platform === "linux")("is refused while a running server of an earlier build uses it", () => {
    using tree = temporaryTree();
    const { pid, start } = ownIdentity(openProcessTable());
    writeFileSync(join(tree.path, "server.lock"), `${pid} ${start.replace(".", " ")} 0123456789ab`);
    expect(() => lockHome(tree.path)).toThrow(`another server (process ${pid})`);
  });

  it("is not locked by a file that names no running process", () => {
    using tree = temporaryTree();
    for (const content of ["", "nonsense", `${process.pid}`, `${process.pid} 1 2 3`]) {
      writeFileSync(join(tree.path, "server.lock"), content);
      lockHome(tree.path)();
    }
  });
});
