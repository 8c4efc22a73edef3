import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { type EnvironmentDefinition, serve } from "@aenv/kit";
import { localModels } from "@aenv/rollout";
import { Environment } from "@aenv/sdk";
import { type Script, type ScriptedOpenAi, scriptedOpenAi, temporaryTree } from "@aenv/testing";
import { aenv } from "aenvironment/cli-tests";
import { type Platform, publish, startPlatform } from "aenvironment/platform-tests";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import debate from "./debate/index.ts";
import pipeline from "./pipeline/index.ts";
import vote from "./vote/index.ts";

const folder = (name: string) => fileURLToPath(new URL(name, import.meta.url));

/** Serves an agent whose model is scripted, and passes a client of it on. */
async function withAgent(definition: unknown, answers: Script, use: (env: Environment, model: ScriptedOpenAi) => Promise<void>) {
  const script: Script = typeof answers === "function" ? answers : ({ index }) => answers[index] ?? "the script is over";
  await using model = await scriptedOpenAi(script);
  const models = localModels({ main: { baseUrl: model.baseUrl, name: "scripted" } });
  const served = await serve(definition as EnvironmentDefinition, { name: "agent", version: "1.0.0", port: 0, models, writeLog: () => {} });
  try {
    await Environment.use("agent@1.0.0", { instanceUrl: served.url }, (env) => use(env, model));
  } finally {
    await served.close();
  }
}

const chat = async (env: Environment, message: string) => (await env.callTool("chat", { message })).text;

/** A verdict in the form that a judge asks for in its first message. */
function verdictFor(instructions: string, verdict: string): string {
  const key = /"key": "([0-9a-f]+)"/.exec(instructions)?.[1];
  return JSON.stringify({ key, reason: "it has numbers", verdict });
}

describe("the patterns with one model", { timeout: 60_000 }, () => {
  it("vote: the answer of most wins", async () => {
    const answers = ["Blue", "I think:\nGreen", "blue", "green", "BLUE "];
    await withAgent(vote, answers, async (env, model) => {
      expect(await chat(env, "Which colour?")).toBe("blue (3 of 5 votes)");
      expect(new Set(model.requests.map(({ body }) => body.seed))).toEqual(new Set([0, 1, 2, 3, 4]));
    });
  });

  it("pipeline: each step sees the outputs that it names, and all outputs are artifacts", async () => {
    await withAgent(pipeline, ["Tea is hot.", "Tea is a hot drink.", "Tea: hot."], async (env, model) => {
      const { structuredContent } = await env.callTool("send_message", { message: "About tea" });
      expect(structuredContent).toMatchObject({ state: "completed", reply: "Tea: hot." });
      const { artifacts } = structuredContent as { artifacts: { name: string; parts: { text: string }[] }[] };
      expect(artifacts.map(({ name, parts }) => [name, parts[0]?.text])).toEqual([
        ["facts", "Tea is hot."],
        ["draft", "Tea is a hot drink."],
        ["final", "Tea: hot."],
      ]);
      expect(model.requests.map(({ messages }) => messages[1]?.text)).toEqual([
        "<request>\nAbout tea\n</request>",
        "<request>\nAbout tea\n</request>\n<facts>\nTea is hot.\n</facts>",
        "<draft>\nTea is a hot drink.\n</draft>",
      ]);
    });
  });

  it("debate: both sides see what was said, and the judge's verdict is the answer", async () => {
    const script: Script = ({ messages, index }) => (index < 4 ? `argument ${index}` : verdictFor(messages[0]?.text ?? "", "no"));
    await withAgent(debate, script, async (env, model) => {
      expect(await chat(env, "Is tea better than coffee?")).toBe("no: it has numbers");
      expect(model.requests).toHaveLength(5);
      expect(model.requests[3]?.messages[1]?.text).toContain("yes: argument 0\n\nno: argument 1\n\nyes: argument 2");
    });
  });

  it("debate: a model that never gives a verdict is no answer", async () => {
    await withAgent(
      debate,
      () => "no, I think",
      async (env) => {
        await expect(chat(env, "Is tea better?")).rejects.toMatchObject({ code: "model.failed" });
      },
    );
  });
});

