import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryTree } from "@aenv/testing";
import { describe, expect, it, onTestFinished } from "vitest";
import { lockHome } from "./home-lock.ts";

/** A process that locks the home and then waits; it says `locked` or why it cannot. */
async function lockElsewhere(home: string): Promise<{ child: ChildProcess; said: string }> {
  const module = JSON.stringify(new URL("./home-lock.ts", import.meta.url).href);
  const program = `const { lockHome } = await import(${module});
    try { lockHome(process.argv[1]); console.log("locked"); setInterval(() => {}, 1000); } catch (error) { console.log(error.code); }`;
  const child = spawn(process.execPath, ["--input-type=module", "--eval", program, home], { stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  const [said] = await once(child.stdout, "data");
  return { child, said: String(said).trim() };
}

describe("a home", () => {
  it("is refused while a living server uses it, and free when that has gone", () => {
    using tree = temporaryTree();
    const unlock = lockHome(tree.path);
    expect(() => lockHome(tree.path)).toThrow(`another server (process ${process.pid}) uses ${tree.path}`);
    unlock();
    const again = lockHome(tree.path);
    // Who has unlocked already does not unlock for others.
    unlock();
    expect(() => lockHome(tree.path)).toThrow(/another server/);
    again();
    expect(readdirSync(tree.path)).toEqual([]);
  });

  it("is taken over from a server that was killed", async () => {
    using tree = temporaryTree();
    const { child, said } = await lockElsewhere(tree.path);
    expect(said).toBe("locked");
    expect(() => lockHome(tree.path)).toThrow(`another server (process ${child.pid})`);
    child.kill("SIGKILL");
    await once(child, "exit");
    lockHome(tree.path)();
    expect(readdirSync(tree.path)).toEqual([]);
  });

  it("goes to one of those who come at once to take over", async () => {
    using tree = temporaryTree();
    writeFileSync(join(tree.path, "server.lock"), "1 0 gone");
    const others = await Promise.all(Array.from({ length: 3 }, () => lockElsewhere(tree.path)));
    expect(others.map(({ said }) => said).sort()).toEqual(["locked", ...Array(2).fill("server.locked")]);
  });

  it("is not kept by what is no name of a process", () => {
    using tree = temporaryTree();
    for (const content of ["", "nonsense", `${process.pid}`, `${process.pid} 1 2 3`]) {
      writeFileSync(join(tree.path, "server.lock"), content);
      lockHome(tree.path)();
    }
  });
});
