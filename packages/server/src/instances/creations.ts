import {
  assertVariables,
  type CreateInstanceRequest,
  type EpisodeTask,
  isPlatformError,
  PlatformError,
  parseSnapshotRef,
  type Variables,
} from "@aenv/contract";
import type { Caller } from "../access/access.ts";
import type { Quotas } from "../access/quotas.ts";
import type { EnvironmentVersion, Hub } from "../hub/hub.ts";
import { ownVariables } from "../hub/publishing/own-variables.ts";
import type { HeldModels } from "../models/held-models.ts";
import type { ModelPolicy } from "../models/model-policy.ts";
import { type RequestedModels, requestedModels } from "../models/stored-model.ts";
import { assertTemplateAllowed, isProgram } from "../slots/program.ts";
import { mergeVariables, platformVariables } from "../slots/variables.ts";
import type { ReadySnapshot } from "../snapshots/row.ts";
import type { Snapshots } from "../snapshots/snapshots.ts";
import { assertSameCode, startableWith } from "../snapshots/start-request.ts";
import { childGrants } from "./children.ts";
import { assertRemembered, type Idempotency } from "./idempotency.ts";
import type { InstanceTable } from "./instance-table.ts";
import { asContinued, asReplica, type NewRowOptions, newInstanceRow } from "./new-row.ts";
import type { RequestContext } from "./request-context.ts";
import type { InstanceRow } from "./row.ts";
import type { Secrets } from "./secrets.ts";
import type { Starter } from "./starter.ts";
import type { Trees } from "./trees.ts";

export interface CreationsOptions extends NewRowOptions {
  readonly table: InstanceTable;
  readonly starter: Starter;
  readonly idempotency: Idempotency;
  readonly hub: Hub;
  readonly quotas: Quotas;
  readonly secrets: Secrets;
  readonly snapshots: Snapshots;
  readonly modelPolicy: Pick<ModelPolicy, "urlProblem">;
  readonly heldModels: HeldModels;
  readonly trees: Trees;
  readonly now: () => Date;
  /** Whether an owner is an administrator; true for all if access is off. */
  readonly isAdministrator: (owner: string) => Promise<boolean>;
}

interface BeginOptions {
  readonly platform?: Variables;
  readonly stored?: ReadySnapshot | null;
  readonly models?: RequestedModels | null;
}

export interface ReplicaSpec extends Pick<InstanceRow, "id" | "owner" | "environment"> {
  readonly service: string;
  readonly variables: Variables;
  /** Variables that the service sets. */
  readonly platformVariables: Variables;
  /** The limit of the token that created the service. */
  readonly maxInstances: number | null;
}

/** A child that the code of its parent asks for. */
export interface WantedChild {
  readonly name: string;
  readonly episode: string;
  readonly seed: number;
  readonly task: EpisodeTask | null;
  /** Undefined for a new episode. */
  readonly snapshot: unknown;
}

export interface OpenedInstance {
  readonly row: InstanceRow;
  readonly contentDigest: string;
}

/** Checks requests for instances, writes their rows and begins their starts. */
export class Creations {
  readonly #options: CreationsOptions;

  constructor(options: CreationsOptions) {
    this.#options = options;
  }

