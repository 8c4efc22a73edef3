import { temporaryTree } from "@aenv/testing";
import { expect, it } from "vitest";
import { DataDirectory } from "../core/data.ts";
import { agentPrompt, readPrompts, userPrompt } from "./prompts.ts";

it("prompts are ours, unless the data directory brings guidelines or a prompts.json", () => {
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
  expect(() => read("broken")).toThrow("'judge' must be a text");
});

it("an agent is told its policy, a solo agent its ticket, a user the scenario", () => {
  using tree = temporaryTree({ "x.md": "" });
  const prompts = { ...readPrompts(new DataDirectory(tree.path)), agent: "A", soloAgent: "S", user: "U" };
  expect(agentPrompt(prompts, "P", null)).toBe("<instructions>\nA\n</instructions>\n<policy>\nP\n</policy>");
  expect(agentPrompt(prompts, "P", { ticket: null })).toContain("S\n</instructions>\n<policy>\nP\n</policy>\n<ticket>\nNone\n</ticket>");
  expect(userPrompt(prompts, "scene", false)).toBe("U\n\n<scenario>\nscene\n</scenario>");
});
