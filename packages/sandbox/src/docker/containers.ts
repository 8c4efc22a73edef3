import { describeExit, exitOf } from "../host/exit-reason.ts";
import { type DockerApi, isDockerError } from "./api.ts";
import { containerName, HOME_LABEL, SANDBOX_LABEL } from "./container.ts";
import type { DockerSandbox } from "./sandbox.ts";

const REASON_LINES = 40;

/** The daemon does not have the container. */
export const REMOVED = Symbol("removed");

/** The containers of one home on the daemon. */
export class DockerContainers {
  readonly #api: DockerApi;
  readonly #homeId: string;

  constructor(api: DockerApi, homeId: string) {
    this.#api = api;
    this.#homeId = homeId;
  }

  /** Lists the containers by the id of their sandbox, and whether they run. */
  async list(): Promise<ReadonlyMap<string, boolean>> {
    const filters = JSON.stringify({ label: [`${HOME_LABEL}=${this.#homeId}`] });
    const all = await this.#api.list("/containers/json", { all: "true", filters });
    return new Map(
      all.map(({ Labels: labels, State: state }) => [
        (labels as Readonly<Record<string, string>>)[SANDBOX_LABEL] ?? "",
        state === "running" || state === "paused",
      ]),
    );
  }

  /** Idempotent. */
  async remove(id: string, isRetry = false): Promise<void> {
    try {
      await this.#api.call("DELETE", `/containers/${containerName(this.#homeId, id)}`, { query: { force: "true", v: "true" } });
    } catch (error) {
      // 409: another process removes it.
      if (isDockerError(error, 404, 409)) return;
      // Podman could not kill it because it ended at that moment.
      if (!isRetry && isDockerError(error, 500) && error.message.includes("container state improper")) return this.remove(id, true);
      throw error;
    }
  }

  /** Why the container of a sandbox has ended; null if it has not. */
  async exitReason(sandbox: DockerSandbox): Promise<string | typeof REMOVED | null> {
    try {
      const { State: state } = await this.#api.call("GET", `${sandbox.path}/json`);
      const { Status, ExitCode, OOMKilled } = state as { Status: string; ExitCode: number; OOMKilled: boolean };
      if (Status !== "exited" && Status !== "dead") return null;
      const { memoryMb } = sandbox.record;
      if (OOMKilled) return `the program ran out of memory${memoryMb === null ? "" : ` (its limit is ${memoryMb} MB)`}`;
      return describeExit({ exit: exitOf(ExitCode), lines: await sandbox.tail(REASON_LINES), memoryMb });
    } catch (error) {
      if (isDockerError(error, 404)) return REMOVED;
      throw error;
    }
  }
}
