import { join } from "node:path";
import type { Trajectory } from "@aenv/contract";
import {
  type DockerDaemon,
  describeNeeding,
  type ScriptedOpenAi,
  scriptedOpenAi,
  startDocker,
  type Tree,
  temporaryTree,
} from "@aenv/testing";
import { type Platform, projects, publish, startPlatform } from "aenvironment/platform-tests";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { InstancePool } from "../episode/instance-pool.ts";
import { type PlayOptions, playEpisode } from "../episode/play.ts";
import { instancesOn, playOptionsOf } from "../fixtures/run.ts";
import { RecordingServer } from "../recorder/server.ts";
import { type InsideOptions, insideAgent } from "./inside.ts";

/** Asks the model what to run, runs it, and shows what it finds around it. It leaves a process behind. */
const AGENT = `
import { execSync, spawn } from "node:child_process";
import { existsSync } from "node:fs";
const { OPENAI_BASE_URL, OPENAI_API_KEY, AENV_MODEL, AENV_INSTRUCTION, AENV_AGENT_URL } = process.env;
const messages = [{ role: "user", content: AENV_INSTRUCTION }];
const reach = (url) => fetch(url, { signal: AbortSignal.timeout(3000) }).then((r) => String(r.status), () => "none");
for (;;) {
  const response = await fetch(OPENAI_BASE_URL + "/chat/completions", {
    method: "POST",
    headers: { authorization: "Bearer " + OPENAI_API_KEY, "content-type": "application/json" },
    body: JSON.stringify({ model: AENV_MODEL, messages }),
  });
  const { content } = (await response.json()).choices[0].message;
  messages.push({ role: "assistant", content });
  if (content === "done") break;
  messages.push({ role: "user", content: "it printed: " + execSync(content) });
}
const call = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "list_files", arguments: { path: "/tmp/work" } } };
const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
const listed = await (await fetch(AENV_AGENT_URL, { method: "POST", headers, body: JSON.stringify(call) })).json();
spawn("sleep", ["98765"], { detached: true, stdio: "ignore" }).unref();
console.log(JSON.stringify({
  installed: existsSync("/opt/installed"),
  user: process.getuid(),
  listed: listed.result.content[0].text,
  model: await reach(process.argv[2]),
  recorder: await reach(process.argv[3]),
  other: await reach(OPENAI_BASE_URL.replace(OPENAI_API_KEY, "0".repeat(32)) + "/models"),
}));
process.exit(0);
`;

const files = {
  "agent/agent.mjs": AGENT,
  "agent/waits.sh": "trap '' TERM\nsetsid sleep 98765 &\necho waiting\nwhile :; do sleep 1; done\n",
  "install.sh": "test -f agent.mjs && touch /opt/installed\n",
  "broken.sh": "echo no network >&2\nexit 7\n",
};
const never = new AbortController().signal;
const model = (endpoint: ScriptedOpenAi) => ({ baseUrl: endpoint.baseUrl, apiKey: "real-key", name: "m" });

