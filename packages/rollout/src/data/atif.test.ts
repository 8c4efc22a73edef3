import type { Step, Trajectory } from "@aenv/contract";
import { describe, expect, it } from "vitest";
import { atifSchema } from "../fixtures/atif-schema.ts";
import { newTrajectory } from "../fixtures/trajectory.ts";
import { newTurn } from "../fixtures/turn.ts";
import { toAtif } from "./atif.ts";

function written(own: Partial<Trajectory> = {}) {
  const document: unknown = JSON.parse(JSON.stringify(toAtif(newTrajectory(own))));
  return atifSchema.parse(document);
}

const [user, call, answer, done] = newTrajectory().messages as [
  Trajectory["messages"][0],
  Trajectory["messages"][0],
  Trajectory["messages"][0],
  Trajectory["messages"][0],
];

describe("a trajectory as an ATIF document", () => {
  it("has a step for each message; the results of tools are in the step of their calls", () => {
    const { steps, trajectory_id, session_id, final_metrics } = written();
    expect([trajectory_id, session_id, final_metrics?.total_steps]).toEqual(["t", "run", 3]);
    expect(steps.map(({ source }) => source)).toEqual(["user", "agent", "agent"]);
    expect(steps[1]).toMatchObject({
      llm_call_count: 0,
      tool_calls: [{ tool_call_id: "c0", function_name: "echo", arguments: { text: "hello" } }],
      observation: { results: [{ source_call_id: "c0", content: "hello" }] },
    });
  });

  it("has the tokens and the reasoning of a model's turn in its step", () => {
    const turns = [newTurn({ message: 1, prompt_token_ids: [1, 2], completion_token_ids: [3, 4] })];
    const { steps } = written({ messages: [user, { ...call, reasoning_content: "First echo." }, answer, done], turns });
    expect(steps[1]).toMatchObject({
      llm_call_count: 1,
      reasoning_content: "First echo.",
      metrics: { prompt_tokens: 10, completion_tokens: 2, prompt_token_ids: [1, 2], completion_token_ids: [3, 4], logprobs: [-0.5, -0.5] },
    });
  });

  it("keeps arguments that are not JSON beside the call", () => {
    const tool_calls = [{ id: "c0", type: "function" as const, function: { name: "echo", arguments: "{broken" } }];
    const { steps } = written({ messages: [user, { ...call, tool_calls }, done], steps: [] });
    expect(steps[1]?.tool_calls).toEqual([
      { tool_call_id: "c0", function_name: "echo", arguments: {}, extra: { arguments_text: "{broken" } },
    ]);
  });

  it("of a program that used the model through the recorder has the results that the model saw", () => {
    const steps = newTrajectory().steps.map((step): Step => ({ ...step, message: null, call: { ...step.call, id: "call_0" } }));
    const turns = [newTurn({ message: 1 }), newTurn({ message: 3 })];
    const document = written({ steps, turns });
    expect(document.steps.map(({ source }) => source)).toEqual(["user", "agent", "agent"]);
    expect(document.steps[1]?.observation).toEqual({ results: [{ source_call_id: "c0", content: "hello" }] });
  });

  it("of a program without a recorded model has a step for each tool call, before its last words", () => {
    const steps = newTrajectory().steps.map((step): Step => ({ ...step, message: null, call: { ...step.call, id: "call_0" } }));
    const document = written({ messages: [user, done], steps });
    expect(document.steps).toMatchObject([
      { source: "user" },
      {
        source: "agent",
        message: "",
        llm_call_count: 0,
        tool_calls: [{ tool_call_id: "call_0", function_name: "echo", arguments: { text: "hello" } }],
        observation: { results: [{ source_call_id: "call_0", content: "hello" }] },
      },
      { source: "agent", message: "done" },
    ]);
  });

  it("is valid for an episode that failed before its first message, and says how it ended", () => {
    const outcome = { kind: "unscored", cause: "sandbox", stage: "start", retryable: true, message: "no slot" } as const;
    const document = written({ messages: [], steps: [], tools: [], run: null, outcome, stop_reason: "error" });
    expect(document.steps).toHaveLength(1);
    expect(document.extra).toMatchObject({ outcome, stop_reason: "error" });
  });
});
