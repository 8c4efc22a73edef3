import { describe, expect, it } from "vitest";
import { agentsTools, aiTools, type LangchainToolFields, langchainTools, mastraTools } from "./index.ts";
import { memorySource, textResult } from "./memory-source.ts";

const inputSchema = { type: "object", properties: { n: { type: "number" } }, additionalProperties: false };
const source = memorySource({
  "e@1/add.up": { description: "Adds.", inputSchema, run: ({ n }, signal) => textResult(`${n} ${signal?.aborted}`) },
});
const signal = AbortSignal.abort();

// The frameworks' own tool loops run in interop/frameworks; these tests check the options of their factories.
describe("the adapter for", () => {
  it("the OpenAI Agents SDK gives a tool that is not strict and throws errors of the platform", async () => {
    const [tool] = await agentsTools(source, (options) => options);
    expect(tool).toMatchObject({ name: "add_up", description: "Adds.", strict: false, errorFunction: null });
    expect(tool?.parameters).toEqual(inputSchema);
    expect(await tool?.execute({ n: 1 }, {}, { signal })).toBe("1 true");
    expect(await tool?.execute({ n: 1 })).toBe("1 undefined");
  });

  it("the AI SDK gives tools by name", async () => {
    const tools = await aiTools(source, { dynamicTool: (options) => options, jsonSchema: (schema) => ({ wrapped: schema }) });
    expect(Object.keys(tools)).toEqual(["add_up"]);
    expect(tools.add_up).toMatchObject({ description: "Adds.", inputSchema: { wrapped: inputSchema } });
    expect(await tools.add_up?.execute({ n: 1 }, { abortSignal: signal })).toBe("1 true");
  });

  it("LangChain gives tools made by its class", async () => {
    const [tool] = await langchainTools(source, Remembering);
    expect(tool?.fields).toMatchObject({ name: "add_up", description: "Adds.", schema: inputSchema });
    expect(await tool?.fields.func({ n: 1 }, undefined, { signal })).toBe("1 true");
  });

  it("Mastra gives tools by name", async () => {
    const tools = await mastraTools(source, (options) => options, { prefix: "e_" });
    expect(Object.keys(tools)).toEqual(["e_add_up"]);
    expect(tools.e_add_up).toMatchObject({ id: "e_add_up", description: "Adds." });
    const schema = tools.e_add_up?.inputSchema["~standard"];
    expect([schema?.jsonSchema.input(), schema?.jsonSchema.output()]).toEqual([inputSchema, inputSchema]);
    expect(schema?.validate({ x: 1 })).toEqual({ value: { x: 1 } });
    expect(await tools.e_add_up?.execute({ n: 1 }, { abortSignal: signal })).toBe("1 true");
  });
});

class Remembering {
  readonly fields: LangchainToolFields;

  constructor(fields: LangchainToolFields) {
    this.fields = fields;
  }
}
