import { Agent, MCPServerStreamableHttp, OpenAIProvider, Runner } from "@openai/agents";
import type { ProgramStart } from "aenvironment/rollout";

/** An agent of the OpenAI Agents SDK: aenv rollout ENVIRONMENT --agent module --agent-file openai-agents.ts --model NAME */
export default async function play({ agentUrl, messages, model, signal }: ProgramStart): Promise<string> {
  if (model === null) throw new Error("this agent needs a model; add --model");
  const tools = new MCPServerStreamableHttp({ url: agentUrl });
  await tools.connect();
  try {
    const modelProvider = new OpenAIProvider({ baseURL: model.openaiUrl, apiKey: model.apiKey, useResponses: true });
    const runner = new Runner({ modelProvider, model: model.name, tracingDisabled: true });
    const instructions = messages.filter(({ role }) => role === "system").map(({ content }) => String(content));
    const words = messages.filter(({ role }) => role === "user").map(({ content }) => String(content));
    const agent = new Agent({ name: "player", instructions: instructions.join("\n\n"), mcpServers: [tools] });
    const { finalOutput } = await runner.run(agent, words.join("\n\n"), { signal, maxTurns: 30 });
    return String(finalOutput);
  } finally {
    await tools.close();
  }
}
