import { execFile } from "node:child_process";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { describeNeeding, pythonPath, type RedisServer, startRedis, type Tree, temporaryTree } from "@aenv/testing";
import { type Platform, projects, publish, startPlatform } from "aenvironment/platform-tests";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { freeLoopback, ORIGINAL_PORT, variables } from "./original.ts";
import { type OriginalCommands, originalCommands } from "./original-commands.ts";

/** The first start of the original's command takes ten seconds on a busy machine. */
const COMMANDS = { timeout: 120_000 };

/** All parts of remote_mode.py. */
const PARTS = ["methods", "life", "long_call", "options", "mounts", "mistakes", "scheduler", "services"] as const;

const text = (line: string) => ({ content: [{ type: "text", text: line }], is_error: false });

const NOT_NAMED =
  "presign_url failed: not supported on this engine (process): presign URL; the environment's config.json does not list port 8080";

describeNeeding("python", "the original Python SDK in remote mode, unchanged", () => {
  describe("with the store on SQLite", () => describeCommand(describeRemoteMode(async () => ({ url: "" }))));
  describeNeeding("redis", "with the store on Redis", () => void describeRemoteMode(startRedis));
});

interface Served {
  readonly url: string;
  readonly platform: () => Platform;
}

function describeRemoteMode(openStore: () => Promise<Partial<RedisServer> & { readonly url: string }>): Served {
  // Its clients only support the ports 8080 and 8081; all of 127/8 is loopback, so each test gets an address of its own.
  const host = freeLoopback();
  const url = `http://${host}`;
  let store: Awaited<ReturnType<typeof openStore>>;
  let platform: Platform;
  let report: Record<(typeof PARTS)[number], Record<string, unknown>>;

  beforeAll(async () => {
    store = await openStore();
    platform = await startPlatform({ store: store.url, flags: { host, controlPort: 8080, dataPort: ORIGINAL_PORT } });
    for (const project of [projects.echo, projects.probe, projects.tally]) await publish(platform, project);
    // In one process: each would import the SDK, which takes seconds.
    const args = [join(import.meta.dirname, "remote_mode.py"), url, PARTS.join(",")];
    const { stdout } = await promisify(execFile)(pythonPath, args, { env: variables(), timeout: 200_000 });
    report = JSON.parse(stdout.trim().split("\n").at(-1) ?? "");
  }, 240_000);
  afterAll(async () => {
    await platform?.close();
    await store?.[Symbol.asyncDispose]?.();
  });

  it("opens an environment, and every public method works", { timeout: 60_000 }, async () => {
    expect(report.methods).toEqual({
      tools: ["echo@1.0.0/echo", "echo@1.0.0/remember"],
      text: text("hello"),
      prefixed: text("ho ho"),
      object: text('{"name":"color","text":"blue"}'),
      error: { content: [{ type: "text", text: "nothing is remembered as 'shape'; known: color" }], is_error: true },
      invalid: { content: [{ type: "text", text: expect.stringContaining("times: ") }], is_error: true },
      functions: ["transcript"],
      function: { echoes: ["hello", "ho ho"], notes: { color: "blue" } },
      function_unknown: { raised: "EnvironmentError", message: expect.stringContaining("404") },
      reward: { reward: 1, components: { said_it: 1, brief: 1 }, weights: { said_it: 0.8, brief: 0.2 } },
      reward_invalid: { raised: "EnvironmentError", message: expect.stringContaining("calls: ") },
      health: { success: true, data: { status: "healthy", echoes: 2 } },
      info: {
        name: "echo@1.0.0",
        instance_id: expect.stringMatching(/^echo-[a-z2-7]{20}$/),
        status: "Running",
        ip: expect.stringMatching(/^echo-[a-z2-7]{20}$/),
        created_at: expect.stringMatching(/Z$/),
        updated_at: expect.stringMatching(/Z$/),
      },
      ready: null,
      // It needs an extra of the package; without it the SDK reports that.
      openai_tools: expect.toSatisfy((answer) => answer.raised === "ImportError" || answer.length === 2),
      presigned: { raised: "EnvironmentError", message: expect.stringContaining(NOT_NAMED) },
      at_once: Array.from({ length: 16 }, (_, n) => `${n}`),
      released: true,
      still_running: [],
    });
  });

  it("opens explicitly, releases, and opens another by the next call", { timeout: 60_000 }, async () => {
    const { life } = report;
    expect(life).toMatchObject({ opened: true, added: text("2"), anew: text("3") });
    expect(life.second).not.toBe(life.first);
  });

  it("receives messages of a long call while it runs, and aborts one, of which the environment is notified", {
    timeout: 60_000,
  }, async () => {
    expect(report.long_call).toEqual({
      talking: text("talked"),
      gone: { raised: "ToolError", message: expect.stringContaining("Timed out") },
      waits: ["aborted"],
      after: text("1"),
    });
  });

  it("passes variables on, and accepts options that only other engines support", { timeout: 60_000 }, async () => {
    expect(report.options).toEqual({
      GREETING: text("hi"),
      envNAME: text("probe"),
      envversion: text("1.0.0"),
      without_data_plane: "Running",
      tool_without_data_plane: { raised: "EnvironmentError", message: expect.stringContaining("enable_data_plane=False") },
      count: text("1"),
    });
  });

  it("requests mounts that this engine does not support: they are accepted and shown, with an event and a warning", async () => {
    const { id, none, ...seen } = report.mounts;
    expect(seen).toEqual({ status: "Running", shown: [{ id: "OSS_1", remote_dir: "/data", local_dir: "/workspace" }] });
    const warning = "mount_points ignored, nothing is mounted: the engine 'process' cannot do it";
    expect(await platform.demand("GET", `/env-instance/${id}`)).toMatchObject({ warnings: [warning] });
    const events = (await platform.demand("GET", `/env-instance/${id}/events`)) as { what: string }[];
    expect(events.map(({ what }) => what)).toContain(`warning: ${warning}`);
    expect(await platform.demand("GET", `/env-instance/${none}`)).not.toHaveProperty("warnings");
    for (const one of [id, none]) await platform.demand("DELETE", `/env-instance/${one}`);
  }, 60_000);

  it("accepts a create request of newer clients, which leave out variables that are not set", { timeout: 60_000 }, async () => {
    const deployConfig = { environment_variables: { GREETING: "from the config" } };
    const ref = await publish(platform, projects.probe, { version: "1.9.0", deployConfig });
    const body = { envName: ref, datasource: "", ttl: "30m", arguments: [] };
    const headers = { "env-instance-trace-id": "0123456789abcdef" };
    const read = async (request: object) => {
      const made = (await platform.demand("POST", "/env-instance", request, headers)) as { id: string; ip: string };
      const data = { "AEnvCore-MCPProxy-URL": `http://${made.ip}:8081`, "AEnvCore-EnvInstance-ID": made.id };
      const texts = ["GREETING", "envNAME", "envversion"].map((name) => callVariable(platform.dataUrl, data, name));
      const told = (await Promise.all(texts)).join(" | ");
      await platform.demand("DELETE", `/env-instance/${made.id}`);
      return told;
    };
    expect(await read(body)).toBe("from the config | probe | 1.9.0");
    // Older clients always send the two names, newer ones only together with other variables.
    const pair = { envNAME: "probe", envversion: "1.9.0" };
    expect(await read({ ...body, environment_variables: pair })).toBe("from the config | probe | 1.9.0");
    expect(await read({ ...body, environment_variables: { GREETING: "mine", ...pair } })).toBe("mine | probe | 1.9.0");
    await platform.demand("DELETE", "/env/probe/1.9.0");
  });

  it("reads errors, and gets the latest version without a version", { timeout: 60_000 }, async () => {
    const message = (part: string) => ({ raised: "EnvironmentError", message: expect.stringContaining(part) });
    expect(report.mistakes).toEqual({
      unknown: message("Environment not found: 'nowhere@1.0.0'"),
      no_version: text("latest"),
      bad_ttl: message("invalid duration 'soon'"),
      failing_setup: message("told to fail in setup"),
    });
  });

  it("creates, gets, lists, waits for and deletes instances through its scheduler client", { timeout: 60_000 }, async () => {
    expect(report.scheduler).toEqual({
      made: expect.objectContaining({
        status: "Running",
        labels: { run: "7" },
        env: expect.objectContaining({ name: "echo", version: "1.0.0" }),
      }),
      running: ["Running", true],
      got: ["Running", { run: "7" }],
      listed: ["made", "other"],
      listed_by_name: ["made"],
      listed_by_version: ["other"],
      listed_of_none: [],
      listed_running: ["made", "other"],
      listed_failed: [],
      presigned: { raised: "EnvironmentError", message: expect.stringContaining(NOT_NAMED) },
      deleted: [true, true],
      deleted_again: true,
      deleted_unknown: false,
      after: "Terminated",
      unknown: { raised: "EnvironmentError", message: expect.stringContaining("not found") },
      listed_after: [],
    });
  });

  it("creates, gets, lists, changes and deletes services through its scheduler client", { timeout: 60_000 }, async () => {
    const service = { id: "tools", replicas: 1, owner: "ada", environment_variables: { GREETING: "hi" }, pvc_name: "data" };
    const env = expect.objectContaining({ name: "probe", version: "1.0.0" });
    const service_url = expect.stringMatching(/:8081\/env-service\/tools$/);
    const times = { created_at: expect.stringMatching(/Z$/), updated_at: expect.stringMatching(/Z$/) };
    expect(report.services).toEqual({
      made: { ...service, ...times, env, service_url, status: "Creating", available_replicas: 0 },
      running: { ...service, ...times, env, service_url, status: "Running", available_replicas: 1 },
      listed: [["other", "tools"], ["tools"], ["tools"], []],
      updated: ["Updating", 2, { NEW: "1" }],
      scaled: 2,
      too_many: { raised: "EnvironmentError", message: expect.stringContaining("replicas must be 1") },
      taken: { raised: "EnvironmentError", message: expect.stringContaining("already exists") },
      nowhere: { raised: "EnvironmentError", message: expect.stringContaining("nowhere") },
      deleted: [true, true],
      deleted_again: true,
      unknown: { raised: "EnvironmentError", message: expect.stringContaining("not found") },
      listed_after: [],
    });
  });

  return { url, platform: () => platform };
}

