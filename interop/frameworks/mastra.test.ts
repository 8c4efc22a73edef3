import { mastraTools } from "@aenv/sdk/adapters";
import { describeFramework } from "./framework.ts";

describeFramework("Mastra", {
  whenLost: "tells the model",
  async run({ env, baseUrl, stream, signal }) {
    const { Agent } = await import("@mastra/core/agent");
    const { createTool } = await import("@mastra/core/tools");
    const agent = new Agent({
      id: "clerk",
      name: "clerk",
      instructions: "Serve.",
      model: { id: "scripted/m", url: baseUrl, apiKey: "key" },
      tools: await mastraTools(env, createTool),
    });
    const options = { abortSignal: signal, maxSteps: 10 };
    const { steps } = stream
      ? await agent.stream("Please cancel order 42.", options)
      : await agent.generate("Please cancel order 42.", options);
    return (await steps).at(-1)?.text ?? "";
  },
});
