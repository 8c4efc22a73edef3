import type { Handlers, LinkTools } from "../link/link-request.ts";
import { CommandRequests, type CommandRequestsOptions } from "./command-requests.ts";
import { fileHandlers } from "./file-requests.ts";
import { inSandbox, type TaskPath } from "./in-sandbox.ts";

export type SandboxRequestsOptions = Omit<CommandRequestsOptions, keyof LinkTools>;

/** Answers the requests of environments about their sandboxes. */
export class SandboxRequests {
  readonly #options: SandboxRequestsOptions;
  #commands: CommandRequests | undefined;

  constructor(options: SandboxRequestsOptions) {
    this.#options = options;
  }

  /** The commands of the environment that run in a sandbox. */
  ownCommands(sandboxId: string): ReadonlySet<number> {
    return this.#commands?.ownCommands(sandboxId) ?? new Set();
  }

  handlers(tools: LinkTools): Pick<Handlers, TaskPath> {
    const { sandboxes } = this.#options;
    const commands = new CommandRequests({ ...this.#options, ...tools });
    this.#commands = commands;
    return {
      "/open": async (call) => {
        const { id, spec } = await sandboxes.open(call.hostId, call.instanceId, call.given, call.signal);
        return { id, image: spec.image };
      },
      "/close": ({ hostId, instanceId, given }) => sandboxes.closeOne(hostId, instanceId, given.sandbox),
      "/egress": ({ hostId, instanceId, given }) => sandboxes.setEgress(hostId, instanceId, given.sandbox, given.egress),
      "/snapshot": async ({ hostId, instanceId, given, signal }) => ({
        snapshot: await sandboxes.store(hostId, instanceId, given.sandbox, signal),
      }),
      "/snapshot/remove": ({ hostId, given }) => sandboxes.removeSnapshot(given.snapshot, hostId),
      "/run": (call) => commands.run(call),
      "/signal": (call) =>
        inSandbox(call, sandboxes, ({ init }) => {
          const { process, signal } = call.given;
          return init.signal(process, signal as NodeJS.Signals, { group: true });
        }),
      ...fileHandlers({ sandboxes, ...tools }),
    };
  }
}
