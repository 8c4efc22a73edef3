import { describeNeeding, type Script, scriptedOpenAi, temporaryTree } from "@aenv/testing";
import { freePort, type Platform, projects, publish, startPlatform } from "aenvironment/platform-tests";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runPython } from "./python.ts";
import { unreliable } from "./unreliable.ts";

const LONG = { timeout: 100_000 };

/** Solves the task `greet`; a model called `silent` never answers. */
const solves: Script = ({ model, turn }) => {
  if (model === "silent") return { fault: "silent" };
  return turn === 0 ? { toolCalls: [{ name: "echo", arguments: { text: "hello" } }] } : "I said hello.";
};

describeNeeding("python-rl", "the Python client", () => {
  let platform: Platform;
  let port: number;
  const secrets = temporaryTree({ "default/my-key": "sesame\n" });

  beforeAll(async () => {
    platform = await startPlatform({ flags: { secretsDir: secrets.path } });
    port = await freePort();
    await publish(platform, projects.echo, { isolation: "shared" });
    await publish(platform, projects.probe);
    await publish(platform, projects.window, { ports: [port] });
  });
  afterAll(async () => {
    await platform?.close();
    secrets[Symbol.dispose]();
  });

  const report = (kind: string, part: string, ...rest: string[]) => runPython("use_client.py", [platform.controlUrl, kind, part, ...rest]);
  /** Instances that a client left behind. Those of rollouts stay for the next ones. */
  const running = async () => {
    const all = (await platform.demand("GET", "/env-instance/*/list?status=Running")) as { labels: Record<string, string> }[];
    return all.filter(({ labels }) => labels["aenv-rollouts"] === undefined);
  };

  describe.each(["sync", "async"])("%s", (kind) => {
    it("uses every method of an instance, and leaves none behind", LONG, async () => {
      expect(await report(kind, "methods")).toEqual({
        environments: ["echo-shared", "probe", "window"],
        environment: "1.0.0",
        versions: ["1.0.0"],
        whoami: expect.objectContaining({ token: null }),
        tools: ["echo", "remember"],
        tasks: ["greet", "be-brief", "recall"],
        test_tasks: ["recall"],
        reset: expect.objectContaining({ task: expect.objectContaining({ id: "be-brief" }), seed: 5 }),
        echoed: ["brevity", false],
        prefixed: "ho ho",
        failed: ["nothing is remembered as 'shape'; known: nothing", true],
        object: { name: "color", text: "blue" },
        tool_unknown: expect.objectContaining({ raised: "NotFound", code: "tool.not_found" }),
        functions: ["transcript"],
        function: { echoes: ["brevity", "ho ho"], notes: { color: "blue" } },
        function_unknown: expect.objectContaining({ raised: "NotFound", code: "function.not_found" }),
        score: { reward: 0.8, components: { said_it: 1, brief: 0 }, weights: { said_it: 0.8, brief: 0.2 } },
        score_with_arguments: 1,
        score_refused: expect.objectContaining({ raised: "InvalidRequest", retryable: false, message: expect.stringContaining("calls") }),
        health: { status: "healthy", echoes: 2 },
        prompt: [expect.objectContaining({ role: "system" }), expect.objectContaining({ role: "user" })],
        status: { done: false, reason: null },
        forks: ["red", "blue"],
        changed: true,
        restored: true,
        from_snapshot: true,
        stored: ["state", true],
        snapshots: [true],
        from_stored: true,
        started_from: true,
        snapshot_deleted: expect.objectContaining({ raised: "NotFound", code: "snapshot.not_found" }),
        ttl: "2h",
        running: [true],
        again: "healthy",
        agent_url: 200,
        deleted: expect.objectContaining({ raised: "NotFound", code: "instance.not_found" }),
      });
      expect(await running()).toEqual([]);
    });

    it("answers with records: mappings with attributes, named statuses and short reprs", LONG, async () => {
      const prefix = kind === "sync" ? "" : "Async";
      expect(await report(kind, "records")).toEqual({
        // before: the status was only the server's index.
        status: ["Verified", 5, "Verified"],
        key: true,
        mapping: [true, true, true],
        camel: true,
        left_out: null,
        done: false,
        record: ["Running", "echo-shared@1.0.0", "greet"],
        reprs: [
          "Environment(name='echo-shared', version='1.0.0', status='Verified', visibility='private', tags=['example'], ...)",
          `Task(id='greet', split='train', instruction="Echo the word 'hello'.", ...)`,
          "Tool(name='echo', description='Says the text back.', ...)",
          "EpisodeStatus(done=False, reason=None)",
          `ToolResult('${"x".repeat(77)}'..., status=EpisodeStatus(done=False, reason=None))`,
        ],
        handles: [
          `${prefix}Instance('ID', environment='echo-shared@1.0.0', task='greet', seed=4)`,
          `${prefix}Session('ID', environment='echo-shared@1.0.0', task='greet')`,
          `${prefix}Client('URL')`,
          `<${prefix}Environments: list, get, versions, tasks, each_task>`,
        ],
        listed: "InstanceRecord(id='ID', environment='echo-shared@1.0.0', status='Running', task='greet', seed=4, labels={}, ...)",
        unknown: "Task has no field 'instrution'; it has: id, instruction, split, goal",
        read_only: "set record['split'] instead: the attributes of a record only read its fields",
        secret: [false, "sesame"],
        rollout: ["RolloutResult(id='one', outcome=Outcome(kind='scored', reward=1), num_turns=2, ...)", 1, 1],
        error: "NotFound('no such instance', code='instance.not_found')",
      });
    });

    it("narrows the connections of an instance, and gives it a secret of its owner", LONG, async () => {
      expect(await report(kind, "access")).toEqual({
        value: "sesame",
        warnings: [expect.stringContaining("egress ignored")],
        wide: expect.objectContaining({ raised: "InvalidRequest", message: expect.stringContaining("egress allows 'example.com:443'") }),
      });
    });

    it("raises typed errors with the platform's codes", LONG, async () => {
      expect(await report(kind, "errors")).toEqual({
        environment: expect.objectContaining({ raised: "NotFound", code: "environment.not_found", status: 404 }),
        setup: expect.objectContaining({ raised: "ServerError", message: expect.stringContaining("told to fail in setup") }),
        task: expect.objectContaining({ code: "task.not_found" }),
        no_tool: expect.objectContaining({ raised: expect.stringMatching(/NotFound|InvalidRequest|ServerError/) }),
        slow: expect.objectContaining({ raised: "NetworkError" }),
        crash: expect.objectContaining({ raised: "ServerError", code: "sandbox.lost" }),
        late_crash: expect.objectContaining({ raised: "ServerError", code: "sandbox.lost" }),
        score: expect.objectContaining({ retryable: expect.any(Boolean), code: expect.stringMatching(/^(sandbox|instance)\./) }),
        unreachable: expect.objectContaining({ raised: "NetworkError", code: "network.failed", retryable: true }),
      });
      expect(await running()).toEqual([]);
    });

    it("streams, submits, reads and cancels rollouts; each is played once", LONG, async () => {
      await using model = await scriptedOpenAi(solves);
      expect(await report(kind, "rollouts", model.baseUrl)).toEqual({
        streamed: [
          [`${kind}-0`, 1],
          [`${kind}-1`, 1],
          [`${kind}-2`, 1],
        ],
        fields: ["id", "num_turns", "outcome"],
        again: 1,
        other_body: expect.objectContaining({ raised: "Conflict", code: "request.conflict" }),
        accepted: [`${kind}-7`],
        waited: 1,
        unscored: expect.objectContaining({ raised: "Unscored", cause: "model" }),
        running: false,
        cancelled: "cancelled",
        listed: true,
        missing: expect.objectContaining({ raised: "NotFound", status: 404 }),
        secret: false,
      });
      // Four rollouts of two turns: those that were sent again were not played again.
      expect(model.requests.filter((request) => request.model === "scripted")).toHaveLength(8);
    });

    it("repeats rollouts with the same id after a 429, a 503 and a lost connection", LONG, async () => {
      await using model = await scriptedOpenAi(solves);
      await using proxy = await unreliable(platform.controlUrl);
      const ids = await runPython("use_client.py", [proxy.url, kind, "repeated", model.baseUrl]);
      expect(ids).toEqual([1, 2, 3].map((at) => `${kind}-again-${at}`));
      expect(proxy.answers).toEqual([429, 503, 0, 200]);
      expect(model.requests).toHaveLength(6);
    });

    it("plays a session, and raises for one without a score", LONG, async () => {
      const gone = { raised: "Unscored", cause: "sandbox", retryable: true, message: expect.any(String) };
      expect(await report(kind, "sessions")).toEqual({
        tasks: [
          ["greet", "train", 0],
          ["be-brief", "train", 1],
          ["recall", "test", 0],
        ],
        test_tasks: ["recall"],
        begun: ["Echo the word 'hello'.", expect.any(Array), ["echo", "remember"], "greet"],
        step: ["hello", false, false, expect.anything()],
        wrong: [true, false],
        said: [false, true],
        score: { reward: 1, components: { said_it: 1, brief: 1 }, weights: { said_it: 0.8, brief: 0.2 } },
        closed: { ...gone, stage: "play" },
        no_task: expect.objectContaining({ raised: "NotFound", code: "task.not_found" }),
        setup: { ...gone, cause: "environment", retryable: false, stage: "start" },
        crash: { ...gone, stage: "play" },
        score_after: { ...gone, stage: "score" },
      });
      expect(await running()).toEqual([]);
    });

    it.runIf(process.platform === "linux")("reaches a port inside the sandbox by a link", LONG, async () => {
      expect(await report(kind, "port", String(port))).toEqual({
        url: expect.stringMatching(/\/port\/[\w-]{32}$/),
        status: 200,
        body: ["POST", "/healthz?a=1", `127.0.0.1:${port}`, "hello"],
      });
    });
  });

  it.each(["sync", "async"])("%s: keeps to its owner's objects on a server with tokens", LONG, async (kind) => {
    await using secured = await startPlatform({ flags: { access: "on" } });
    const admin = await secured.token("root", "admin");
    const [name, version] = (await publish(secured, projects.echo, { isolation: "shared", headers: admin })).split("@");
    await secured.demand("POST", `/env/${name}/${version}/visibility`, { visibility: "public" }, admin);
    const variables = { AENV_API_KEY: admin.authorization.replace("Bearer ", "") };
    expect(await runPython("use_client.py", [secured.controlUrl, kind, "secured"], { variables })).toEqual({
      whoami: "ada",
      tokens: ["ada", "bob"],
      reward: 1,
      step: "hello",
      other_instance: expect.objectContaining({ raised: "NotFound", status: 404 }),
      other_session: expect.objectContaining({ raised: "Unscored", message: expect.stringContaining("session") }),
      admin_only: expect.objectContaining({ raised: "AccessDenied", code: "access.denied" }),
      revoked: expect.objectContaining({ raised: "AccessDenied", code: "access.unauthenticated" }),
      secret: false,
    });
  });

  it("has a synchronous part that is generated from the asynchronous one", async () => {
    expect(await runPython("../../python/make_sync.py", ["--check"])).toBe("equal");
  });

  it("opens many instances at once", LONG, async () => {
    expect(await report("async", "many")).toEqual(Array.from({ length: 16 }, (_, at) => `${at}`));
  });
});
