import { chatTools } from "@aenv/sdk/adapters";
import type OpenAI from "openai";
import { describeFramework } from "./framework.ts";

describeFramework("OpenAI chat completions", {
  whenLost: "ends the run",
  async run({ env, baseUrl, stream, signal }) {
    const { OpenAI } = await import("openai");
    const client = new OpenAI({ baseURL: baseUrl, apiKey: "key" });
    const { tools, run } = await chatTools(env);
    const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: "user", content: "Please cancel order 42." }];
    for (;;) {
      const request = { model: "m", messages, tools };
      const completion = stream
        ? await client.chat.completions.stream(request, { signal }).finalChatCompletion()
        : await client.chat.completions.create(request, { signal });
      const message = completion.choices[0]?.message;
      if (message?.tool_calls === undefined || message.tool_calls.length === 0) return message?.content ?? "";
      messages.push(message);
      for (const call of message.tool_calls) messages.push(await run(call, { signal }));
    }
  },
});
