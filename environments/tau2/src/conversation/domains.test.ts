import { join } from "node:path";
import { describeNeeding, type ModelRequest, type ScriptedTurn, scriptedOpenAi, tau2Path } from "@aenv/testing";
import { afterEach, expect, it } from "vitest";
import type { GoldenAction, Task } from "../core/tasks.ts";
import { userPrompt, userTools } from "../core/user-prompt.ts";
import { domains, openDomain } from "../domains/index.ts";
import { tau2Environment } from "../episode/environment.ts";
import { type Json, judgeVariables, KEY, openSandbox, type Sandbox, type TestInstance, userVariables } from "../fixtures/sandbox.ts";
import { writeJson } from "../python/json/writer.ts";

const TAU2_DATA_DIR = join(tau2Path, "data");
/** Time limit of hundreds of conversations on a busy machine. */
const SLOW_MS = 120_000;

let sandbox: Sandbox | null = null;
afterEach(async () => {
  const responses = sandbox?.responses ?? [];
  await sandbox?.[Symbol.asyncDispose]();
  sandbox = null;
  expect(responses.some((text) => text.includes(KEY))).toBe(false);
});

const sandboxOf = async (domain: string): Promise<Sandbox> => {
  sandbox = await openSandbox(tau2Environment({ domains, open: openDomain, variables: { TAU2_DATA_DIR, TAU2_DOMAIN: domain } }));
  return sandbox;
};

/** A user that performs the user's golden actions when asked to, and a judge that accepts every assertion. */
class Actors {
  readonly turns: ScriptedTurn[] = [];
  readonly requests: ModelRequest[] = [];

  readonly play = (request: ModelRequest): ScriptedTurn => {
    if (request.messages[1]?.text.includes("expectedOutcomes:")) return JSON.stringify({ results: [] });
    this.requests.push(request);
    return this.turns.shift() ?? { status: 400, message: "the user has nothing more to say" };
  };
}

/** The golden actions of two mock tasks do not fulfil their assertions. */
const UNFULFILLED = ["update_task_with_history_and_env_assertions", "update_task_with_user_tools"];

/** Whether the user sends the first message; a task may have a message history. */
const isUsersTurn = ({ initial_state }: Task) => (initial_state?.message_history?.at(-1)?.role ?? "assistant") === "assistant";

const argsOf = (action: GoldenAction): Json => JSON.parse(writeJson(action.arguments)) as Json;

/** Runs a task's golden actions in order, sends the required information, and lets the user stop. */
async function playGolden(instance: TestInstance, task: Task, actors: Actors): Promise<Json> {
  const { actions, communicate_info } = task.evaluation_criteria ?? { actions: [], communicate_info: [] };
  for (const [n, action] of (actions ?? []).entries()) {
    if (action.requestor === "assistant") {
      await instance.tool(action.name, argsOf(action));
      continue;
    }
    actors.turns.push({ toolCalls: [{ name: action.name, arguments: writeJson(action.arguments), id: `golden-${n}` }] }, "It is done.");
    await instance.say("Please do the next thing.");
  }
  actors.turns.push("Thank you ###STOP###");
  return instance.say(`This is what there is to know: ${(communicate_info ?? []).join(", ")}.`);
}

