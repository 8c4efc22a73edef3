import { describe, expect, it } from "vitest";
import { chatDialect } from "./chat/dialect.ts";
import { messagesDialect } from "./messages/dialect.ts";
import { responsesDialect } from "./responses/dialect.ts";

const chat = { choices: [{ message: { role: "assistant", content: "Hi." }, finish_reason: "stop" }] };
const messages = { content: [{ type: "text", text: "Hi." }], stop_reason: "end_turn" };
const responses = { output: [{ type: "message", role: "assistant", content: [{ type: "output_text", text: "Hi." }] }] };

describe("a turn has what the endpoint says it used", () => {
  it.each([
    ["chat", chatDialect, chat],
    ["messages", messagesDialect, messages],
    ["responses", responsesDialect, responses],
  ] as const)("of the model behind the API '%s', and nothing where it says nothing", (_, dialect, answer) => {
    expect(dialect.read({ ...answer, model: "m-2026-05-01" }).turn).toMatchObject({ model: "m-2026-05-01" });
    for (const model of [undefined, null, 7]) expect(dialect.read({ ...answer, model }).turn).not.toHaveProperty("model");
  });

  it("of the sampling behind the API 'responses'", () => {
    const used = { temperature: 1, top_p: 0.98 };
    expect(responsesDialect.read({ ...responses, ...used, max_output_tokens: null }).turn).toMatchObject({ sampling: used });
    expect(responsesDialect.read(responses).turn).not.toHaveProperty("sampling");
  });
});
