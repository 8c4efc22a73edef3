import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { PyError } from "@aenv/benchmark";
import { textAt } from "@aenv/benchmark/testing";
import { describeNeeding, tau2Path } from "@aenv/testing";
import { describe, expect, it } from "vitest";
import type { Message, ParticipantMessage } from "../core/messages/messages.ts";
import { parseMessage } from "../core/messages/stored.ts";
import { openDomain } from "../domains/index.ts";
import { openLibrary } from "../fixtures/library.ts";
import { readJson } from "../python/json/reader.ts";
import { Dict, PyFloat, type PyValue } from "../python/values/values.ts";
import { dictAt, listAt } from "../testing/replay/vectors.ts";
import { checkHistory } from "./history.ts";
import { Orchestrator, type OrchestratorOptions, type Participant } from "./orchestrator.ts";

const says = (role: "assistant" | "user", content: string): ParticipantMessage => ({ role, content, tool_calls: null });
const calls = (role: "assistant" | "user", name: string, args: Record<string, PyValue> = {}): ParticipantMessage => ({
  role,
  content: null,
  tool_calls: [{ id: "1", name, arguments: Dict.of(args), requestor: role }],
});

function scripted(...replies: readonly ParticipantMessage[]): Participant & { readonly heard: (readonly Message[])[] } {
  const rest = [...replies];
  const heard: (readonly Message[])[] = [];
  return {
    heard,
    reply: async (history) => {
      heard.push([...history]);
      const reply = rest.shift();
      if (reply === undefined) throw new Error("the script has ended");
      return reply;
    },
  };
}

function converse(task: string, user: Participant | null, options: Partial<OrchestratorOptions> = {}, isSolo = false): Orchestrator {
  const library = openLibrary();
  const found = library.tasks.find(task);
  if (found === undefined) throw new Error(`the library has no task ${task}`);
  return new Orchestrator({ environment: library.create({ isSolo }), task: found, user, ...options });
}

describe("a conversation", () => {
  it("runs from the greeting to the user's stop, and each side sees only the messages for it", async () => {
    const user = scripted(says("user", "Tides, please"), calls("user", "read_notices"), says("user", "###STOP###"));
    const agent = scripted(calls("assistant", "lend", { book_id: "b2", member: "bob" }), says("assistant", "Here you are"));
    const conversation = converse("lend", user);
    expect(await conversation.run(agent)).toBe("user_stop");
    expect(conversation.stepCount).toBe(7);
    expect(conversation.trajectory.map(({ role }) => role).join(" ")).toBe("assistant user assistant tool assistant user tool user");
    expect(user.heard.at(-1)?.map((message) => message.role)).toEqual(["assistant", "user", "assistant", "user", "tool"]);
    expect(agent.heard.at(-1)?.map((message) => message.role)).toEqual(["assistant", "user", "assistant", "tool"]);
  });

  it.each(["###STOP###", "###TRANSFER###", "I do not know ###OUT-OF-SCOPE###"])("ends when the user says %s", async (token) => {
    expect(await converse("lend", scripted(says("user", token))).run(scripted())).toBe("user_stop");
  });

  it("ends at the step limit, even if the user stops in the same step", async () => {
    expect(await converse("lend", scripted(says("user", "###STOP###")), { maxSteps: 1 }).run(scripted())).toBe("max_steps");
  });

  it("ends after too many errors", async () => {
    const agent = scripted(calls("assistant", "nothing"), calls("assistant", "nothing"));
    const conversation = converse("lend", scripted(says("user", "hi")), { maxErrors: 2 });
    expect(await conversation.run(agent)).toBe("too_many_errors");
    expect(conversation.errorCount).toBe(2);
  });

  it("continues a task's message history", async () => {
    const conversation = converse("read", scripted());
    await conversation.runUntilAgent();
    expect(conversation.agentMessages.map(({ role }) => role)).toEqual(["user", "assistant", "tool"]);
  });

  it("gives all turns to the agent if no model plays the user", async () => {
    const conversation = converse("lend", null);
    await conversation.runUntilAgent();
    conversation.give(says("assistant", "Anybody there?"));
    await conversation.runUntilAgent();
    expect(conversation.reason).toBeNull();
    expect(conversation.stepCount).toBe(1);
  });

  it("has no user in solo mode, where any message but a stop is an error", async () => {
    const isAgentStop = ({ content }: ParticipantMessage) => content === "###STOP###";
    const conversation = converse("lend", null, { isAgentStop }, true);
    await conversation.run(scripted(calls("assistant", "count_books"), says("assistant", "###STOP###")));
    expect([conversation.reason, conversation.stepCount]).toEqual(["agent_stop", 2]);
    expect(await converse("lend", null, { isAgentStop }, true).run(scripted(says("assistant", "hello")))).toBe("agent_error");
  });
});

