import { langchainTools } from "@aenv/sdk/adapters";
import { describeFramework } from "./framework.ts";

describeFramework("LangChain JS", {
  whenLost: "tells the model",
  async run({ env, baseUrl, stream, signal }) {
    const { createAgent } = await import("langchain");
    const { ChatOpenAI } = await import("@langchain/openai");
    const { DynamicStructuredTool } = await import("@langchain/core/tools");
    const model = new ChatOpenAI({ model: "m", apiKey: "key", configuration: { baseURL: baseUrl } });
    const agent = createAgent({ model, tools: await langchainTools(env, DynamicStructuredTool) });
    const input = { messages: [{ role: "user", content: "Please cancel order 42." }] };
    if (!stream) return (await agent.invoke(input, { signal })).messages.at(-1)?.text ?? "";
    let answer = "";
    // The mode "messages" makes the model stream; the last state of "values" has the answer.
    for await (const [mode, state] of await agent.stream(input, { signal, streamMode: ["messages", "values"] })) {
      if (mode === "values") answer = state.messages.at(-1)?.text ?? "";
    }
    return answer;
  },
});