describe("the patterns with children", { timeout: 180_000 }, () => {
  let platform: Platform;
  let model: ScriptedOpenAi;
  let manager: string;
  let tester: string;
  const usesOf = (name: string, env: string) => {
    const { deployConfig } = JSON.parse(readFileSync(folder(`${name}/config.json`), "utf8"));
    return deployConfig.uses.map((one: object) => ({ ...one, env }));
  };
  beforeAll(async () => {
    platform = await startPlatform();
    model = await scriptedOpenAi(({ messages, turn }) => {
      const system = messages[0]?.text ?? "";
      if (system.includes("finding facts")) return `fact ${messages.length}`;
      if (system.includes("writing short texts")) return "A text.";
      const asked = [
        { name: "ask_researcher", arguments: { request: "Find something." } },
        { name: "ask_researcher", arguments: { request: "More." } },
        { name: "ask_writer", arguments: { request: "Write it." } },
      ];
      const call = asked[turn];
      return call === undefined ? `Done: ${messages.at(-1)?.text}` : { toolCalls: [call] };
    });
    const main = { baseUrl: model.baseUrl, name: "scripted" };
    // Published under names of their own, so the names that they use are replaced.
    const shared = { isolation: "shared", declaredModels: { main } } as const;
    const specialist = await publish(platform, folder("specialist"), shared);
    const target = await publish(platform, folder("target"), shared);
    manager = await publish(platform, folder("manager"), { ...shared, deployConfig: { uses: usesOf("manager", specialist) } });
    tester = await publish(platform, folder("tester"), { ...shared, deployConfig: { uses: usesOf("tester", target) } });
  }, 180_000);
  afterAll(async () => {
    await platform?.close();
    await model?.close();
  });

  const use = (ref: string, play: (env: Environment) => Promise<void>, options: object = {}) =>
    Environment.use(ref, { systemUrl: platform.controlUrl, dataUrl: platform.dataUrl, ...options }, play);

  it("manager: the specialists are asked, and remember what they were asked", async () => {
    await use(manager, async (env) => {
      expect(await chat(env, "A text about tea, please.")).toBe("Done: A text.");
      const results = model.requests.at(-1)?.messages.filter(({ role }) => role === "tool") ?? [];
      // The second question to the researcher came after the first one and its answer.
      expect(results.map(({ text }) => text)).toEqual(["fact 2", "fact 4", "A text."]);
    });
  });

  it("tester: the seeded fault is found, and the score is from code", async () => {
    await use(tester, async (env) => {
      for (let first = 0; first < 10; first++) {
        const { text } = await env.callTool("ask", { first, second: 7 });
        if (text === String(first + 7)) continue;
        await env.callTool("report", { first, second: 7 });
        break;
      }
      expect(await env.score()).toMatchObject({ reward: 1, components: { found: 1, tried: 1 } });
    });
  });

  it("tester: a report of numbers that the target adds rightly scores nothing, and no report neither", async () => {
    await use(tester, async (env) => {
      expect(await env.score()).toMatchObject({ reward: 0 });
      const asked = await Promise.all(
        [1, 2].map(async (first) => [first, (await env.callTool("ask", { first, second: 1 })).text] as const),
      );
      const [right] = asked.find(([first, text]) => text === String(first + 1)) ?? [0];
      await env.callTool("report", { first: right, second: 1 });
      expect(await env.score()).toMatchObject({ components: { found: 0, tried: 1 } });
    });
  });
});

describe("self-play", { timeout: 180_000 }, () => {
  it("sticks: the same player plays both sides, and the rewards sum to 0", async () => {
    const players = ["--player", "first=oracle", "--player", "second=oracle"];
    using tree = temporaryTree();
    const { code, stdout, stderr } = await aenv(["rollout", folder("sticks"), ...players, "-n", "2", "--json"], { cwd: tree.path });
    expect([code, code === 0 ? "" : stderr]).toEqual([0, ""]);
    const { roles } = JSON.parse(stdout);
    expect(roles).toMatchObject({ first: { scored: 2, reward: { mean: 1 } }, second: { scored: 2, reward: { mean: -1 } } });
  });
});