for (const engine of ["oci", "docker"] as const) {
  describeNeeding(engine === "oci" ? "runc" : "docker", `a program in the sandbox of its task, with the engine ${engine}`, () => {
    let daemon: DockerDaemon | null = null;
    let platform: Platform;
    let tree: Tree;
    let recorder: RecordingServer;
    let instances: InstancePool;
    beforeAll(async () => {
      tree = temporaryTree(files);
      daemon = engine === "docker" ? await startDocker() : null;
      recorder = await RecordingServer.open();
      platform = await startPlatform({ flags: { engine, ...(daemon !== null && { dockerSocket: daemon.socket }) } });
      instances = instancesOn(platform, await publish(platform, projects.workshop));
    }, 180_000);
    afterAll(async () => {
      await instances?.close();
      await recorder?.close();
      await platform?.close();
      await daemon?.[Symbol.asyncDispose]();
      tree?.[Symbol.dispose]();
    }, 120_000);

    function play(inside: InsideOptions, own: Partial<PlayOptions> & { task?: string } = {}): Promise<Trajectory> {
      const { task = "answer", ...options } = own;
      const spec = { id: "e", run: null, attempt: 0, task: { id: task, split: null, index: null }, group: null, seed: 7, metadata: {} };
      return playEpisode(
        spec,
        playOptionsOf(insideAgent(inside), instances, { recorder, deadlineMs: 120_000, recordsDigests: false, ...options }),
      );
    }

    /** The commands that run in the sandbox of the instance that is used next. */
    async function running(): Promise<string> {
      const lease = await instances.acquire({ task: { id: "answer", split: null, index: null }, seed: 0 }, never);
      const { stdout } = await lease.instance.sandbox.exec("cat /proc/[0-9]*/cmdline | tr '\\0' ' '");
      await lease.release(true);
      return stdout;
    }

    it("is installed, reaches its model and the tools and nothing else, and leaves no process", async () => {
      await using endpoint = await scriptedOpenAi(["cat /proc/sys/kernel/ostype", "echo 42 > /tmp/work/answer", "done"]);
      const recorderUrl = recorder.record({
        instanceUrl: "http://127.0.0.1:1/",
        model: null,
        onToolCall: { begin: () => {}, end: () => {} },
        onExchange: { begin: () => {}, end: () => {}, fail: () => {} },
      }).agentUrl;
      const command = ["node", "/opt/agent/agent.mjs", `${endpoint.baseUrl}/models`, recorderUrl];
      const inside = { command, files: join(tree.path, "agent"), install: join(tree.path, "install.sh"), user: "1000" };
      const trajectory = await play(inside, { model: model(endpoint) });
      expect(trajectory.outcome).toMatchObject({ kind: "scored", reward: 1 });
      expect(trajectory).toMatchObject({ stop_reason: "done", steps: [{ call: { name: "list_files" } }] });
      expect(trajectory.turns).toHaveLength(3);
      expect(trajectory.messages.map(({ content }) => content)).toContain("it printed: Linux\n");
      const report = trajectory.metadata.agent_program as { exit_code: number; stdout_tail: string };
      expect(report).toMatchObject({ exit_code: 0, signal: null, stderr_tail: "" });
      expect(JSON.parse(report.stdout_tail)).toEqual({
        installed: true,
        user: 1000,
        listed: "answer",
        model: "none",
        recorder: "none",
        other: "404",
      });
      expect(endpoint.requests.every(({ headers }) => headers.authorization === "Bearer real-key")).toBe(true);
      expect(JSON.stringify(trajectory)).not.toContain("real-key");
      expect(trajectory.provenance.agent_settings).toMatchObject({
        inside: { user: "1000" },
        filesDigest: expect.stringMatching(/^sha256:/),
      });
      expect(await running()).not.toContain("98765");
    }, 120_000);

    // What follows does not depend on the engine.
    if (engine === "oci") {
      it("is ended with its children when its time or its turns are over, and the episode is scored", async () => {
        const waits = { command: ["sh", "/opt/agent/waits.sh"], files: join(tree.path, "agent") };
        const trajectory = await play(waits, { limits: { seconds: 2 } });
        expect(trajectory).toMatchObject({ stop_reason: "time_limit", outcome: { kind: "scored", reward: 0 } });
        expect(await running()).not.toContain("98765");
        await using endpoint = await scriptedOpenAi(() => "true");
        const command = ["node", "/opt/agent/agent.mjs"];
        const limited = await play({ command, files: join(tree.path, "agent") }, { model: model(endpoint), limits: { turns: 2 } });
        expect(limited).toMatchObject({ stop_reason: "max_turns", truncated: true, outcome: { kind: "scored" } });
        expect(limited.turns).toHaveLength(2);
      }, 120_000);

      it("that cannot be installed or started, or fails, is unscored with the reason", async () => {
        const messageOf = async (inside: InsideOptions) => {
          const { outcome } = await play(inside);
          return outcome.kind === "unscored" ? [outcome.cause, outcome.message] : outcome;
        };
        expect(await messageOf({ command: ["true"], install: join(tree.path, "broken.sh") })).toEqual([
          "agent",
          expect.stringMatching(/broken\.sh ended with exit code 7: no network$/),
        ]);
        expect(await messageOf({ command: ["no-such-program"] })).toEqual([
          "agent",
          expect.stringContaining("could not be started in the sandbox"),
        ]);
        expect(await messageOf({ command: ["sh", "-c", "echo oh >&2; exit 3"] })).toEqual(["agent", "sh ended with exit code 3: oh"]);
      }, 120_000);

      it("runs in the instance's own sandbox, if the task has none", async () => {
        const own = instancesOn(platform, await publish(platform, projects.echo));
        const call = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "echo", arguments: { text: "hello" } } };
        const script = `fetch(process.env.AENV_AGENT_URL, { method: "POST", headers: { "content-type": "application/json", accept: "application/json, text/event-stream" }, body: ${JSON.stringify(JSON.stringify(call))} }).then((r) => r.text()).then(() => process.exit(0))`;
        const acquire: PlayOptions["acquire"] = (spec, signal) => own.acquire(spec, signal);
        const trajectory = await play({ command: ["node", "-e", script] }, { task: "greet", acquire });
        await own.close();
        expect(trajectory).toMatchObject({ outcome: { kind: "scored" }, steps: [{ call: { name: "echo" } }] });
      }, 60_000);
    }
  });
}
