import { type Served, serve } from "@aenv/kit";
import { conformanceAgent } from "@aenv/kit/testing";
import { describeNeeding } from "@aenv/testing";
import { afterAll, beforeAll, expect, it } from "vitest";
import { openSdkServer } from "./sdk-server.ts";

type Body = Record<string, unknown>;
type Answer = (body: Body) => Promise<unknown[]>;

const message = (messageId: string, more: object = {}) => ({
  message: { messageId, role: "ROLE_USER", parts: [{ text: "hello" }], ...more },
});

/** Each request of a conversation; `$task` and `$context` are those of the last answer. */
const conversations: Readonly<Record<string, readonly (readonly [method: string, params: unknown])[]>> = {
  "a task that is completed": [
    ["SendMessage", message("tck-complete-task")],
    ["GetTask", { id: "$task" }],
    ["GetTask", { id: "$task", historyLength: 0 }],
    ["CancelTask", { id: "$task" }],
    ["SendMessage", message("m", { taskId: "$task" })],
    ["SubscribeToTask", { id: "$task" }],
  ],
  "artifacts of text, data and files": [
    ["SendMessage", message("tck-artifact-text")],
    ["SendMessage", message("tck-artifact-data")],
    ["SendMessage", message("tck-artifact-file")],
    ["GetTask", { id: "$task" }],
  ],
  "a task that needs input": [
    ["SendMessage", message("tck-input-required")],
    ["SendMessage", message("tck-complete-task", { taskId: "$task", contextId: "$context" })],
    ["GetTask", { id: "$task" }],
  ],
  "a task that is rejected": [["SendMessage", message("tck-reject-task")]],
  "a direct answer": [
    ["SendMessage", message("tck-message-response")],
    ["SendStreamingMessage", message("tck-message-response")],
  ],
  "a stream": [["SendStreamingMessage", message("tck-stream-001")]],
  errors: [
    ["GetTask", { id: "no-such-task" }],
    ["CancelTask", { id: "no-such-task" }],
    ["SubscribeToTask", { id: "no-such-task" }],
    ["SendMessage", message("m", { taskId: "no-such-task" })],
    ["Dance", {}],
  ],
};

describeNeeding("a2a", "a server of the official SDK and that of the kit", () => {
  let served: Served;
  let ours: Answer;
  let theirs: Answer;
  beforeAll(async () => {
    served = await serve(conformanceAgent, { name: "agent", version: "1.0.0", port: 0 });
    ours = async (body) => {
      const headers = { "content-type": "application/json", "a2a-version": "1.0" };
      const response = await fetch(`${served.url}/a2a`, { method: "POST", headers, body: JSON.stringify(body) });
      const text = await response.text();
      if (response.headers.get("content-type")?.includes("json")) return [JSON.parse(text)];
      return text.split("\n\n").flatMap((event) => (event.startsWith("data: ") ? [JSON.parse(event.slice(6))] : []));
    };
    const card = (await fetch(`${served.url}/.well-known/agent-card.json`, { headers: { "a2a-version": "1.0" } })).json();
    theirs = openSdkServer(await card);
  });
  afterAll(() => served?.close());

  it.each(Object.keys(conversations))("answer alike: %s", async (name) => {
    const requests = conversations[name] ?? [];
    expect(await play(ours, requests)).toEqual(await play(theirs, requests));
  });
});

async function play(answer: Answer, requests: readonly (readonly [string, unknown])[]): Promise<unknown[]> {
  const answers: unknown[] = [];
  let ids = { task: "", context: "" };
  for (const [method, params] of requests) {
    const text = JSON.stringify(params).replaceAll("$task", ids.task).replaceAll("$context", ids.context);
    const found = await answer({ jsonrpc: "2.0", id: 1, method, params: JSON.parse(text) });
    const { result } = found[0] as { result?: { task?: Body } };
    if (result?.task !== undefined) ids = { task: String(result.task.id), context: String(result.task.contextId) };
    answers.push(found.map((one) => comparable(JSON.parse(JSON.stringify(one)))));
  }
  return answers;
}

/** The official SDK has the message of the current status in the history too. Ours has it there when the next status has replaced it. */
function withoutRepetition(task: object): object {
  const { status, history } = task as { status?: { message?: { messageId: string } }; history?: readonly { messageId: string }[] };
  if (status?.message === undefined || history === undefined) return task;
  return { ...task, history: history.filter(({ messageId }) => messageId !== status.message?.messageId) };
}

/** Without what may differ: ids and times that a server chooses, texts of errors, and fields with the default value. */
function comparable(value: unknown, key = ""): unknown {
  if (Array.isArray(value)) return value.map((one) => comparable(one));
  if (typeof value !== "object" || value === null) {
    if (key === "timestamp") return "a time";
    return (key === "id" && value !== 1) ||
      key === "taskId" ||
      key === "contextId" ||
      (key === "messageId" && !/^(?:tck-|m$)/.test(String(value)))
      ? "an id"
      : value;
  }
  const { code, message } = value as Body;
  if (typeof code === "number" && typeof message === "string") return { code };
  const fields = Object.entries(withoutRepetition(value)).flatMap(([name, one]) => {
    const shown = comparable(one, name);
    const isDefault = shown === "" || shown === false || (typeof shown === "object" && shown !== null && Object.keys(shown).length === 0);
    return isDefault ? [] : [[name, shown]];
  });
  return Object.fromEntries(fields);
}
