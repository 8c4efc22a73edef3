import { execFile } from "node:child_process";
import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import { describeNeeding, pythonRlPath, startRedis, temporaryTree } from "@aenv/testing";
import { projects, publish, startPlatform } from "aenvironment/platform-tests";
import { expect, it } from "vitest";

/** Gives each connection to the next of the servers, as a load balancer does. */
async function balance(urls: readonly string[]): Promise<AsyncDisposable & { readonly url: string }> {
  let connections = 0;
  const balancer = createServer((client) => {
    const { hostname, port } = new URL(urls[connections++ % urls.length] as string);
    const server = connect(Number(port), hostname);
    client.pipe(server).pipe(client);
    for (const [one, other] of [
      [client, server],
      [server, client],
    ] as const) {
      one.on("error", () => {}).on("close", () => other.destroy());
    }
  });
  await once(balancer.listen(0, "127.0.0.1"), "listening");
  const { port } = balancer.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    [Symbol.asyncDispose]: async () => {
      balancer.close();
    },
  };
}

describeNeeding("python-rl", "OpenEnv's published clients", () => {
  describeNeeding("redis", "behind a load balancer over two servers", () => {
    it("train on an environment of this platform: reset, steps, rewards, errors, and the URL validator", { timeout: 240_000 }, async () => {
      await using redis = await startRedis();
      using home = temporaryTree();
      const settings = { store: redis.url, home: home.path, flags: { access: "on" } };
      await using here = await startPlatform(settings);
      await using there = await startPlatform(settings);
      const headers = await here.token("ada", "trainer", "publisher");
      const token = headers.authorization.slice("Bearer ".length);
      const [echo, probe] = [await publish(here, projects.echo, { headers }), await publish(here, projects.probe, { headers })];
      await using balancer = await balance([here.dataUrl, there.dataUrl]);
      const base = `${balancer.url}/openenv`;
      const { stdout } = await promisify(execFile)(
        pythonRlPath,
        [join(import.meta.dirname, "openenv_clients.py"), `${base}/${echo}`, `${base}/${token}/${echo}`, token, `${base}/${probe}`],
        { env: { ...process.env, PYTHONDONTWRITEBYTECODE: "1", PYTHONWARNINGS: "ignore" }, timeout: 220_000 },
      );
      const score = { total: 1, components: { said_it: 1, brief: 1 } };
      expect(JSON.parse(stdout.trim().split("\n").at(-1) ?? "")).toEqual({
        generic: {
          prompt: "Echo the word 'brevity', in as few calls as you can.",
          first: [null, false],
          echoed: ["brevity", null, false],
          wrong: "tool_not_found",
          last: [1, true, score],
          state: [3, "be-brief", 1],
          again: ["be-brief", null, false],
          refused: expect.stringContaining("VALIDATION_ERROR"),
          after: 0,
        },
        tools: {
          prompt: "Echo the word 'hello'.",
          tools: ["echo", "remember", "submit", "say"],
          echoed: "hello",
          wrong: expect.stringMatching(/^RuntimeError: Tool 'echo' failed: .*text/s),
          stepped: "more",
          listed: 4,
          steps: 3,
          submitted: { reward: 0.8, done: true },
        },
        lost: {
          crashed: expect.stringContaining("instance lost:"),
          submitted: expect.stringContaining("instance lost:"),
          counted: "1",
        },
        parallel: 8 * 1 + 8 * 0.2,
        validated: [true, "simulation", "openenv-http/1.x"],
        in_sync: [1, true],
      });
    });
  });
});
