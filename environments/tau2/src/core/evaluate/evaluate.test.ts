import { describe, expect, it } from "vitest";
import { openLibrary } from "../../fixtures/library.ts";
import { Dict, type PyValue } from "../../python/values/values.ts";
import type { Message, Requestor } from "../messages/messages.ts";
import type { Task } from "../tasks.ts";
import { evaluate } from "./evaluate.ts";
import type { Judge } from "./nl-assertions.ts";

const domain = openLibrary();

function taskOf(id: string): Task {
  const task = domain.tasks.find(id);
  if (task === undefined) throw new Error(`no task ${id}`);
  return task;
}

const say = (content: string): Message => ({ role: "assistant", content, tool_calls: null });

/** A call and its result in an environment at the task's start. */
function play(task: Task, name: string, args: Record<string, PyValue>, requestor: Requestor = "assistant"): Message[] {
  const call = { id: "c", name, arguments: Dict.of(args), requestor };
  const environment = domain.create();
  const history = task.initial_state?.message_history ?? [];
  for (const message of history)
    if (message.role === "assistant") for (const past of message.tool_calls ?? []) environment.getResponse(past);
  return [...history, { role: requestor, content: null, tool_calls: [call] }, environment.getResponse(call)];
}

const grade = (task: Task, trajectory: readonly Message[], judge: Judge | null = null) =>
  evaluate({ domain, task, trajectory, terminationReason: "user_stop", judge });

describe("the reward", () => {
  const task = taskOf("lend");
  const done = play(task, "lend", { book_id: "b2", member: "cy" });

  it("is 1 if the database is right and all information was communicated", async () => {
    expect(await grade(task, [...done, say("That is $7.5.")])).toMatchObject({
      reward: 1,
      reward_breakdown: { DB: 1, COMMUNICATE: 1 },
      action_checks: [{ action_match: true, tool_type: "write" }],
    });
  });

  it("is 0 if something is missing", async () => {
    expect(await grade(task, done)).toMatchObject({ reward: 0, reward_breakdown: { DB: 1, COMMUNICATE: 0 } });
    expect(await grade(task, [say("7.5")])).toMatchObject({ reward: 0, reward_breakdown: { DB: 0, COMMUNICATE: 1 } });
  });

  it("is 0 if the episode was terminated early, and 1 if the task has no criteria", async () => {
    const cut = await evaluate({ domain, task, trajectory: done, terminationReason: "max_steps" });
    expect(cut).toMatchObject({ reward: 0, info: { note: "Simulation terminated prematurely. Termination reason: max_steps" } });
    expect(await grade({ ...task, evaluation_criteria: null }, [])).toMatchObject({ reward: 1, info: { note: "No evaluation criteria" } });
  });

  it("counts assertions and actions of the user", async () => {
    const read = taskOf("read");
    expect(await grade(read, play(read, "read_notices", {}, "user"))).toMatchObject({
      reward: 1,
      reward_breakdown: { ENV_ASSERTION: 1, ACTION: 1 },
      env_assertions: [{ met: true }],
    });
    expect(await grade(read, read.initial_state?.message_history ?? [])).toMatchObject({
      reward: 0,
      reward_breakdown: { ENV_ASSERTION: 0, ACTION: 0 },
    });
  });

  it("raises if a strict replay gives another result, and continues if it is lenient", async () => {
    const forged = [...done];
    forged[1] = { role: "tool", id: "c", content: "forged", requestor: "assistant", error: false };
    await expect(grade(task, forged)).rejects.toThrow("Expected:");
    const lenient = await evaluate({ domain, task, trajectory: [...forged, say("7.5")], terminationReason: "user_stop", isStrict: false });
    expect(lenient.reward).toBe(1);
  });
});

describe("a task that needs a judge", () => {
  const task = taskOf("kindly");

  it("is unscored, with the reason, if there is none", async () => {
    expect(await grade(task, [])).toEqual({
      reward: null,
      reason:
        "task 'kindly' is scored by natural-language assertions, and no judge model is configured: set TAU2_JUDGE_LLM, TAU2_JUDGE_LLM_API_BASE and TAU2_JUDGE_LLM_API_KEY",
    });
  });

  it.each([true, false])("gets the judge's verdict: %s", async (met) => {
    const judge: Judge = { judge: async ({ assertions }) => assertions.map((nl_assertion) => ({ nl_assertion, met, justification: "" })) };
    expect(await grade(task, [], judge)).toMatchObject({ reward: met ? 1 : 0, reward_breakdown: { DB: 1, NL_ASSERTION: met ? 1 : 0 } });
  });
});
