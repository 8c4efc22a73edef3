import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { temporaryTree } from "@aenv/testing";
import { describe, expect, it, onTestFinished } from "vitest";
import type { Listening, Sandbox, SandboxSpec } from "../engine/engine.ts";
import { ProcessEngine } from "./engine.ts";

/** Answers with its folder, its arguments and its address; `/ready` fails the first two times. */
const server = `
  import { createServer } from "node:http";
  let asked = 0;
  createServer((request, response) => {
    if (request.url === "/ready" && ++asked < 3) response.statusCode = 503;
    if (request.url === "/health") response.statusCode = 404;
    response.end(JSON.stringify({ cwd: process.cwd(), args: process.argv.slice(2), asked }));
  }).listen(Number(process.env.PORT), process.env.HOST);
`;

const port = (more: Partial<Extract<Listening, { kind: "port" }>> = {}): Listening => ({
  kind: "port",
  port: 8081,
  healthPath: null,
  isFlexible: true,
  ...more,
});

function open() {
  const tree = temporaryTree({ "home/x": "", "app/sub/server.mjs": server });
  const engine = new ProcessEngine({ home: join(tree.path, "home"), graceMs: 500 });
  onTestFinished(async () => {
    for (const sandbox of await engine.list()) await sandbox.destroy();
    await engine.close();
    tree[Symbol.dispose]();
  });
  let count = 0;
  const create = (more: Partial<SandboxSpec> = {}) =>
    engine.create(
      {
        id: `s-${++count}`,
        command: ["node", "server.mjs", "{host}:{port}"],
        folder: join(tree.path, "app"),
        cwd: "sub",
        variables: {},
        labels: {},
        startTimeoutMs: 20_000,
        listening: port(),
        ...more,
      },
      new AbortController().signal,
    );
  return { create, home: join(tree.path, "home") };
}

async function ask({ address }: Sandbox): Promise<{ cwd: string; args: string[]; asked: number }> {
  if (address.kind !== "tcp") throw new Error("it listens on a port");
  const response = await fetch(`http://${address.host}:${address.port}/`);
  return (await response.json()) as { cwd: string; args: string[]; asked: number };
}

describe("a program that listens on a port, as a process", () => {
  it("gets a port and a copy of its files of its own", async () => {
    const { create, home } = open();
    const [one, two] = await Promise.all([create(), create()]);
    expect(one.address).not.toEqual(two.address);
    const answer = await ask(one);
    expect(answer.cwd).toBe(join(home, "sandboxes", one.id, "work/sub"));
    expect(answer.args).toEqual([`127.0.0.1:${one.address.kind === "tcp" ? one.address.port : 0}`]);
  });

  it("is ready when the path that it names succeeds", async () => {
    const { create } = open();
    expect(await ask(await create({ listening: port({ healthPath: "/ready" }) }))).toMatchObject({ asked: 3 });
  });

  it("keeps its own port, and is refused with the reason while another process uses that", async () => {
    const { create } = open();
    const other = createServer().listen(0, "127.0.0.1");
    await once(other, "listening");
    const { port: wanted } = other.address() as AddressInfo;
    const spec = { listening: port({ port: wanted, isFlexible: false }) };
    const message = expect.stringContaining(`port ${wanted} of this machine is in use by another instance or program`);
    await expect(create(spec)).rejects.toMatchObject({ code: "sandbox.start_failed", message });
    other.close();
    await once(other, "close");
    const outcomes = await Promise.allSettled([create(spec), create(spec)]);
    expect(outcomes.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
  });

  it.each([
    [{ command: ["no-such-program"] }, "cannot run 'no-such-program': no such program"],
    [{ cwd: "nowhere" }, "its files have no folder 'nowhere'"],
    [{ command: ["sh", "-c", "echo no module named shop; exit 3"] }, "no module named shop"],
    [{ listening: port({ healthPath: "/health" }), startTimeoutMs: 3_000 }, "did not answer GET /health on port"],
  ])("fails with the reason: %j", async (more, message) => {
    const { create } = open();
    await expect(create(more)).rejects.toMatchObject({ code: "sandbox.start_failed", message: expect.stringContaining(message) });
  });
});
