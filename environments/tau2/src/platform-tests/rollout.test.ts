import { fileURLToPath } from "node:url";
import { readTrajectories } from "@aenv/rollout";
import { describeNeeding, type ModelRequest, type ScriptedOpenAi, scriptedOpenAi, type Tree, temporaryTree, timeless } from "@aenv/testing";
import { aenv } from "aenvironment/cli-tests";
import { type Platform, publish, startPlatform } from "aenvironment/platform-tests";
import { afterAll, beforeAll, expect, it } from "vitest";
import { dataPath, type GoldenTask, goldenTasks } from "./testing/golden-task.ts";
import { blocksOf } from "./testing/play.ts";
import { AGENT, episodesBySeed, type ScriptedEpisode, scriptedAgent } from "./testing/scripted-agent.ts";
import { JUDGE, scriptedModels, USER } from "./testing/scripted-models.ts";

/** All tasks of telecom take minutes; AENV_TAU2_ALL=1 plays them. */
const isWhole = process.env.AENV_TAU2_ALL === "1";
const VARIANTS = ["golden", "drop_last_write", "twice", "golden_silent", "nothing"];

const SOME = ["golden", "drop_last_write", "golden_silent"];

const runs = [
  { domain: "mock", variants: VARIANTS },
  { domain: "airline", variants: SOME },
  { domain: "retail", variants: SOME },
  // Only those of so many tasks whose vectors have all of the variants.
  { domain: "telecom", variants: isWhole ? ["golden"] : ["golden", "drop_last_write", "twice", "nothing"], hasAll: true },
  { domain: "telecom-workflow", variants: ["golden", "drop_last_write"], hasAll: true, limit: isWhole ? undefined : 243 },
];
type Run = (typeof runs)[number];

const tasksOf = ({ domain, variants, hasAll = false, limit }: Run) => goldenTasks(domain, limit, hasAll ? variants : []);

