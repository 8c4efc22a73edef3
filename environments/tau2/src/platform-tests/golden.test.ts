import { fileURLToPath } from "node:url";
import { describeNeeding, type ModelRequest, type ScriptedOpenAi, scriptedOpenAi } from "@aenv/testing";
import { Environment } from "aenvironment";
import { type Platform, publish, startPlatform } from "aenvironment/platform-tests";
import { afterAll, beforeAll, expect, it } from "vitest";
import { dataPath, type GoldenTask, goldenTasks } from "./testing/golden-task.ts";
import { expected, finish, hashesOf, play } from "./testing/play.ts";
import { JUDGE, scriptedModels, USER } from "./testing/scripted-models.ts";

/** All of telecom takes minutes; AENV_TAU2_ALL=1 runs it. */
const isWhole = process.env.AENV_TAU2_ALL === "1";
const AT_A_TIME = 256;

describeNeeding("tau2-data", "the reference's golden actions through the whole platform", () => {
  let platform: Platform;
  let people: ScriptedOpenAi;
  let judgements = 0;
  let ref: string;

  beforeAll(async () => {
    const script = (request: ModelRequest) => {
      if (request.model === JUDGE) judgements++;
      return scriptedModels(request);
    };
    people = await scriptedOpenAi(script, { keepsRequests: false });
    platform = await startPlatform();
    ref = await publish(platform, fileURLToPath(new URL("../..", import.meta.url)), { isolation: "shared" });
  }, 60_000);
  afterAll(async () => {
    await platform?.close();
    await people?.close();
  });

  const open = ({ domain, id }: GoldenTask): Promise<Environment> =>
    Environment.create(ref, {
      controlUrl: platform.controlUrl,
      dataUrl: platform.dataUrl,
      // 256 concurrent episodes are slow on a busy machine.
      timeoutMs: 180_000,
      variables: {
        TAU2_DATA_DIR: dataPath,
        TAU2_DOMAIN: domain,
        TAU2_TASK_ID: id,
        TAU2_SOLO_MODE: "false",
        TAU2_MAX_STEPS: "200",
        ...modelAt("TAU2_USER_LLM", USER),
        ...modelAt("TAU2_JUDGE_LLM", JUDGE),
      },
    });
  const modelAt = (prefix: string, model: string) => ({
    [prefix]: model,
    [`${prefix}_API_BASE`]: people.baseUrl,
    [`${prefix}_API_KEY`]: "k",
  });

  const tasks = () => [
    ...goldenTasks("mock"),
    ...goldenTasks("airline"),
    ...goldenTasks("retail"),
    ...goldenTasks("telecom", isWhole ? undefined : AT_A_TIME),
    ...goldenTasks("telecom-workflow", 16),
  ];

  it(`lead to the same answers, digests and rewards on an instance, on another one, and on a fork: every task of mock, airline and retail, ${isWhole ? "every one" : AT_A_TIME} of telecom, 16 of telecom-workflow, ${AT_A_TIME} episodes at a time`, {
    timeout: isWhole ? 900_000 : 240_000,
  }, async () => {
    const played = tasks();
    const problems = await together(played, async (task, compare) => {
      const half = Math.floor(task.steps.length / 2);
      const [before, after] = [task.steps.slice(0, half), task.steps.slice(half)];
      await using first = await open(task);
      compare("its beginning", await hashesOf(first), task.initialHashes);
      compare("the first half", await play(first, before), expected(before));
      const [fork] = await first.fork();
      if (fork === undefined) throw new Error("the fork is missing");
      await using copy = fork;
      compare("the second half", await play(first, after), expected(after));
      compare("the reward", await finish(first, task.infos), task.reward);
      compare("the second half on the fork", await play(copy, after), expected(after));
      compare("the reward on the fork", await finish(copy, task.infos), task.reward);
      await using again = await open(task);
      compare("all of it again", await play(again, task.steps), expected(task.steps));
      compare("the reward of all of it again", await finish(again, task.infos), task.reward);
    });
    expect(problems).toEqual([]);
    expect(people.refusals).toEqual([]);
    // The judge accepts everything, and is only used for tasks with natural-language assertions.
    expect(judgements).toBe(3 * played.filter(({ needsJudge }) => needsJudge).length);
  });

  it("give the reference's reward if none of them is run", { timeout: 120_000 }, async () => {
    const known = tasks().filter(({ rewardForNothing }) => rewardForNothing !== null);
    const problems = await together(known, async (task, compare) => {
      await using env = await open(task);
      compare("the reward for nothing", await finish(env, []), task.rewardForNothing);
      compare("its end", await hashesOf(env), task.initialHashes);
    });
    expect(problems).toEqual([]);
  });
});

type Compare = (what: string, got: unknown, wanted: unknown) => void;

/** Runs up to `AT_A_TIME` tasks concurrently, and returns the mismatches. */
async function together(tasks: readonly GoldenTask[], work: (task: GoldenTask, compare: Compare) => Promise<void>): Promise<string[]> {
  const problems: string[] = [];
  const queue = [...tasks];
  const worker = async (): Promise<void> => {
    for (let task = queue.shift(); task !== undefined; task = queue.shift()) {
      const where = `${task.domain} ${task.id}`;
      const compare: Compare = (what, got, wanted) => {
        if (JSON.stringify(got) !== JSON.stringify(wanted)) {
          problems.push(`${where}: ${what} is ${JSON.stringify(got)} and not ${JSON.stringify(wanted)}`);
        }
      };
      await work(task, compare).catch((error: unknown) => problems.push(`${where}: ${String(error)}`));
    }
  };
  await Promise.all(Array.from({ length: AT_A_TIME }, worker));
  return problems;
}
