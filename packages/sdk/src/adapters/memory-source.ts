import type { CallToolResult, ToolDescriptor } from "@aenv/contract";
import { ToolResult } from "../mcp/tool-result.ts";
import type { ToolSource } from "../mcp/tool-source.ts";

export interface MemoryTool {
  readonly description?: string;
  readonly inputSchema?: Record<string, unknown>;
  run(args: Record<string, unknown>, signal: AbortSignal | undefined): CallToolResult | Promise<CallToolResult>;
}

/** Tools in memory, without an environment. */
export function memorySource(tools: Readonly<Record<string, MemoryTool>>): ToolSource {
  return {
    async listTools() {
      return Object.entries(tools).map(
        ([name, { run: _, inputSchema = { type: "object", properties: {} }, ...rest }]): ToolDescriptor => ({ name, inputSchema, ...rest }),
      );
    },
    async callTool(name, args, { signal } = {}) {
      const tool = tools[name];
      if (tool === undefined) throw new TypeError(`no tool '${name}'`);
      return new ToolResult(await tool.run(args, signal));
    },
  };
}

/** A result with one text block. */
export function textResult(text: string): CallToolResult {
  return { content: [{ type: "text", text }] };
}
