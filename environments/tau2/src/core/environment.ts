import { compareText, PyError, valueError } from "@aenv/benchmark";
import { toJsonStr, writeJson } from "../python/json/writer.ts";
import { repr } from "../python/repr.ts";
import { checkReservedNames } from "../python/signature.ts";
import { typeRepr } from "../python/values/types.ts";
import type { Dict, PyValue } from "../python/values/values.ts";
import type { Memo } from "./database/copy.ts";
import type { ToolCall, ToolMessage } from "./messages/messages.ts";
import type { Tool } from "./tools/tool.ts";
import type { Toolkit } from "./tools/toolkit.ts";

/** A call of a tool or a helper of one side. */
export interface FunctionCall {
  readonly env_type: string;
  readonly func_name: string;
  readonly arguments: Dict;
}

export interface Assertion extends FunctionCall {
  readonly assert_value: boolean;
  readonly message: string | null;
}

export interface EnvironmentSource {
  readonly domainName: string;
  readonly policy: string;
  readonly tools: Toolkit | null;
  readonly userTools: Toolkit | null;
  /** Copies the effects of one side's actions to the other side. */
  readonly sync?: (environment: Environment) => void;
  /** The timestamp of tool messages; null if not given. */
  readonly now?: () => string;
}

/** The state of a domain in one episode: two toolkits with their databases, and the rules for calling them. */
export class Environment {
  readonly domainName: string;
  readonly policy: string;
  readonly tools: Toolkit | null;
  readonly userTools: Toolkit | null;
  readonly #source: EnvironmentSource;
  #isSolo = false;

  /** A fork is not synced: it is in sync to the same degree as its origin. */
  constructor(source: EnvironmentSource, forkIsSolo: boolean | null = null) {
    this.domainName = source.domainName;
    this.policy = source.policy;
    this.tools = source.tools;
    this.userTools = source.userTools;
    this.#source = source;
    if (forkIsSolo === null) this.sync();
    else this.#isSolo = forkIsSolo;
  }

  get isSolo(): boolean {
    return this.#isSolo;
  }

  setSolo(isSolo: boolean): void {
    this.#isSolo = isSolo;
    if (!isSolo) return;
    const names = (this.userTools?.listTools() ?? []).map(({ name }) => name);
    const overlap = (this.tools?.listTools() ?? []).map(({ name }) => name).filter((name) => names.includes(name));
    if (overlap.length > 0) throw valueError(`Tool names overlap: {${overlap.map(repr).join(", ")}}`);
  }

  sync(): void {
    this.#source.sync?.(this);
  }

  getTools(): readonly Tool[] {
    return this.#side("assistant").listTools();
  }

  getUserTools(include: readonly string[] | null = null): readonly Tool[] {
    return this.#side("user").listTools(include);
  }

  /** A numbered list of a side's tools, or null if there is no such side. */
  describeTools(side: string, summaryOf: (tool: Tool) => string = ({ summary }) => summary): string | null {
    if (side !== "user" && side !== "assistant") throw valueError(`Invalid environment type: ${side}`);
    const toolkit = side === "user" ? this.userTools : this.tools;
    if (toolkit === null) return null;
    const listed = [...toolkit.listTools()].sort((a, b) => compareText(a.name, b.name));
    return listed.map((tool, i) => `${i + 1}. ${tool.name}\n${summaryOf(tool)}`).join("\n\n");
  }

  /** Runs a tool for a requestor. Does not sync. */
  makeToolCall(name: string, requestor: string, args: Dict): PyValue {
    checkReservedNames(args);
    if (requestor === "user") {
      if (this.#isSolo) throw valueError("User tool calls are not allowed in solo mode");
      return this.#side("user").useTool(name, args);
    }
    if (requestor !== "assistant") throw valueError(`Invalid requestor: ${requestor}`);
    if (this.#isSolo && this.userTools?.hasTool(name)) return this.userTools.useTool(name, args);
    return this.#side("assistant").useTool(name, args);
  }

  /** Runs a tool and syncs; a PyError becomes the answer. If the sync fails, the tool's effects remain. */
  getResponse(call: ToolCall): ToolMessage {
    let value: PyValue;
    let error = false;
    try {
      value = this.makeToolCall(call.name, call.requestor, call.arguments);
      this.sync();
    } catch (caught) {
      if (!(caught instanceof PyError)) throw caught;
      value = `Error: ${caught.message}`;
      error = true;
    }
    const timestamp = this.#source.now?.() ?? null;
    return { role: "tool", id: call.id, content: toJsonStr(value), requestor: call.requestor, error, timestamp };
  }

  /** Runs an initialization function. */
  runFunction({ env_type, func_name, arguments: args }: FunctionCall): PyValue {
    const toolkit = env_type === "user" ? this.userTools : this.tools;
    if (toolkit === null) throw new PyError("AttributeError", `'NoneType' object has no attribute '${func_name}'`);
    const value = toolkit.call(func_name, args);
    this.sync();
    return value;
  }

  /** Whether an assertion holds; its function may raise. */
  runAssertion(assertion: Assertion): boolean {
    const value = this.runFunction(assertion);
    if (typeof value !== "boolean") throw valueError(`Function ${assertion.func_name} returned ${typeRepr(value)} instead of bool`);
    return value === assertion.assert_value;
  }

  /** Raises if an assertion does not hold. */
  assert(assertion: Assertion): void {
    if (this.runAssertion(assertion)) return;
    const { env_type, func_name, arguments: args, message } = assertion;
    const shown = `Assertion failed: Env Type: ${env_type}\nFunc Name: ${func_name}\nArguments:\n${writeJson(args, { indent: 2 })}`;
    throw new PyError("AssertionError", message ?? shown);
  }

  /** The hashes of the agent's and of the user's database; null where there is no such side. */
  hashes(): [string | null, string | null] {
    return [this.tools?.dbHash() ?? null, this.userTools?.dbHash() ?? null];
  }

  /** An independent copy. */
  fork(): Environment {
    const memo: Memo = new Map();
    const tools = this.tools?.fork(memo) ?? null;
    const userTools = this.userTools?.fork(memo) ?? null;
    return new Environment({ ...this.#source, tools, userTools }, this.#isSolo);
  }

  #side(requestor: "user" | "assistant"): Toolkit {
    const toolkit = requestor === "user" ? this.userTools : this.tools;
    if (toolkit === null) throw valueError(requestor === "user" ? "User tools not available" : "Tools not available");
    return toolkit;
  }
}
