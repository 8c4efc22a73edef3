import type { CallToolResult } from "@aenv/contract";
import type { CompiledTool, Toolset } from "../compile/environment.ts";
import type { CallHooks } from "./call.ts";

/** The tools of an instance, or of one of its roles, as agents call them. */
export interface ToolSurface {
  /** The id of the instance. */
  readonly id: string;
  /** Null without roles. */
  readonly role: string | null;
  /** The same object until an episode with other tools begins. */
  readonly tools: Toolset;
  /** Runs a tool. A failure of its code becomes a result with `isError`; only a failure of the platform is thrown. */
  callTool(tool: CompiledTool, args: unknown, hooks: CallHooks): CallToolResult | Promise<CallToolResult>;
  /** Like `callTool`, for arguments that the tool's schema has already accepted. */
  runTool(tool: CompiledTool, input: unknown, hooks: CallHooks): CallToolResult | Promise<CallToolResult>;
  /** What it declares of MCP besides tools. */
  readonly mcpCapabilities: Readonly<Record<string, unknown>>;
  requestMcp(method: string, params: object, hooks: CallHooks): Promise<object>;
}
