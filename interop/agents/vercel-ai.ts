import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { Environment } from "aenvironment";
import { aiTools } from "aenvironment/adapters";
import type { ProgramStart } from "aenvironment/rollout";
import { dynamicTool, generateText, isStepCount, jsonSchema, type ModelMessage } from "ai";

/** An agent of the Vercel AI SDK: aenv rollout ENVIRONMENT --agent module --agent-file vercel-ai.ts --model NAME */
export default async function play({ agentUrl, messages, model, signal }: ProgramStart): Promise<string> {
  if (model === null) throw new Error("this agent needs a model; add --model");
  await using tools = new Environment("episode", { instanceUrl: agentUrl.replace(/\/mcp$/, ""), skipHealthCheck: true });
  const { text } = await generateText({
    model: createOpenAICompatible({ name: "recorded", baseURL: model.openaiUrl, apiKey: model.apiKey })(model.name),
    messages: messages.map(({ role, content }) => ({ role, content: String(content) }) as ModelMessage),
    allowSystemInMessages: true,
    tools: await aiTools(tools, { dynamicTool, jsonSchema }),
    stopWhen: isStepCount(30),
    abortSignal: signal,
  });
  return text;
}