describe("a stored history", () => {
  it.each<[string, readonly Message[], string]>([
    ["a result without a call", [{ role: "tool", id: "1", content: "", requestor: "user", error: false }], "No tool messages expected."],
    ["a call without a result", [calls("user", "a"), calls("user", "b")], "1 tool messages are missing. Got user message."],
    [
      "the other side's result",
      [calls("user", "a"), { role: "tool", id: "1", content: "", requestor: "assistant", error: false }],
      "Got tool message from assistant, expected user.",
    ],
    ["no words", [says("assistant", " ")], "AssistantMessage must have either content or tool_calls"],
  ])("with %s is refused", (_, history, problem) => {
    expect(() => checkHistory(history)).toThrow(problem);
  });
});

describeNeeding("tau2-data", "the reference's conversations", () => {
  const vectors = (): Dict[] => {
    const file = readJson(gunzipSync(readFileSync(join(tau2Path, "golden/core-vectors.json.gz"))).toString("utf8"));
    return file instanceof Dict ? listAt(file, "orchestrator_cases").filter((value) => value instanceof Dict) : [];
  };
  const replies = (vector: Dict, key: string, role: "assistant" | "user"): Participant =>
    scripted(...listAt(vector, key).map((reply) => parseMessage(new Dict([...(reply as Dict), ["role", role]])) as ParticipantMessage));
  const numberOf = (value: PyValue | undefined): number | undefined =>
    value instanceof PyFloat ? value.value : typeof value === "number" ? value : undefined;

  it("have the same end and messages here", async () => {
    const cases = vectors();
    expect(cases.length).toBeGreaterThan(0);
    for (const vector of cases) {
      const domain = openDomain(textAt(vector, "domain"), join(tau2Path, "data"));
      const task = domain.tasks.find(textAt(vector, "task_id"));
      if (task === undefined) throw new Error("the vectors have a task that is not there");
      const options = dictAt(vector, "options");
      const [maxSteps, maxErrors, timeout] = ["max_steps", "max_errors", "timeout"].map((key) => numberOf(options.get(key)));
      const conversation = new Orchestrator({
        environment: domain.create(),
        task,
        user: replies(vector, "user_replies", "user"),
        checksCommunication: options.get("validate_communication") === true,
        ...(maxSteps === undefined ? {} : { maxSteps }),
        ...(maxErrors === undefined ? {} : { maxErrors }),
        ...(timeout === undefined ? {} : { timeoutMs: timeout * 1_000 }),
      });
      const label = textAt(vector, "label");
      const ran = conversation.run(replies(vector, "agent_replies", "assistant"));
      if (vector.has("exception")) await expect(ran, label).rejects.toThrow(new PyError("ValueError", textAt(vector, "text")).message);
      else {
        expect(await ran, label).toBe(textAt(vector, "termination_reason"));
        const shown = conversation
          .messages()
          .map((message) => ({ role: message.role, content: "content" in message ? message.content : null }));
        expect(shown, label).toEqual(
          listAt(vector, "messages").map((m) => ({ role: (m as Dict).get("role"), content: (m as Dict).get("content") })),
        );
        expect(conversation.errorCount, label).toBe(vector.get("num_errors"));
      }
      expect(conversation.stepCount, label).toBe(vector.get("step_count"));
    }
  });
});
