import { once } from "node:events";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { Environment } from "@aenv/sdk";
import { temporaryTree } from "@aenv/testing";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { bundleOfCode } from "../platform-tests/fixtures/archives.ts";
import { clientOf, projects, publish } from "../platform-tests/platform.ts";
import { processesOf } from "../platform-tests/processes.ts";
import { type CommandOptions, RunningCommand, run } from "../testing/command.ts";

let tree: ReturnType<typeof temporaryTree>;
beforeEach(() => {
  tree = temporaryTree();
});
afterEach(() => tree[Symbol.dispose]());

const anyPorts = ["--control-port", "0", "--data-port", "0", "--pool-min", "0", "--log-level", "silent"];

function server(...argv: string[]): RunningCommand {
  return new RunningCommand(["server", "--home", join(tree.path, "home"), ...anyPorts, ...argv], { input: "open" });
}

interface Ready {
  readonly controlUrl: string;
  readonly dataUrl: string;
  readonly access: string;
  readonly token?: string;
}

async function ready(running: RunningCommand): Promise<Ready> {
  return JSON.parse((await running.prints(/^\{"event":"ready".*\}$/m))[0]);
}

async function nothingIsLeft(): Promise<void> {
  const home = join(tree.path, "home");
  expect(existsSync(join(home, "sandboxes")) ? readdirSync(join(home, "sandboxes")) : []).toEqual([]);
  expect(await processesOf(home)).toEqual([]);
}

describe("server", { timeout: 60_000 }, () => {
  it.each(["SIGINT", "SIGTERM"] as const)("runs environments until %s, and leaves no process behind", async (signal) => {
    await using running = server("--json");
    const { controlUrl, dataUrl } = await ready(running);
    const ref = await publish(clientOf({ controlUrl, dataUrl }), projects.probe);
    const env = await Environment.create(ref, { controlUrl, dataUrl });
    expect((await env.callTool("count")).json()).toBe(1);
    const { code, stdout } = await running.stop(signal);
    expect(code).toBe(0);
    expect(
      stdout
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line).event),
    ).toEqual(["ready", "stopping", "stopped"]);
    await nothingIsLeft();
  });

  it("offers the built-in environments on a new home, without anything to configure", async () => {
    await using running = server("--json");
    const { controlUrl, dataUrl } = await ready(running);
    const { version } = JSON.parse(readFileSync(new URL("../../../../environments/mini-terminal/config.json", import.meta.url), "utf8"));
    await using env = await Environment.create(`mini-terminal@${version}`, { controlUrl, dataUrl });
    expect((await env.listTools()).length).toBeGreaterThan(0);
    await expect(Environment.create("mini-terminal@0.0.1", { controlUrl, dataUrl })).rejects.toThrow(`available: ${version}`);
    await env.release();
    await running.stop("SIGINT");
    await nothingIsLeft();
  });

  it("also ends waiting processes and verifications when it is stopped", async () => {
    await using running = server("--json", "--pool-min", "2");
    const { controlUrl, dataUrl } = await ready(running);
    const client = clientOf({ controlUrl, dataUrl });
    const ref = await publish(client, projects.probe, { deployConfig: { warm: 2 } });
    await client.create(ref);
    // It never finishes loading, and has a child that left its process group.
    const code =
      'import { spawn } from "node:child_process";\nspawn("sleep", ["600"], { detached: true });\nawait new Promise(() => setInterval(() => {}, 1_000));';
    const { digest, bytes } = bundleOfCode("hangs", "1.0.0", code);
    await client.demand("PUT", `/bundle/${digest}`, bytes);
    const verifying = client
      .ask("POST", "/env", { name: "hangs", version: "1.0.0", artifacts: [{ type: "bundle", content: digest }] })
      .catch(() => null);
    const gauge = async (name: string) =>
      Number(new RegExp(`^${name} (.+)$`, "m").exec(await (await fetch(`${controlUrl}/metrics`)).text())?.[1]);
    await vi.waitFor(
      async () => {
        expect(await gauge("aenv_verifications_running")).toBe(1);
        expect(await gauge("aenv_pool_prepared_ready")).toBeGreaterThanOrEqual(2);
        expect(await gauge("aenv_pool_blank_ready")).toBeGreaterThanOrEqual(1);
        const children = processesOf(join(tree.path, "home")).map(({ command }) => command);
        expect(children).toContain("sleep 600");
      },
      { timeout: 30_000, interval: 50 },
    );
    expect((await running.stop("SIGTERM")).code).toBe(0);
    await verifying;
    await nothingIsLeft();
  });

  it("has the alias `up`, and prints its addresses as text, with the ports that the original's SDK needs if they are others", async () => {
    await using running = new RunningCommand(["up", "--home", join(tree.path, "home"), ...anyPorts]);
    await running.prints(/Ctrl-C stops/);
    expect(running.stdout).toMatch(/Control +http:\/\/127\.0\.0\.1:\d+ /);
    expect(running.stdout).toMatch(/Data +http:\/\/127\.0\.0\.1:\d+ /);
    expect(running.stdout).toMatch(/Store +sqlite:.*server\.db/);
    expect(running.stdout).toMatch(/Access +off/);
    expect(running.stdout).toMatch(/aenv push --system-url http:\/\/127\.0\.0\.1:\d+/);
    // The original's SDK takes no other ports.
    expect(running.stdout).toMatch(/original's Python SDK .*--control-port 8080 and --data-port 8081/);
    expect((await running.stop()).code).toBe(0);
  });

  it("stops at once on a second signal, even with a call in flight", async () => {
    await using running = server("--json");
    const { controlUrl, dataUrl } = await ready(running);
    const ref = await publish(clientOf({ controlUrl, dataUrl }), projects.probe);
    const env = await Environment.create(ref, { controlUrl, dataUrl });
    const calling = env.callTool("wait", { ms: 60_000 }).catch(() => null);
    await vi.waitUntil(async () => (await env.callFunction<string[]>("waits")).includes("begun"));
    const ended = running.ended();
    let isEnded = false;
    void ended.then(() => {
      isEnded = true;
    });
    await vi.waitUntil(
      () => {
        if (!isEnded) running.child.kill("SIGINT");
        return isEnded;
      },
      { timeout: 8_000, interval: 100 },
    );
    expect((await ended).code).toBe(130);
    await calling;
    // Processes that it could not end are adopted or ended by the next start.
    await using next = server("--json");
    await ready(next);
    expect((await next.stop()).code).toBe(0);
    await nothingIsLeft();
  });

  it("creates the first administrator token once, if tokens are needed", async () => {
    await using first = server("--json", "--access", "on");
    const { controlUrl, access, token } = await ready(first);
    expect([access, token]).toEqual(["on", expect.stringMatching(/^aenv_/)]);
    expect((await run(["list", "--system-url", controlUrl])).stderr).toContain("aenv login");
    expect((await run(["token", "list", "--json", "--system-url", controlUrl, "--api-key", token as string])).code).toBe(0);
    await first.stop();
    await using second = server("--json", "--access", "on");
    expect((await ready(second)).token).toBeUndefined();
    await second.stop();
  });

  it("prints that a port is in use, and the next step", async () => {
    const other = createServer().listen(0, "127.0.0.1");
    await once(other, "listening");
    const { port } = other.address() as { port: number };
    try {
      for (const flag of ["--control-port", "--data-port"]) {
        await using running = server(flag, String(port));
        const { code, stderr } = await running.ended();
        expect(code).toBe(1);
        expect(stderr).toContain(`cannot listen on 127.0.0.1:${port}`);
        expect(stderr).toContain("aenv server --control-port 9080");
      }
    } finally {
      other.close();
    }
  });

  it("refuses to listen beyond this machine without --allow-process-engine", async () => {
    await using running = server("--host", "0.0.0.0");
    const { code, stderr } = await running.ended();
    expect(code).toBe(2);
    expect(stderr).toContain("aenv server --host 0.0.0.0 --allow-process-engine");
  });

  it("prints that the store cannot be reached, without its password", async () => {
    await using running = server("--store", "redis://:hunter2@127.0.0.1:1");
    const { code, stdout, stderr } = await running.ended();
    expect(code).toBe(1);
    expect(stderr).toContain("cannot be reached");
    expect(stderr).toContain("redis://:***@127.0.0.1:1");
    expect(stdout + stderr).not.toContain("hunter2");
  });

  it("refuses a home that another server uses", async () => {
    await using first = server("--json");
    await ready(first);
    await using second = server("--json");
    const { code, stdout } = await second.ended();
    expect(code).toBe(1);
    expect(JSON.parse(stdout).error.code).toBe("server.locked");
    await first.stop();
  });
});

