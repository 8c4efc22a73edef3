export { type AiFactory, type AiToolOptions, aiTools } from "./ai.ts";
export { type LangchainToolFields, langchainTools } from "./langchain.ts";
export { type MastraToolOptions, mastraTools, type PassingSchema } from "./mastra.ts";
export { type AdapterOptions, type ModelTool, modelText, modelTools, type ObjectSchema, parseArguments } from "./model-tool.ts";
export { type ToolNames, toolNames } from "./names.ts";
export {
  type ChatTool,
  type ChatToolCall,
  type ChatToolMessage,
  type ChatToolset,
  chatTools,
  type ResponsesTool,
  type ResponsesToolCall,
  type ResponsesToolOutput,
  type ResponsesToolset,
  type RunOptions,
  responsesTools,
} from "./openai.ts";
export { type AgentsToolOptions, agentsTools } from "./openai-agents.ts";
