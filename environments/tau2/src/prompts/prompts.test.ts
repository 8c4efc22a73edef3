import { createHash } from "node:crypto";
import { join } from "node:path";
import { textAt } from "@aenv/benchmark/testing";
import { describeNeeding, tau2Path, temporaryTree } from "@aenv/testing";
import { expect, it } from "vitest";
import { DataDirectory } from "../core/data/directory.ts";
import { Domain } from "../core/domain.ts";
import { openDomain } from "../domains/index.ts";
import { openLibrary } from "../fixtures/library.ts";
import { dictAt, readFormat } from "../testing/replay/vectors.ts";
import { agentPrompt, readPrompts, userPrompt } from "./prompts.ts";
import { schemaOf } from "./tool-schemas.ts";

it("prompts are our defaults, unless the data directory has guidelines or a prompts.json", () => {
  using tree = temporaryTree({
    "bare/x.md": "",
    "guided/user_simulator/simulation_guidelines.md": "Guidelines\n",
    "own/prompts.json": JSON.stringify({ agent: "Theirs" }),
    "broken/prompts.json": JSON.stringify({ judge: 1 }),
  });
  const read = (folder: string) => readPrompts(new DataDirectory(`${tree.path}/${folder}`));
  expect(read("bare").user).toContain("###OUT-OF-SCOPE###");
  expect(read("guided").user).toBe("Guidelines\n");
  expect(read("own").agent).toBe("Theirs");
  expect(() => read("broken")).toThrow("'judge' must be a string");
});

it("prompts of another revision of the benchmark are recognized by their keys", () => {
  using tree = temporaryTree({
    "prompts.json": {
      "agent.llm_agent.AGENT_INSTRUCTION": "Help.",
      "agent.llm_agent.AGENT_SOLO_INSTRUCTION": "\nHelp, then call {stop}.\n",
      "evaluator.evaluator_nl_assertions.Judge.ask.system_prompt": "\n  Judge as {} or [].\n  ",
      "agent.other.AGENT_INSTRUCTION": "Other.",
    },
  });
  const { agent, soloAgent, judge } = readPrompts(new DataDirectory(tree.path));
  expect([agent, soloAgent, judge]).toEqual(["Help.", "Help, then call done.", "Judge as {} or []."]);
});

it("an agent gets its policy, a solo agent its ticket, a user the scenario", () => {
  using tree = temporaryTree({ "x.md": "" });
  const prompts = { ...readPrompts(new DataDirectory(tree.path)), agent: "A", soloAgent: "S", user: "U" };
  expect(agentPrompt(prompts, "P", null)).toBe("<instructions>\nA\n</instructions>\n<policy>\nP\n</policy>");
  expect(agentPrompt(prompts, "P", { ticket: null })).toContain("S\n</instructions>\n<policy>\nP\n</policy>\n<ticket>\nNone\n</ticket>");
  expect(userPrompt(prompts, "scene", false)).toBe("U\n\n<scenario>\nscene\n</scenario>");
});

it("tools have the descriptions of the data directory if it has some", () => {
  const stored = { type: "function", function: { name: "lend", description: "Theirs." } };
  using tree = temporaryTree({ "schemas/library.json": [{ requestor: "assistant", name: "lend", openai_schema: stored }] });
  const ours = openLibrary();
  const theirs = new Domain(ours.definition, new DataDirectory(tree.path));
  const [lend, count] = ours.create().getTools();
  if (lend === undefined || count === undefined) throw new Error("the library has two tools");
  expect(schemaOf(theirs, "assistant", lend)).toEqual(stored);
  expect(schemaOf(theirs, "user", lend)).toBe(lend.schema);
  expect(schemaOf(theirs, "assistant", count)).toBe(count.schema);
  expect(schemaOf(ours, "assistant", lend)).toBe(lend.schema);
});

describeNeeding("tau2-data", "the benchmark's prompts", () => {
  it("are found in a prompts.json under any key, and give its system prompt", () => {
    const vectors = readFormat(join(tau2Path, "golden/misc.json.gz"));
    if (vectors.format !== "misc") throw new Error("misc.json.gz is not a file of unit vectors");
    const head = textAt(dictAt(dictAt(vectors.groups, "prompts"), "mock"), "agent_system_prompt_head");
    const text = head.slice("<instructions>\n".length, head.indexOf("\n</instructions>"));
    using tree = temporaryTree({ "prompts.json": { "some.place.TEXT": `\n${text}\n`, other: "no" } });
    const prompt = agentPrompt(readPrompts(new DataDirectory(tree.path)), openDomain("mock", join(tau2Path, "data")).policy(false), null);
    const digest = createHash("sha256").update(prompt).digest("hex");
    expect(digest).toBe("dd9c690388ee05a8bca70ed9a6732c59617ba919a4fc209e8099962615971ed9");
  });
});
