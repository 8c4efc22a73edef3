import { temporaryTree } from "@aenv/testing";
import { expect, it } from "vitest";
import { problemsOf } from "../environment/open-options.ts";
import { loadTask } from "../task/load.ts";
import { contextMessages } from "./context.ts";
import { parseTrajectory } from "./trajectory.ts";

const agent = { name: "a", version: "1" };

it("the steps of a trajectory are messages, with an answer for each call", () => {
  const trajectory = parseTrajectory({
    schema_version: "ATIF-v1.8",
    agent,
    steps: [
      { step_id: 1, source: "user", message: [{ type: "text", text: "Look." }, audio("audio/MP3")] },
      {
        step_id: 2,
        source: "agent",
        message: "",
        tool_calls: [
          { tool_call_id: "1", function_name: "bash", arguments: { command: "ls" } },
          { tool_call_id: "2", function_name: "bash", arguments: {} },
        ],
        observation: { results: [{ source_call_id: "1", content: "a.txt" }] },
      },
    ],
  });
  const call = (id: string, given: string) => ({ id, type: "function", function: { name: "bash", arguments: given } });
  expect(contextMessages(trajectory)).toEqual([
    { role: "user", content: "Look.\n[audio a.mp3]" },
    { role: "assistant", content: "", tool_calls: [call("1", '{"command":"ls"}'), call("2", "{}")] },
    { role: "tool", tool_call_id: "1", content: "a.txt" },
    { role: "tool", tool_call_id: "2", content: "" },
  ]);
});

it("a step that replaces the context stands for what was before it", () => {
  const extra = { context_management: { type: "compaction", boundary: "replace" } };
  const trajectory = parseTrajectory({
    agent,
    steps: [
      { step_id: 1, source: "user", message: "Look." },
      { step_id: 2, source: "system", message: "", observation: { results: [{ content: "A summary." }] }, extra },
    ],
  });
  expect(contextMessages(trajectory)).toEqual([{ role: "system", content: "A summary." }]);
});

it("a sound is no picture", () => {
  const step = { step_id: 1, source: "user", message: [{ ...audio("audio/wav"), type: "image" }] };
  expect(() => parseTrajectory({ agent, steps: [step] })).toThrow("a part of the type image has only its own field");
});

it.each(["task", "steps"])(
  "of a task with a %s, the trajectory is beside the first instruction, or is a reason not to play it",
  async (kind) => {
    const at = kind === "task" ? "" : "steps/one/";
    const files = {
      "task.toml": kind === "task" ? "" : '[[steps]]\nname = "one"',
      "environment/Dockerfile": "FROM x",
      "tests/test.sh": "",
      [`${at}instruction.md`]: "Go.",
    };
    using tree = temporaryTree({ ...files, [`${at}trajectory.json`]: { agent, steps: [{ step_id: 1, source: "user", message: "Hi." }] } });
    expect((await loadTask(tree.path)).priorContext).toMatchObject({ trajectory: { steps: [{ message: "Hi." }] } });
    tree.write({ [`${at}trajectory.json`]: "{}" });
    expect(problemsOf(await loadTask(tree.path), true)).toEqual([
      expect.stringContaining("its trajectory.json is no trajectory of an agent"),
    ]);
  },
);

function audio(type: string) {
  return { type: "audio", source: { media_type: type, path: "a.mp3", duration_sec: 1.5 } };
}
