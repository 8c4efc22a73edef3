import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type DockerDaemon, describeNeeding, missing, startDocker, type Tree, temporaryTree } from "@aenv/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Platform, publish, startPlatform } from "./platform.ts";

/** A server that is no environment of the kit: it says what it was given. */
const server = `
  import { existsSync, readFileSync, writeFileSync } from "node:fs";
  import { createServer } from "node:http";
  if (process.env.BROKEN) throw new Error("the table of prices is missing");
  createServer((request, response) => {
    if (request.url === "/ready") return response.end("yes");
    writeFileSync("own.txt", "mine");
    if (existsSync("/shared")) writeFileSync("/shared/from-program", "a note");
    const { envNAME, GREETING, PORT, AENV_TYPE } = process.env;
    const sees = existsSync(String(process.argv[2]));
    response.end(JSON.stringify({ envNAME, GREETING, AENV_TYPE, isPort: Number(PORT) === request.socket.localPort, sees,
      args: process.argv.slice(3), price: readFileSync("prices.txt", "utf8"), shared: existsSync("/shared/from-second"), port: Number(PORT), url: request.url, kernel: readFileSync("/proc/version", "utf8") }));
  }).listen(process.env.PORT, process.env.HOST);
`;

const projectOf = (runtime: object, deployConfig: object = {}) =>
  temporaryTree({
    "config.json": { name: "shop", version: "1.0.0", deployConfig, runtime },
    "app/server.mjs": server,
    "app/prices.txt": "7",
  });

/** The name of gVisor's kernel in /proc/version. */
const GVISOR = /gvisor|4\.(?:4|19)/i;

interface Run {
  readonly stdout: string;
}

