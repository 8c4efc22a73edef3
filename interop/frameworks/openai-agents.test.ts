import { agentsTools } from "@aenv/sdk/adapters";
import { describeFramework } from "./framework.ts";

for (const api of ["chat_completions", "responses"] as const) {
  describeFramework(`OpenAI Agents SDK over ${api}`, {
    whenLost: "ends the run",
    rename: (name) => name.replaceAll("-", "_"),
    async run({ env, baseUrl, stream, signal }) {
      const { Agent, OpenAIProvider, Runner, tool } = await import("@openai/agents");
      const modelProvider = new OpenAIProvider({ baseURL: baseUrl, apiKey: "key", useResponses: api === "responses" });
      const runner = new Runner({ modelProvider, model: "m", tracingDisabled: true });
      const agent = new Agent({ name: "clerk", instructions: "Serve.", tools: await agentsTools(env, tool) });
      if (!stream) return String((await runner.run(agent, "Please cancel order 42.", { signal })).finalOutput);
      const streamed = await runner.run(agent, "Please cancel order 42.", { signal, stream: true });
      await streamed.completed;
      return String(streamed.finalOutput);
    },
  });
}
