import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describeNeeding, pythonPath, scriptedOpenAi, tau2Path } from "@aenv/testing";
import { type Platform, publish, startPlatform } from "aenvironment/platform-tests";
import { afterAll, beforeAll, expect, it } from "vitest";
import { freeLoopback, ORIGINAL_PORT } from "./original.ts";

const TAU2_DATA_DIR = join(tau2Path, "data");
const project = fileURLToPath(new URL("../../environments/tau2", import.meta.url));

interface Turn {
  readonly calls: readonly (readonly [tool: string, args: object])[];
  readonly say: string | null;
}

interface Task {
  readonly id: string;
  readonly evaluation_criteria: {
    readonly actions: readonly { readonly name: string; readonly arguments: object }[];
    readonly communicate_info: readonly string[] | null;
  };
}

function findTask(domain: string, isWanted: (task: Task) => boolean): Task {
  const tasks: Task[] = JSON.parse(readFileSync(join(TAU2_DATA_DIR, domain, "tasks.json"), "utf8"));
  const task = tasks.find(isWanted);
  if (task === undefined) throw new Error(`${domain} has no such task`);
  return task;
}

const callsOf = ({ evaluation_criteria: { actions } }: Task) => actions.map((action) => [action.name, action.arguments] as const);

describeNeeding("python", "the original Python SDK's loop over tau2, unchanged", () => {
  describeNeeding("tau2-data", "with the benchmark's data", () => {
    // Its clients only support the ports 8080 and 8081; all of 127/8 is loopback, so each test gets an address of its own.
    const host = freeLoopback();
    let platform: Platform;
    let ref: string;

    beforeAll(async () => {
      platform = await startPlatform({ flags: { host, controlPort: 8080, dataPort: ORIGINAL_PORT } });
      ref = await publish(platform, project, { isolation: "shared" });
    }, 60_000);
    afterAll(() => platform?.close());

    const playFromPython = async (variables: Record<string, string>, turns: readonly Turn[]): Promise<Record<string, unknown>> => {
      const script = join(import.meta.dirname, "tau2_loop.py");
      const args = [script, `http://${host}`, ref, JSON.stringify({ TAU2_DATA_DIR, ...variables }), JSON.stringify(turns)];
      const env = { ...process.env, PYTHONDONTWRITEBYTECODE: "1", PYTHONWARNINGS: "ignore" };
      const { stdout } = await promisify(execFile)(pythonPath, args, { env, timeout: 60_000 });
      return JSON.parse(stdout.trim().split("\n").at(-1) ?? "");
    };

    it("talks with a user simulated by a model, and gets a reward for its actions and messages", { timeout: 90_000 }, async () => {
      const task = findTask("airline", ({ evaluation_criteria: { actions, communicate_info } }) => {
        return (communicate_info ?? []).length > 0 && actions.length > 0;
      });
      await using user = await scriptedOpenAi(["I need help with my flight.", "Please go on.", "Thank you. ###STOP###"]);
      const calls = callsOf(task);
      const words = (task.evaluation_criteria.communicate_info ?? []).join(" ");
      const variables = {
        TAU2_DOMAIN: "airline",
        TAU2_TASK_ID: task.id,
        TAU2_SOLO_MODE: "false",
        TAU2_USER_LLM: "openai/scripted",
        TAU2_USER_LLM_API_BASE: user.baseUrl,
        TAU2_USER_LLM_API_KEY: "sk-quiet",
      };
      const report = await playFromPython(variables, [
        { calls: [], say: "Let me see." },
        { calls, say: words },
      ]);
      expect(report).toMatchObject({
        prompt: expect.stringMatching(/^<instructions>.*<policy>.*# Airline Agent Policy/s),
        info: { task_id: task.id, domain: "airline", ticket: null, max_steps: 50, solo_mode: false },
        tools: expect.arrayContaining(["book_reservation", "get_user_details", "done"]),
        heard: ["I need help with my flight.", "Please go on."],
        answers: calls.map((_, i) => [false, { done: false, reward: 0, step: i + 2, observation: expect.any(String) }]),
        said: { observation: "Thank you. ###STOP###", reward: 1, done: true },
        reward: { total_reward: 1, done: true, steps: calls.length + 2 },
        status: { done: true, total_reward: 1, step: calls.length + 2, environment: { TAU2_DOMAIN: "airline" } },
      });
      expect(report.schemas).toBe((report.tools as string[]).length);
      expect((report.info as { tools: string[] }).tools).toEqual(report.tools);
      expect(JSON.stringify(report)).not.toContain("sk-quiet");
      expect(report).not.toHaveProperty("ended");
    });

    it("works alone on a ticket with the tools of agent and user, and ends the episode itself", { timeout: 90_000 }, async () => {
      const task = findTask("telecom", ({ evaluation_criteria: { actions } }) => new Set(actions.map(({ name }) => name)).size > 4);
      const calls = callsOf(task);
      const variables = { TAU2_DOMAIN: "telecom", TAU2_TASK_ID: task.id, TAU2_SOLO_MODE: "true" };
      const report = await playFromPython(variables, [{ calls, say: null }]);
      expect(report).toMatchObject({
        prompt: expect.stringContaining("<ticket>"),
        info: { task_id: task.id, domain: "telecom", ticket: expect.any(String), solo_mode: true },
        tools: expect.arrayContaining(["enable_roaming", "toggle_airplane_mode", "done"]),
        heard: ["Please start working on the task."],
        ended: { done: true, total_reward: 1, steps: calls.length + 1, final_observation: expect.any(String) },
        reward: { rewards: [...calls.map(() => 0), 1], total_reward: 1, done: true, steps: calls.length + 1 },
        status: { done: true, step: calls.length + 1, last_observation: expect.any(String) },
      });
      expect(report.answers).toHaveLength(calls.length);
    });

    it("releases its instances", async () => {
      expect(await platform.demand("GET", "/env-instance/*/list?status=Running")).toEqual([]);
    });
  });
});
