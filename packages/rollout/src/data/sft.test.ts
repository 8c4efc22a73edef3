import { type ChatMessage, chatMessage } from "@aenv/contract";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { newTrajectory } from "../fixtures/trajectory.ts";
import { newTurn } from "../fixtures/turn.ts";
import { openaiRows, sftRows } from "./sft.ts";

type Row = {
  messages: { role: string; content: unknown; weight?: number; tool_calls?: { function: { arguments: unknown } }[] }[];
  tools: unknown;
};

const first = (rows: ReturnType<typeof sftRows>) => (typeof rows === "string" ? null : (rows[0] as unknown as Row));

describe("a row for supervised fine-tuning", () => {
  it("has arguments as objects and the tools as JSON text, as chat templates and columnar files want them", () => {
    const row = first(sftRows(newTrajectory())) as Row;
    expect(row.messages[1]?.tool_calls?.[0]?.function.arguments).toEqual({ text: "hello" });
    expect(JSON.parse(row.tools as string)).toEqual([
      {
        type: "function",
        function: { name: "echo", description: "", parameters: { type: "object", properties: { text: { type: "string" } } } },
      },
    ]);
  });

  it("in OpenAI's format has arguments as text and the tools as a list", () => {
    const row = first(openaiRows(newTrajectory())) as Row;
    expect(row.messages[1]?.tool_calls?.[0]?.function.arguments).toBe('{"text":"hello"}');
    expect(row.tools).toHaveLength(1);
    expect(row).toMatchObject({ parallel_tool_calls: true });
  });

  it("has arguments as the model wrote them if they are not JSON, and an empty object for none", () => {
    const callWith = (text: string): ChatMessage => ({
      role: "assistant",
      content: null,
      tool_calls: [{ id: "c", type: "function", function: { name: "echo", arguments: text } }],
    });
    const row = first(sftRows(newTrajectory({ messages: [callWith("{broken"), callWith(""), callWith(" ")] }))) as Row;
    expect(row.messages.map(({ tool_calls }) => tool_calls?.[0]?.function.arguments)).toEqual(["{broken", {}, {}]);
  });

  it("is left out if the agent wrote nothing", () => {
    const silent = newTrajectory({ messages: [{ role: "user", content: "Hi." }] });
    expect([sftRows(silent), openaiRows(silent)]).toEqual(["no agent message", "no agent message"]);
  });

  it("is written for each conversation of a program, with the tools that its model was offered; context has the weight 0", () => {
    const [ask, answer] = [
      { role: "user" as const, content: "Hi." },
      { role: "assistant" as const, content: "Hello." },
    ];
    const find = { name: "find", inputSchema: { type: "object" as const } };
    const trajectory = newTrajectory({
      messages: [ask, answer, { role: "user", content: "And?" }, { role: "assistant", content: "Yes." }],
      offered_tools: [find],
      conversations: [{ messages: [ask, answer, { role: "user", content: "Or?" }, { role: "assistant", content: "No." }], tools: [] }],
      turns: [newTurn({ message: 1, conversation: 0 }), newTurn({ message: 3, conversation: 0 }), newTurn({ message: 3 })],
    });
    const rows = openaiRows(trajectory) as unknown as Row[];
    expect(rows.map(({ messages }) => messages.map(({ content, weight = 1 }) => [content, weight]))).toEqual([
      [
        ["Hi.", 1],
        ["Hello.", 1],
        ["Or?", 1],
        ["No.", 1],
      ],
      [
        ["Hi.", 1],
        ["Hello.", 0],
        ["And?", 1],
        ["Yes.", 1],
      ],
    ]);
    expect((sftRows(trajectory) as unknown as Row[]).map(({ tools }) => JSON.parse(tools as string).length)).toEqual([0, 1]);
  });

  it("ends with the agent, has no null content, and only fields that readers know", () => {
    const content = fc.oneof(fc.constant(null), fc.string(), fc.array(fc.record({ type: fc.constant("text"), text: fc.string() })));
    const message = fc.oneof(
      fc.record({ role: fc.constantFrom("system", "user"), content: fc.string() }),
      fc.record({ role: fc.constant("assistant"), content, reasoning_content: fc.string(), anthropic_content: fc.constant([]) }),
      fc.record({ role: fc.constant("tool"), content: fc.string(), tool_call_id: fc.string() }),
    );
    fc.assert(
      fc.property(fc.array(message), (given) => {
        const messages = given.map((one) => chatMessage.parse(one));
        const row = first(sftRows(newTrajectory({ messages })));
        expect(row === null).toBe(!messages.some(({ role }) => role === "assistant"));
        if (row === null) return;
        expect(row.messages.at(-1)?.role).toBe("assistant");
        for (const one of row.messages) {
          expect(typeof one.content).toBe("string");
          expect(["role", "content", "reasoning_content", "tool_calls", "tool_call_id", "name"]).toEqual(
            expect.arrayContaining(Object.keys(one)),
          );
        }
      }),
    );
  });
});
