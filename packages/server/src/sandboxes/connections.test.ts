import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { expect, it } from "vitest";
import { SandboxConnections } from "./connections.ts";

/** Listens, and accepts nothing: the system accepts a few connections for it and ignores the others, as for a machine that is gone. */
const DEAF = `
  const server = require("node:net").createServer().listen({ port: 0, host: "127.0.0.1", backlog: 1 }, () => {
    require("node:fs").writeSync(1, server.address().port + "\\n");
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  });
`;

it.skipIf(process.platform !== "linux")("gives up a sandbox that accepts no connection", async () => {
  const child = spawn(process.execPath, ["-e", DEAF], { stdio: ["ignore", "pipe", "inherit"] });
  try {
    const [port] = await once(createInterface(child.stdout), "line");
    const connections = new SandboxConnections({ kind: "tcp", host: "127.0.0.1", port: Number(port) }, 500);
    const failures: string[] = [];
    for (let n = 0; n < 16; n++)
      connections.acquire().onClose = ({ message }) => {
        failures.push(message);
      };
    await expect.poll(() => failures, { timeout: 10_000 }).toContain("the sandbox accepted no connection within 500 ms");
    connections.destroy();
  } finally {
    child.kill("SIGKILL");
  }
});
