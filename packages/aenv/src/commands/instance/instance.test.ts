import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { temporaryTree } from "@aenv/testing";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { type Platform, projects, publish, startPlatform } from "../../platform-tests/platform.ts";
import { aenv } from "../../testing/cli.ts";
import { type CommandOptions, RunningCommand, run, runJson } from "../../testing/command.ts";

let platform: Platform;
const secrets = temporaryTree({ "default/my-key": "sesame" });
beforeAll(async () => {
  platform = await startPlatform({ flags: { secretsDir: secrets.path } });
  await publish(platform, projects.probe);
});
afterAll(async () => {
  await platform?.close();
  secrets[Symbol.dispose]();
});

const at = (options: CommandOptions = {}) => ({
  ...options,
  env: { HOME: "/nonexistent", AENV_SYSTEM_URL: platform.controlUrl, ...options.env },
});
/** Those that failed are listed for a while, for their owner to read why. */
const live = async () => {
  const { items } = (await platform.demand("GET", "/env-instance/list")) as { items: { status: string }[] };
  return items.filter(({ status }) => status !== "Failed");
};

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}

describe("instance create", { timeout: 60_000 }, () => {
  it("shows how to connect, and releases the instance at the end of stdin", async () => {
    const { code, stdout } = await run(["instance", "create", "probe"], at());
    expect(code).toBe(0);
    expect(stdout).toMatch(/For agents +http:\/\/127\.0\.0\.1:\d+\/agent\/\w{20}\/mcp/);
    expect(stdout).toMatch(/For A2A clients +http:\/\/127\.0\.0\.1:\d+\/agent\/\w{20}\/ /);
    expect(stdout).toContain('"mcpServers"');
    expect(stdout).toMatch(/probe-\w+ is released/);
    expect(await live()).toEqual([]);
  });

  it.each(["SIGINT", "SIGTERM"] as const)("keeps the instance until %s, and then releases it", async (signal) => {
    await using running = new RunningCommand(["instance", "create", "probe@1.0.0"], at({ input: "open" }));
    await running.prints(/Ctrl-C releases it/);
    expect(await live()).toHaveLength(1);
    expect(await running.stop(signal)).toMatchObject({ code: 0, stdout: expect.stringMatching(/is released\n$/) });
    expect(await live()).toEqual([]);
  });

  it("leaves no instance running when it is stopped during the start", async () => {
    await using running = new RunningCommand(["instance", "create", "probe"], at({ input: "open" }));
    await vi.waitUntil(async () => (await live()).length > 0, { interval: 5, timeout: 20_000 });
    const { code, stderr } = await running.stop();
    // The start may have finished before the signal; then the instance is released as usual.
    if (code !== 0) expect([code, stderr]).toEqual([130, expect.stringContaining("nothing is left running")]);
    expect(await live()).toEqual([]);
  });

  it("takes name and version from the project in this folder", async () => {
    const record = await runJson(["instance", "create", "--keep-alive", "-o", "json"], at({ cwd: projects.probe }));
    expect(record).toMatchObject({ status: "Running", environment: "probe@1.0.0" });
    const { id } = record as { id: string };
    expect((await aenv(["instance", "delete", "-y", id], at())).code).toBe(0);
  });

  it("passes variables, task, seed and labels to the server", async () => {
    const argv = ["--env", "A = 1=2", "--task", "one", "--seed", "-3", "-l", "x=y", "--owner", "ada", "--keep-alive", "--json"];
    const record = (await runJson(["instance", "create", "probe", ...argv], at())) as { id: string };
    expect(record).toMatchObject({ task: "one", seed: -3, labels: { x: "y" }, owner: "ada" });
    const url = `${platform.dataUrl}/env-instance/${record.id}`;
    expect((await aenv(["call", "variable", "name=A", "--url", url])).stdout).toBe("1=2\n");
    await aenv(["instance", "delete", "-y", record.id], at());
  });

  it.each([
    [["instance", "create", "nope"], 1, "aenv list"],
    [["instance", "create", "probe", "--env", "=x"], 2, "KEY=VALUE"],
    [["instance", "create", "probe", "--ttl", "soon"], 2, "soon"],
    [["instance", "create"], 1, "config.json"],
    [["instance", "create", "probe", "--env", "SETUP=fail"], 1, "told to fail in setup"],
    [["instance", "get", "probe-nope"], 1, "aenv instance list"],
    [["instance", "list", "--version", "1.0.0"], 2, "--version needs --name"],
    [["instance", "fork", "probe-nope"], 1, "probe-nope"],
    [["instance", "renew", "probe-nope"], 2, "--ttl"],
    [["get", "nope"], 1, "aenv list"],
    [["pull", "nope"], 1, "aenv list"],
    [["get", "probe@1.0.0", "--version", "2.0.0"], 2, "different versions"],
    [["env", "visibility", "probe@1.0.0", "public", "--share-with", "ada"], 2, "--share-with"],
  ])("prints the problem of %j and the next step", async (argv, code, hint) => {
    const ended = await aenv(argv, at());
    expect(ended.stderr).toContain(hint);
    expect(ended.code).toBe(code);
  });
});

