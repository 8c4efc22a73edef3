import type { ToolDescriptor } from "@aenv/contract";
import type { ToolResult } from "./tool-result.ts";

/** What a framework adapter needs of an environment: its tools, and a way to call them. */
export interface ToolSource {
  listTools(): Promise<ToolDescriptor[]>;
  callTool(
    name: string,
    args: Record<string, unknown>,
    options?: { readonly signal?: AbortSignal; readonly timeoutMs?: number },
  ): Promise<ToolResult>;
}