function describePrograms(flags: () => Readonly<Record<string, unknown>>, { isIsolated = true, kernel = /Linux/ } = {}): void {
  let platform: Platform;
  let project: Tree;
  beforeAll(async () => {
    platform = await startPlatform({ flags: flags() });
    const command = ["node", "server.mjs", platform.home];
    project = projectOf(
      { command, cwd: "app", healthPath: "/ready" },
      { environmentVariables: { GREETING: "hello" }, arguments: ["--usual"] },
    );
    await publish(platform, project.path);
  }, 120_000);
  afterAll(async () => {
    project?.[Symbol.dispose]();
    await platform?.close();
  }, 60_000);

  it("runs a command in a copy of its files, with its variables, and answers for its health", { timeout: 120_000 }, async () => {
    const chosen = { arguments: ["--discount", "5"] };
    const instances = await Promise.all([platform.create("shop@1.0.0"), platform.create("shop@1.0.0", chosen)]);
    for (const [at, { id }] of instances.entries()) {
      const ask = async (path: string) => (await fetch(`${platform.dataUrl}/env-instance/${id}${path}`)).json();
      expect(await ask("/buy?n=1")).toMatchObject({
        envNAME: "shop",
        GREETING: "hello",
        AENV_TYPE: "singleContainer",
        isPort: true,
        price: "7",
        args: [["--usual"], chosen.arguments][at],
        url: "/buy?n=1",
        sees: !isIsolated,
        kernel: expect.stringMatching(kernel),
      });
      expect(await ask("/health")).toMatchObject({ success: true, data: { status: "healthy" } });
    }
    const reset = await platform.ask("POST", `/env-instance/${instances[0]?.id}/reset`, {});
    expect(reset.success).toBe(false);
    const fork = await platform.ask("POST", `/env-instance/${instances[0]?.id}/fork`, { count: 1, fidelity: "state" });
    expect(fork).toMatchObject({ error: { code: "instance.unsupported" }, message: expect.stringContaining("files or memory") });
  });

  if (isIsolated)
    it("gives a command a second container, which shares a folder with it, is what commands and links reach, and ends with it", {
      timeout: 180_000,
    }, async () => {
      const { runtime, deployConfig } = JSON.parse(readFileSync(join(project.path, "config.json"), "utf8"));
      using dual = projectOf(runtime, { ...deployConfig, podTemplate: "DualContainer" });
      const ref = await publish(platform, dual.path, { version: "3.0.0" });
      const { id } = await platform.create(ref);
      const ask = async () => (await fetch(`${platform.dataUrl}/env-instance/${id}/`)).json() as Promise<{ port: number }>;
      const run = async (address: string, script: string) =>
        ((await platform.demand("POST", `/env-instance/${address}/exec`, { command: ["node", "-p", script], wait: true })) as Run).stdout;
      const reached = async (address: string, port: number) => {
        const { url } = (await platform.demand("POST", `/env-instance/${address}/presign-url`, { port })) as { url: string };
        const answer = await fetch(url);
        return [answer.status, await answer.text()];
      };
      expect(await ask()).toMatchObject({ AENV_TYPE: "dualContainer", shared: false });
      for (const address of [id, `${id}.second`]) {
        expect(await run(address, "[fs.existsSync('server.mjs'), fs.readFileSync('/shared/from-program', 'utf8')].join()")).toBe(
          "false,a note\n",
        );
      }
      await run(id, "fs.writeFileSync('/shared/from-second', '')");
      const { port, ...seen } = await ask();
      expect(seen).toMatchObject({ shared: true });

      const listen =
        "http.createServer((_, response) => response.end('the second')).listen(4000, '127.0.0.1', () => console.log('listening'))";
      const body = JSON.stringify({ command: ["node", "-e", listen] });
      const started = await fetch(`${platform.controlUrl}/env-instance/${id}/exec`, {
        method: "POST",
        body,
        headers: { "content-type": "application/json" },
      });
      const events = (started.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream()).getReader();
      for (let text = ""; !text.includes("listening"); ) text += (await events.read()).value ?? "";
      for (const address of [id, `${id}.second`]) expect(await reached(address, 4000)).toEqual([200, "the second"]);
      expect(await reached(`${id}.main`, 4000)).toEqual([502, expect.stringContaining("nothing in the sandbox listens on port 4000")]);
      expect(await reached(`${id}.main`, port)).toEqual([200, expect.stringContaining("dualContainer")]);
      await events.cancel();

      await platform.demand("DELETE", `/env-instance/${id}`);
      const { engine } = flags() as { engine: string };
      expect(readdirSync(join(platform.home, engine, "sandboxes")).filter((name) => name.startsWith("task-"))).toEqual([]);
      expect(readdirSync(join(platform.home, "shared"))).toEqual([]);
    });
  else
    it("refuses a command with a second container, and says which engines have one", async () => {
      using dual = projectOf({ command: ["node", "server.mjs"], cwd: "app" }, { podTemplate: "DualContainer" });
      const ref = await publish(platform, dual.path, { version: "3.0.0" });
      const refused = await platform.ask("POST", "/env-instance", { envName: ref });
      expect(refused).toMatchObject({
        error: { code: "instance.unsupported" },
        message: expect.stringContaining("--engine oci or docker"),
      });
    });

  it("says why a command does not start", { timeout: 120_000 }, async () => {
    const broken = await platform.ask("POST", "/env-instance", { envName: "shop@1.0.0", environment_variables: { BROKEN: "1" } });
    expect(broken.message).toContain("the table of prices is missing");
    using missing = projectOf({ command: ["no-such-python", "-m", "shop"] });
    const hint = isIsolated ? "add an image that has 'no-such-python'" : "install it on the server's machine";
    await expect(publish(platform, missing.path, { version: "2.0.0" })).rejects.toThrow(hint);
  });
}

describe("a command as an environment, as a process", () => {
  describePrograms(() => ({}), { isIsolated: false });
});

describeNeeding("runc", "a command as an environment, with the engine oci", () => {
  describePrograms(() => ({ engine: "oci" }));
});

describeNeeding("runsc", "a command as an environment, with the engine oci and runsc", () => {
  describePrograms(() => ({ engine: "oci", runtime: "runsc" }), { kernel: GVISOR });
});

describeNeeding("docker", "a command as an environment, with the engine docker", () => {
  let daemon: DockerDaemon;
  beforeAll(async () => {
    daemon = await startDocker();
  }, 120_000);
  afterAll(async () => {
    await daemon?.[Symbol.asyncDispose]();
  }, 60_000);
  const flags = () => ({ engine: "docker", dockerSocket: daemon.socket });

  describePrograms(flags);

  it.skipIf(missing("runsc") !== null)(
    "runs with runsc if its owner is not trusted, whatever it asks for",
    { timeout: 120_000 },
    async () => {
      await using platform = await startPlatform({ flags: { ...flags(), runcOwners: ["somebody"] } });
      using project = projectOf({ command: ["node", "server.mjs"], cwd: "app" }, { runtime: "runc" });
      await publish(platform, project.path);
      const { id } = await platform.create("shop@1.0.0");
      const { kernel } = (await (await fetch(`${platform.dataUrl}/env-instance/${id}/`)).json()) as { kernel: string };
      expect(kernel).toMatch(GVISOR);
    },
  );
});
