import { assertVariables, type CreateInstanceRequest, PlatformError } from "@aenv/contract";
import type { EnvironmentVersion, Hub, PinnedChild } from "../hub/hub.ts";
import type { ModelPolicy } from "../models/model-policy.ts";
import { requestedModels } from "../models/stored-model.ts";
import { assertTemplateAllowed } from "../slots/program.ts";
import { asChild, type ChildNode, nameIn, treeOf } from "./children.ts";
import type { InstanceTable } from "./instance-table.ts";
import { type NewRowOptions, newInstanceRow } from "./new-row.ts";
import type { InstanceRow } from "./row.ts";

export interface TreesOptions extends NewRowOptions {
  readonly table: InstanceTable;
  readonly hub: Hub;
  readonly modelPolicy: Pick<ModelPolicy, "urlProblem">;
  readonly now: () => Date;
  /** Whether an owner is an administrator; true for all if access is off. */
  readonly isAdministrator: (owner: string) => Promise<boolean>;
}

/** A reset has the children of two episodes for a moment. */
const EPISODES = 2;

/** The rows of instances that belong to another one. */
export class Trees {
  readonly #options: TreesOptions;
  /** The last insertion for each parent: what a parent has is counted before a row is inserted. */
  readonly #inserting = new Map<string, Promise<unknown>>();

  constructor(options: TreesOptions) {
    this.#options = options;
  }

  /** The rows of all instances that begin with this one. They are inserted with it, before anything starts. */
  async rowsBelow(root: InstanceRow, environment: EnvironmentVersion): Promise<InstanceRow[]> {
    if (environment.children.length === 0) return [];
    return this.#rows(root, await treeOf(environment, this.#options.hub));
  }

  async #rows(parent: InstanceRow, nodes: readonly ChildNode[]): Promise<InstanceRow[]> {
    const rows = nodes.map(async ({ pin, environment, below }) => {
      const row = await this.#newRow(parent, pin, environment);
      return [row, ...(await this.#rows(row, below))];
    });
    return (await Promise.all(rows)).flat();
  }

  async #newRow(parent: InstanceRow, pin: PinnedChild, environment: EnvironmentVersion): Promise<InstanceRow> {
    const { engine, isAdministrator, modelPolicy, now } = this.#options;
    const variables = { ...pin.variables };
    const request: CreateInstanceRequest = { environment_variables: variables };
    assertVariables(variables, environment);
    await assertTemplateAllowed(environment, engine, isAdministrator);
    const models = requestedModels(environment, request, parent.owner, modelPolicy);
    return asChild(newInstanceRow(environment, request, parent.owner, now(), this.#options, models), parent, pin);
  }

  /**
   * The row of a child for one episode: one that was inserted with its parent and is not used yet, else a new one. `admit` refuses a new one,
   * or returns how many instances the owner may have.
   */
  async take(
    parent: InstanceRow,
    pin: PinnedChild,
    environment: EnvironmentVersion,
    episode: Pick<InstanceRow, "episode" | "seed" | "task" | "secretVariables">,
    admit: () => number,
  ): Promise<InstanceRow> {
    const before = this.#inserting.get(parent.id);
    const taking = (async () => {
      await before?.catch(() => {});
      return this.#take(parent, pin, environment, episode, admit);
    })();
    this.#inserting.set(parent.id, taking);
    try {
      return await taking;
    } finally {
      if (this.#inserting.get(parent.id) === taking) this.#inserting.delete(parent.id);
    }
  }

  async #take(
    parent: InstanceRow,
    pin: PinnedChild,
    environment: EnvironmentVersion,
    episode: Pick<InstanceRow, "episode" | "seed" | "task" | "secretVariables">,
    admit: () => number,
  ): Promise<InstanceRow> {
    const { table } = this.#options;
    let count = 0;
    for await (const { key, value } of table.rows.each({ index: "parent", value: parent.id })) {
      if (nameIn(value) !== pin.name) continue;
      count++;
      const isWaiting = (row: InstanceRow) => row.status === "Creating" && row.episode === undefined;
      if (isWaiting(value)) return table.change(key, (row) => (isWaiting(row) ? { ...row, ...episode } : null));
    }
    if (count >= EPISODES)
      throw new PlatformError(
        "environment.invalid",
        `instance '${parent.id}' has ${count} children '${pin.name}', as many as two episodes may have; close one first`,
      );
    const { group: _, ...row } = await this.#newRow(parent, pin, environment);
    // It begins alone, after the others: they do not fail with it.
    const fresh = { ...row, ...episode, group: null };
    await table.insert(fresh, admit());
    return fresh;
  }
}