function describeCommand({ url, platform }: Served): void {
  describe("its command", () => {
    let tree: Tree;
    let own: { cwd: string; variables: Record<string, string> };
    let commands: OriginalCommands;
    beforeAll(() => {
      tree = temporaryTree({ "project/config.json": project({}), "project/src/tools.py": "answer = 42\n" });
      // Its home and its working folder are temporary, because it writes into both.
      const ownVariables = { HOME: tree.path, TMPDIR: tree.path, HUB_BACKEND: `${url}:8080`, AENV_SYSTEM_URL: url, COLUMNS: "200" };
      own = { cwd: join(tree.path, "project"), variables: ownVariables };
      commands = originalCommands(own);
    });
    afterAll(async () => {
      await commands?.[Symbol.asyncDispose]();
      tree?.[Symbol.dispose]();
    });
    const aenv = (...args: string[]) => commands.run(...args);

    it("pushes a project, pushes it again, and gets and lists it", COMMANDS, async () => {
      const installed = join(dirname(pythonPath), "aenv");
      const { stdout } = await promisify(execFile)(installed, ["push"], { cwd: own.cwd, env: variables(own.variables), timeout: 60_000 });
      expect(stdout).toContain("Push successfully");
      expect(await aenv("push")).toMatchObject({ code: 0, stdout: expect.stringContaining("Push successfully") });
      expect(JSON.parse((await aenv("get", "py-demo")).stdout)).toMatchObject({
        name: "py-demo",
        version: "1.0.0",
        status: 6,
        code_url: "~/.aenv/envs/py-demo_1.0.0.zip",
        deploy_config: { cpu: "1", memory: "2Gi" },
        artifacts: [{ type: "image", content: "docker.io/aenv/py-demo:1.0.0" }],
      });
      const listed = await aenv("list", "--limit", "2", "--offset", "1", "--format", "json");
      expect(JSON.parse(listed.stdout)).toMatchObject([{ name: "probe" }, { name: "py-demo" }]);
      expect((await aenv("list")).stdout).toMatch(/echo .*probe .*py-demo .*tally /s);
      expect(await aenv("get", "nowhere")).toMatchObject({ code: 1, stderr: expect.stringContaining("Environment not found") });
    });

    it("cannot push different content under the same version, but under the next", COMMANDS, async () => {
      tree.write({ "project/config.json": project({ deployConfig: { cpu: "2" } }) });
      expect(await aenv("push")).toMatchObject({ code: 1 });
      expect((await aenv("push", "--version", "1.0.1")).code).toBe(0);
      expect(JSON.parse((await aenv("get", "py-demo", "-v", "1.0.1")).stdout)).toMatchObject({ deploy_config: { cpu: "2" } });
      expect(JSON.parse((await aenv("get", "py-demo")).stdout)).toMatchObject({ deploy_config: { cpu: "1" } });
    });

    it("uploads its files by the hub's link, when its storage is the hub", COMMANDS, async () => {
      await aenv("config", "set", "storage_config.type", "aenv_hub");
      expect(await aenv("push", "--version", "2.0.0")).toMatchObject({ code: 0 });
      const link = await platform().demand("POST", "/env/py-demo/2.0.0/sign?style=read");
      const archive = await fetch(String(link));
      expect(archive.status).toBe(200);
      expect((await archive.arrayBuffer()).byteLength).toBeGreaterThan(100);
    });

    it("lists, gets and deletes instances", COMMANDS, async () => {
      const { id } = await platform().create("echo@1.0.0");
      expect(JSON.parse((await aenv("instance", "list", "--name", "echo", "--output", "json")).stdout)).toMatchObject([
        { id, status: "Running", env: { name: "echo", version: "1.0.0" } },
      ]);
      expect((await aenv("instance", "list")).stdout).toContain(id);
      expect((await aenv("instance", "list", "--name", "echo", "--version", "9.9.9")).stdout).toContain("No running instances");
      expect((await aenv("instance", "get", id)).stdout).toMatch(new RegExp(`${id}.*echo.*1\\.0\\.0.*Running`, "s"));
      expect((await aenv("instance", "delete", id, "--yes")).stdout).toContain("deleted successfully");
      expect((await aenv("instance", "list", "--name", "echo")).stdout).toContain("No running instances");
      expect(await aenv("instance", "get", "echo-unknown")).toMatchObject({
        code: 1,
        stdout: expect.stringContaining("Instance not found"),
      });
      expect(await aenv("instance", "delete", "echo-unknown", "--yes")).toMatchObject({ code: 1 });
    });

    it("creates an instance that keeps running", COMMANDS, async () => {
      const { stdout } = await aenv("instance", "create", "echo@1.0.0", "--keep-alive", "--ttl", "5m");
      const [, id] = /Instance ID: (\S+)/.exec(stdout) ?? [];
      expect(await platform().demand("GET", `/env-instance/${id}`)).toMatchObject({ status: "Running", ttl: "5m" });
    });
  });
}

/** One tool call through the gateway, addressed as the original's clients do. */
async function callVariable(dataUrl: string, headers: Record<string, string>, name: string): Promise<string> {
  const params = { name: "variable", arguments: { name } };
  const response = await fetch(`${dataUrl}/mcp`, {
    method: "POST",
    headers: { ...headers, "content-type": "application/json", accept: "application/json, text/event-stream" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params }),
  });
  const { result } = (await response.json()) as { result: { content: [{ text: string }] } };
  return result.content[0].text;
}

/** A config.json of the original's `aenv init`, with more fields. */
function project(change: { readonly deployConfig?: object }): object {
  return {
    name: "py-demo",
    version: "1.0.0",
    tags: ["linux"],
    status: "Ready",
    codeUrl: "",
    artifacts: [{ type: "image", content: "docker.io/aenv/py-demo:1.0.0" }],
    buildConfig: { dockerfile: "./Dockerfile" },
    testConfig: { script: "" },
    deployConfig: { cpu: "1", memory: "2Gi", os: "linux", ephemeralStorage: "5Gi", environmentVariables: {}, ...change.deployConfig },
  };
}
