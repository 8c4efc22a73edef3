import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { createConnection } from "node:net";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { describeNeeding } from "./needs.ts";
import { type RedisServer, startRedis } from "./redis.ts";

/** What the server answers to one command, as it stands on the wire. */
async function ask(port: number, command: string): Promise<string> {
  const socket = createConnection(port, "127.0.0.1");
  try {
    socket.write(`${command}\r\n`);
    const [answer] = await once(socket, "data");
    return String(answer).trim();
  } finally {
    socket.destroy();
  }
}

describeNeeding("redis", "startRedis", () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis({ appendonly: "yes", appendfsync: "always" });
  });
  afterAll(() => redis?.[Symbol.asyncDispose]());

  it("starts a server that answers", async () => {
    expect(await ask(redis.port, "PING")).toBe("+PONG");
  });

  it.each(["SIGTERM", "SIGKILL"] as const)("keeps port and data when it is ended by %s and started again", async (signal) => {
    await ask(redis.port, `SET key ${signal}`);
    await redis.stop(signal);
    await expect(ask(redis.port, "PING")).rejects.toThrow("ECONNREFUSED");
    await redis.start();
    expect(await ask(redis.port, "GET key")).toContain(signal);
  });

  it("reports the server's output when it does not start", async () => {
    await expect(startRedis({ "no-such-setting": "1" })).rejects.toThrow(/did not start:[\s\S]*no-such-setting/);
  });

  it("leaves no process and no file", async () => {
    const other = await startRedis();
    const folder = await folderOf(other.port);
    expect(existsSync(folder)).toBe(true);
    await other[Symbol.asyncDispose]();
    expect(existsSync(folder)).toBe(false);
    await expect(ask(other.port, "PING")).rejects.toThrow("ECONNREFUSED");
  });

  it("leaves no process and no file even when its process is killed", async () => {
    const helper = JSON.stringify(fileURLToPath(new URL("redis.ts", import.meta.url)));
    const program = `const { startRedis } = await import(${helper}); console.log((await startRedis()).port);`;
    const child = spawn(process.execPath, ["--input-type=module", "-e", program], { stdio: ["ignore", "pipe", "inherit"] });
    const [printed] = await once(child.stdout, "data");
    const port = Number(printed);
    const folder = await folderOf(port);
    child.kill("SIGKILL");
    await vi.waitFor(() => expect(existsSync(folder)).toBe(false), { timeout: 10_000 });
    // A killed process closes its port some time after the signal.
    await vi.waitFor(() => expect(ask(port, "PING")).rejects.toThrow("ECONNREFUSED"), { timeout: 10_000 });
  });
});

async function folderOf(port: number): Promise<string> {
  const [, folder = ""] = /(\/\S+)/.exec(await ask(port, "CONFIG GET dir")) ?? [];
  return folder;
}
