import type { ToolDescriptor } from "@aenv/contract";
import type { ToolResult } from "./tool-result.ts";

/** The part of an environment that a framework adapter uses. */
export interface ToolSource {
  listTools(): Promise<ToolDescriptor[]>;
  callTool(
    name: string,
    args: Record<string, unknown>,
    options?: { readonly signal?: AbortSignal; readonly timeoutMs?: number },
  ): Promise<ToolResult>;
}
