import type { CommandLine, CommandResult, EgressPolicy } from "@aenv/contract";
import type { TaskExecOptions, TaskFiles, TaskProcess, TaskSandbox, TaskSpawnOptions } from "../definition/sandbox.ts";
import { openProcess, resultOf, runParameters } from "./command.ts";
import { LinkedFiles } from "./files.ts";
import type { SandboxTarget } from "./target.ts";

const MAX_OUTPUT_BYTES = 1_024 ** 2;

/** A sandbox of an episode, as the environment's code uses it. */
export class SandboxHandle implements TaskSandbox {
  readonly files: TaskFiles;
  readonly #target: SandboxTarget;
  readonly #close: (name: string) => Promise<void>;

  constructor(target: SandboxTarget, close: (name: string) => Promise<void>) {
    this.#target = target;
    this.#close = close;
    this.files = new LinkedFiles(target);
  }

  get name(): string {
    return this.#target.resolve().name;
  }

  get image(): string | null {
    return this.#target.resolve().image;
  }

  async exec(command: CommandLine, options: TaskExecOptions = {}): Promise<CommandResult> {
    const { stdin, maxOutputBytes = MAX_OUTPUT_BYTES } = options;
    const { link, instanceId, id, env } = this.#target.resolve();
    const signal = this.#target.signalWith(options.signal);
    const stream = await link.request({
      path: "/run",
      instanceId,
      parameters: { ...runParameters(id, command, options, env), max_output_bytes: maxOutputBytes, has_input: stdin !== undefined },
      ...(stdin !== undefined && { content: typeof stdin === "string" ? Buffer.from(stdin) : stdin }),
      signal,
    });
    return resultOf(stream, signal);
  }

  async spawn(command: CommandLine, options: TaskSpawnOptions = {}): Promise<TaskProcess> {
    const { link, instanceId, id, env } = this.#target.resolve();
    const { terminal } = options;
    const signal = this.#target.signalWith(options.signal);
    const stream = await link.request({
      path: "/run",
      instanceId,
      parameters: { ...runParameters(id, command, options, env), ...(terminal !== undefined && { terminal }), has_input: true },
      content: null,
      signal,
    });
    const send = async (process: number, name: string) => {
      await link.call({ path: "/signal", instanceId, parameters: { sandbox: id, process, signal: name } });
    };
    return openProcess(stream, send, signal);
  }

  async setEgress(policy: EgressPolicy | null): Promise<void> {
    const { link, instanceId, id } = this.#target.resolve();
    const parameters = { sandbox: id, ...(policy !== null && { egress: policy }) };
    await link.call({ path: "/egress", instanceId, parameters, signal: this.#target.signalWith(undefined) });
  }

  close(): Promise<void> {
    return this.#close(this.name);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
