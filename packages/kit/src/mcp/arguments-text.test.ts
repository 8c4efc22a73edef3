import fc from "fast-check";
import { afterEach, describe, expect, it } from "vitest";
import { defineEnvironment } from "../definition/definition.ts";
import { type Served, serve } from "../serve/serve.ts";
import { argumentsText } from "./arguments-text.ts";
import { exchange, jsonHeaders, openSession } from "./testing/exchange.ts";

const ARGUMENTS = '{"a":2.0,"b":2,"c":[1e3,-0,12345678901234567890],"d":{"e":"2.0"}}';
const CALL = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"tell","arguments":${ARGUMENTS}}}`;

describe("the text of arguments", () => {
  it("keeps numbers as they were written", () => {
    expect(argumentsText(CALL, 7)).toBe(ARGUMENTS);
    expect(argumentsText('{"id":"x","params":{"name":"tell"}}', "x")).toBe("{}");
  });

  it("is found in a batch by the id", () => {
    expect(argumentsText(`[{"method":"ping","id":6},${CALL}]`, 7)).toBe(ARGUMENTS);
  });

  it("is equal to the arguments that were sent", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (given) => {
        const body = JSON.stringify({ id: 1, params: { arguments: given } });
        expect(argumentsText(body, 1)).toBe(JSON.stringify(JSON.parse(body).params.arguments));
      }),
    );
  });
});

describe("a tool that reads inputText", () => {
  const open: Served[] = [];
  afterEach(async () => {
    for (const served of open.splice(0)) await served.close();
  });

  it.each([true, false])("gets its arguments as they were sent (fast path: %s)", async (useFastPath) => {
    const environment = defineEnvironment({ tools: [{ name: "tell", run: (_, { inputText }) => inputText() }] });
    const served = await serve(environment, { port: 0, useFastPath });
    open.push(served);
    const url = `${served.url}/mcp`;
    const sessionId = await openSession(url, "2025-03-26");
    const ask = async (headers: Record<string, string>, body: string) => {
      const { messages } = await exchange(url, { headers: { ...jsonHeaders, ...headers }, body });
      return messages.map((one) => (one as { result: { content: { text: string }[] } }).result.content[0]?.text);
    };
    expect(await ask({}, CALL)).toEqual([ARGUMENTS]);
    expect(await ask({ "mcp-session-id": sessionId }, CALL)).toEqual([ARGUMENTS]);
    const other = CALL.replace('"id":7', '"id":8').replace("2.0,", "3.0,");
    expect(await ask({ "mcp-session-id": sessionId }, `[${CALL},${other}]`)).toEqual([ARGUMENTS, ARGUMENTS.replace("2.0,", "3.0,")]);
  });
});