describeNeeding("tau2-data", "tau2 through aenv rollout, with a scripted agent and a scripted user", () => {
  let models: ScriptedOpenAi;
  let tree: Tree;
  let platform: Platform;
  let ref: string;
  let episodes = new Map<number, ScriptedEpisode>();

  beforeAll(async () => {
    const script = (request: ModelRequest) => (request.model === AGENT ? scriptedAgent(request, episodes) : scriptedModels(request));
    models = await scriptedOpenAi(script, { keepsRequests: false });
    tree = temporaryTree();
    platform = await startPlatform();
    ref = await publish(platform, fileURLToPath(new URL("../..", import.meta.url)), { isolation: "shared" });
  }, 60_000);
  afterAll(async () => {
    await platform?.close();
    await models?.close();
    tree?.[Symbol.dispose]();
  });

  const variables = (domain: string) =>
    Object.entries({
      TAU2_DATA_DIR: dataPath,
      TAU2_DOMAIN: domain,
      TAU2_SOLO_MODE: "false",
      TAU2_MAX_STEPS: "400",
      TAU2_USER_LLM: USER,
      TAU2_USER_LLM_API_BASE: models.baseUrl,
      TAU2_JUDGE_LLM: JUDGE,
      TAU2_JUDGE_LLM_API_BASE: models.baseUrl,
    }).flatMap(([name, value]) => ["--var", `${name}=${value}`]);
  // A run does not keep keys, so a replay is given them again.
  const keys = ["--var", "TAU2_USER_LLM_API_KEY=user-key", "--var", "TAU2_JUDGE_LLM_API_KEY=judge-key"];

  async function rollout(domain: string, tasks: readonly GoldenTask[], variants: readonly string[], more: readonly string[] = []) {
    episodes = episodesBySeed(tasks, variants);
    const chosen = tasks.flatMap(({ id }) => ["--task", id]);
    const agent = ["--agent", "openai", "--model", AGENT, "--base-url", models.baseUrl, "--model-key", "agent-key"];
    const run = ["--run", domain, "-n", String(variants.length), "-c", "32", "--digests", "--json", ...more];
    const { code, stdout, stderr } = await aenv(
      ["rollout", ref, "--system-url", platform.controlUrl, ...variables(domain), ...keys, ...chosen, ...agent, ...run],
      { cwd: tree.path },
    );
    expect([code, code === 0 ? "" : stderr]).toEqual([0, ""]);
    return JSON.parse(stdout);
  }

  it("plays 1,000 different episodes or more", () => {
    const different = runs.flatMap((run) =>
      tasksOf(run).flatMap(({ rewards }) => run.variants.filter((name) => rewards[name] !== undefined)),
    );
    expect(different.length).toBeGreaterThanOrEqual(1_000);
  });

  it.each(runs)(
    "gives the reference's answers and rewards in $domain, and again in a replay",
    {
      timeout: isWhole ? 1_800_000 : 300_000,
    },
    async (run) => {
      const { domain, variants } = run;
      const tasks = tasksOf(run);
      const summary = await rollout(domain, tasks, variants);
      expect(summary).toMatchObject({ episodes: tasks.length * variants.length, scored: tasks.length * variants.length });
      const problems: string[] = [];
      let found = 0;
      for await (const { id, seed, steps, messages, outcome } of readTrajectories(`${summary.folder}/trajectories.jsonl`)) {
        const { task, steps: wanted, reward } = episodes.get(seed) as ScriptedEpisode;
        found++;
        const compare = (what: string, got: unknown, expected: unknown) => {
          if (JSON.stringify(got) !== JSON.stringify(expected)) {
            problems.push(`${id}, task ${task.id}: ${what} is ${JSON.stringify(got)} and not ${JSON.stringify(expected)}`);
          }
        };
        compare("the reward", outcome.kind === "scored" ? outcome.reward : outcome, reward);
        if (!isBeginning(wanted, task.steps)) continue;
        // The agent reads what the reference's tools return, and nothing else: no reward, no step number.
        const own = blocksOf(wanted).filter(([first]) => first?.requestor === "assistant");
        const contents = own.map(([step]) => step?.content);
        const read = messages.filter(({ role }) => role === "tool").map(({ content }) => content);
        compare(
          "what the tools returned",
          steps.map(({ result }) => textIn(result.content)),
          contents,
        );
        compare("what the agent read", read.slice(read.length - own.length), contents);
      }
      expect(problems).toEqual([]);
      expect(found).toBe(summary.episodes);
      expect(models.refusals).toEqual([]);
      expect(summary.passHatK).toEqual(paperPassHatK(tasks, variants.length));

      const replayed = await aenv(["replay", domain, "--system-url", platform.controlUrl, ...keys, "-c", "32", "--json"], {
        cwd: tree.path,
      });
      expect([replayed.code, JSON.parse(replayed.stdout)]).toMatchObject([0, { equal: found, skipped: 0, unequal: [] }]);
    },
  );

  it("has no score, and says which variable to set, for tasks that need a judge when there is none", { timeout: 120_000 }, async () => {
    const id = goldenTasks("retail").find(({ needsJudge }) => needsJudge)?.id ?? "";
    const line = ["rollout", ref, "--system-url", platform.controlUrl, "--var", `TAU2_DATA_DIR=${dataPath}`, "--var", "TAU2_DOMAIN=retail"];
    const { code, stdout, stderr } = await aenv([...line, "--task", id], { cwd: tree.path });
    expect([code, stdout]).toEqual([1, expect.stringMatching(/unscored +1 environment/)]);
    expect(stderr).toContain("no judge model is configured: set TAU2_JUDGE_LLM, TAU2_JUDGE_LLM_API_BASE and TAU2_JUDGE_LLM_API_KEY");
  });

  it("says what to set for a task that cannot be played solo", { timeout: 120_000 }, async () => {
    const line = ["rollout", ref, "--system-url", platform.controlUrl, "--var", `TAU2_DATA_DIR=${dataPath}`, "--var", "TAU2_DOMAIN=mock"];
    const { code, stderr } = await aenv([...line, "--task", "update_task_with_message_history"], { cwd: tree.path });
    expect([code, stderr]).toEqual([1, expect.stringContaining("begins with messages of a user")]);
    expect(stderr).toContain("set TAU2_SOLO_MODE=false");
  });

  it("plays the same episodes again, byte by byte but for the times, in whatever order they end", { timeout: 120_000 }, async () => {
    const tasks = goldenTasks("mock");
    const played = async (runs: string, concurrency: string) => {
      const { folder } = await rollout("mock", tasks, VARIANTS, ["--runs", runs, "-c", concurrency]);
      const found: string[] = [];
      for await (const one of readTrajectories(`${folder}/trajectories.jsonl`)) found.push(timeless(one));
      return found.sort();
    };
    expect(await played("first", "32")).toEqual(await played("second", "3"));
  });

  /** pass^k as in the paper: the mean over tasks of C(c, k) / C(n, k), where c of a task's n episodes have the reward 1. */
  function paperPassHatK(tasks: readonly GoldenTask[], samples: number) {
    const passes = Map.groupBy(episodes.values(), ({ task }) => task.id);
    const ofTask = (id: string, k: number) =>
      choose(passes.get(id)?.filter(({ reward }) => reward === 1).length ?? 0, k) / choose(samples, k);
    const ks = Array.from({ length: samples }, (_, at) => at + 1);
    return Object.fromEntries(
      ks.map((k) => [
        k,
        { value: expect.closeTo(tasks.reduce((sum, { id }) => sum + ofTask(id, k), 0) / tasks.length, 9), tasks: tasks.length },
      ]),
    );
  }
});

/** Whether these are the golden actions from the first on, so that the vectors have their results. */
function isBeginning(steps: readonly unknown[], golden: readonly unknown[]): boolean {
  return steps.every((step, at) => step === golden[at]);
}

function textIn(content: readonly Readonly<Record<string, unknown>>[]): unknown {
  return content[0]?.text;
}

function choose(n: number, k: number): number {
  return k > n ? 0 : k === 0 ? 1 : (choose(n - 1, k - 1) * n) / k;
}
