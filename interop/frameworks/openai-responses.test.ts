import { responsesTools } from "@aenv/sdk/adapters";
import type OpenAI from "openai";
import { describeFramework } from "./framework.ts";

describeFramework("OpenAI Responses", {
  whenLost: "ends the run",
  async run({ env, baseUrl, stream, signal }) {
    const { OpenAI } = await import("openai");
    const client = new OpenAI({ baseURL: baseUrl, apiKey: "key" });
    const { tools, run } = await responsesTools(env);
    const input: OpenAI.Responses.ResponseInput = [{ role: "user", content: "Please cancel order 42." }];
    for (;;) {
      const request = { model: "m", input, tools };
      const response = stream
        ? await client.responses.stream(request, { signal }).finalResponse()
        : await client.responses.create(request, { signal });
      const calls: OpenAI.Responses.ResponseFunctionToolCall[] = [];
      for (const item of response.output) {
        if (item.type === "function_call") calls.push(item);
        if (item.type === "function_call" || item.type === "message") input.push(item);
      }
      if (calls.length === 0) return response.output_text;
      for (const call of calls) input.push(await run(call, { signal }));
    }
  },
});