describeNeeding("tau2-data", "conversations with the benchmark's data", () => {
  it.each([
    ["mock", "base", 8],
    ["airline", "base", 50],
    ["retail", "base", 114],
    ["telecom", "base", 114],
    ["telecom-workflow", "small", 20],
  ])(
    "%s, split %s: each of the %i tasks, played by agent and user to its golden actions, has the reward 1",
    { timeout: SLOW_MS },
    async (name, split, count) => {
      const domain = openDomain(name, TAU2_DATA_DIR);
      const actors = new Actors();
      await using model = await scriptedOpenAi(actors.play);
      const served = await sandboxOf(name);
      const tasks = domain.tasks.select(split).filter(({ id }) => !UNFULFILLED.includes(id));
      expect(tasks).toHaveLength(count);
      const missed: unknown[] = [];
      for (const task of tasks) {
        if (isUsersTurn(task)) actors.turns.push("I need help.");
        const instance = await served.open(userVariables(model, task.id, { ...judgeVariables(model), TAU2_MAX_STEPS: "200" }));
        const ended = await playGolden(instance, task, actors);
        if (ended.reward !== 1 || ended.done !== true) missed.push([task.id, ended]);
        const [first] = actors.requests;
        if (first?.messages[0]?.text !== userPrompt(domain, task)) missed.push([task.id, "got another prompt"]);
        actors.requests.length = 0;
      }
      expect(missed).toEqual([]);
      expect(model.refusals).toEqual([]);
    },
  );

  const openInstance = async (domain: string, taskId: string, model: { baseUrl: string }, more: Record<string, string> = {}) =>
    (await sandboxOf(domain)).open(userVariables(model, taskId, more));

  it("telecom: the user takes several steps on the phone in a row, and the agent sees only the user's messages", async () => {
    const domain = openDomain("telecom", TAU2_DATA_DIR);
    const task = domain.tasks.select("small").find(({ id }) => id.includes("airplane_mode_on")) as Task;
    const act = (...names: readonly string[]): ScriptedTurn => ({
      text: "thinking aloud",
      toolCalls: names.map((name) => ({ name, id: `id-${name}` })),
    });
    await using model = await scriptedOpenAi([
      "My phone does not work.",
      act("check_status_bar", "check_network_status"),
      act("toggle_airplane_mode"),
      act("fly_to_the_moon"),
      "I switched airplane mode off.",
      "You cannot help me ###TRANSFER###",
    ]);
    const instance = await openInstance("telecom", task.id, model);
    expect(await instance.status()).toMatchObject({ last_observation: "My phone does not work.", step: 0 });
    expect(await instance.say("Look at your phone.")).toEqual({ observation: "I switched airplane mode off.", reward: 0, done: false });
    expect(await instance.tool("transfer_to_human_agents", { summary: "a phone" })).toMatchObject({ observation: "Transfer successful" });
    expect(await instance.say("YOU ARE BEING TRANSFERRED TO A HUMAN AGENT. PLEASE HOLD ON.")).toMatchObject({
      done: true,
      observation: "You cannot help me ###TRANSFER###",
    });
    expect(await instance.status()).toMatchObject({ termination_reason: "user_stop" });

    const [first, last] = [model.requests[0], model.requests.at(-1)];
    expect(first?.tools.map(({ name }) => name)).toEqual(userTools(domain, task)?.map(({ name }) => name));
    expect(first?.messages[0]?.text).toBe(userPrompt(domain, task));
    expect(last?.messages.slice(1).map(({ role }) => role)).toEqual(
      "user assistant user assistant tool tool assistant tool assistant tool assistant user".split(" "),
    );
    const results = last?.messages.filter(({ role }) => role === "tool").map(({ text }) => text);
    expect(results?.[0]).toContain("Airplane Mode");
    expect(results?.[2]).toMatch(/airplane mode is now OFF/i);
    expect(results?.[3]).toBe("Error: Tool 'fly_to_the_moon' not found.");
    expect(model.refusals).toEqual([]);
  });

  it("telecom: the user's own steps and errors count toward the limits", async () => {
    const id = openDomain("telecom", TAU2_DATA_DIR).tasks.select("small")[0]?.id ?? "";
    const busy = (name: string) => (request: ModelRequest) => (request.turn === 0 ? "Hello" : { toolCalls: [{ name }] });
    await using tireless = await scriptedOpenAi(busy("check_status_bar"));
    const served = await sandboxOf("telecom");
    const long = await served.open(userVariables(tireless, id, { TAU2_MAX_STEPS: "20" }));
    expect(await long.say("Look.")).toMatchObject({ done: true, reward: 0 });
    expect(await long.status()).toMatchObject({ termination_reason: "max_steps" });
    await using clumsy = await scriptedOpenAi(busy("check_horoscope"));
    const wrong = await served.open(userVariables(clumsy, id));
    expect(await wrong.say("Look.")).toMatchObject({ done: true, reward: 0 });
    expect(await wrong.status()).toMatchObject({ termination_reason: "too_many_errors" });
  });

  it.each(["###STOP###", "###TRANSFER###", "###OUT-OF-SCOPE###"])(
    "airline: where nothing was to be done, a user who ends with %s leaves the reward 1",
    async (token) => {
      const isIdle = ({ evaluation_criteria: criteria }: Task) => !criteria?.actions?.length && !criteria?.communicate_info?.length;
      const task = openDomain("airline", TAU2_DATA_DIR).tasks.tasks.find(isIdle) as Task;
      await using model = await scriptedOpenAi(["I want a refund.", `Well then. ${token}`]);
      const instance = await openInstance("airline", task.id, model);
      expect(await instance.tool("transfer_to_human_agents", { summary: "no refund" })).toMatchObject({
        observation: "Transfer successful",
      });
      expect(await instance.say("That cannot be done.")).toEqual({ observation: `Well then. ${token}`, reward: 1, done: true });
      // A user without tools gets none in the request.
      expect(model.requests.map(({ body }) => "tools" in body)).toEqual([false, false]);
    },
  );

  it("airline: the agent sees its errors, and the tenth ends the episode", async () => {
    await using model = await scriptedOpenAi(["I want a refund."]);
    const instance = await openInstance("airline", "0", model);
    expect(await instance.tool("get_user_details", { user_id: "nobody" })).toMatchObject({
      observation: "Error: User nobody not found",
      done: false,
    });
    expect(await instance.tool("get_user_details", {})).toMatchObject({
      observation: "Error: AirlineTools.get_user_details() missing 1 required positional argument: 'user_id'",
    });
    for (let n = 3; n < 10; n++) expect(await instance.tool("calculate", { expression: "x" })).toMatchObject({ done: false, step: n });
    expect(await instance.tool("calculate", { expression: "x" })).toMatchObject({ done: true, reward: 0, step: 10 });
    expect(await instance.status()).toMatchObject({ termination_reason: "too_many_errors" });
  });

  it("retail: the reward is 1 or 0 as the judge decides, and null without a judge or if it fails", async () => {
    const domain = openDomain("retail", TAU2_DATA_DIR);
    const isJudged = ({ evaluation_criteria: criteria }: Task) => (criteria?.nl_assertions ?? []).length > 0;
    const task = domain.tasks.select("base").find(isJudged) as Task;
    const assertions = task.evaluation_criteria?.nl_assertions ?? [];
    const verdicts = (metExpectation: boolean): ScriptedTurn =>
      JSON.stringify({ results: assertions.map((expectedOutcome) => ({ expectedOutcome, metExpectation, reasoning: "because" })) });
    const served = await sandboxOf("retail");
    const playJudged = async (verdict: ScriptedTurn | null) => {
      const actors = new Actors();
      actors.turns.push("I need help.");
      await using user = await scriptedOpenAi(actors.play);
      await using judge = await scriptedOpenAi(() => verdict as ScriptedTurn);
      const instance = await served.open(userVariables(user, task.id, verdict === null ? {} : judgeVariables(judge)));
      const ended = await playGolden(instance, task, actors);
      for (const assertion of assertions) {
        if (verdict !== null) expect(judge.requests[0]?.messages[1]?.text).toContain(assertion.slice(0, 20));
      }
      return ended;
    };
    expect(await playJudged(verdicts(true))).toMatchObject({ done: true, reward: 1 });
    expect(await playJudged(verdicts(false))).toMatchObject({ done: true, reward: 0 });
    expect(await playJudged(null)).toMatchObject({ done: true, reward: null, unscored: expect.stringContaining("no judge model") });
    expect(await playJudged({ status: 400, message: "no" })).toMatchObject({
      reward: null,
      unscored: expect.stringContaining("answered 400"),
    });
  });
});