describe("server --print-config", () => {
  const print = (argv: readonly string[], options: CommandOptions = {}) => run(["server", "--print-config", ...argv], options);

  it("prints the effective settings as JSON, without secrets, and starts nothing", async () => {
    const home = join(tree.path, "home");
    const argv = ["--json", "--home", home, "--store", "redis://:hunter2@db.example", "--allowed-hosts", "a.example,b.example"];
    const { code, stdout } = await print([...argv, "--allow-process-engine", "--ids-are-keys", "false"]);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      home,
      store: "redis://:***@db.example",
      controlPort: 8080,
      allowedHosts: ["a.example", "b.example"],
      allowProcessEngine: true,
      idsAreKeys: false,
    });
    expect(existsSync(home)).toBe(false);
  });

  it("prints the source of each setting: a flag overrides a variable, which overrides the file", async () => {
    tree.write({ "server.json": { controlPort: 1, dataPort: 1, poolMin: 7 }, total: "9\n" });
    const env = { AENV_CONTROL_PORT: "2", AENV_DATA_PORT: "2", AENV_POOL_TOTAL_FILE: join(tree.path, "total") };
    const { stdout } = await print(["--config", "server.json", "--control-port", "3"], { cwd: tree.path, env });
    expect(stdout).toMatch(/^controlPort +3 +--control-port$/m);
    expect(stdout).toMatch(/^dataPort +2 +\$AENV_DATA_PORT$/m);
    expect(stdout).toMatch(/^poolTotal +9 +\$AENV_POOL_TOTAL_FILE$/m);
    expect(stdout).toMatch(/^poolMin +7 +.*server\.json$/m);
    expect(stdout).toMatch(/^poolMax +8 +default$/m);
  });

  it.each([
    [["--pool-min", "many"], "poolMin"],
    [["--access", "maybe"], "access"],
    [["--config", "/nowhere/server.json"], "/nowhere/server.json"],
    [["--prot", "1"], "--prot"],
  ])("exits with 2 for %j", async (argv, named) => {
    const { code, stderr } = await print(argv);
    expect(code).toBe(2);
    expect(stderr).toContain(named);
  });
});
