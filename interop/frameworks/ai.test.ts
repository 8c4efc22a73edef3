import { aiTools } from "@aenv/sdk/adapters";
import { describeFramework } from "./framework.ts";

describeFramework("Vercel AI SDK", {
  whenLost: "tells the model",
  async run({ env, baseUrl, stream, signal }) {
    const { dynamicTool, generateText, isStepCount, jsonSchema, streamText } = await import("ai");
    const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
    const request = {
      model: createOpenAICompatible({ name: "scripted", baseURL: baseUrl, apiKey: "key" })("m"),
      prompt: "Please cancel order 42.",
      tools: await aiTools(env, { dynamicTool, jsonSchema }),
      stopWhen: isStepCount(10),
      abortSignal: signal,
    };
    return stream ? await streamText(request).text : (await generateText(request)).text;
  },
});
