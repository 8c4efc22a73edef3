import { describe, expect, it } from "vitest";
import { openLibrary } from "../fixtures/library.ts";
import { readJson } from "../python/json/reader.ts";
import { Dict, type PyValue } from "../python/values/values.ts";
import type { Environment } from "./environment.ts";
import type { Requestor } from "./messages/messages.ts";
import { parseMessage } from "./messages/stored.ts";
import { setState } from "./state.ts";
import { printScenario } from "./tasks.ts";

const domain = openLibrary();

function call(environment: Environment, name: string, args: Record<string, PyValue> = {}, requestor = "assistant"): string {
  const { content, error } = environment.getResponse({ id: "", name, arguments: Dict.of(args), requestor: requestor as Requestor });
  return error ? `! ${content}` : `${content}`;
}

const messages = (json: string) => (readJson(json) as PyValue[]).map(parseMessage);

describe("a tool call", () => {
  it("returns the record with the model's field order, and syncs", () => {
    const environment = domain.create();
    expect(call(environment, "lend", { book_id: "b2", member: "bob" })).toBe(
      '{"book_id": "b2", "title": "Tides", "price": 7.5, "borrower": "bob"}',
    );
    expect(call(environment, "read_notices", {}, "user")).toBe('["Tides"]');
  });

  it.each<[string, Record<string, PyValue>, string, string]>([
    ["lend", { book_id: "b1", member: "bob" }, "assistant", "Book b1 is lent to ann"],
    ["lend", { book_id: ["b1"], member: "bob" }, "assistant", "unhashable type: 'list'"],
    ["lend", { book_id: "b1" }, "assistant", "LibraryTools.lend() missing 1 required positional argument: 'member'"],
    ["lend", { self: 1 }, "assistant", "Environment.make_tool_call() got multiple values for argument 'self'"],
    ["read_notices", {}, "assistant", "Tool 'read_notices' not found."],
    ["reprice", {}, "assistant", "Tool 'reprice' not found."],
    ["lend", {}, "judge", "Invalid requestor: judge"],
  ])("of %s with %o by the %s fails with the reference's error", (name, args, requestor, text) => {
    expect(call(domain.create(), name, args, requestor)).toBe(`! Error: ${text}`);
  });

  it("in solo mode can use the user's tools as the agent only", () => {
    const environment = domain.create({ isSolo: true });
    expect(call(environment, "read_notices")).toBe("[]");
    expect(call(environment, "read_notices", {}, "user")).toBe("! Error: User tool calls are not allowed in solo mode");
    expect(environment.policy).toBe("Lend books without a word.\n");
  });

  it("returns numbers outside models as strings", () => expect(call(domain.create(), "count_books")).toBe('"3"'));
});

describe("an environment", () => {
  it("forks into an independent copy", () => {
    const one = domain.create();
    call(one, "lend", { book_id: "b2", member: "bob" });
    const two = one.fork();
    expect(two.hashes()).toEqual(one.hashes());
    call(two, "lend", { book_id: "b10", member: "bob" });
    expect(two.hashes()).not.toEqual(one.hashes());
    expect(call(one, "read_notices", {}, "user")).toBe('["Tides"]');
  });

  it("lists and describes its tools", () => {
    const environment = domain.create();
    expect(environment.describeTools("assistant")).toBe("1. count_books\nCount the books.\n\n2. lend\nLend a book to a member.");
    expect(() => environment.getUserTools(["zz", "aa"])).toThrow("Tool(s) not found: ['aa', 'zz']. Available: ['read_notices']");
    expect(environment.policy).toBe("Lend books.\nBe kind.\n");
  });
});

describe("an initial state", () => {
  it("runs its actions and replays the mutating calls of its history", () => {
    const task = domain.tasks.find("read");
    const environment = domain.create();
    setState(environment, task?.initial_state ?? null, task?.initial_state?.message_history ?? []);
    expect(call(environment, "lend", { book_id: "b2", member: "cy" })).toBe("! Error: Book b2 is lent to bob");
    expect(call(environment, "read_notices", {}, "user")).toBe('["Tides"]');
  });

  it("gives an updated database to both sides", () => {
    const environment = domain.create();
    const agent_data = readJson('{"books": {"b2": {"price": 9}}}') as Dict;
    setState(
      environment,
      { initialization_data: { agent_data, user_data: null }, initialization_actions: null, message_history: null },
      [],
    );
    const [agent, user] = environment.hashes();
    expect(agent).toBe(user);
    const forked = environment.fork();
    expect(forked.userTools?.db).toBe(forked.tools?.db);
    expect(call(environment, "lend", { book_id: "b2", member: "a" })).toContain('"price": 9.0');
  });

  it.each([
    ['[{"role": "tool", "id": "1", "content": "x"}]', "Tool message not expected. Tool messages should always follow a tool call."],
    ['[{"role": "assistant", "tool_calls": [{"id": "1", "name": "lend", "arguments": {}}]}]', "Tool message expected. Got None."],
    [
      '[{"role": "assistant", "tool_calls": [{"id": "1", "name": "lend", "arguments": {}}]}, {"role": "tool", "id": "1", "content": "fine"}]',
      "Tool call:\nToolCall (from assistant)\nid: 1\nname: lend\narguments:\n{}\n\nReturned:\nToolMessage (responding to assistant)\n" +
        "content: Error: LibraryTools.lend() missing 2 required positional arguments: 'book_id' and 'member'\nError\n\n" +
        "Expected:\nToolMessage (responding to assistant)\ncontent: fine",
    ],
  ])("refuses the history %s", (history, text) => {
    expect(() => setState(domain.create(), null, messages(history))).toThrow(text);
  });
});

describe("tasks", () => {
  it("are selected by split, in file order", () => {
    expect(domain.tasks.select("train").map(({ id }) => id)).toEqual(["lend", "read"]);
    expect(domain.tasks.select(null)).toHaveLength(3);
    expect(() => domain.tasks.select("zz")).toThrow("Invalid task split name: zz. Valid splits are: dict_keys(['train', 'test'])");
  });

  it("print the user's scenario, indented twice", () => {
    const task = domain.tasks.find("lend");
    expect(task && printScenario(task.user_scenario)).toBe(
      "Persona:\n\tIn a hurry\nInstructions:\n\tDomain: library\n\tReason for call:\n\t\tYou want to read Tides.\n\n\t\tToday.\n" +
        "\tKnown info:\n\t\tYou are cy.\n\tTask instructions:\n\t\tSay goodbye.",
    );
  });
});
