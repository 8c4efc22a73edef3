import {
  callToolResult,
  type EpisodePrompt,
  type EpisodeReply,
  type EpisodeStatus,
  type EpisodeTask,
  episodePrompt,
  episodeReply,
  episodeStatus,
  fillPath,
  instanceRoutes,
  type Json,
  PlatformError,
  type ResetResult,
  type Reward,
  type Route,
  resetResult,
  type ToolDescriptor,
  toolDescriptor,
} from "@aenv/contract";
import type { Child, ChildToolResult } from "../definition/children.ts";
import { dataOf, resultOf, rewardOf } from "./answer.ts";
import type { ChildAnswer } from "./backend.ts";

type Arguments = Readonly<Record<string, unknown>>;

/** What the handle of a child asks of its episode. */
export interface ChildCalls {
  /** Opens the child before, if it is not open. */
  send(name: string, request: { method: "GET" | "POST"; path: string; body?: unknown }): Promise<ChildAnswer>;
  noteReset(name: string, episode: { readonly task?: EpisodeTask | null; readonly seed: number }): void;
  close(name: string): Promise<void>;
}

/** A child as the code of its parent uses it. */
export class ChildHandle implements Child {
  readonly name: string;
  readonly #calls: ChildCalls;

  constructor(name: string, calls: ChildCalls) {
    this.name = name;
    this.#calls = calls;
  }

  async tools(): Promise<readonly ToolDescriptor[]> {
    const { tools } = await this.#mcp("tools/list", {});
    return toolDescriptor.array().parse(tools);
  }

  async callTool(name: string, args: Arguments = {}): Promise<ChildToolResult> {
    const { content, structuredContent, isError = false } = callToolResult.parse(await this.#mcp("tools/call", { name, arguments: args }));
    const text = content.flatMap((block) => (block.type === "text" && typeof block.text === "string" ? block.text : [])).join("\n");
    return { text, content, ...(structuredContent !== undefined && { structuredContent }), isError };
  }

  callFunction(name: string, args: Arguments = {}): Promise<Json> {
    const { method, path } = { ...instanceRoutes.callFunction, path: fillPath(instanceRoutes.callFunction, { name }) };
    return this.#ask({ method, path }, args);
  }

  async reward(args: Arguments = {}): Promise<Reward> {
    return rewardOf(this.name, await this.#ask(instanceRoutes.reward, args));
  }

  async reset(episode: { readonly task?: EpisodeTask | null; readonly seed?: number } = {}): Promise<ResetResult> {
    const result = resetResult.parse(await this.#ask(instanceRoutes.reset, episode));
    this.#calls.noteReset(this.name, { ...("task" in episode && { task: episode.task ?? null }), seed: result.seed });
    return result;
  }

  async prompt(): Promise<EpisodePrompt> {
    return episodePrompt.parse(await this.#ask(instanceRoutes.prompt));
  }

  async reply(text: string): Promise<EpisodeReply> {
    return episodeReply.parse(await this.#ask(instanceRoutes.reply, { message: { role: "assistant", content: text } }));
  }

  async status(): Promise<EpisodeStatus> {
    return episodeStatus.parse(await this.#ask(instanceRoutes.status));
  }

  close(): Promise<void> {
    return this.#calls.close(this.name);
  }

  async #ask({ method, path }: Pick<Route, "method" | "path">, body?: unknown): Promise<Json> {
    if (method !== "GET" && method !== "POST") throw new PlatformError("internal", `a child is not asked with ${method}`);
    return dataOf(this.name, await this.#calls.send(this.name, { method, path, ...(body !== undefined && { body }) }));
  }

  async #mcp(method: string, params: unknown): Promise<Record<string, unknown>> {
    const body = { jsonrpc: "2.0", id: 1, method, params };
    return resultOf(this.name, await this.#calls.send(this.name, { method: "POST", path: instanceRoutes.mcp.path, body }));
  }
}