  /** Writes the row and begins the start. */
  async create(request: CreateInstanceRequest, context: RequestContext): Promise<InstanceRow> {
    const { hub, idempotency, now } = this.#options;
    const owner = ownerOf(request.owner, context.caller);
    const stored = await this.#storedFor(request, owner, context.caller);
    const ref = stored === null ? request.envName : `${stored.environment.name}@${stored.environment.version}`;
    if (ref === undefined || ref === "") {
      throw new PlatformError("request.invalid", "Invalid request parameters: envName is missing; give 'name' or 'name@version'");
    }
    const environment = await hub.resolve(ref, context.caller);
    if (stored !== null) assertSameCode(stored, environment.bundleDigest);
    await assertTemplateAllowed(environment, this.#options.engine, this.#options.isAdministrator);
    assertVariables(request.environment_variables ?? {}, environment);
    const models = requestedModels(environment, request, owner, this.#options.modelPolicy);
    const requested = newInstanceRow(environment, request, owner, now(), this.#options, models);
    const fresh = stored === null ? requested : asContinued(requested, stored);
    const begin = (row: InstanceRow) => this.#begin(environment, request, row, context.caller, { stored, models });
    if (context.idempotencyKey === undefined) return begin(fresh);

    const reserved = await idempotency.reserve(owner, context.idempotencyKey, request, [fresh.id]);
    const [id = fresh.id] = reserved.instanceIds;
    for (;;) {
      const known = await this.#options.table.find(id);
      if (known !== null) return known;
      assertRemembered(reserved, now());
      try {
        return await begin({ ...fresh, id });
      } catch (error) {
        // Another request with the same key came first.
        if (!isPlatformError(error, "instance.exists")) throw error;
      }
    }
  }

  /** Begins the start of a service's replica. Access to the environment was checked when the service was created. */
  async createReplica(spec: ReplicaSpec): Promise<void> {
    const { id, service, owner, variables, maxInstances } = spec;
    const { name, version } = spec.environment;
    const { hub, now } = this.#options;
    const caller: Caller = { ...platformCaller(owner), maxInstances };
    const environment = await hub.resolve(`${name}@${version}`, caller);
    assertVariables(variables, environment);
    await assertTemplateAllowed(environment, this.#options.engine, this.#options.isAdministrator);
    const request: CreateInstanceRequest = { environment_variables: { ...variables } };
    const models = requestedModels(environment, request, owner, this.#options.modelPolicy);
    const row = asReplica(newInstanceRow(environment, request, owner, now(), this.#options, models), id, service);
    await this.#begin(environment, request, row, caller, { platform: spec.platformVariables });
  }

  async #begin(
    environment: EnvironmentVersion,
    request: CreateInstanceRequest,
    requested: InstanceRow,
    caller: Caller,
    { platform = {}, stored = null, models = null }: BeginOptions,
  ): Promise<InstanceRow> {
    const { quotas, snapshots, table, starter, trees, heldModels } = this.#options;
    const { values, secretVariables } = await this.#secretsFor(environment, request, requested);
    const args = stored?.programArguments ?? argumentsOf(environment, request);
    const row: InstanceRow = {
      ...requested,
      ...(caller.tokenId !== null && { tokenId: caller.tokenId }),
      ...(secretVariables.length > 0 && { secretVariables }),
      ...(args.length > 0 && isProgram(environment) && { programArguments: args }),
    };
    // All of a tree is admitted before anything of it starts, and starts or fails as a whole.
    const grouped = row.hasChildren === true ? { ...row, group: row.id } : row;
    const below = await trees.rowsBelow(grouped, environment);
    quotas.admitCreate(row.owner, 1 + below.length);
    if (row.heldModels !== undefined && models !== null) heldModels.put(row.heldModels, models.held, row.id);
    await table.insertAll([grouped, ...below], Math.min(quotas.instanceLimit(row.owner), caller.maxInstances ?? Number.MAX_SAFE_INTEGER));
    const initial = {
      id: row.id,
      task: row.task,
      seed: row.seed,
      ...(request.seed !== undefined && { isSeedNamed: true }),
      variables: mergeVariables(
        ownVariables(environment),
        { ...request.environment_variables, ...values },
        { ...platformVariables(row), ...platform },
      ),
      ...(secretVariables.length > 0 && { hasSecrets: true }),
      arguments: args,
      ...(request.snapshot !== undefined && stored === null && { snapshot: request.snapshot }),
      sandboxOptions: row.sandboxOptions,
      egress: row.egress?.agent,
      taskSandboxes: row.taskSandboxes,
      platformLink: row.platformLink,
      models: row.models,
      children: await childGrants(environment, this.#options.hub),
      ttl: row.ttl,
      labels: row.labels,
    };
    starter.begin(environment, grouped, initial, {
      hidden: Object.values(values).filter((value) => value !== ""),
      ...(stored !== null && { from: (own, occupy) => snapshots.start(stored, own, occupy) }),
    });
    return grouped;
  }

  /** Starts a child for an episode of its parent, and waits until it runs. It ends if the signal fires before. */
  async openChild(parent: InstanceRow, wanted: WantedChild, signal: AbortSignal): Promise<OpenedInstance> {
    const { hub, quotas, trees, starter } = this.#options;
    const { name, episode, seed, task, snapshot } = wanted;
    const above = await hub.resolve(`${parent.environment.name}@${parent.environment.version}`, platformCaller(parent.owner));
    const pin = above.children.find((one) => one.name === name);
    if (pin === undefined)
      throw new PlatformError("instance.unsupported", `${above.name}@${above.version} declares no child '${name}' in deployConfig.uses`);
    const environment = await hub.pinned(pin);
    const { values, secretVariables } = await this.#secretsFor(environment, {}, parent);
    const fields = {
      episode,
      seed,
      task: typeof task === "string" ? task : null,
      ...(secretVariables.length > 0 && { secretVariables }),
    };
    const row = await trees.take(parent, pin, environment, fields, () => {
      quotas.admitCreate(parent.owner);
      return quotas.instanceLimit(parent.owner);
    });
    const initial = {
      id: row.id,
      task,
      seed,
      isSeedNamed: true,
      variables: mergeVariables(ownVariables(environment), { ...pin.variables, ...values }, platformVariables(row)),
      ...(secretVariables.length > 0 && { hasSecrets: true }),
      arguments: argumentsOf(environment, {}),
      ...(snapshot !== undefined && { snapshot }),
      sandboxOptions: row.sandboxOptions,
      egress: row.egress?.agent,
      taskSandboxes: row.taskSandboxes,
      platformLink: row.platformLink,
      models: row.models,
      children: await childGrants(environment, hub),
      ttl: row.ttl,
      labels: row.labels,
    };
    starter.begin(environment, row, initial, {
      kind: "children",
      hidden: Object.values(values).filter((value) => value !== ""),
      cancel: signal,
    });
    return { row: (await starter.find(row.id)) ?? row, contentDigest: pin.contentDigest };
  }

  /** Only the sandbox gets the values: the row has none of them. */
  async #secretsFor(environment: EnvironmentVersion, request: CreateInstanceRequest, row: Pick<InstanceRow, "owner" | "secretVariables">) {
    const values = await this.#options.secrets.resolve(environment, request, row.owner);
    return { values, secretVariables: [...new Set([...(row.secretVariables ?? []), ...Object.keys(values)])] };
  }

  /** The stored snapshot that the request names; null if there is none. */
  async #storedFor(request: CreateInstanceRequest, owner: string, caller: Caller): Promise<ReadySnapshot | null> {
    const ref = parseSnapshotRef(request.snapshot);
    return ref === null ? null : startableWith(await this.#options.snapshots.get(ref, owner, caller), request);
  }
}

/** Rights were checked before: when the service was created, or when the parent was published. */
function platformCaller(owner: string): Caller {
  return { owner, roles: new Set(["admin"]), tokenId: null, maxInstances: null };
}

/** With access control, the owner is that of the token; without, the one that the request names. */
export function ownerOf(named: string | undefined, caller: Caller): string {
  return caller.tokenId === null && named ? named : caller.owner;
}

function argumentsOf({ config }: EnvironmentVersion, request: CreateInstanceRequest): readonly string[] {
  return request.arguments?.length ? request.arguments : (config.deployConfig?.arguments ?? []);
}