describe("instance create --count", { timeout: 60_000 }, () => {
  it("starts many, prints a table, and releases them all at the end of stdin", async () => {
    const { code, stdout, stderr } = await run(["instance", "create", "probe", "--count", "3"], at());
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout.match(/│ probe-\w+ +│ Running +│ http:/g)).toHaveLength(3);
    expect(stdout).toContain("3 instances released");
    expect(await live()).toEqual([]);
  });

  it("keeps them with --keep-alive, and prints how to delete them", async () => {
    const { stdout } = await run(["instance", "create", "probe", "-c", "2", "--keep-alive"], at());
    expect(await live()).toHaveLength(2);
    const [, next = ""] = /Delete them with: aenv (.*)/.exec(stdout) ?? [];
    expect((await aenv([...next.split(" "), "--yes"], at())).code).toBe(0);
    expect(await live()).toEqual([]);
  });

  it("prints the error of each that did not start, and exits with 1", async () => {
    const { code, stdout } = await run(["instance", "create", "probe", "-c", "2", "--env", "SETUP=fail", "--json"], at());
    expect(code).toBe(1);
    const failed = { id: null, status: "Failed", error: { message: expect.stringContaining("told to fail in setup") } };
    expect(JSON.parse(stdout)).toMatchObject([failed, failed]);
  });
});

describe("instance create with access", { timeout: 60_000 }, () => {
  it("gives the instance a secret, and narrows where it may connect to", async () => {
    const argv = ["instance", "create", "probe", "--secret", "API_KEY=my-key", "--egress", "none", "--keep-alive", "--json"];
    const { code, stdout, stderr } = await run(argv, at());
    expect(code, stderr).toBe(0);
    expect(stderr).toMatch(/^! egress ignored/);
    const { id } = JSON.parse(stdout);
    const called = await aenv(["call", "variable", "name=API_KEY", "--url", `${platform.dataUrl}/env-instance/${id}`], at());
    expect([called.code, called.stdout.trim()], called.stderr).toEqual([0, "sesame"]);
    expect((await aenv(["instance", "delete", id, "--yes"], at())).code).toBe(0);
  });

  it("is refused for a destination that is none", async () => {
    const { code, stderr } = await aenv(["instance", "create", "probe", "--egress", "https://example.com"], at());
    expect([code, stderr]).toEqual([2, expect.stringContaining("Write none, open, or destinations such as api.example.com:443")]);
  });

  it("is refused for more connections than the environment allows", async () => {
    const { code, stderr } = await aenv(["instance", "create", "probe", "--egress", "a.example:443,*.b.example"], at());
    expect([code, stderr]).toEqual([2, expect.stringContaining("egress allows 'a.example:443'")]);
  });
});

