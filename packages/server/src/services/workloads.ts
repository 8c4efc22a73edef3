import { messageOf, PlatformError } from "@aenv/contract";
import type { SeenServices, ServiceEngine, ServiceSpec } from "@aenv/sandbox";
import type { ShownText } from "../config/shown-text.ts";
import type { EnvironmentVersion, Hub } from "../hub/hub.ts";
import type { Collection } from "../stores/collection.ts";
import type { Versioned } from "../stores/store.ts";
import type { ServiceRow, Workload } from "./row.ts";
import { type SpecOptions, specOf, type WorkloadRequest, workloadFor } from "./workload.ts";

export interface WorkloadsOptions extends SpecOptions {
  readonly services: ServiceEngine;
  readonly rows: Collection<ServiceRow>;
  readonly hub: Hub;
  readonly shown: ShownText;
  readonly now: () => Date;
}

/** Without services, the engine is asked only this often, for what a server that was slow has left in it. */
const ORPHANS_EVERY_MS = 60_000;

/** Services whose replicas the engine keeps running: their rows say what it should run, and what it reported last. */
export class Workloads {
  readonly #options: WorkloadsOptions;
  #orphansAt = 0;

  constructor(options: WorkloadsOptions) {
    this.#options = options;
  }

  /** The row of a new service with its workload, or as it is if the platform has to start the replicas. */
  async admit(row: ServiceRow, environment: EnvironmentVersion, request: WorkloadRequest): Promise<ServiceRow> {
    const { services, engine } = this.#options;
    const workload = workloadFor(environment, request, services);
    if (workload === null) {
      if (row.storage === null) return row;
      throw new PlatformError(
        "instance.unsupported",
        `${environment.name}@${environment.version} cannot have storage with the engine '${engine.name}': its replicas are instances, because it has secrets or taskSandboxes in deployConfig; publish a version without them`,
      );
    }
    await services.admit(specOf(row, workload, environment, this.#options));
    return { ...row, workload };
  }

  /** What a change that replaces the replicas makes of their workload. A new base image is used from then on. */
  async changeOf(row: ServiceRow, image: string | undefined): Promise<(latest: Workload) => Workload> {
    // An image has the whole program, unless the environment has a command, whose files are in the bundle.
    const hasCommand = (await this.#environmentOf(row)).config.runtime !== undefined;
    const { baseImage } = this.#options.services;
    return ({ baseImage: known, ...latest }) => {
      const next = { ...latest, image: image ?? (latest.image === known ? baseImage : latest.image) };
      return known === undefined || (image !== undefined && !hasCommand) ? next : { ...next, baseImage };
    };
  }

  /** Whether this server's engine runs it. */
  holds({ workload }: ServiceRow): boolean {
    return workload?.location === this.#options.services.location;
  }

  urlOf({ id, workload }: ServiceRow): string {
    return this.#options.services.urlOf(id, workload?.port ?? 0);
  }

  /** What there is of all services; null while there are none, but for a look from time to time. */
  async look(): Promise<SeenServices | null> {
    const { services, now } = this.#options;
    if (now().getTime() < this.#orphansAt && !(await this.#hasAny())) return null;
    const seen = await services.look();
    this.#orphansAt = now().getTime() + ORPHANS_EVERY_MS;
    return seen;
  }

  async #hasAny(): Promise<boolean> {
    for await (const { value } of this.#options.rows.each({ index: "all", value: "yes" })) if (this.holds(value)) return true;
    return false;
  }

  /** One round for one service. True if it is as it should be, so that no news are expected soon. */
  async reconcile(found: Versioned<ServiceRow>, seen?: SeenServices): Promise<boolean> {
    const { services, rows, shown } = this.#options;
    const { value: row } = found;
    const { workload } = row;
    if (workload === undefined || !this.holds(row)) return true;
    let next: ServiceRow;
    try {
      const spec = await this.#specOf(row);
      if (spec === null) return true;
      const status = await (seen ?? (await services.look(row.id))).apply(spec);
      next = { ...row, reason: status.reason === null ? null : shown(status.reason), workload: { ...workload, status } };
    } catch (error) {
      next = { ...row, reason: shown(messageOf(error)) };
    }
    if (JSON.stringify(next) !== JSON.stringify(row)) await rows.swap(found, next);
    const { status } = next.workload ?? {};
    return status != null && !status.isUpdating && status.available === row.replicas && status.replicas.length === row.replicas;
  }

  /** Deletes what the engine has of a service; then its row may go. */
  async remove({ id, owner, storage }: ServiceRow, deletesStorage: boolean): Promise<void> {
    const { services } = this.#options;
    await services.remove(id);
    if (deletesStorage && storage !== null) await services.removeStorage(storage, owner);
  }

  /** Deletes services without a row, which a server that was slow may have made after their deletion. `seen` is older than the rows. */
  async removeOrphans({ ids }: SeenServices): Promise<void> {
    const { services, rows } = this.#options;
    for (const id of ids) if ((await rows.find(id)) === null) await services.remove(id);
  }

  async #specOf(row: ServiceRow): Promise<ServiceSpec | null> {
    return row.workload === undefined ? null : specOf(row, row.workload, await this.#environmentOf(row), this.#options);
  }

  #environmentOf({ environment: { name, version }, owner, maxInstances }: ServiceRow): Promise<EnvironmentVersion> {
    // Access was checked when the service was created.
    return this.#options.hub.resolve(`${name}@${version}`, { owner, roles: new Set(["admin"]), tokenId: null, maxInstances });
  }
}