describe("instance create with options that this server does not support", { timeout: 60_000 }, () => {
  it("prints each warning once on stderr, and the record on stdout", async () => {
    const argv = ["--mount", "remote_dir=/a,local_dir=/b", "--init-command", "sleep 1", "--json"];
    const { code, stdout, stderr } = await run(["instance", "create", "probe", ...argv], at());
    expect(code).toBe(0);
    expect(stderr).toMatch(/^! mount_points ignored.*\n! init_command ignored.*\n/);
    expect(JSON.parse(stdout)).toMatchObject({ status: "Running", warnings: [expect.any(String), expect.any(String)] });
    const many = await run(["instance", "create", "probe", "-c", "2", ...argv], at());
    expect(many.stderr.match(/mount_points ignored/g)).toHaveLength(1);
  });
});

describe.runIf(process.platform === "linux")("instance presign", { timeout: 60_000 }, () => {
  it("prints only a link to the port", async () => {
    const port = await freePort();
    await publish(platform, projects.window, { deployConfig: { ports: [port] } });
    const { id } = await platform.create("window@1.0.0", { environment_variables: { LISTEN: String(port) } });
    const { code, stdout } = await aenv(["instance", "presign", id, String(port), "--minutes", "2"], at());
    expect(code).toBe(0);
    const answer = await fetch(`${stdout.trim()}/hello`);
    expect(await answer.json()).toMatchObject({ url: "/hello" });
    expect(JSON.parse((await aenv(["instance", "presign", id, String(port), "--json"], at())).stdout)).toMatchObject({ port, minutes: 5 });
    await platform.demand("DELETE", `/env-instance/${id}`);
  });

  it.each([
    [["probe-nope", "80"], 1],
    [["probe-nope", "0"], 2],
    [["probe-nope", "80", "--minutes", "0"], 2],
  ])("prints the problem of %j", async (argv, code) => {
    expect((await aenv(["instance", "presign", ...argv], at())).code).toBe(code);
  });
});

describe("instance logs", { timeout: 60_000 }, () => {
  it("prints the output, and with --follow new lines until Ctrl-C", async () => {
    const { id } = await platform.create("probe@1.0.0");
    const url = `${platform.dataUrl}/env-instance/${id}`;
    const print = (line: string) => aenv(["call", "--function", "print", `line=${line}`, "--url", url]);
    await print("one");
    await vi.waitFor(async () => expect((await aenv(["instance", "logs", id], at())).stdout).toContain("one\n"), { timeout: 10_000 });
    await using following = new RunningCommand(["instance", "logs", id, "--tail", "1", "--follow"], at({ input: "open" }));
    await following.prints(/one/);
    await print("two");
    await following.prints(/two/);
    expect((await following.stop()).code).toBe(0);
    expect((await aenv(["instance", "logs", id, "--tail", "1", "--json"], at())).stdout).toBe('{"line":"two"}\n');
    await platform.demand("DELETE", `/env-instance/${id}`);
    const gone = await aenv(["instance", "logs", id], at());
    expect([gone.code, gone.stderr]).toEqual([1, expect.stringContaining("aenv instance events")]);
  });
});

describe("the stack of an exception in a tool", { timeout: 60_000 }, () => {
  it("is in the instance's logs, and not in the agent's result", async () => {
    const { id } = await platform.create("probe@1.0.0");
    const url = `${platform.dataUrl}/env-instance/${id}`;
    const failed = await aenv(["call", "fail", "--url", url]);
    expect([failed.code, failed.stderr]).toEqual([1, expect.not.stringContaining("    at ")]);
    await vi.waitFor(
      async () => expect((await aenv(["instance", "logs", id], at())).stdout).toMatch(/tool 'fail' of instance [^\n]*\n +at /),
      { timeout: 20_000 },
    );
    await platform.demand("DELETE", `/env-instance/${id}`);
  });
});

describe("without a server", { timeout: 60_000 }, () => {
  it.each([["list"], ["instance", "list"], ["token", "list"], ["instance", "create", "probe"]])(
    "exits with 69 and prints how to start a server: %s %s",
    async (...argv) => {
      const env = { HOME: "/nonexistent", AENV_SYSTEM_URL: "http://127.0.0.1:9" };
      const { code, stdout, stderr } = await aenv([...argv.filter(Boolean), "--json"], { env });
      expect(code).toBe(69);
      expect(stderr).toContain("aenv server");
      expect(JSON.parse(stdout).error.code).toBe("network.failed");
    },
  );
});
